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
#include "daemon/journal_state.h"
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/lib/postgres.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#define WAIT_MS   20000
#define CLIENTS   16
#define IN_FLIGHT 2
#define MAX_RUNS  8192

/* Ids in the order of their being found, each once. */
struct ids {
    char (*items)[UUID7_TEXT_BYTES];
    size_t count;
};

/* A run that was asked for. */
struct asked {
    char run_id[UUID7_TEXT_BYTES]; /* "": not answered */
    enum status status;
    bool kept; /* the answer was the audit failure */
};

struct load {
    struct client *clients[CLIENTS];
    struct asked *asked; /* by the id of the request */
    int count;
};

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

/* ---- ids -------------------------------------------------------------------------------------- */

static bool has_id(const struct ids *ids, const char *id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (strcmp(ids->items[i], id) == 0)
            return true;
    return false;
}

static void add_id(struct ids *ids, const char *id)
{
    if (has_id(ids, id))
        return;
    ids->items = reallocarray(ids->items, ids->count + 1, sizeof ids->items[0]);
    ck_assert_ptr_nonnull(ids->items);
    memcpy(ids->items[ids->count++], id, UUID7_TEXT_BYTES);
}

/* ---- the load --------------------------------------------------------------------------------- */

static json_t *run_params(int id)
{
    json_t *params = fake_params("well", "print x\nsleep 2", NULL);
    char key[32];
    (void)snprintf(key, sizeof key, "key-%d", id);
    ck_assert_int_eq(json_object_set_new(params, "idempotency_key", json_string(key)), 0);
    return params;
}

/* A daemon that has just killed itself is no failure of the test. */
static void ask(struct load *load, struct client *client)
{
    ck_assert_int_lt(load->count, MAX_RUNS);
    int id = load->count++;
    AR_AUTO_JSON json_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", id,
                                             "method", "run", "params", run_params(id));
    AR_AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    AR_AUTO_FREE char *line = NULL;
    int length = asprintf(&line, "%s\n", text);
    ck_assert_int_gt(length, 0);
    ssize_t n = send(client_fd(client), line, (size_t)length, MSG_NOSIGNAL);
    ck_assert(n == length || (n < 0 && (errno == EPIPE || errno == ECONNRESET)));
}

static void note_answer(struct load *load, const json_t *message)
{
    struct asked *asked = &load->asked[json_integer_value(json_object_get(message, "id"))];
    const json_t *result = json_object_get(message, "result");
    const json_t *data = json_object_get(json_object_get(message, "error"), "data");
    const char *run_id = json_string_value(json_object_get(result ? result : data, "run_id"));
    const char *status = json_string_value(
        json_object_get(result ? result : data, result ? "status" : "terminal_status"));
    AR_AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    ck_assert_msg(run_id && status && strlen(run_id) == UUID7_TEXT_BYTES - 1, "%s", text);
    memcpy(asked->run_id, run_id, UUID7_TEXT_BYTES);
    ck_assert(status_from_word(status, &asked->status));
    asked->kept = !result;
    ck_assert_msg(result || json_is_true(json_object_get(data, "kept")), "%s", text);
}

static void take_answers(struct load *load, struct client *client, bool ask_more)
{
    json_t *message;
    while ((message = client_next_within(client, 0))) {
        note_answer(load, message);
        json_decref(message);
        if (ask_more)
            ask(load, client);
    }
}

static void begin_load(struct load *load, const struct daemon *daemon)
{
    load->asked = calloc(MAX_RUNS, sizeof load->asked[0]);
    ck_assert_ptr_nonnull(load->asked);
    load->count = 0;
    for (int i = 0; i < CLIENTS; i++)
        load->clients[i] = daemon_connect(daemon);
    for (int i = 0; i < CLIENTS * IN_FLIGHT; i++)
        ask(load, load->clients[i % CLIENTS]);
}

/* Until the daemon has killed itself; then what it had answered is read to its end. */
static void drive(struct load *load, struct daemon *daemon)
{
    int64_t deadline = processes_now_ms() + 2 * WAIT_MS;
    int status = 0;
    while (!daemon_has_ended(daemon, &status)) {
        ck_assert_msg(processes_now_ms() < deadline, "the point is not passed in %d runs",
                      load->count);
        for (int i = 0; i < CLIENTS; i++)
            take_answers(load, load->clients[i], true);
        (void)poll(NULL, 0, 2);
    }
    ck_assert_int_eq(status, 128 + SIGKILL);
    for (int i = 0; i < CLIENTS; i++) {
        do
            take_answers(load, load->clients[i], false);
        while (!client_has_ended(load->clients[i]));
        client_disconnect(load->clients[i]);
    }
}

/* ---- what has to be --------------------------------------------------------------------------- */

static int add_open(void *context, const struct journal_entry *entry)
{
    if (entry->type != JOURNAL_EVENT)
        add_id(context, entry->id);
    return 0;
}

static char *read_bytes(const char *path, size_t *length)
{
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*length + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *length, file), *length);
    (void)fclose(file);
    return bytes;
}

