/*
 * check_limits.c - each limit through the real daemon: its own status and exact reason, told apart from
 * all that looks like it, and usage for every end.
 *
 * Most runs are in real sandboxes. What the host does for every executor is shown with the fake one,
 * which enforces nothing and claims that all went well. C08 of the cases from the field is here.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)

/* Takes N MiB of memory; `cope` is a program that does it politely. */
#define TAKE                                                                        \
    "def take(mib):\n    block = bytearray(mib << 20)\n    block[::4096] = b'x' * " \
    "len(block[::4096])\n"

/* A run that fits easily, with one limit changed. */
#define LIMITS(more)                                                                               \
    "{'grant': {'limits': {'wall_ms': 5000, 'memory_bytes': 268435456, 'processes': 64, " more "}" \
    "}"                                                                                            \
    "}"
#define MEMORY "{'grant': {'limits': {'wall_ms': 20000, 'memory_bytes': 67108864}}}"

static struct daemon *daemon_; /* of all tests in sandboxes */
static struct client *client_; /* of each of them */

static void open_daemon(void)
{
    daemon_ = e2e_daemon("[executor namespace]\nslots = 4\n");
}

static void close_daemon(void)
{
    daemon_free(daemon_);
}

static void open_client(void)
{
    client_ = daemon_connect(daemon_);
}

static void close_client(void)
{
    client_disconnect(client_);
}

static int64_t usage_of(const json_t *result, const char *member)
{
    const json_t *value = json_object_get(json_object_get(result, "usage"), member);
    ck_assert_msg(json_is_integer(value), "there is no %s in the usage", member);
    return json_integer_value(value);
}

/* In the machine of tests/vm: version 2 before Linux 6.12 keeps one peak of memory for a group's whole
 * life, so that it is not known for a run that stayed below and whose executor told nothing. */
static bool keeps_one_peak(void)
{
    return getenv("AUDITRUN_TEST_CGROUP") != NULL;
}

/* Wall, processor time, memory and output of every run that had a sandbox. */
static void expect_usage(const json_t *result)
{
    ck_assert_int_gt(usage_of(result, "wall_us"), 0);
    ck_assert_int_ge(usage_of(result, "user_us"), 0);
    ck_assert_int_ge(usage_of(result, "system_us"), 0);
    ck_assert_int_gt(usage_of(result, "user_us") + usage_of(result, "system_us"), 0);
    if (!keeps_one_peak() || json_object_get(json_object_get(result, "usage"), "memory_peak_bytes"))
        ck_assert_int_gt(usage_of(result, "memory_peak_bytes"), 0);
    ck_assert_int_ge(usage_of(result, "output_bytes"), 0);
}

static void expect(const json_t *result, const char *status, const char *reason)
{
    client_expect(result, status, reason);
    expect_usage(result);
    rows_expect_result(daemon_ledger(daemon_), result);
}

/* Runs the code and expects this end. Owned. */
static json_t *run(const char *language, const char *code, const char *more, const char *status,
                   const char *reason)
{
    json_t *result = client_call(client_, "run", client_params(language, code, more));
    expect(result, status, reason);
    return result;
}

static void expect_end(const char *language, const char *code, const char *more, const char *status,
                       const char *reason)
{
    json_decref(run(language, code, more, status, reason));
}

/* ---- memory (C08) ----------------------------------------------------------------------------- */

#define CHILD_TAKES                                       \
    TAKE "import os\n"                                    \
         "pid = os.fork()\n"                              \
         "if pid == 0:\n    take(200)\n    os._exit(0)\n" \
         "os.waitpid(pid, 0)\nprint('fine', flush=True)\n"

static void expect_peak(const json_t *result, int64_t limit)
{
    ck_assert_int_le(usage_of(result, "memory_peak_bytes"), limit);
}

START_TEST(a_child_that_is_killed_for_memory_ends_the_run)
{
    AR_AUTO_JSON json_t *result = run("python", CHILD_TAKES, MEMORY, "limit_exceeded", "memory");
    expect_peak(result, 64 * MIB);
}
END_TEST

START_TEST(the_code_itself_is_killed_for_memory)
{
    AR_AUTO_JSON json_t *result =
        run("python", TAKE "take(200)\n", MEMORY, "limit_exceeded", "memory");
    expect_peak(result, 64 * MIB);
}
END_TEST

