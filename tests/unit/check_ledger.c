/*
 * check_ledger.c - the way into the sink, against a sink that fails, stalls and forgets on cue.
 *
 * Whatever happens: every record is stored exactly once, in a chain that holds, and no run is told
 * that its record is committed when it is not.
 */
#include "daemon/ledger.h"

#include "daemon/config.h"
#include "daemon/journal.h"
#include "sinks/memory.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <event2/event.h>

static char folder[] = "/tmp/auditrun-ledger-XXXXXX";
static struct config config;
static struct line line;
static struct sink *sink;
static bool answered, answered_up;
static int done_runs;

static void ledger_answered(void *context, bool up)
{
    (void)context;
    ck_assert(!answered);
    answered = true;
    answered_up = up;
}

static void turn_until(bool (*condition)(void))
{
    for (int i = 0; i < 100000 && !condition(); i++)
        ck_assert_int_ge(event_base_loop(line.base, EVLOOP_ONCE), 0);
    ck_assert(condition());
}

static bool is_answered(void)
{
    return answered;
}

static void start_ledger(void)
{
    char message[JOURNAL_MESSAGE_BYTES];
    ck_assert_int_eq(journal_open(&line, folder, &line.journal, message), 0);
    answered = false;
    ck_assert_int_eq(ledger_open(&line, sink, ledger_answered, NULL, &line.ledger), 0);
    turn_until(is_answered);
}

static void setup(void)
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    config = (struct config){.holders = 1, .ledger_deadline_ms = 300};
    struct event_base *base = event_base_new();
    ck_assert_int_eq(run_line_init(&line, base, &config), 0);
    ck_assert_int_eq(memory_open(base, &sink), 0);
    done_runs = 0;
}

static void stop_ledger(void)
{
    ledger_free(line.ledger);
    journal_free(line.journal);
}

