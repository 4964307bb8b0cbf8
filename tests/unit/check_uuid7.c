/*
 * check_uuid7.c - ids that rise strictly, whatever the clock does (C35).
 */
#include "protocol/uuid7.h"
#include "tests/unit/unit.h"

static void fill(struct unit_random *random, uint8_t bytes[10])
{
    for (size_t i = 0; i < 10; i++)
        bytes[i] = (uint8_t)unit_random_next(random);
}

START_TEST(test_layout)
{
    struct uuid7_generator generator = {0};
    static const uint8_t random[10] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x23, 0x45, 0x67};
    char id[UUID7_TEXT_BYTES];
    uuid7_next(&generator, UINT64_C(0x017f22e279b0), random, id);
    ck_assert_str_eq(id, "017f22e2-79b0-77ff-bfff-ffff01234567");
    ck_assert(uuid7_is_valid(id));
    ck_assert(uuid7_is_uuid(id));
    ck_assert_uint_eq(uuid7_time_ms(id), UINT64_C(0x017f22e279b0));
}
END_TEST

/* +1 h, -1 h, -30 d, +400 d for a moment, stands still, starts at 1970, goes to the end of time. */
START_TEST(test_rises_over_clock_steps)
{
    static const int64_t steps[] = {
        0, 1, 0, 3600000, -3600000,     -2592000000,  34560000000, -34560000000,
        0, 0, 1, -1,      315360000000, -315360000000};
    struct unit_random random = unit_random_new();
    struct uuid7_generator generator = {0};
    char last[UUID7_TEXT_BYTES] = "", id[UUID7_TEXT_BYTES];
    uint64_t now = UINT64_C(1767225600000);
    uint8_t bytes[10];
    for (int i = 0; i < 20000; i++) {
        if (i % 7 == 0)
            now += (uint64_t)steps[unit_random_below(&random, AR_COUNT(steps))];
        if (i == 10000)
            now = 0;
        fill(&random, bytes);
        uuid7_next(&generator, now & ((UINT64_C(1) << 47) - 1), bytes, id);
        ck_assert_msg(strcmp(last, id) < 0, "%s after %s, seed %llu", id, last,
                      (unsigned long long)random.seed);
        ck_assert(uuid7_is_valid(id));
        memcpy(last, id, sizeof(last));
    }
}
END_TEST

START_TEST(test_counter_overflow_goes_on_in_time)
{
    static const uint8_t zero[10] = {0};
    struct uuid7_generator generator = {.last_ms = 1000, .counter = (UINT64_C(1) << 42) - 2};
    char first[UUID7_TEXT_BYTES], second[UUID7_TEXT_BYTES];
    uuid7_next(&generator, 1000, zero, first);
    ck_assert_uint_eq(uuid7_time_ms(first), 1000);
    uuid7_next(&generator, 900, zero, second);
    ck_assert_uint_eq(uuid7_time_ms(second), 1001);
    ck_assert_int_lt(strcmp(first, second), 0);
}
END_TEST

START_TEST(test_raise_after_restart)
{
    static const uint8_t zero[10] = {0}, ones[10] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct uuid7_generator before = {0}, after = {0};
    char last[UUID7_TEXT_BYTES], next[UUID7_TEXT_BYTES];
    uuid7_next(&before, 5000, ones, last);
    uuid7_raise(&after, last);
    uuid7_next(&after, 4000, zero, next);
    ck_assert_int_lt(strcmp(last, next), 0);
    /* An earlier id, or what is none, lowers nothing. */
    uuid7_raise(&after, last);
    uuid7_raise(&after, "nothing of the kind");
    uuid7_next(&after, 4000, zero, last);
    ck_assert_int_lt(strcmp(next, last), 0);
}
END_TEST

START_TEST(test_forms)
{
    ck_assert(uuid7_is_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    ck_assert(!uuid7_is_valid("017f22e2-79b0-4cc3-98c4-dc0c0c07398f"));
    ck_assert(uuid7_is_uuid("017f22e2-79b0-4cc3-98c4-dc0c0c07398f"));
    ck_assert(!uuid7_is_valid("017f22e2-79b0-7cc3-c8c4-dc0c0c07398f"));
    ck_assert(!uuid7_is_valid("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"));
    ck_assert(!uuid7_is_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398"));
    ck_assert(!uuid7_is_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f0"));
    ck_assert(!uuid7_is_valid("017f22e279b0-7cc3-98c4-dc0c0c07398f--"));
    ck_assert(!uuid7_is_valid(""));
}
END_TEST

static const TTest **const tests[] = {&test_layout,
                                      &test_rises_over_clock_steps,
                                      &test_counter_overflow_goes_on_in_time,
                                      &test_raise_after_restart,
                                      &test_forms,
                                      NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"uuid7", tests}};
    return unit_main("uuid7", cases, AR_COUNT(cases));
}
