/*
 * check_namespace.c - what the namespace executor promises beyond the contract: its walls, its end
 * with its launcher, compiled languages, and that a grant is never met by half.
 *
 * Attacks print a word for each thing that worked, so that a sandbox that holds prints nothing.
 */
#include "tests/lib/executor.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SLOT         "62"
#define UID_BASE     "210000"
#define UID_EXPECTED "1000 210062 1"

static char program[4096], languages[4096];
static const char *words[] = {program, "--uid-base", UID_BASE, "--languages", languages, NULL};

static struct request request_of(const char *language, const char *code)
{
    return (struct request){.language = (char *)language,
                            .code = {.data = (char *)code, .length = strlen(code)},
                            .grant = {.network = NETWORK_NONE}};
}

static struct executor started(void)
{
    struct executor executor;
    ck_assert_msg(executor_start(&executor, words, SLOT), "the provider is not ready");
    return executor;
}

static void expect_run(struct executor *executor, const struct request *request,
                       enum outcome outcome, int number, const char *out)
{
    struct executor_result result;
    ck_assert_msg(executor_do(executor, request, &result), "there is no report in time");
    ck_assert_msg(result.report.outcome == outcome, "%s, not %s; stderr: %.500s",
                  outcome_word(result.report.outcome), outcome_word(outcome),
                  result.err.data ? result.err.data : "");
    if (outcome == OUTCOME_EXITED || outcome == OUTCOME_COMPILE_FAILED)
        ck_assert_int_eq(result.report.exit_code, number);
    if (out)
        ck_assert_str_eq(result.out.data ? result.out.data : "", out);
    executor_result_free(&result);
    ck_assert(executor_await_ready(executor));
}

static void expect(const char *language, const char *code, enum outcome outcome, int number,
                   const char *out)
{
    struct executor executor = started();
    struct request request = request_of(language, code);
    expect_run(&executor, &request, outcome, number, out);
    ck_assert(executor_stop(&executor));
}

/* ---- walls ------------------------------------------------------------------------------------ */

START_TEST(host_is_not_there)
{
    expect(
        "bash",
        "[ \"$(echo /run/* /run/.[!.]* /run/secrets/*)\" = '/run/secrets /run/.[!.]* "
        "/run/secrets/*' ] "
        "|| ls -A /run /run/secrets\n"
        "for f in /etc/shadow /root /home /sys /boot /opt /srv /mnt /scratch /proc/1 "
        "/proc/sys /proc/cmdline /proc/kcore /dev/kmsg /dev/vda /dev/sda /dev/tty; do\n"
        "[ -e $f ] && echo $f; done\n"
        "for d in / /usr /etc /dev /code /proc; do\n"
        "(: >$d/x) 2>/dev/null && echo wrote $d; done\n"
        "[ \"$(pwd -P)\" = /work ] || echo elsewhere; [ \"$(hostname)\" = sandbox ] || hostname\n",
        OUTCOME_EXITED, 0, "");
}
END_TEST