START_TEST(an_exit_code_of_137_is_one)
{
    AR_AUTO_JSON json_t *result = run("bash", "exit 137", MEMORY, "failed", "exit_nonzero");
    ck_assert_int_eq(json_integer_value(json_object_get(result, "exit_code")), 137);
    expect_peak(result, 64 * MIB);
}
END_TEST

START_TEST(a_kill_by_itself_is_a_signal)
{
    AR_AUTO_JSON json_t *result = run("bash", "kill -9 $$", MEMORY, "failed", "killed_by_signal");
    ck_assert_int_eq(json_integer_value(json_object_get(result, "signal")), 9);
    expect_peak(result, 64 * MIB);
}
END_TEST

START_TEST(runs_at_the_same_time_are_told_apart)
{
    static const struct {
        const char *language, *code, *status, *reason;
    } runs[] = {{"python", CHILD_TAKES, "limit_exceeded", "memory"},
                {"bash", "exit 137", "failed", "exit_nonzero"},
                {"bash", "kill -9 $$", "failed", "killed_by_signal"},
                {"python", TAKE "take(20)\nprint('ok')", "succeeded", "exit_zero"}};
    for (json_int_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < AR_COUNT(runs); i++)
            client_request(client_, (json_int_t)i + 1, "run",
                           client_params(runs[i].language, runs[i].code, MEMORY));
        for (size_t i = 0; i < AR_COUNT(runs); i++) {
            AR_AUTO_JSON json_t *result = client_result(client_, (json_int_t)i + 1);
            expect(result, runs[i].status, runs[i].reason);
        }
    }
}
END_TEST

START_TEST(who_copes_with_no_memory_succeeds)
{
    AR_AUTO_JSON json_t *result = run("python",
                                      "try:\n    block = bytearray(1 << 50)\n"
                                      "except MemoryError:\n    print('coped')\n",
                                      MEMORY, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "coped\n");
}
END_TEST

/* Less than the making of a sandbox takes: that is the limit, and no fault of the executor's. */
START_TEST(a_run_that_cannot_fit_is_over_its_memory)
{
    AR_AUTO_JSON json_t *result = client_call(
        client_, "run",
        client_params("bash", "echo ran", "{'grant': {'limits': {'memory_bytes': 65536}}}"));
    client_expect(result, "limit_exceeded", "memory");
    rows_expect_result(daemon_ledger(daemon_), result);
    expect_end("bash", "echo ran", MEMORY, "succeeded", "exit_zero");
}
END_TEST

/* ---- processes -------------------------------------------------------------------------------- */

#define PROCESSES "{'grant': {'limits': {'wall_ms': 20000, 'processes': 8}}}"
/* Starts children that wait until it ends; n are there when no more is to be had. */
#define FORKS                                            \
    "import os, time\nn = 0\n"                           \
    "def more():\n"                                      \
    "    global n\n"                                     \
    "    if os.fork() == 0:\n        time.sleep(1000)\n" \
    "    n += 1\n"

START_TEST(more_processes_than_granted_end_the_run)
{
    expect_end("python", FORKS "while True: more()\n", PROCESSES, "limit_exceeded", "processes");
    expect_end(
        "python",
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n",
        PROCESSES, "limit_exceeded", "processes");
    expect_end("bash", "for i in {1..50}; do sleep 1000 & done; wait", PROCESSES, "limit_exceeded",
               "processes");
}
END_TEST

/* Exactly what was granted can be had, and a refusal that is coped with is none of our business. */
START_TEST(who_copes_with_a_refused_process_succeeds)
{
    for (int i = 0; i < 3; i++) {
        AR_AUTO_JSON json_t *result =
            run("python", FORKS "try:\n    while True: more()\nexcept OSError: print(n + 1)\n",
                PROCESSES, "succeeded", "exit_zero");
        ck_assert_str_eq(e2e_stdout(result), "8\n");
    }
    AR_AUTO_JSON json_t *within = run("python", FORKS "for i in range(7): more()\nprint(n + 1)\n",
                                      PROCESSES, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(within), "8\n");
}
END_TEST

