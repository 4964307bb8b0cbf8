/*
 * latency.h - how late the event loop is.
 *
 * While there are runs a timer goes off every LATENCY_PULSE_MS; how much later than that it is served is
 * how long the loop was held by something else. Nobody may hold it for long: LATENCY_LATE_US.
 */
#ifndef AUDITRUN_DAEMON_LATENCY_H
#define AUDITRUN_DAEMON_LATENCY_H

#include "daemon/histogram.h"
#include "protocol/json.h"

#define LATENCY_PULSE_MS 10
#define LATENCY_LATE_US  20000

struct event_base;
struct latency;

/* 0 with *out owned, or -ENOMEM. */
int latency_new(struct event_base *base, struct latency **out) AR_MUST_CHECK;
/* There is work, or none any more. */
void latency_watch(struct latency *latency, bool busy);
/* {"samples", "late", "worst_us"}: late are those of more than LATENCY_LATE_US. NULL: out of memory. */
json_t *latency_status(const struct latency *latency) AR_MUST_CHECK;
/* How late each pulse came, in microseconds (histogram_latency). */
const struct histogram *latency_histogram(const struct latency *latency);
void latency_free(struct latency *latency);

#endif
