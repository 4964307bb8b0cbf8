/*
 * check_ledger_down.c - the ledger goes away, stalls or comes back while runs are on their way.
 *
 * A run whose record is not committed is never told as a clean end: the caller gets the audit failure
 * with the true status, and the row is there, once, when the ledger is back. While it is known to be
 * down no code is dispatched.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/lib/postgres.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WAIT_MS 20000

static const char *const well[] = {"well", NULL};

static void await_output(struct client *client)
{
    AR_AUTO_JSON json_t *message = client_next(client);
    const char *method = json_string_value(json_object_get(message, "method"));
    ck_assert_msg(method && strcmp(method, "output") == 0, "%s", client_last_line(client));
}

static bool ledger_state_is(struct client *client, const char *word)
{
    AR_AUTO_JSON json_t *status = client_call(client, "status", NULL);
    const json_t *ledger = json_object_get(status, "ledger");
    return strcmp(json_string_value(json_object_get(ledger, "state")), word) == 0;
}

static bool ledger_is_down(void *context)
{
    return ledger_state_is(context, "down");
}

static bool ledger_is_up(void *context)
{
    return ledger_state_is(context, "up");
}

/* The audit failure of a run: its true end inside, and the record safe. The id of the run. */
static const char *expect_audit_failure(const json_t *error, const char *status, const char *reason)
{
    client_expect_error(error, -32001, NULL, NULL);
    const json_t *data = json_object_get(error, "data");
    ck_assert_str_eq(json_string_value(json_object_get(data, "terminal_status")), status);
    ck_assert_str_eq(json_string_value(json_object_get(data, "terminal_reason")), reason);
    ck_assert(json_is_true(json_object_get(data, "kept")));
    return json_string_value(json_object_get(data, "run_id"));
}

static void expect_late_row(const struct daemon *daemon, const char *run_id, enum reason reason)
{
    struct rows rows = rows_wait(daemon_ledger(daemon), 1, WAIT_MS);
    const struct record *record = rows_find(&rows, run_id);
    ck_assert_int_eq(record->reason, reason);
    ck_assert(record->late);
    rows_free(&rows);
}

/* ---- PostgreSQL --------------------------------------------------------------------------------- */

static struct daemon *postgres_daemon(struct postgres_server *server, const char *more)
{
    AR_AUTO_FREE char *config = fake_config(well, 4, more);
    struct daemon_options options = {.config = config, .ledger_url = postgres_url(server)};
    return daemon_new(&options);
}

START_TEST(a_database_that_stops_in_a_run)
{
    struct postgres_server *server = postgres_start();
    ck_assert_ptr_nonnull(server);
    struct daemon *daemon = postgres_daemon(server, "[ledger]\ndeadline = 2s\n");
    struct client *client = daemon_connect(daemon);
    fake_expect(daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");

    client_request(client, 1, "run",
                   fake_params("well", "print up\nsleep 500\nexit 5", "{'stream': true}"));
    await_output(client);
    postgres_stop_immediate(server);
    AR_AUTO_JSON json_t *answer = client_answer(client, 1);
    AR_AUTO_FREE char *run_id =
        strdup(expect_audit_failure(json_object_get(answer, "error"), "failed", "exit_nonzero"));
    ck_assert(processes_wait(ledger_is_down, client, WAIT_MS));

    /* Nothing is dispatched: the code would say so. */
    AR_AUTO_JSON json_t *error =
        client_fail(client, "run", fake_params("well", "print dispatched", "{'stream': true}"));
    AR_AUTO_FREE char *refused = strdup(expect_audit_failure(error, "refused", "overloaded"));

    ck_assert(postgres_start_again(server));
    ck_assert(processes_wait(ledger_is_up, client, WAIT_MS));
    struct rows rows = rows_wait(daemon_ledger(daemon), 3, WAIT_MS);
    rows_free(&rows);
    rows_expect(daemon_ledger(daemon), 3);
    expect_late_row(daemon, run_id, REASON_EXIT_NONZERO);
    expect_late_row(daemon, refused, REASON_OVERLOADED);
    AR_AUTO_JSON json_t *found =
        client_call(client, "record", json_pack("{s:s}", "run_id", run_id));
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(found, "record"), "run_id")),
                     run_id);
    fake_expect(daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");
    rows_expect(daemon_ledger(daemon), 4);
    client_disconnect(client);
    daemon_free(daemon);
    postgres_free(server);
}
END_TEST

