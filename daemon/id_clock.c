/*
 * id_clock.c - see id_clock.h. Pure: the clocks are handed in.
 */
#include "daemon/id_clock.h"

static void believe(struct id_clock *clock, int64_t wall_us, int64_t monotonic_us)
{
    *clock = (struct id_clock){.wall_us = wall_us, .monotonic_us = monotonic_us};
}

void id_clock_start(struct id_clock *clock, int64_t wall_us, int64_t monotonic_us, int64_t last_us)
{
    bool is_far = last_us > 0 && wall_us - last_us > ID_CLOCK_ABSENCE_US;
    believe(clock, is_far ? last_us : wall_us, monotonic_us);
}

int64_t id_clock_now(struct id_clock *clock, int64_t wall_us, int64_t monotonic_us,
                     enum id_clock_change *change)
{
    const int64_t expected_us = clock->wall_us + (monotonic_us - clock->monotonic_us);
    *change = ID_CLOCK_SAME;
    if (wall_us - expected_us <= ID_CLOCK_LEAP_US) {
        believe(clock, wall_us, monotonic_us);
        return wall_us;
    }
    if (clock->doubt_since_us == 0) {
        clock->doubt_since_us = monotonic_us;
        *change = ID_CLOCK_DOUBTED;
    } else if (monotonic_us - clock->doubt_since_us > ID_CLOCK_DOUBT_US) {
        believe(clock, wall_us, monotonic_us);
        *change = ID_CLOCK_BELIEVED;
        return wall_us;
    }
    return expected_us;
}
