/*
 * check_verify.c - whoever changes a ledger behind its back is found out, at the first row that is
 * wrong. The same tests on SQLite and PostgreSQL.
 */
#include "tests/contract/server.h"
#include "tests/lib/history.h"
#include "tests/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- verify --------------------------------------------------------------------------------- */

START_TEST(test_verify_of_nothing)
{
    struct ledger ledger;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    ledger_expect_sound(&ledger, 0, 0);
    ledger_end(&ledger);
}
END_TEST

struct column_change {
    const char *column, *sqlite, *postgres; /* postgres NULL: the same */
};

static const struct column_change run_changes[] = {
    {"run_id", "'1' || substr(run_id, 2)", "overlay(run_id::text placing '1' from 1)::uuid"},
    {"schema_version", "schema_version + 1", NULL},
    {"company", "company || ' '", NULL},
    {"actor", "''", NULL},
    {"purpose", "upper(purpose)", NULL},
    {"client_name", "NULL", NULL},
    {"client_name", "''", NULL},
    {"client_uid", "client_uid + 1", NULL},
    {"client_gid", "-client_gid", NULL},
    {"client_pid", "0", NULL},
    {"language", "'Python'", NULL},
    {"code_sha256", "row_hash", NULL},
    {"code_bytes", "code_bytes + 1", NULL},
    {"\"grant\"", "'{}'", NULL},
    {"provider", "NULL", NULL},
    {"provider_version", "''", NULL},
    {"envelope_sha256", "NULL", NULL},
    {"status", "'failed', reason = 'exit_nonzero'", NULL},
    {"denials", "'[ ]'", NULL},
    {"exit_code", "NULL", NULL},
    {"signal", "0", NULL},
    {"usage", "'{}'", NULL},
    {"trace_id", "substr(row_hash, 1, 32)", "substr(encode(row_hash, 'hex'), 1, 32)"},
    {"received_at", "replace(received_at, '6', '7')", "received_at + interval '1 microsecond'"},
    {"started_at", "NULL", NULL},
    {"finished_at", "received_at", NULL},
    {"recorded_at", "received_at", "recorded_at - interval '1 microsecond'"},
    {"late", "1 - late", "NOT late"},
    {"prev_hash", "row_hash", NULL},
    {"row_hash", "prev_hash", NULL},
};

static const struct column_change event_changes[] = {
    {"event_id", "'1' || substr(event_id, 2)", "overlay(event_id::text placing '1' from 1)::uuid"},
    {"schema_version", "schema_version + 1", NULL},
    {"kind", "'switched'", NULL},
    {"detail", "'{}'", NULL},
    {"detail", "replace(detail, ':', ': ')", "replace(detail::text, ':', ': ')::json"},
    {"happened_at", "replace(happened_at, '6Z', '7Z')", "happened_at + interval '1 microsecond'"},
    {"recorded_at", "happened_at", "recorded_at - interval '1 microsecond'"},
    {"late", "1 - late", "NOT late"},
    {"prev_hash", "row_hash", NULL},
    {"row_hash", "prev_hash", NULL},
};

/* Makes each change to this row of chain 1, one after the other. */
static void expect_altered(const struct ledger *ledger, const char *table, int64_t seq,
                           const char *writer, const struct column_change *changes, size_t count)
{
    char sql[512], restore[512];
    (void)snprintf(sql, sizeof(sql), "CREATE TABLE kept_%s AS SELECT * FROM %s", table, table);
    (void)snprintf(restore, sizeof(restore), "DELETE FROM %s; INSERT INTO %s SELECT * FROM kept_%s",
                   table, table, table);
    ck_assert(ledger_tamper(ledger, sql));
    for (size_t i = 0; i < count; i++) {
        const char *value = ledger->kind == LEDGER_POSTGRES && changes[i].postgres
                                ? changes[i].postgres
                                : changes[i].sqlite;
        (void)snprintf(sql, sizeof(sql), "UPDATE %s SET %s = %s WHERE writer = '%s' AND seq = %d",
                       table, changes[i].column, value, writer, (int)seq);
        ck_assert_msg(ledger_tamper(ledger, sql), "%s", sql);
        struct verify_result result = history_verify(ledger, NULL);
        ck_assert_msg(result.finding == VERIFY_ALTERED, "%s: %s", changes[i].column,
                      verify_word(result.finding));
        ck_assert_int_eq(result.seq, seq);
        ck_assert_str_eq(result.writer, writer);
        ck_assert_msg(ledger_tamper(ledger, restore), "%s", restore);
    }
}

