/*
 * e2e.h - what the tests of the whole daemon share: their main, and the executors that they use.
 *
 * Header only: each test program is one file. With the executor "fake" code costs nothing and does
 * exactly what it says (tests/tools/fake_provider.c); the namespace executor is the daemon's default.
 */
#ifndef AUDITRUN_TESTS_E2E_E2E_H
#define AUDITRUN_TESTS_E2E_E2E_H

#include "tests/lib/daemon.h"
#include "tests/lib/traffic.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define E2E_TIMEOUT_S 120

/* What memory may grow by beside what a test allows: the address sanitizer keeps for a while what was
 * freed. Without it, nothing. */
#ifdef __SANITIZE_ADDRESS__
#    define E2E_SANITIZER_KB (1 << 20)
#else
#    define E2E_SANITIZER_KB 0
#endif

/* A new case of the suite, with time enough for a busy machine. */
static inline TCase *e2e_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, E2E_TIMEOUT_S);
    suite_add_tcase(suite, tcase);
    return tcase;
}

/* Runs the suite, then holds its traffic against the schemas; what main() returns. */
static inline int e2e_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    traffic_begin();
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int ran = srunner_ntests_run(runner);
    srunner_free(runner);
    int traffic = traffic_check();
    return failed == 0 && (traffic == 0 || ran == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Runs the tests (the list ends with NULL) as one case. */
static inline int e2e_main(const char *name, const TTest **const *tests)
{
    Suite *suite = suite_create(name);
    TCase *tcase = e2e_case(suite, name);
    for (; *tests; tests++)
        tcase_add_test(tcase, **tests);
    return e2e_run(suite);
}

/* Configuration: the fake executor in place of the namespace one, and more; malloc'd. */
static inline char *e2e_fake(const char *more)
{
    const char *build = getenv("AUDITRUN_BUILD");
    char *text = NULL;
    ck_assert_int_gt(asprintf(&text,
                              "[executor namespace]\n-\n"
                              "[executor fake]\nprogram = %s/tests/tools/fake_provider\n"
                              "args = well\nslots = 4\n%s",
                              build ? build : "build", more ? more : ""),
                     0);
    return text;
}

static inline struct daemon *e2e_daemon(const char *config)
{
    return daemon_new(&(struct daemon_options){.config = config});
}

static inline struct daemon *e2e_fake_daemon(const char *more)
{
    AR_AUTO_FREE char *config = e2e_fake(more);
    return e2e_daemon(config);
}

/* What a result has of a stream ("stdout", "stderr"), as text; borrowed. */
static inline const char *e2e_text(const json_t *result, const char *stream)
{
    const char *text = json_string_value(json_object_get(json_object_get(result, stream), "text"));
    ck_assert_ptr_nonnull(text);
    return text;
}

static inline const char *e2e_stdout(const json_t *result)
{
    return e2e_text(result, "stdout");
}

/* An integer of `status`: in the member, or in member.inner. */
static inline json_int_t e2e_status(struct client *client, const char *member, const char *inner)
{
    AR_AUTO_JSON json_t *status = client_call(client, "status", NULL);
    const json_t *value = json_object_get(status, member);
    if (inner)
        value = json_object_get(value, inner);
    ck_assert(json_is_integer(value));
    return json_integer_value(value);
}

#endif
