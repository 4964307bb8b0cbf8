/*
 * template.c - builds the template of the root file system out of read-only pieces of the host.
 *
 * All of it is made with the slot's own (unprivileged) rights in its own mount namespace. Pieces are
 * cloned with everything mounted below them, because the kernel lets nobody uncover what is under a
 * mount of the host, and are then closed recursively: read-only, no set-uid, no devices.
 */
#include "executors/namespace/template.h"

#include "executors/namespace/reach.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

#define ROOT           "/tmp" /* where it is built; exists on every host */
#define MAX_COPY_BYTES (1u << 20)
#define MAX_LINKS      4096

#define CLOSED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* By number: C libraries before glibc 2.36 have no functions for these. */
static int open_tree_at(const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, AT_FDCWD, path, flags);
}

static int move_mount_to(int tree, const char *path)
{
    return (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

static int set_attributes(int tree, unsigned flags, uint64_t attributes)
{
    struct mount_attr attr = {.attr_set = attributes};
    return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | flags, &attr, sizeof(attr));
}

/* Shows the host's source at target, with these attributes on top of what the host has. */
static int clone_mount(const char *source, const char *target, uint64_t attributes)
{
    AR_AUTO_CLOSE int tree =
        open_tree_at(source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0)
        return -errno;
    if (attributes && set_attributes(tree, AT_RECURSIVE, attributes) < 0)
        return -errno;
    return move_mount_to(tree, target) < 0 ? -errno : 0;
}

static int make_folder(const char *path, mode_t mode)
{
    return mkdir(path, mode) < 0 ? -errno : 0;
}

static int write_text(const char *path, const char *text, size_t length)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    for (ssize_t written; length > 0; text += written, length -= (size_t)written)
        if ((written = write(fd, text, length)) <= 0)
            return written < 0 ? -errno : -EIO;
    return 0;
}

/* ---- the file systems ------------------------------------------------------------------------- */

static int mount_base(void)
{
    static const char *const folders[] = {"/proc",
                                          "/work",
                                          "/tmp",
                                          "/code",
                                          "/dev",
                                          "/etc",
                                          "/usr",
                                          "/var",
                                          "/run",
                                          "/run/secrets",
                                          "/etc/alternatives"};
    char path[64];

    umask(022);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("sandbox", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m") < 0)
        return -errno;
    for (size_t i = 0; i < AR_COUNT(folders); i++) {
        (void)snprintf(path, sizeof(path), ROOT "%s", folders[i]);
        int result = make_folder(path, 0755);
        if (result < 0)
            return result;
    }
    return symlink("/tmp", ROOT "/var/tmp") < 0 ? -errno : 0;
}

/* What the host has at /bin, /lib ...: the same link, or the same folder closed, or nothing. */
static int mirror_top(const char *name)
{
    char source[32], target[64], link[PATH_MAX];
    struct stat status;

    (void)snprintf(source, sizeof(source), "/%s", name);
    (void)snprintf(target, sizeof(target), ROOT "/%s", name);
    if (lstat(source, &status) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(status.st_mode)) {
        int result = make_folder(target, 0755);
        return result < 0 ? result : clone_mount(source, target, CLOSED);
    }
    if (!S_ISLNK(status.st_mode))
        return 0;
    ssize_t length = readlink(source, link, sizeof(link) - 1);
    if (length < 0)
        return -errno;
    link[length] = '\0';
    return symlink(link, target) < 0 ? -errno : 0;
}

static int bind_host_pieces(void)
{
    static const char *const tops[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
    int result = clone_mount("/usr", ROOT "/usr", CLOSED);
    for (size_t i = 0; result == 0 && i < AR_COUNT(tops); i++)
        result = mirror_top(tops[i]);
    return result;
}

static int make_devices(void)
{
    static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};
    static const char *const links[][2] = {{"/proc/self/fd", ROOT "/dev/fd"},
                                           {"/proc/self/fd/0", ROOT "/dev/stdin"},
                                           {"/proc/self/fd/1", ROOT "/dev/stdout"},
                                           {"/proc/self/fd/2", ROOT "/dev/stderr"},
                                           {"/tmp", ROOT "/dev/shm"}};
    char source[32], target[64];

    for (size_t i = 0; i < AR_COUNT(devices); i++) {
        (void)snprintf(source, sizeof(source), "/dev/%s", devices[i]);
        (void)snprintf(target, sizeof(target), ROOT "/dev/%s", devices[i]);
        int result = write_text(target, "", 0);
        if (result == 0)
            result = clone_mount(source, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
        if (result < 0)
            return result;
    }
    for (size_t i = 0; i < AR_COUNT(links); i++)
        if (symlink(links[i][0], links[i][1]) < 0)
            return -errno;
    return 0;
}

/* ---- /etc ------------------------------------------------------------------------------------- */

/* Copies a small file of the host; one that is not there, or no small file, is left out. */
static int copy_file(const char *source, const char *target)
{
    struct stat status;
    AR_AUTO_CLOSE int fd = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_size > MAX_COPY_BYTES)
        return 0;
    AR_AUTO_FREE char *text = malloc(MAX_COPY_BYTES);
    if (!text)
        return -ENOMEM;
    size_t length = 0;
    ssize_t got;
    while (length < MAX_COPY_BYTES && (got = read(fd, text + length, MAX_COPY_BYTES - length)) > 0)
        length += (size_t)got;
    return write_text(target, text, length);
}

/* Debian's /etc/alternatives: the links that many programs in /usr/bin point at. */
static int copy_alternatives(void)
{
    char link[PATH_MAX];
    DIR *folder = opendir("/etc/alternatives");
    if (!folder)
        return 0;
    int target = open(ROOT "/etc/alternatives", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = target < 0 ? -errno : 0;
    const struct dirent *entry;
    for (int count = 0; result == 0 && count < MAX_LINKS && (entry = readdir(folder)); count++) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof(link) - 1);
        if (length <= 0)
            continue;
        link[length] = '\0';
        if (symlinkat(link, target, entry->d_name) < 0)
            result = -errno;
    }
    (void)closedir(folder);
    base_close(&target);
    return result;
}

