/*
 * delegation.c - see delegation.h. A group is named after the process that made it.
 */
#include "tests/lib/delegation.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

char *delegation_path(pid_t pid, const char *name)
{
    const char *folder = getenv("AUDITRUN_TEST_CGROUP");
    char *path = NULL;
    if (!folder ||
        asprintf(&path, "%s/test.%ld%s%s", folder, (long)pid, *name ? "/" : "", name) < 0)
        return NULL;
    return path;
}

bool delegation_enter(void)
{
    AR_AUTO_FREE char *path = delegation_path(getpid(), "");
    AR_AUTO_FREE char *file = delegation_path(getpid(), "cgroup.procs");
    if (!path)
        return true;
    if (!file || mkdir(path, 0755) != 0)
        return false;
    AR_AUTO_CLOSE int fd = open(file, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "0", 1) == 1;
}

void delegation_remove(pid_t pid)
{
    static const char *const names[] = {"supervisor", ""};
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        AR_AUTO_FREE char *path = delegation_path(pid, names[i]);
        if (path)
            (void)rmdir(path);
    }
}
