/*
 * modules.h - modules of ours that code may import: a folder of the host with a folder for each language.
 *
 * They are read while the process is still who started it, and written into the root of sandboxes when
 * it is nobody any more: the folder need not be open to everybody, and costs no mount.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_MODULES_H
#define AUDITRUN_EXECUTORS_NAMESPACE_MODULES_H

#include "protocol/spec.h"

#define MODULES_MAX       64
#define MODULES_MAX_BYTES (256u << 10) /* one */

struct modules {
    struct output_file files[MODULES_MAX]; /* path: "python/auditrun.py" */
    size_t count;
};

/* All regular files of the folders in this folder. One that is not there has none. 0 with *out owned
 * (modules_free()); 1 when there are too many or one is too big; -errno. */
int modules_read(const char *folder, struct modules *out) AR_MUST_CHECK;
/* Writes them below a folder, which is made. 0 or -errno. */
int modules_write(const struct modules *modules, const char *folder) AR_MUST_CHECK;
void modules_free(struct modules *modules);

#endif
