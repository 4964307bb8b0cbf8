/*
 * Hostile probe kern-ldt-personality (kernel).
 * Uses old parts of the kernel: LDT entries, personalities, the old sysctl call.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <sys/personality.h>
#include <sys/syscall.h>

#if defined(__x86_64__) || defined(__i386__)
#    include <asm/ldt.h>

#endif
static long ldt(void)
{
#ifdef SYS_modify_ldt
    struct user_desc d;
    memset(&d, 0, sizeof d);
    d.limit = 0xfff;
    d.seg_32bit = 1;
    d.useable = 1;
    /* Comes back as an unsigned 32 bit value. */
    int r = (int)syscall(SYS_modify_ldt, 1, &d, sizeof d);
    if (r < 0 && errno == 0)
        errno = -r;
    return r < 0 ? -1 : 0;
#else
    errno = ENOSYS;
    return -1;
#endif
}
static long exec_all(void)
{
    return personality(READ_IMPLIES_EXEC);
}
static long no_random(void)
{
    return personality(ADDR_NO_RANDOMIZE);
}
static long old_mmap(void)
{
    return personality(MMAP_PAGE_ZERO);
}
static long remap(void)
{
    errno = 0;
    return syscall(SYS_remap_file_pages, 0UL, 0UL, 0UL, 0UL, 0UL);
}
static long old_sysctl(void)
{
#ifdef SYS__sysctl
    return syscall(SYS__sysctl, NULL);
#else
    errno = ENOSYS;
    return -1;
#endif
}

int main(void)
{
    say("START", "kern-ldt-personality");
    try_one("write an LDT entry", ldt, 0);
    try_one("personality: readable is executable", exec_all, 0);
    try_one("personality: no random addresses", no_random, 0);
    try_one("personality: page zero", old_mmap, 0);
    long r = remap();
    say("INFO", "remap_file_pages: %s", r < 0 ? strerror(errno) : "allowed");
    try_one("old sysctl", old_sysctl, 1);
    return 0;
}
