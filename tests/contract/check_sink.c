/*
 * check_sink.c - the contract of sink.h, the same test for every sink: in memory, SQLite, PostgreSQL.
 *
 * What only one kind of store can suffer (a server that is gone, a file that was moved) is in
 * check_sink_faults.c; readers and verify are in check_ledger.c.
 */
#include "tests/contract/server.h"
#include "tests/lib/ledger.h"
#include "tests/suite.h"

#include <check.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

static const struct sink_head nowhere = {
    .seq = 0, .hash = "0000000000000000000000000000000000000000000000000000000000000000"};

static char *count_rows(const struct ledger *ledger)
{
    return ledger_value(ledger, "SELECT count(*) FROM runs");
}

static void expect_rows(const struct ledger *ledger, const char *count)
{
    if (ledger->kind == LEDGER_MEMORY)
        return;
    AR_AUTO_FREE char *rows = count_rows(ledger);
    ck_assert_str_eq(rows, count);
}

static void expect_head(struct ledger *ledger, const struct records_chain *chain)
{
    struct sink_head head;
    ck_assert_int_eq(ledger_head(ledger, chain->writer, &head), SINK_FOUND);
    ck_assert_int_eq(head.seq, chain->seq);
    ck_assert_str_eq(head.hash, chain->hash);
}

