/*
 * id_clock.h - the time that ids carry: the clock on the wall, but not where it leaps.
 *
 * Ids rise strictly, also over restarts; so a clock that leaps far ahead for a moment would leave every
 * later id in that future. A leap ahead of more than an hour is not followed for ten minutes, while ids go on
 * from where they were by the monotonic clock; after that it is believed. A step back needs nothing: ids
 * count on from the last one (uuid7.h). The times in records are what the clock said, all the same.
 */
#ifndef AUDITRUN_DAEMON_ID_CLOCK_H
#define AUDITRUN_DAEMON_ID_CLOCK_H

#include "protocol/base.h"

#define ID_CLOCK_LEAP_US  (INT64_C(3600) * 1000000)
#define ID_CLOCK_DOUBT_US (INT64_C(600) * 1000000)
/* So long may a machine have been off since the last id in its journal. */
#define ID_CLOCK_ABSENCE_US (INT64_C(90) * 86400 * 1000000)

struct id_clock {
    int64_t wall_us, monotonic_us; /* the last moment in which the wall was believed */
    int64_t doubt_since_us;        /* monotonic; 0: no doubt */
};

enum id_clock_change { ID_CLOCK_SAME, ID_CLOCK_DOUBTED, ID_CLOCK_BELIEVED };

/* At the start; last_us: wall time of the last id that is known, 0: none. */
void id_clock_start(struct id_clock *clock, int64_t wall_us, int64_t monotonic_us, int64_t last_us);
/* The time for an id, in us since the epoch. *change: what is to be said of it, once. */
int64_t id_clock_now(struct id_clock *clock, int64_t wall_us, int64_t monotonic_us,
                     enum id_clock_change *change);

#endif