/* Many runs at once, the database killed and started under them: each has one row at the end, and no
 * success was told that is not in the table. */
START_TEST(a_database_that_comes_and_goes)
{
    struct postgres_server *server = postgres_start();
    ck_assert_ptr_nonnull(server);
    struct daemon *daemon = postgres_daemon(server, "[ledger]\ndeadline = 1s\nwhen_down = keep\n");
    struct client *client = daemon_connect(daemon);
    enum { ROUNDS = 4, AT_ONCE = 24 };
    json_int_t id = 0;
    char *told[ROUNDS * AT_ONCE] = {NULL};
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            client_request(client, ++id, "run", fake_params("well", "print x\nsleep 5", NULL));
        AR_AUTO_JSON json_t *first = client_answer(client, id - AT_ONCE + 1);
        ck_assert_ptr_nonnull(first);
        postgres_stop_immediate(server);
        for (int i = 1; i < AT_ONCE; i++) {
            AR_AUTO_JSON json_t *answer = client_answer(client, id - AT_ONCE + 1 + i);
            const json_t *result = json_object_get(answer, "result");
            if (result)
                told[round * AT_ONCE + i] =
                    strdup(json_string_value(json_object_get(result, "run_id")));
            else
                (void)expect_audit_failure(json_object_get(answer, "error"), "succeeded",
                                           "exit_zero");
        }
        ck_assert(postgres_start_again(server));
        ck_assert(processes_wait(ledger_is_up, client, WAIT_MS));
    }
    struct rows rows = rows_wait(daemon_ledger(daemon), (size_t)id, WAIT_MS);
    ck_assert_uint_eq(rows.count, (size_t)id);
    for (size_t i = 0; i < AR_COUNT(told); i++) {
        if (told[i])
            (void)rows_find(&rows, told[i]);
        free(told[i]);
    }
    rows_free(&rows);
    client_disconnect(client);
    daemon_free(daemon);
    postgres_free(server);
}
END_TEST

/* Sends a signal to every backend that serves a client other than us. */
static void signal_backends(const char *url, int number, char **list)
{
    char *save = NULL;
    if (!*list)
        *list = postgres_sql(url, "select string_agg(pid::text, ' ') from pg_stat_activity where "
                                  "backend_type = 'client backend' and pid <> pg_backend_pid()");
    ck_assert_ptr_nonnull(*list);
    AR_AUTO_FREE char *copy = strdup(*list);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        ck_assert_int_eq(kill((pid_t)strtol(word, NULL, 10), number), 0);
}

/* A backend that stands still for longer than the deadline and then goes on: its late COMMIT and the
 * daemon's next attempt do not both win. */
