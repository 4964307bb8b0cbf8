/*
 * load.c - see load.h.
 *
 * A run's number is the id of its request and stands in its purpose. The thread that drives the load is
 * the only one that touches it while it goes; the counters are atomic.
 */
#include "tests/lib/load.h"

#include "daemon/journal_state.h"
#include "tests/lib/fake.h"
#include "tests/lib/postgres.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TURN_MS    5
#define POLL_MS    20
#define PAUSE_MS   200
#define FIRST_ROOM 4096

enum answer { ANSWER_NONE, ANSWER_TOLD, ANSWER_KEPT, ANSWER_AT_RISK };

/* A run that was asked for. */
struct asked {
    enum answer answer;
    enum status status;
    char run_id[UUID7_TEXT_BYTES];
    char writer[UUID7_TEXT_BYTES]; /* of ANSWER_TOLD, as the rest */
    int64_t seq;
    char hash[DIGEST_HEX_BYTES];
};

struct place {
    struct client *client; /* NULL: not connected */
    int in_flight;
    int64_t pause_until; /* after a refusal */
};

struct load {
    struct load_options options;
    char socket[128];
    struct place places[LOAD_MAX_CLIENTS];
    struct asked *asked; /* by the id of the request */
    int count, room;
    atomic_int answers[ANSWER_AT_RISK + 1], refused, total;
    pthread_t thread;
    atomic_bool go_on;
    int64_t rest_ms; /* how long the last ones may take; set before go_on goes */
};

/* ---- asking ----------------------------------------------------------------------------------- */

/* What the code of a run does, by its number. */
static enum status true_status(int id)
{
    return id % 4 == 3 ? STATUS_FAILED : STATUS_SUCCEEDED;
}

static json_t *run_params(const struct load *load, int id)
{
    char code[64], purpose[64];
    (void)snprintf(code, sizeof(code), "print x\nsleep %d%s", load->options.sleep_ms,
                   true_status(id) == STATUS_FAILED ? "\nexit 4" : "");
    json_t *params = fake_params("well", code, NULL);
    (void)snprintf(purpose, sizeof(purpose), "%s-%d", load->options.name, id);
    ck_assert_int_eq(json_object_set_new(params, "purpose", json_string(purpose)), 0);
    if (load->options.keys)
        ck_assert_int_eq(json_object_set_new(params, "idempotency_key", json_string(purpose)), 0);
    return params;
}

static int new_number(struct load *load)
{
    if (load->count == load->room) {
        load->room = load->room ? 2 * load->room : FIRST_ROOM;
        load->asked = reallocarray(load->asked, (size_t)load->room, sizeof(load->asked[0]));
        ck_assert_ptr_nonnull(load->asked);
    }
    load->asked[load->count] = (struct asked){.answer = ANSWER_NONE};
    atomic_fetch_add(&load->total, 1);
    return load->count++;
}

/* A daemon that has just been killed is no failure of the test. */
static void ask(struct load *load, struct place *place)
{
    int id = new_number(load);
    AR_AUTO_JSON json_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", id,
                                             "method", "run", "params", run_params(load, id));
    AR_AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    AR_AUTO_FREE char *line = NULL;
    int length = asprintf(&line, "%s\n", text);
    ck_assert_int_gt(length, 0);
    ssize_t n = send(client_fd(place->client), line, (size_t)length, MSG_NOSIGNAL);
    ck_assert_msg(n == length || (n < 0 && (errno == EPIPE || errno == ECONNRESET)), "%s",
                  strerror(errno));
    place->in_flight++;
}

/* ---- being answered --------------------------------------------------------------------------- */

static void copy(char *to, size_t room, const json_t *object, const char *member, const char *text)
{
    const char *value = json_string_value(json_object_get(object, member));
    ck_assert_msg(value && strlen(value) == room - 1, "no %s in %s", member, text);
    memcpy(to, value, room);
}

static void note_place(struct asked *asked, const json_t *result, const char *text)
{
    const json_t *record = json_object_get(result, "record");
    asked->answer = ANSWER_TOLD;
    asked->seq = json_integer_value(json_object_get(record, "seq"));
    copy(asked->writer, sizeof(asked->writer), record, "writer", text);
    copy(asked->hash, sizeof(asked->hash), record, "hash", text);
}

/* The audit failure: with the true status, and the record safe. */
static void note_failure(const struct load *load, struct asked *asked, const json_t *error,
                         const char *text)
{
    bool kept = json_is_true(json_object_get(json_object_get(error, "data"), "kept"));
    ck_assert_msg(json_integer_value(json_object_get(error, "code")) == -32001, "%s", text);
    asked->answer = kept ? ANSWER_KEPT : ANSWER_AT_RISK;
    ck_assert_msg(kept || (load->options.at_risk_is_ok && asked->status == STATUS_REFUSED), "%s",
                  text);
}

