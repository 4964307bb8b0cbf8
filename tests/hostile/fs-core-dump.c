/*
 * Hostile probe fs-core-dump (filesystem).
 * Raises its core limit and crashes: no core file may be made, neither in the scratch
 * directory nor on the host.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

int main(void)
{
    say("START", "fs-core-dump");
    to_scratch();
    struct rlimit r;
    getrlimit(RLIMIT_CORE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_CORE, &r);
    prctl(PR_SET_DUMPABLE, 1);
    int st = 0;
    pid_t pid = fork();
    if (pid == 0) {
        char *p = malloc(8 << 20);
        memset(p, 7, 8 << 20);
        abort();
    }
    if (pid > 0)
        waitpid(pid, &st, 0);
    int n = 0;
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat s;
        if (strstr(e->d_name, "core") && stat(e->d_name, &s) == 0 && S_ISREG(s.st_mode)) {
            say("ESCAPED", "a core file of %ld bytes", (long)s.st_size);
            n++;
        }
    }
    if (n == 0 && pid > 0 && WIFSIGNALED(st) && WCOREDUMP(st))
        say("ESCAPED", "a core was dumped, to a place not seen from here");
    else if (n == 0)
        say("CONTAINED", "no core dumped");
    return 0;
}
