/*
 * check_verify.c - whoever changes a ledger behind its back is found out, at the first row that is
 * wrong. The same tests on SQLite and PostgreSQL.
 */
#include "sinks/verify.h"
#include "tests/lib/ledger.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct postgres_server *server; /* one for all tests of this program */

static void start_server(void)
{
    server = postgres_start();
    ck_assert_ptr_nonnull(server);
}

static void stop_server(void)
{
    postgres_free(server);
    server = NULL;
}

/* A statement with the writer in each place of "%s". */
static void tamper(const struct ledger *ledger, const char *sql, const char *writer)
{
    char *made = NULL;
    size_t length;
    FILE *stream = open_memstream(&made, &length);
    ck_assert_ptr_nonnull(stream);
    for (const char *place; (place = strstr(sql, "%s")); sql = place + 2)
        (void)fprintf(stream, "%.*s%s", (int)(place - sql), sql, writer);
    (void)fputs(sql, stream);
    ck_assert_int_eq(fclose(stream), 0);
    ck_assert_msg(ledger_tamper(ledger, made), "%s", made);
    free(made);
}

/* ---- verify --------------------------------------------------------------------------------- */

START_TEST(test_verify_of_nothing)
{
    struct ledger ledger;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    ledger_expect_sound(&ledger, 0, 0);
    ledger_end(&ledger);
}
END_TEST

/* The smallest change of each column turns both, C and SQL, red at that row. */
START_TEST(test_verify_names_an_altered_column)
{
    static const struct {
        const char *column, *sqlite, *postgres;
    } changes[] = {
        {"run_id", "'1' || substr(run_id, 2)", "overlay(run_id::text placing '1' from 1)::uuid"},
        {"schema_version", "schema_version + 1", "schema_version + 1"},
        {"company", "company || ' '", "company || ' '"},
        {"actor", "''", "''"},
        {"purpose", "upper(purpose)", "upper(purpose)"},
        {"client_name", "NULL", "NULL"},
        {"client_uid", "client_uid + 1", "client_uid + 1"},
        {"client_gid", "-client_gid", "-client_gid"},
        {"client_pid", "0", "0"},
        {"language", "'Python'", "'Python'"},
        {"code_sha256", "row_hash", "row_hash"},
        {"code_bytes", "code_bytes + 1", "code_bytes + 1"},
        {"\"grant\"", "'{}'", "'{}'"},
        {"provider", "NULL", "NULL"},
        {"provider_version", "''", "''"},
        {"envelope_sha256", "NULL", "NULL"},
        {"status", "'failed', reason = 'exit_nonzero'", "'failed', reason = 'exit_nonzero'"},
        {"denials", "'[ ]'", "'[ ]'"},
        {"exit_code", "NULL", "NULL"},
        {"signal", "0", "0"},
        {"usage", "'{}'", "'{}'"},
        {"trace_id", "substr(row_hash, 1, 32)", "substr(row_hash, 1, 32)"},
        {"received_at", "replace(received_at, '6', '7')", "received_at + interval '1 microsecond'"},
        {"started_at", "NULL", "NULL"},
        {"finished_at", "received_at", "received_at"},
        {"recorded_at", "received_at", "recorded_at - interval '1 microsecond'"},
        {"late", "1 - late", "NOT late"},
        {"prev_hash", "row_hash", "row_hash"},
        {"row_hash", "prev_hash", "prev_hash"},
    };
    struct ledger ledger;
    struct records_chain chains[2];
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    ck_assert(ledger_tamper(&ledger, "CREATE TABLE kept AS SELECT * FROM runs"));
    for (size_t i = 0; i < AR_COUNT(changes); i++) {
        char sql[512];
        (void)snprintf(sql, sizeof(sql), "UPDATE runs SET %s = %s WHERE writer = '%s' AND seq = 4",
                       changes[i].column,
                       _i == LEDGER_SQLITE ? changes[i].sqlite : changes[i].postgres,
                       chains[1].writer);
        ck_assert_msg(ledger_tamper(&ledger, sql), "%s", sql);
        struct verify_result result = ledger_verify(&ledger);
        ck_assert_msg(result.finding == VERIFY_ALTERED, "%s: %s", changes[i].column,
                      verify_word(result.finding));
        ck_assert_int_eq(result.seq, 4);
        ck_assert_str_eq(result.writer, chains[1].writer);
        ledger_expect_sql_hash(&ledger, "1");
        ck_assert(ledger_tamper(&ledger, "DELETE FROM runs; INSERT INTO runs SELECT * FROM kept"));
    }
    ledger_expect_sound(&ledger, 2 * LEDGER_ROWS, 2);
    ledger_expect_sql_hash(&ledger, "0");
    ledger_end(&ledger);
}
END_TEST