static int make_etc(void)
{
    static const char *const texts[][2] = {
        {ROOT "/etc/passwd", "sandbox:x:1000:1000:sandbox:/work:/bin/sh\n"
                             "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
        {ROOT "/etc/group", "sandbox:x:1000:\nnogroup:x:65534:\n"},
        {ROOT "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
        {ROOT "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    };
    for (size_t i = 0; i < AR_COUNT(texts); i++) {
        int result = write_text(texts[i][0], texts[i][1], strlen(texts[i][1]));
        if (result < 0)
            return result;
    }
    int result = copy_file("/etc/ld.so.cache", ROOT "/etc/ld.so.cache");
    if (result == 0)
        result = copy_file("/etc/localtime", ROOT "/etc/localtime");
    return result < 0 ? result : copy_alternatives();
}

/* A folder of the host's /etc, closed, or a copy of a small file. What has gone is left out. */
static int show_in_etc(const char *name)
{
    struct stat status;
    char source[PATH_MAX], target[PATH_MAX];
    (void)snprintf(source, sizeof(source), "/etc/%s", name);
    (void)snprintf(target, sizeof(target), ROOT "/etc/%s", name);
    if (lstat(source, &status) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(status.st_mode))
        return copy_file(source, target);
    int result = make_folder(target, 0755);
    return result < 0 ? result : clone_mount(source, target, CLOSED | MOUNT_ATTR_NOEXEC);
}

static int show_more_of_etc(const struct text_list *names)
{
    int result = 0;
    for (size_t i = 0; result == 0 && names && i < names->count; i++)
        result = show_in_etc(names->items[i]);
    return result;
}

/* What a client of TLS looks for, on the hosts that we know; never the folders with keys beside them. */
static int show_authorities(void)
{
    static const char *const folders[] = {"ssl", "pki", "pki/tls", "pki/ca-trust"};
    static const char *const shown[] = {"ssl/certs", "ssl/openssl.cnf", "pki/tls/certs",
                                        "pki/tls/cert.pem", "pki/ca-trust/extracted"};
    char path[64];
    for (size_t i = 0; i < AR_COUNT(folders); i++) {
        (void)snprintf(path, sizeof(path), "/etc/%s", folders[i]);
        if (access(path, F_OK) < 0)
            continue;
        (void)snprintf(path, sizeof(path), ROOT "/etc/%s", folders[i]);
        if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EROFS)
            return -errno;
    }
    for (size_t i = 0; i < AR_COUNT(shown); i++) {
        (void)snprintf(path, sizeof(path), ROOT "/etc/%s", shown[i]);
        int result = access(path, F_OK) == 0 ? 0 : show_in_etc(shown[i]);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- modules ---------------------------------------------------------------------------------- */

static int show_modules(const struct modules *modules)
{
    int result = modules->count > 0 ? make_folder(ROOT "/opt", 0755) : 0;
    if (result == 0 && modules->count > 0)
        result = modules_write(modules, ROOT TEMPLATE_MODULES);
    return result;
}

/* ---- /proc ------------------------------------------------------------------------------------ */

/* Runs as the only process that its pid namespace will ever have. */
static int mount_proc(void *argument)
{
    int *error = argument;
    if (mount("proc", ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        *error = errno;
    _exit(0);
}

static int make_empty_proc(char *stack)
{
    int error = 0;
    pid_t pid = clone(mount_proc, stack, CLONE_NEWPID | CLONE_VM | CLONE_VFORK | SIGCHLD, &error);
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        return -errno;
    return -error;
}

/* ---- moving in -------------------------------------------------------------------------------- */

static int move_in(void)
{
    AR_AUTO_CLOSE int root = open_tree_at(ROOT, OPEN_TREE_CLOEXEC);
    if (root < 0 || set_attributes(root, 0, CLOSED) < 0)
        return -errno;
    if (chdir(ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return -errno;
    return 0;
}

int template_build(const struct text_list *etc, unsigned reach, const struct modules *modules,
                   char *stack, struct failure *failure)
{
    static const struct {
        enum step step;
        int (*run)(void);
    } steps[] = {
        {STEP_TEMPLATE, mount_base},
        {STEP_HOST_PIECES, bind_host_pieces},
        {STEP_DEVICES, make_devices},
        {STEP_ETC, make_etc},
    };
    int result;
    for (size_t i = 0; i < AR_COUNT(steps); i++)
        if ((result = steps[i].run()) < 0)
            return step_fail(failure, steps[i].step, -result);
    result = show_more_of_etc(etc);
    if (result == 0 && reach & REACH_NETWORK)
        result = show_authorities();
    if (result < 0)
        return step_fail(failure, STEP_ETC, -result);
    if ((result = show_modules(modules)) < 0)
        return step_fail(failure, STEP_TEMPLATE, -result);
    if ((result = make_empty_proc(stack)) < 0)
        return step_fail(failure, STEP_PROC, -result);
    result = move_in();
    return result < 0 ? step_fail(failure, STEP_SLOT_ROOT, -result) : 0;
}