static void teardown(void)
{
    char path[80];
    stop_ledger();
    run_line_free(&line);
    event_base_free(line.base);
    (void)snprintf(path, sizeof path, "%s/journal", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/lock", folder);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static struct record *make_record(int number, const char *company)
{
    struct record *record = record_new();
    ck_assert_ptr_nonnull(record);
    (void)snprintf(record->run_id, sizeof record->run_id, "01a228e4-1918-758c-8000-%012d", number);
    memset(record->code_sha256, 'a', 64);
    record->company = strdup(company);
    record->actor = strdup("ana");
    record->purpose = strdup("test");
    record->client_name = strdup("local");
    record->language = strdup("bash");
    record->grant = strdup("{}");
    record->denials = strdup("[]");
    record->usage = strdup("{}");
    record->status = STATUS_SUCCEEDED;
    record->reason = REASON_EXIT_ZERO;
    record->received_at = record->started_at = record->finished_at = 1767225600000000;
    return record;
}

static void note_outcome(void *context, enum sink_outcome outcome, size_t bad)
{
    enum sink_outcome *out = context;
    (void)bad;
    *out = outcome;
}

/* Appends a row behind the ledger's own head, past the ledger. */
static void append_as_another(int number)
{
    AR_CLEANUP(record_cleanup) struct record *record = make_record(number, "acme");
    const struct sink_head *head = ledger_head(line.ledger);
    enum sink_outcome outcome = SINK_UNKNOWN;
    ck_assert_int_eq(record_seal(record, ledger_writer(line.ledger), head->seq + 1, head->hash,
                                 1767225600000000, false),
                     0);
    struct record *const records[] = {record};
    struct sink_batch batch = {
        .writer = ledger_writer(line.ledger), .head = *head, .records = records, .record_count = 1};
    sink->ops->append(sink, &batch, 1000, note_outcome, &outcome);
    while (outcome == SINK_UNKNOWN)
        event_base_loop(line.base, EVLOOP_ONCE);
    ck_assert_int_eq(outcome, SINK_STORED);
}

static bool is_down(void)
{
    return ledger_is_down(line.ledger);
}

static void count_done(struct run *run)
{
    (void)run;
    done_runs++;
}

/* A run at the ledger's stage. */
static void append(struct run *run, int number, const char *company)
{
    *run = (struct run){.line = &line, .audit = RUN_AUDIT_AT_RISK};
    run->record = make_record(number, company);
    memcpy(run->id, run->record->run_id, sizeof run->id);
    ledger_stage(run, count_done);
}

static int wanted_done;
static bool enough_done(void)
{
    return done_runs >= wanted_done;
}

static void wait_done(int count)
{
    wanted_done = count;
    turn_until(enough_done);
    ck_assert_int_eq(done_runs, count);
}

static bool backlog_is_empty(void)
{
    return ledger_backlog(line.ledger) == 0;
}

/* The row of a chain at this place, as both kinds have it. */
struct place {
    const char *writer, *prev_hash, *row_hash, *id;
    int64_t seq;
};

static bool find_place(const char *writer, int64_t seq, struct place *out)
{
    const struct record *record;
    const struct chain_event *event;
    for (size_t i = 0; (record = memory_record(sink, i)); i++)
        if (record->seq == seq && strcmp(record->writer, writer) == 0) {
            ck_assert_int_eq(record_check(record), 0);
            *out = (struct place){record->writer, record->prev_hash, record->row_hash,
                                  record->run_id, seq};
            return true;
        }
    for (size_t i = 0; (event = memory_event(sink, i)); i++)
        if (event->seq == seq && strcmp(event->writer, writer) == 0) {
            ck_assert_int_eq(chain_event_check(event), 0);
            *out = (struct place){event->writer, event->prev_hash, event->row_hash, event->event_id,
                                  seq};
            return true;
        }
    return false;
}

/* The number of rows of a chain, which is whole from its first. */
static size_t check_chain(const char *writer)
{
    struct place place, before = {.row_hash = digest_zero};
    size_t count = 0;
    while (find_place(writer, (int64_t)count + 1, &place)) {
        ck_assert_str_eq(place.prev_hash, before.row_hash);
        before = place;
        count++;
    }
    return count;
}

/* So many runs, each once, and every row is in a whole chain. */
static void check_rows(size_t count)
{
    size_t rows = 0, chained = 0;
    const char *seen[16] = {0};
    size_t writers = 0;
    ck_assert_uint_eq(memory_count(sink), count);
    for (size_t i = 0; memory_event(sink, i); i++)
        rows++;
    rows += count;
    for (size_t i = 0; i < rows; i++) {
        bool run = i < count;
        const char *writer =
            run ? memory_record(sink, i)->writer : memory_event(sink, i - count)->writer;
        size_t k = 0;
        while (k < writers && strcmp(seen[k], writer) != 0)
            k++;
        if (k == writers) {
            ck_assert_uint_lt(writers, AR_COUNT(seen));
            seen[writers++] = writer;
            chained += check_chain(writer);
        }
        for (size_t j = 0; run && j < i; j++)
            ck_assert_str_ne(memory_record(sink, j)->run_id, memory_record(sink, i)->run_id);
    }
    ck_assert_uint_eq(chained, rows);
}

/* The first row of the chain that is written now is a gap of this cause. */
static void expect_gap(const char *cause)
{
    const struct chain_event *event;
    size_t i = 0;
    while ((event = memory_event(sink, i)) &&
           strcmp(event->writer, ledger_writer(line.ledger)) != 0)
        i++;
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(event->kind, EVENT_GAP);
    ck_assert_int_eq(event->seq, 1);
    ck_assert_ptr_nonnull(strstr(event->detail, cause));
}

START_TEST(test_chain)
{
    static struct run runs[50];
    start_ledger();
    ck_assert(answered_up);
    for (int i = 0; i < 50; i++)
        append(&runs[i], i, "acme");
    wait_done(50);
    check_rows(50);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(runs[i].audit, RUN_AUDIT_COMMITTED);
        ck_assert_str_eq(runs[i].place.hash, memory_record(sink, (size_t)i)->row_hash);
        ck_assert_int_eq(runs[i].place.seq, i + 1);
    }
    /* While the first was at the sink, the others gathered. */
    ck_assert_uint_eq(memory_appends(sink), 2);
}
END_TEST

/* The answer to the first batch is lost, stored or not. */
START_TEST(test_unknown_batch)
{
    static struct run runs[3];
    start_ledger();
    memory_set_fault(sink, _i ? MEMORY_LOSES_BATCH : MEMORY_LOSES_ANSWER, 1);
    for (int i = 0; i < 3; i++)
        append(&runs[i], i, "acme");
    wait_done(3);
    check_rows(3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(runs[i].audit, RUN_AUDIT_COMMITTED);
}
END_TEST

START_TEST(test_down_and_up_again)
{
    static struct run runs[3];
    start_ledger();
    memory_set_fault(sink, MEMORY_FAILS, -1);
    append(&runs[0], 0, "acme");
    wait_done(1); /* at its deadline */
    ck_assert_int_eq(runs[0].audit, RUN_AUDIT_KEPT);
    ck_assert(ledger_is_down(line.ledger));
    append(&runs[1], 1, "acme");
    wait_done(2);
    ck_assert_int_eq(runs[1].audit, RUN_AUDIT_KEPT);
    ck_assert_uint_eq(memory_count(sink), 0);
    memory_set_fault(sink, MEMORY_WORKS, 0);
    turn_until(backlog_is_empty);
    check_rows(2);
    ck_assert(memory_record(sink, 0)->late);
    ck_assert(memory_record(sink, 1)->late);
    append(&runs[2], 2, "acme");
    wait_done(3);
    ck_assert_int_eq(runs[2].audit, RUN_AUDIT_COMMITTED);
    ck_assert(!memory_record(sink, 2)->late);
}
END_TEST

START_TEST(test_stalled_batch)
{
    static struct run runs[2];
    start_ledger();
    memory_set_fault(sink, MEMORY_STALLS, -1); /* also what it asks after the deadline */
    append(&runs[0], 0, "acme");
    append(&runs[1], 1, "acme");
    wait_done(2);
    ck_assert_int_eq(runs[0].audit, RUN_AUDIT_KEPT);
    ck_assert_int_eq(runs[1].audit, RUN_AUDIT_KEPT);
    memory_set_fault(sink, MEMORY_WORKS, 0);
    memory_resume(sink);
    turn_until(backlog_is_empty);
    check_rows(2);
}
END_TEST

START_TEST(test_refused_row_blocks_nobody)
{
    static struct run runs[9];
    start_ledger();
    ck_assert_int_eq(memory_refuse_company(sink, "bad"), 0);
    for (int i = 0; i < 9; i++)
        append(&runs[i], i, i % 4 == 2 ? "bad" : "acme");
    wait_done(9);
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(runs[i].audit, i % 4 == 2 ? RUN_AUDIT_KEPT : RUN_AUDIT_COMMITTED);
    check_rows(7);
}
END_TEST

/* A batch of which nobody knows stays as it is, also when a later attempt certainly failed: the first
 * one may still win. */
START_TEST(test_unknown_batch_stays_frozen)
{
    static struct run runs[2];
    start_ledger();
    memory_set_fault(sink, MEMORY_DELAYS_BATCH, 1);
    append(&runs[0], 0, "acme");
    turn_until(is_down);
    memory_set_fault(sink, MEMORY_FAILS_ROWS, -1);
    size_t appends = memory_appends(sink);
    while (memory_appends(sink) < appends + 3)
        event_base_loop(line.base, EVLOOP_ONCE);
    ck_assert(memory_commit_delayed(sink));
    memory_set_fault(sink, MEMORY_WORKS, 0);
    wait_done(1);
    append(&runs[1], 1, "acme");
    turn_until(backlog_is_empty);
    wait_done(2);
    check_rows(2);
    ck_assert_str_eq(memory_record(sink, 1)->writer, memory_record(sink, 0)->writer);
    ck_assert_ptr_null(memory_event(sink, 0));
}
END_TEST

/* A row that can be read was not necessarily stored for good: only a write behind it tells. */
START_TEST(test_found_head_is_confirmed)
{
    static struct run run;
    start_ledger();
    memory_set_fault(sink, MEMORY_LOSES_ANSWER, 1);
    append(&run, 0, "acme");
    turn_until(is_down);
    memory_set_fault(sink, MEMORY_FAILS_CONFIRM, -1);
    wait_done(1);
    ck_assert_int_eq(run.audit, RUN_AUDIT_KEPT);
    ck_assert(ledger_is_down(line.ledger));
    ck_assert_uint_eq(ledger_backlog(line.ledger), 1);
    memory_set_fault(sink, MEMORY_WORKS, 0);
    turn_until(backlog_is_empty);
    check_rows(1);
}
END_TEST

START_TEST(test_events_are_rows_of_the_chain)
{
    static struct run run;
    start_ledger();
    ledger_note(line.ledger, EVENT_STARTED, json_pack("{s:s}", "version", "1"));
    append(&run, 0, "acme");
    ledger_note(line.ledger, EVENT_STOPPED, NULL);
    turn_until(backlog_is_empty);
    check_rows(1);
    ck_assert_int_eq(memory_event(sink, 0)->seq, 1);
    ck_assert_int_eq(memory_record(sink, 0)->seq, 2);
    ck_assert_int_eq(memory_event(sink, 1)->seq, 3);
    ck_assert_str_eq(memory_event(sink, 1)->detail, "{}");
}
END_TEST

START_TEST(test_kept_events_survive_a_restart)
{
    char id[UUID7_TEXT_BYTES];
    char *text;
    struct chain_event *event;
    struct fault fault = {0};
    start_ledger();
    memory_set_fault(sink, MEMORY_FAILS, -1);
    ledger_note(line.ledger, EVENT_STOPPED, NULL);
    stop_ledger();
    ck_assert_int_eq(memory_open(line.base, &sink), 0);
    start_ledger();
    ck_assert(journal_next_left_text(line.journal, JOURNAL_EVENT, id, &text));
    AR_AUTO_JSON json_t *value = json_loads(text, 0, NULL);
    free(text);
    ck_assert_int_eq(chain_event_from_json(value, &event, &fault), 0);
    ledger_append_late_event(line.ledger, event);
    turn_until(backlog_is_empty);
    ck_assert_str_eq(memory_event(sink, 0)->event_id, id);
    ck_assert(memory_event(sink, 0)->late);
    check_rows(0);
}
END_TEST

/* The ledger came back from yesterday: while the daemon runs, and while it does not. */
START_TEST(test_rows_missing_at_a_start)
{
    static struct run run;
    char former[UUID7_TEXT_BYTES];
    start_ledger();
    append(&run, 0, "acme");
    wait_done(1);
    memcpy(former, ledger_writer(line.ledger), sizeof former);
    stop_ledger();
    ck_assert_int_eq(memory_open(line.base, &sink), 0); /* empty */
    start_ledger();
    turn_until(backlog_is_empty);
    ck_assert_str_ne(ledger_writer(line.ledger), former);
    expect_gap("rows_missing");
    check_rows(0);
}
END_TEST

START_TEST(test_rows_missing)
{
    static struct run runs[2];
    char former[UUID7_TEXT_BYTES];
    start_ledger();
    append(&runs[0], 0, "acme");
    wait_done(1);
    memcpy(former, ledger_writer(line.ledger), sizeof former);
    memory_forget(sink, 1); /* and so the head is not what we left */
    append(&runs[1], 1, "acme");
    wait_done(2);
    ck_assert_int_eq(runs[1].audit, RUN_AUDIT_COMMITTED);
    ck_assert_str_ne(ledger_writer(line.ledger), former);
    expect_gap("rows_missing");
    check_rows(1);
}
END_TEST

/* Another daemon with a copy of our state directory writes to our chain. */
START_TEST(test_writer_is_taken_by_another)
{
    static struct run runs[2];
    char former[UUID7_TEXT_BYTES];
    start_ledger();
    append(&runs[0], 0, "acme");
    wait_done(1);
    memcpy(former, ledger_writer(line.ledger), sizeof former);
    append_as_another(1);
    append(&runs[1], 2, "acme");
    wait_done(2);
    ck_assert_int_eq(runs[1].audit, RUN_AUDIT_COMMITTED);
    ck_assert_str_ne(ledger_writer(line.ledger), former);
    expect_gap("rows_of_another");
    check_rows(3);
}
END_TEST

START_TEST(test_kept_records_survive_a_restart)
{
    static struct run run;
    start_ledger();
    memory_set_fault(sink, MEMORY_FAILS, -1);
    append(&run, 7, "acme");
    wait_done(1);
    ck_assert_int_eq(run.audit, RUN_AUDIT_KEPT);
    stop_ledger(); /* closes the sink too */
    ck_assert_int_eq(memory_open(line.base, &sink), 0);
    start_ledger();
    struct record *left = journal_next_left(line.journal);
    ck_assert_ptr_nonnull(left);
    ck_assert_str_eq(left->run_id, run.id);
    ck_assert_int_eq(left->status, STATUS_SUCCEEDED);
    ck_assert_ptr_null(journal_next_left(line.journal));
    ledger_append_late(line.ledger, left);
    turn_until(backlog_is_empty);
    check_rows(1);
    ck_assert(memory_record(sink, 0)->late);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ledger");
    TCase *tcase = tcase_create("ledger");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_chain);
    tcase_add_loop_test(tcase, test_unknown_batch, 0, 2);
    tcase_add_test(tcase, test_down_and_up_again);
    tcase_add_test(tcase, test_stalled_batch);
    tcase_add_test(tcase, test_refused_row_blocks_nobody);
    tcase_add_test(tcase, test_unknown_batch_stays_frozen);
    tcase_add_test(tcase, test_found_head_is_confirmed);
    tcase_add_test(tcase, test_events_are_rows_of_the_chain);
    tcase_add_test(tcase, test_kept_events_survive_a_restart);
    tcase_add_test(tcase, test_rows_missing_at_a_start);
    tcase_add_test(tcase, test_rows_missing);
    tcase_add_test(tcase, test_writer_is_taken_by_another);
    tcase_add_test(tcase, test_kept_records_survive_a_restart);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
