/*
 * Hostile probe proc-fork-bomb (processes).
 * Every process forks on, up to 200 at once; 32 are granted.
 * Contained when it is refused more, or is ended, before it gets there.
 */
#include "probe.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { CEILING = 200, ALLOWED = 32 };

int main(void)
{
    say("START", "proc-fork-bomb");
    atomic_int *alive = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t top = getpid();
    int why = 0;
    if (alive == MAP_FAILED)
        return 1;
    alarm(15);
    /* Every process forks on, as a bomb does; the shared count is what ends it. */
    for (int tries = 0; tries < 400; tries++) {
        if (atomic_fetch_add(alive, 1) >= CEILING) {
            atomic_fetch_sub(alive, 1);
            break;
        }
        pid_t pid = fork();
        if (pid < 0) {
            why = errno;
            atomic_fetch_sub(alive, 1);
            if (getpid() != top)
                break;
            usleep(2000);
        } else if (pid == 0) {
            alarm(15);
        }
    }
    if (getpid() != top) {
        for (;;)
            pause();
    }
    usleep(300000);
    int n = atomic_load(alive);
    if (n > 2 * ALLOWED)
        say("ESCAPED", "%d processes alive, %d granted", n, ALLOWED);
    else
        say("CONTAINED", "%d processes alive (%s)", n, strerror(why));
    return 0;
}
