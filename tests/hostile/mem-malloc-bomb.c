/*
 * Hostile probe mem-malloc-bomb (memory).
 * Allocates and touches up to 384 MiB, locked in memory where it can; 128 MiB are granted.
 * Contained when it is refused more, or is ended, before it gets there.
 */
#include "probe.h"

#include <sys/mman.h>

enum { CEILING = 384, ALLOWED = 128, STEP = 8 };

int main(void)
{
    say("START", "mem-malloc-bomb");
    if (mlockall(MCL_FUTURE | MCL_ONFAULT) == 0)
        say("INFO", "everything is locked in memory");
    int have = 0, why = 0;
    while (have < CEILING) {
        char *p = malloc((size_t)STEP << 20);
        if (!p) {
            /* Locked memory has a limit of its own: go on without it. */
            why = errno;
            if (munlockall() == 0 && (p = malloc((size_t)STEP << 20)) == NULL)
                break;
        }
        memset(p, 1, (size_t)STEP << 20);
        have += STEP;
    }
    if (have >= CEILING)
        say("ESCAPED", "holds %d MiB, %d granted", have, ALLOWED);
    else
        say("CONTAINED", "%d MiB, then %s", have, strerror(why));
    return 0;
}
