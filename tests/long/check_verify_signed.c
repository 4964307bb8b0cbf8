/*
 * check_verify_signed.c - checkpoints: whoever can write to a ledger as he likes, and computes every
 * hash anew, is found out by a signature that was kept elsewhere; and rows that were retired are
 * missed by nobody, as long as somebody signed for it. The same tests on SQLite and PostgreSQL.
 */
#include "tests/contract/server.h"
#include "tests/lib/history.h"
#include "tests/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A ledger with two chains, each with a checkpoint over its seq 5 and one over its head. */
struct signed_ledger {
    struct ledger ledger;
    struct records_chain chains[2];
    struct checkpoint_key *key, *other;
    struct checkpoint checkpoints[4];
};

static void begin(struct signed_ledger *self, int kind)
{
    struct records_chain half;
    *self = (struct signed_ledger){.key = history_key(), .other = history_key()};
    ledger_begin(&self->ledger, (enum ledger_kind)kind, server);
    for (size_t i = 0; i < 2; i++) {
        struct records_chain *chain = &self->chains[i];
        records_begin(chain, 3000 + i);
        chain->writer[0] = i == 0 ? '1' : '2';
        history_grow_event(&self->ledger, chain, EVENT_STARTED, "{}");
        ledger_grow(&self->ledger, chain, 4);
        half = *chain;
        ledger_grow(&self->ledger, chain, 5);
        self->checkpoints[2 * i] = history_sign(&half, self->key);
        self->checkpoints[2 * i + 1] = history_sign(chain, self->key);
        for (size_t k = 2 * i; k < 2 * i + 2; k++) {
            ck_assert(ledger_checkpoint(&self->ledger, &self->checkpoints[k]));
            ck_assert(ledger_checkpoint(&self->ledger, &self->checkpoints[k]));
        }
    }
}

static void end(struct signed_ledger *self)
{
    checkpoint_key_free(self->key);
    checkpoint_key_free(self->other);
    ledger_end(&self->ledger);
}

static struct verify_options elsewhere(const struct signed_ledger *self)
{
    return (struct verify_options){.checkpoints = self->checkpoints,
                                   .checkpoint_count = AR_COUNT(self->checkpoints)};
}

/* ---- what is in the store ----------------------------------------------------------------------- */

START_TEST(test_checkpoints_come_back)
{
    struct signed_ledger self;
    struct reader_filter filter = READER_FILTER_ALL;
    struct checkpoint checkpoint;
    begin(&self, _i);
    struct reader *reader = ledger_reader(&self.ledger);
    ck_assert_int_eq(reader_query_checkpoints(reader, &filter), 0);
    for (size_t i = 0; i < AR_COUNT(self.checkpoints); i++) {
        ck_assert_int_eq(reader_next_checkpoint(reader, &checkpoint), 0);
        ck_assert_mem_eq(&checkpoint, &self.checkpoints[i], sizeof(checkpoint));
    }
    ck_assert_int_eq(reader_next_checkpoint(reader, &checkpoint), 1);
    filter.after_writer = self.chains[1].writer;
    filter.after_seq = 5;
    ck_assert_int_eq(reader_query_checkpoints(reader, &filter), 0);
    ck_assert_int_eq(reader_next_checkpoint(reader, &checkpoint), 0);
    ck_assert_int_eq(checkpoint.seq, HISTORY_ROWS);
    ck_assert_int_eq(reader_next_checkpoint(reader, &checkpoint), 1);
    reader_close(reader);
    end(&self);
}
END_TEST

/* An export that broke off goes on where it was, over both tables. */
START_TEST(test_readers_go_on_behind_a_place)
{
    struct signed_ledger self;
    struct reader_filter filter = READER_FILTER_ALL;
    begin(&self, _i);
    struct reader *reader = ledger_reader(&self.ledger);
    filter.after_writer = self.chains[0].writer;
    filter.after_seq = 8;
    ck_assert_int_eq(reader_query(reader, &filter, READER_BY_CHAIN), 0);
    for (int64_t wanted = 9; wanted < 9 + 2 + 9; wanted++) {
        AR_CLEANUP(record_cleanup) struct record *record = NULL;
        ck_assert_int_eq(reader_next(reader, &record), 0);
        ck_assert_int_eq(record->seq, wanted <= 10 ? wanted : wanted - 9);
        ck_assert_int_eq(record_check(record), 0);
    }
    struct record *none = NULL;
    ck_assert_int_eq(reader_next(reader, &none), 1);
    ck_assert_int_eq(reader_query_events(reader, &filter, READER_BY_CHAIN), 0);
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = NULL;
    ck_assert_int_eq(reader_next_event(reader, &event), 0);
    ck_assert_str_eq(event->writer, self.chains[1].writer);
    ck_assert_int_eq(chain_event_check(event), 0);
    struct chain_event *no_event = NULL;
    ck_assert_int_eq(reader_next_event(reader, &no_event), 1);
    reader_close(reader);
    end(&self);
}
END_TEST