static enum status note_answer(struct load *load, const json_t *message)
{
    json_int_t id = json_integer_value(json_object_get(message, "id"));
    const json_t *result = json_object_get(message, "result");
    const json_t *error = json_object_get(message, "error");
    const json_t *value = result ? result : json_object_get(error, "data");
    AR_AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    ck_assert_msg(id < load->count, "%s", text);
    struct asked *asked = &load->asked[id];
    ck_assert_msg(asked->answer == ANSWER_NONE, "answered twice: %s", text);
    const char *status =
        json_string_value(json_object_get(value, result ? "status" : "terminal_status"));
    ck_assert_msg(status && status_from_word(status, &asked->status), "%s", text);
    ck_assert_msg(asked->status == true_status((int)id) || asked->status == STATUS_REFUSED, "%s",
                  text);
    copy(asked->run_id, sizeof(asked->run_id), value, "run_id", text);
    if (result)
        note_place(asked, result, text);
    else
        note_failure(load, asked, error, text);
    atomic_fetch_add(&load->refused, asked->status == STATUS_REFUSED);
    atomic_fetch_add(&load->answers[asked->answer], 1);
    return asked->status;
}

static void take_answers(struct load *load, struct place *place)
{
    json_t *message;
    while ((message = client_next_within(place->client, 0))) {
        if (note_answer(load, message) == STATUS_REFUSED)
            place->pause_until = processes_now_ms() + PAUSE_MS;
        json_decref(message);
        place->in_flight--;
    }
}

static void disconnect(struct place *place)
{
    client_disconnect(place->client);
    *place = (struct place){.client = NULL};
}

static void fill(struct load *load, struct place *place)
{
    if (place->pause_until > processes_now_ms())
        return;
    while (place->in_flight < load->options.in_flight)
        ask(load, place);
}

void load_turn(struct load *load)
{
    for (int i = 0; i < load->options.clients; i++) {
        take_answers(load, &load->places[i]);
        fill(load, &load->places[i]);
    }
}

void load_end_of_daemon(struct load *load)
{
    for (int i = 0; i < load->options.clients; i++) {
        struct place *place = &load->places[i];
        if (!place->client)
            continue;
        do
            take_answers(load, place);
        while (!client_has_ended(place->client));
        disconnect(place);
    }
}

/* ---- the thread ------------------------------------------------------------------------------- */

/* A daemon that is not there (yet) is no failure either. */
static struct client *try_to_connect(const struct load *load)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, load->socket, strlen(load->socket) + 1);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        return NULL;
    return client_adopt(base_take_fd(&fd));
}

static void drive(struct load *load, struct place *place, bool go_on)
{
    if (!place->client && go_on)
        place->client = try_to_connect(load);
    if (!place->client)
        return;
    take_answers(load, place);
    if (client_has_ended(place->client))
        disconnect(place);
    else if (go_on)
        fill(load, place);
}

static void wait_for_any(const struct load *load)
{
    struct pollfd fds[LOAD_MAX_CLIENTS];
    for (int i = 0; i < load->options.clients; i++)
        fds[i] = (struct pollfd){
            .fd = load->places[i].client ? client_fd(load->places[i].client) : -1,
            .events = POLLIN,
        };
    (void)poll(fds, (nfds_t)load->options.clients, TURN_MS);
}

static int in_flight(const struct load *load)
{
    int count = 0;
    for (int i = 0; i < load->options.clients; i++)
        count += load->places[i].in_flight;
    return count;
}

static void *thread_main(void *context)
{
    struct load *load = context;
    int64_t deadline = 0;
    bool go_on;
    do {
        wait_for_any(load);
        go_on = atomic_load(&load->go_on);
        for (int i = 0; i < load->options.clients; i++)
            drive(load, &load->places[i], go_on);
        if (!go_on && deadline == 0)
            deadline = processes_now_ms() + load->rest_ms;
        ck_assert_msg(deadline == 0 || processes_now_ms() < deadline, "%d runs have no answer",
                      in_flight(load));
    } while (go_on || in_flight(load) > 0);
    return NULL;
}

void load_go(struct load *load)
{
    atomic_store(&load->go_on, true);
    ck_assert_int_eq(pthread_create(&load->thread, NULL, thread_main, load), 0);
}

void load_rest(struct load *load, int64_t ms)
{
    load->rest_ms = ms;
    atomic_store(&load->go_on, false);
    ck_assert_int_eq(pthread_join(load->thread, NULL), 0);
}

struct load_counts load_counts(const struct load *load)
{
    return (struct load_counts){
        .asked = atomic_load(&load->total),
        .told = atomic_load(&load->answers[ANSWER_TOLD]),
        .kept = atomic_load(&load->answers[ANSWER_KEPT]),
        .at_risk = atomic_load(&load->answers[ANSWER_AT_RISK]),
        .refused = atomic_load(&load->refused),
    };
}

