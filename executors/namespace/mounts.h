/*
 * mounts.h - the file systems of one run, in the first process's own mount namespace.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_MOUNTS_H
#define AUDITRUN_EXECUTORS_NAMESPACE_MOUNTS_H

#include "executors/namespace/step.h"

#define MOUNTS_WORK "/work" /* the working directory, as the code sees it */
#define MOUNTS_CODE "/code" /* the code's own file and the compiled program, read-only */

/* Folders of the scratch file system, before it is shown to the code. */
struct mounts_folders {
    int work, code; /* owned */
};

/* Mounts a scratch file system for bytes of the code's own and extra_bytes of ours (its file), and
 * makes its folders. 0 or -errno. */
int mounts_make_scratch(int64_t bytes, int64_t extra_bytes,
                        struct mounts_folders *folders) AR_MUST_CHECK;

/* Shows the scratch in the root as /work, /tmp and /code, mounts a new /proc for the pid namespace,
 * makes that root the only one and goes to /work. 0, or negative with *failure set. */
int mounts_enter_root(struct failure *failure) AR_MUST_CHECK;

/* /code can only be read from now on. 0 or -errno. */
int mounts_close_code(void) AR_MUST_CHECK;

#endif
