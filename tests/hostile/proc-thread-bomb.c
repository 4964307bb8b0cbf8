/*
 * Hostile probe proc-thread-bomb (processes).
 * Starts threads up to 200; 32 are granted, threads included.
 * Contained when it is refused more, or is ended, before it gets there.
 */
#include "probe.h"

#include <pthread.h>

enum { CEILING = 200, ALLOWED = 32 };
static void *idle(void *arg)
{
    for (;;)
        pause();
    return arg;
}

int main(void)
{
    say("START", "proc-thread-bomb");
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    int n = 0, why = 0;
    for (; n < CEILING; n++) {
        pthread_t t;
        why = pthread_create(&t, &attr, idle, NULL);
        if (why)
            break;
    }
    if (n > 2 * ALLOWED)
        say("ESCAPED", "%d threads alive, %d granted", n, ALLOWED);
    else
        say("CONTAINED", "%d threads alive (%s)", n, strerror(why));
    _exit(0);
}
