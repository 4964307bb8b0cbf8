/*
 * check_ids.c - who the slots of the namespace executor are on the host, when it is not started by
 * root: ids of their own out of /etc/subuid and /etc/subgid.
 *
 * Root has to start it. In a mount namespace of its own it lays other files over these two, over
 * /etc/passwd (a user for the test) and over newuidmap (a recorder before the real one), becomes that
 * user for good, and plays the daemon. The machine is not changed. Where that cannot be done it says
 * why and exits with 77.
 */
#include "tests/lib/executor.h"

#include <check.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define USER      "auditrun-ids"
#define USER_ID   59871
#define FIRST_UID 1900000000u
#define FIRST_GID 1910000000u
#define ID_COUNT  105
#define BEYOND    "105"
#define HELPER    "/usr/bin/newuidmap"
#define CANNOT    77

static char program[4096], languages[4096], folder[] = "/tmp/check-ids.XXXXXX";
static const char *words[] = {program, "--languages", languages, NULL};

/* ---- the host as this test sees it -------------------------------------------------------------- */

static int cannot(const char *what)
{
    (void)printf("1..0 # SKIP the ids of slots cannot be tried: %s\n", what);
    (void)fprintf(stderr, "check_ids: SKIPPED: %s\n", what);
    return CANNOT;
}

static bool write_file(const char *path, const char *text, mode_t mode)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
           fchmod(fd, mode) == 0;
}

/* A file with this text (and what is there now in front of it) in place of the one at path. */
static bool cover(const char *path, bool append, const char *text, mode_t mode)
{
    static char whole[1 << 20];
    char cover_path[128];
    size_t length = 0;
    FILE *file = append ? fopen(path, "re") : NULL;
    if (file) {
        length = fread(whole, 1, sizeof(whole) - 4096, file);
        (void)fclose(file);
    }
    (void)snprintf(whole + length, sizeof(whole) - length, "%s", text);
    (void)snprintf(cover_path, sizeof(cover_path), "%s%s", folder, strrchr(path, '/'));
    return write_file(cover_path, whole, mode) && mount(cover_path, path, NULL, MS_BIND, NULL) == 0;
}

/* The real helper moves into the folder; in its place is one that writes down what it inherited. */
static bool record_helper(void)
{
    char real[128], text[1024];
    (void)snprintf(real, sizeof(real), "%s/real", folder);
    if (!write_file(real, "", 0600) || mount(HELPER, real, NULL, MS_BIND, NULL) < 0)
        return false;
    (void)snprintf(text, sizeof(text),
                   "#!/bin/bash -p\n"
                   "{ readlink /proc/$$/fd/{0..254}\n"
                   "tr '\\0' '\\n' </proc/$$/environ; echo \"$2 $3 $4\"; } >>%s/log/helper\n"
                   "exec %s \"$@\"\n",
                   folder, real);
    return cover(HELPER, false, text, 0755);
}

static bool lay_out(void)
{
    char text[256], log[128];
    (void)snprintf(log, sizeof(log), "%s/log", folder);
    if (chmod(folder, 0755) < 0 || mount(folder, folder, NULL, MS_BIND, NULL) < 0 ||
        mkdir(log, 0700) < 0 || chown(log, USER_ID, USER_ID) < 0)
        return false;
    (void)snprintf(text, sizeof(text), USER ":x:%d:%d::/:/bin/sh\n", USER_ID, USER_ID);
    bool good = cover("/etc/passwd", true, text, 0644);
    /* By name and by number; ids in two pieces; somebody else's; a line that is none. */
    (void)snprintf(text, sizeof(text), "root:1:9\n%d:%u:3\nx\n" USER ":%u:%d\n", USER_ID, FIRST_UID,
                   FIRST_UID + 100, ID_COUNT - 3);
    good = good && cover("/etc/subuid", false, text, 0644);
    (void)snprintf(text, sizeof(text), USER ":%u:%d\n", FIRST_GID, ID_COUNT);
    return good && cover("/etc/subgid", false, text, 0644) && record_helper();
}

static bool become_user(void)
{
    return setgroups(0, NULL) == 0 && setresgid(USER_ID, USER_ID, USER_ID) == 0 &&
           setresuid(USER_ID, USER_ID, USER_ID) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
}

/* ---- helpers ------------------------------------------------------------------------------------ */