/* C10: whatever is open leads nowhere, in the first run of a provider and in a later one. */
START_TEST(open_descriptors_lead_nowhere)
{
    struct executor executor = started();
    struct request request = request_of(
        "bash", "for n in {0..255}; do f=/proc/self/fd/$n\n"
                "[ -e $f/../../../../etc/shadow ] && echo shadow $n\n"
                "(cd $f) 2>/dev/null && echo folder $n; done; readlink /proc/self/cwd\n");
    for (int i = 0; i < 5; i++)
        expect_run(&executor, &request, OUTCOME_EXITED, 0, "/work\n");
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(first_process_is_out_of_reach)
{
    expect("perl",
           "for my $s (1..64) { kill $s, 1 }\n"
           "print join(' ', grep { /^\\d+$/ } map { s{.*/}{}r } glob('/proc/[0-9]*')), \"\\n\";\n"
           "print getppid(), \"\\n\";\n",
           OUTCOME_EXITED, 0, "2\n1\n");
}
END_TEST

START_TEST(each_slot_is_somebody_else)
{
    if (geteuid() != 0)
        return; /* without root the sandbox is its caller, and the envelope says so */
    expect("bash", "read -r a b c </proc/self/uid_map; echo $a $b $c; id -u; id -G", OUTCOME_EXITED,
           0, UID_EXPECTED "\n1000\n1000\n");
}
END_TEST

/* Such a program would not be counted, and could spend more than cpu_ms. */
START_TEST(programs_can_be_read)
{
    expect("python",
           "import os\n"
           "def no(f, *a):\n"
           "    try: f(*a)\n"
           "    except PermissionError: return\n"
           "    print(f, a)\n"
           "open('x', 'w').close()\n"
           "no(os.chmod, 'x', 0o111)\n"
           "no(os.chmod, 'x', 0o300)\n"
           "no(os.open, 'y', os.O_CREAT | os.O_WRONLY, 0o111)\n"
           "no(os.open, '.', os.O_TMPFILE | os.O_WRONLY, 0o100)\n"
           "no(os.mknod, 'z', 0o111)\n"
           "os.chmod('x', 0o755); os.chmod('x', 0o600); os.mkdir('d', 0o700); os.chmod('d', 0)\n",
           OUTCOME_EXITED, 0, "");
}
END_TEST

START_TEST(both_folders_are_fresh)
{
    struct executor executor = started();
    struct request request = request_of("bash", "ls -A /work /tmp | grep -v :; ls -A /code\n"
                                                "echo >/tmp/x; echo >/dev/shm/y; echo >z; exit 0");
    for (int i = 0; i < 3; i++)
        expect_run(&executor, &request, OUTCOME_EXITED, 0, "\nmain.sh\n");
    ck_assert(executor_stop(&executor));
}
END_TEST

/* More orphans at once than are reaped at a time: their deaths are one signal. */
START_TEST(all_orphans_are_reaped)
{
    expect("python",
           "import os\n"
           "def zombies():\n"
           "    n = 0\n"
           "    for d in filter(str.isdigit, os.listdir('/proc')):\n"
           "        try: n += ') Z' in open(f'/proc/{d}/stat').read()\n"
           "        except OSError: pass\n"
           "    return n\n"
           "if os.fork() == 0:\n"
           "    for _ in range(300):\n"
           "        if os.fork() == 0: os._exit(0)\n"
           "    while zombies() < 300: pass\n"
           "    os._exit(0)\n"
           "os.wait()\n"
           "while zombies() > 0: pass\n",
           OUTCOME_EXITED, 0, "");
}
END_TEST

/* ---- the end of the launcher (C29) ------------------------------------------------------------ */

static void expect_nothing_left(struct executor *executor, struct executor_run *run,
                                struct executor_result *result)
{
    ck_assert_msg(executor_finish(executor, run), "something of the run is left");
    ck_assert(!result->reported);
    executor_run_close(run);
    executor_result_free(result);
    (void)executor_stop(executor);
}

START_TEST(sandbox_dies_with_its_launcher)
{
    struct executor_run run;
    struct executor_result result;
    struct executor executor = started();
    struct request request = request_of(
        "bash", "trap '' TERM HUP; setsid bash -c 'trap \"\" TERM HUP; while :; do sleep 1000;"
                "done' & setsid sleep 1000 & echo begun; while :; do sleep 1000; done");
    ck_assert(executor_send(&executor, &request, &result, &run));
    ck_assert(executor_await_output(&executor, &run, "begun"));
    ck_assert(executor_signal(&executor, SIGKILL));
    expect_nothing_left(&executor, &run, &result);
}
END_TEST

/* The launcher is killed at one moment or another of the set-up. */
START_TEST(sandbox_dies_with_its_launcher_at_any_time)
{
    for (int i = 0; i < 25; i++) {
        struct executor_run run;
        struct executor_result result;
        struct executor executor = started();
        struct request request = request_of("bash", "while :; do sleep 1000; done");
        ck_assert(executor_send(&executor, &request, &result, &run));
        for (volatile int spin = 0; spin < i * 40000; spin++)
            continue;
        ck_assert(executor_signal(&executor, SIGKILL));
        expect_nothing_left(&executor, &run, &result);
    }
}
END_TEST

/* ---- compiled languages (C09, C23) ------------------------------------------------------------ */

START_TEST(compiler_is_in_the_sandbox)
{
    expect("c", "#include \"/etc/shadow\"\n", OUTCOME_COMPILE_FAILED, 1, "");
    expect("c", "not a program", OUTCOME_COMPILE_FAILED, 1, "");
    expect("c", "int main(void) { return 42; }", OUTCOME_EXITED, 42, "");
}
END_TEST

START_TEST(compiler_is_under_the_limits)
{
    struct executor executor = started();
    struct request request =
        request_of("c", "#include __FILE__\n#include __FILE__\nint main(void) {}");
    request.grant.limits.has[LIMIT_CPU_MS] = true;
    request.grant.limits.value[LIMIT_CPU_MS] = 100;
    struct request endless =
        request_of("c", "#define A B B B B B B B B\n#define B C C C C C C C C\n"
                        "#define C D D D D D D D D\n#define D E E E E E E E E\n"
                        "#define E F F F F F F F F\n#define F G G G G G G G G\n"
                        "#define G 1+1+1+1+1+1+1+1+\nint x = A 0;");
    endless.grant = request.grant;
    expect_run(&executor, &endless, OUTCOME_LIMIT, 0, "");
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(fresh_programs_can_be_started)
{
    static char path[] = "tool", script[] = "#!/bin/sh\necho tool\n";
    struct request_file files[] = {{.path = path, .content = {.data = script, .length = 20}}};
    struct executor executor = started();
    struct request compiled = request_of("c", "int main(void) { return 0; }");
    struct request shipped = request_of("bash", "./tool");
    shipped.files = files;
    shipped.file_count = 1;
    for (int i = 0; i < 10; i++) {
        expect_run(&executor, &compiled, OUTCOME_EXITED, 0, "");
        expect_run(&executor, &shipped, OUTCOME_EXITED, 0, "tool\n");
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

/* ---- grants ----------------------------------------------------------------------------------- */

START_TEST(what_is_not_offered_does_not_run)
{
    static char name[] = "x.y", *names[] = {name}, path[] = "/usr", *paths[] = {path};
    struct executor executor = started();
    for (int i = 0; i < 4; i++) {
        struct request request = request_of("bash", "echo ran");
        if (i == 0)
            request.grant.network = NETWORK_OPEN;
        if (i == 1)
            request.grant.data_api = (struct text_list){.items = names, .count = 1};
        if (i == 2)
            request.grant.read = (struct text_list){.items = paths, .count = 1};
        if (i == 3)
            request.grant.write = (struct text_list){.items = paths, .count = 1};
        expect_run(&executor, &request, OUTCOME_SETUP_FAILED, 0, "");
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(files_that_do_not_fit_are_a_limit)
{
    static char path[] = "big", content[65536];
    struct request_file files[] = {{.path = path, .content = {.data = content, .length = 65536}}};
    struct executor_result result;
    struct executor executor = started();
    struct request request = request_of("bash", "echo ran");
    request.files = files;
    request.file_count = 1;
    request.grant.limits.has[LIMIT_SCRATCH_BYTES] = true;
    request.grant.limits.value[LIMIT_SCRATCH_BYTES] = 32768;
    ck_assert(executor_do(&executor, &request, &result));
    ck_assert_int_eq(result.report.outcome, OUTCOME_LIMIT);
    ck_assert_int_eq(result.report.limit, LIMIT_SCRATCH_BYTES);
    ck_assert_uint_eq(result.out.length, 0);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

static Suite *make_suite(void)
{
    static const TTest *const *const tests[] = {
        &host_is_not_there,
        &open_descriptors_lead_nowhere,
        &first_process_is_out_of_reach,
        &each_slot_is_somebody_else,
        &programs_can_be_read,
        &both_folders_are_fresh,
        &all_orphans_are_reaped,
        &sandbox_dies_with_its_launcher,
        &sandbox_dies_with_its_launcher_at_any_time,
        &compiler_is_in_the_sandbox,
        &compiler_is_under_the_limits,
        &fresh_programs_can_be_started,
        &what_is_not_offered_does_not_run,
        &files_that_do_not_fit_are_a_limit,
    };
    Suite *suite = suite_create("namespace");
    TCase *tcase = tcase_create("namespace");
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    const char *build = getenv("AUDITRUN_BUILD"), *source = getenv("AUDITRUN_SOURCE");
    (void)snprintf(program, sizeof(program), "%s/auditrun-executor-namespace",
                   build ? build : "build");
    (void)snprintf(languages, sizeof(languages), "%s/etc/languages.d", source ? source : ".");
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
