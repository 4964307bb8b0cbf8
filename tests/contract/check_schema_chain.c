/*
 * check_schema_chain.c - hash, verify, retirement and views in plain SQL: the hash is that of the C
 * code whatever the values, every change turns verify red at the right row, and a partition goes only
 * with its event.
 */
#include "tests/contract/server.h"
#include "tests/lib/database.h"
#include "tests/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOT_ALLOWED "42501"
#define ROWS        10 /* of each chain: 4 is an event, the others are runs */
#define EVENT_SEQ   4
#define AT          INT64_C(1769860800000000)
#define ODD_ROWS    60

static void grow_mixed(PGconn *pg, struct records_chain *chain)
{
    database_grow(pg, chain, EVENT_SEQ - 1);
    database_event(pg, chain, EVENT_STARTED, "{\"version\":\"0.1.0\"}", AT);
    database_grow(pg, chain, ROWS - EVENT_SEQ);
}

/* Two chains; chains[0] is that of the lower writer. */
static void begin_with_rows(struct database *database, struct records_chain chains[2])
{
    database_begin(database, server);
    records_begin(&chains[0], 1000);
    records_begin(&chains[1], 1001);
    if (strcmp(chains[0].writer, chains[1].writer) > 0) {
        struct records_chain higher = chains[0];
        chains[0] = chains[1];
        chains[1] = higher;
    }
    for (size_t i = 0; i < 2; i++)
        grow_mixed(database->pg, &chains[i]);
}

static void expect_verify(PGconn *pg, const char *finding, const char *writer, int64_t seq,
                          int64_t rows)
{
    char expected[128];
    (void)snprintf(expected, sizeof(expected), "%s %s %" PRId64 " %" PRId64, finding, writer, seq,
                   rows);
    database_expect(pg, "SELECT concat_ws(' ', finding, writer, seq, rows) FROM auditrun.verify()",
                    expected);
}

static void expect_ok(PGconn *pg, int64_t rows, int64_t writers)
{
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "ok %" PRId64 " %" PRId64, rows, writers);
    database_expect(pg,
                    "SELECT concat_ws(' ', finding, writer, seq, row_id, rows, writers) "
                    "FROM auditrun.verify()",
                    expected);
}

/* ---- the hash ------------------------------------------------------------------------------- */

START_TEST(test_the_hash_is_that_of_the_program)
{
    static const char *const details[] = {"{}", "{\"a\":\"\u00e9\u2028\",\"b\":[null,true,-1]}",
                                          "{\"x\":\"\\\"\\\\\\n\\u0001\"}"};
    struct database database;
    struct records_chain chain;
    database_begin(&database, server);
    records_begin(&chain, 20260131);
    for (int i = 0; i < ODD_ROWS; i++) {
        AR_CLEANUP(record_cleanup) struct record *record = records_odd(&chain);
        records_seal(&chain, record);
        database_insert(database.pg, &record_layout, record);
        if (i % 10 == 0)
            database_event(database.pg, &chain, (enum event_kind)(i / 10),
                           details[i / 10 % (int)AR_COUNT(details)], AT + i);
    }
    database_head(database.pg, &chain);
    static const char *const settings[] = {"timezone = 'Asia/Kathmandu'",
                                           "datestyle = 'German'",
                                           "bytea_output = 'escape'",
                                           "intervalstyle = 'iso_8601'",
                                           "standard_conforming_strings = off",
                                           "extra_float_digits = -15",
                                           "search_path = nowhere"};
    for (size_t i = 0; i < AR_COUNT(settings); i++) {
        database_runf(database.pg, "SET %s", settings[i]);
        database_expect(database.pg,
                        "SELECT count(*) FROM auditrun.chain WHERE computed_hash <> row_hash "
                        "OR NOT readable",
                        "0");
        expect_ok(database.pg, ODD_ROWS + ODD_ROWS / 10, 1);
        database_expect(database.pg, "SELECT partitions FROM auditrun.status()", "5");
    }
    database_end(&database);
}
END_TEST

/* ---- verify --------------------------------------------------------------------------------- */

START_TEST(test_verify_of_what_is_right)
{
    struct database database;
    struct records_chain chains[2];
    char sql[128];
    database_begin(&database, server);
    expect_ok(database.pg, 0, 0);
    database_end(&database);
    begin_with_rows(&database, chains);
    expect_ok(database.pg, 2 * ROWS, 2);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT concat_ws(' ', finding, rows, writers) FROM auditrun.verify('%s')",
                   chains[1].writer);
    database_expect(database.pg, sql, "ok 10 1");
    database_end(&database);
}
END_TEST

