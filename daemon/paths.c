/*
 * paths.c - host paths as detached mounts.
 *
 * Nothing is ever done by a name twice: what openat2(2) has found is cloned from its descriptor, and the
 * clone is what the sandbox gets. It has no peer on the host, so that what is mounted there later does
 * not show up in it.
 */
#include "daemon/paths.h"

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

/* The path itself, which is a folder or a regular file, and not root's if it is to be written: a
 * descriptor with *status; 1 when there is no such; -errno for want of memory or descriptors. */
static int find(const char *path, const struct text_list *roots, bool writable, int *fd,
                struct stat *status)
{
    const char *root = root_of(path, roots);
    AR_AUTO_CLOSE int at_root = root ? open_at(AT_FDCWD, root, NO_LINKS) : -ENOENT;
    AR_AUTO_CLOSE int found = -1;
    if (at_root >= 0 && strcmp(path, root) != 0) {
        const char *rest = path + strlen(root);
        found = open_at(at_root, rest + strspn(rest, "/"), RESOLVE_BENEATH | NO_LINKS);
    } else {
        found = base_take_fd(&at_root);
    }
    if (found == -EMFILE || found == -ENFILE || found == -ENOMEM)
        return found;
    if (found < 0 || fstat(found, status) < 0)
        return 1;
    if ((!S_ISDIR(status->st_mode) && !S_ISREG(status->st_mode)) ||
        (writable && status->st_uid == 0))
        return 1;
    *fd = base_take_fd(&found);
    return 0;
}

int paths_check(const struct text_list *paths, const struct text_list *roots, bool writable,
                struct text_list *missing)
{
    const size_t before = missing->count;
    for (size_t i = 0; i < paths->count; i++) {
        struct stat status;
        AR_AUTO_CLOSE int fd = -1;
        int rc = find(paths->items[i], roots, writable, &fd, &status);
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

static int write_map(pid_t pid, const char *name, int64_t on_disk, int64_t here)
{
    char path[64], map[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int length = snprintf(map, sizeof map, "%lld %lld 1", (long long)on_disk, (long long)here);
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, map, (size_t)length) != length ? -errno : 0;
}

/* Who on the disk the run's user is. */
struct owner {
    int64_t uid, gid;
};

static struct owner owner_for(const struct stat *status, bool writable, int64_t user)
{
    return (struct owner){.uid = writable ? status->st_uid : user,
                          .gid = writable ? status->st_gid : user};
}

static int open_namespace(pid_t pid, const struct owner *owner, int64_t user)
{
    char path[64];
    int rc = write_map(pid, "uid_map", owner->uid, user);
    if (rc == 0)
        rc = write_map(pid, "gid_map", owner->gid, user);
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A user namespace that says: what belongs to the owner on the disk belongs to the user here. Somebody
 * has to live in it until it is open: a process that shares our memory, on a stack of its own. */
static int make_namespace(const struct owner *owner, int64_t user)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    pid_t pid = clone(wait_for_end, stack + STACK_BYTES, CLONE_VM | CLONE_NEWUSER, stack);
    int fd = pid < 0 ? -errno : open_namespace(pid, owner, user);
    if (pid > 0) {
        (void)kill(pid, SIGKILL); /* ours, and not reaped before the next line */
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            continue;
    }
    (void)munmap(stack, STACK_BYTES);
    return fd;
}

static int map_owner(int tree, const struct owner *owner, int64_t user)
{
    AR_AUTO_CLOSE int namespace = make_namespace(owner, user);
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

static int open_one(const char *path, const struct text_list *roots, bool writable, int64_t user,
                    int *out)
{
    struct stat status;
    AR_AUTO_CLOSE int fd = -1;
    int rc = find(path, roots, writable, &fd, &status);
    if (rc != 0)
        return rc;
    const struct owner owner = owner_for(&status, writable, user);
    AR_AUTO_CLOSE int tree = clone_closed(fd, writable);
    rc = tree < 0 ? tree : map_owner(tree, &owner, user);
    if (rc == 0)
        *out = base_take_fd(&tree);
    return rc;
}

int paths_open(const struct text_list *paths, const struct text_list *roots, bool writable,
               int64_t user, int *fds)
{
    for (size_t i = 0; i < paths->count; i++) {
        int rc = open_one(paths->items[i], roots, writable, user, &fds[i]);
        if (rc == 0)
            continue;
        while (i-- > 0) {
            base_close(&fds[i]);
            fds[i] = -1;
        }
        return rc;
    }
    return 0;
}

static bool works_with(const struct text_list *roots)
{
    int fd = -1;
    bool works = roots->count > 0 && open_one(roots->items[0], roots, false, 1, &fd) == 0;
    base_close(&fd);
    return works;
}

bool paths_work(const struct config *config)
{
    for (size_t i = 0; i < config->company_count; i++)
        if (works_with(&config->companies[i].read) || works_with(&config->companies[i].write))
            return true;
    return false;
}