static void await(const struct load *load, enum answer answer, int more, int64_t ms)
{
    int64_t deadline = processes_now_ms() + ms;
    int wanted = atomic_load(&load->answers[answer]) + more;
    while (atomic_load(&load->answers[answer]) < wanted) {
        ck_assert_msg(processes_now_ms() < deadline, "%d runs too few are answered so",
                      wanted - atomic_load(&load->answers[answer]));
        (void)poll(NULL, 0, POLL_MS);
    }
}

void load_await_told(const struct load *load, int more, int64_t ms)
{
    await(load, ANSWER_TOLD, more, ms);
}

void load_await_kept(const struct load *load, int more, int64_t ms)
{
    await(load, ANSWER_KEPT, more, ms);
}

struct load *load_begin(const struct daemon *daemon, const struct load_options *options)
{
    struct load *load = calloc(1, sizeof(*load));
    ck_assert_ptr_nonnull(load);
    ck_assert_int_le(options->clients, LOAD_MAX_CLIENTS);
    load->options = *options;
    (void)snprintf(load->socket, sizeof(load->socket), "%s", daemon_socket(daemon));
    for (int i = 0; i < options->clients; i++)
        load->places[i].client = daemon_connect(daemon);
    for (int i = 0; i < options->clients; i++)
        fill(load, &load->places[i]);
    return load;
}

void load_free(struct load *load)
{
    if (!load)
        return;
    for (int i = 0; i < load->options.clients; i++)
        disconnect(&load->places[i]);
    free(load->asked);
    free(load);
}

/* ---- what has to be --------------------------------------------------------------------------- */

static void add_id(json_t *ids, const char *id)
{
    ck_assert_int_eq(json_object_set_new(ids, id, json_true()), 0);
}

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

void load_add_journal(json_t *ids, const struct daemon *daemon)
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

void load_expect_nothing_open(const struct daemon *daemon)
{
    AR_AUTO_JSON json_t *open = json_object();
    load_add_journal(open, daemon);
    ck_assert_msg(json_object_size(open) == 0, "%zu runs are open in the journal",
                  json_object_size(open));
}

void load_add_rows(json_t *ids, const char *url)
{
    struct rows rows = rows_read(url);
    for (size_t i = 0; i < rows.count; i++)
        add_id(ids, rows.items[i]->run_id);
    rows_free(&rows);
}

/* ---- what is ---------------------------------------------------------------------------------- */

/* Rows by the id of their run. */
struct table {
    struct rows rows;
    json_t *places; /* id -> index */
};

static struct table read_table(const char *url)
{
    struct table table = {.rows = rows_read(url), .places = json_object()};
    for (size_t i = 0; i < table.rows.count; i++) {
        const char *id = table.rows.items[i]->run_id;
        ck_assert_msg(!json_object_get(table.places, id), "two rows of run %s", id);
        ck_assert_int_eq(json_object_set_new(table.places, id, json_integer((json_int_t)i)), 0);
    }
    return table;
}

static void free_table(struct table *table)
{
    rows_free(&table->rows);
    json_decref(table->places);
}

static const struct record *find(const struct table *table, const char *id)
{
    const json_t *place = json_object_get(table->places, id);
    return place ? table->rows.items[json_integer_value(place)] : NULL;
}

/* The first run that has no row although it was answered, or is one of ids; NULL: there is none. */
static const char *first_missing(const struct table *table, const struct load *load,
                                 const json_t *ids)
{
    const char *id;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)ids, id, value)
        if (!find(table, id))
            return id;
    for (int i = 0; i < load->count; i++) {
        const struct asked *asked = &load->asked[i];
        if ((asked->answer == ANSWER_TOLD || asked->answer == ANSWER_KEPT) &&
            !find(table, asked->run_id))
            return asked->run_id;
    }
    return NULL;
}

/* Reads until nothing is missing. */
static struct table wait_for_table(const struct load *const *loads, size_t count, const char *url,
                                   const json_t *ids, int64_t ms)
{
    int64_t deadline = processes_now_ms() + ms;
    for (;;) {
        struct table table = read_table(url);
        const char *missing = NULL;
        for (size_t i = 0; i < count && !missing; i++)
            missing = first_missing(&table, loads[i], i == 0 ? ids : NULL);
        if (!missing)
            return table;
        ck_assert_msg(processes_now_ms() < deadline, "run %s has no row", missing);
        free_table(&table);
        (void)poll(NULL, 0, POLL_MS);
    }
}

