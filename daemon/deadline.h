/*
 * deadline.h - one timer, owned by the object that waits. Monotonic; calls back once, from the loop.
 */
#ifndef AUDITRUN_DAEMON_DEADLINE_H
#define AUDITRUN_DAEMON_DEADLINE_H

#include "protocol/base.h"

struct event_base;
struct event;

typedef void deadline_fn(void *context);

/* Zeroed is "not made". */
struct deadline {
    struct event *event;
    deadline_fn *passed;
    void *context;
};

/* Makes the timer, not running. 0 or -ENOMEM. */
int deadline_init(struct deadline *deadline, struct event_base *base, deadline_fn *passed,
                  void *context) AR_MUST_CHECK;
/* Starts it, or starts it again, to pass in ms milliseconds (0: in the next turn of the loop). */
void deadline_start(struct deadline *deadline, int64_t ms);
void deadline_stop(struct deadline *deadline);
bool deadline_is_running(const struct deadline *deadline);
/* Stops and frees; safe on a zeroed or freed one. */
void deadline_free(struct deadline *deadline);

#endif
