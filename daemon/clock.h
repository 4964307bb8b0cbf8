/*
 * clock.h - the two clocks. Wall time goes into records and ids and is never subtracted; everything
 * that is measured or waited for is monotonic.
 */
#ifndef AUDITRUN_DAEMON_CLOCK_H
#define AUDITRUN_DAEMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Microseconds since the epoch. */
static inline int64_t clock_wall_us(void)
{
    return clock_read_us(CLOCK_REALTIME);
}

/* Microseconds of a clock that never steps. */
static inline int64_t clock_monotonic_us(void)
{
    return clock_read_us(CLOCK_MONOTONIC);
}

#endif
