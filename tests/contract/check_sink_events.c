/*
 * check_sink_events.c - the contract of sink.h for what is not a run: events in the chain, the empty
 * batch that confirms a head, checkpoints, maintenance. The same test for every sink.
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

/* ---- calls ---------------------------------------------------------------------------------- */

struct call {
    bool answered, done;
    struct ledger_append append;
};

static void append_done(void *context, enum sink_outcome outcome, size_t bad)
{
    struct call *call = context;
    call->append = (struct ledger_append){outcome, bad};
    call->answered = true;
}

static struct ledger_append append(struct ledger *ledger, const struct sink_batch *batch)
{
    struct call call = {0};
    ledger->sink->ops->append(ledger->sink, batch, LEDGER_DEADLINE_MS, append_done, &call);
    ck_assert(!call.answered);
    ledger_wait(ledger->base, &call.answered);
    return call.append;
}

static void work_done(void *context, bool done)
{
    struct call *call = context;
    call->done = done;
    call->answered = true;
}

static bool store_checkpoint(struct ledger *ledger, const struct checkpoint *checkpoint)
{
    struct call call = {0};
    ledger->sink->ops->checkpoint(ledger->sink, checkpoint, LEDGER_DEADLINE_MS, work_done, &call);
    ck_assert(!call.answered);
    ledger_wait(ledger->base, &call.answered);
    return call.done;
}

static bool maintain(struct ledger *ledger)
{
    struct call call = {0};
    ledger->sink->ops->maintain(ledger->sink, LEDGER_DEADLINE_MS, work_done, &call);
    ck_assert(!call.answered);
    ledger_wait(ledger->base, &call.answered);
    return call.done;
}

static enum sink_outcome confirm(struct ledger *ledger, const char *writer,
                                 const struct sink_head *head)
{
    const struct sink_batch nothing = {.writer = writer, .head = *head};
    return append(ledger, &nothing).outcome;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static struct chain_event *make_event(struct records_chain *chain, const char *detail)
{
    static const int64_t times[] = {
        0, -1, 999999, -62135596800000000, 253402300799999999, 1769860800123456};
    AR_CLEANUP(record_cleanup) struct record *run = records_plain(chain); /* for its id */
    uint64_t random = records_random(chain);
    enum event_kind kind = (enum event_kind)(EVENT_STARTED + random % 9);
    struct chain_event *event =
        chain_event_new(run->run_id, kind, NULL, times[random / 9 % AR_COUNT(times)]);
    ck_assert_ptr_nonnull(event);
    size_t column = row_find(&chain_event_layout, "detail");
    ck_assert_int_eq(row_set(&chain_event_layout, event, column, detail), 0);
    return event;
}

static void seal_event(struct records_chain *chain, struct chain_event *event)
{
    ck_assert_int_eq(chain_event_seal(event, chain->writer, chain->seq + 1, chain->hash,
                                      event->happened_at, chain->seq % 2 == 1),
                     0);
    chain->seq++;
    memcpy(chain->hash, event->row_hash, sizeof(chain->hash));
}

static void expect_head(struct ledger *ledger, const struct records_chain *chain)
{
    struct sink_head head;
    ck_assert_int_eq(ledger_head(ledger, chain->writer, &head), SINK_FOUND);
    ck_assert_int_eq(head.seq, chain->seq);
    ck_assert_str_eq(head.hash, chain->hash);
}

static void expect_value(const struct ledger *ledger, const char *sql, const char *expected)
{
    if (ledger->kind == LEDGER_MEMORY)
        return;
    AR_AUTO_FREE char *value = ledger_value(ledger, sql);
    ck_assert_ptr_nonnull(value);
    ck_assert_str_eq(value, expected);
}

/* What is stored of an event is what was hashed. */
static void expect_event(const struct ledger *ledger, const struct chain_event *event)
{
    char sql[256];
    static const char *const columns[] = {"kind", "detail", "seq", "writer"};
    for (size_t i = 0; i < AR_COUNT(columns); i++) {
        AR_AUTO_FREE char *text = NULL;
        size_t column = row_find(&chain_event_layout, columns[i]);
        ck_assert_int_eq(row_get(&chain_event_layout, event, column, &text), 0);
        (void)snprintf(sql, sizeof(sql), "SELECT %s FROM events WHERE event_id = '%s'", columns[i],
                       event->event_id);
        expect_value(ledger, sql, text);
    }
    if (ledger->kind != LEDGER_POSTGRES)
        return;
    (void)snprintf(sql, sizeof(sql),
                   "SELECT encode(row_hash(e), 'hex') FROM events AS e WHERE event_id = '%s'",
                   event->event_id);
    expect_value(ledger, sql, event->row_hash);
}

#define EVENTS  9
#define RECORDS 12

static const char *const details[EVENTS] = {"{}",
                                            "{\"reason\":\"\u00e9 \\\"quoted\\\" \\u0001\"}",
                                            "{\"b\":1,\"a\":[]}",
                                            "{\"s\" : 1}",
                                            "{\"n\":[9007199254740992,-9007199254740993]}",
                                            "{\"line\":\"\u2028\"}",
                                            "{\"a\":null,\"b\":true,\"c\":{\"d\":[[],{}]}}",
                                            "{\"text\":\"a,b{}'$1\"}",
                                            "{\"emoji\":\"\U0001f600\"}"};

/* ---- tests ---------------------------------------------------------------------------------- */

START_TEST(test_events_among_runs)
{
    struct ledger ledger;
    struct records_chain chain;
    struct record *records[RECORDS];
    struct chain_event *events[EVENTS];
    size_t record_count = 0, event_count = 0;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 21);
    /* An event first, and one last: the head is that of whichever comes last. */
    for (size_t i = 0; i < EVENTS + RECORDS; i++) {
        bool is_event = i % 2 == 0 && event_count < EVENTS - 1;
        if (is_event || i == EVENTS + RECORDS - 1) {
            events[event_count] = make_event(&chain, details[event_count]);
            seal_event(&chain, events[event_count++]);
        } else {
            records[record_count] = records_plain(&chain);
            records_seal(&chain, records[record_count++]);
        }
    }
    const struct sink_batch batch = {.writer = chain.writer,
                                     .head = nowhere,
                                     .records = records,
                                     .record_count = record_count,
                                     .events = events,
                                     .event_count = event_count};
    ck_assert_uint_eq(event_count, EVENTS);
    ck_assert_int_eq(append(&ledger, &batch).outcome, SINK_STORED);
    expect_head(&ledger, &chain);
    expect_value(&ledger, "SELECT count(*) FROM runs", "12");
    expect_value(&ledger, "SELECT count(*) FROM events", "9");
    for (size_t i = 0; i < EVENTS; i++) {
        expect_event(&ledger, events[i]);
        chain_event_free(events[i]);
    }
    ledger_grow(&ledger, &chain, 2);
    expect_head(&ledger, &chain);
    records_free(records, RECORDS);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_only_events)
{
    struct ledger ledger;
    struct records_chain chain;
    struct chain_event *events[2];
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 22);
    for (size_t round = 0; round < 2; round++) {
        struct sink_head head = ledger_chain_head(&chain);
        for (size_t i = 0; i < 2; i++) {
            events[i] = make_event(&chain, "{}");
            seal_event(&chain, events[i]);
        }
        const struct sink_batch batch = {
            .writer = chain.writer, .head = head, .events = events, .event_count = 2};
        ck_assert_int_eq(append(&ledger, &batch).outcome, SINK_STORED);
        ck_assert_int_eq(append(&ledger, &batch).outcome, SINK_CONFLICT);
        expect_head(&ledger, &chain);
        for (size_t i = 0; i < 2; i++)
            chain_event_free(events[i]);
    }
    expect_value(&ledger, "SELECT count(*) FROM events", "4");
    ledger_end(&ledger);
}
END_TEST

