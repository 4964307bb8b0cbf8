/*
 * check_race.c - cancel, deadline, the end of the code and the client's leaving arrive together.
 *
 * Hundreds of short runs whose code ends around their wall clock, each with something else that
 * happens around that moment, by chance from a seed ($AUDITRUN_SEED; printed). Whatever comes first, a
 * run has one end: answer and row agree, and `cancel` says true only if the row says cancelled.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>

#define ROUNDS      40
#define AT_ONCE     8
#define WALL_MS     20
#define CANCEL_BASE 100000
#define WAIT_MS     20000
#define OTHER_UID   65534

static const char *const modes[] = {"well", "crash-after", "twice", NULL};

enum action {
    NOTHING,
    CANCEL,
    CANCEL_TWICE,
    CANCEL_BY_SECOND, /* another connection of the same client */
    CANCEL_BY_OTHER,  /* another client: must not */
    LEAVE,
    CRASH, /* the provider reports and crashes */
    TWICE, /* it reports twice */
    ACTION_COUNT
};

struct race {
    enum action action;
    char run_id[64]; /* told by the first output */
    char reason[64]; /* of the answer */
    int cancels;     /* answers to wait for */
    bool cancelled;  /* one of them said true */
};

struct races {
    struct daemon *daemon;
    struct client *main, *second, *other;
    struct client *leaving[AT_ONCE];
    struct race all[ROUNDS * AT_ONCE];
    size_t count, answered;
    int cancels_owed;
    json_int_t next_cancel;
    size_t cancel_of[ROUNDS * AT_ONCE * 2];
    struct unit_random random;
};

/* A client of another uid, where the test may become one. */
static struct client *connect_as_other(const struct daemon *daemon)
{
    if (geteuid() != 0 || seteuid(OTHER_UID) != 0)
        return NULL;
    struct client *client = daemon_connect(daemon);
    ck_assert_int_eq(seteuid(0), 0);
    return client;
}

/* ---- what comes back ---------------------------------------------------------------------------- */

static void copy_word(char *out, size_t room, const json_t *object, const char *member)
{
    const char *word = json_string_value(json_object_get(object, member));
    ck_assert_ptr_nonnull(word);
    (void)snprintf(out, room, "%s", word);
}

static void take_cancel(struct races *races, size_t cancel, const json_t *result)
{
    struct race *race = &races->all[races->cancel_of[cancel]];
    race->cancelled = race->cancelled || json_is_true(json_object_get(result, "cancelled"));
    race->cancels--;
    races->cancels_owed--;
}

static void take_end(struct races *races, size_t index, const json_t *result)
{
    if (index >= AR_COUNT(races->all)) {
        ck_abort_msg("an answer to a run that was never asked for");
        return; /* for analyzers, which do not know that it aborts */
    }
    struct race *race = &races->all[index];
    ck_assert_msg(!race->reason[0], "run %zu is answered twice", index + 1);
    copy_word(race->reason, sizeof race->reason, result, "reason");
    if (!race->run_id[0])
        copy_word(race->run_id, sizeof race->run_id, result, "run_id");
    ck_assert_str_eq(json_string_value(json_object_get(result, "run_id")), race->run_id);
    races->answered++;
}

static void take_answer(struct races *races, json_int_t id, const json_t *result)
{
    ck_assert_ptr_nonnull(result);
    if (id >= CANCEL_BASE)
        take_cancel(races, (size_t)(id - CANCEL_BASE), result);
    else
        take_end(races, (size_t)id - 1, result);
}

/* Takes one message of the main connection; false when none comes within ms. */
static bool take_message(struct races *races, int64_t ms)
{
    AR_AUTO_JSON json_t *message = client_next_within(races->main, ms);
    if (!message)
        return false;
    const json_t *params = json_object_get(message, "params");
    json_int_t id = json_integer_value(
        json_object_get(params ? params : message, params ? "request_id" : "id"));
    if (params)
        copy_word(races->all[id - 1].run_id, sizeof races->all[0].run_id, params, "run_id");
    else
        take_answer(races, id, json_object_get(message, "result"));
    return true;
}

/* ---- what is done ------------------------------------------------------------------------------- */

static void start_race(struct races *races, size_t slot)
{
    char code[64], more[96];
    struct race *race = &races->all[races->count++];
    race->action = unit_random_below(&races->random, ACTION_COUNT);
    (void)snprintf(code, sizeof code, "print x\n%ssleep %zu\n",
                   race->action == CRASH || race->action == TWICE ? "fault\n" : "",
                   WALL_MS - 6 + unit_random_below(&races->random, 10));
    (void)snprintf(more, sizeof more, "{'stream': true, 'grant': {'limits': {'wall_ms': %d}}}",
                   WALL_MS);
    json_t *params = fake_params(race->action == CRASH   ? "crash-after"
                                 : race->action == TWICE ? "twice"
                                                         : "well",
                                 code, more);
    if (race->action == LEAVE) {
        races->leaving[slot] = daemon_connect(races->daemon);
        client_request(races->leaving[slot], 1, "run", params);
    } else {
        client_request(races->main, (json_int_t)races->count, "run", params);
    }
}

