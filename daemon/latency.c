/*
 * latency.c - a pulse in the loop, and how late it comes.
 *
 * An idle daemon has no pulse: it sleeps. The timers of the loop are coarse (a tick of the kernel, 4 ms
 * at most), which is in the figures.
 */
#include "daemon/latency.h"

#include "daemon/clock.h"
#include "daemon/deadline.h"

struct latency {
    struct deadline pulse;
    bool busy;
    int64_t due_us; /* monotonic */
    int64_t late, worst_us;
    struct histogram histogram;
};

static void beat(struct latency *latency)
{
    latency->due_us = clock_monotonic_us() + LATENCY_PULSE_MS * INT64_C(1000);
    deadline_start(&latency->pulse, LATENCY_PULSE_MS);
}

static void pulsed(void *context)
{
    struct latency *latency = context;
    int64_t late_us = clock_monotonic_us() - latency->due_us;
    histogram_add(&latency->histogram, late_us);
    latency->late += late_us > LATENCY_LATE_US;
    if (late_us > latency->worst_us)
        latency->worst_us = late_us;
    if (latency->busy)
        beat(latency);
}

int latency_new(struct event_base *base, struct latency **out)
{
    struct latency *latency = calloc(1, sizeof *latency);
    if (!latency)
        return -ENOMEM;
    latency->histogram.scale = &histogram_latency;
    int rc = deadline_init(&latency->pulse, base, pulsed, latency);
    if (rc < 0)
        latency_free(latency);
    else
        *out = latency;
    return rc;
}

void latency_watch(struct latency *latency, bool busy)
{
    latency->busy = busy;
    if (busy && !deadline_is_running(&latency->pulse))
        beat(latency);
}

json_t *latency_status(const struct latency *latency)
{
    return json_pack("{s:I, s:I, s:I}", "samples", (json_int_t)histogram_count(&latency->histogram),
                     "late", (json_int_t)latency->late, "worst_us", (json_int_t)latency->worst_us);
}

const struct histogram *latency_histogram(const struct latency *latency)
{
    return &latency->histogram;
}

void latency_free(struct latency *latency)
{
    if (!latency)
        return;
    deadline_free(&latency->pulse);
    free(latency);
}
