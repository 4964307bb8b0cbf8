/*
 * Hostile probe out-close-and-go-on (output).
 * Closes its three standard files at once and goes on for 30 s: the end of the output is not
 * the end of the run.
 * Contained when the output is cut off and nothing else suffers.
 */
#include "probe.h"

#include <sys/prctl.h>

int main(void)
{
    say("START", "out-close-and-go-on");
    prctl(PR_SET_NAME, "hostile-left");
    close(0);
    close(1);
    close(2);
    sleep(30);
    return 0;
}