/* The smallest change of each column turns both, C and SQL, red at that row. */
START_TEST(test_verify_names_an_altered_column)
{
    struct ledger ledger;
    struct records_chain chains[2];
    history_begin(&ledger, (enum ledger_kind)_i, server, chains);
    expect_altered(&ledger, "runs", 5, chains[1].writer, run_changes, AR_COUNT(run_changes));
    expect_altered(&ledger, "events", 4, chains[1].writer, event_changes, AR_COUNT(event_changes));
    struct verify_result result = history_verify(&ledger, NULL);
    ck_assert_int_eq(result.finding, VERIFY_OK);
    ck_assert_int_eq(result.rows, 2 * HISTORY_ROWS);
    ck_assert_int_eq(result.writers, 2);
    ledger_end(&ledger);
}
END_TEST

static const struct change {
    const char *sql; /* with the writer in each place of "%s" */
    enum verify_finding finding;
    size_t chain;
    int64_t seq;
} dropped_and_moved[] = {
    {"DELETE FROM events WHERE writer = '%s' AND seq = 1", VERIFY_MISSING, 0, 1},
    {"DELETE FROM events WHERE writer = '%s' AND seq = 4", VERIFY_MISSING, 1, 4},
    {"DELETE FROM runs WHERE writer = '%s' AND seq = 5", VERIFY_MISSING, 1, 5},
    {"DELETE FROM events WHERE writer = '%s'", VERIFY_MISSING, 1, 1},
    {"DELETE FROM runs WHERE writer = '%s'", VERIFY_MISSING, 1, 2},
    {"DELETE FROM events WHERE writer = '%s' AND seq = 10", VERIFY_HEAD, 0, 10},
    {"DELETE FROM runs WHERE writer = '%s' AND seq > 7;"
     "DELETE FROM events WHERE writer = '%s' AND seq > 7",
     VERIFY_HEAD, 1, 8},
    {"DELETE FROM runs WHERE writer = '%s'; DELETE FROM events WHERE writer = '%s'", VERIFY_HEAD, 0,
     1},
    {"DELETE FROM writers WHERE writer = '%s'", VERIFY_HEAD, 1, 1},
    {"DELETE FROM runs WHERE writer = '%s'; DELETE FROM events WHERE writer = '%s';"
     "DELETE FROM writers WHERE writer <> '%s'",
     VERIFY_HEAD, 0, 1},
    /* Two rows change places. */
    {"UPDATE runs SET seq = 11 - seq + 1000 WHERE writer = '%s' AND seq IN (5, 6);"
     "UPDATE runs SET seq = seq - 1000 WHERE writer = '%s' AND seq > 1000",
     VERIFY_ALTERED, 0, 5},
    /* A run and an event do. */
    {"UPDATE runs SET seq = 4 WHERE writer = '%s' AND seq = 5;"
     "UPDATE events SET seq = 5 WHERE writer = '%s' AND seq = 4",
     VERIFY_ALTERED, 1, 4},
    /* A head that steps back hides nothing. */
    {"UPDATE writers SET seq = 7, hash = (SELECT row_hash FROM runs AS r WHERE "
     "r.writer = writers.writer AND r.seq = 7) WHERE writer = '%s'",
     VERIFY_HEAD, 1, 8},
    {"UPDATE writers SET seq = 1, hash = (SELECT row_hash FROM events AS r WHERE "
     "r.writer = writers.writer AND r.seq = 1) WHERE writer = '%s'",
     VERIFY_HEAD, 1, 2},
    {"UPDATE writers SET hash = (SELECT prev_hash FROM runs AS r WHERE r.writer = writers.writer "
     "AND r.seq = 7) WHERE writer = '%s'",
     VERIFY_HEAD, 0, 10},
    {"UPDATE writers SET seq = 11 WHERE writer = '%s'", VERIFY_HEAD, 0, 11},
    /* The first three rows are gone, and the rest is numbered anew. */
    {"DELETE FROM runs WHERE writer = '%s' AND seq <= 3;"
     "DELETE FROM events WHERE writer = '%s' AND seq <= 3;"
     "UPDATE runs SET seq = seq - 3 WHERE writer = '%s';"
     "UPDATE events SET seq = seq - 3 WHERE writer = '%s'",
     VERIFY_ALTERED, 1, 1},
};

START_TEST(test_verify_names_what_was_dropped_or_moved)
{
    const struct change *change = &dropped_and_moved[(size_t)_i / 2];
    struct ledger ledger;
    struct records_chain chains[2];
    history_begin(&ledger, _i % 2 ? LEDGER_POSTGRES : LEDGER_SQLITE, server, chains);
    history_tamper(&ledger, change->sql, chains[change->chain].writer);
    history_expect(&ledger, NULL, change->finding, chains[change->chain].writer, change->seq);
    ledger_end(&ledger);
}
END_TEST

/* Around a digest in hex, as the store wants it. */
static const char *as_digest(const struct ledger *ledger)
{
    return ledger->kind == LEDGER_POSTGRES ? "decode(" : "";
}

