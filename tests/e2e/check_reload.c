/*
 * check_reload.c - a configuration that changes while the daemon runs.
 *
 * What is asked for after the reload is judged by the new file; what was under way goes on under the old
 * one; a file that is wrong changes nothing, and is said and recorded.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/events.h"

#include <signal.h>

#define RELOAD_MS 30000

/* ---- reloading ---------------------------------------------------------------------------------- */

static size_t count_in_log(const struct daemon *daemon, const char *words)
{
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    size_t count = 0;
    for (const char *p = log; (p = strstr(p, words)); p += strlen(words))
        count++;
    return count;
}

struct awaited {
    const struct daemon *daemon;
    const char *words;
    size_t more_than;
};

static bool is_said(void *context)
{
    const struct awaited *awaited = context;
    return count_in_log(awaited->daemon, awaited->words) > awaited->more_than;
}

static void hang_up(const struct daemon *daemon)
{
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGHUP), 0);
}

/* Writes the file, has it read, and waits until the log says what became of it. */
static void reload(struct daemon *daemon, const char *config, const char *outcome)
{
    struct awaited awaited = {daemon, outcome, count_in_log(daemon, outcome)};
    daemon_configure(daemon, config);
    hang_up(daemon);
    ck_assert_msg(processes_wait(is_said, &awaited, RELOAD_MS), "the log never said: %s", outcome);
}

static void reload_fake(struct daemon *daemon, const char *more)
{
    AR_AUTO_FREE char *config = e2e_fake(more);
    reload(daemon, config, "reloaded: ");
}

static void expect_last_event(const struct daemon *daemon, size_t count, bool taken)
{
    AR_AUTO_JSON json_t *events =
        events_wait(daemon_ledger(daemon), EVENT_RELOADED, count, RELOAD_MS);
    ck_assert_uint_eq(json_array_size(events), count);
    const json_t *last = json_array_get(events, count - 1);
    ck_assert_int_eq(json_is_true(json_object_get(last, "taken")), taken);
    ck_assert_uint_eq(strlen(json_string_value(json_object_get(last, "config_sha256"))), 64);
}

static void expect_run(struct client *client, const char *more, const char *status,
                       const char *reason)
{
    AR_AUTO_JSON json_t *result =
        client_call(client, "run", client_params("fake", "print 1", more));
    client_expect(result, status, reason);
}

/* ---- what is new counts ------------------------------------------------------------------------- */

START_TEST(companies_limits_and_switches)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    expect_run(client, NULL, "succeeded", "exit_zero");
    reload_fake(daemon, "[company acme]\nenabled = no\n");
    expect_run(client, NULL, "disabled", "company");
    reload_fake(daemon, "[limits]\nmax_wall = 20s\nwall = 7s\n");
    AR_AUTO_JSON json_t *result =
        client_call(client, "run", client_params("fake", "print 1", NULL));
    const json_t *limits = json_object_get(json_object_get(result, "grant"), "limits");
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "wall_ms")), 7000);
    expect_run(client, "{'grant': {'limits': {'wall_ms': 20001}}}", "capability_denied",
               "not_enforceable");
    reload_fake(daemon, "[language fake]\nenabled = no\n");
    expect_run(client, NULL, "disabled", "language");
    expect_last_event(daemon, 3, true);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

static size_t executors_of(struct client *client)
{
    AR_AUTO_JSON json_t *result = client_call(client, "executors", NULL);
    return json_array_size(json_object_get(result, "executors"));
}

static bool have_ended(void *context)
{
    return processes_alive(context) == 0;
}

