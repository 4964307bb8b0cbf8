/*
 * check_sink_faults.c - what a store does to its sink: it is locked, stopped, gone, back again, has
 * no schema, says COMMIT but warns. Whatever comes, an outcome is true: stored is there, not stored
 * never comes, unknown is asked for.
 */
#include "sinks/memory.h"
#include "sinks/schema.h"
#include "tests/contract/server.h"
#include "tests/lib/ledger.h"
#include "tests/suite.h"

#include <check.h>
#include <event2/event.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define SHORT_MS 700

static bool is_there(struct ledger *ledger, const struct record *record)
{
    AR_CLEANUP(record_cleanup) struct record *found = NULL;
    const struct sink_key key = {.run_id = record->run_id};
    enum sink_answer answer = ledger_find(ledger, &key, &found);
    ck_assert_int_ne(answer, SINK_FAILED);
    return answer == SINK_FOUND && strcmp(found->row_hash, record->row_hash) == 0;
}

/* Probes until the store is up: reconnecting takes its pauses. */
static void wait_until_up(struct ledger *ledger)
{
    for (int i = 0; i < 200; i++)
        if (ledger_probe(ledger, LEDGER_DEADLINE_MS))
            return;
    ck_abort_msg("the store does not come up");
}

/* Appends one record until it is stored, as a ledger does after a fault. */
static void append_at_last(struct ledger *ledger, const struct sink_head *head,
                           struct record *record)
{
    wait_until_up(ledger);
    ck_assert_int_eq(ledger_append(ledger, head, &record, 1, LEDGER_DEADLINE_MS).outcome,
                     SINK_STORED);
    ck_assert(is_there(ledger, record));
}

/* ---- memory --------------------------------------------------------------------------------- */

START_TEST(test_memory_faults_on_cue)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    ledger_begin(&ledger, LEDGER_MEMORY, NULL);
    records_begin(&chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    static const struct {
        enum memory_fault fault;
        enum sink_outcome outcome;
        bool there;
    } cues[] = {{MEMORY_FAILS, SINK_NOT_STORED, false},
                {MEMORY_STALLS, SINK_NOT_STORED, false},
                {MEMORY_LOSES_BATCH, SINK_UNKNOWN, false},
                {MEMORY_LOSES_ANSWER, SINK_UNKNOWN, true},
                {MEMORY_WORKS, SINK_CONFLICT, true}};
    for (size_t i = 0; i < AR_COUNT(cues); i++) {
        memory_set_fault(ledger.sink, cues[i].fault, 1);
        ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, 10).outcome, cues[i].outcome);
        ck_assert(is_there(&ledger, record) == cues[i].there);
    }
    ck_assert_uint_eq(memory_count(ledger.sink), 1);
    ck_assert_uint_eq(memory_appends(ledger.sink), AR_COUNT(cues));
    ck_assert(records_same(memory_record(ledger.sink, 0), record));
    memory_forget(ledger.sink, 1);
    ck_assert_int_eq(memory_refuse_company(ledger.sink, "acme"), 0);
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, 10).outcome, SINK_REFUSED);
    ck_assert_int_eq(memory_refuse_company(ledger.sink, NULL), 0);
    append_at_last(&ledger, &head, record);
    memory_set_fault(ledger.sink, MEMORY_FAILS, -1);
    for (int i = 0; i < 3; i++)
        ck_assert(!ledger_probe(&ledger, 10));
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* ---- SQLite --------------------------------------------------------------------------------- */

static const char *file_of(const struct ledger *ledger)
{
    return ledger->url + strlen("sqlite:");
}

