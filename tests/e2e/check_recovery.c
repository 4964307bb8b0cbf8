/*
 * check_recovery.c - the daemon is killed, told to go, or started again: every run ends as one row.
 *
 * What a daemon that was killed leaves behind goes away by itself or with the next start, and each
 * intent without an end becomes `interrupted`. (check_crash.c kills it at chosen points; what the ledger
 * does meanwhile is in check_ledger_down.c, what becomes of a damaged journal in
 * check_journal_damage.c.)
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define WAIT_MS 20000
#define AT_ONCE 64

static const char *const well[] = {"well", NULL};

/* Waits until count runs have said something: they are running. */
static void await_output(struct client *client, int count)
{
    while (count > 0) {
        AR_AUTO_JSON json_t *message = client_next(client);
        const char *method = json_string_value(json_object_get(message, "method"));
        ck_assert_msg(method && strcmp(method, "output") == 0, "%s", client_last_line(client));
        count--;
    }
}

static void expect_rows(const struct daemon *daemon, size_t count, enum reason reason, bool late)
{
    struct rows rows = rows_wait(daemon_ledger(daemon), count, WAIT_MS);
    ck_assert_uint_eq(rows.count, count);
    ck_assert_uint_eq(rows_count(&rows, STATUS_NONE, reason), count);
    for (size_t i = 0; i < rows.count; i++)
        ck_assert_int_eq(rows.items[i]->late, late);
    rows_free(&rows);
}

/* ---- kill -9 in the middle ---------------------------------------------------------------------- */

#define SANDBOXED                                                               \
    "{'stream': true, 'grant': {'limits': {'wall_ms': 60000, 'processes': 16, " \
    "'memory_bytes': 33554432}}}"

static bool survivor_lives(void *context)
{
    (void)context;
    return processes_marked("survives-daemon") > 0;
}

START_TEST(a_run_that_is_cut_off_is_interrupted_once)
{
    struct daemon_options options = {0};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    client_request(
        client, 1, "run",
        client_params("bash",
                      "(setsid bash -c 'trap \"\" TERM HUP; exec -a survives-daemon sleep "
                      "100' &); echo up; sleep 100",
                      SANDBOXED));
    await_output(client, 1);
    ck_assert(processes_wait(survivor_lives, NULL, WAIT_MS));
    daemon_kill9(daemon);
    daemon_expect_nothing(daemon, 2000);
    ck_assert_uint_eq(processes_marked("survives-daemon"), 0);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 0);

    for (int i = 0; i < 2; i++) { /* a second start finds nothing more to do */
        daemon_start_again(daemon);
        expect_rows(daemon, 1, REASON_HOST_RESTARTED, true);
        ck_assert_int_eq(daemon_terminate(daemon), 0);
    }
    daemon_free(daemon);
}
END_TEST

START_TEST(many_runs_that_are_cut_off_are_interrupted_once_each)
{
    struct daemon_options options = {.config = "[executor namespace]\nslots = 32\n"};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    for (json_int_t id = 1; id <= 32; id++)
        client_request(client, id, "run", client_params("bash", "echo up; sleep 100", SANDBOXED));
    await_output(client, 32);
    daemon_kill9(daemon);
    daemon_expect_nothing(daemon, 2000);
    client_disconnect(client);
    daemon_start_again(daemon);
    expect_rows(daemon, 32, REASON_HOST_RESTARTED, true);
    client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *after =
        client_call(client, "run", client_params("bash", "echo again", NULL));
    client_expect(after, "succeeded", "exit_zero");
    rows_expect(daemon_ledger(daemon), 33);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* What a provider without a sandbox leaves is swept by the next start, before it serves. */
START_TEST(the_next_start_sweeps)
{
    struct daemon *daemon = fake_daemon(well, 2, NULL);
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run",
                   fake_params("well", "outlive\nprint up\nsleep 60000",
                               "{'stream': true, 'grant': {'limits': {'wall_ms': 60000}}}"));
    await_output(client, 1);
    daemon_kill9(daemon);
    client_disconnect(client);
    daemon_start_again(daemon);
    daemon_expect_nothing(daemon, 2000);
    expect_rows(daemon, 1, REASON_HOST_RESTARTED, true);
    daemon_free(daemon);
}
END_TEST

/* ---- told to go --------------------------------------------------------------------------------- */

static bool is_draining(void *context)
{
    AR_AUTO_JSON json_t *status = client_call(context, "status", NULL);
    return json_is_true(json_object_get(status, "draining"));
}

START_TEST(a_daemon_that_is_told_to_go_lets_its_runs_end)
{
    struct daemon *daemon = fake_daemon(well, 2, NULL);
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run",
                   fake_params("well", "print up\nsleep 1000\nexit 3", "{'stream': true}"));
    await_output(client, 1);
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGTERM), 0);
    ck_assert(processes_wait(is_draining, client, WAIT_MS));
    AR_AUTO_JSON json_t *refused = fake_run(client, "well", "print late", NULL);
    client_expect(refused, "refused", "draining");
    AR_AUTO_JSON json_t *ended = client_result(client, 1);
    client_expect(ended, "failed", "exit_nonzero");
    client_expect_end(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    rows_expect_result(daemon_ledger(daemon), refused);
    rows_expect_result(daemon_ledger(daemon), ended);
    rows_expect(daemon_ledger(daemon), 2);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* False when the connection has ended. */
static bool try_run(struct client *client, json_int_t id)
{
    AR_AUTO_JSON json_t *request =
        json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", id, "method", "run", "params",
                  fake_params("well", "print late", NULL));
    AR_AUTO_FREE char *text = json_dumps(request, JSON_COMPACT);
    AR_AUTO_FREE char *line = NULL;
    ck_assert_int_gt(asprintf(&line, "%s\n", text), 0);
    return send(client_fd(client), line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line);
}

