/*
 * mounts.c - scratch, /proc and the change of root for one run.
 *
 * There is one scratch file system, so that one size holds for all that the code can write: the
 * working directory and /tmp are two folders of it. It is never taken apart: it goes with the mount
 * namespace, when the last process of the run is gone.
 */
#include "executors/namespace/mounts.h"

#include "executors/namespace/template.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

#define PAGE_BYTES    4096
#define BASE_INODES   1024 /* files that even a small scratch can hold */
#define MAX_INODES    (1 << 20)
#define SCRATCH_FLAGS (MS_NOSUID | MS_NODEV)
#define PROC_FLAGS    (MS_NOSUID | MS_NODEV | MS_NOEXEC)
/* The code sees itself and nothing about the machine; the first process, which it may not look
 * into, is not there at all. */
#define PROC_OPTIONS "subset=pid,hidepid=invisible"

int mounts_make_scratch(int64_t bytes, int64_t extra_bytes, struct mounts_folders *folders)
{
    char options[96];
    /* Rounded down: the grant is the most that can be written. None at all would mean no limit. */
    long long pages = bytes / PAGE_BYTES + (extra_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
    if (pages == 0)
        pages = 1;
    long long inodes = bytes / PAGE_BYTES + BASE_INODES;
    if (inodes > MAX_INODES)
        inodes = MAX_INODES;
    (void)snprintf(options, sizeof(options), "mode=755,nr_blocks=%lld,nr_inodes=%lld", pages,
                   inodes);
    if (mount("scratch", TEMPLATE_SCRATCH, "tmpfs", SCRATCH_FLAGS, options) < 0)
        return -errno;
    if (mkdir(TEMPLATE_SCRATCH "/work", 0700) < 0 || mkdir(TEMPLATE_SCRATCH "/tmp", 0700) < 0 ||
        mkdir(TEMPLATE_SCRATCH "/code", 0700) < 0)
        return -errno;
    folders->work = open(TEMPLATE_SCRATCH "/work", O_PATH | O_DIRECTORY | O_CLOEXEC);
    folders->code = open(TEMPLATE_SCRATCH "/code", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folders->work < 0 || folders->code < 0 ? -errno : 0;
}

static int show_scratch(void)
{
    static const char *const folders[][2] = {
        {TEMPLATE_SCRATCH "/work", TEMPLATE_ROOT "/work"},
        {TEMPLATE_SCRATCH "/tmp", TEMPLATE_ROOT "/tmp"},
        {TEMPLATE_SCRATCH "/code", TEMPLATE_ROOT "/code"},
    };
    for (size_t i = 0; i < AR_COUNT(folders); i++)
        if (mount(folders[i][0], folders[i][1], NULL, MS_BIND, NULL) < 0)
            return -errno;
    return 0;
}

static int change_root(void)
{
    if (chdir(TEMPLATE_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir(MOUNTS_WORK) < 0)
        return -errno;
    return 0;
}

int mounts_enter_root(struct failure *failure)
{
    int result = show_scratch();
    if (result < 0)
        return step_fail(failure, STEP_ROOT, -result);
    if (mount("proc", TEMPLATE_ROOT "/proc", "proc", PROC_FLAGS, PROC_OPTIONS) < 0)
        return step_fail(failure, STEP_PROC, errno);
    result = change_root();
    return result < 0 ? step_fail(failure, STEP_ROOT, -result) : 0;
}

int mounts_close_code(void)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    return syscall(SYS_mount_setattr, AT_FDCWD, MOUNTS_CODE, 0, &attr, sizeof(attr)) < 0 ? -errno
                                                                                         : 0;
}