START_TEST(test_append_head_find)
{
    struct ledger ledger;
    struct records_chain chain;
    struct sink_head head;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 1);
    ck_assert_int_eq(ledger_head(&ledger, chain.writer, &head), SINK_ABSENT);
    ck_assert_int_eq(head.seq, 0);
    ck_assert_str_eq(head.hash, digest_zero);
    ck_assert(ledger_probe(&ledger, LEDGER_DEADLINE_MS));

    struct record *records[3];
    records_fill(&chain, records, 3);
    struct ledger_append first = ledger_append(&ledger, &nowhere, records, 3, LEDGER_DEADLINE_MS);
    ck_assert_int_eq(first.outcome, SINK_STORED);
    expect_head(&ledger, &chain);
    ledger_grow(&ledger, &chain, RECORDS_MAX);
    expect_head(&ledger, &chain);
    ledger_grow(&ledger, &chain, 1);
    expect_head(&ledger, &chain);

    for (size_t i = 0; i < 3; i++) {
        AR_CLEANUP(record_cleanup) struct record *found = NULL;
        const struct sink_key key = {.run_id = records[i]->run_id};
        ck_assert_int_eq(ledger_find(&ledger, &key, &found), SINK_FOUND);
        ck_assert(records_same(records[i], found));
        ck_assert_int_eq(record_check(found), 0);
    }
    AR_CLEANUP(record_cleanup) struct record *none = NULL;
    const struct sink_key unknown = {.run_id = chain.writer};
    ck_assert_int_eq(ledger_find(&ledger, &unknown, &none), SINK_ABSENT);
    records_free(records, 3);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_writers_have_chains_of_their_own)
{
    struct ledger ledger;
    struct records_chain chains[3];
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    for (size_t i = 0; i < 3; i++)
        records_begin(&chains[i], 100 + i);
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < 3; i++)
            ledger_grow(&ledger, &chains[i], 1 + i);
    for (size_t i = 0; i < 3; i++)
        expect_head(&ledger, &chains[i]);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_conflict_stores_nothing)
{
    struct ledger ledger;
    struct records_chain chain, rival;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 2);
    ledger_grow(&ledger, &chain, 2);
    rival = chain; /* two that believe to be the same writer */
    rival.random = 77;
    rival.ids.last_ms += 1000;
    struct sink_head head = ledger_chain_head(&chain), wrong = head;
    ledger_grow(&ledger, &chain, 2);

    struct record *records[2];
    records_fill(&rival, records, 2);
    ck_assert_int_eq(ledger_append(&ledger, &head, records, 2, LEDGER_DEADLINE_MS).outcome,
                     SINK_CONFLICT);
    /* The right seq with another hash, and a first batch where there is one already. */
    head = ledger_chain_head(&chain);
    wrong.seq = head.seq;
    ck_assert_int_eq(ledger_append(&ledger, &wrong, records, 2, LEDGER_DEADLINE_MS).outcome,
                     SINK_CONFLICT);
    ck_assert_int_eq(ledger_append(&ledger, &nowhere, records, 2, LEDGER_DEADLINE_MS).outcome,
                     SINK_CONFLICT);
    AR_CLEANUP(record_cleanup) struct record *none = NULL;
    const struct sink_key key = {.run_id = records[0]->run_id};
    ck_assert_int_eq(ledger_find(&ledger, &key, &none), SINK_ABSENT);
    expect_rows(&ledger, "4");
    ledger_grow(&ledger, &chain, 1);
    expect_head(&ledger, &chain);
    records_free(records, 2);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_refused_row_stores_nothing)
{
    struct ledger ledger;
    struct records_chain chain, before;
    struct record *records[5];
    struct sink_head head;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 3);
    struct record *stored = records_plain(&chain);
    records_seal(&chain, stored);
    ck_assert_int_eq(ledger_append(&ledger, &nowhere, &stored, 1, LEDGER_DEADLINE_MS).outcome,
                     SINK_STORED);
    before = chain;
    head = ledger_chain_head(&chain);
    for (size_t i = 0; i < 5; i++) {
        records[i] = records_plain(&chain);
        if (i == 3) /* an id that is there already */
            memcpy(records[i]->run_id, stored->run_id, sizeof(stored->run_id));
        records_seal(&chain, records[i]);
    }
    struct ledger_append append = ledger_append(&ledger, &head, records, 5, LEDGER_DEADLINE_MS);
    ck_assert_int_eq(append.outcome, SINK_REFUSED);
    ck_assert_uint_eq(append.bad, 3);
    expect_rows(&ledger, "1");
    expect_head(&ledger, &before);

    /* Without the bad row the others go in. */
    record_free(records[3]);
    records[3] = records[4];
    chain = before;
    for (size_t i = 0; i < 4; i++)
        records_seal(&chain, records[i]);
    append = ledger_append(&ledger, &head, records, 4, LEDGER_DEADLINE_MS);
    ck_assert_int_eq(append.outcome, SINK_STORED);
    expect_head(&ledger, &chain);
    records_free(records, 4);
    record_free(stored);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_row_outside_the_vocabulary_is_refused)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *records[2];
    if (_i == LEDGER_MEMORY)
        return;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 4);
    for (size_t i = 0; i < 2; i++)
        records[i] = records_plain(&chain);
    records[1]->reason = REASON_WALL_CLOCK; /* not a reason to succeed */
    for (size_t i = 0; i < 2; i++)
        records_seal(&chain, records[i]);
    struct ledger_append append = ledger_append(&ledger, &nowhere, records, 2, LEDGER_DEADLINE_MS);
    ck_assert_int_eq(append.outcome, SINK_REFUSED);
    ck_assert_uint_eq(append.bad, 1);
    expect_rows(&ledger, "0");
    records_free(records, 2);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_key_is_claimed_once)
{
    static const char request[] =
        "1111111111111111111111111111111111111111111111111111111111111111";
    static const char other[] = "2222222222222222222222222222222222222222222222222222222222222222";
    struct ledger ledger;
    struct records_chain ids;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&ids, 5);
    struct record *one = records_plain(&ids), *two = records_plain(&ids);

    struct ledger_claim claim = ledger_claim(&ledger, "acme", "k", request, one->run_id);
    ck_assert_int_eq(claim.claim, SINK_CLAIMED);
    claim = ledger_claim(&ledger, "acme", "k", request, one->run_id);
    ck_assert_int_eq(claim.claim, SINK_CLAIMED);
    claim = ledger_claim(&ledger, "acme", "k", request, two->run_id);
    ck_assert_int_eq(claim.claim, SINK_CLAIM_TAKEN);
    ck_assert_str_eq(claim.holder, one->run_id);
    ck_assert(claim.same_request);
    claim = ledger_claim(&ledger, "acme", "k", other, two->run_id);
    ck_assert_int_eq(claim.claim, SINK_CLAIM_TAKEN);
    ck_assert_str_eq(claim.holder, one->run_id);
    ck_assert(!claim.same_request);
    claim = ledger_claim(&ledger, "globex", "k", other, two->run_id);
    ck_assert_int_eq(claim.claim, SINK_CLAIMED);

    /* Claimed, but the run has not ended yet. */
    AR_CLEANUP(record_cleanup) struct record *none = NULL;
    const struct sink_key key = {.company = "acme", .idempotency_key = "k"};
    ck_assert_int_eq(ledger_find(&ledger, &key, &none), SINK_ABSENT);
    record_free(one);
    record_free(two);
    ledger_end(&ledger);
}
END_TEST

