/*
 * check_paths.c - what is left of host paths when one of them cannot be opened any more.
 */
#include "daemon/paths.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define USER 4711

/* Whoever owns the places would close them once more, and with them what has the number by then. */
START_TEST(test_a_path_that_has_gone_leaves_no_descriptor)
{
    char root[] = "/tmp/auditrun-paths.XXXXXX", inner[64], gone[64];
    struct text_list roots = {0}, paths = {0};
    int fds[2] = {-1, -1};
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(inner, sizeof inner, "%s/inner", root);
    (void)snprintf(gone, sizeof gone, "%s/gone", root);
    ck_assert_int_eq(mkdir(inner, 0755), 0);
    ck_assert_int_eq(text_list_add(&roots, root), 0);
    ck_assert_int_eq(text_list_add(&paths, inner), 0);
    ck_assert_int_eq(text_list_add(&paths, gone), 0);
    if (geteuid() == 0) { /* nobody else can make such mounts */
        ck_assert_int_eq(paths_open(&paths, &roots, false, USER, fds), 1);
        ck_assert_int_eq(fds[0], -1);
        ck_assert_int_eq(fds[1], -1);
    } else {
        (void)fprintf(stderr, "SKIPPED: only root can clone mounts\n");
    }
    ck_assert_int_eq(rmdir(inner), 0);
    ck_assert_int_eq(rmdir(root), 0);
    text_list_free(&roots);
    text_list_free(&paths);
}
END_TEST

static const TTest **const tests[] = {&test_a_path_that_has_gone_leaves_no_descriptor, NULL};
static const struct unit_case cases[] = {{"opening", tests}};

int main(void)
{
    return unit_main("paths", cases, AR_COUNT(cases));
}
