/*
 * Hostile probe kern-admin-calls (kernel).
 * Asks for swap, reboot, clock, accounting, quota, host name, port access and the like, each
 * in a form that does no harm.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/io.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>

/* Each in a form that does no harm where it is allowed. */
static long swap_on(void)
{
    return syscall(SYS_swapon, "/hostile-no-such-file", 0);
}
static long swap_off(void)
{
    return syscall(SYS_swapoff, "/hostile-no-such-file");
}
static long do_reboot(void)
{
    long r = syscall(SYS_reboot, 0xfee1dead, 672274793, 0 /* no ctrl-alt-del */, NULL);
    if (r < 0 && errno == EINVAL) {
        say("INFO", "reboot: allowed, for its own pid namespace alone");
        errno = EPERM;
    }
    return r;
}
static long set_time(void)
{
    struct timezone tz = {0, 0};
    return syscall(SYS_settimeofday, NULL, &tz);
}
static long adjust(void)
{
    struct timex t;
    memset(&t, 0, sizeof t);
    t.modes = ADJ_TICK;
    t.tick = 0; /* out of range: refused even to those who may */
    return syscall(SYS_clock_adjtime, 0, &t);
}
static long account(void)
{
    return syscall(SYS_acct, "/hostile-no-such-file");
}
static long quota(void)
{
    return syscall(SYS_quotactl, (0x800007 << 8), "/dev/hostile-no-such", 0, NULL);
}
static long host_name(void)
{
    char name[65] = "";
    if (gethostname(name, sizeof name) < 0)
        return -1;
    return sethostname(name, strlen(name));
}
static long port_level(void)
{
    return iopl(3);
}
static long port(void)
{
    return ioperm(0x80, 1, 1);
}
static long log_level(void)
{
    return syscall(SYS_syslog, 8, NULL, 0);
} /* a level out of range */
static long cookie(void)
{
    return syscall(212, 0UL, NULL, 0UL);
}
static long migrate(void)
{
    return syscall(SYS_migrate_pages, 1, 0UL, NULL, NULL);
}

int main(void)
{
    say("START", "kern-admin-calls");
    try_one("swapon", swap_on, 1);
    try_one("swapoff", swap_off, 1);
    try_one("reboot", do_reboot, 0);
    try_one("settimeofday", set_time, 0);
    try_one("clock_adjtime", adjust, 1);
    try_one("acct", account, 1);
    try_one("quotactl", quota, 1);
    try_one("sethostname", host_name, 0);
    try_one("iopl", port_level, 0);
    try_one("ioperm", port, 0);
    try_one("console log level", log_level, 1);
    try_one("lookup_dcookie", cookie, 1);
    try_one("move the pages of process 1", migrate, 0);
    return 0;
}