static const struct change {
    const char *sqlite, *postgres; /* of the second chain's checkpoint over 5; NULL: the same */
    enum verify_finding finding;
} changes[] = {
    {"UPDATE checkpoints SET row_hash = key_id WHERE writer = '%s' AND seq = 5", NULL,
     VERIFY_CHECKPOINT},
    {"UPDATE checkpoints SET seq = 4 WHERE writer = '%s' AND seq = 5", NULL, VERIFY_CHECKPOINT},
    {"UPDATE checkpoints SET seq = 11 WHERE writer = '%s' AND seq = 5", NULL, VERIFY_CHECKPOINT},
    {"UPDATE checkpoints SET signature = CASE substr(signature, 1, 1) WHEN '0' THEN '1' ELSE '0' "
     "END || substr(signature, 2) WHERE writer = '%s' AND seq = 5",
     "UPDATE checkpoints SET signature = set_byte(signature, 0, (get_byte(signature, 0) + 1) % "
     "256) "
     "WHERE writer = '%s' AND seq = 5",
     VERIFY_UNSIGNED},
    {"UPDATE checkpoints SET made_at = replace(made_at, '8Z', '9Z') WHERE writer = '%s' AND seq = "
     "5",
     "UPDATE checkpoints SET made_at = made_at + interval '1 microsecond' WHERE writer = '%s' "
     "AND seq = 5",
     VERIFY_UNSIGNED},
    {"DELETE FROM checkpoint_keys WHERE 'of %s' <> ''", NULL, VERIFY_UNSIGNED},
};

START_TEST(test_changed_checkpoints_are_found)
{
    const struct change *change = &changes[(size_t)_i / 2];
    bool in_postgres = _i % 2;
    struct signed_ledger self;
    begin(&self, in_postgres ? LEDGER_POSTGRES : LEDGER_SQLITE);
    struct verify_result result = history_verify(&self.ledger, NULL);
    ck_assert_int_eq(result.finding, VERIFY_OK);
    ck_assert_int_eq(result.checkpoints, 4);
    history_tamper(&self.ledger,
                   in_postgres && change->postgres ? change->postgres : change->sqlite,
                   self.chains[1].writer);
    result = history_verify(&self.ledger, NULL);
    ck_assert_msg(result.finding == change->finding, "%s: %s", change->sqlite,
                  verify_word(result.finding));
    end(&self);
}
END_TEST

START_TEST(test_only_the_keys_that_were_given_count)
{
    struct signed_ledger self;
    begin(&self, _i);
    const char *key = checkpoint_key_id(self.key), *other = checkpoint_key_id(self.other);
    const char *const both[] = {other, key};
    struct verify_options options = {.key_ids = &key, .key_id_count = 1};
    history_expect(&self.ledger, &options, VERIFY_OK, "", 0);
    options.key_ids = both;
    options.key_id_count = 2;
    history_expect(&self.ledger, &options, VERIFY_OK, "", 0);
    options.key_id_count = 1;
    history_expect(&self.ledger, &options, VERIFY_UNSIGNED, self.chains[0].writer, 5);
    end(&self);
}
END_TEST

/* ---- a history that is written anew ------------------------------------------------------------- */

/* Removes everything, and writes so many other rows of the first writer, with right hashes, heads and
 * checkpoints by another key. */
static void rewrite(struct signed_ledger *self, size_t rows)
{
    struct records_chain anew;
    ck_assert(ledger_tamper(&self->ledger, "DELETE FROM checkpoints; DELETE FROM checkpoint_keys;"
                                           "DELETE FROM runs; DELETE FROM events;"
                                           "DELETE FROM writers"));
    records_begin(&anew, 7777);
    memcpy(anew.writer, self->chains[0].writer, sizeof(anew.writer));
    ledger_grow(&self->ledger, &anew, rows);
    struct checkpoint checkpoint = history_sign(&anew, self->other);
    ck_assert(ledger_checkpoint(&self->ledger, &checkpoint));
}

START_TEST(test_rewritten_history_is_found)
{
    struct signed_ledger self;
    begin(&self, _i);
    struct verify_options options = elsewhere(&self);
    history_expect(&self.ledger, &options, VERIFY_OK, "", 0);
    rewrite(&self, HISTORY_ROWS);
    history_expect(&self.ledger, NULL, VERIFY_OK, "", 0);
    history_expect(&self.ledger, &options, VERIFY_CHECKPOINT, self.chains[0].writer, 5);
    const char *key = checkpoint_key_id(self.key);
    const struct verify_options by_key = {.key_ids = &key, .key_id_count = 1};
    history_expect(&self.ledger, &by_key, VERIFY_UNSIGNED, self.chains[0].writer, HISTORY_ROWS);
    end(&self);
}
END_TEST

