/*
 * histogram.h - how often a number fell between which bounds: adding one costs a few comparisons and
 * no memory.
 */
#ifndef AUDITRUN_DAEMON_HISTOGRAM_H
#define AUDITRUN_DAEMON_HISTOGRAM_H

#include "protocol/base.h"

#define HISTOGRAM_MAX_BOUNDS 20

/* Upper bounds, each included, rising; what is over the last one is counted too. */
struct histogram_scale {
    size_t count; /* at most HISTOGRAM_MAX_BOUNDS */
    int64_t bounds[HISTOGRAM_MAX_BOUNDS];
};

/* Microseconds: of parts of a run; of how late the loop is. Rows of a batch. */
extern const struct histogram_scale histogram_stages, histogram_latency, histogram_rows;

/* Zeroed but for the scale: nothing was added. */
struct histogram {
    const struct histogram_scale *scale;
    int64_t counts[HISTOGRAM_MAX_BOUNDS + 1]; /* of each bound alone; the last: over all of them */
    int64_t sum;
};

/* Negative ones are counted as 0. */
void histogram_add(struct histogram *histogram, int64_t value);
/* How many were added. */
int64_t histogram_count(const struct histogram *histogram);

#endif