static void give_key(struct record *record, const char *key)
{
    record->idempotency_key = strdup(key);
    ck_assert_ptr_nonnull(record->idempotency_key);
    memset(record->request_sha256, 'a', sizeof(record->request_sha256) - 1);
}

START_TEST(test_append_takes_the_keys_of_its_rows)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *records[3];
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 6);
    for (size_t i = 0; i < 3; i++)
        records[i] = records_plain(&chain);
    give_key(records[1], "\u00e9 one \"key\"");
    give_key(records[2], "other");
    /* Another run has the second key: no reason to lose a row. */
    ck_assert_int_eq(ledger_claim(&ledger, "acme", "other", digest_zero, chain.writer).claim,
                     SINK_CLAIMED);
    for (size_t i = 0; i < 3; i++)
        records_seal(&chain, records[i]);
    ck_assert_int_eq(ledger_append(&ledger, &nowhere, records, 3, LEDGER_DEADLINE_MS).outcome,
                     SINK_STORED);

    AR_CLEANUP(record_cleanup) struct record *found = NULL;
    const struct sink_key key = {.company = "acme", .idempotency_key = "\u00e9 one \"key\""};
    ck_assert_int_eq(ledger_find(&ledger, &key, &found), SINK_FOUND);
    ck_assert_str_eq(found->run_id, records[1]->run_id);
    AR_CLEANUP(record_cleanup) struct record *none = NULL;
    const struct sink_key taken = {.company = "acme", .idempotency_key = "other"};
    ck_assert_int_eq(ledger_find(&ledger, &taken, &none), SINK_ABSENT);
    struct ledger_claim claim =
        ledger_claim(&ledger, "acme", "\u00e9 one \"key\"", digest_zero, chain.writer);
    ck_assert_int_eq(claim.claim, SINK_CLAIM_TAKEN);
    ck_assert_str_eq(claim.holder, records[1]->run_id);
    records_free(records, 3);
    ledger_end(&ledger);
}
END_TEST

#define ODD_RECORDS 300

/* What is hashed is what is stored: bit by bit, for every column, whatever it holds. */
START_TEST(test_odd_values_come_back)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *records[ODD_RECORDS];
    const char *given = getenv("AUDITRUN_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20260131;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, seed);
    for (size_t i = 0; i < ODD_RECORDS; i++) {
        records[i] = records_odd(&chain);
        records_seal(&chain, records[i]);
    }
    ck_assert_int_eq(
        ledger_append(&ledger, &nowhere, records, ODD_RECORDS, LEDGER_DEADLINE_MS).outcome,
        SINK_STORED);
    for (size_t i = 0; i < ODD_RECORDS; i++) {
        AR_CLEANUP(record_cleanup) struct record *found = NULL;
        const struct sink_key key = {.run_id = records[i]->run_id};
        ck_assert_int_eq(ledger_find(&ledger, &key, &found), SINK_FOUND);
        ck_assert_msg(records_same(records[i], found), "AUDITRUN_SEED=%llu",
                      (unsigned long long)seed);
        ck_assert_int_eq(record_check(found), 0);
    }
    records_free(records, ODD_RECORDS);
    ledger_end(&ledger);
}
END_TEST

/* ---- many at a time ------------------------------------------------------------------------- */

#define RIVALS 20

