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
    config = (struct config){.ledger_deadline_ms = 300};
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

/* Every row once, one chain a writer, as verify would have it. */
static void check_rows(size_t count)
{
    const struct record *before = NULL;
    ck_assert_uint_eq(memory_count(sink), count);
    for (size_t i = 0; i < count; i++) {
        const struct record *row = memory_record(sink, i);
        bool same_writer = before && strcmp(before->writer, row->writer) == 0;
        ck_assert_int_eq(record_check(row), 0);
        ck_assert_int_eq(row->seq, same_writer ? before->seq + 1 : 1);
        ck_assert_str_eq(row->prev_hash, same_writer ? before->row_hash : digest_zero);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(memory_record(sink, k)->run_id, row->run_id);
        before = row;
    }
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
    memory_set_fault(sink, MEMORY_STALLS, 1);
    append(&runs[0], 0, "acme");
    append(&runs[1], 1, "acme");
    wait_done(2);
    ck_assert_int_eq(runs[0].audit, RUN_AUDIT_KEPT);
    ck_assert_int_eq(runs[1].audit, RUN_AUDIT_KEPT);
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

/* Another daemon with a copy of our state directory wrote to our chain. */
START_TEST(test_writer_is_taken_by_another)
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
    check_rows(1);
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
    tcase_add_test(tcase, test_writer_is_taken_by_another);
    tcase_add_test(tcase, test_kept_records_survive_a_restart);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
