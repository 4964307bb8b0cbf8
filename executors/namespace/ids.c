/*
 * ids.c - makes the user namespace of a slot and its id map.
 *
 * A map to another id than one's own has to be written from outside, by somebody with the
 * privilege: a child that stays behind in the host's namespace writes it and ends. Without root the
 * process maps its own ids itself, for which the kernel asks that setgroups be switched off.
 */
#include "executors/namespace/ids.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

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

/* The child that stays outside: waits for a byte, writes the maps of its parent, exits with errno. */
__attribute__((noreturn)) static void map_from_outside(int start, pid_t parent, uid_t own_id)
{
    char pid[16], byte;
    (void)snprintf(pid, sizeof(pid), "%d", (int)parent);
    if (read(start, &byte, 1) != 1)
        _exit(EPIPE);
    int result = write_map(pid, "uid", own_id);
    if (result == 0)
        result = write_map(pid, "gid", own_id);
    _exit(-result & 0xff);
}

/* Lets the child write the maps and takes its result. */
static int await_map(pid_t child, int start)
{
    int status;
    if (write(start, "x", 1) != 1)
        return -EPIPE;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (!WIFEXITED(status))
        return -ECHILD;
    return -WEXITSTATUS(status);
}

static int enter_as_root(uid_t own_id, struct failure *failure)
{
    int start[2];
    pid_t parent = getpid();

    if (pipe2(start, O_CLOEXEC) < 0)
        return step_fail(failure, STEP_USER_NAMESPACE, errno);
    pid_t child = fork();
    if (child == 0) {
        (void)close(start[1]);
        map_from_outside(start[0], parent, own_id);
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
    return result < 0 ? step_fail(failure, STEP_ID_MAP, -result) : 0;
}

static int enter_as_oneself(struct failure *failure)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (unshare(CLONE_NEWUSER) < 0)
        return step_fail(failure, STEP_USER_NAMESPACE, errno);
    int result = write_file("/proc/self/setgroups", "deny");
    if (result == 0)
        result = write_map("self", "uid", uid);
    if (result == 0)
        result = write_map("self", "gid", gid);
    return result < 0 ? step_fail(failure, STEP_ID_MAP, -result) : 0;
}

int ids_enter(bool root, uid_t own_id, struct failure *failure)
{
    return root ? enter_as_root(own_id, failure) : enter_as_oneself(failure);
}

int ids_become(bool root)
{
    if (root && setgroups(0, NULL) < 0)
        return -errno;
    if (setresgid(IDS_INSIDE, IDS_INSIDE, IDS_INSIDE) < 0 ||
        setresuid(IDS_INSIDE, IDS_INSIDE, IDS_INSIDE) < 0)
        return -errno;
    return 0;
}