/* The first line of a file of the process that begins so; what follows. "" when there is none. */
static void read_line(pid_t pid, const char *name, const char *begin, char line[128])
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    line[0] = '\0';
    while (fgets(line, 128, file) && strncmp(line, begin, strlen(begin)) != 0)
        line[0] = '\0';
    (void)fclose(file);
    size_t length = strlen(begin);
    memmove(line, line + length, strlen(line + length) + 1);
}

static void expect_ids(pid_t pid, const char *name, const char *begin, unsigned id)
{
    char line[128];
    unsigned ids[4];
    read_line(pid, name, begin, line);
    ck_assert_msg(sscanf(line, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4, "%s", line);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(ids[i] == id, "%s %s", begin, line);
}

static void expect_map(pid_t pid, const char *name, unsigned id)
{
    char line[128];
    unsigned inside, outside, count;
    read_line(pid, name, "", line);
    ck_assert_int_eq(sscanf(line, "%u %u %u", &inside, &outside, &count), 3);
    ck_assert_uint_eq(inside, 1000);
    ck_assert_uint_eq(outside, id);
    ck_assert_uint_eq(count, 1);
}

/* The process is these ids, has no group besides, and knows of no other id. */
static void expect_identity(pid_t pid, unsigned uid, unsigned gid)
{
    char line[128];
    expect_ids(pid, "status", "Uid:", uid);
    expect_ids(pid, "status", "Gid:", gid);
    read_line(pid, "status", "Groups:", line);
    ck_assert_msg(strspn(line, " \t\n") == strlen(line), "groups %s", line);
    expect_map(pid, "uid_map", uid);
    expect_map(pid, "gid_map", gid);
}

static struct request shell(const char *code)
{
    static char language[] = "bash";
    return (struct request){.language = language,
                            .code = {.data = (char *)code, .length = strlen(code)},
                            .grant = {.network = NETWORK_NONE}};
}

/* The output of a program, which has to exit with 0. */
static int run_program(const char *const *arguments)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)execv(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    ck_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- tests -------------------------------------------------------------------------------------- */

START_TEST(each_slot_is_somebody_else)
{
    struct executor first, second;
    ck_assert(executor_start(&first, words, "0"));
    ck_assert(executor_start(&second, words, "1"));
    expect_identity(first.pid, FIRST_UID, FIRST_GID);
    expect_identity(second.pid, FIRST_UID + 1, FIRST_GID + 1);
    ck_assert(executor_stop(&second));
    ck_assert(executor_start(&second, words, "4")); /* out of the second piece */
    expect_identity(second.pid, FIRST_UID + 101, FIRST_GID + 4);
    ck_assert(executor_stop(&second));
    ck_assert(executor_stop(&first));
}
END_TEST

/* Two runs at a time cannot signal each other, and neither can signal who started them. */
START_TEST(code_is_the_slot)
{
    struct executor executor;
    struct executor_result result;
    struct request request =
        shell("read -r a b c </proc/self/uid_map; echo $a $b $c\n"
              "read -r a b c </proc/self/gid_map; echo $a $b $c; id -G; id -u");
    char expected[128];
    ck_assert(executor_start(&executor, words, "2"));
    ck_assert(executor_do(&executor, &request, &result));
    ck_assert_int_eq(result.report.outcome, OUTCOME_EXITED);
    (void)snprintf(expected, sizeof(expected), "1000 %u 1\n1000 %u 1\n1000\n1000\n", FIRST_UID + 2,
                   FIRST_GID + 2);
    ck_assert_str_eq(result.out.data ? result.out.data : "", expected);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(slot_beyond_the_ids_is_an_error)
{
    struct executor executor;
    const char *arguments[] = {program, "--languages", languages, "capabilities", NULL};
    ck_assert(!executor_start(&executor, words, BEYOND));
    ck_assert_int_eq(setenv("AUDITRUN_SLOT", BEYOND, 1), 0);
    ck_assert_int_eq(run_program(arguments), 1);
}
END_TEST

START_TEST(envelope_says_so)
{
    struct envelope envelope = {0};
    ck_assert(executor_envelope(words, &envelope));
    AR_AUTO_FREE char *isolation = json_dumps(envelope.isolation, JSON_COMPACT);
    ck_assert_msg(strstr(isolation, "\"host_uid\":\"own for each slot\"") != NULL, "%s", isolation);
    envelope_free(&envelope);
}
END_TEST

/* The helper saw /dev/null three times and no variable, and was asked for one id. */
START_TEST(helper_inherits_nothing)
{
    struct executor executor;
    char path[128], line[256], asked[64];
    int lines = 0, nulls = 0, asks = 0;

    (void)snprintf(path, sizeof(path), "%s/log/helper", folder);
    (void)snprintf(asked, sizeof(asked), "1000 %u 1\n", FIRST_UID + 1);
    (void)unlink(path);
    ck_assert_int_eq(setenv("LD_PRELOAD_CANARY", "1", 1), 0);
    int canary = open("/etc/passwd", O_RDONLY); /* inherited, if nobody closes it */
    ck_assert_int_ge(canary, 0);
    ck_assert(executor_start(&executor, words, "1"));
    ck_assert(executor_stop(&executor));
    (void)close(canary);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file)) {
        ck_assert_ptr_null(strstr(line, "CANARY"));
        nulls += strcmp(line, "/dev/null\n") == 0;
        asks += strcmp(line, asked) == 0;
        /* The script and what it writes to are its own. */
        lines += !strstr(line, "newuidmap") && !strstr(line, "log/helper");
    }
    (void)fclose(file);
    ck_assert_int_eq(nulls, 3);
    ck_assert_int_eq(asks, 1);
    ck_assert_int_eq(lines, 4);
}
END_TEST

