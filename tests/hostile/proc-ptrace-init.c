/*
 * Hostile probe proc-ptrace-init (processes).
 * Tries to trace process 1 and its parent, to read and write their memory, and to read their
 * environment and open files.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static pid_t target;
static long seize(void)
{
    long r = ptrace(PTRACE_SEIZE, target, 0, 0);
    if (r == 0)
        ptrace(PTRACE_DETACH, target, 0, 0);
    return r;
}
static long vm_read(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x1000, 1};
    /* An unmapped address: EFAULT says that the permission check was passed. */
    return process_vm_readv(target, &here, 1, &there, 1, 0);
}
static long read_file(const char *leaf)
{
    char path[64], byte;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)target, leaf);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, &byte, 1);
    if (n == 0)
        errno = ENOSYS; /* an empty answer is as good as none */
    return n > 0 ? 0 : -1;
}
static long env(void)
{
    return read_file("environ");
}
static long maps(void)
{
    return read_file("maps");
}
static long mem(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)target);
    return open(path, O_RDWR);
}
static long links(void)
{
    char path[64], to[256];
    snprintf(path, sizeof path, "/proc/%d/fd/0", (int)target);
    return readlink(path, to, sizeof to);
}

int main(void)
{
    say("START", "proc-ptrace-init");
    pid_t pids[] = {1, getppid()};
    for (int i = 0; i < 2; i++) {
        target = pids[i];
        if (target <= 0 || target == getpid() || (i && target == 1)) {
            say("CONTAINED", "target %d: is itself, seen already or not to be seen", i);
            continue;
        }
        say("INFO", "process %d", (int)target);
        try_one("ptrace seize", seize, 1);
        try_one("process_vm_readv", vm_read, 1);
        try_one("read environ", env, 0);
        try_one("read maps", maps, 0);
        try_one("open mem for writing", mem, 0);
        try_one("read its open files", links, 0);
    }
    return 0;
}
