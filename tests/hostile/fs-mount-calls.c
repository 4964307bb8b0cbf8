/*
 * Hostile probe fs-mount-calls (filesystem).
 * Mounts, binds, remounts for writing, makes shared and unmounts, by the old calls and the new
 * ones.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *at = "hostile-mount";
static long tmpfs(void)
{
    return mount("none", at, "tmpfs", 0, NULL);
}
static long proc(void)
{
    return mount("proc", at, "proc", 0, NULL);
}
static long sysfs(void)
{
    return mount("sysfs", at, "sysfs", 0, NULL);
}
static long bind_root(void)
{
    return mount("/", at, NULL, MS_BIND | MS_REC, NULL);
}
static long overlay(void)
{
    return mount("overlay", at, "overlay", 0, "lowerdir=/usr:/");
}
static long cgroup(void)
{
    return mount("cgroup2", at, "cgroup2", 0, NULL);
}
static long remount(void)
{
    return mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL);
}
static long remount_root(void)
{
    return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
}
static long share(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL);
}
static long umount_proc(void)
{
    return umount2("/proc", MNT_DETACH);
}
static long umount_usr(void)
{
    return umount2("/usr", MNT_DETACH);
}
static long umount_dev(void)
{
    return umount2("/dev/null", MNT_DETACH);
}
static long fs_open(void)
{
    return syscall(430, "tmpfs", 0);
}
static long tree(void)
{
    return syscall(428, AT_FDCWD, "/", 1 /* clone */);
}
static long attr(void)
{
    unsigned long long a[4] = {0, 1 /* clear read-only */, 0, 0};
    return syscall(442, AT_FDCWD, "/usr", 0, a, sizeof a);
}

int main(void)
{
    say("START", "fs-mount-calls");
    if (to_scratch() == 0)
        mkdir(at, 0700);
    try_one("mount tmpfs", tmpfs, 0);
    try_one("mount proc", proc, 0);
    try_one("mount sysfs", sysfs, 0);
    try_one("bind the root", bind_root, 0);
    try_one("mount overlay", overlay, 0);
    try_one("mount cgroup2", cgroup, 0);
    try_one("remount /usr for writing", remount, 0);
    try_one("remount / for writing", remount_root, 0);
    try_one("make / shared", share, 0);
    try_one("umount /dev/null", umount_dev, 0);
    try_one("fsopen", fs_open, 0);
    try_one("open_tree clone", tree, 0);
    try_one("mount_setattr", attr, 0);
    try_one("umount /usr", umount_usr, 0);
    try_one("umount /proc", umount_proc, 0);
    rmdir(at);
    return 0;
}