/* Somebody else holds the lock for writing: not stored, and queries are served meanwhile. */
START_TEST(test_locked_database)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    sqlite3 *other = NULL;
    struct sink_head found;
    ledger_begin(&ledger, LEDGER_SQLITE, NULL);
    records_begin(&chain, 1);
    ledger_grow(&ledger, &chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    ck_assert_int_eq(sqlite3_open(file_of(&ledger), &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, SHORT_MS).outcome, SINK_NOT_STORED);
    ck_assert(!ledger_probe(&ledger, 50));
    ck_assert_int_eq(ledger_head(&ledger, chain.writer, &found), SINK_FOUND);
    ck_assert_int_eq(found.seq, 1);
    ck_assert_int_eq(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
    append_at_last(&ledger, &head, record);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

struct racer {
    bool done;
    enum sink_outcome outcome;
};

static void racer_done(void *context, enum sink_outcome outcome, size_t bad)
{
    struct racer *racer = context;
    (void)bad;
    racer->outcome = outcome;
    racer->done = true;
}

/* Closing while a batch waits for the lock: it says not stored, and it is not. */
START_TEST(test_close_while_locked)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    struct racer racer = {0};
    sqlite3 *other = NULL;
    ledger_begin(&ledger, LEDGER_SQLITE, NULL);
    records_begin(&chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    wait_until_up(&ledger);
    ck_assert_int_eq(sqlite3_open(file_of(&ledger), &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    const struct sink_batch batch = {
        .writer = chain.writer, .head = head, .records = &record, .record_count = 1};
    ledger.sink->ops->append(ledger.sink, &batch, LEDGER_DEADLINE_MS, racer_done, &racer);
    ledger_reopen(&ledger);
    ck_assert(racer.done);
    ck_assert_int_eq(racer.outcome, SINK_NOT_STORED);
    ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
    ck_assert(!is_there(&ledger, record));
    append_at_last(&ledger, &head, record);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* A file that was moved away is not written to any more; one that is there again is used. */
START_TEST(test_moved_file)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    char moved[POSTGRES_URL_BYTES + 8], path[POSTGRES_URL_BYTES + 8];
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    ledger_begin(&ledger, LEDGER_SQLITE, NULL);
    records_begin(&chain, 1);
    ledger_grow(&ledger, &chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    for (size_t i = 0; i < AR_COUNT(suffixes); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", file_of(&ledger), suffixes[i]);
        (void)snprintf(moved, sizeof(moved), "%s.moved%s", file_of(&ledger), suffixes[i]);
        (void)rename(path, moved);
    }
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, LEDGER_DEADLINE_MS).outcome,
                     SINK_NOT_STORED);
    ck_assert(!ledger_probe(&ledger, LEDGER_DEADLINE_MS));
    for (size_t i = 0; i < AR_COUNT(suffixes); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", file_of(&ledger), suffixes[i]);
        (void)snprintf(moved, sizeof(moved), "%s.moved%s", file_of(&ledger), suffixes[i]);
        (void)rename(moved, path);
    }
    append_at_last(&ledger, &head, record);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_store_without_schema)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    struct sink_head head;
    char url[POSTGRES_URL_BYTES], message[SCHEMA_MESSAGE_BYTES];
    int applied;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 1);
    head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    (void)snprintf(url, sizeof(url), "sqlite:%s/other.db", ledger.folder);
    if (_i == LEDGER_POSTGRES)
        ck_assert(postgres_new_database(server, url));
    sink_close(ledger.sink);
    ck_assert_int_eq(sink_open(url, ledger.base, &ledger.sink), 0);
    for (int i = 0; i < 3; i++)
        ck_assert(!ledger_probe(&ledger, LEDGER_DEADLINE_MS));
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, SHORT_MS).outcome, SINK_NOT_STORED);
    ck_assert_int_eq(schema_init(url, &applied, message), 0);
    append_at_last(&ledger, &head, record);
    record_free(record);
    sink_close(ledger.sink);
    ledger.sink = NULL;
    if (_i == LEDGER_SQLITE)
        (void)unlink(url + strlen("sqlite:"));
    ledger_end(&ledger);
}
END_TEST

/* ---- PostgreSQL: a server that stops ---------------------------------------------------------- */

/* Sends a signal to the backends of the sink. */
static void signal_backends(const struct ledger *ledger, int number)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity "
                   "WHERE application_name = 'auditrund' AND datname = current_database()");
    AR_AUTO_FREE char *pids = postgres_sql(ledger->url, sql);
    ck_assert_ptr_nonnull(pids);
    char *rest = pids;
    char *pid;
    ck_assert_str_ne(pids, "");
    while ((pid = strsep(&rest, " ")))
        ck_assert_int_eq(kill((pid_t)strtol(pid, NULL, 10), number), 0);
}

