/*
 * Hostile probe out-stderr-flood (output).
 * Writes 256 MiB to the standard error, which counts like the output.
 * Contained when the output is cut off and nothing else suffers.
 */
#include "probe.h"

int main(void)
{
    static char block[65536];
    say("START", "out-stderr-flood");
    memset(block, 'e', sizeof block);
    for (long left = 256L << 20; left > 0;) {
        ssize_t n = write(2, block, sizeof block);
        if (n <= 0)
            return 1;
        left -= n;
    }
    return 0;
}
