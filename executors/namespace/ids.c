/*
 * ids.c - makes the user namespace of a slot and its id map.
 *
 * A map to another id than one's own has to be written from outside, by somebody with the
 * privilege: a child that stays behind in the host's namespace writes it, or has the helpers write
 * it, and ends. Without either the process maps its own ids itself, for which the kernel asks that
 * setgroups be switched off.
 *
 * With an id space nobody's help is needed. Whoever is the user that made it may enter it, and there has
 * the privilege to become one of its ids; the slot's own namespace is then made below it, and mapped as
 * root would do it. Files of the host are never looked at from in there.
 *
 * A helper is set-uid root: it is executed by its absolute path, with no environment, and with
 * /dev/null as its only descriptors. What it prints is of no use to anybody here.
 */
#include "executors/namespace/ids.h"

#include "protocol/subids.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define UID_HELPER     "/usr/bin/newuidmap"
#define GID_HELPER     "/usr/bin/newgidmap"
#define HELPER_REFUSED 255 /* an exit status that is no errno: no map has been written */
#define NUMBER_BYTES   16
#define SPACE_FIRST    1 /* docs/executors.md */

/* ---- who ---------------------------------------------------------------------------------------- */

/* 0 with *id, 1: none, 2: too few, -errno. */
static int find_in(const char *path, const char *name, uint32_t number, uint32_t *id)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? 1 : -errno;
    int result = subids_find(file, name, geteuid(), number, id);
    (void)fclose(file);
    return result;
}

static int choose_subordinate(uint32_t number, struct ids *ids, const char **problem)
{
    const struct passwd *user = getpwuid(geteuid());
    const char *name = user ? user->pw_name : NULL;

    *ids = (struct ids){.space = -1, .uid = geteuid(), .gid = getegid()};
    if (access(UID_HELPER, X_OK) < 0 || access(GID_HELPER, X_OK) < 0)
        return 0;
    uint32_t uid, gid;
    int result = find_in(SUBIDS_UIDS, name, number, &uid);
    if (result == 0)
        result = find_in(SUBIDS_GIDS, name, number, &gid);
    if (result == 0)
        *ids = (struct ids){.own = true, .by_helper = true, .space = -1, .uid = uid, .gid = gid};
    if (result < 2)
        return result < 0 ? result : 0;
    *problem =
        "the slot is beyond the ids that " SUBIDS_UIDS " and " SUBIDS_GIDS " give to its user";
    return 1;
}

int ids_choose(const struct idrange *range, int space, uint32_t number, struct ids *ids,
               const char **problem)
{
    if (geteuid() != 0 && space >= 0) { /* one that is not there cannot be become */
        *ids = (struct ids){
            .own = true, .space = space, .uid = SPACE_FIRST + number, .gid = SPACE_FIRST + number};
        return 0;
    }
    if (geteuid() != 0)
        return choose_subordinate(number, ids, problem);
    if (!idrange_is_right(range, problem))
        return 1;
    if (number >= range->count) {
        *problem = "the slot is beyond the range of ids (--uid-count)";
        return 1;
    }
    *ids = (struct ids){
        .own = true, .space = -1, .uid = range->first + number, .gid = range->first + number};
    return 0;
}

/* ---- maps --------------------------------------------------------------------------------------- */

static int write_file(const char *path, const char *text)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t written = write(fd, text, strlen(text));
    if (written < 0)
        return -errno;
    return (size_t)written == strlen(text) ? 0 : -EIO;
}

/* One line of an id map, for the process with this pid. */
static int write_map(const char *pid, const char *kind, unsigned outside)
{
    char path[64], line[64];
    (void)snprintf(path, sizeof(path), "/proc/%s/%s_map", pid, kind);
    (void)snprintf(line, sizeof(line), "%d %u 1", IDS_INSIDE, outside);
    return write_file(path, line);
}

/* Becomes the helper. Its descriptors are fresh ones: none of ours is left, whatever its flags. */
__attribute__((noreturn)) static void become_helper(const char *helper, char *pid, unsigned outside)
{
    char inside[NUMBER_BYTES], first[NUMBER_BYTES], count[] = "1", name[] = "idmap";
    char *arguments[] = {name, pid, inside, first, count, NULL}, *environment[] = {NULL};

    (void)snprintf(inside, sizeof(inside), "%d", IDS_INSIDE);
    (void)snprintf(first, sizeof(first), "%u", outside);
    if (syscall(SYS_close_range, 0, ~0U, 0) < 0 || open("/dev/null", O_RDWR) != STDIN_FILENO ||
        dup(STDIN_FILENO) != STDOUT_FILENO || dup(STDIN_FILENO) != STDERR_FILENO)
        _exit(HELPER_REFUSED);
    (void)execve(helper, arguments, environment);
    _exit(HELPER_REFUSED);
}

