/*
 * check_ledger.c - a ledger, once it is written, refuses changes and can be read, whatever the
 * settings of the server. The same tests on SQLite and PostgreSQL.
 */
#include "sinks/reader.h"
#include "sinks/schema.h"
#include "tests/contract/server.h"
#include "tests/lib/ledger.h"
#include "tests/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- the schema ----------------------------------------------------------------------------- */

START_TEST(test_init_again_changes_nothing)
{
    struct ledger ledger;
    struct records_chain chains[2];
    char message[SCHEMA_MESSAGE_BYTES];
    int applied = -1;
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    ck_assert_int_eq(schema_init(ledger.url, &applied, message), 0);
    ck_assert_int_eq(applied, 0);
    ledger_expect_sound(&ledger, 2 * LEDGER_ROWS, 2);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_init_says_no)
{
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    ck_assert_int_eq(schema_init("sqlite:/nowhere/at/all.db", &applied, message), 1);
    ck_assert_str_ne(message, "");
    ck_assert_int_eq(schema_init("postgres:host=/nowhere", &applied, message), 1);
    ck_assert_str_ne(message, "");
    ck_assert_int_eq(schema_init("mysql:x", &applied, message), 2);
    struct reader *reader = NULL;
    ck_assert_int_eq(reader_open("sqlite:/nowhere/at/all.db", &reader, message), 1);
    ck_assert_int_eq(reader_open("postgres:host=/nowhere", &reader, message), 1);
    ck_assert_int_eq(reader_open("mysql:x", &reader, message), 2);
}
END_TEST

START_TEST(test_changes_are_refused)
{
    static const char *const everywhere[] = {
        "UPDATE runs SET company = 'globex'",
        "UPDATE runs SET company = company WHERE seq = 3",
        "DELETE FROM runs",
        "DELETE FROM runs WHERE seq = 10",
        "DELETE FROM writers",
        "UPDATE writers SET seq = seq - 1",
        "DELETE FROM keys",
        "UPDATE keys SET run_id = run_id",
    };
    static const char *const of_sqlite[] = {
        "INSERT OR REPLACE INTO runs SELECT * FROM runs WHERE seq = 3",
        "REPLACE INTO runs SELECT * FROM runs",
        "UPDATE writers SET hash = lower(hex(randomblob(32)))",
    };
    static const char *const of_postgres[] = {
        "UPDATE writers SET hash = pg_catalog.sha256(hash)",
        "TRUNCATE runs",
        "TRUNCATE writers",
        "TRUNCATE keys",
        "TRUNCATE runs, writers, keys CASCADE",
        "SET session_replication_role = replica; DELETE FROM runs",
        "INSERT INTO runs SELECT * FROM runs ON CONFLICT (run_id) DO UPDATE SET company = 'x'",
    };
    struct ledger ledger;
    struct records_chain chains[2];
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    ck_assert_int_eq(ledger_claim(&ledger, "acme", "k", digest_zero, chains[0].writer).claim,
                     SINK_CLAIMED);
    for (size_t i = 0; i < AR_COUNT(everywhere); i++)
        ck_assert_msg(!ledger_sql(&ledger, everywhere[i]), "%s", everywhere[i]);
    for (size_t i = 0; _i == LEDGER_SQLITE && i < AR_COUNT(of_sqlite); i++)
        ck_assert_msg(!ledger_sql(&ledger, of_sqlite[i]), "%s", of_sqlite[i]);
    for (size_t i = 0; _i == LEDGER_POSTGRES && i < AR_COUNT(of_postgres); i++)
        ck_assert_msg(!ledger_sql(&ledger, of_postgres[i]), "%s", of_postgres[i]);
    ledger_expect_sound(&ledger, 2 * LEDGER_ROWS, 2);
    ledger_end(&ledger);
}
END_TEST

/* An insert over a head or a key that is there changes neither. */
START_TEST(test_replacing_heads_and_keys_changes_nothing)
{
    struct ledger ledger;
    struct records_chain chains[2];
    if (_i != LEDGER_SQLITE)
        return;
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    ck_assert_int_eq(ledger_claim(&ledger, "acme", "k", digest_zero, chains[0].writer).claim,
                     SINK_CLAIMED);
    ck_assert(ledger_sql(&ledger, "REPLACE INTO writers (writer, seq, hash) SELECT writer, 1, hash "
                                  "FROM writers"));
    ck_assert(ledger_sql(&ledger, "REPLACE INTO keys SELECT company, idempotency_key, "
                                  "request_sha256, 'x' FROM keys"));
    struct ledger_claim claim = ledger_claim(&ledger, "acme", "k", digest_zero, chains[1].writer);
    ck_assert_int_eq(claim.claim, SINK_CLAIM_TAKEN);
    ck_assert_str_eq(claim.holder, chains[0].writer);
    ledger_expect_sound(&ledger, 2 * LEDGER_ROWS, 2);
    ledger_end(&ledger);
}
END_TEST