START_TEST(a_database_that_stands_still)
{
    struct postgres_server *server = postgres_start();
    ck_assert_ptr_nonnull(server);
    struct daemon *daemon = postgres_daemon(server, "[ledger]\ndeadline = 1s\n");
    struct client *client = daemon_connect(daemon);
    fake_expect(daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");
    AR_AUTO_FREE char *backends = NULL;
    signal_backends(daemon_ledger(daemon), SIGSTOP, &backends);
    AR_AUTO_JSON json_t *error = client_fail(client, "run", fake_params("well", "exit 4", NULL));
    AR_AUTO_FREE char *run_id = strdup(expect_audit_failure(error, "failed", "exit_nonzero"));
    signal_backends(daemon_ledger(daemon), SIGCONT, &backends);
    ck_assert(processes_wait(ledger_is_up, client, WAIT_MS));
    struct rows rows = rows_wait(daemon_ledger(daemon), 2, WAIT_MS);
    ck_assert_int_eq(rows_find(&rows, run_id)->reason, REASON_EXIT_NONZERO);
    rows_free(&rows);
    fake_expect(daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");
    rows_expect(daemon_ledger(daemon), 3);
    client_disconnect(client);
    daemon_free(daemon);
    postgres_free(server);
}
END_TEST

/* ---- SQLite ------------------------------------------------------------------------------------- */

START_TEST(a_ledger_file_that_is_moved_away)
{
    struct daemon *daemon = fake_daemon(well, 2, "[ledger]\ndeadline = 1s\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *ledger = daemon_path(daemon, "ledger.db");
    AR_AUTO_FREE char *away = daemon_path(daemon, "ledger.away");
    fake_expect(daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");
    ck_assert_int_eq(rename(ledger, away), 0);
    AR_AUTO_JSON json_t *error = client_fail(client, "run", fake_params("well", "exit 4", NULL));
    AR_AUTO_FREE char *run_id = strdup(expect_audit_failure(error, "failed", "exit_nonzero"));
    ck_assert(processes_wait(ledger_is_down, client, WAIT_MS));
    AR_AUTO_JSON json_t *refused = client_fail(client, "run", fake_params("well", "exit 4", NULL));
    (void)expect_audit_failure(refused, "refused", "overloaded");
    ck_assert_int_ne(access(ledger, F_OK), 0); /* no empty ledger in its place */
    ck_assert_int_eq(rename(away, ledger), 0);
    struct rows rows = rows_wait(daemon_ledger(daemon), 3, WAIT_MS);
    rows_free(&rows);
    expect_late_row(daemon, run_id, REASON_EXIT_NONZERO);
    rows_expect(daemon_ledger(daemon), 3);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* Somebody holds the file for longer than the deadline. */
START_TEST(a_ledger_file_that_is_locked)
{
    struct daemon *daemon = fake_daemon(well, 2, "[ledger]\ndeadline = 500ms\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *ledger = daemon_path(daemon, "ledger.db");
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(ledger, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_busy_timeout(db, WAIT_MS), SQLITE_OK); /* the daemon notes its start */
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    AR_AUTO_JSON json_t *error = client_fail(client, "run", fake_params("well", "exit 4", NULL));
    AR_AUTO_FREE char *run_id = strdup(expect_audit_failure(error, "failed", "exit_nonzero"));
    ck_assert_int_eq(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    expect_late_row(daemon, run_id, REASON_EXIT_NONZERO);
    ck_assert(processes_wait(ledger_is_up, client, WAIT_MS));
    fake_expect(daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");
    rows_expect(daemon_ledger(daemon), 2);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* The operator prefers runs to refusals: they run, and are recorded when the ledger is back. */
START_TEST(runs_can_be_kept_while_it_is_down)
{
    struct daemon *daemon = fake_daemon(well, 2, "[ledger]\ndeadline = 1s\nwhen_down = keep\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *ledger = daemon_path(daemon, "ledger.db");
    AR_AUTO_FREE char *away = daemon_path(daemon, "ledger.away");
    ck_assert_int_eq(rename(ledger, away), 0);
    for (int i = 0; i < 10; i++) {
        AR_AUTO_JSON json_t *error =
            client_fail(client, "run", fake_params("well", "exit 4", NULL));
        (void)expect_audit_failure(error, "failed", "exit_nonzero");
    }
    ck_assert_int_eq(rename(away, ledger), 0);
    struct rows rows = rows_wait(daemon_ledger(daemon), 10, WAIT_MS);
    ck_assert_uint_eq(rows_count(&rows, STATUS_FAILED, REASON_EXIT_NONZERO), 10);
    rows_free(&rows);
    rows_expect(daemon_ledger(daemon), 10);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- main --------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("ledger down");
    TCase *postgres = e2e_case(suite, "postgres");
    tcase_add_test(postgres, a_database_that_stops_in_a_run);
    tcase_add_test(postgres, a_database_that_comes_and_goes);
    tcase_add_test(postgres, a_database_that_stands_still);
    TCase *sqlite = e2e_case(suite, "sqlite");
    tcase_add_test(sqlite, a_ledger_file_that_is_moved_away);
    tcase_add_test(sqlite, a_ledger_file_that_is_locked);
    tcase_add_test(sqlite, runs_can_be_kept_while_it_is_down);
    return e2e_run(suite);
}