struct change {
    const char *set;
    const char *finding;
};

static const struct change run_changes[] = {
    {"run_id = overlay(run_id::text placing '1' from 1)::uuid", "altered"},
    {"schema_version = schema_version + 1", "altered"},
    {"company = company || ' '", "altered"},
    {"actor = ''", "altered"},
    {"purpose = upper(purpose)", "altered"},
    {"client_name = NULL", "altered"},
    {"client_uid = client_uid + 1", "altered"},
    {"client_gid = -client_gid", "altered"},
    {"client_pid = 0", "altered"},
    {"language = 'Python'", "altered"},
    {"code_sha256 = row_hash", "altered"},
    {"code_bytes = code_bytes + 1", "altered"},
    {"\"grant\" = '{}'", "altered"},
    {"provider = NULL", "altered"},
    {"provider_version = ''", "altered"},
    {"envelope_sha256 = NULL", "altered"},
    {"status = 'failed', reason = 'exit_nonzero'", "altered"},
    {"denials = '[ ]'", "altered"},
    {"exit_code = NULL", "altered"},
    {"signal = 0", "altered"},
    {"usage = '{}'", "altered"},
    {"trace_id = substr(encode(row_hash, 'hex'), 1, 32)", "altered"},
    {"received_at = received_at + interval '1 microsecond'", "altered"},
    {"started_at = NULL", "altered"},
    {"finished_at = received_at", "altered"},
    {"recorded_at = recorded_at - interval '1 microsecond'", "altered"},
    {"late = NOT late", "altered"},
    {"prev_hash = row_hash", "altered"},
    {"row_hash = prev_hash", "altered"},
    {"received_at = 'infinity'", "unreadable"},
    {"started_at = '0044-03-15 12:00 BC'", "unreadable"},
    {"exit_code = -9223372036854775807 - 1", "unreadable"},
    {"company = E'two\\nlines'", "unreadable"},
    {"provider = E'\\u0085'", "unreadable"},
    {"\"grant\" = '[]'", "unreadable"},
    {"denials = '{}'", "unreadable"},
    {"run_id = overlay(run_id::text placing '4' from 15)::uuid", "unreadable"},
};

static const struct change event_changes[] = {
    {"event_id = overlay(event_id::text placing '1' from 1)::uuid", "altered"},
    {"schema_version = 2", "altered"},
    {"kind = 'stopped'", "altered"},
    {"detail = '{}'", "altered"},
    {"happened_at = happened_at + interval '1 microsecond'", "altered"},
    {"recorded_at = happened_at", "altered"},
    {"late = NOT late", "altered"},
    {"prev_hash = row_hash", "altered"},
    {"row_hash = prev_hash", "altered"},
    {"detail = '[]'", "unreadable"},
    {"happened_at = '-infinity'", "unreadable"},
    {"event_id = overlay(event_id::text placing '4' from 15)::uuid", "unreadable"},
};

static void expect_each_found(PGconn *pg, const char *table, const char *writer, int64_t seq,
                              const struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        database_run(pg, "BEGIN");
        database_runf(pg, "UPDATE auditrun.%s SET %s WHERE writer = '%s' AND seq = %" PRId64, table,
                      changes[i].set, writer, seq);
        expect_verify(pg, changes[i].finding, writer, seq, ROWS + seq - 1);
        database_run(pg, "ROLLBACK");
    }
}

START_TEST(test_verify_names_an_altered_column)
{
    struct database database;
    struct records_chain chains[2];
    begin_with_rows(&database, chains);
    database_open_guards(database.pg);
    expect_each_found(database.pg, "runs", chains[1].writer, 6, run_changes, AR_COUNT(run_changes));
    expect_each_found(database.pg, "events", chains[1].writer, EVENT_SEQ, event_changes,
                      AR_COUNT(event_changes));
    expect_ok(database.pg, 2 * ROWS, 2);
    database_end(&database);
}
END_TEST