START_TEST(test_stopped_backend)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    struct sink_head head, found;
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    records_begin(&chain, 1);
    ledger_grow(&ledger, &chain, 1);
    head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    ck_assert_int_eq(ledger_head(&ledger, chain.writer, &found), SINK_FOUND);
    signal_backends(&ledger, SIGSTOP);
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, SHORT_MS).outcome, SINK_NOT_STORED);
    signal_backends(&ledger, SIGCONT);
    append_at_last(&ledger, &head, record);
    ledger_expect_sound(&ledger, 2, 1);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

static PGconn *hold(const struct ledger *ledger, const char *sql)
{
    PGconn *pg = PQconnectdb(ledger->url + strlen("postgres:"));
    ck_assert_int_eq(PQstatus(pg), CONNECTION_OK);
    PGresult *result = PQexec(pg, sql);
    ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK ||
                      PQresultStatus(result) == PGRES_TUPLES_OK,
                  "%s", PQerrorMessage(pg));
    PQclear(result);
    return pg;
}

/* The rows wait for a lock: COMMIT was never sent. */
START_TEST(test_deadline_before_commit)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    records_begin(&chain, 1);
    ledger_grow(&ledger, &chain, 1);
    struct sink_head head = ledger_chain_head(&chain), found;
    records_fill(&chain, &record, 1);
    PGconn *holder = hold(&ledger, "BEGIN; LOCK TABLE auditrun.runs IN SHARE MODE");
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, SHORT_MS).outcome, SINK_NOT_STORED);
    ck_assert_int_eq(ledger_head(&ledger, chain.writer, &found), SINK_FOUND);
    ck_assert_int_eq(found.seq, 1);
    PQfinish(holder);
    append_at_last(&ledger, &head, record);
    ledger_expect_sound(&ledger, 2, 1);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* Triggers of a test's own; the ledger would refuse them. */
#define MAKE_ROOM "SELECT auditrun_guard.drop_event_triggers();"

/* COMMIT itself waits, for a lock that the test holds. */
static const char slow_commit[] = MAKE_ROOM
    "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "PERFORM pg_advisory_xact_lock_shared(42); RETURN NULL; END $$;"
    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON auditrun.runs DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION slow()";

/* Its deadline passes in the middle of COMMIT: unknown, and a find tells in the end. */
START_TEST(test_deadline_in_commit)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    records_begin(&chain, 1);
    ledger_grow(&ledger, &chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    ck_assert(postgres_run(ledger.url, slow_commit));
    PGconn *holder = hold(&ledger, "SELECT pg_advisory_lock(42)");
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, 5000).outcome, SINK_UNKNOWN);
    ck_assert(!is_there(&ledger, record));
    PQfinish(holder);
    /* The old backend may still commit, or notice that nobody is there. Whichever wins, a second
     * attempt is stored or in conflict, and the row is there once. */
    wait_until_up(&ledger);
    enum sink_outcome second =
        ledger_append(&ledger, &head, &record, 1, LEDGER_DEADLINE_MS).outcome;
    ck_assert(second == SINK_STORED || second == SINK_CONFLICT);
    ck_assert(is_there(&ledger, record));
    ledger_expect_sound(&ledger, 2, 1);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* The backend is killed while it carries out COMMIT. */
