/*
 * journal_file.h - the journal on the disk: one append-only file of checksummed frames.
 *
 * A frame is 20 bytes of header ("ARJ", version byte 1, type, three zero bytes, length, the first
 * eight bytes of the SHA-256 over header and payload; numbers little-endian) and its payload. What
 * was synced is never lost; a torn tail (the end of a write that a crash cut off) was never
 * acknowledged and is cut off at the next open; damage anywhere else is an error that names the
 * offset, and the file is left as it is.
 *
 * Not for several threads at a time. The folder is locked: a second daemon on it does not start.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_FILE_H
#define AUDITRUN_DAEMON_JOURNAL_FILE_H

#include "protocol/base.h"

#include <sys/types.h>

struct journal_file;

enum journal_type {
    JOURNAL_WRITER = 1,  /* payload: the writer's id */
    JOURNAL_INTENT = 2,  /* payload: record (interrupted) as journal JSON */
    JOURNAL_KEPT = 3,    /* payload: record as journal JSON: takes the place of the intent */
    JOURNAL_SETTLED = 4, /* payload: run id: nothing more to do for it */
    JOURNAL_TYPE_END
};

#define JOURNAL_MAX_PAYLOAD (1u << 20)

/* Called for each frame at open. 0, or -errno to stop. */
typedef int journal_visit_fn(void *context, enum journal_type type, const char *payload,
                             size_t length);

/* Locks the folder (made if missing, mode 0700) and reads the journal in it. 0 with *out owned;
 * -EWOULDBLOCK: another daemon has it; -EUCLEAN: damaged at *offset; or -errno. */
int journal_file_open(const char *directory, journal_visit_fn *visit, void *context,
                      struct journal_file **out, off_t *offset) AR_MUST_CHECK;
void journal_file_close(struct journal_file *file);

/* Appends a frame; not durable before journal_file_sync(). On -errno (disk full) nothing of the frame
 * is left in the file. */
int journal_file_append(struct journal_file *file, enum journal_type type, const char *payload,
                        size_t length) AR_MUST_CHECK;
/* After a failed sync nobody knows what is on the disk: from then on everything fails with -EIO. */
int journal_file_sync(struct journal_file *file) AR_MUST_CHECK;
off_t journal_file_size(const struct journal_file *file);

/* Writes the journal anew with only what write_all appends, durably, and goes on in it. On -errno the
 * old one stays. */
int journal_file_rewrite(struct journal_file *file,
                         int (*write_all)(void *context, struct journal_file *file),
                         void *context) AR_MUST_CHECK;

#endif