/* In the SQL $ is the writer. */
static const struct {
    const char *sql;
    const char *finding;
    size_t chain;
    int64_t seq;
    int64_t rows;
} dropped_and_moved[] = {
    {"DELETE FROM runs WHERE writer = $ AND seq = 1", "missing", 0, 1, 0},
    {"DELETE FROM runs WHERE writer = $ AND seq = 5", "missing", 1, 5, ROWS + 4},
    {"DELETE FROM events WHERE writer = $", "missing", 0, EVENT_SEQ, EVENT_SEQ - 1},
    {"DELETE FROM runs WHERE writer = $ AND seq = 10", "head_differs", 0, 10, 9},
    {"DELETE FROM runs WHERE writer = $ AND seq > 7", "head_differs", 1, 8, ROWS + 7},
    {"DELETE FROM runs WHERE writer = $; DELETE FROM events WHERE writer = $", "head_differs", 0, 1,
     0},
    {"DELETE FROM writers WHERE writer = $", "head_differs", 1, 1, ROWS},
    {"UPDATE runs SET seq = 11 - seq + 1000 WHERE writer = $ AND seq IN (5, 6);"
     "UPDATE runs SET seq = seq - 1000 WHERE writer = $ AND seq > 1000",
     "altered", 0, 5, 4},
    {"UPDATE writers SET seq = 7, hash = (SELECT row_hash FROM runs AS r WHERE "
     "r.writer = $ AND r.seq = 7) WHERE writer = $",
     "head_differs", 1, 8, ROWS + 7},
    {"UPDATE writers SET hash = (SELECT prev_hash FROM runs AS r WHERE r.writer = $ AND r.seq = 7) "
     "WHERE writer = $",
     "head_differs", 0, 10, ROWS},
    /* Row 5 with another purpose and the hash that belongs to it. */
    {"UPDATE runs AS r SET purpose = 'another' WHERE writer = $ AND seq = 5;"
     "UPDATE runs AS r SET row_hash = row_hash(r) WHERE writer = $ AND seq = 5",
     "unlinked", 0, 6, 5},
    {"UPDATE checkpoints SET row_hash = pg_catalog.sha256('') WHERE writer = $",
     "checkpoint_differs", 1, 8, ROWS + 7},
    /* The end, the head with it: the checkpoint is what is left. */
    {"DELETE FROM runs WHERE writer = $ AND seq > 6; UPDATE writers SET seq = 6, hash = (SELECT "
     "row_hash FROM runs AS r WHERE r.writer = $ AND r.seq = 6) WHERE writer = $",
     "checkpoint_differs", 0, 7, 6},
    {"DELETE FROM runs WHERE writer = $; DELETE FROM events WHERE writer = $;"
     "DELETE FROM writers WHERE writer = $",
     "checkpoint_differs", 1, 1, ROWS},
};

static char *for_writer(const char *sql, const char *writer)
{
    char *made = NULL;
    size_t length;
    FILE *stream = open_memstream(&made, &length);
    ck_assert_ptr_nonnull(stream);
    for (; *sql; sql++)
        if (*sql == '$')
            (void)fprintf(stream, "'%s'", writer);
        else
            (void)fputc(*sql, stream);
    ck_assert_int_eq(fclose(stream), 0);
    return made;
}

START_TEST(test_verify_names_what_was_dropped_or_moved)
{
    struct database database;
    struct records_chain chains[2];
    begin_with_rows(&database, chains);
    database_run(
        database.pg,
        "INSERT INTO auditrun.checkpoint_keys SELECT sha256(k), k FROM "
        "(SELECT sha256('key') AS k) AS k;"
        "INSERT INTO auditrun.checkpoints SELECT writer, seq, row_hash, now(), "
        "sha256(sha256('key')), sha256('') || sha256('') FROM auditrun.runs WHERE seq = 8");
    database_open_guards(database.pg);
    expect_ok(database.pg, 2 * ROWS, 2);
    for (size_t i = 0; i < AR_COUNT(dropped_and_moved); i++) {
        const char *writer = chains[dropped_and_moved[i].chain].writer;
        AR_AUTO_FREE char *sql = for_writer(dropped_and_moved[i].sql, writer);
        database_run(database.pg, "BEGIN; SET LOCAL search_path = auditrun");
        database_run(database.pg, sql);
        expect_verify(database.pg, dropped_and_moved[i].finding, writer, dropped_and_moved[i].seq,
                      dropped_and_moved[i].rows);
        database_run(database.pg, "ROLLBACK");
    }
    expect_ok(database.pg, 2 * ROWS, 2);
    database_end(&database);
}
END_TEST