struct rivals {
    size_t answered, claimed, taken;
    bool all;
};

static void rival_done(void *context, enum sink_claim claim, const char *holder, bool same_request)
{
    struct rivals *rivals = context;
    (void)holder;
    ck_assert_int_ne(claim, SINK_CLAIM_FAILED);
    ck_assert(same_request);
    rivals->claimed += claim == SINK_CLAIMED;
    rivals->taken += claim == SINK_CLAIM_TAKEN;
    rivals->all = ++rivals->answered == RIVALS;
}

START_TEST(test_rivals_for_a_key)
{
    struct ledger ledger;
    struct records_chain ids;
    struct rivals rivals = {0};
    struct sink *sinks[2];
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&ids, 7);
    sinks[0] = sinks[1] = ledger.sink;
    if (ledger.kind != LEDGER_MEMORY)
        ck_assert_int_eq(sink_open(ledger.url, ledger.base, &sinks[1]), 0);
    for (size_t i = 0; i < RIVALS; i++) {
        AR_CLEANUP(record_cleanup) struct record *run = records_plain(&ids);
        struct sink *sink = sinks[i % 2];
        sink->ops->claim(sink, "acme", "k", digest_zero, run->run_id, LEDGER_DEADLINE_MS,
                         rival_done, &rivals);
    }
    ledger_wait(ledger.base, &rivals.all);
    ck_assert_uint_eq(rivals.claimed, 1);
    ck_assert_uint_eq(rivals.taken, RIVALS - 1);
    if (ledger.kind != LEDGER_MEMORY)
        sink_close(sinks[1]);
    ledger_end(&ledger);
}
END_TEST

#define BATCHES 20

struct line_up {
    size_t next;
    bool all;
};

static void in_order(void *context, enum sink_outcome outcome, size_t bad)
{
    struct line_up *line_up = context;
    (void)bad;
    ck_assert_int_eq(outcome, SINK_STORED);
    line_up->all = ++line_up->next == BATCHES;
}

/* Each batch follows on the one before: a single step out of order would be a conflict. */
START_TEST(test_appends_keep_their_order)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *records[BATCHES];
    struct line_up line_up = {0};
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 8);
    for (size_t i = 0; i < BATCHES; i++) {
        struct sink_head head = ledger_chain_head(&chain);
        records_fill(&chain, &records[i], 1);
        const struct sink_batch batch = {
            .writer = chain.writer, .head = head, .records = &records[i], .record_count = 1};
        ledger.sink->ops->append(ledger.sink, &batch, LEDGER_DEADLINE_MS, in_order, &line_up);
        ck_assert(!line_up.all);
    }
    ledger_wait(ledger.base, &line_up.all);
    expect_head(&ledger, &chain);
    records_free(records, BATCHES);
    ledger_end(&ledger);
}
END_TEST

/* ---- closing -------------------------------------------------------------------------------- */

#define PENDING 10

struct pending {
    size_t appends, heads, finds, claims, probes;
};

static void append_closed(void *context, enum sink_outcome outcome, size_t bad)
{
    (void)outcome;
    (void)bad;
    ((struct pending *)context)->appends++;
}

static void head_closed(void *context, enum sink_answer answer, const struct sink_head *head)
{
    (void)answer;
    ck_assert_ptr_nonnull(head);
    ((struct pending *)context)->heads++;
}

static void find_closed(void *context, enum sink_answer answer, const struct record *record)
{
    ck_assert((answer == SINK_FOUND) == (record != NULL));
    ((struct pending *)context)->finds++;
}

static void claim_closed(void *context, enum sink_claim claim, const char *holder, bool same)
{
    (void)claim;
    (void)holder;
    (void)same;
    ((struct pending *)context)->claims++;
}

static void probe_closed(void *context, bool up)
{
    (void)up;
    ((struct pending *)context)->probes++;
}