/* Waits for the exit of a child: its status, or negative. */
static int await_exit(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

static int run_helper(const char *helper, char *pid, unsigned outside)
{
    pid_t child = fork();
    if (child == 0)
        become_helper(helper, pid, outside);
    return child < 0 ? -errno : await_exit(child);
}

/* 0, -errno, or HELPER_REFUSED: then no map has been written. */
static int map_by_helper(char *pid, const struct ids *ids)
{
    if (run_helper(UID_HELPER, pid, ids->uid) != 0)
        return HELPER_REFUSED;
    return run_helper(GID_HELPER, pid, ids->gid) == 0 ? 0 : -EPERM;
}

static int map_by_hand(const char *pid, const struct ids *ids)
{
    int result = write_map(pid, "uid", ids->uid);
    return result == 0 ? write_map(pid, "gid", ids->gid) : result;
}

/* The caller's own, by himself, from inside. */
static int map_oneself(const struct ids *ids)
{
    int result = write_file("/proc/self/setgroups", "deny");
    return result == 0 ? map_by_hand("self", ids) : result;
}

/* The child that stays outside: waits for a byte, has the maps of its parent written, and exits with
 * an errno or HELPER_REFUSED. */
__attribute__((noreturn)) static void map_from_outside(int start, pid_t parent,
                                                       const struct ids *ids)
{
    char pid[NUMBER_BYTES], byte;
    (void)snprintf(pid, sizeof(pid), "%d", (int)parent);
    if (read(start, &byte, 1) != 1)
        _exit(EPIPE);
    int result = ids->by_helper ? map_by_helper(pid, ids) : map_by_hand(pid, ids);
    _exit(result < 0 ? -result & 0xff : result);
}

/* Lets the child do its work. 0, -errno, or HELPER_REFUSED. */
static int await_map(pid_t child, int start)
{
    if (write(start, "x", 1) != 1)
        return -EPIPE;
    int status = await_exit(child);
    return status <= 0 || status == HELPER_REFUSED ? status : -status;
}

/* 0, HELPER_REFUSED (in the new namespace, without a map), or negative with *failure set. */
static int enter_mapped(const struct ids *ids, struct failure *failure)
{
    int start[2];
    pid_t parent = getpid();

    if (pipe2(start, O_CLOEXEC) < 0)
        return step_fail(failure, STEP_USER_NAMESPACE, errno);
    pid_t child = fork();
    if (child == 0) {
        (void)close(start[1]);
        map_from_outside(start[0], parent, ids);
    }
    (void)close(start[0]);
    int error = child < 0 ? errno : 0;
    if (child > 0 && unshare(CLONE_NEWUSER) < 0)
        error = errno;
    if (error != 0) {
        (void)close(start[1]); /* the child reads the end and goes */
        if (child > 0)
            (void)waitpid(child, NULL, 0);
        return step_fail(failure, STEP_USER_NAMESPACE, error);
    }
    int result = await_map(child, start[1]);
    (void)close(start[1]);
    return result < 0 ? step_fail(failure, STEP_ID_MAP, -result) : result;
}

static int enter_unmapped(struct failure *failure)
{
    return unshare(CLONE_NEWUSER) < 0 ? step_fail(failure, STEP_USER_NAMESPACE, errno) : 0;
}

/* Becomes the slot's id within the space. The kernel makes a process that changes its user one whose
 * files in /proc are root's, but the map is still to be written there; nobody else is this user. */
static int enter_space(const struct ids *ids, struct failure *failure)
{
    if (setns(ids->space, CLONE_NEWUSER) < 0)
        return step_fail(failure, STEP_ID_SPACE, errno);
    if (setgroups(0, NULL) < 0 || setresgid(ids->gid, ids->gid, ids->gid) < 0 ||
        setresuid(ids->uid, ids->uid, ids->uid) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
        return step_fail(failure, STEP_ID_SPACE, errno);
    (void)close(ids->space);
    return 0;
}

int ids_take(struct ids *ids, struct failure *failure)
{
    const struct ids caller = {.space = -1, .uid = geteuid(), .gid = getegid()};
    int result = ids->space >= 0 ? enter_space(ids, failure) : 0;
    if (result < 0)
        return result;
    result = ids->own ? enter_mapped(ids, failure) : enter_unmapped(failure);
    if (result == HELPER_REFUSED)
        *ids = caller;
    if (result < 0 || ids->own)
        return result;
    result = map_oneself(&caller);
    return result < 0 ? step_fail(failure, STEP_ID_MAP, -result) : 0;
}

int ids_become(bool own)
{
    if (own && setgroups(0, NULL) < 0)
        return -errno;
    if (setresgid(IDS_INSIDE, IDS_INSIDE, IDS_INSIDE) < 0 ||
        setresuid(IDS_INSIDE, IDS_INSIDE, IDS_INSIDE) < 0)
        return -errno;
    /* It does not follow where it is the same user on the host as before. */
    return own && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