/* Which of the two rows comes first is the server's choice. */
START_TEST(test_verify_names_a_repeated_seq)
{
    struct database database;
    struct records_chain chains[2];
    begin_with_rows(&database, chains);
    database_open_guards(database.pg);
    database_runf(database.pg,
                  "INSERT INTO auditrun.runs SELECT (json_populate_record(r, '{\"run_id\": "
                  "\"f47ac10b-58cc-7372-8567-0e02b2c3d479\"}')).* FROM auditrun.runs AS r "
                  "WHERE writer = '%s' AND seq = 3",
                  chains[1].writer);
    database_expect(database.pg,
                    "SELECT finding IN ('repeated', 'altered') AND seq = 3 FROM auditrun.verify()",
                    "t");
    database_end(&database);
}
END_TEST

/* ---- retirement ----------------------------------------------------------------------------- */

/* The plain records are of 2026-01-31: a week that is over on any clock that runs these tests. */
#define PARTITION "runs_20260126"

static void begin_with_old_rows(struct database *database, struct records_chain chains[2])
{
    database_begin(database, server);
    database_run(database->pg, "SELECT auditrun.make_partitions('1 day', '2026-01-28Z')");
    records_begin(&chains[0], 1);
    records_begin(&chains[1], 2);
    for (size_t i = 0; i < 2; i++)
        grow_mixed(database->pg, &chains[i]);
    /* A row in the middle that is of another week. */
    AR_CLEANUP(record_cleanup) struct record *record = records_plain(&chains[0]);
    (void)snprintf(record->run_id, sizeof(record->run_id), "019fffff-0000-7000-8000-000000000000");
    records_seal(&chains[0], record);
    database_insert(database->pg, &record_layout, record);
    database_grow(database->pg, &chains[0], 2);
}

/* The call that retires, with the event over this detail. */
static char *retire_sql(const char *detail)
{
    struct records_chain chain;
    char *sql = NULL;
    records_begin(&chain, 77);
    AR_CLEANUP(record_cleanup) struct record *for_id = records_plain(&chain);
    AR_CLEANUP(chain_event_cleanup)
    struct chain_event *event =
        chain_event_new(for_id->run_id, EVENT_PARTITION_RETIRED, json_loads(detail, 0, NULL), AT);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(chain_event_seal(event, chain.writer, 1, digest_zero, AT, false), 0);
    ck_assert_int_gt(
        asprintf(&sql,
                 "SELECT auditrun.retire_partition('" PARTITION "', ROW('%s', '%s', 1, "
                 "1, 'partition_retired', '%s', '2026-01-31 12:00Z', "
                 "'2026-01-31 12:00Z', false, '\\x%s', '\\x%s')::auditrun.events, "
                 "sha256('key'), now(), sha256('') || sha256(''))",
                 event->event_id, event->writer, event->detail, event->prev_hash, event->row_hash),
        0);
    return sql;
}

#define PLAN_SQL "SELECT auditrun.retirement_plan('" PARTITION "')"

START_TEST(test_a_retired_partition_leaves_whole_chains)
{
    struct database database;
    struct records_chain chains[2];
    begin_with_old_rows(&database, chains);
    expect_ok(database.pg, 2 * ROWS + 3, 2);
    AR_AUTO_FREE char *plan = database_value(database.pg, PLAN_SQL);
    database_expect(
        database.pg,
        "SELECT json_array_length(auditrun.retirement_plan('" PARTITION "') -> 'ranges')", "5");
    AR_AUTO_FREE char *sql = retire_sql(plan);
    database_expect(database.pg, sql, "20");
    database_expect(database.pg, "SELECT to_regclass('auditrun." PARTITION "') IS NULL", "t");
    database_expect(database.pg, "SELECT count(*) FROM auditrun.runs", "1");
    expect_ok(database.pg, 1 + 3, 3);
    database_expect(database.pg, "SELECT structure_changes FROM auditrun.status()", "{}");
    database_refused(database.pg, sql, "42P01", "not a partition");

    /* Chains go on, and what is left is still watched. */
    for (size_t i = 0; i < 2; i++)
        database_grow(database.pg, &chains[i], 2);
    expect_ok(database.pg, 1 + 3 + 4, 3);
    database_open_guards(database.pg);
    database_run(database.pg, "DELETE FROM auditrun.events WHERE kind = 'partition_retired'");
    AR_AUTO_FREE char *verify =
        for_writer("SELECT finding || seq FROM auditrun.verify($)", chains[0].writer);
    database_expect(database.pg, verify, "missing1");
    database_end(&database);
}
END_TEST

