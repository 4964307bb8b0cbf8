/*
 * trusted.c - system calls with a token in an argument that they do not have.
 */
#include "executors/namespace/trusted.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

int trusted_make(uint64_t *token)
{
    return getrandom(token, sizeof(*token), 0) == (ssize_t)sizeof(*token) ? 0 : -EIO;
}

static int result_of(long result)
{
    return result < 0 ? -errno : (int)result;
}

int trusted_mount(uint64_t token, const char *source, const char *target, const char *type,
                  unsigned long flags, const char *options)
{
    return result_of(syscall(SYS_mount, source, target, type, flags, options, token));
}

int trusted_mount_setattr(uint64_t token, int folder, const char *path,
                          const struct mount_attr *attr)
{
    const int flags = path[0] ? 0 : AT_EMPTY_PATH;
    return result_of(syscall(SYS_mount_setattr, folder, path, flags, attr, sizeof(*attr), token));
}

int trusted_move_mount(uint64_t token, int tree, int target)
{
    const unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    return result_of(syscall(SYS_move_mount, tree, "", target, "", flags, token));
}

int trusted_openat2(uint64_t token, int folder, const char *path, const struct open_how *how)
{
    return result_of(syscall(SYS_openat2, folder, path, how, sizeof(*how), 0, token));
}

pid_t trusted_clone(uint64_t token, int (*main)(void *), char *top, int flags, void *argument,
                    int *pidfd)
{
    return result_of(clone(main, top, flags | CLONE_VM, argument, pidfd, (void *)token, NULL));
}
