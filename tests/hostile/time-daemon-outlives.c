/*
 * Hostile probe time-daemon-outlives (time).
 * Forks twice into a session of its own, closes everything, and leaves a daemon that ignores
 * all signals for 30 s.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <signal.h>
#include <sys/prctl.h>

int main(void)
{
    say("START", "time-daemon-outlives");
    pid_t first = fork();
    if (first < 0) {
        say("CONTAINED", "no child: %s", strerror(errno));
        return 0;
    }
    if (first == 0) {
        setsid();
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, 0);
            prctl(PR_SET_NAME, "hostile-left");
            for (int s = 1; s < 65; s++)
                signal(s, SIG_IGN);
            for (int fd = 0; fd < 64; fd++)
                close(fd);
            sleep(30);
        }
        _exit(0);
    }
    waitpid(first, NULL, 0);
    say("CONTAINED", "parent leaves; whether the daemon lives on is seen from the host");
    return 0;
}