/* A bomb that catches its errors goes on until its time is over; one that gives up is over its limit.
 * The next run in the slot is not blamed. */
START_TEST(a_fork_bomb_is_bounded_and_swept)
{
    expect_end("python",
               "import os\n"
               "while True:\n    try: os.fork()\n    except OSError: pass\n",
               "{'grant': {'limits': {'wall_ms': 1500, 'processes': 16, 'cpu_ms': 100000}}}",
               "timed_out", "wall_clock");
    for (int i = 0; i < 6; i++)
        expect_end("bash", "exit 3", PROCESSES, "failed", "exit_nonzero");
}
END_TEST

/* ---- time ------------------------------------------------------------------------------------- */

START_TEST(the_wall_clock_stops_who_waits)
{
    expect_end("bash", "sleep 1000", "{'grant': {'limits': {'wall_ms': 500}}}", "timed_out",
               "wall_clock");
}
END_TEST

START_TEST(processor_time_stops_who_works)
{
    AR_AUTO_JSON json_t *result =
        run("python", "while True: pass\n", LIMITS("'cpu_ms': 300"), "limit_exceeded", "cpu");
    int64_t used = usage_of(result, "user_us") + usage_of(result, "system_us");
    ck_assert_int_ge(used, 280000);
    ck_assert_int_le(used, 900000);
    expect_end("python", "import os\nos.fork()\nos.fork()\nwhile True: pass\n",
               LIMITS("'cpu_ms': 300"), "limit_exceeded", "cpu");
    expect_end("python",
               "import os\nwhile True:\n    if os.fork() == 0:\n"
               "        sum(range(100000)); os._exit(0)\n    os.wait()\n",
               LIMITS("'cpu_ms': 300"), "limit_exceeded", "cpu");
    expect_end("python", "sum(range(100000))", LIMITS("'cpu_ms': 5000"), "succeeded", "exit_zero");
}
END_TEST

/* ---- output, files ---------------------------------------------------------------------------- */

START_TEST(output_is_cut_at_the_limit)
{
    AR_AUTO_JSON json_t *result = run("bash", "while :; do echo 0123456789; done",
                                      LIMITS("'output_bytes': 1000"), "limit_exceeded", "output");
    ck_assert_int_eq(usage_of(result, "output_bytes"), 1000);
    ck_assert_uint_eq(strlen(e2e_stdout(result)), 1000);
    ck_assert(json_is_true(json_object_get(json_object_get(result, "stdout"), "truncated")));
    AR_AUTO_JSON json_t *within =
        run("bash", "printf %01000d 0", LIMITS("'output_bytes': 1000"), "succeeded", "exit_zero");
    ck_assert_int_eq(usage_of(within, "output_bytes"), 1000);
}
END_TEST