START_TEST(test_close_calls_back_what_is_pending)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *record;
    struct pending pending = {0};
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 9);
    records_fill(&chain, &record, 1);
    const struct sink_batch batch = {
        .writer = chain.writer, .head = nowhere, .records = &record, .record_count = 1};
    const struct sink_key key = {.run_id = record->run_id};
    struct sink *sink = ledger.sink;
    for (size_t i = 0; i < PENDING; i++) {
        sink->ops->append(sink, &batch, LEDGER_DEADLINE_MS, append_closed, &pending);
        sink->ops->head(sink, chain.writer, LEDGER_DEADLINE_MS, head_closed, &pending);
        sink->ops->find(sink, &key, LEDGER_DEADLINE_MS, find_closed, &pending);
        sink->ops->claim(sink, "acme", "k", digest_zero, chain.writer, LEDGER_DEADLINE_MS,
                         claim_closed, &pending);
        sink->ops->probe(sink, LEDGER_DEADLINE_MS, probe_closed, &pending);
    }
    sink_close(ledger.sink);
    ledger.sink = NULL;
    ck_assert_uint_eq(pending.appends, PENDING);
    ck_assert_uint_eq(pending.heads, PENDING);
    ck_assert_uint_eq(pending.finds, PENDING);
    ck_assert_uint_eq(pending.claims, PENDING);
    ck_assert_uint_eq(pending.probes, PENDING);
    record_free(record);
    ledger_end(&ledger);
}
END_TEST

struct closer {
    struct ledger *ledger;
    size_t answered;
    bool done;
};

static void close_within(void *context, bool up)
{
    struct closer *closer = context;
    (void)up;
    if (closer->answered++ == 0) {
        struct sink *sink = AR_TAKE(closer->ledger->sink);
        sink_close(sink);
    }
    closer->done = closer->answered == PENDING;
}

/* A call back may close the sink; the others are called back all the same. */
START_TEST(test_close_from_a_call_back)
{
    struct ledger ledger;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    struct closer closer = {.ledger = &ledger};
    for (size_t i = 0; i < PENDING; i++)
        ledger.sink->ops->probe(ledger.sink, LEDGER_DEADLINE_MS, close_within, &closer);
    ledger_wait(ledger.base, &closer.done);
    ck_assert_ptr_null(ledger.sink);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_reopened_store_goes_on)
{
    struct ledger ledger;
    struct records_chain chain;
    if (_i == LEDGER_MEMORY)
        return;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 10);
    ledger_grow(&ledger, &chain, 3);
    ledger_reopen(&ledger);
    expect_head(&ledger, &chain);
    ledger_grow(&ledger, &chain, 3);
    expect_head(&ledger, &chain);
    expect_rows(&ledger, "6");
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_unknown_urls)
{
    static const char *const urls[] = {"",          "sqlite",    "sqlite:", "mysql://host/db",
                                       "/tmp/x.db", "Postgres:", "memory:"};
    struct event_base *base = event_base_new();
    struct sink *sink = NULL;
    ck_assert_ptr_nonnull(base);
    for (size_t i = 0; i < AR_COUNT(urls); i++)
        ck_assert_int_eq(sink_open(urls[i], base, &sink), 1);
    event_base_free(base);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest **const tests[] = {&test_append_head_find,
                                          &test_writers_have_chains_of_their_own,
                                          &test_conflict_stores_nothing,
                                          &test_refused_row_stores_nothing,
                                          &test_row_outside_the_vocabulary_is_refused,
                                          &test_key_is_claimed_once,
                                          &test_append_takes_the_keys_of_its_rows,
                                          &test_odd_values_come_back,
                                          &test_rivals_for_a_key,
                                          &test_appends_keep_their_order,
                                          &test_close_calls_back_what_is_pending,
                                          &test_close_from_a_call_back,
                                          &test_reopened_store_goes_on};
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_loop_test(tcase, *tests[i], 0, LEDGER_KINDS);
}

int main(void)
{
    Suite *suite = suite_create("sink");
    TCase *contract = tcase_create("contract");
    TCase *forms = tcase_create("forms");
    add_tests(contract);
    tcase_add_test(forms, test_unknown_urls);
    suite_add_tcase(suite, forms);
    suite_add_tcase(suite, contract);
    return suite_run(suite);
}