/* The second writer is gone as a whole; and of the first only a prefix is left. */
START_TEST(test_cut_off_history_is_found)
{
    struct signed_ledger self;
    begin(&self, _i);
    struct verify_options options = elsewhere(&self);
    history_tamper(&self.ledger,
                   "DELETE FROM checkpoints WHERE writer = '%s'; DELETE FROM runs WHERE writer = "
                   "'%s'; DELETE FROM events WHERE writer = '%s'; DELETE FROM writers WHERE "
                   "writer = '%s'",
                   self.chains[1].writer);
    history_expect(&self.ledger, NULL, VERIFY_OK, "", 0);
    history_expect(&self.ledger, &options, VERIFY_CHECKPOINT, self.chains[1].writer, 1);
    history_tamper(&self.ledger,
                   "DELETE FROM runs WHERE writer = '%s' AND seq > 7;"
                   "DELETE FROM checkpoints WHERE seq > 7;"
                   "UPDATE writers SET seq = 7, hash = (SELECT row_hash FROM runs AS r WHERE "
                   "r.writer = writers.writer AND r.seq = 7)",
                   self.chains[0].writer);
    history_expect(&self.ledger, NULL, VERIFY_OK, "", 0);
    history_expect(&self.ledger, &options, VERIFY_CHECKPOINT, self.chains[0].writer, 8);
    end(&self);
}
END_TEST

/* ---- retired ranges ----------------------------------------------------------------------------- */

/* What there is to say of these rows of a chain, while they are there. */
static char *range_of(const struct ledger *ledger, const char *writer, int64_t first, int64_t last)
{
    AR_AUTO_FREE char *sql = NULL;
    bool in_postgres = ledger->kind == LEDGER_POSTGRES;
    ck_assert_int_gt(
        asprintf(&sql,
                 "SELECT '{\"first_seq\":%" PRId64 ",\"last_hash\":\"' || %s(z.row_hash%s) || "
                 "'\",\"last_seq\":%" PRId64 ",\"prev_hash\":\"' || %s(a.prev_hash%s) || "
                 "'\",\"writer\":\"%s\"}' FROM runs AS a, runs AS z WHERE a.writer = '%s' "
                 "AND z.writer = a.writer AND a.seq = %" PRId64 " AND z.seq = %" PRId64,
                 first, in_postgres ? "encode" : "", in_postgres ? ", 'hex'" : "", last,
                 in_postgres ? "encode" : "", in_postgres ? ", 'hex'" : "", writer, writer, first,
                 last),
        0);
    char *range = ledger_value(ledger, sql);
    ck_assert_ptr_nonnull(range);
    ck_assert_str_ne(range, "");
    return range;
}

/* The event of a partition with these rows, in a new writer's chain. Returns the checkpoint. */
static struct checkpoint retire(struct signed_ledger *self, const char *ranges, uint64_t seed)
{
    AR_AUTO_FREE char *detail = NULL;
    struct records_chain chain;
    history_new_chain(&chain, seed);
    ck_assert_int_gt(asprintf(&detail,
                              "{\"from\":\"2026-01-05T00:00:00.000000Z\",\"partition\":"
                              "\"runs_20260105\",\"ranges\":[%s],\"rows\":4,\"until\":"
                              "\"2026-01-12T00:00:00.000000Z\"}",
                              ranges),
                     0);
    history_grow_event(&self->ledger, &chain, EVENT_PARTITION_RETIRED, detail);
    return history_sign(&chain, self->key);
}

static void drop(const struct signed_ledger *self, int64_t first, int64_t last)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "DELETE FROM runs WHERE writer = '%%s' AND seq BETWEEN %" PRId64 " AND %" PRId64,
                   first, last);
    history_tamper(&self->ledger, sql, self->chains[0].writer);
}