static void cancel(struct races *races, size_t index)
{
    races->cancel_of[races->next_cancel] = index;
    races->all[index].cancels++;
    races->cancels_owed++;
    client_request(races->main, CANCEL_BASE + races->next_cancel++, "cancel",
                   json_pack("{s:I}", "request_id", (json_int_t)index + 1));
}

/* By its run id, which is known when it has said something. */
static void cancel_by(struct races *races, struct client *client, size_t index)
{
    struct race *race = &races->all[index];
    while (!race->run_id[0] && take_message(races, WAIT_MS))
        ;
    ck_assert(race->run_id[0] != 0);
    if (race->action == CANCEL_BY_SECOND) {
        AR_AUTO_JSON json_t *result =
            client_call(client, "cancel", json_pack("{s:s}", "run_id", race->run_id));
        race->cancelled = json_is_true(json_object_get(result, "cancelled"));
    } else if (client) {
        client_request(client, (json_int_t)index, "cancel",
                       json_pack("{s:s}", "run_id", race->run_id));
        AR_AUTO_JSON json_t *answer = client_answer(client, (json_int_t)index);
        ck_assert(!json_is_true(json_object_get(json_object_get(answer, "result"), "cancelled")));
    }
}

static void act(struct races *races, size_t index, size_t slot)
{
    switch (races->all[index].action) {
    case CANCEL_TWICE:
        cancel(races, index);
        cancel(races, index);
        break;
    case CANCEL:
        cancel(races, index);
        break;
    case CANCEL_BY_SECOND:
        cancel_by(races, races->second, index);
        break;
    case CANCEL_BY_OTHER:
        cancel_by(races, races->other, index);
        break;
    case LEAVE:
        client_disconnect(AR_TAKE(races->leaving[slot]));
        races->answered++;
        break;
    default:
        break;
    }
}

static void race_round(struct races *races)
{
    size_t first = races->count;
    for (size_t slot = 0; slot < AT_ONCE; slot++)
        start_race(races, slot);
    /* Not a wait for anything: the chance that decides who comes first. */
    (void)poll(NULL, 0, (int)unit_random_below(&races->random, 2 * WALL_MS));
    for (size_t slot = 0; slot < AT_ONCE; slot++)
        act(races, first + slot, slot);
    while (races->answered < races->count || races->cancels_owed > 0)
        ck_assert_msg(take_message(races, WAIT_MS), "%zu of %zu answered", races->answered,
                      races->count);
}

/* ---- what the ledger says ----------------------------------------------------------------------- */

static void compare(const struct races *races, const struct rows *rows)
{
    size_t cancelled = 0, gone = rows_count(rows, STATUS_NONE, REASON_CLIENT_GONE), left = 0;
    for (size_t i = 0; i < races->count; i++) {
        const struct race *race = &races->all[i];
        left += race->action == LEAVE;
        if (race->action == LEAVE)
            continue;
        const struct record *record = rows_find(rows, race->run_id);
        ck_assert_str_eq(reason_word(record->reason), race->reason);
        ck_assert_msg(race->cancelled == (record->reason == REASON_CLIENT_CANCELLED),
                      "run %s: cancel said %d, the row says %s", race->run_id, race->cancelled,
                      race->reason);
        cancelled += race->cancelled;
    }
    size_t plain = rows_count(rows, STATUS_NONE, REASON_EXIT_ZERO) +
                   rows_count(rows, STATUS_NONE, REASON_WALL_CLOCK);
    (void)fprintf(stderr, "%zu runs: %zu succeeded, %zu timed out, %zu cancelled, %zu gone\n",
                  rows->count, rows_count(rows, STATUS_SUCCEEDED, REASON_NONE),
                  rows_count(rows, STATUS_TIMED_OUT, REASON_NONE), cancelled, gone);
    ck_assert_uint_le(gone, left);
    ck_assert_uint_eq(plain + cancelled + gone, rows->count);
}

START_TEST(a_run_has_one_end_whatever_comes_together)
{
    struct races races = {.random = unit_random_new()};
    (void)fprintf(stderr, "AUDITRUN_SEED=%llu\n", (unsigned long long)races.random.seed);
    races.daemon = fake_daemon(modes, AT_ONCE, "[client other]\nuid = 65534\ncompanies = *\n");
    races.main = daemon_connect(races.daemon);
    races.second = daemon_connect(races.daemon);
    races.other = connect_as_other(races.daemon);
    for (int round = 0; round < ROUNDS; round++)
        race_round(&races);
    struct rows rows = rows_wait(daemon_ledger(races.daemon), races.count, WAIT_MS);
    ck_assert_uint_eq(rows.count, races.count);
    compare(&races, &rows);
    rows_free(&rows);
    client_disconnect(races.main);
    client_disconnect(races.second);
    client_disconnect(races.other);
    daemon_free(races.daemon);
}
END_TEST