/* Executors come and go; of one that has gone no process is left. */
START_TEST(executors_come_and_go)
{
    const char *build = getenv("AUDITRUN_BUILD");
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *second = NULL;
    ck_assert_int_gt(asprintf(&second,
                              "[executor second]\nprogram = %s/tests/tools/fake_provider\n"
                              "args = well\n",
                              build),
                     0);
    ck_assert_uint_eq(executors_of(client), 1);
    reload_fake(daemon, second);
    ck_assert_uint_eq(executors_of(client), 2);
    expect_run(client, "{'executor': 'second'}", "succeeded", "exit_zero");
    struct processes before = daemon_processes(daemon);
    reload_fake(daemon, NULL);
    ck_assert_uint_eq(executors_of(client), 1);
    expect_run(client, "{'executor': 'second'}", "capability_denied", "no_executor");
    ck_assert_msg(processes_wait(have_ended, &before, 10000), "providers of the old file live on");
    processes_free(&before);
    /* The one that proves the same is not registered anew. */
    AR_AUTO_JSON json_t *events = events_read(daemon_ledger(daemon), EVENT_EXECUTOR_REGISTERED);
    ck_assert_uint_eq(json_array_size(events), 2);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* A client that is none any more is told so once; what it is owed it gets. */
START_TEST(a_client_that_is_none_any_more)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    struct client *idle = daemon_connect(daemon);
    client_request(client, 1, "run", client_params("fake", "sleep 1500\nprint 1", NULL));
    (void)e2e_status(client, "runs", "running");
    AR_AUTO_FREE char *config =
        e2e_fake("[client local]\n-\n[client other]\nuid = 4242\ncompanies = *\n");
    reload(daemon, config, "reloaded: ");
    for (int i = 0; i < 2; i++) {
        struct client *each = i ? idle : client;
        AR_AUTO_JSON json_t *told = client_next(each);
        client_expect_error(json_object_get(told, "error"), -32002, NULL, NULL);
        ck_assert(json_is_null(json_object_get(told, "id")));
    }
    AR_AUTO_JSON json_t *result = client_result(client, 1);
    client_expect(result, "succeeded", "exit_zero");
    client_expect_end(client);
    client_expect_end(idle);
    rows_expect_result(daemon_ledger(daemon), result);
    client_disconnect(client);
    client_disconnect(idle);
    daemon_free(daemon);
}
END_TEST

/* ---- what was under way keeps what it had ------------------------------------------------------- */

