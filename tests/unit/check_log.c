/*
 * check_log.c - where lines of the log go, and what is in them: on standard error, and in the journal by
 * its own protocol, which a socket of the test plays.
 */
#include "daemon/log.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static char folder[] = "/tmp/auditrun-log-XXXXXX";
static char journal_path[64], error_path[64];
static int journal, saved_error;

static void setup(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(journal_path, sizeof(journal_path), "%s/journal", folder);
    (void)snprintf(error_path, sizeof(error_path), "%s/stderr", folder);
    memcpy(address.sun_path, journal_path, strlen(journal_path) + 1);
    journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(journal, (const struct sockaddr *)&address, sizeof(address)), 0);
    saved_error = dup(STDERR_FILENO);
    int fd = open(error_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    (void)close(fd);
    log_set_level(LOG_LEVEL_INFO);
}

static void teardown(void)
{
    (void)unsetenv("JOURNAL_STREAM");
    log_open(journal_path);
    ck_assert_int_eq(dup2(saved_error, STDERR_FILENO), STDERR_FILENO);
    (void)close(saved_error);
    (void)close(journal);
    (void)unlink(journal_path);
    (void)unlink(error_path);
    (void)rmdir(folder);
}

/* As the service manager starts us, or with another stream than ours. */
static void start_under_manager(unsigned more)
{
    struct stat status;
    char stream[64];
    ck_assert_int_eq(fstat(STDERR_FILENO, &status), 0);
    (void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)status.st_dev,
                   (unsigned long long)status.st_ino + more);
    ck_assert_int_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
    log_open(journal_path);
}

static void expect_entry(const char *wanted)
{
    char entry[8192] = "";
    ssize_t length = recv(journal, entry, sizeof(entry) - 1, 0);
    ck_assert_msg(length > 0, "no entry");
    ck_assert_str_eq(entry, wanted);
}

static void expect_no_entry(void)
{
    char entry[8192] = "";
    ck_assert_msg(recv(journal, entry, sizeof(entry) - 1, 0) < 0, "%s", entry);
}

/* All that is on standard error; its times, which are of one length, are left out. */
static const char *lines(size_t time_length)
{
    static char text[16384];
    size_t used = 0;
    char line[4096];
    FILE *file = fopen(error_path, "re");
    ck_assert_ptr_nonnull(file);
    text[0] = '\0';
    while (fgets(line, sizeof(line), file)) {
        ck_assert_uint_gt(strlen(line), time_length);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", line + time_length);
        ck_assert_uint_lt(used, sizeof(text));
    }
    (void)fclose(file);
    return text;
}

#define TIME_LENGTH strlen("2026-01-31T12:00:00.123Z ")

static const struct log_field fields[] = {
    {"run_id", "0192", true}, {"client", "ci", false}, {"wall_us", "17", false}};

START_TEST(test_plain_lines)
{
    log_open(journal_path);
    errno = EACCES;
    log_warning("cannot: %m");
    ck_assert_int_eq(errno, EACCES);
    log_debug("not at this level");
    log_write_fields(LOG_LEVEL_INFO, fields, AR_COUNT(fields), "run %s", "0192");
    log_run(LOG_LEVEL_ERROR, "0193", "run %s: no", "0193");
    ck_assert_str_eq(lines(TIME_LENGTH), "warning: cannot: Permission denied\n"
                                         "info: run 0192 client=ci wall_us=17\n"
                                         "error: run 0193: no\n");
    expect_no_entry();
}
END_TEST

START_TEST(test_entries_of_the_journal)
{
    start_under_manager(0);
    log_warning("a\nb");
    expect_entry("MESSAGE=a?b\nPRIORITY=4\nSYSLOG_IDENTIFIER=auditrund\n");
    log_write_fields(LOG_LEVEL_INFO, fields, AR_COUNT(fields), "run %s", "0192");
    expect_entry("MESSAGE=run 0192 client=ci wall_us=17\nPRIORITY=6\n"
                 "SYSLOG_IDENTIFIER=auditrund\nAUDITRUN_RUN_ID=0192\nAUDITRUN_CLIENT=ci\n"
                 "AUDITRUN_WALL_US=17\n");
    log_debug("not at this level");
    expect_no_entry();
    ck_assert_str_eq(lines(0), "");
}
END_TEST

/* A value cannot make a field of its own. */
START_TEST(test_values_stay_values)
{
    const struct log_field evil[] = {{"client", "x\nPRIORITY=0\n_UID=0", false}};
    start_under_manager(0);
    log_write_fields(LOG_LEVEL_INFO, evil, 1, "run");
    expect_entry("MESSAGE=run client=x?PRIORITY=0?_UID=0\nPRIORITY=6\n"
                 "SYSLOG_IDENTIFIER=auditrund\nAUDITRUN_CLIENT=x?PRIORITY=0?_UID=0\n");
}
END_TEST

START_TEST(test_stream_of_somebody_else)
{
    start_under_manager(1);
    log_info("here");
    expect_no_entry();
    ck_assert_str_eq(lines(TIME_LENGTH), "info: here\n");
}
END_TEST

/* Without the journal's socket, or when it does not keep up: by the stream, with the level. */
START_TEST(test_journal_away)
{
    ck_assert_int_eq(unlink(journal_path), 0);
    start_under_manager(0);
    log_error("one");
    log_info("two");
    ck_assert_str_eq(lines(0), "<3>one\n<6>two\n");
}
END_TEST

START_TEST(test_journal_that_is_full)
{
    start_under_manager(0);
    for (int i = 0; i < 10000 && !lines(0)[0]; i++)
        log_info("again");
    ck_assert_str_eq(lines(0), "<6>again\n");
    expect_entry("MESSAGE=again\nPRIORITY=6\nSYSLOG_IDENTIFIER=auditrund\n");
    log_info("and again");
    ck_assert_str_eq(lines(0), "<6>again\n");
}
END_TEST

START_TEST(test_long_lines_are_cut)
{
    AR_AUTO_FREE char *text = unit_repeat("", "x", 5000, "");
    const struct log_field field = {"client", text, false};
    start_under_manager(0);
    log_info("%s", text);
    char entry[8192] = "";
    ck_assert_int_gt(recv(journal, entry, sizeof(entry) - 1, 0), 1000);
    log_write_fields(LOG_LEVEL_INFO, &field, 1, "run");
    const char *line = lines(0);
    ck_assert_int_eq(strncmp(line, "<6>run client=xxx", 17), 0);
    ck_assert_uint_lt(strlen(line), 1100);
    ck_assert_int_eq(line[strlen(line) - 1], '\n');
}
END_TEST

static const TTest **const tests[] = {&test_plain_lines,        &test_entries_of_the_journal,
                                      &test_values_stay_values, &test_stream_of_somebody_else,
                                      &test_journal_away,       &test_journal_that_is_full,
                                      &test_long_lines_are_cut, NULL};

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tcase = tcase_create("log");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (const TTest **const *test = tests; *test; test++)
        tcase_add_test(tcase, **test);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
