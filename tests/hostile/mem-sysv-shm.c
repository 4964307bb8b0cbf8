/*
 * Hostile probe mem-sysv-shm (memory).
 * Makes shared segments of 384 MiB in all and leaves them behind, attached to nothing.
 * Contained when it is refused more, or is ended, before it gets there.
 */
#include "probe.h"

#include <sys/ipc.h>
#include <sys/shm.h>

enum { COUNT = 12, EACH = 32, ALLOWED = 128 };

int main(void)
{
    say("START", "mem-sysv-shm");
    int have = 0, why = 0;
    for (int i = 0; i < COUNT; i++) {
        int id = shmget(IPC_PRIVATE, (size_t)EACH << 20, IPC_CREAT | 0600);
        if (id < 0) {
            why = errno;
            break;
        }
        char *p = shmat(id, NULL, 0);
        if (p == (char *)-1) {
            why = errno;
            break;
        }
        memset(p, 1, (size_t)EACH << 20);
        shmdt(p); /* no longer part of any process, yet still there */
        have += EACH;
    }
    if (have >= COUNT * EACH)
        say("ESCAPED", "%d MiB in shared segments, %d granted", have, ALLOWED);
    else
        say("CONTAINED", "%d MiB, then %s", have, strerror(why));
    return 0;
}
