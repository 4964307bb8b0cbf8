/*
 * paths.c - host paths as detached mounts.
 *
 * Nothing is ever done by a name twice: what openat2(2) has found is cloned from its descriptor, and the
 * clone is what the sandbox gets. It has no peer on the host, so that what is mounted there later does
 * not show up in it. The owner of the path is the run's own user in it (an idmapped mount), unless that
 * is root: what code leaves behind must not belong to root.
 */
#include "daemon/paths.h"

#include "daemon/log.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

#define NO_LINKS    (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define CLOSED      (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define STACK_BYTES 16384

/* ---- finding ---------------------------------------------------------------------------------- */

static int open_at(int folder, const char *path, uint64_t resolve)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = resolve};
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

static const char *root_of(const char *path, const struct text_list *roots)
{
    for (size_t i = 0; i < roots->count; i++)
        if (text_path_is_below(path, roots->items[i]))
            return roots->items[i];
    return NULL;
}

/* The path itself, which is a folder or a regular file: a descriptor with *status; 1 when there is no
 * such; -errno for want of memory or descriptors. */
static int find(const char *path, const struct text_list *roots, int *fd, struct stat *status)
{
    const char *root = root_of(path, roots);
    AR_AUTO_CLOSE int at_root = root ? open_at(AT_FDCWD, root, NO_LINKS) : -ENOENT;
    AR_AUTO_CLOSE int found = -1;
    if (at_root >= 0 && strcmp(path, root) != 0) {
        const char *rest = path + strlen(root);
        found = open_at(at_root, rest + strspn(rest, "/"), RESOLVE_BENEATH | NO_LINKS);
    } else {
        found = at_root;
        at_root = -1;
    }
    if (found == -EMFILE || found == -ENFILE || found == -ENOMEM)
        return found;
    if (found < 0 || fstat(found, status) < 0)
        return 1;
    if (!S_ISDIR(status->st_mode) && !S_ISREG(status->st_mode))
        return 1;
    *fd = base_take_fd(&found);
    return 0;
}

int paths_check(const struct text_list *paths, const struct text_list *roots,
                struct text_list *missing)
{
    const size_t before = missing->count;
    for (size_t i = 0; i < paths->count; i++) {
        struct stat status;
        AR_AUTO_CLOSE int fd = -1;
        int rc = find(paths->items[i], roots, &fd, &status);
        if (rc > 0)
            rc = text_list_add(missing, paths->items[i]);
        if (rc < 0)
            return rc;
    }
    return missing->count > before ? 1 : 0;
}

/* ---- whose files they are --------------------------------------------------------------------- */

/* Until it is killed. */
static int wait_for_end(void *forever)
{
    do
        (void)pause();
    while (forever);
    return 0;
}

static int write_map(pid_t pid, const char *name, unsigned inside, int64_t outside)
{
    char path[64], map[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int length = snprintf(map, sizeof map, "%u %lld 1", inside, (long long)outside);
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, map, (size_t)length) != length ? -errno : 0;
}

static int open_namespace(pid_t pid, const struct stat *from, int64_t to)
{
    char path[64];
    int rc = write_map(pid, "uid_map", from->st_uid, to);
    if (rc == 0)
        rc = write_map(pid, "gid_map", from->st_gid, to);
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A user namespace that says: what belongs to `from` on the disk belongs to `to` here. Somebody has to
 * live in it until it is open: a process that shares our memory, on a stack of its own. */
static int make_namespace(const struct stat *from, int64_t to)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    pid_t pid = clone(wait_for_end, stack + STACK_BYTES, CLONE_VM | CLONE_NEWUSER, stack);
    int fd = pid < 0 ? -errno : open_namespace(pid, from, to);
    if (pid > 0) {
        (void)kill(pid, SIGKILL); /* ours, and not reaped before the next line */
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            continue;
    }
    (void)munmap(stack, STACK_BYTES);
    return fd;
}

/* 0, or why that cannot be: the file system does not know it. */
static int map_owner(int tree, const struct stat *status, int64_t owner)
{
    if (owner < 0 || status->st_uid == 0)
        return 0;
    AR_AUTO_CLOSE int namespace = make_namespace(status, owner);
    if (namespace < 0)
        return namespace;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)namespace};
    return syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ? -errno : 0;
}

/* ---- mounts ----------------------------------------------------------------------------------- */

static int clone_closed(int fd, bool writable)
{
    struct mount_attr attr = {.attr_set = CLOSED | (writable ? 0 : MOUNT_ATTR_RDONLY),
                              .propagation = MS_PRIVATE};
    AR_AUTO_CLOSE int tree =
        (int)syscall(SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return -errno;
    return base_take_fd(&tree);
}

static int open_one(const char *path, const struct text_list *roots, bool writable, int64_t owner,
                    int *out)
{
    struct stat status;
    AR_AUTO_CLOSE int fd = -1;
    int rc = find(path, roots, &fd, &status);
    if (rc != 0)
        return rc;
    AR_AUTO_CLOSE int tree = clone_closed(fd, writable);
    if (tree < 0)
        return tree;
    rc = map_owner(tree, &status, owner);
    if (rc < 0)
        log_debug("host paths keep their owner: %s", strerror(-rc));
    *out = base_take_fd(&tree);
    return 0;
}

int paths_open(const struct text_list *paths, const struct text_list *roots, bool writable,
               int64_t owner, int *fds)
{
    for (size_t i = 0; i < paths->count; i++) {
        int rc = open_one(paths->items[i], roots, writable, owner, &fds[i]);
        if (rc == 0)
            continue;
        while (i-- > 0)
            base_close(&fds[i]);
        return rc;
    }
    return 0;
}

static bool works_with(const struct text_list *roots)
{
    AR_AUTO_CLOSE int fd = roots->count > 0 ? open_at(AT_FDCWD, roots->items[0], NO_LINKS) : -1;
    AR_AUTO_CLOSE int tree = fd < 0 ? -1 : clone_closed(fd, false);
    return tree >= 0;
}

bool paths_work(const struct config *config)
{
    for (size_t i = 0; i < config->company_count; i++)
        if (works_with(&config->companies[i].read) || works_with(&config->companies[i].write))
            return true;
    return false;
}