START_TEST(test_what_is_not_retired)
{
    struct database database;
    struct records_chain chains[2];
    begin_with_old_rows(&database, chains);
    PGconn *pg = database.pg;
    database_refused(pg, "SELECT auditrun.retirement_plan('runs_default')", "42P01", NULL);
    database_refused(pg, "SELECT auditrun.retirement_plan('runs')", "42P01", NULL);
    database_refused(pg, "SELECT auditrun.retirement_plan('events')", "42P01", NULL);
    database_refused(pg,
                     "SELECT auditrun.retirement_plan(partition) FROM auditrun.partitions() "
                     "WHERE until_time > now()",
                     "55000", "not over");
    AR_AUTO_FREE char *of_nothing = retire_sql("{}");
    database_refused(pg, of_nothing, "22023", "does not tell");

    /* The plan of before a row came late. */
    AR_AUTO_FREE char *plan = database_value(pg, PLAN_SQL);
    AR_AUTO_FREE char *sql = retire_sql(plan);
    database_grow(pg, &chains[0], 1);
    database_refused(pg, sql, "22023", "does not tell");
    database_expect(pg, "SELECT count(*) FROM auditrun.runs", "22");
    database_expect(pg, "SELECT count(*) FROM auditrun.events WHERE kind = 'partition_retired'",
                    "0");

    /* Nor in the steps of which it consists. */
    database_refused(pg, "DROP TABLE auditrun." PARTITION, NOT_ALLOWED, NULL);
    AR_AUTO_FREE char *again = database_value(pg, PLAN_SQL);
    database_event(pg, &chains[1], EVENT_PARTITION_RETIRED, again, AT);
    database_refused(pg, "DROP TABLE auditrun." PARTITION, NOT_ALLOWED, NULL);

    database_open_guards(pg);
    database_runf(pg, "UPDATE auditrun.runs SET purpose = '' WHERE writer = '%s' AND seq = 3",
                  chains[1].writer);
    database_refused(pg, PLAN_SQL, "XX001", "row 3");
    database_end(&database);
}
END_TEST

/* Somebody without the program: rows deleted, an event that tells another story. */
START_TEST(test_ranges_that_do_not_fit_hide_nothing)
{
    static const char *const stories[] = {
        "{\"ranges\":[{\"first_seq\":5,\"last_seq\":6,\"prev_hash\":\"%s\",\"last_hash\":\"%s\","
        "\"writer\":\"%s\"}]}",
        "{\"ranges\":[{\"first_seq\":\"x\",\"last_seq\":6,\"prev_hash\":\"%s%s\","
        "\"writer\":\"%s\"}]}",
        "{\"ranges\":{\"a\":\"%s%s%s\"}}", "{\"rows\":\"%s%s%s\"}"};
    struct database database;
    struct records_chain chains[2], teller;
    begin_with_rows(&database, chains);
    records_begin(&teller, 5);
    for (size_t i = 0; i < AR_COUNT(stories); i++) {
        AR_AUTO_FREE char *detail = NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        ck_assert_int_gt(
            asprintf(&detail, stories[i], digest_zero, chains[0].hash, chains[0].writer), 0);
#pragma GCC diagnostic pop
        database_event(database.pg, &teller, EVENT_PARTITION_RETIRED, detail, AT);
    }
    expect_ok(database.pg, 2 * ROWS + 4, 3);
    database_open_guards(database.pg);
    database_runf(database.pg, "DELETE FROM auditrun.runs WHERE writer = '%s' AND seq IN (5, 6)",
                  chains[0].writer);
    database_expect(database.pg, "SELECT finding || seq FROM auditrun.verify()", "missing5");
    database_end(&database);
}
END_TEST

/* ---- views ---------------------------------------------------------------------------------- */

