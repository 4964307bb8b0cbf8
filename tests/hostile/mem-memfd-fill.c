/*
 * Hostile probe mem-memfd-fill (memory).
 * Fills memory files without a name, in no process's address space, up to 384 MiB.
 * Contained when it is refused more, or is ended, before it gets there.
 */
#include "probe.h"

#include <signal.h>
#include <sys/mman.h>

enum { CEILING = 384, ALLOWED = 128 };

int main(void)
{
    say("START", "mem-memfd-fill");
    signal(SIGXFSZ, SIG_IGN);
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    int have = 0, why = 0;
    for (int file = 0; have < CEILING && !why; file++) {
        int fd = memfd_create("hostile", 0);
        if (fd < 0) {
            why = errno;
            break;
        }
        for (int i = 0; i < 12 && have < CEILING; i++, have++)
            if (write(fd, block, 1 << 20) != 1 << 20) {
                why = errno ? errno : ENOSPC;
                break;
            }
    }
    if (have >= CEILING)
        say("ESCAPED", "%d MiB in memory files, %d granted", have, ALLOWED);
    else
        say("CONTAINED", "%d MiB, then %s", have, strerror(why));
    return 0;
}