/* An id that is there already: the index counts through records and events. */
START_TEST(test_refused_event_stores_nothing)
{
    struct ledger ledger;
    struct records_chain chain, before;
    struct record *record;
    struct chain_event *events[2];
    if (_i == LEDGER_MEMORY)
        return;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 23);
    struct chain_event *stored = make_event(&chain, "{}");
    seal_event(&chain, stored);
    struct sink_batch batch = {
        .writer = chain.writer, .head = nowhere, .events = &stored, .event_count = 1};
    ck_assert_int_eq(append(&ledger, &batch).outcome, SINK_STORED);
    before = chain;
    struct sink_head head = ledger_chain_head(&chain);
    records_fill(&chain, &record, 1);
    for (size_t i = 0; i < 2; i++)
        events[i] = make_event(&chain, "{}");
    memcpy(events[1]->event_id, stored->event_id, sizeof(stored->event_id));
    for (size_t i = 0; i < 2; i++)
        seal_event(&chain, events[i]);
    batch = (struct sink_batch){.writer = chain.writer,
                                .head = head,
                                .records = &record,
                                .record_count = 1,
                                .events = events,
                                .event_count = 2};
    struct ledger_append refused = append(&ledger, &batch);
    ck_assert_int_eq(refused.outcome, SINK_REFUSED);
    ck_assert_uint_eq(refused.bad, 2);
    expect_head(&ledger, &before);
    expect_value(&ledger, "SELECT count(*) FROM runs", "0");
    record_free(record);
    chain_event_free(stored);
    for (size_t i = 0; i < 2; i++)
        chain_event_free(events[i]);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_empty_batch_confirms_the_head)
{
    struct ledger ledger;
    struct records_chain chain;
    struct sink_head head;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 24);
    /* Nothing is there, and nothing comes of asking. */
    ck_assert_int_eq(confirm(&ledger, chain.writer, &nowhere), SINK_STORED);
    ck_assert_int_eq(ledger_head(&ledger, chain.writer, &head), SINK_ABSENT);
    head.seq = 1;
    ck_assert_int_eq(confirm(&ledger, chain.writer, &head), SINK_CONFLICT);

    ledger_grow(&ledger, &chain, 3);
    head = ledger_chain_head(&chain);
    ck_assert_int_eq(confirm(&ledger, chain.writer, &head), SINK_STORED);
    ck_assert_int_eq(confirm(&ledger, chain.writer, &head), SINK_STORED);
    ck_assert_int_eq(confirm(&ledger, chain.writer, &nowhere), SINK_CONFLICT);
    head.seq++;
    ck_assert_int_eq(confirm(&ledger, chain.writer, &head), SINK_CONFLICT);
    head.seq -= 2;
    ck_assert_int_eq(confirm(&ledger, chain.writer, &head), SINK_CONFLICT);
    head = ledger_chain_head(&chain);
    head.hash[0] = head.hash[0] == '0' ? '1' : '0';
    ck_assert_int_eq(confirm(&ledger, chain.writer, &head), SINK_CONFLICT);
    expect_head(&ledger, &chain);
    ledger_grow(&ledger, &chain, 1);
    expect_head(&ledger, &chain);
    ledger_end(&ledger);
}
END_TEST