static const char *digest_end(const struct ledger *ledger)
{
    return ledger->kind == LEDGER_POSTGRES ? ", 'hex')" : "";
}

/* Somebody with the code seals rows of his own: each is right by itself, the chain is not. */
START_TEST(test_verify_names_inserted_rows)
{
    struct ledger ledger;
    struct records_chain chains[2], forged;
    struct record *records[2];
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    forged = chains[0];
    forged.random = 99;
    forged.ids.last_ms += 1000;
    records_fill(&forged, records, 2);
    struct sink_head head = ledger_chain_head(&chains[0]);
    ck_assert_int_eq(ledger_append(&ledger, &head, records, 2, LEDGER_DEADLINE_MS).outcome,
                     SINK_STORED);
    ledger_expect_sound(&ledger, 2 * LEDGER_ROWS + 2, 2);
    /* The rows stay, the head is that of before: what a bare INSERT would leave. */
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE writers SET seq = %" PRId64 ", hash = %s'%s'%s WHERE writer = '%s'",
                   head.seq, as_digest(&ledger), head.hash, digest_end(&ledger), chains[0].writer);
    ck_assert(ledger_tamper(&ledger, sql));
    history_expect(&ledger, NULL, VERIFY_HEAD, chains[0].writer, LEDGER_ROWS + 1);
    records_free(records, 2);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_verify_names_a_replaced_row)
{
    struct ledger ledger;
    struct records_chain chains[2], forged;
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    struct reader *reader = ledger_reader(&ledger);
    struct reader_filter filter = READER_FILTER_ALL;
    filter.writer = chains[0].writer;
    ck_assert_int_eq(reader_query(reader, &filter, READER_BY_CHAIN), 0);
    struct record *record = NULL;
    for (int i = 0; i < 4; i++) {
        record_free(record);
        ck_assert_int_eq(reader_next(reader, &record), 0);
    }
    reader_close(reader);
    /* Row 4 with another purpose and the hash that belongs to it. */
    forged = chains[0];
    free(record->purpose);
    record->purpose = strdup("another purpose");
    char before[DIGEST_HEX_BYTES];
    memcpy(before, record->prev_hash, sizeof(before));
    ck_assert_int_eq(
        record_seal(record, forged.writer, 4, before, record->recorded_at, record->late), 0);
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE runs SET purpose = 'another purpose', row_hash = %s'%s'%s "
                   "WHERE writer = '%s' AND seq = 4",
                   as_digest(&ledger), record->row_hash, digest_end(&ledger), forged.writer);
    ck_assert(ledger_tamper(&ledger, sql));
    ledger_expect_sql_hash(&ledger, "0");
    history_expect(&ledger, NULL, VERIFY_UNLINKED, forged.writer, 5);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

/* An event at the place of a run, and in PostgreSQL, which does not keep (writer, seq) of the runs
 * unique, a run at the place of another. Which of the two comes first is left to the store. */
START_TEST(test_verify_names_a_repeated_seq)
{
    static const char *const both[] = {
        "UPDATE events SET seq = 9 WHERE writer = '%s' AND seq = 10",
        "CREATE TABLE one AS SELECT * FROM runs WHERE writer = '%s' AND seq = 9;"
        "UPDATE one SET run_id = overlay(run_id::text placing '1' from 1)::uuid;"
        "INSERT INTO runs SELECT * FROM one",
    };
    for (size_t i = 0; i < (_i == LEDGER_POSTGRES ? 2 : 1); i++) {
        struct ledger ledger;
        struct records_chain chains[2];
        history_begin(&ledger, (enum ledger_kind)_i, server, chains);
        history_tamper(&ledger, both[i], chains[1].writer);
        struct verify_result result = ledger_verify(&ledger);
        ck_assert(result.finding == VERIFY_REPEATED || result.finding == VERIFY_ALTERED);
        ck_assert_str_eq(result.writer, chains[1].writer);
        ck_assert_int_eq(result.seq, 9);
        ledger_end(&ledger);
    }
}
END_TEST

static void expect_unreadable(const struct ledger *ledger, const char *table, int64_t seq,
                              const char *writer, const char *const *changes, size_t count)
{
    char sql[512], restore[512];
    (void)snprintf(sql, sizeof(sql), "CREATE TABLE kept_%s AS SELECT * FROM %s", table, table);
    (void)snprintf(restore, sizeof(restore), "DELETE FROM %s; INSERT INTO %s SELECT * FROM kept_%s",
                   table, table, table);
    ck_assert(ledger_tamper(ledger, sql));
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(sql, sizeof(sql), "UPDATE %s SET %s WHERE writer = '%s' AND seq = %d", table,
                       changes[i], writer, (int)seq);
        ck_assert_msg(ledger_tamper(ledger, sql), "%s", sql);
        struct verify_result result = history_verify(ledger, NULL);
        ck_assert_msg(result.finding == VERIFY_UNREADABLE, "%s: %s", sql,
                      verify_word(result.finding));
        ck_assert_str_eq(result.writer, writer);
        ck_assert_int_eq(result.seq, seq);
        ck_assert_msg(ledger_tamper(ledger, restore), "%s", restore);
    }
}