/* ---- one at a time ------------------------------------------------------------------------------ */

static void expect_cancelled(struct client *client, json_t *params, bool expected)
{
    AR_AUTO_JSON json_t *result = client_call(client, "cancel", params);
    ck_assert_int_eq(json_is_true(json_object_get(result, "cancelled")), expected);
}

/* A run on its way, which has said something: its id in *run_id. */
static void start_run(struct client *client, json_int_t id, char run_id[64])
{
    client_request(client, id, "run",
                   fake_params("well", "print x\nsleep 9000", "{'stream': true}"));
    AR_AUTO_JSON json_t *message = client_next(client);
    copy_word(run_id, 64, json_object_get(message, "params"), "run_id");
}

START_TEST(an_id_that_is_used_again_cancels_the_run_that_has_it)
{
    char run_id[64];
    struct daemon *daemon = fake_daemon(modes, 2, NULL);
    struct client *client = daemon_connect(daemon);
    client_request(client, 7, "run", fake_params("well", "print first", NULL));
    AR_AUTO_JSON json_t *first = client_result(client, 7);
    client_expect(first, "succeeded", "exit_zero");
    expect_cancelled(client, json_pack("{s:i}", "request_id", 7), false);
    expect_cancelled(client, json_pack("{s:O}", "run_id", json_object_get(first, "run_id")), false);
    start_run(client, 7, run_id);
    expect_cancelled(client, json_pack("{s:i}", "request_id", 7), true);
    AR_AUTO_JSON json_t *second = client_result(client, 7);
    client_expect(second, "cancelled", "client_cancelled");
    rows_expect_result(daemon_ledger(daemon), first);
    rows_expect_result(daemon_ledger(daemon), second);
    rows_expect(daemon_ledger(daemon), 2);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* Another connection of the same client may, another client may not. */
START_TEST(only_the_client_that_started_a_run_cancels_it)
{
    char run_id[64];
    struct daemon *daemon = fake_daemon(modes, 2, "[client other]\nuid = 65534\ncompanies = *\n");
    struct client *client = daemon_connect(daemon);
    struct client *second = daemon_connect(daemon);
    struct client *other = connect_as_other(daemon);
    start_run(client, 1, run_id);
    if (other) {
        AR_AUTO_JSON json_t *error =
            client_fail(other, "cancel", json_pack("{s:s}", "run_id", run_id));
        client_expect_error(error, -32003, NULL, NULL);
        expect_cancelled(other, json_pack("{s:i}", "request_id", 1), false);
    } else {
        (void)fprintf(stderr, "SKIPPED: nobody but root can be another client\n");
    }
    expect_cancelled(second, json_pack("{s:i}", "request_id", 1), false);
    expect_cancelled(second, json_pack("{s:s}", "run_id", run_id), true);
    AR_AUTO_JSON json_t *result = client_result(client, 1);
    client_expect(result, "cancelled", "client_cancelled");
    rows_expect(daemon_ledger(daemon), 1);
    client_disconnect(other);
    client_disconnect(second);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* The daemon is told to go while runs end: each has its row, and each answer that came agrees. */
START_TEST(an_end_of_the_daemon_is_no_second_end_of_a_run)
{
    enum { RUNS = 40 };
    struct unit_random random = unit_random_new();
    struct daemon *daemon = fake_daemon(modes, 8, "[daemon]\ndrain_timeout = 30ms\n");
    struct client *client = daemon_connect(daemon);
    for (json_int_t id = 1; id <= RUNS; id++) {
        char code[32];
        (void)snprintf(code, sizeof code, "sleep %zu", unit_random_below(&random, 60));
        client_request(client, id, "run", fake_params("well", code, NULL));
    }
    AR_AUTO_JSON json_t *first = client_next(client);
    ck_assert_ptr_nonnull(json_object_get(first, "result"));
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGTERM), 0);
    for (int i = 1; i < RUNS; i++) {
        AR_AUTO_JSON json_t *answer = client_next(client);
        rows_expect_result(daemon_ledger(daemon), json_object_get(answer, "result"));
    }
    client_expect_end(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    rows_expect(daemon_ledger(daemon), RUNS);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- main --------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("race");
    TCase *tcase = e2e_case(suite, "race");
    tcase_set_timeout(tcase, 180);
    tcase_add_test(tcase, a_run_has_one_end_whatever_comes_together);
    tcase_add_test(tcase, an_id_that_is_used_again_cancels_the_run_that_has_it);
    tcase_add_test(tcase, only_the_client_that_started_a_run_cancels_it);
    tcase_add_test(tcase, an_end_of_the_daemon_is_no_second_end_of_a_run);
    return e2e_run(suite);
}
