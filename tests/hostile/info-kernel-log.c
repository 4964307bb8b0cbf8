/*
 * Hostile probe info-kernel-log (information).
 * Reads the kernel's log and other logs and traces.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/syscall.h>

static const char *path;
static long read_all(void)
{
    char *room = malloc(65536);
    return syscall(SYS_syslog, 3, room, 65536);
}
static long size(void)
{
    return syscall(SYS_syslog, 10, NULL, 0);
}
static long file(void)
{
    char byte[64];
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    /* These two give each line once only: to have them open is enough. */
    if (strstr(path, "kmsg") || strstr(path, "trace_pipe"))
        return 0;
    ssize_t n = read(fd, byte, sizeof byte);
    if (n == 0)
        errno = ENODATA;
    return n > 0 ? 0 : -1;
}

int main(void)
{
    static const char *files[] = {"/dev/kmsg",
                                  "/proc/kmsg",
                                  "/var/log/kern.log",
                                  "/var/log/syslog",
                                  "/var/log/dmesg",
                                  "/var/log/auth.log",
                                  "/var/log/journal",
                                  "/sys/kernel/debug/tracing/trace_pipe",
                                  "/sys/kernel/tracing/trace",
                                  "/proc/sched_debug",
                                  "/proc/slabinfo",
                                  "/proc/pagetypeinfo"};
    say("START", "info-kernel-log");
    try_one("read the kernel's log", read_all, 0);
    try_one("size of the kernel's log", size, 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char what[96];
        path = files[i];
        snprintf(what, sizeof what, "read %s", path);
        try_one(what, file, 0);
    }
    return 0;
}
