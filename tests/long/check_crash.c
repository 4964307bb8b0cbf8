/*
 * check_crash.c - the daemon is killed at each point of a run's way at which something else has just
 * become true: every run that was to be, or was told of, is one row in the end.
 *
 * The daemon with fault points kills itself in the middle of 32 runs in flight. What its journal and
 * ledger hold then says which runs have to be rows. The daemons that come after it, of which one may
 * be killed in its recovery as well, have to make exactly these. Whoever was not answered asks again
 * with the same idempotency key, and gets the row that there is, or a run.
 *
 * AUDITRUN_CRASH_ROUNDS (1) kills each scene so many times, each time a little later.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/lib/load.h"
#include "tests/lib/postgres.h"

#include <poll.h>
#include <signal.h>

#define WAIT_MS 20000

static const struct load_options thirty_two = {
    .name = "crash", .clients = 16, .in_flight = 2, .sleep_ms = 2, .keys = true};

/* Where to kill, and what else is the case. */
struct scene {
    const char *name;
    const char *point;  /* of the first daemon */
    int first, step;    /* which passing, in the first round; how much later in each round */
    const char *second; /* fault of the next daemon; NULL: it is none */
    bool ledger_away;   /* from the start until the last daemon has started */
    bool on_postgres;
};

static const struct scene scenes[] = {
    {"intent written, not synced", "intent_written", 12, 7, NULL, false, false},
    {"intent durable, nothing started", "intent_durable", 12, 7, NULL, false, false},
    {"provider running", "provider_started", 90, 11, NULL, false, false},
    {"report read", "report_read", 90, 11, NULL, false, false},
    {"record kept", "record_kept", 3, 1, NULL, true, false},
    {"batch sent", "batch_sent", 20, 7, NULL, false, false},
    {"commit answered, not settled", "commit_answered", 20, 7, NULL, false, false},
    {"settled, not synced", "settle_written", 12, 7, NULL, false, false},
    {"reply half written", "reply_half_written", 60, 11, NULL, false, false},
    {"journal rewritten", "rewrite_written", 3, 1, NULL, false, false},
    {"journal renamed", "rewrite_renamed", 3, 1, NULL, false, false},
    {"again in the recovery", "intent_durable", 12, 7, "recovery_asked", false, false},
    {"again when the recovery has a row", "report_read", 60, 7, "commit_answered", false, false},
    {"again when the recovery settles", "report_read", 60, 7, "settle_written", false, false},
    {"again at the rewrite of the start", "provider_started", 60, 7, "rewrite_written", false,
     false},
    {"again with the ledger away", "record_kept", 3, 1, "recovery_asked", true, false},
    {"PostgreSQL: intent durable", "intent_durable", 12, 7, NULL, false, true},
    {"PostgreSQL: batch sent", "batch_sent", 20, 7, "recovery_asked", false, true},
    {"PostgreSQL: commit answered", "commit_answered", 20, 7, NULL, false, true},
    {"PostgreSQL: away at the restart", "report_read", 60, 7, "recovery_asked", true, true},
};

/* Until the daemon has killed itself; then what it had answered is read to its end. */
static void drive(struct load *load, struct daemon *daemon)
{
    int64_t deadline = processes_now_ms() + 2 * WAIT_MS;
    int status = 0;
    while (!daemon_has_ended(daemon, &status)) {
        ck_assert_msg(processes_now_ms() < deadline, "the point is not passed in %d runs",
                      load_counts(load).asked);
        load_turn(load);
        (void)poll(NULL, 0, 2);
    }
    ck_assert_int_eq(status, 128 + SIGKILL);
    load_end_of_daemon(load);
}

/* ---- a scene ---------------------------------------------------------------------------------- */

struct store {
    struct postgres_server *server; /* NULL: SQLite */
    char *file, *away;
};

static void take_ledger_away(struct store *store)
{
    if (store->server)
        postgres_stop_immediate(store->server);
    else
        ck_assert_int_eq(rename(store->file, store->away), 0);
}

static void bring_ledger_back(struct store *store)
{
    if (store->server)
        ck_assert(postgres_start_again(store->server));
    else
        ck_assert_int_eq(rename(store->away, store->file), 0);
}