START_TEST(test_backend_killed_in_commit)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    struct racer racer = {0};
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    records_begin(&chain, 1);
    ledger_grow(&ledger, &chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    ck_assert(postgres_run(ledger.url, slow_commit));
    PGconn *holder = hold(&ledger, "SELECT pg_advisory_lock(42)");
    const struct sink_batch batch = {
        .writer = chain.writer, .head = head, .records = &record, .record_count = 1};
    ledger.sink->ops->append(ledger.sink, &batch, LEDGER_DEADLINE_MS, racer_done, &racer);
    for (bool waiting = false; !waiting;) {
        ck_assert_int_ge(event_base_loop(ledger.base, EVLOOP_NONBLOCK), 0);
        AR_AUTO_FREE char *waits = postgres_sql(
            ledger.url, "SELECT count(*) FROM pg_stat_activity WHERE query = 'COMMIT' "
                        "AND wait_event = 'advisory' AND datname = current_database()");
        waiting = waits && strcmp(waits, "1") == 0;
    }
    ck_assert(postgres_run(ledger.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                       "WHERE query = 'COMMIT' AND datname = current_database()"));
    ledger_wait(ledger.base, &racer.done);
    ck_assert_int_eq(racer.outcome, SINK_UNKNOWN);
    PQfinish(holder);
    ck_assert(!is_there(&ledger, record));
    append_at_last(&ledger, &head, record);
    ledger_expect_sound(&ledger, 2, 1);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* The server takes COMMIT, but warns: that may be the warning of a standby that has nothing. */
START_TEST(test_commit_with_a_warning)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    records_begin(&chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    ck_assert(
        postgres_run(ledger.url, MAKE_ROOM
                     "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                     "RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; "
                     "END $$; CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON auditrun.runs "
                     "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warn()"));
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, LEDGER_DEADLINE_MS).outcome,
                     SINK_UNKNOWN);
    ck_assert(is_there(&ledger, record));
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* A trigger at COMMIT fails: the server rolls back, and says so. */
START_TEST(test_commit_that_fails)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    records_begin(&chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    ck_assert(postgres_run(ledger.url, MAKE_ROOM
                           "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                           "RAISE EXCEPTION 'no' USING ERRCODE = 'disk_full'; END $$;"
                           "CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON auditrun.runs "
                           "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()"));
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, LEDGER_DEADLINE_MS).outcome,
                     SINK_NOT_STORED);
    ck_assert(!is_there(&ledger, record));
    ck_assert(postgres_run(ledger.url, "DROP TRIGGER fail ON auditrun.runs"));
    append_at_last(&ledger, &head, record);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_read_only_server)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    char sql[256];
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    records_begin(&chain, 1);
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    const char *name = strstr(ledger.url, "dbname=") + strlen("dbname=");
    (void)snprintf(sql, sizeof(sql), "ALTER DATABASE %s SET default_transaction_read_only = on",
                   name);
    ck_assert(postgres_run(ledger.url, sql));
    ledger_reopen(&ledger);
    ck_assert(!ledger_probe(&ledger, LEDGER_DEADLINE_MS));
    ck_assert_int_eq(ledger_append(&ledger, &head, &record, 1, SHORT_MS).outcome, SINK_NOT_STORED);
    (void)snprintf(sql, sizeof(sql), "ALTER DATABASE %s RESET ALL", name);
    ck_assert(postgres_run(postgres_url(server), sql));
    append_at_last(&ledger, &head, record);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* ---- PostgreSQL: a server that is gone ------------------------------------------------------ */

START_TEST(test_server_gone_and_back)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *records[2];
    struct sink_head found;
    struct postgres_server *own = postgres_start();
    ck_assert_ptr_nonnull(own);
    ledger_begin(&ledger, LEDGER_POSTGRES, own);
    records_begin(&chain, 1);
    ledger_grow(&ledger, &chain, 3);
    ck_assert_int_eq(ledger_head(&ledger, chain.writer, &found), SINK_FOUND);
    struct sink_head head = ledger_chain_head(&chain), next;
    records_fill(&chain, &records[0], 1);
    next = ledger_chain_head(&chain);
    records_fill(&chain, &records[1], 1);
    postgres_stop_immediate(own);
    ck_assert(!ledger_probe(&ledger, LEDGER_DEADLINE_MS));
    ck_assert_int_eq(ledger_append(&ledger, &head, &records[0], 1, SHORT_MS).outcome,
                     SINK_NOT_STORED);
    ck_assert(postgres_start_again(own));
    append_at_last(&ledger, &head, records[0]);
    append_at_last(&ledger, &next, records[1]);
    ledger_expect_sound(&ledger, 5, 1);
    records_free(records, 2);
    ledger_end(&ledger);
    postgres_free(own);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest **const tests[] = {
        &test_memory_faults_on_cue, &test_locked_database,          &test_close_while_locked,
        &test_moved_file,           &test_stopped_backend,          &test_deadline_before_commit,
        &test_deadline_in_commit,   &test_backend_killed_in_commit, &test_commit_with_a_warning,
        &test_commit_that_fails,    &test_read_only_server,         &test_server_gone_and_back};
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 300);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    tcase_add_loop_test(tcase, test_store_without_schema, LEDGER_SQLITE, LEDGER_POSTGRES + 1);
}

int main(void)
{
    Suite *suite = suite_create("sink_faults");
    TCase *tcase = tcase_create("faults");
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
