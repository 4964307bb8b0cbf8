/*
 * mounts.c - scratch and /proc for one run.
 *
 * The sandbox's mount namespace is a copy of the slot's, whose root is the template already; what a run
 * needs is mounted on top, and nothing has to be taken away. There is one scratch file system, so that
 * one size holds for all that the code can write: the working directory and /tmp are two folders of it.
 * It is never taken apart: it goes with the mount namespace, when the last process of the run is gone.
 */
#include "executors/namespace/mounts.h"

#include "executors/namespace/trusted.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

#define PAGE_BYTES    4096
#define USUAL_PAGES   ((16ll << 20) / PAGE_BYTES + 1)
#define BASE_INODES   1024 /* files that even a small scratch can hold */
#define MAX_INODES    (1 << 20)
#define OPTION_BYTES  96
#define SCRATCH_FLAGS (MS_NOSUID | MS_NODEV)
#define PROC_FLAGS    (MS_NOSUID | MS_NODEV | MS_NOEXEC)
/* The code sees itself and nothing about the machine; the first process, which it may not look
 * into, is not there at all. */
#define PROC_OPTIONS "subset=pid,hidepid=invisible"
/* The folders of the scratch, where it is mounted before they cover it. */
#define INNER(folder) MOUNTS_WORK folder

static void write_options(const struct mounts_size *size, char options[OPTION_BYTES])
{
    (void)snprintf(options, OPTION_BYTES, "mode=755,nr_blocks=%lld,nr_inodes=%lld", size->pages,
                   size->inodes);
}

static int mount_scratch(uint64_t token, const struct mounts_size *size)
{
    char options[OPTION_BYTES];
    write_options(size, options);
    int result = trusted_mount(token, "scratch", MOUNTS_WORK, "tmpfs", SCRATCH_FLAGS, options);
    if (result < 0)
        return result;
    if (mkdir(INNER("/work"), 0700) < 0 || mkdir(INNER("/tmp"), 0700) < 0 ||
        mkdir(INNER("/code"), 0700) < 0)
        return -errno;
    return 0;
}

static int open_folders(struct mounts_folders *folders)
{
    folders->work = open(INNER("/work"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    folders->tmp = open(INNER("/tmp"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    folders->code = open(INNER("/code"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folders->work < 0 || folders->tmp < 0 || folders->code < 0 ? -errno : 0;
}

static int show_folders(uint64_t token)
{
    /* The working directory last: it covers the place that the others are taken from. */
    static const char *const folders[][2] = {
        {INNER("/tmp"), "/tmp"}, {INNER("/code"), MOUNTS_CODE}, {INNER("/work"), MOUNTS_WORK}};
    int result = 0;
    for (size_t i = 0; result == 0 && i < AR_COUNT(folders); i++)
        result = trusted_mount(token, folders[i][0], folders[i][1], NULL, MS_BIND, NULL);
    return result < 0 ? result : mounts_set_code(token, false);
}

int mounts_build(uint64_t token, struct mounts_size *size, struct mounts_folders *folders,
                 struct failure *failure)
{
    if (size->pages == 0)
        *size = (struct mounts_size){USUAL_PAGES, USUAL_PAGES + BASE_INODES};
    int result = mount_scratch(token, size);
    if (result == 0)
        result = open_folders(folders);
    if (result < 0)
        return step_fail(failure, STEP_SCRATCH, -result);
    result = show_folders(token);
    if (result < 0)
        return step_fail(failure, STEP_ROOT, -result);
    result = trusted_mount(token, "proc", "/proc", "proc", PROC_FLAGS, PROC_OPTIONS);
    if (result < 0)
        return step_fail(failure, STEP_PROC, -result);
    return chdir(MOUNTS_WORK) < 0 ? step_fail(failure, STEP_ROOT, errno) : 0;
}

int mounts_size_scratch(uint64_t token, struct mounts_size *size, int64_t bytes,
                        int64_t extra_bytes)
{
    char options[OPTION_BYTES];
    /* Rounded down: the grant is the most that can be written. None at all would mean no limit. */
    struct mounts_size wanted = {.pages = bytes / PAGE_BYTES +
                                          (extra_bytes + PAGE_BYTES - 1) / PAGE_BYTES,
                                 .inodes = bytes / PAGE_BYTES + BASE_INODES};
    if (wanted.pages == 0)
        wanted.pages = 1;
    if (wanted.inodes > MAX_INODES)
        wanted.inodes = MAX_INODES;
    if (wanted.pages == size->pages && wanted.inodes == size->inodes)
        return 0;
    write_options(&wanted, options);
    int result =
        trusted_mount(token, "scratch", MOUNTS_WORK, NULL, MS_REMOUNT | SCRATCH_FLAGS, options);
    if (result == 0)
        *size = wanted;
    return result;
}

int mounts_set_code(uint64_t token, bool writable)
{
    struct mount_attr attr = {.attr_set = writable ? 0 : MOUNT_ATTR_RDONLY,
                              .attr_clr = writable ? MOUNT_ATTR_RDONLY : 0};
    return trusted_mount_setattr(token, AT_FDCWD, MOUNTS_CODE, &attr);
}

bool mounts_scratch_is_full(const struct mounts_folders *folders)
{
    struct statfs status;
    return fstatfs(folders->work, &status) == 0 && (status.f_bfree == 0 || status.f_ffree == 0);
}