static void fill_for_views(struct database *database)
{
    struct records_chain chain;
    database_begin(database, server);
    records_begin(&chain, 3);
    database_event(database->pg, &chain, EVENT_STARTED, "{}", AT);
    database_grow(database->pg, &chain, 3);
    AR_CLEANUP(record_cleanup) struct record *record = records_plain(&chain);
    free(record->denials);
    record->denials =
        strdup("[{\"demand\":\"network\",\"offered\":[\"none\"],\"requested\":\"open\"},"
               "{\"demand\":\"secrets\",\"offered\":null,\"requested\":[\"K\"]}]");
    record->status = STATUS_CAPABILITY_DENIED;
    record->reason = REASON_NOT_ENFORCEABLE;
    record->exit_code = record->started_at = ROW_NULL;
    records_seal(&chain, record);
    database_insert(database->pg, &record_layout, record);
    database_event(database->pg, &chain, EVENT_CLOCK_STEPPED, "{}", AT + 1000000);
    database_event(database->pg, &chain, EVENT_STOPPED, "{}", AT + 2000000);
    database_event(database->pg, &chain, EVENT_STARTED, "{}", AT + 5 * INT64_C(3600000000));
    database_event(database->pg, &chain, EVENT_STARTED, "{}", AT + 7 * INT64_C(3600000000));
    database_event(database->pg, &chain, EVENT_STOPPED, "{}", AT + 9 * INT64_C(3600000000));
}

START_TEST(test_views)
{
    static const char *const questions[][2] = {
        {"SELECT count(*) FROM run_list", "4"},
        {"SELECT ran_ms FROM run_list WHERE status = 'succeeded' LIMIT 1", "30.500"},
        {"SELECT waited_ms FROM run_list WHERE status = 'succeeded' LIMIT 1", "0.500"},
        {"SELECT ran_ms IS NULL FROM run_list WHERE status <> 'succeeded'", "t"},
        {"SELECT length(code_sha256) FROM run_list LIMIT 1", "64"},
        {"SELECT string_agg(concat_ws(' ', demand, requested, offered), ';' ORDER BY demand) "
         "FROM denials",
         "network \"open\" [\"none\"];secrets [\"K\"] null"},
        {"SELECT sum(runs) FROM runs_by_code", "4"},
        {"SELECT concat_ws(' ', company, day, runs, succeeded, denied, wall_ms) "
         "FROM usage_by_company_day",
         "acme 2026-01-31 4 3 1 124.000"},
        {"SELECT count(*) = (SELECT count(*) FROM runs WHERE late) FROM late_records", "t"},
        {"SELECT count(*) FROM actor_day('agent-000017', '2026-01-31')", "4"},
        {"SELECT count(*) FROM actor_day('agent-000017', '2026-02-01')", "0"},
        {"SELECT count(*) FROM runs AS r, who_ran(encode(r.code_sha256, 'hex')) AS w "
         "WHERE w.run_id = r.run_id",
         "4"},
        {"SELECT string_agg(what, ' ' ORDER BY from_at) FROM gaps",
         "clock_stepped off crashed off"},
        {"SELECT until_at - from_at FROM gaps WHERE what = 'crashed'", "02:00:00"},
        {"SELECT string_agg(state, ' ' ORDER BY hour) FROM quiet_hours WHERE hour < "
         "'2026-01-31 22:30Z'",
         "off off off off quiet off quiet quiet quiet off"},
    };
    struct database database;
    fill_for_views(&database);
    database_run(database.pg, "SET search_path = auditrun; SET timezone = 'UTC'");
    for (size_t i = 0; i < AR_COUNT(questions); i++)
        database_expect(database.pg, questions[i][0], questions[i][1]);
    database_expect(database.pg,
                    "SELECT count(*) FROM pg_class AS c WHERE relkind = 'v' AND relnamespace = "
                    "'auditrun'::regnamespace AND obj_description(c.oid, 'pg_class') IS NULL",
                    "0");
    database_end(&database);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest **const tests[] = {
        &test_the_hash_is_that_of_the_program,
        &test_verify_of_what_is_right,
        &test_verify_names_an_altered_column,
        &test_verify_names_what_was_dropped_or_moved,
        &test_verify_names_a_repeated_seq,
        &test_a_retired_partition_leaves_whole_chains,
        &test_what_is_not_retired,
        &test_ranges_that_do_not_fit_hide_nothing,
        &test_views,
    };
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 300);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
}

int main(void)
{
    Suite *suite = suite_create("schema_chain");
    TCase *tcase = tcase_create("schema_chain");
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
