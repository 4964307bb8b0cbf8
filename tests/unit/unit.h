/*
 * unit.h - what the unit tests of protocol/ share: the main of a suite, JSON in single quotes, and
 * random numbers that can be had again.
 *
 * Header only: each test program is one file.
 */
#ifndef AUDITRUN_TESTS_UNIT_UNIT_H
#define AUDITRUN_TESTS_UNIT_UNIT_H

#include "protocol/json.h"
#include "tests/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* One test case with its tests, for unit_main(). */
struct unit_case {
    const char *name;
    const TTest **const *tests; /* addresses of tests; ends with NULL */
};

static inline int unit_main(const char *name, const struct unit_case *cases, size_t count)
{
    Suite *suite = suite_create(name);
    for (size_t i = 0; i < count; i++) {
        TCase *tcase = tcase_create(cases[i].name);
        tcase_set_timeout(tcase, 120);
        for (const TTest **const *test = cases[i].tests; *test; test++)
            tcase_add_test(tcase, **test);
        suite_add_tcase(suite, tcase);
    }
    return suite_run(suite);
}

/* text with ' turned into "; malloc'd. */
static inline char *unit_quote(const char *text)
{
    char *copy = strdup(text);
    ck_assert_ptr_nonnull(copy);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

/* The value of JSON that is written with ' for "; owned by the caller. */
static inline json_t *unit_json(const char *text)
{
    AR_AUTO_FREE char *quoted = unit_quote(text);
    json_error_t error;
    json_t *value = json_loads(quoted, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    ck_assert_msg(value != NULL, "%s in %s", error.text, quoted);
    return value;
}

/* count times the unit, between head and tail; malloc'd. */
static inline char *unit_repeat(const char *head, const char *unit, size_t count, const char *tail)
{
    size_t step = strlen(unit);
    char *text = malloc(strlen(head) + step * count + strlen(tail) + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, head, strlen(head));
    for (size_t i = 0; i < count; i++)
        memcpy(text + strlen(head) + i * step, unit, step);
    memcpy(text + strlen(head) + step * count, tail, strlen(tail) + 1);
    return text;
}

/* xorshift64*: the seed is fixed, or AUDITRUN_SEED; print it where a property fails. */
struct unit_random {
    uint64_t seed, state;
};

static inline struct unit_random unit_random_new(void)
{
    const char *given = getenv("AUDITRUN_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20260131;
    return (struct unit_random){.seed = seed, .state = seed | 1};
}

static inline uint64_t unit_random_next(struct unit_random *random)
{
    random->state ^= random->state >> 12;
    random->state ^= random->state << 25;
    random->state ^= random->state >> 27;
    return random->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* 0 .. bound - 1 */
static inline size_t unit_random_below(struct unit_random *random, size_t bound)
{
    return (size_t)(unit_random_next(random) >> 11) % bound;
}

#endif
