/*
 * ledger.c - see ledger.h.
 */
#include "tests/lib/ledger.h"

#include "sinks/memory.h"
#include "sinks/schema.h"

#include <check.h>
#include <event2/event.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define GUARD_SECONDS 60

/* ---- the loop ------------------------------------------------------------------------------- */

static void guard_fired(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    *(bool *)context = true;
}

void ledger_wait(struct event_base *base, const bool *flag)
{
    bool late = false;
    struct timeval in = {.tv_sec = GUARD_SECONDS};
    struct event *guard = evtimer_new(base, guard_fired, &late);
    ck_assert_ptr_nonnull(guard);
    ck_assert_int_eq(evtimer_add(guard, &in), 0);
    while (!*flag && !late)
        ck_assert_int_ge(event_base_loop(base, EVLOOP_ONCE), 0);
    event_free(guard);
    ck_assert_msg(*flag, "no call back within %d s", GUARD_SECONDS);
}

/* One call: what it answers, and that it answers once and not from within. */
struct call {
    bool calling, done;
    struct ledger_append append;
    enum sink_answer answer;
    struct sink_head head;
    struct record *record;
    struct ledger_claim claim;
    bool up;
};

static void answered(struct call *call)
{
    ck_assert_msg(!call->calling, "called back from within the call");
    ck_assert_msg(!call->done, "called back twice");
    call->done = true;
}

static void wait_for_call(struct ledger *ledger, struct call *call)
{
    call->calling = false;
    ledger_wait(ledger->base, &call->done);
}

/* ---- operations ----------------------------------------------------------------------------- */

static void append_done(void *context, enum sink_outcome outcome, size_t bad)
{
    struct call *call = context;
    answered(call);
    call->append = (struct ledger_append){outcome, bad};
}

struct ledger_append ledger_append(struct ledger *ledger, const struct sink_head *head,
                                   struct record *const *records, size_t count, int deadline_ms)
{
    struct call call = {.calling = true};
    const struct sink_batch batch = {
        .writer = records[0]->writer, .head = *head, .records = records, .record_count = count};
    ledger->sink->ops->append(ledger->sink, &batch, deadline_ms, append_done, &call);
    wait_for_call(ledger, &call);
    return call.append;
}

struct sink_head ledger_chain_head(const struct records_chain *chain)
{
    struct sink_head head = {.seq = chain->seq};
    memcpy(head.hash, chain->hash, sizeof(head.hash));
    return head;
}

void ledger_grow(struct ledger *ledger, struct records_chain *chain, size_t count)
{
    struct record *records[RECORDS_MAX];
    struct sink_head head = ledger_chain_head(chain);
    ck_assert_uint_le(count, RECORDS_MAX);
    records_fill(chain, records, count);
    ck_assert_int_eq(ledger_append(ledger, &head, records, count, LEDGER_DEADLINE_MS).outcome,
                     SINK_STORED);
    records_free(records, count);
}

struct ledger_append ledger_append_batch(struct ledger *ledger, const struct sink_batch *batch)
{
    struct call call = {.calling = true};
    ledger->sink->ops->append(ledger->sink, batch, LEDGER_DEADLINE_MS, append_done, &call);
    wait_for_call(ledger, &call);
    return call.append;
}

static void head_done(void *context, enum sink_answer answer, const struct sink_head *head)
{
    struct call *call = context;
    answered(call);
    call->answer = answer;
    call->head = *head;
}

enum sink_answer ledger_head(struct ledger *ledger, const char *writer, struct sink_head *head)
{
    struct call call = {.calling = true};
    ledger->sink->ops->head(ledger->sink, writer, LEDGER_DEADLINE_MS, head_done, &call);
    wait_for_call(ledger, &call);
    *head = call.head;
    return call.answer;
}

static struct record *copy(const struct record *record)
{
    struct record *other = record_new();
    ck_assert_ptr_nonnull(other);
    for (size_t i = 0; i < record_layout.count; i++) {
        AR_AUTO_FREE char *text = NULL;
        ck_assert_int_eq(row_get(&record_layout, record, i, &text), 0);
        ck_assert_int_eq(row_set(&record_layout, other, i, text), 0);
    }
    return other;
}

static void find_done(void *context, enum sink_answer answer, const struct record *record)
{
    struct call *call = context;
    answered(call);
    ck_assert((answer == SINK_FOUND) == (record != NULL));
    call->answer = answer;
    call->record = record ? copy(record) : NULL;
}

enum sink_answer ledger_find(struct ledger *ledger, const struct sink_key *key, struct record **out)
{
    struct call call = {.calling = true};
    ledger->sink->ops->find(ledger->sink, key, LEDGER_DEADLINE_MS, find_done, &call);
    wait_for_call(ledger, &call);
    *out = call.record;
    return call.answer;
}

