/*
 * suite.h - the end of the main of every test program.
 */
#ifndef AUDITRUN_TESTS_SUITE_H
#define AUDITRUN_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs the suite as the environment (CK_*) says, and frees it: what main() returns. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