/* The runs that are open in the journal, which nobody uses. */
static void add_journal(struct ids *ids, const struct daemon *daemon)
{
    struct journal_state state;
    size_t length;
    AR_AUTO_FREE char *path = daemon_path(daemon, "journal/journal");
    AR_AUTO_FREE char *bytes = read_bytes(path, &length);
    struct journal_walk walk = {.data = (const unsigned char *)bytes, .length = length};
    enum journal_piece piece;
    journal_state_init(&state);
    while ((piece = journal_frame_next(&walk)) == JOURNAL_PIECE_FRAME)
        ck_assert_int_eq(journal_state_apply(&state, &walk.frame), 0);
    ck_assert(piece == JOURNAL_PIECE_END || piece == JOURNAL_PIECE_TAIL);
    ck_assert_int_eq(journal_entries_each(&state.entries, add_open, ids), 0);
    journal_state_free(&state);
}

static void add_rows(struct ids *ids, const struct daemon *daemon)
{
    struct rows rows = rows_read(daemon_ledger(daemon));
    for (size_t i = 0; i < rows.count; i++)
        add_id(ids, rows.items[i]->run_id);
    rows_free(&rows);
}

/* Exactly these are rows, each once; who was answered finds what was said. */
static void expect_rows(const struct daemon *daemon, const struct ids *ids, const struct load *load)
{
    struct rows rows = rows_wait(daemon_ledger(daemon), ids->count, WAIT_MS);
    for (size_t i = 0; i < rows.count; i++)
        ck_assert_msg(has_id(ids, rows.items[i]->run_id), "run %s has a row (%s) out of nothing",
                      rows.items[i]->run_id, reason_word(rows.items[i]->reason));
    ck_assert_uint_eq(rows.count, ids->count);
    for (size_t i = 0; i < ids->count; i++)
        (void)rows_find(&rows, ids->items[i]);
    for (int i = 0; i < load->count; i++) {
        const struct asked *asked = &load->asked[i];
        if (!asked->run_id[0])
            continue;
        const struct record *row = rows_find(&rows, asked->run_id);
        ck_assert_msg(row->status == asked->status, "run %s was told %s and is %s", asked->run_id,
                      status_word(asked->status), status_word(row->status));
        ck_assert_int_eq(row->late, asked->kept);
    }
    rows_free(&rows);
}

/* Whoever was not answered asks again: a row that was there, or a run that is one now. */
static void ask_again(struct daemon *daemon, struct load *load, struct ids *ids)
{
    struct client *client = daemon_connect(daemon);
    for (int i = 0; i < load->count; i++) {
        struct asked *asked = &load->asked[i];
        if (asked->run_id[0])
            continue;
        AR_AUTO_JSON json_t *result = client_call(client, "run", run_params(i));
        const char *run_id = json_string_value(json_object_get(result, "run_id"));
        const char *status = json_string_value(json_object_get(result, "status"));
        ck_assert(status_from_word(status, &asked->status));
        if (asked->status == STATUS_INTERRUPTED) /* no second run, and the only one was known */
            ck_assert_msg(has_id(ids, run_id), "run %s came from nowhere", run_id);
        add_id(ids, run_id);
        AR_AUTO_JSON json_t *found =
            client_call(client, "record", json_pack("{s:s}", "run_id", run_id));
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(found, "record"), "status")), status);
    }
    client_disconnect(client);
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

/* Kills one under load; what has to be a row then. */
static struct ids crash(const struct scene *scene, int round, struct store *store,
                        struct daemon *daemon, struct load *load)
{
    struct ids ids = {0};
    char fault[64];
    (void)snprintf(fault, sizeof fault, "%s:%d", scene->point, scene->first + round * scene->step);
    daemon_launch_fault(daemon, fault);
    daemon_await(daemon);
    begin_load(load, daemon);
    if (scene->ledger_away && !scene->on_postgres)
        take_ledger_away(store);
    drive(load, daemon);
    daemon_expect_nothing(daemon, 2000);
    if (scene->ledger_away && !scene->on_postgres) /* reading needs it for a moment */
        bring_ledger_back(store);
    add_rows(&ids, daemon);
    add_journal(&ids, daemon);
    if (scene->ledger_away)
        take_ledger_away(store);
    return ids;
}

static void play(const struct scene *scene, int round)
{
    struct store store = {0};
    struct load load;
    struct daemon *daemon = prepare(scene, &store);
    struct ids ids = crash(scene, round, &store, daemon, &load);
    if (scene->second) {
        daemon_launch_fault(daemon, scene->second);
        daemon_await_fault(daemon);
    }
    daemon_launch(daemon);
    daemon_await(daemon);
    if (scene->ledger_away)
        bring_ledger_back(&store);
    expect_rows(daemon, &ids, &load);
    ask_again(daemon, &load, &ids);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    size_t rows = ids.count;
    add_journal(&ids, daemon);
    ck_assert_uint_eq(ids.count, rows); /* nothing is open that is no row */
    rows_expect(daemon_ledger(daemon), rows);
    daemon_start_again(daemon);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    rows_expect(daemon_ledger(daemon), rows);
    daemon_free(daemon);
    postgres_free(store.server);
    free(store.file);
    free(store.away);
    free(load.asked);
    free(ids.items);
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