static struct daemon *prepare(const struct scene *scene, struct store *store)
{
    static const char *const well[] = {"well", NULL};
    AR_AUTO_FREE char *config = fake_config(
        well, 8, "[ledger]\ndeadline = 1s\nwhen_down = keep\n[journal]\nmax_size = 1M\n");
    struct daemon_options options = {.config = config};
    if (scene->on_postgres) {
        store->server = postgres_start();
        ck_assert_ptr_nonnull(store->server);
        options.ledger_url = postgres_url(store->server);
    }
    struct daemon *daemon = daemon_prepare(&options);
    store->file = daemon_path(daemon, "ledger.db");
    store->away = daemon_path(daemon, "ledger.away");
    return daemon;
}

/* Kills one under load; the ids of what has to be a row then. */
static json_t *crash(const struct scene *scene, int round, struct store *store,
                     struct daemon *daemon, struct load **load)
{
    json_t *ids = json_object();
    char fault[64];
    (void)snprintf(fault, sizeof fault, "%s:%d", scene->point, scene->first + round * scene->step);
    daemon_launch_fault(daemon, fault);
    daemon_await(daemon);
    *load = load_begin(daemon, &thirty_two);
    if (scene->ledger_away && !scene->on_postgres)
        take_ledger_away(store);
    drive(*load, daemon);
    daemon_expect_nothing(daemon, 2000);
    if (scene->ledger_away && !scene->on_postgres) /* reading needs it for a moment */
        bring_ledger_back(store);
    load_add_rows(ids, daemon_ledger(daemon));
    load_add_journal(ids, daemon);
    if (scene->ledger_away)
        take_ledger_away(store);
    return ids;
}

/* Restarts it as the scene wants it, until all that has to be there is. */
static void recover(const struct scene *scene, struct store *store, struct daemon *daemon,
                    struct load *load, json_t *ids)
{
    if (scene->second) {
        daemon_launch_fault(daemon, scene->second);
        if (scene->ledger_away) { /* nothing is asked of one that is away */
            daemon_await(daemon);
            bring_ledger_back(store);
        }
        daemon_await_fault(daemon);
        if (scene->ledger_away)
            take_ledger_away(store);
    }
    daemon_launch(daemon);
    daemon_await(daemon);
    if (scene->ledger_away)
        bring_ledger_back(store);
    load_expect_exactly(load, daemon_ledger(daemon), ids, WAIT_MS);
    load_ask_again(load, daemon, ids);
    (void)load_expect_rows((const struct load *const *)&load, 1, daemon_ledger(daemon), ids, 0);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
}

static void play(const struct scene *scene, int round)
{
    struct store store = {0};
    struct load *load;
    struct daemon *daemon = prepare(scene, &store);
    AR_AUTO_JSON json_t *ids = crash(scene, round, &store, daemon, &load);
    recover(scene, &store, daemon, load, ids);
    size_t rows = json_object_size(ids);
    load_add_journal(ids, daemon);
    ck_assert_uint_eq(json_object_size(ids), rows); /* nothing is open that is no row */
    rows_expect(daemon_ledger(daemon), rows);
    daemon_start_again(daemon);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    rows_expect(daemon_ledger(daemon), rows);
    daemon_free(daemon);
    postgres_free(store.server);
    free(store.file);
    free(store.away);
    load_free(load);
}

START_TEST(killed_at)
{
    const char *text = getenv("AUDITRUN_CRASH_ROUNDS");
    long rounds = text ? strtol(text, NULL, 10) : 1;
    for (int round = 0; round < rounds; round++)
        play(&scenes[_i], round);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crash");
    TCase *tcase = e2e_case(suite, "crash");
    const char *rounds = getenv("AUDITRUN_CRASH_ROUNDS");
    if (rounds)
        tcase_set_timeout(tcase, (double)E2E_TIMEOUT_S * (double)strtol(rounds, NULL, 10));
    tcase_add_loop_test(tcase, killed_at, 0, AR_COUNT(scenes));
    return e2e_run(suite);
}
