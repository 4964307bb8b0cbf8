/*
 * loop.h - the event loop and the signals that it takes as events.
 */
#ifndef AUDITRUN_DAEMON_LOOP_H
#define AUDITRUN_DAEMON_LOOP_H

#include "protocol/base.h"

struct event_base;
struct loop;

/* Priorities of events. What moves bytes for code comes after everything else, and gives way after a
 * few milliseconds, so that no amount of it keeps a timer or a client waiting. */
#define LOOP_PRIORITIES    3
#define LOOP_PRIORITY_BULK 2 /* the others are in the middle, which is libevent's default */

/* One callback a signal; from the loop, never from a signal handler of ours. */
struct loop_signals {
    void (*terminate)(void *context); /* SIGTERM, SIGINT */
    void (*dump)(void *context);      /* SIGUSR1 */
    void (*reload)(void *context);    /* SIGHUP */
};

/* Makes the loop (monotonic timers of full precision), ignores SIGPIPE. 0 or -errno. */
int loop_open(const struct loop_signals *signals, void *context, struct loop **out) AR_MUST_CHECK;
struct event_base *loop_base(struct loop *loop);
/* Runs until loop_stop(). 0 or -EIO. */
int loop_run(struct loop *loop) AR_MUST_CHECK;
void loop_stop(struct loop *loop);
void loop_free(struct loop *loop);

#endif
