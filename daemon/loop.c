/*
 * loop.c - the event loop and the signals that it takes as events.
 *
 * libevent turns signals into events of the loop, so nothing of ours ever runs in a signal handler.
 */
#include "daemon/loop.h"

#include <event2/event.h>
#include <signal.h>

struct loop {
    struct event_base *base;
    struct event *events[4];
    struct loop_signals signals;
    void *context;
};

static void terminate(evutil_socket_t number, short what, void *context)
{
    struct loop *loop = context;
    (void)number;
    (void)what;
    loop->signals.terminate(loop->context);
}

static void dump(evutil_socket_t number, short what, void *context)
{
    struct loop *loop = context;
    (void)number;
    (void)what;
    loop->signals.dump(loop->context);
}

static void reload(evutil_socket_t number, short what, void *context)
{
    struct loop *loop = context;
    (void)number;
    (void)what;
    loop->signals.reload(loop->context);
}

/* After so long, or so many events, of bulk the loop looks for what else has happened. */
static const struct timeval bulk_time = {.tv_usec = 2000};
#define BULK_EVENTS 8

static struct event_base *make_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    /* Not PRECISE_TIMER: it sets a timer of the kernel in each turn, whether or not it has changed. */
    if (config &&
        event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME | EVENT_BASE_FLAG_NOLOCK) ==
            0 &&
        event_config_set_max_dispatch_interval(config, &bulk_time, BULK_EVENTS,
                                               LOOP_PRIORITY_BULK) == 0)
        base = event_base_new_with_config(config);
    if (base && event_base_priority_init(base, LOOP_PRIORITIES) != 0) {
        event_base_free(base);
        base = NULL;
    }
    if (config)
        event_config_free(config);
    return base;
}

int loop_open(const struct loop_signals *signals, void *context, struct loop **out)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return -ENOMEM;
    loop->signals = *signals;
    loop->context = context;
    loop->base = make_base();
    if (!loop->base) {
        loop_free(loop);
        return -ENOMEM;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    loop->events[0] = evsignal_new(loop->base, SIGTERM, terminate, loop);
    loop->events[1] = evsignal_new(loop->base, SIGINT, terminate, loop);
    loop->events[2] = evsignal_new(loop->base, SIGUSR1, dump, loop);
    loop->events[3] = evsignal_new(loop->base, SIGHUP, reload, loop);
    for (size_t i = 0; i < AR_COUNT(loop->events); i++) {
        if (loop->events[i] && event_add(loop->events[i], NULL) == 0)
            continue;
        loop_free(loop);
        return -ENOMEM;
    }
    *out = loop;
    return 0;
}

struct event_base *loop_base(struct loop *loop)
{
    return loop->base;
}

int loop_run(struct loop *loop)
{
    return event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0 ? -EIO : 0;
}

void loop_stop(struct loop *loop)
{
    (void)event_base_loopbreak(loop->base);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    for (size_t i = 0; i < AR_COUNT(loop->events); i++)
        if (loop->events[i])
            event_free(loop->events[i]);
    if (loop->base)
        event_base_free(loop->base);
    free(loop);
}