/* Asks again and again until the daemon has gone: how many answers came. */
static size_t ask_until_the_end(struct client *client)
{
    size_t answers = 0;
    json_int_t id = 1;
    while (id <= AT_ONCE && try_run(client, id))
        id++;
    for (;;) {
        AR_AUTO_JSON json_t *answer = client_next_within(client, WAIT_MS);
        if (!answer)
            break;
        ck_assert_ptr_nonnull(json_object_get(answer, "result"));
        answers++;
        if (try_run(client, id))
            id++;
    }
    return answers;
}

/* The last that are asked for are answered, or were never taken: there is no row that nobody was told of. */
START_TEST(who_asks_until_the_end_has_an_answer_for_each_row)
{
    for (int round = 0; round < 4; round++) {
        struct daemon *daemon = fake_daemon(well, 2, NULL);
        struct client *holder = daemon_connect(daemon), *client = daemon_connect(daemon);
        client_request(holder, 1, "run",
                       fake_params("well", "print up\nsleep 200", "{'stream': true}"));
        await_output(holder, 1);
        ck_assert_int_eq(kill(daemon_pid(daemon), SIGTERM), 0);
        const size_t answers = ask_until_the_end(client);
        AR_AUTO_JSON json_t *ended = client_result(holder, 1);
        client_expect(ended, "succeeded", "exit_zero");
        ck_assert_int_eq(daemon_wait(daemon), 0);
        rows_expect(daemon_ledger(daemon), answers + 1);
        client_disconnect(client);
        client_disconnect(holder);
        daemon_free(daemon);
    }
}
END_TEST

/* With nothing under way any more, who is owed nothing is let go, though another reads slowly; and that one
 * gets all of its answer. */
START_TEST(who_is_owed_nothing_is_let_go_before_the_end)
{
    struct daemon *daemon = fake_daemon(well, 2, NULL);
    struct client *owed = daemon_connect(daemon), *idle = daemon_connect(daemon);
    client_request(owed, 1, "run",
                   fake_params("well", "print up\nsleep 200\nspam 900000", "{'stream': true}"));
    await_output(owed, 1);
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGTERM), 0);
    client_expect_end(idle);
    AR_AUTO_JSON json_t *result = client_result(owed, 1);
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_int_eq(daemon_wait(daemon), 0);
    rows_expect(daemon_ledger(daemon), 1);
    client_disconnect(owed);
    client_disconnect(idle);
    daemon_free(daemon);
}
END_TEST

/* One that would end, one that would not, and one that waits for its turn. */
START_TEST(a_daemon_that_has_waited_long_enough_stops_its_runs)
{
    static const char *const modes[] = {"well", "stubborn", NULL};
    struct daemon *daemon = fake_daemon(modes, 1, "[daemon]\ndrain_timeout = 300ms\n");
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run",
                   fake_params("well", "print up\nsleep 9000", "{'stream': true}"));
    client_request(client, 2, "run",
                   fake_params("stubborn", "print up\nfault", "{'stream': true}"));
    await_output(client, 2);
    client_request(client, 3, "run", fake_params("well", "print queued", NULL));
    int64_t start = processes_now_ms();
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGTERM), 0);
    for (json_int_t id = 1; id <= 3; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        client_expect(result, "cancelled", "shutdown");
    }
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_lt(processes_now_ms() - start, 300 + 1000 + 2500);
    expect_rows(daemon, 3, REASON_SHUTDOWN, false);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- the journal -------------------------------------------------------------------------------- */

START_TEST(a_journal_has_one_daemon)
{
    struct daemon *daemon = fake_daemon(well, 1, NULL);
    struct daemon_options options = {0};
    struct daemon *second = daemon_prepare(&options);
    AR_AUTO_FREE char *config = NULL;
    ck_assert_int_gt(asprintf(&config, "[journal]\ndirectory = %s\n", daemon_journal(daemon)), 0);
    daemon_configure(second, config);
    ck_assert_int_ne(daemon_start_in_vain(second), 0);
    AR_AUTO_FREE char *log = daemon_read_log(second);
    ck_assert_ptr_nonnull(strstr(log, "another daemon uses the journal"));
    struct client *client = daemon_connect(daemon);
    fake_expect(daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");
    client_disconnect(client);
    daemon_free(second);
    daemon_free(daemon);
}
END_TEST

/* ---- main --------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("recovery");
    TCase *killed = e2e_case(suite, "killed");
    tcase_add_test(killed, a_run_that_is_cut_off_is_interrupted_once);
    tcase_add_test(killed, many_runs_that_are_cut_off_are_interrupted_once_each);
    tcase_add_test(killed, the_next_start_sweeps);
    TCase *told = e2e_case(suite, "told to go");
    tcase_add_test(told, a_daemon_that_is_told_to_go_lets_its_runs_end);
    tcase_add_test(told, who_asks_until_the_end_has_an_answer_for_each_row);
    tcase_add_test(told, who_is_owed_nothing_is_let_go_before_the_end);
    tcase_add_test(told, a_daemon_that_has_waited_long_enough_stops_its_runs);
    TCase *journal = e2e_case(suite, "journal");
    tcase_add_test(journal, a_journal_has_one_daemon);
    return e2e_run(suite);
}
