/*
 * Hostile probe cpu-many-spinners (cpu).
 * Eight spinning processes; their processor time counts together, and 1 s is granted.
 * Contained when it is refused more, or is ended, before it gets there.
 */
#include "probe.h"

#include <signal.h>
#include <time.h>

enum { SPINNERS = 8, GRANTED_MS = 1000 };

int main(void)
{
    say("START", "cpu-many-spinners");
    pid_t pids[SPINNERS];
    int n = 0;
    for (; n < SPINNERS; n++) {
        pids[n] = fork();
        if (pids[n] < 0)
            break;
        if (pids[n] == 0) {
            alarm(12);
            for (;;)
                ;
        }
    }
    long ms = 0;
    for (int round = 0; round < 60 && ms < 4 * GRANTED_MS; round++) {
        struct timespec rest = {0, 100000000}, used;
        nanosleep(&rest, NULL);
        ms = 0;
        for (int i = 0; i < n; i++) {
            clockid_t clock;
            if (clock_getcpuclockid(pids[i], &clock) == 0 && clock_gettime(clock, &used) == 0)
                ms += used.tv_sec * 1000 + used.tv_nsec / 1000000;
        }
    }
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
    if (ms >= 4 * GRANTED_MS)
        say("ESCAPED", "%d processes used %ld ms of processor time, %d granted", n, ms, GRANTED_MS);
    else
        say("CONTAINED", "%d processes used %ld ms", n, ms);
    return 0;
}
