/*
 * Hostile probe fs-chroot-pivot (filesystem).
 * Changes its root, and climbs above it by an open directory, by .. and by /proc/1/root.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static long do_chroot(void)
{
    return chroot("hostile-root");
}
static long pivot(void)
{
    return syscall(SYS_pivot_root, ".", ".");
}
/* The old way out: a root below an open directory, then up from that directory. */
static long climb(void)
{
    struct stat before, after;
    if (stat("/", &before) < 0)
        return -1;
    int top = open("/", O_RDONLY | O_DIRECTORY);
    if (top < 0 || chroot("hostile-root") < 0 || fchdir(top) < 0)
        return -1;
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            break;
    if (chroot(".") < 0 || stat("/", &after) < 0)
        return -1;
    errno = EXDEV;
    return before.st_dev == after.st_dev && before.st_ino == after.st_ino ? -1 : 0;
}
static long up(void)
{
    struct stat root, here;
    if (chdir("/") < 0 || stat("/", &root) < 0)
        return -1;
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            return -1;
    if (stat(".", &here) < 0)
        return -1;
    errno = EXDEV;
    return root.st_dev == here.st_dev && root.st_ino == here.st_ino ? -1 : 0;
}
static long init_root(void)
{
    struct stat root, other;
    if (stat("/", &root) < 0 || stat("/proc/1/root/", &other) < 0)
        return -1;
    errno = EXDEV;
    return root.st_dev == other.st_dev && root.st_ino == other.st_ino ? -1 : 0;
}

int main(void)
{
    say("START", "fs-chroot-pivot");
    if (to_scratch() == 0)
        mkdir("hostile-root", 0700);
    try_one("chroot", do_chroot, 0);
    try_one("pivot_root", pivot, 1);
    try_one("chroot and climb by an open directory", climb, 0);
    try_one("climb above /", up, 0);
    try_one("another root by /proc/1/root", init_root, 0);
    rmdir("hostile-root");
    return 0;
}