/* ---- reading -------------------------------------------------------------------------------- */

static size_t count_rows(struct reader *reader, const struct reader_filter *filter,
                         enum reader_order order)
{
    size_t count = 0;
    int rc;
    struct record *record;
    char before[UUID7_TEXT_BYTES] = "";
    int64_t seq = 0;
    ck_assert_int_eq(reader_query(reader, filter, order), 0);
    while ((rc = reader_next(reader, &record)) == 0) {
        const char *now = order == READER_BY_CHAIN ? record->writer : record->run_id;
        int compared = strcmp(before, now);
        if (count > 0 && order == READER_NEWEST_FIRST)
            ck_assert_int_gt(compared, 0);
        if (count > 0 && order == READER_BY_CHAIN)
            ck_assert(compared < 0 || (compared == 0 && record->seq > seq));
        memcpy(before, now, sizeof(before));
        seq = record->seq;
        record_free(record);
        count++;
    }
    ck_assert_int_eq(rc, 1);
    ck_assert_int_eq(reader_next(reader, &record), 1);
    return count;
}

static struct record *first_row(struct reader *reader, const struct reader_filter *filter)
{
    struct record *record = NULL;
    ck_assert_int_eq(reader_query(reader, filter, READER_NEWEST_FIRST), 0);
    ck_assert_int_eq(reader_next(reader, &record), 0);
    return record;
}

START_TEST(test_reader_filters)
{
    struct ledger ledger;
    struct records_chain chains[2];
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    struct reader *reader = ledger_reader(&ledger);
    struct reader_filter all = READER_FILTER_ALL, filter = all;
    ck_assert_uint_eq(count_rows(reader, &all, READER_NEWEST_FIRST), 2 * LEDGER_ROWS);
    ck_assert_uint_eq(count_rows(reader, &all, READER_BY_CHAIN), 2 * LEDGER_ROWS);
    filter.limit = 3;
    ck_assert_uint_eq(count_rows(reader, &filter, READER_NEWEST_FIRST), 3);
    ck_assert_uint_eq(count_rows(reader, &filter, READER_BY_CHAIN), 3);
    filter = all;
    filter.writer = chains[1].writer;
    ck_assert_uint_eq(count_rows(reader, &filter, READER_BY_CHAIN), LEDGER_ROWS);
    filter.company = "acme";
    filter.actor = "agent-000017";
    filter.status = "succeeded";
    ck_assert_uint_eq(count_rows(reader, &filter, READER_NEWEST_FIRST), LEDGER_ROWS);
    filter.company = "acme' OR '1' = '1";
    ck_assert_uint_eq(count_rows(reader, &filter, READER_NEWEST_FIRST), 0);

    AR_CLEANUP(record_cleanup) struct record *one = first_row(reader, &all);
    filter = all;
    filter.run_id = one->run_id;
    ck_assert_uint_eq(count_rows(reader, &filter, READER_NEWEST_FIRST), 1);
    filter = all;
    filter.code_sha256 = one->code_sha256;
    ck_assert_uint_eq(count_rows(reader, &filter, READER_NEWEST_FIRST), 1);
    filter = all;
    filter.since = one->received_at;
    filter.until = one->received_at + 1;
    ck_assert_uint_ge(count_rows(reader, &filter, READER_NEWEST_FIRST), 1);
    filter.until = one->received_at;
    ck_assert_uint_eq(count_rows(reader, &filter, READER_NEWEST_FIRST), 0);
    reader_close(reader);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_reader_stops_in_the_middle)
{
    struct ledger ledger;
    struct records_chain chains[2];
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    struct reader *reader = ledger_reader(&ledger);
    const struct reader_filter all = READER_FILTER_ALL;
    for (int i = 0; i < 3; i++) {
        AR_CLEANUP(record_cleanup) struct record *record = first_row(reader, &all);
        ck_assert_ptr_nonnull(record);
    }
    int64_t seq;
    char hash[DIGEST_HEX_BYTES], **writers;
    size_t count;
    ck_assert_int_eq(reader_head(reader, chains[0].writer, &seq, hash), 0);
    ck_assert_int_eq(seq, chains[0].seq);
    ck_assert_str_eq(hash, chains[0].hash);
    ck_assert_int_eq(reader_head(reader, "00000000-0000-7000-8000-000000000000", &seq, hash), 1);
    ck_assert_int_eq(reader_writers(reader, &writers, &count), 0);
    ck_assert_uint_eq(count, 2);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(writers[i], chains[i].writer);
        free(writers[i]);
    }
    free((void *)writers);
    reader_close(reader);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_frozen_reader_sees_one_moment)
{
    struct ledger ledger;
    struct records_chain chains[2];
    ledger_begin_with_rows(&ledger, (enum ledger_kind)_i, server, chains);
    struct reader *reader = ledger_reader(&ledger);
    const struct reader_filter all = READER_FILTER_ALL;
    struct verify_result result;
    ck_assert_int_eq(reader_freeze(reader), 0);
    ledger_grow(&ledger, &chains[0], 5);
    ck_assert_uint_eq(count_rows(reader, &all, READER_BY_CHAIN), 2 * LEDGER_ROWS);
    reader_thaw(reader);
    ck_assert_uint_eq(count_rows(reader, &all, READER_BY_CHAIN), 2 * LEDGER_ROWS + 5);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(verify_ledger(reader, NULL, &result), 0);
        ck_assert_int_eq(result.finding, VERIFY_OK);
        ledger_grow(&ledger, &chains[0], 5);
    }
    reader_close(reader);
    ledger_end(&ledger);
}
END_TEST

