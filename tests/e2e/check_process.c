/*
 * check_process.c - how runs end, whatever their code does.
 *
 * Real daemon, real sandboxes. After every run there is one row that says what the answer said, and
 * nothing of the run lives.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int64_t timed_run(struct client *client, json_t *params, json_t **result)
{
    int64_t start = processes_now_ms();
    *result = client_call(client, "run", params);
    return processes_now_ms() - start;
}

/* ---- how code ends ---------------------------------------------------------------------------- */

static json_t *run_shell(struct client *client, const char *code, const char *more)
{
    return client_call(client, "run", client_params("bash", code, more));
}

START_TEST(an_exit_code_is_only_ever_an_exit_code)
{
    static const struct {
        const char *code, *reason;
        int exit_code, signal;
    } ends[] = {
        {"exit 0", "exit_zero", 0, 0},
        {"exit 1", "exit_nonzero", 1, 0},
        {"exit 137", "exit_nonzero", 137, 0},
        {"exit 143", "exit_nonzero", 143, 0},
        {"exit 255", "exit_nonzero", 255, 0},
        {"kill -9 $$", "killed_by_signal", -1, 9},
        {"kill -TERM $$", "killed_by_signal", -1, 15},
        {"kill -SEGV $$", "killed_by_signal", -1, 11},
    };
    struct daemon_options options = {0};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(ends); i++) {
        AR_AUTO_JSON json_t *result = run_shell(client, ends[i].code, NULL);
        client_expect(result, i == 0 ? "succeeded" : "failed", ends[i].reason);
        const json_t *exit_code = json_object_get(result, "exit_code");
        const json_t *number = json_object_get(result, "signal");
        ck_assert_int_eq(json_is_null(exit_code) ? -1 : json_integer_value(exit_code),
                         ends[i].exit_code);
        ck_assert_int_eq(json_is_null(number) ? 0 : json_integer_value(number), ends[i].signal);
        rows_expect_result(daemon_ledger(daemon), result);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* The host's clock ends what does not end by itself, however it holds out. */
START_TEST(the_wall_clock_ends_everything)
{
    static const char *const codes[] = {
        "while :; do :; done",
        "sleep 100",
        "trap '' TERM INT HUP; while :; do :; done",
        "(setsid bash -c 'trap \"\" TERM; sleep 100' &); trap '' TERM; sleep 100",
        "exec 1>&- 2>&-; sleep 100",
        "kill -STOP $$",
        "while :; do echo x; sleep 0.01; done",
    };
    struct daemon_options options = {0};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(codes); i++) {
        AR_AUTO_JSON json_t *result;
        int64_t took = timed_run(
            client, client_params("bash", codes[i], "{'grant': {'limits': {'wall_ms': 600}}}"),
            &result);
        client_expect(result, "timed_out", "wall_clock");
        ck_assert_int_ge(took, 600);
        ck_assert_int_lt(took, 600 + 1000 + 1500);
        rows_expect_result(daemon_ledger(daemon), result);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(output_is_cut_at_its_cap)
{
    static const struct {
        const char *code;
        bool over;
    } codes[] = {
        {"yes", true},
        {"yes >&2", true},
        {"head -c 99999 /dev/zero | tr '\\0' x", false},
        {"head -c 100000 /dev/zero | tr '\\0' x", false},
        {"head -c 100001 /dev/zero | tr '\\0' x", true},
        {"head -c 50000 /dev/zero | tr '\\0' x; head -c 50001 /dev/zero | tr '\\0' y >&2", true},
    };
    struct daemon_options options = {0};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(codes); i++) {
        AR_AUTO_JSON json_t *result =
            run_shell(client, codes[i].code, "{'grant': {'limits': {'output_bytes': 100000}}}");
        size_t got = strlen(e2e_text(result, "stdout")) + strlen(e2e_text(result, "stderr"));
        client_expect(result, codes[i].over ? "limit_exceeded" : "succeeded",
                      codes[i].over ? "output" : "exit_zero");
        if (codes[i].over)
            ck_assert_uint_eq(got, 100000);
        rows_expect_result(daemon_ledger(daemon), result);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- memory ----------------------------------------------------------------------------------- */

static bool memory_is_limited(struct client *client)
{
    AR_AUTO_JSON json_t *result = client_call(client, "executors", NULL);
    const json_t *first = json_array_get(json_object_get(result, "executors"), 0);
    bool limited = json_object_get(json_object_get(first, "limits"), "memory_bytes") != NULL;
    if (!limited)
        (void)fprintf(stderr, "SKIPPED: no control groups here, memory is not limited\n");
    return limited;
}

#define MEMORY_LIMIT (24 << 20)

static void expect_memory(const struct daemon *daemon, const json_t *result)
{
    client_expect(result, "limit_exceeded", "memory");
    rows_expect_result(daemon_ledger(daemon), result);
    json_int_t peak =
        json_integer_value(json_object_get(json_object_get(result, "usage"), "memory_peak_bytes"));
    ck_assert_int_gt(peak, MEMORY_LIMIT / 2);
    ck_assert_int_le(peak, MEMORY_LIMIT);
}

/* The host's own counter tells, not the exit status and not the provider. */
START_TEST(memory_is_told_by_the_kernel)
{
    static const char grant[] = "{'grant': {'limits': {'memory_bytes': 25165824}}}";
    static const char child[] = "perl -e '$x = \"a\" x 60_000_000'; echo fine; exit 0";
    struct daemon_options options = {0};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    if (memory_is_limited(client)) {
        AR_AUTO_JSON json_t *of_child = run_shell(client, child, grant);
        expect_memory(daemon, of_child);
        client_request(client, 1, "run",
                       client_params("perl", "my $x = 'a' x 60_000_000; print 1;", grant));
        client_request(client, 2, "run", client_params("bash", "exit 137", grant));
        AR_AUTO_JSON json_t *of_itself = client_result(client, 1);
        AR_AUTO_JSON json_t *beside = client_result(client, 2);
        expect_memory(daemon, of_itself);
        client_expect(beside, "failed", "exit_nonzero");
        AR_AUTO_JSON json_t *after = run_shell(client, "kill -9 $$", grant);
        client_expect(after, "failed", "killed_by_signal");
        AR_AUTO_JSON json_t *polite = run_shell(
            client, "ulimit -v 100000; perl -e '$x = \"a\" x 200_000_000' || exit 0", grant);
        client_expect(polite, "succeeded", "exit_zero");
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(memory_is_told_by_the_kernel_whatever_the_provider_says)
{
    static const char *const modes[] = {"well", NULL};
    struct daemon *daemon = fake_daemon(modes, 1, NULL);
    struct client *client = daemon_connect(daemon);
    if (memory_is_limited(client)) {
        fake_expect(daemon, client, "well", "eat 60000000\nexit 0",
                    "{'grant': {'limits': {'memory_bytes': 25165824}}}", "limit_exceeded",
                    "memory");
        fake_expect(daemon, client, "well", "signal 9", NULL, "failed", "killed_by_signal");
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- the program has ended, its pipe has not --------------------------------------------------- */

#define WALL_3S "{'grant': {'limits': {'wall_ms': 3000}}}"

static void expect_end_with_main(const struct daemon *daemon, struct client *client, json_t *params)
{
    AR_AUTO_JSON json_t *result;
    int64_t took = timed_run(client, params, &result);
    ck_assert_uint_eq(processes_marked("outlives-its-run"), 0);
    client_expect(result, "succeeded", "exit_zero");
    rows_expect_result(daemon_ledger(daemon), result);
    ck_assert_int_lt(took, 1000);
}

START_TEST(a_run_ends_with_its_main_process)
{
    struct daemon_options options = {0};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    for (int i = 0; i < 3; i++) {
        expect_end_with_main(
            daemon, client,
            client_params("bash", "(exec -a outlives-its-run sleep 30 &); exit 0", WALL_3S));
        expect_end_with_main(
            daemon, client,
            client_params("bash",
                          "(setsid bash -c 'trap \"\" TERM HUP; while :; do echo a; echo b >&2; "
                          "sleep 1; done' outlives-its-run &); exit 0",
                          WALL_3S));
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* The last bytes of an honest program are there, each time. */
START_TEST(no_byte_of_the_output_is_lost)
{
    static const char write_at_once[] = "io.write(string.rep('x', 307200)) os.exit(0)";
    static const char *const modes[] = {"well", NULL};
    AR_AUTO_FREE char *fake = fake_config(modes, 2, NULL);
    const char *config = strstr(fake, "[executor well]"); /* beside the namespace executor */
    struct daemon_options options = {.config = config};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    const json_int_t count = 100, sandboxed = 40;
    for (json_int_t id = 1; id <= count; id++)
        client_request(client, id, "run", fake_params("well", "spam 307200", NULL));
    for (json_int_t id = count + 1; id <= count + sandboxed; id++)
        client_request(client, id, "run", client_params("lua", write_at_once, NULL));
    for (json_int_t id = 1; id <= count + sandboxed; id++) {
        AR_AUTO_JSON json_t *answer = client_answer_within(client, id, 60000);
        const json_t *result = json_object_get(answer, "result");
        client_expect(result, "succeeded", "exit_zero");
        ck_assert_uint_eq(strlen(e2e_text(result, "stdout")), 307200);
    }
    rows_expect(daemon_ledger(daemon), (size_t)(count + sandboxed));
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("process");
    TCase *ends = e2e_case(suite, "ends");
    tcase_add_test(ends, an_exit_code_is_only_ever_an_exit_code);
    tcase_add_test(ends, the_wall_clock_ends_everything);
    tcase_add_test(ends, output_is_cut_at_its_cap);
    tcase_add_test(ends, memory_is_told_by_the_kernel);
    tcase_add_test(ends, memory_is_told_by_the_kernel_whatever_the_provider_says);
    TCase *pipes = e2e_case(suite, "pipes");
    tcase_add_test(pipes, a_run_ends_with_its_main_process);
    tcase_add_test(pipes, no_byte_of_the_output_is_lost);
    return e2e_run(suite);
}
