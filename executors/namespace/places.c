/*
 * places.c - mounts paths of the host in a sandbox.
 *
 * The way to a mountpoint is walked one name after the other, without following any link: a folder of the
 * host may be mounted on it already, and somebody else may change that. Nothing is ever made there,
 * only in our own root and in the scratch. Outer paths come before those below them, so that what is
 * said of the inner one holds.
 */
#include "executors/namespace/places.h"

#include "executors/namespace/landlock.h"
#include "executors/namespace/trusted.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

#define ONE_NAME    (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define FOLDER_MODE 0755
#define FILE_MODE   0444
#define DATA        (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define MAX_PATHS   (2 * GRANT_MAX_PATHS)

struct place {
    const char *path;
    int tree;
    bool writable;
    bool folder;
};

/* What is walked with: our own file systems can be known by their devices. */
struct walk {
    uint64_t token;
    int root; /* owned */
    dev_t own[2];
};

/* ---- which paths ------------------------------------------------------------------------------ */

/* Is inner the same as outer, or below it? */
static bool holds(const char *outer, const char *inner)
{
    const size_t length = strlen(outer);
    return strncmp(outer, inner, length) == 0 && (inner[length] == '\0' || inner[length] == '/');
}

static bool is_our_own(const char *path)
{
    static const char *const places[] = {
        "/usr", "/etc", "/proc", "/work", "/tmp",   "/code",  "/dev",    "/run",         "/var",
        "/sys", "/bin", "/sbin", "/lib",  "/lib32", "/lib64", "/libx32", "/opt/auditrun"};
    static const char *const closed[] = {"/proc", "/dev", "/sys", "/run", "/code", "/opt/auditrun"};
    if (path[0] != '/' || path[1] == '\0')
        return true;
    for (size_t i = 0; i < AR_COUNT(places); i++)
        if (holds(path, places[i]))
            return true;
    for (size_t i = 0; i < AR_COUNT(closed); i++)
        if (holds(closed[i], path))
            return true;
    return false;
}

static int by_length(const void *one, const void *other)
{
    const size_t a = strlen(((const struct place *)one)->path);
    const size_t b = strlen(((const struct place *)other)->path);
    return a < b ? -1 : a > b;
}

static int add(struct place *all, size_t *count, const struct text_list *paths, const int *trees,
               bool writable)
{
    for (size_t i = 0; i < paths->count; i++) {
        struct stat status;
        if (is_our_own(paths->items[i]))
            return 1;
        if (*count >= MAX_PATHS || fstat(trees[i], &status) < 0)
            return -EINVAL;
        if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
            return -EINVAL;
        all[(*count)++] = (struct place){.path = paths->items[i],
                                         .tree = trees[i],
                                         .writable = writable,
                                         .folder = S_ISDIR(status.st_mode)};
    }
    return 0;
}

/* ---- the way there ---------------------------------------------------------------------------- */

static int open_one(const struct walk *walk, int folder, const char *name)
{
    struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = ONE_NAME};
    return trusted_openat2(walk->token, folder, name, &how);
}

static bool is_own(const struct walk *walk, int folder)
{
    struct stat status;
    return fstat(folder, &status) == 0 &&
           (status.st_dev == walk->own[0] || status.st_dev == walk->own[1]);
}

static int make_file(int folder, const char *name)
{
    AR_AUTO_CLOSE int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    return fd < 0 ? -errno : 0;
}

/* Opens what has this name, or makes it. */
static int open_or_make(const struct walk *walk, int folder, const char *name, bool as_folder)
{
    int next = open_one(walk, folder, name);
    if (next != -ENOENT || !is_own(walk, folder))
        return next;
    int result = 0;
    if (!as_folder)
        result = make_file(folder, name);
    else if (mkdirat(folder, name, FOLDER_MODE) < 0)
        result = -errno;
    return result < 0 ? result : open_one(walk, folder, name);
}

/* The place of a mount: an O_PATH descriptor, or -errno. */
static int open_place(const struct walk *walk, const struct place *place)
{
    char path[PATH_MAX];
    const size_t length = strlen(place->path);
    if (length >= sizeof(path))
        return -ENAMETOOLONG;
    memcpy(path, place->path, length + 1);
    AR_AUTO_CLOSE int here = fcntl(walk->root, F_DUPFD_CLOEXEC, 0);
    if (here < 0)
        return -errno;
    char *rest = NULL;
    for (char *name = strtok_r(path, "/", &rest); name;) {
        char *after = strtok_r(NULL, "/", &rest);
        int next = open_or_make(walk, here, name, after != NULL || place->folder);
        if (next < 0)
            return next;
        (void)close(here);
        here = next;
        name = after;
    }
    return base_take_fd(&here);
}

static int begin_walk(struct walk *walk, uint64_t token)
{
    struct stat root, scratch;
    *walk = (struct walk){.token = token, .root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (walk->root < 0 || fstat(walk->root, &root) < 0 || stat("/tmp", &scratch) < 0)
        return -errno;
    walk->own[0] = root.st_dev;
    walk->own[1] = scratch.st_dev;
    return 0;
}

/* ---- the mounts ------------------------------------------------------------------------------- */

static int show_one(const struct walk *walk, const struct place *place, const struct places *places)
{
    /* Private: else what is mounted on it would appear on the host, too. */
    const struct mount_attr attr = {
        .attr_set = place->writable ? DATA : (uint64_t)(DATA | MOUNT_ATTR_RDONLY),
        .propagation = MS_PRIVATE};
    AR_AUTO_CLOSE int target = open_place(walk, place);
    if (target < 0)
        return target;
    int result = trusted_mount_setattr(walk->token, place->tree, "", &attr);
    if (result == 0)
        result = trusted_move_mount(walk->token, place->tree, target);
    if (result == 0 && place->writable && places->ruleset >= 0)
        result = landlock_allow_data(places->ruleset, places->landlock, place->tree, place->folder);
    return result;
}

static int set_root(uint64_t token, bool writable)
{
    const struct mount_attr attr = {.attr_set = writable ? 0 : MOUNT_ATTR_RDONLY,
                                    .attr_clr = writable ? MOUNT_ATTR_RDONLY : 0};
    return trusted_mount_setattr(token, AT_FDCWD, "/", &attr);
}

static int show_all(uint64_t token, const struct place *all, size_t count,
                    const struct places *places)
{
    struct walk walk;
    int result = begin_walk(&walk, token);
    if (result == 0)
        result = set_root(token, true);
    for (size_t i = 0; result == 0 && i < count; i++)
        result = show_one(&walk, &all[i], places);
    if (result == 0)
        result = set_root(token, false);
    base_close(&walk.root);
    return result;
}

int places_show(uint64_t token, const struct places *places, struct failure *failure)
{
    const struct grant *grant = places->grant;
    struct place all[MAX_PATHS];
    size_t count = 0;
    int result = add(all, &count, &grant->read, places->trees, false);
    if (result == 0)
        result = add(all, &count, &grant->write, places->trees + grant->read.count, true);
    if (result > 0)
        return step_fail(failure, STEP_PLACES, 0);
    if (result == 0) {
        qsort(all, count, sizeof(all[0]), by_length);
        result = show_all(token, all, count, places);
    }
    return result < 0 ? step_fail(failure, STEP_PATHS, -result) : 0;
}
