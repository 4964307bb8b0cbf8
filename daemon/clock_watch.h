/*
 * clock_watch.h - notices when somebody sets the clock on the wall, and writes it into the ledger's chain.
 *
 * Nothing in the daemon depends on that clock but the times in records; an auditor who reads them has to know
 * where they leapt. The kernel tells (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET); slow adjustment is no step.
 */
#ifndef AUDITRUN_DAEMON_CLOCK_WATCH_H
#define AUDITRUN_DAEMON_CLOCK_WATCH_H

#include "daemon/run.h"

struct clock_watch;

#define CLOCK_WATCH_STEP_MS 500 /* less is not said */

/* 0 with *out owned, or -errno. */
int clock_watch_new(struct line *line, struct clock_watch **out) AR_MUST_CHECK;
void clock_watch_free(struct clock_watch *watch);

#endif