START_TEST(test_verify_names_an_unreadable_row)
{
    static const char *const runs_of_sqlite[] = {
        "client_uid = 'root'",      "client_uid = 1.5",
        "company = x'616263'",      "received_at = 'soon'",
        "\"grant\" = 'nothing'",    "exit_code = -9223372036854775807 - 1",
        "company = 'a' || char(0)", "row_hash = upper(row_hash)",
        "received_at = 1769860800", "purpose = CAST(x'ff' AS TEXT)"};
    static const char *const runs_of_postgres[] = {
        "received_at = 'infinity'", "received_at = '0044-03-15 12:00 BC'",
        "exit_code = -9223372036854775807 - 1", "company = E'two\\nlines'", "\"grant\" = '[]'"};
    static const char *const events_of_sqlite[] = {"detail = '[]'", "happened_at = ''",
                                                   "prev_hash = upper(row_hash)"};
    static const char *const events_of_postgres[] = {"detail = '[]'", "happened_at = '-infinity'"};
    bool is_sqlite = _i == LEDGER_SQLITE;
    struct ledger ledger;
    struct records_chain chains[2];
    history_begin(&ledger, (enum ledger_kind)_i, server, chains);
    expect_unreadable(&ledger, "runs", 6, chains[1].writer,
                      is_sqlite ? runs_of_sqlite : runs_of_postgres,
                      is_sqlite ? AR_COUNT(runs_of_sqlite) : AR_COUNT(runs_of_postgres));
    expect_unreadable(&ledger, "events", 4, chains[0].writer,
                      is_sqlite ? events_of_sqlite : events_of_postgres,
                      is_sqlite ? AR_COUNT(events_of_sqlite) : AR_COUNT(events_of_postgres));
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_verify_of_one_writer)
{
    struct ledger ledger;
    struct records_chain chains[2];
    history_begin(&ledger, (enum ledger_kind)_i, server, chains);
    history_tamper(&ledger, "DELETE FROM runs WHERE writer = '%s' AND seq = 3", chains[0].writer);
    const struct verify_options first = {.writer = chains[0].writer},
                                second = {.writer = chains[1].writer};
    history_expect(&ledger, &first, VERIFY_MISSING, chains[0].writer, 3);
    struct verify_result result = history_verify(&ledger, &second);
    ck_assert_int_eq(result.finding, VERIFY_OK);
    ck_assert_int_eq(result.rows, HISTORY_ROWS);
    ck_assert_int_eq(result.writers, 1);
    ledger_end(&ledger);
}
END_TEST

static void note_progress(void *context, int64_t rows, int64_t of)
{
    (void)of;
    *(int64_t *)context = rows;
}

START_TEST(test_verify_reports_progress)
{
    struct ledger ledger;
    struct records_chain chain;
    struct verify_result result;
    int64_t last = 0;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 3);
    for (int i = 0; i < 9; i++)
        ledger_grow(&ledger, &chain, RECORDS_MAX);
    struct reader *reader = ledger_reader(&ledger);
    const struct verify_options options = {.progress = note_progress, .context = &last};
    ck_assert_int_eq(verify_ledger(reader, &options, &result), 0);
    reader_close(reader);
    ck_assert_int_eq(result.finding, VERIFY_OK);
    ck_assert_int_eq(result.rows, 9 * RECORDS_MAX);
    ck_assert_int_gt(last, 0);
    ck_assert_int_le(last, result.rows);
    ledger_end(&ledger);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest **const both[] = {
        &test_verify_of_nothing,           &test_verify_names_an_altered_column,
        &test_verify_names_inserted_rows,  &test_verify_names_a_replaced_row,
        &test_verify_names_a_repeated_seq, &test_verify_names_an_unreadable_row,
        &test_verify_of_one_writer,        &test_verify_reports_progress};
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 300);
    for (size_t i = 0; i < AR_COUNT(both); i++)
        tcase_add_loop_test(tcase, *both[i], LEDGER_SQLITE, LEDGER_POSTGRES + 1);
    tcase_add_loop_test(tcase, test_verify_names_what_was_dropped_or_moved, 0,
                        2 * (int)AR_COUNT(dropped_and_moved));
}

int main(void)
{
    Suite *suite = suite_create("verify");
    TCase *tcase = tcase_create("verify");
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
