/*
 * trusted.h - the system calls that launcher and first process still make behind the filter, and the
 * code may not.
 *
 * Installing a filter costs as much as starting a process, so it is installed once, in the launcher,
 * and everything inherits it. What tells a call of ours from one of the code is a number of 64 random
 * bits, in an argument that the kernel does not look at for that call. It is made for each slot and lies
 * in the launcher's memory alone, which the code leaves when it is executed and cannot look into.
 * Whoever had it would gain calls that the kernel still refuses without capabilities, and the code has
 * none: it is one of several walls.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_TRUSTED_H
#define AUDITRUN_EXECUTORS_NAMESPACE_TRUSTED_H

#include "protocol/base.h"

#include <sys/types.h>

struct mount_attr;
struct open_how;

/* The argument that carries the token, from 0: the sixth, which none of these calls has; and of
 * clone(2) the one for thread-local storage, which counts only with CLONE_SETTLS. */
#define TRUSTED_ARGUMENT 5
#ifdef __x86_64__
#    define TRUSTED_CLONE_ARGUMENT 4
#else
#    define TRUSTED_CLONE_ARGUMENT 3
#endif

/* 0, or -errno when there are no random bytes. */
int trusted_make(uint64_t *token) AR_MUST_CHECK;

/* As the calls of their names, with 0, a descriptor or a pid, or -errno. */
int trusted_mount(uint64_t token, const char *source, const char *target, const char *type,
                  unsigned long flags, const char *options) AR_MUST_CHECK;
/* path "": the mount that the descriptor is of. */
int trusted_mount_setattr(uint64_t token, int folder, const char *path,
                          const struct mount_attr *attr) AR_MUST_CHECK;
/* Puts the detached mount `tree` over the folder or file that `target` (O_PATH) is. */
int trusted_move_mount(uint64_t token, int tree, int target) AR_MUST_CHECK;
int trusted_openat2(uint64_t token, int folder, const char *path,
                    const struct open_how *how) AR_MUST_CHECK;
/* Starts main(argument) in our memory, with its stack ending at top. */
pid_t trusted_clone(uint64_t token, int (*main)(void *), char *top, int flags, void *argument,
                    int *pidfd) AR_MUST_CHECK;

#endif
