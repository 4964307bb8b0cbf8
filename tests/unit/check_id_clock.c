/*
 * check_id_clock.c - the time that ids carry, with clocks that leap.
 */
#include "daemon/id_clock.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000)
#define DAY    (86400 * SECOND)
#define NOW    (INT64_C(20000) * DAY)

static struct id_clock ids;
static int64_t monotonic;

static void begin(int64_t wall, int64_t last)
{
    monotonic = 1000 * SECOND;
    id_clock_start(&ids, wall, monotonic, last);
}

/* So much later, with the wall there: the time of an id. */
static void expect(int64_t later, int64_t wall, int64_t time, enum id_clock_change wanted)
{
    enum id_clock_change change;
    monotonic += later;
    ck_assert_int_eq(id_clock_now(&ids, wall, monotonic, &change), time);
    ck_assert_int_eq(change, wanted);
}

START_TEST(follows_the_wall)
{
    begin(NOW, NOW - DAY);
    expect(SECOND, NOW + SECOND, NOW + SECOND, ID_CLOCK_SAME);
    expect(SECOND, NOW + 1800 * SECOND, NOW + 1800 * SECOND,
           ID_CLOCK_SAME); /* half an hour ahead */
    expect(SECOND, NOW - 30 * DAY, NOW - 30 * DAY, ID_CLOCK_SAME);
}
END_TEST

START_TEST(a_leap_and_back_leaves_nothing)
{
    begin(NOW, 0);
    expect(SECOND, NOW + 400 * DAY, NOW + SECOND, ID_CLOCK_DOUBTED);
    expect(SECOND, NOW + 400 * DAY + SECOND, NOW + 2 * SECOND, ID_CLOCK_SAME);
    expect(SECOND, NOW + 3 * SECOND, NOW + 3 * SECOND, ID_CLOCK_SAME);
    expect(SECOND, NOW + 400 * DAY, NOW + 4 * SECOND, ID_CLOCK_DOUBTED);
}
END_TEST

START_TEST(a_clock_that_stays_is_believed)
{
    const int64_t there = NOW + 3650 * DAY;
    begin(NOW, 0);
    expect(SECOND, there, NOW + SECOND, ID_CLOCK_DOUBTED);
    expect(600 * SECOND, there + 600 * SECOND, NOW + 601 * SECOND, ID_CLOCK_SAME);
    expect(SECOND, there + 601 * SECOND, there + 601 * SECOND, ID_CLOCK_BELIEVED);
    expect(SECOND, there + 602 * SECOND, there + 602 * SECOND, ID_CLOCK_SAME);
}
END_TEST

/* The journal knows when the last id was. */
START_TEST(a_start_far_ahead)
{
    begin(NOW + 3650 * DAY, NOW);
    expect(SECOND, NOW + 3650 * DAY + SECOND, NOW + SECOND, ID_CLOCK_DOUBTED);
    begin(NOW + 60 * DAY, NOW); /* a machine that was off for two months */
    expect(SECOND, NOW + 60 * DAY + SECOND, NOW + 60 * DAY + SECOND, ID_CLOCK_SAME);
    begin(SECOND, NOW); /* 1970: the ids go on from the journal's, which the generator sees to */
    expect(SECOND, 2 * SECOND, 2 * SECOND, ID_CLOCK_SAME);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&follows_the_wall, &a_leap_and_back_leaves_nothing,
                                          &a_clock_that_stays_is_believed, &a_start_far_ahead,
                                          NULL};
    static const struct unit_case cases[] = {{"id_clock", tests}};
    return unit_main("id_clock", cases, AR_COUNT(cases));
}