static const struct change {
    const char *sql; /* with the writer twice at most */
    enum verify_finding finding;
    size_t chain;
    int64_t seq;
} dropped_and_moved[] = {
    {"DELETE FROM runs WHERE writer = '%s' AND seq = 1", VERIFY_MISSING, 0, 1},
    {"DELETE FROM runs WHERE writer = '%s' AND seq = 5", VERIFY_MISSING, 1, 5},
    {"DELETE FROM runs WHERE writer = '%s' AND seq = 10", VERIFY_HEAD, 0, 10},
    {"DELETE FROM runs WHERE writer = '%s' AND seq > 7", VERIFY_HEAD, 1, 8},
    {"DELETE FROM runs WHERE writer = '%s'", VERIFY_HEAD, 0, 1},
    {"DELETE FROM writers WHERE writer = '%s'", VERIFY_HEAD, 1, 1},
    {"DELETE FROM runs WHERE writer = '%s'; DELETE FROM writers WHERE writer <> '%s'", VERIFY_HEAD,
     0, 1},
    /* Two rows change places. */
    {"UPDATE runs SET seq = 11 - seq + 1000 WHERE writer = '%s' AND seq IN (5, 6);"
     "UPDATE runs SET seq = seq - 1000 WHERE writer = '%s' AND seq > 1000",
     VERIFY_ALTERED, 0, 5},
    /* A head that steps back hides nothing. */
    {"UPDATE writers SET seq = 7, hash = (SELECT row_hash FROM runs AS r WHERE "
     "r.writer = writers.writer AND r.seq = 7) WHERE writer = '%s'",
     VERIFY_HEAD, 1, 8},
    {"UPDATE writers SET hash = (SELECT prev_hash FROM runs AS r WHERE r.writer = writers.writer "
     "AND r.seq = 7) WHERE writer = '%s'",
     VERIFY_HEAD, 0, 10},
    /* The first five rows are gone, and the rest is numbered anew. */
    {"DELETE FROM runs WHERE writer = '%s' AND seq <= 5;"
     "UPDATE runs SET seq = seq - 5 WHERE writer = '%s'",
     VERIFY_ALTERED, 1, 1},
};

START_TEST(test_verify_names_what_was_dropped_or_moved)
{
    const struct change *change = &dropped_and_moved[(size_t)_i / 2];
    struct ledger ledger;
    struct records_chain chains[2];
    ledger_begin_with_rows(&ledger, _i % 2 ? LEDGER_POSTGRES : LEDGER_SQLITE, server, chains);
    tamper(&ledger, change->sql, chains[change->chain].writer);
    ledger_expect_finding(&ledger, change->finding, chains[change->chain].writer, change->seq);
    ledger_end(&ledger);
}
END_TEST

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
                   "UPDATE writers SET seq = %" PRId64 ", hash = '%s' WHERE writer = '%s'",
                   head.seq, head.hash, chains[0].writer);
    ck_assert(ledger_tamper(&ledger, sql));
    ledger_expect_finding(&ledger, VERIFY_HEAD, chains[0].writer, LEDGER_ROWS + 1);
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
                   "UPDATE runs SET purpose = 'another purpose', row_hash = '%s' "
                   "WHERE writer = '%s' AND seq = 4",
                   record->row_hash, forged.writer);
    ck_assert(ledger_tamper(&ledger, sql));
    ledger_expect_sql_hash(&ledger, "0");
    ledger_expect_finding(&ledger, VERIFY_UNLINKED, forged.writer, 5);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_verify_names_a_repeated_seq)
{
    struct ledger ledger;
    struct records_chain chains[2];
    if (_i != LEDGER_POSTGRES) /* SQLite cannot drop the constraint of a table */
        return;
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    tamper(&ledger,
           "ALTER TABLE runs DROP CONSTRAINT runs_writer_seq_key;"
           "CREATE TABLE one AS SELECT * FROM runs WHERE writer = '%s' AND seq = 3;"
           "UPDATE one SET run_id = overlay(run_id::text placing '1' from 1)::uuid;"
           "INSERT INTO runs SELECT * FROM one",
           chains[1].writer);
    struct verify_result result = ledger_verify(&ledger);
    ck_assert(result.finding == VERIFY_REPEATED || result.finding == VERIFY_ALTERED);
    ck_assert_int_eq(result.seq, 3);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_verify_names_an_unreadable_row)
{
    static const char *const of_sqlite[] = {
        "client_uid = 'root'",      "client_uid = 1.5",
        "company = x'616263'",      "received_at = 'soon'",
        "\"grant\" = 'nothing'",    "exit_code = -9223372036854775807 - 1",
        "company = 'a' || char(0)", "row_hash = upper(row_hash)"};
    static const char *const of_postgres[] = {
        "received_at = 'infinity'", "received_at = '0044-03-15 12:00 BC'",
        "exit_code = -9223372036854775807 - 1", "company = E'two\\nlines'", "\"grant\" = '[]'"};
    struct ledger ledger;
    struct records_chain chains[2];
    size_t count = _i == LEDGER_SQLITE ? AR_COUNT(of_sqlite) : AR_COUNT(of_postgres);
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    ck_assert(ledger_tamper(&ledger, "CREATE TABLE kept AS SELECT * FROM runs"));
    for (size_t i = 0; i < count; i++) {
        char sql[512];
        (void)snprintf(sql, sizeof(sql), "UPDATE runs SET %s WHERE writer = '%s' AND seq = 6",
                       _i == LEDGER_SQLITE ? of_sqlite[i] : of_postgres[i], chains[1].writer);
        ck_assert_msg(ledger_tamper(&ledger, sql), "%s", sql);
        struct verify_result result = ledger_verify(&ledger);
        ck_assert_msg(result.finding == VERIFY_UNREADABLE, "%s: %s", sql,
                      verify_word(result.finding));
        ck_assert_str_eq(result.writer, chains[1].writer);
        ck_assert_int_eq(result.seq, 6);
        ck_assert(ledger_tamper(&ledger, "DELETE FROM runs; INSERT INTO runs SELECT * FROM kept"));
    }
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
        &test_verify_reports_progress};
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
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
