/*
 * check_once.c - what auditrun-executor-once hands to its command beside the streams of a run.
 */
#include "tests/lib/executor.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define REPORT "printf '{\"outcome\":\"exited\",\"exit_code\":0}'; "

static char once[4096];

/* A memory file with this in it. */
static int file_of(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void expect(const char *script, const struct executor_gifts *gifts, const char *out)
{
    static char language[] = "any", code[] = "-";
    const char *words[] = {once, "/bin/bash", "-c", script, NULL};
    struct request request = {.language = language, .code = {.data = code, .length = 1}};
    struct executor executor;
    struct executor_result result;
    ck_assert(executor_start(&executor, words, "65"));
    ck_assert(executor_do_with(&executor, &request, gifts, &result));
    ck_assert_str_eq(result.out.data ? result.out.data : "", out);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}

START_TEST(what_is_given_follows_in_order)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(write(pair[0], "port\n", 5), 5);
    const int paths[] = {file_of("first "), file_of("second")};
    const struct executor_gifts gifts = {.data_port = pair[1],
                                         .secrets = file_of("KEY 1\nx "),
                                         .paths = paths,
                                         .path_count = AR_COUNT(paths)};
    expect(REPORT "exec >&4; read -r line <&7; echo $line; cat <&8; cat <&9; cat <&10; "
                  "[ -e /proc/self/fd/11 ] && echo more; exit 0",
           &gifts, "port\nKEY 1\nx first second");
}
END_TEST

START_TEST(without_it_there_is_nothing)
{
    expect(REPORT "exec >&4; for n in {7..90}; do [ -e /proc/self/fd/$n ] && echo $n; done; exit 0",
           &EXECUTOR_NO_GIFTS, "");
}
END_TEST

int main(void)
{
    const char *build = getenv("AUDITRUN_BUILD");
    (void)snprintf(once, sizeof(once), "%s/auditrun-executor-once", build ? build : "build");
    Suite *suite = suite_create("once");
    TCase *tcase = tcase_create("once");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_is_given_follows_in_order);
    tcase_add_test(tcase, without_it_there_is_nothing);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
