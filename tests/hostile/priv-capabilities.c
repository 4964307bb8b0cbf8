/*
 * Hostile probe priv-capabilities (privileges).
 * Looks for capabilities that it holds, and tries to raise, inherit and keep some.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static long raise_all(void)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{~0U, ~0U, ~0U}, {0x1ff, 0x1ff, 0x1ff}};
    return syscall(SYS_capset, &h, d);
}
static long inherit(void)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2];
    if (syscall(SYS_capget, &h, d) < 0)
        return -1;
    d[0].inheritable |= 1U << 21; /* CAP_SYS_ADMIN */
    return syscall(SYS_capset, &h, d);
}
static long keep(void)
{
    return prctl(PR_SET_KEEPCAPS, 1) == 0 &&
                   prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0) == 0
               ? 0
               : -1;
}
static long bits(void)
{
    return prctl(PR_SET_SECUREBITS, 1);
}

int main(void)
{
    say("START", "priv-capabilities");
    char line[200];
    FILE *f = fopen("/proc/self/status", "r");
    int seen = 0;
    while (f && fgets(line, sizeof line, f)) {
        char name[16];
        unsigned long long set;
        if (sscanf(line, "Cap%15[A-Za-z]: %llx", name, &set) != 2)
            continue;
        seen++;
        if (strcmp(name, "Bnd") == 0)
            say("INFO", "bounding set %#llx", set);
        else if (set)
            say("ESCAPED", "holds capabilities (%s) %#llx", name, set);
    }
    if (!seen)
        say("INFO", "the status file shows no capabilities");
    try_one("raise all capabilities", raise_all, 0);
    try_one("make CAP_SYS_ADMIN inheritable", inherit, 0);
    try_one("keep capabilities and make one ambient", keep, 0);
    try_one("set secure bits", bits, 0);
    return 0;
}