/* In the middle with a checkpoint inside (5), up to the head, and two that follow each other. */
START_TEST(test_retired_rows_are_jumped_over)
{
    static const struct {
        int64_t first[2], last[2], retired;
    } cases[] = {
        {{4, 0}, {7, 0}, 4},
        {{2, 0}, {2, 0}, 1},
        {{6, 0}, {10, 0}, 5},
        {{2, 5}, {4, 10}, 9},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct signed_ledger self;
        struct checkpoint checkpoints[2];
        begin(&self, _i);
        for (size_t k = 0; k < 2 && cases[i].first[k] > 0; k++) {
            AR_AUTO_FREE char *range =
                range_of(&self.ledger, self.chains[0].writer, cases[i].first[k], cases[i].last[k]);
            checkpoints[k] = retire(&self, range, 5000 + k);
        }
        for (size_t k = 0; k < 2 && cases[i].first[k] > 0; k++)
            drop(&self, cases[i].first[k], cases[i].last[k]);
        history_expect(&self.ledger, NULL, VERIFY_UNSIGNED, self.chains[0].writer,
                       cases[i].first[0]);
        for (size_t k = 0; k < 2 && cases[i].first[k] > 0; k++)
            ck_assert(ledger_checkpoint(&self.ledger, &checkpoints[k]));
        struct verify_result result = history_verify(&self.ledger, NULL);
        ck_assert_msg(result.finding == VERIFY_OK, "%zu: %s at %" PRId64, i,
                      verify_word(result.finding), result.seq);
        ck_assert_int_eq(result.retired, cases[i].retired);
        /* For one chain alone too, and only with the right key. */
        const char *other = checkpoint_key_id(self.other);
        struct verify_options options = {.writer = self.chains[0].writer};
        history_expect(&self.ledger, &options, VERIFY_OK, "", 0);
        options.key_ids = &other;
        options.key_id_count = 1;
        ck_assert_int_eq(history_verify(&self.ledger, &options).finding, VERIFY_UNSIGNED);
        end(&self);
    }
}
END_TEST

/* An event that tells less, or something else, than what is gone. */
START_TEST(test_retirement_excuses_nothing_else)
{
    struct signed_ledger self;
    begin(&self, _i);
    AR_AUTO_FREE char *range = range_of(&self.ledger, self.chains[0].writer, 6, 8);
    struct checkpoint checkpoint = retire(&self, range, 6000);
    ck_assert(ledger_checkpoint(&self.ledger, &checkpoint));
    history_expect(&self.ledger, NULL, VERIFY_OK, "", 0); /* they are all there still */
    drop(&self, 7, 7);
    history_expect(&self.ledger, NULL, VERIFY_MISSING, self.chains[0].writer, 7);
    drop(&self, 6, 6);
    history_expect(&self.ledger, NULL, VERIFY_REPEATED, self.chains[0].writer, 8);
    drop(&self, 8, 8);
    history_expect(&self.ledger, NULL, VERIFY_OK, "", 0);
    drop(&self, 9, 9);
    history_expect(&self.ledger, NULL, VERIFY_MISSING, self.chains[0].writer, 9);
    drop(&self, 10, 10);
    history_expect(&self.ledger, NULL, VERIFY_HEAD, self.chains[0].writer, 9);
    end(&self);
}
END_TEST

/* The event itself is a row like any other. */
START_TEST(test_changed_retirement_is_found)
{
    struct signed_ledger self;
    begin(&self, _i);
    AR_AUTO_FREE char *range = range_of(&self.ledger, self.chains[0].writer, 6, 8);
    struct checkpoint checkpoint = retire(&self, range, 6000);
    history_expect(&self.ledger, NULL, VERIFY_UNSIGNED, checkpoint.writer, 1);
    ck_assert(ledger_checkpoint(&self.ledger, &checkpoint));
    history_expect(&self.ledger, NULL, VERIFY_OK, "", 0);
    drop(&self, 6, 9);
    history_tamper(
        &self.ledger,
        _i == LEDGER_POSTGRES
            ? "UPDATE events SET detail = replace(detail::text, ':8', ':9')::json "
              "WHERE writer = '%s'"
            : "UPDATE events SET detail = replace(detail, ':8', ':9') WHERE writer = '%s'",
        checkpoint.writer);
    ck_assert_int_ne(history_verify(&self.ledger, NULL).finding, VERIFY_OK);
    end(&self);
}
END_TEST

int main(void)
{
    static const TTest **const both[] = {
        &test_checkpoints_come_back,
        &test_readers_go_on_behind_a_place,
        &test_only_the_keys_that_were_given_count,
        &test_rewritten_history_is_found,
        &test_cut_off_history_is_found,
        &test_retired_rows_are_jumped_over,
        &test_retirement_excuses_nothing_else,
        &test_changed_retirement_is_found,
    };
    Suite *suite = suite_create("verify_signed");
    TCase *tcase = tcase_create("verify_signed");
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 300);
    for (size_t i = 0; i < AR_COUNT(both); i++)
        tcase_add_loop_test(tcase, *both[i], LEDGER_SQLITE, LEDGER_POSTGRES + 1);
    tcase_add_loop_test(tcase, test_changed_checkpoints_are_found, 0, 2 * (int)AR_COUNT(changes));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