static void claim_done(void *context, enum sink_claim claim, const char *holder, bool same_request)
{
    struct call *call = context;
    answered(call);
    call->claim = (struct ledger_claim){.claim = claim, .same_request = same_request};
    (void)snprintf(call->claim.holder, sizeof(call->claim.holder), "%s", holder ? holder : "");
}

struct ledger_claim ledger_claim(struct ledger *ledger, const char *company, const char *key,
                                 const char *request_sha256, const char *run_id)
{
    struct call call = {.calling = true};
    ledger->sink->ops->claim(ledger->sink, company, key, request_sha256, run_id, LEDGER_DEADLINE_MS,
                             claim_done, &call);
    wait_for_call(ledger, &call);
    return call.claim;
}

static void probe_done(void *context, bool up)
{
    struct call *call = context;
    answered(call);
    call->up = up;
}

bool ledger_probe(struct ledger *ledger, int deadline_ms)
{
    struct call call = {.calling = true};
    ledger->sink->ops->probe(ledger->sink, deadline_ms, probe_done, &call);
    wait_for_call(ledger, &call);
    return call.up;
}

static void done(void *context, bool well)
{
    struct call *call = context;
    answered(call);
    call->up = well;
}

bool ledger_checkpoint(struct ledger *ledger, const struct checkpoint *checkpoint)
{
    struct call call = {.calling = true};
    ledger->sink->ops->checkpoint(ledger->sink, checkpoint, LEDGER_DEADLINE_MS, done, &call);
    wait_for_call(ledger, &call);
    return call.up;
}

bool ledger_maintain(struct ledger *ledger)
{
    struct call call = {.calling = true};
    ledger->sink->ops->maintain(ledger->sink, LEDGER_DEADLINE_MS, done, &call);
    wait_for_call(ledger, &call);
    return call.up;
}

/* ---- SQL past the sink ---------------------------------------------------------------------- */

static const char *file_of(const struct ledger *ledger)
{
    return ledger->url + strlen("sqlite:");
}

