/*
 * Hostile probe priv-setuid-zero (privileges).
 * Changes its user, group and groups to root and to others, by every call there is.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <grp.h>
#include <sys/fsuid.h>

static uid_t other;
static long su(void)
{
    return setuid(other);
}
static long sre(void)
{
    return setreuid(other, other);
}
static long sres(void)
{
    return setresuid(other, other, other);
}
static long sgid(void)
{
    return setgid(other);
}
static long sgroups(void)
{
    gid_t g[2] = {0, other};
    return setgroups(2, g);
}
static long sfs(void)
{
    setfsuid(other);
    errno = EPERM;
    return setfsuid((uid_t)-1) == (int)other && other != geteuid() ? 0 : -1;
}

int main(void)
{
    say("START", "priv-setuid-zero");
    unsigned in = 0, out = 0, count = 0;
    FILE *f = fopen("/proc/self/uid_map", "r");
    int maps = f ? fscanf(f, "%u %u %u", &in, &out, &count) : 0;
    if (geteuid() == 0 && maps == 3 && out == 0 && count > 1)
        say("ESCAPED", "runs as the root of the host");
    else if (geteuid() == 0)
        say("INFO", "is user 0 of a namespace of its own");
    static const uid_t ids[] = {0, 1, 1000, 65534};
    for (int i = 0; i < 4; i++) {
        char what[64];
        other = ids[i];
        if (other == getuid() || other == getgid())
            continue;
        snprintf(what, sizeof what, "become user %u", other);
        try_one(what, su, 0);
        try_one("the same by setreuid", sre, 0);
        try_one("the same by setresuid", sres, 0);
        try_one("the same by setfsuid", sfs, 0);
        try_one("the same for the group", sgid, 0);
    }
    other = 42;
    try_one("set other groups", sgroups, 0);
    return 0;
}