/* ---- settings of the server ----------------------------------------------------------------- */

#define ODD_RECORDS 100

static void append_odd(struct ledger *ledger)
{
    struct records_chain chain;
    struct record *records[ODD_RECORDS];
    records_begin(&chain, 20260131);
    struct sink_head head = ledger_chain_head(&chain);
    for (size_t i = 0; i < ODD_RECORDS; i++) {
        records[i] = records_odd(&chain);
        records_seal(&chain, records[i]);
    }
    ck_assert_int_eq(ledger_append(ledger, &head, records, ODD_RECORDS, LEDGER_DEADLINE_MS).outcome,
                     SINK_STORED);
    records_free(records, ODD_RECORDS);
}

static const char *const settings[] = {"TimeZone = 'Asia/Kathmandu'",
                                       "TimeZone = 'America/St_Johns'",
                                       "DateStyle = 'SQL, DMY'",
                                       "DateStyle = 'German'",
                                       "bytea_output = 'escape'",
                                       "extra_float_digits = -15",
                                       "IntervalStyle = 'sql_standard'",
                                       "standard_conforming_strings = off",
                                       "search_path = 'nowhere'",
                                       "default_transaction_isolation = 'serializable'",
                                       "client_encoding = 'LATIN1'",
                                       "quote_all_identifiers = on",
                                       "array_nulls = off"};

/* Written under one setting and read under another, every hash is right, in C and in SQL. */
START_TEST(test_no_setting_changes_a_hash)
{
    struct ledger ledger;
    char sql[256];
    ledger_begin(&ledger, LEDGER_POSTGRES, server);
    const char *setting = settings[_i];
    const char *name = strstr(ledger.url, "dbname=") + strlen("dbname=");
    (void)snprintf(sql, sizeof(sql), "ALTER DATABASE %s SET %s", name, setting);
    ck_assert(postgres_run(ledger.url, sql));
    append_odd(&ledger);
    ledger_expect_sound(&ledger, ODD_RECORDS, 1);
    ledger_expect_sql_hash(&ledger, "0");
    (void)snprintf(sql, sizeof(sql), "ALTER DATABASE %s RESET ALL", name);
    ck_assert(postgres_run(ledger.url, sql));
    ledger_expect_sound(&ledger, ODD_RECORDS, 1);
    ledger_expect_sql_hash(&ledger, "0");
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_odd_values_verify)
{
    struct ledger ledger;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    append_odd(&ledger);
    ledger_expect_sound(&ledger, ODD_RECORDS, 1);
    ledger_expect_sql_hash(&ledger, "0");
    ledger_end(&ledger);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest **const both[] = {&test_init_again_changes_nothing,
                                         &test_changes_are_refused,
                                         &test_replacing_heads_and_keys_changes_nothing,
                                         &test_reader_filters,
                                         &test_reader_stops_in_the_middle,
                                         &test_frozen_reader_sees_one_moment,
                                         &test_odd_values_verify};
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 300);
    for (size_t i = 0; i < AR_COUNT(both); i++)
        tcase_add_loop_test(tcase, *both[i], LEDGER_SQLITE, LEDGER_POSTGRES + 1);
    tcase_add_test(tcase, test_init_says_no);
    tcase_add_loop_test(tcase, test_no_setting_changes_a_hash, 0, (int)AR_COUNT(settings));
}

int main(void)
{
    Suite *suite = suite_create("ledger");
    TCase *tcase = tcase_create("ledger");
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