static struct checkpoint sign(const struct records_chain *chain, const struct checkpoint_key *key)
{
    struct checkpoint checkpoint = {.seq = chain->seq, .made_at = 1769860800123456};
    memcpy(checkpoint.writer, chain->writer, sizeof(checkpoint.writer));
    memcpy(checkpoint.row_hash, chain->hash, sizeof(checkpoint.row_hash));
    ck_assert_int_eq(checkpoint_sign(&checkpoint, key), 0);
    return checkpoint;
}

START_TEST(test_checkpoints)
{
    struct ledger ledger;
    struct records_chain chain;
    struct checkpoint_key *key, *other;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 25);
    ledger_grow(&ledger, &chain, 2);
    ck_assert_int_eq(checkpoint_key_make(&key), 0);
    ck_assert_int_eq(checkpoint_key_make(&other), 0);

    struct checkpoint first = sign(&chain, key);
    ck_assert(store_checkpoint(&ledger, &first));
    ck_assert(store_checkpoint(&ledger, &first)); /* harmless */
    struct checkpoint rotated = sign(&chain, other);
    ck_assert(store_checkpoint(&ledger, &rotated));
    ledger_grow(&ledger, &chain, 1);
    struct checkpoint second = sign(&chain, key);
    ck_assert(store_checkpoint(&ledger, &second));
    expect_value(&ledger, "SELECT count(*) FROM checkpoints", "3");
    expect_value(&ledger, "SELECT count(*) FROM checkpoint_keys", "2");
    if (ledger.kind == LEDGER_POSTGRES)
        expect_value(&ledger,
                     "SELECT encode(row_hash, 'hex') FROM checkpoints WHERE seq = 3 "
                     "AND made_at = '2026-01-31T12:00:00.123456Z' AND octet_length(signature) = 64",
                     chain.hash);
    checkpoint_key_free(key);
    checkpoint_key_free(other);
    ledger_end(&ledger);
}
END_TEST

START_TEST(test_maintenance_and_problems)
{
    struct ledger ledger;
    struct records_chain chain;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 26);
    ck_assert(maintain(&ledger));
    ck_assert(maintain(&ledger));
    ledger_grow(&ledger, &chain, 2);
    ck_assert(ledger_probe(&ledger, LEDGER_DEADLINE_MS));
    ck_assert_str_eq(ledger.sink->ops->problem(ledger.sink), "");
    ledger_end(&ledger);
}
END_TEST

/* ---- closing -------------------------------------------------------------------------------- */

#define PENDING 10

static void count_done(void *context, bool done)
{
    (void)done;
    ++*(size_t *)context;
}

START_TEST(test_close_calls_back_what_is_pending)
{
    struct ledger ledger;
    struct records_chain chain;
    struct checkpoint_key *key;
    size_t answered = 0;
    ledger_begin(&ledger, (enum ledger_kind)_i, server);
    records_begin(&chain, 27);
    ledger_grow(&ledger, &chain, 1);
    ck_assert_int_eq(checkpoint_key_make(&key), 0);
    struct checkpoint checkpoint = sign(&chain, key);
    struct sink *sink = ledger.sink;
    for (size_t i = 0; i < PENDING; i++) {
        sink->ops->checkpoint(sink, &checkpoint, LEDGER_DEADLINE_MS, count_done, &answered);
        sink->ops->maintain(sink, LEDGER_DEADLINE_MS, count_done, &answered);
    }
    sink_close(ledger.sink);
    ledger.sink = NULL;
    ck_assert_uint_eq(answered, 2 * PENDING);
    checkpoint_key_free(key);
    ledger_end(&ledger);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_events_among_runs,
                                          &test_only_events,
                                          &test_refused_event_stores_nothing,
                                          &test_empty_batch_confirms_the_head,
                                          &test_checkpoints,
                                          &test_maintenance_and_problems,
                                          &test_close_calls_back_what_is_pending};
    Suite *suite = suite_create("sink_events");
    TCase *contract = tcase_create("contract");
    tcase_add_unchecked_fixture(contract, start_server, stop_server);
    tcase_set_timeout(contract, 120);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_loop_test(contract, *tests[i], 0, LEDGER_KINDS);
    suite_add_tcase(suite, contract);
    return suite_run(suite);
}