/* The kernel does not count refused descriptors: the code sees it, and ends as it likes. */
START_TEST(open_files_are_the_codes_own_matter)
{
    AR_AUTO_JSON json_t *result =
        run("python",
            "files = []\ntry:\n    while True: files.append(open('/dev/null'))\n"
            "except OSError as error: print(error.errno, len(files) <= 32)\n",
            LIMITS("'open_files': 32"), "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "24 True\n");
    expect_end("python", "files = [open('/dev/null') for i in range(100)]",
               LIMITS("'open_files': 32"), "failed", "exit_nonzero");
}
END_TEST

START_TEST(a_full_scratch_is_told)
{
    expect_end("python", "open('big', 'wb').write(bytes(8 << 20))",
               LIMITS("'scratch_bytes': 1048576"), "limit_exceeded", "scratch");
    expect_end("python",
               "try: open('big', 'wb').write(bytes(8 << 20))\nexcept OSError: print('coped')\n",
               LIMITS("'scratch_bytes': 1048576"), "succeeded", "exit_zero");
}
END_TEST

/* ---- what the host does for every executor ----------------------------------------------------- */

/* The provider reports that the code exited 0, whatever happened. */
START_TEST(the_host_holds_limits_whatever_the_executor_does)
{
    static const struct {
        const char *code, *limits, *status, *reason;
    } runs[] = {
        {"burn 60000\nexit 0", "'cpu_ms': 300", "limit_exceeded", "cpu"},
        {"burn 20\nexit 0", "'cpu_ms': 300", "succeeded", "exit_zero"},
        {"eat 200000000\nexit 0", "'memory_bytes': 67108864", "limit_exceeded", "memory"},
        {"eat 20000000\nexit 0", "'memory_bytes': 67108864", "succeeded", "exit_zero"},
        {"signal 9", "'memory_bytes': 67108864", "failed", "killed_by_signal"},
        {"exit 137", "'memory_bytes': 67108864", "failed", "exit_nonzero"},
        {"fork 20", "'processes': 8", "limit_exceeded", "processes"},
        {"fork 20\nsignal 15", "'processes': 8", "limit_exceeded", "processes"},
        {"fork 20\nexit 0", "'processes': 8", "succeeded", "exit_zero"},
        {"fork 8\nexit 0", "'processes': 8", "succeeded", "exit_zero"},
        {"exit 1", "'processes': 8", "failed", "exit_nonzero"},
    };
    static const char *const modes[] = {"no-limits", NULL};
    struct daemon *daemon = fake_daemon(modes, 1, NULL);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(runs); i++) {
        AR_AUTO_FREE char *more = NULL;
        ck_assert_int_gt(
            asprintf(&more, "{'grant': {'limits': {'wall_ms': 20000, %s}}}", runs[i].limits), 0);
        AR_AUTO_JSON json_t *result = fake_run(client, "no-limits", runs[i].code, more);
        client_expect(result, runs[i].status, runs[i].reason);
        expect_usage(result);
        rows_expect_result(daemon_ledger(daemon), result);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* A peak of processes is told when it is the highest of the slot's. */
START_TEST(the_host_knows_a_peak_of_processes)
{
    static const char *const modes[] = {"no-limits", NULL};
    struct daemon *daemon = fake_daemon(modes, 1, NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = fake_run(client, "no-limits", "fork 9\nexit 0", NULL);
    const json_t *peak = json_object_get(json_object_get(result, "usage"), "processes_peak");
    if (peak) /* kernels before 6.11 keep none */
        ck_assert_int_eq(json_integer_value(peak),
                         8); /* one of them is in place of a sandbox's first */
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- who is killed first (C32) ---------------------------------------------------------------- */

static int64_t oom_score(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/oom_score_adj", (long)pid);
    char text[32] = "";
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
    (void)fclose(file);
    return strtoll(text, NULL, 10);
}

START_TEST(runs_are_killed_before_the_daemon)
{
    struct processes below = daemon_processes(daemon_);
    ck_assert_uint_gt(below.count, 0);
    for (size_t i = 0; i < below.count; i++)
        ck_assert_int_gt(oom_score(below.items[i].pid), oom_score(daemon_pid(daemon_)) + 300);
    processes_free(&below);
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

int main(void)
{
    static const TTest *const *const sandboxed[] = {
        &a_child_that_is_killed_for_memory_ends_the_run,
        &the_code_itself_is_killed_for_memory,
        &an_exit_code_of_137_is_one,
        &a_kill_by_itself_is_a_signal,
        &runs_at_the_same_time_are_told_apart,
        &who_copes_with_no_memory_succeeds,
        &a_run_that_cannot_fit_is_over_its_memory,
        &more_processes_than_granted_end_the_run,
        &who_copes_with_a_refused_process_succeeds,
        &a_fork_bomb_is_bounded_and_swept,
        &the_wall_clock_stops_who_waits,
        &processor_time_stops_who_works,
        &output_is_cut_at_the_limit,
        &open_files_are_the_codes_own_matter,
        &a_full_scratch_is_told,
        &runs_are_killed_before_the_daemon,
    };
    Suite *suite = suite_create("limits");
    TCase *limits = e2e_case(suite, "limits");
    tcase_add_unchecked_fixture(limits, open_daemon, close_daemon);
    tcase_add_checked_fixture(limits, open_client, close_client);
    for (size_t i = 0; i < AR_COUNT(sandboxed); i++)
        tcase_add_test(limits, *sandboxed[i]);
    TCase *host = e2e_case(suite, "host");
    tcase_add_test(host, the_host_holds_limits_whatever_the_executor_does);
    tcase_add_test(host, the_host_knows_a_peak_of_processes);
    return e2e_run(suite);
}
