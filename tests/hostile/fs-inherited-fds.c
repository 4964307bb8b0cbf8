/*
 * Hostile probe fs-inherited-fds (filesystem).
 * Looks for open files that came down from the daemon or from whoever started it.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/stat.h>

int main(void)
{
    say("START", "fs-inherited-fds");
    int n = 0;
    for (int fd = 3; fd < 4096; fd++) {
        struct stat st;
        if (fcntl(fd, F_GETFD) < 0 || fstat(fd, &st) < 0)
            continue;
        const char *kind = S_ISREG(st.st_mode)                          ? "file"
                           : S_ISDIR(st.st_mode)                        ? "directory"
                           : S_ISSOCK(st.st_mode)                       ? "socket"
                           : S_ISFIFO(st.st_mode)                       ? "pipe"
                           : S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? "device"
                                                                        : "other object";
        say("ESCAPED", "fd %d is an open %s", fd, kind);
        n++;
    }
    struct stat st;
    for (int fd = 0; fd < 3; fd++)
        if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
            say("ESCAPED", "fd %d is an open directory", fd);
            n++;
        }
    if (n == 0)
        say("CONTAINED", "nothing open but the three standard ones");
    return 0;
}
