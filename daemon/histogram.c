/*
 * histogram.c - see histogram.h.
 *
 * The scales are constant: series of different daemons and versions can be added up.
 */
#include "daemon/histogram.h"

const struct histogram_scale histogram_stages = {
    .count = 16,
    .bounds = {250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000,
               2500000, 10000000, 60000000, 600000000},
};

const struct histogram_scale histogram_latency = {
    .count = 10,
    .bounds = {500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 500000, 2000000},
};

const struct histogram_scale histogram_rows = {
    .count = 11,
    .bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000},
};

void histogram_add(struct histogram *histogram, int64_t value)
{
    const struct histogram_scale *scale = histogram->scale;
    size_t i = 0;
    if (value < 0)
        value = 0;
    while (i < scale->count && value > scale->bounds[i])
        i++;
    histogram->counts[i]++;
    histogram->sum += value;
}

int64_t histogram_count(const struct histogram *histogram)
{
    int64_t count = 0;
    for (size_t i = 0; i <= histogram->scale->count; i++)
        count += histogram->counts[i];
    return count;
}
