/*
 * secret_file.h - how secrets are handed to a provider: for each one a line "NAME LENGTH\n", then that
 * many bytes. No copy of a value is needed to read it, so that there is one place to wipe.
 */
#ifndef AUDITRUN_PROTOCOL_SECRET_FILE_H
#define AUDITRUN_PROTOCOL_SECRET_FILE_H

#include "protocol/text.h"

#define SECRET_MAX_BYTES      65536             /* one value */
#define SECRET_FILE_MAX_BYTES (4u << 20)        /* all of a run */
#define SECRET_HEAD_BYTES     (64 + 1 + 20 + 2) /* the longest line before a value, with a NUL */

/* The line before a value. */
void secret_file_head(const char *name, size_t length, char head[SECRET_HEAD_BYTES]);

struct secret_entry {
    char name[65];
    const char *value; /* in the text that is read */
    size_t length;
};

/* The next secret of [*at, end), which moves on. 0; 1 at the end; -EPROTO when it is no such file. */
int secret_file_next(const char **at, const char *end, struct secret_entry *out) AR_MUST_CHECK;

#endif
