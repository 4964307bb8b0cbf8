/*
 * fault.c - places where the crash tests cut the daemon off.
 *
 * Empty unless compiled with AR_FAULT_POINTS. The loop and the journal's thread both pass points.
 */
#include "daemon/fault.h"

#ifdef AR_FAULT_POINTS

#    include <poll.h>
#    include <signal.h>
#    include <stdatomic.h>
#    include <string.h>

/* What AUDITRUND_FAULT says behind the name; NULL: it names another point, or none. */
static const char *asked_for(const char *name)
{
    const char *fault = getenv("AUDITRUND_FAULT");
    size_t length = strlen(name);
    if (!fault || strncmp(fault, name, length) != 0 || (fault[length] && fault[length] != ':'))
        return NULL;
    return fault + length;
}

bool fault_is_due(const char *name)
{
    static atomic_long passed; /* one point at a time is asked for */
    const char *rest = asked_for(name);
    if (!rest)
        return false;
    long nth = *rest ? strtol(rest + 1, NULL, 10) : 1;
    return atomic_fetch_add(&passed, 1) + 1 == (nth > 0 ? nth : 1);
}

void fault_strike(void)
{
    const char *fault = getenv("AUDITRUND_FAULT");
    if (fault && strstr(fault, ":stall"))
        (void)poll(NULL, 0, FAULT_STALL_MS);
    else
        (void)kill(getpid(), fault && strstr(fault, ":stop") ? SIGSTOP : SIGKILL);
}

#endif
