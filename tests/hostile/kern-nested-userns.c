/*
 * Hostile probe kern-nested-userns (kernel).
 * Makes new namespaces, a user namespace above all, by unshare, clone and clone3, and mounts
 * in it.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int flags;
static long do_unshare(void)
{
    return unshare(flags);
}
static long do_clone(void)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    return pid;
}
static long do_clone3(void)
{
    unsigned long long args[8] = {(unsigned long long)flags, 0, 0, 0, SIGCHLD, 0, 0, 0};
    long pid = syscall(435, args, sizeof args);
    if (pid == 0)
        _exit(0);
    return pid;
}
static long mount_inside(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return -1;
    return mount("none", "/proc", "tmpfs", 0, NULL);
}

int main(void)
{
    static const struct {
        int flag;
        const char *what;
    } spaces[] = {
        {CLONE_NEWUSER, "user"},     {CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"},
        {CLONE_NEWNET, "net"},       {CLONE_NEWIPC, "ipc"},  {CLONE_NEWUTS, "uts"},
        {CLONE_NEWCGROUP, "cgroup"}, {0x80, "time"},
    };
    say("START", "kern-nested-userns");
    for (int i = 0; i < 8; i++) {
        char what[64];
        flags = spaces[i].flag;
        snprintf(what, sizeof what, "unshare a %s namespace", spaces[i].what);
        try_one(what, do_unshare, 0);
    }
    flags = CLONE_NEWUSER;
    try_one("clone into a user namespace", do_clone, 0);
    try_one("clone3 into a user namespace", do_clone3, 0);
    flags = CLONE_NEWUSER | CLONE_NEWNET;
    try_one("unshare user and net namespaces together", do_unshare, 0);
    try_one("mount in a user namespace of its own", mount_inside, 0);
    return 0;
}
