/*
 * Hostile probe fs-fill-inodes (filesystem).
 * Makes up to 100,000 empty entries in the scratch directory: no bytes, many inodes.
 * Contained when it is refused more, or is ended, before it gets there.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { CEILING = 100000 };

int main(void)
{
    say("START", "fs-fill-inodes");
    int n = 0, why = 0;
    if (to_scratch() == 0)
        for (; n < CEILING; n++) {
            char name[64];
            snprintf(name, sizeof name, "hostile-dir-%d", n / 1000);
            if (n % 1000 == 0 && mkdir(name, 0700) < 0 && errno != EEXIST) {
                why = errno;
                break;
            }
            snprintf(name, sizeof name, "hostile-dir-%d/%d", n / 1000, n);
            if (symlink("nowhere", name) < 0) {
                why = errno;
                break;
            }
        }
    if (n >= CEILING)
        say("ESCAPED", "%d entries in the scratch directory", n);
    else
        say("CONTAINED", "%d entries (%s)", n, strerror(why));
    return 0;
}