static char *sqlite_value(const struct ledger *ledger, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char *value = NULL;
    int rc = sqlite3_open(file_of(ledger), &db);
    const char *rest = sql;
    while (rc == SQLITE_OK && *rest) {
        (void)sqlite3_busy_timeout(db, 10000);
        rc = sqlite3_prepare_v2(db, rest, -1, &statement, &rest);
        if (rc != SQLITE_OK || !statement)
            break;
        while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
            if (!value && sqlite3_column_text(statement, 0))
                value = strdup((const char *)sqlite3_column_text(statement, 0));
        (void)sqlite3_finalize(statement);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    if (rc != SQLITE_OK)
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    (void)sqlite3_close(db);
    if (rc == SQLITE_OK)
        return value ? value : strdup("");
    free(value);
    return NULL;
}

char *ledger_value(const struct ledger *ledger, const char *sql)
{
    AR_AUTO_FREE char *in_schema = NULL;
    if (ledger->kind == LEDGER_SQLITE)
        return sqlite_value(ledger, sql);
    ck_assert_int_gt(asprintf(&in_schema, "SET search_path = auditrun; %s", sql), 0);
    return postgres_sql(ledger->url, in_schema);
}

bool ledger_sql(const struct ledger *ledger, const char *sql)
{
    AR_AUTO_FREE char *value = ledger_value(ledger, sql);
    return value != NULL;
}

bool ledger_tamper(const struct ledger *ledger, const char *sql)
{
    static const char of_postgres[] =
        "SELECT auditrun_guard.drop_event_triggers();"
        "ALTER TABLE runs DISABLE TRIGGER ALL; ALTER TABLE events DISABLE TRIGGER ALL;"
        "ALTER TABLE writers DISABLE TRIGGER ALL; ALTER TABLE checkpoints DISABLE TRIGGER ALL;"
        "ALTER TABLE checkpoint_keys DISABLE TRIGGER ALL";
    static const char of_sqlite[] =
        "SELECT coalesce(group_concat('DROP TRIGGER ' || name, ';'), '') FROM sqlite_master "
        "WHERE type = 'trigger'";
    AR_AUTO_FREE char *out_of_the_way =
        ledger->kind == LEDGER_SQLITE ? ledger_value(ledger, of_sqlite) : strdup(of_postgres);
    AR_AUTO_FREE char *both = NULL;
    ck_assert_int_gt(asprintf(&both, "%s; %s", out_of_the_way, sql), 0);
    return ledger_sql(ledger, both);
}

/* ---- begin and end -------------------------------------------------------------------------- */

static void make_store(struct ledger *ledger, struct postgres_server *server)
{
    char message[SCHEMA_MESSAGE_BYTES];
    int applied = 0;
    if (ledger->kind == LEDGER_POSTGRES) {
        ck_assert(postgres_new_ledger(server, ledger->url));
        return;
    }
    (void)snprintf(ledger->folder, sizeof(ledger->folder), "/tmp/auditrun-ledger-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(ledger->folder));
    (void)snprintf(ledger->url, sizeof(ledger->url), "sqlite:%s/ledger.db", ledger->folder);
    int rc = schema_init(ledger->url, &applied, message);
    ck_assert_msg(rc == 0 && applied > 0, "schema_init: %d, %s", rc, message);
}

void ledger_begin(struct ledger *ledger, enum ledger_kind kind, struct postgres_server *server)
{
    *ledger = (struct ledger){.kind = kind, .base = event_base_new()};
    ck_assert_ptr_nonnull(ledger->base);
    if (kind == LEDGER_MEMORY) {
        ck_assert_int_eq(memory_open(ledger->base, &ledger->sink), 0);
        return;
    }
    make_store(ledger, server);
    ck_assert_int_eq(sink_open(ledger->url, ledger->base, &ledger->sink), 0);
}

void ledger_reopen(struct ledger *ledger)
{
    sink_close(ledger->sink);
    ledger->sink = NULL;
    ck_assert_int_eq(sink_open(ledger->url, ledger->base, &ledger->sink), 0);
}

static void remove_file(const struct ledger *ledger, const char *suffix)
{
    char path[POSTGRES_URL_BYTES + 8];
    (void)snprintf(path, sizeof(path), "%s%s", file_of(ledger), suffix);
    (void)unlink(path);
}

void ledger_end(struct ledger *ledger)
{
    sink_close(ledger->sink);
    event_base_free(ledger->base);
    if (ledger->kind != LEDGER_SQLITE)
        return;
    remove_file(ledger, "");
    remove_file(ledger, "-wal");
    remove_file(ledger, "-shm");
    (void)rmdir(ledger->folder);
}

/* ---- what a ledger is ----------------------------------------------------------------------- */

void ledger_begin_with_rows(struct ledger *ledger, enum ledger_kind kind,
                            struct postgres_server *server, struct records_chain chains[2])
{
    ledger_begin(ledger, kind, server);
    records_begin(&chains[0], 1000);
    records_begin(&chains[1], 1001);
    if (strcmp(chains[0].writer, chains[1].writer) > 0) {
        struct records_chain higher = chains[0];
        chains[0] = chains[1];
        chains[1] = higher;
    }
    for (size_t i = 0; i < 2; i++) {
        ledger_grow(ledger, &chains[i], LEDGER_ROWS / 2);
        ledger_grow(ledger, &chains[i], LEDGER_ROWS / 2);
    }
}

struct reader *ledger_reader(const struct ledger *ledger)
{
    char message[READER_MESSAGE_BYTES];
    struct reader *reader = NULL;
    int rc = reader_open(ledger->url, &reader, message);
    ck_assert_msg(rc == 0, "reader_open: %d, %s", rc, message);
    return reader;
}

struct verify_result ledger_verify(const struct ledger *ledger)
{
    struct verify_result result;
    struct reader *reader = ledger_reader(ledger);
    int rc = verify_ledger(reader, NULL, &result);
    ck_assert_msg(rc == 0, "verify: %d, %s", rc, reader_message(reader));
    reader_close(reader);
    return result;
}

void ledger_expect_sound(const struct ledger *ledger, int64_t rows, int64_t writers)
{
    struct verify_result result = ledger_verify(ledger);
    ck_assert_msg(result.finding == VERIFY_OK, "%s at %" PRId64, verify_word(result.finding),
                  result.seq);
    ck_assert_int_eq(result.rows, rows);
    ck_assert_int_eq(result.writers, writers);
}

void ledger_expect_finding(const struct ledger *ledger, enum verify_finding finding,
                           const char *writer, int64_t seq)
{
    struct verify_result result = ledger_verify(ledger);
    ck_assert_str_eq(verify_word(result.finding), verify_word(finding));
    ck_assert_str_eq(result.writer, writer);
    ck_assert_int_eq(result.seq, seq);
}

void ledger_expect_sql_hash(const struct ledger *ledger, const char *wrong)
{
    if (ledger->kind != LEDGER_POSTGRES)
        return;
    AR_AUTO_FREE char *count =
        ledger_value(ledger, "SELECT count(*) FROM runs AS r WHERE row_hash(r) <> r.row_hash");
    ck_assert_str_eq(count, wrong);
}
