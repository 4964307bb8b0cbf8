/*
 * deadline.c - one timer, owned by the object that waits.
 *
 * A thin layer over libevent's timers: milliseconds instead of timevals, and a failed start is an
 * abort, since an event that exists can always be added and a lost deadline would be a run without a
 * clock.
 */
#include "daemon/deadline.h"

#include "daemon/log.h"

#include <event2/event.h>

#define CLOCK_STEP_MS 4 /* CLOCK_MONOTONIC_COARSE, with 250 ticks a second */

static void deadline_passed(evutil_socket_t fd, short what, void *context)
{
    struct deadline *deadline = context;
    (void)fd;
    (void)what;
    deadline->passed(deadline->context);
}

int deadline_init(struct deadline *deadline, struct event_base *base, deadline_fn *passed,
                  void *context)
{
    deadline->passed = passed;
    deadline->context = context;
    deadline->event = evtimer_new(base, deadline_passed, deadline);
    return deadline->event ? 0 : -ENOMEM;
}

void deadline_start(struct deadline *deadline, int64_t ms)
{
    /* The loop's clock moves in steps, and nothing may come too early. */
    int64_t later = ms > 0 ? ms + CLOCK_STEP_MS : 0;
    struct timeval in = {.tv_sec = later / 1000, .tv_usec = (later % 1000) * 1000};
    if (evtimer_add(deadline->event, &in) != 0)
        log_fatal("a timer cannot be started");
}

void deadline_stop(struct deadline *deadline)
{
    if (deadline->event)
        (void)evtimer_del(deadline->event);
}

bool deadline_is_running(const struct deadline *deadline)
{
    return deadline->event && evtimer_pending(deadline->event, NULL);
}

void deadline_free(struct deadline *deadline)
{
    if (deadline->event)
        event_free(deadline->event);
    deadline->event = NULL;
}
