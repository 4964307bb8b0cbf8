/*
 * mounts.h - the file systems of one run, in the first process's own mount namespace. token: of the
 * slot (trusted.h).
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_MOUNTS_H
#define AUDITRUN_EXECUTORS_NAMESPACE_MOUNTS_H

#include "executors/namespace/step.h"

#define MOUNTS_WORK "/work" /* the working directory, as the code sees it */
#define MOUNTS_CODE "/code" /* the code's own file and the compiled program, read-only */

/* The size of a scratch file system. */
struct mounts_size {
    long long pages, inodes; /* pages 0: not known yet */
};

/* Folders of the scratch, which can be written through these whatever the code may do. */
struct mounts_folders {
    int work, tmp, code; /* owned */
};

/* On the root of the slot: mounts a scratch file system of this size (its usual one when not known),
 * shows it as /work, /tmp and /code, mounts a new /proc for the pid namespace, goes to /work. 0, or
 * negative with *failure set. */
int mounts_build(uint64_t token, struct mounts_size *size, struct mounts_folders *folders,
                 struct failure *failure) AR_MUST_CHECK;

/* Gives the scratch room for bytes of the code's own and extra_bytes of ours (its file); *size is what
 * it had and has then. 0 or -errno. */
int mounts_size_scratch(uint64_t token, struct mounts_size *size, int64_t bytes,
                        int64_t extra_bytes) AR_MUST_CHECK;

/* Can anything be written below /code? At first not. 0 or -errno. */
int mounts_set_code(uint64_t token, bool writable) AR_MUST_CHECK;

/* No byte or no file more can be written. */
bool mounts_scratch_is_full(const struct mounts_folders *folders);

#endif