/* A helper that may do nothing: the launcher cannot gain privileges. */
START_TEST(without_privilege_it_is_the_caller)
{
    struct executor executor;
    struct envelope envelope = {0};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert(executor_start(&executor, words, "0"));
    expect_ids(executor.pid, "status", "Uid:", USER_ID);
    expect_map(executor.pid, "uid_map", USER_ID);
    ck_assert(executor_stop(&executor));
    ck_assert(executor_envelope(words, &envelope));
    AR_AUTO_FREE char *isolation = json_dumps(envelope.isolation, JSON_COMPACT);
    ck_assert_msg(strstr(isolation, "\"host_uid\":\"the daemon's\"") != NULL, "%s", isolation);
    envelope_free(&envelope);
}
END_TEST

/* All that the executor promises it promises to this user, too. */
START_TEST(contract_holds)
{
    static const char *const suites[] = {"conformance", "namespace"};
    for (size_t i = 0; i < AR_COUNT(suites); i++) {
        char path[4096];
        const char *build = getenv("AUDITRUN_BUILD");
        (void)snprintf(path, sizeof(path), "%s/tests/conformance/check_%s", build ? build : "build",
                       suites[i]);
        const char *arguments[] = {path, NULL};
        ck_assert_msg(run_program(arguments) == 0, "check_%s fails for this user", suites[i]);
    }
}
END_TEST

/* ---- main --------------------------------------------------------------------------------------- */

static int run_suite(void)
{
    static const TTest *const *const tests[] = {
        &each_slot_is_somebody_else,
        &code_is_the_slot,
        &slot_beyond_the_ids_is_an_error,
        &envelope_says_so,
        &helper_inherits_nothing,
        &without_privilege_it_is_the_caller,
        &contract_holds,
    };
    Suite *suite = suite_create("ids");
    TCase *tcase = tcase_create("ids");
    tcase_set_timeout(tcase, 600);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* In a child with the mounts, which end with it. */
static int check(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return cannot("there can be no mount namespace");
    if (!lay_out())
        return cannot("the files cannot be laid over those of the host");
    if (!become_user())
        return cannot("another user cannot be had");
    if (access(program, X_OK) < 0 || access(languages, R_OK) < 0)
        return cannot("what was built is in a folder that only its owner can enter");
    return run_suite();
}

int main(void)
{
    const char *build = getenv("AUDITRUN_BUILD"), *source = getenv("AUDITRUN_SOURCE");
    int status = -1;

    (void)snprintf(program, sizeof(program), "%s/auditrun-executor-namespace",
                   build ? build : "build");
    (void)snprintf(languages, sizeof(languages), "%s/etc/languages.d", source ? source : ".");
    if (geteuid() != 0)
        return cannot("only root can become another user");
    if (access(HELPER, X_OK) < 0)
        return cannot("newuidmap is missing (apt-get install uidmap)");
    if (!mkdtemp(folder))
        return cannot("there is no room for its files");
    pid_t pid = fork();
    if (pid == 0)
        _exit(check());
    (void)waitpid(pid, &status, 0);
    /* In the host's eyes the folder is as the child found it, with the files that it wrote. */
    const char *arguments[] = {"/bin/rm", "-rf", folder, NULL};
    if (fork() == 0) {
        (void)execv(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    (void)wait(NULL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