START_TEST(runs_keep_their_configuration)
{
    struct daemon *daemon = e2e_fake_daemon("[limits]\nmax_running = 1\nwall = 9s\n");
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run", client_params("fake", "sleep 3000\nprint 1", NULL));
    client_request(client, 2, "run", client_params("fake", "print 2", NULL)); /* waits */
    ck_assert_int_eq(e2e_status(client, "runs", "total"), 2);
    reload_fake(daemon, "[limits]\nmax_running = 1\nwall = 5s\n");
    client_request(client, 3, "run", client_params("fake", "print 3", NULL));
    for (json_int_t id = 1; id <= 3; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        client_expect(result, "succeeded", "exit_zero");
        const json_t *limits = json_object_get(json_object_get(result, "grant"), "limits");
        ck_assert_int_eq(json_integer_value(json_object_get(limits, "wall_ms")),
                         id < 3 ? 9000 : 5000);
        rows_expect_result(daemon_ledger(daemon), result);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* One runs and goes on; one waits, and is not started any more. */
START_TEST(what_is_switched_off_does_not_start)
{
    struct daemon *daemon = e2e_fake_daemon("[limits]\nmax_running = 1\n");
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run", client_params("fake", "sleep 3000\nprint 1", NULL));
    client_request(client, 2, "run", client_params("fake", "print 2", NULL));
    ck_assert_int_eq(e2e_status(client, "runs", "total"), 2);
    reload_fake(daemon, "[company acme]\nenabled = no\n[limits]\nmax_running = 1\n");
    AR_AUTO_JSON json_t *second = client_result(client, 2);
    client_expect(second, "disabled", "company");
    AR_AUTO_JSON json_t *first = client_result(client, 1);
    client_expect(first, "succeeded", "exit_zero");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* Many reloads in a row under load: every run has its answer and its row, and nothing stays. */
START_TEST(reloads_under_load)
{
    enum { RUNS = 300, HANGUPS = 20 };
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    struct awaited awaited = {daemon, "reloaded: ", 0};
    for (json_int_t id = 1; id <= RUNS; id++) {
        client_request(client, id, "run", client_params("fake", "sleep 10\nprint 1", NULL));
        if (id % (RUNS / HANGUPS) == 0)
            hang_up(daemon);
    }
    for (json_int_t id = 1; id <= RUNS; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        client_expect(result, "succeeded", "exit_zero");
    }
    ck_assert(processes_wait(is_said, &awaited, RELOAD_MS));
    rows_expect(daemon_ledger(daemon), RUNS);
    client_disconnect(client);
    daemon_free(daemon); /* asserts that no process and no control group is left */
}
END_TEST

/* It is told to end while it reads and proves. */
START_TEST(the_end_during_a_reload)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    hang_up(daemon);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    daemon_free(daemon);
}
END_TEST

/* ---- files that are wrong ----------------------------------------------------------------------- */

static const struct {
    const char *more, *said;
} wrong[] = {
    {"[limits]\nwal = 5s\n", "[limits] has no key wal"},
    {"[limits]\nwall = soon\n", "wall must be a time such as 5s or 250ms"},
    {"[executor other]\nprogram = /nonexistent/program\n", "cannot be executed"},
    {"[switch]\nx = 1\n", "there is no section [switch]"},
};

START_TEST(a_wrong_file_changes_nothing)
{
    struct daemon *daemon = e2e_fake_daemon("[limits]\nwall = 8s\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *config = e2e_fake(wrong[_i].more);
    reload(daemon, config, "not reloaded, the configuration in force stays: ");
    ck_assert_uint_eq(count_in_log(daemon, wrong[_i].said), 1);
    ck_assert_uint_eq(count_in_log(daemon, daemon_config(daemon)), 1);
    AR_AUTO_JSON json_t *result =
        client_call(client, "run", client_params("fake", "print 1", NULL));
    client_expect(result, "succeeded", "exit_zero");
    const json_t *limits = json_object_get(json_object_get(result, "grant"), "limits");
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "wall_ms")), 8000);
    AR_AUTO_JSON json_t *started = events_read(daemon_ledger(daemon), EVENT_STARTED);
    AR_AUTO_JSON json_t *events = events_wait(daemon_ledger(daemon), EVENT_RELOADED, 1, RELOAD_MS);
    ck_assert(json_equal(json_object_get(json_array_get(started, 0), "config_sha256"),
                         json_object_get(json_array_get(events, 0), "config_sha256")));
    expect_last_event(daemon, 1, false);
    reload_fake(daemon, NULL); /* mended */
    expect_last_event(daemon, 2, true);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* What is read at the start only is named, and the rest of the file counts. */
START_TEST(what_needs_a_restart_is_said)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    reload_fake(daemon, "[journal]\nmax_size = 64M\n[company acme]\nenabled = no\n");
    ck_assert_uint_eq(
        count_in_log(daemon, "[journal] max_size has changed, and takes effect at the next start"),
        1);
    ck_assert_uint_eq(count_in_log(daemon, "takes effect at the next start"), 1);
    expect_run(client, NULL, "disabled", "company");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {&companies_limits_and_switches,
                                                &executors_come_and_go,
                                                &a_client_that_is_none_any_more,
                                                &runs_keep_their_configuration,
                                                &what_is_switched_off_does_not_start,
                                                &reloads_under_load,
                                                &the_end_during_a_reload,
                                                &what_needs_a_restart_is_said};
    Suite *suite = suite_create("reload");
    TCase *tcase = e2e_case(suite, "reload");
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    tcase_add_loop_test(tcase, a_wrong_file_changes_nothing, 0, AR_COUNT(wrong));
    return e2e_run(suite);
}