static void expect_answer(const struct asked *asked, const struct record *row)
{
    ck_assert_msg(row->status == asked->status, "run %s was told %s and is %s", asked->run_id,
                  status_word(asked->status), status_word(row->status));
    if (asked->answer != ANSWER_TOLD)
        return;
    ck_assert_str_eq(row->writer, asked->writer);
    ck_assert_int_eq(row->seq, asked->seq);
    ck_assert_str_eq(row->row_hash, asked->hash);
}

static void expect_answers(const struct load *load, const struct table *table)
{
    for (int i = 0; i < load->count; i++) {
        const struct asked *asked = &load->asked[i];
        const struct record *row = asked->answer == ANSWER_NONE ? NULL : find(table, asked->run_id);
        if (row)
            expect_answer(asked, row);
    }
}

static void expect_late(const struct load *load, const struct table *table)
{
    for (int i = 0; i < load->count; i++) {
        const struct asked *asked = &load->asked[i];
        const struct record *row = asked->answer == ANSWER_NONE ? NULL : find(table, asked->run_id);
        if (row)
            ck_assert_int_eq(row->late, asked->answer == ANSWER_KEPT);
    }
}

void load_expect_exactly(const struct load *load, const char *url, const json_t *ids, int64_t ms)
{
    struct table table = wait_for_table(&load, 1, url, ids, ms);
    for (size_t i = 0; i < table.rows.count; i++)
        ck_assert_msg(json_object_get(ids, table.rows.items[i]->run_id) != NULL,
                      "run %s has a row (%s) out of nothing", table.rows.items[i]->run_id,
                      reason_word(table.rows.items[i]->reason));
    ck_assert_uint_eq(table.rows.count, json_object_size(ids));
    expect_answers(load, &table);
    expect_late(load, &table);
    free_table(&table);
}

/* Which run of which load a row is of. */
static const struct asked *asked_for(const struct load *const *loads, size_t count,
                                     const struct record *row)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = loads[i]->options.name;
        size_t length = strlen(name);
        if (strncmp(row->purpose, name, length) != 0 || row->purpose[length] != '-')
            continue;
        long id = strtol(row->purpose + length + 1, NULL, 10);
        if (id >= 0 && id < loads[i]->count)
            return &loads[i]->asked[id];
    }
    return NULL;
}

/* Each row is of a run that was asked for, and no run ran twice. */
static void expect_asked(const struct load *const *loads, size_t count, const struct table *table)
{
    AR_AUTO_JSON json_t *seen = json_object();
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct record *row = table->rows.items[i];
        const struct asked *asked = asked_for(loads, count, row);
        ck_assert_msg(asked != NULL, "run %s has a row out of nothing", row->run_id);
        ck_assert_msg(asked->answer == ANSWER_NONE || strcmp(asked->run_id, row->run_id) == 0,
                      "run %s was told to be %s", row->run_id, asked->run_id);
        if (asked->answer == ANSWER_NONE && row->status == STATUS_REFUSED)
            continue; /* before it was asked for again */
        ck_assert_msg(!json_object_get(seen, row->purpose), "%s was run twice", row->purpose);
        add_id(seen, row->purpose);
    }
}

size_t load_expect_rows(const struct load *const *loads, size_t count, const char *url,
                        const json_t *ids, int64_t ms)
{
    struct table table = wait_for_table(loads, count, url, ids, ms);
    size_t rows = table.rows.count;
    expect_asked(loads, count, &table);
    for (size_t i = 0; i < count; i++)
        expect_answers(loads[i], &table);
    free_table(&table);
    load_expect_sql_verify(url);
    return rows;
}

void load_expect_sql_verify(const char *url)
{
    if (strncmp(url, "postgres:", strlen("postgres:")) != 0)
        return;
    AR_AUTO_FREE char *finding = postgres_sql(
        url, "SELECT concat_ws(' ', finding, writer, seq, row_id) FROM auditrun.verify()");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding, "ok");
}

/* ---- again ------------------------------------------------------------------------------------ */

void load_ask_again(struct load *load, const struct daemon *daemon, json_t *ids)
{
    struct client *client = daemon_connect(daemon);
    for (int i = 0; i < load->count; i++) {
        enum status status;
        if (load->asked[i].answer != ANSWER_NONE)
            continue;
        AR_AUTO_JSON json_t *result = client_call(client, "run", run_params(load, i));
        const char *run_id = json_string_value(json_object_get(result, "run_id"));
        const char *word = json_string_value(json_object_get(result, "status"));
        ck_assert(status_from_word(word, &status));
        if (status == STATUS_INTERRUPTED) /* no second run, and the only one was known */
            ck_assert_msg(json_object_get(ids, run_id) != NULL, "run %s came from nowhere", run_id);
        add_id(ids, run_id);
        AR_AUTO_JSON json_t *found =
            client_call(client, "record", json_pack("{s:s}", "run_id", run_id));
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(found, "record"), "status")), word);
    }
    client_disconnect(client);
}
