/*
 * postgres.c - the PostgreSQL sink: two lines of operations, each on a connection of its own, all in
 * the event loop.
 *
 * A line carries out one operation at a time. What it asks goes out in one piece (a pipeline up to a
 * sync) and is judged when the sync comes back. A batch takes two pieces: everything up to COMMIT,
 * and, only when each statement of it did what it should, COMMIT alone. So a batch whose deadline
 * passes, or whose connection dies, before COMMIT was sent is certainly not stored; after that it is
 * unknown until the command tag COMMIT comes, without a warning.
 *
 * A connection that was left in a state that is not known is dropped, never mended. The server may
 * still carry out what it was sent; the compare and set of the head lets only one of two attempts
 * win, in whatever order they arrive.
 */
#include "sinks/postgres.h"

#include "sinks/operation.h"
#include "sinks/postgres_conn.h"
#include "sinks/postgres_row.h"
#include "sinks/postgres_sql.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_BYTES 24

/* What the sync that is awaited ends. */
enum phase {
    PHASE_ASKED,      /* the question itself */
    PHASE_COMMITTING, /* COMMIT of a batch */
    PHASE_CLEANING    /* ROLLBACK */
};

struct line {
    struct postgres_sink *sink;
    struct postgres_conn *conn;
    struct event *kick; /* active: look at what is waiting */
    struct operation_list waiting;
    struct operation *active; /* or NULL */
    /* Of the active operation: */
    enum phase phase;
    size_t results;      /* that have come in this phase */
    bool failed;         /* a statement failed, or did not do what it should */
    bool suspect;        /* the connection is not to be used again */
    bool in_transaction; /* BEGIN was answered, its end was not */
};

enum { WRITES, READS, LINE_COUNT };

struct postgres_sink {
    struct sink sink;
    struct operation_desk *desk;
    struct postgres_sql sql;
    struct line lines[LINE_COUNT];
    struct postgres_rows rows, keys;
};

/* ---- sending -------------------------------------------------------------------------------- */

static bool send_text(struct line *line, const char *sql)
{
    return PQsendQueryParams(postgres_conn_pg(line->conn), sql, 0, NULL, NULL, NULL, NULL, 0);
}

static bool send_prepared(struct line *line, const char *name, const char *const *values, int count,
                          int result_format)
{
    return PQsendQueryPrepared(postgres_conn_pg(line->conn), name, count, values, NULL, NULL,
                               result_format);
}

static bool send_rows(struct line *line, const char *name, const struct postgres_rows *rows,
                      int columns)
{
    return PQsendQueryPrepared(postgres_conn_pg(line->conn), name, columns, rows->values,
                               rows->lengths, rows->formats, 0);
}

static bool send_begin(struct line *line)
{
    return send_text(line, "BEGIN ISOLATION LEVEL READ COMMITTED");
}

static bool send_head(struct line *line, const struct sink_batch *batch)
{
    const struct record *last = batch->records[batch->count - 1];
    char seq[NUMBER_BYTES], expected[NUMBER_BYTES];
    const char *const values[] = {batch->writer, seq, last->row_hash, expected, batch->head.hash};
    (void)snprintf(seq, sizeof(seq), "%" PRId64, last->seq);
    (void)snprintf(expected, sizeof(expected), "%" PRId64, batch->head.seq);
    if (batch->head.seq == 0)
        return send_prepared(line, POSTGRES_SQL_HEAD_INSERT, values, 3, 0);
    return send_prepared(line, POSTGRES_SQL_HEAD_UPDATE, values, 5, 0);
}

/* The results of an append come in this order; keys only when there are any. */
enum { APPEND_BEGIN, APPEND_HEAD, APPEND_ROWS, APPEND_KEYS };

static bool send_append(struct line *line, const struct question *question)
{
    const struct postgres_sink *sink = line->sink;
    return send_begin(line) && send_head(line, &question->batch) &&
           send_rows(line, POSTGRES_SQL_RUN_INSERT, &sink->rows, COLUMNS_COUNT) &&
           (sink->keys.count == 0 ||
            send_rows(line, POSTGRES_SQL_KEY_INSERT, &sink->keys, POSTGRES_ROW_KEY_COLUMNS));
}

static bool send_find(struct line *line, const struct question *question)
{
    const char *const by_id[] = {question->run_id};
    const char *const by_key[] = {question->company, question->key};
    if (question->run_id)
        return send_prepared(line, POSTGRES_SQL_FIND_BY_ID, by_id, 1, 1);
    return send_prepared(line, POSTGRES_SQL_FIND_BY_KEY, by_key, 2, 1);
}

/* The results of a claim. The second statement sees what the first had to wait for. */
enum { CLAIM_BEGIN, CLAIM_INSERT, CLAIM_HOLDER, CLAIM_COMMIT };

static bool send_claim(struct line *line, const struct question *question)
{
    const char *const values[] = {question->company, question->key, question->request_sha256,
                                  question->run_id};
    return send_begin(line) && send_prepared(line, POSTGRES_SQL_CLAIM, values, 4, 0) &&
           send_prepared(line, POSTGRES_SQL_HOLDER, values, 2, 0) && send_text(line, "COMMIT");
}

static bool send_question(struct line *line, const struct question *question)
{
    const char *const writer[] = {question->writer};
    switch (question->kind) {
    case QUESTION_APPEND:
        return send_append(line, question);
    case QUESTION_HEAD:
        return send_prepared(line, POSTGRES_SQL_HEAD_SELECT, writer, 1, 0);
    case QUESTION_FIND:
        return send_find(line, question);
    case QUESTION_CLAIM:
        return send_claim(line, question);
    case QUESTION_PROBE:
        return send_prepared(line, POSTGRES_SQL_PROBE, NULL, 0, 0);
    }
    return false;
}

/* ---- the line ------------------------------------------------------------------------------- */

static void finish_active(struct line *line)
{
    struct operation *operation = AR_TAKE(line->active);
    operation_finish(operation);
    event_active(line->kick, 0, 0);
}

/* Fills the arrays: 0, 1 when a record cannot be sent (the answer says so), -ENOMEM. */
static int fill_rows(struct postgres_sink *sink, struct operation *operation)
{
    const struct sink_batch *batch = &operation->question->batch;
    size_t *bad = &operation->answer.bad;
    int rc = postgres_row_fill(&sink->rows, batch->records, batch->count, bad);
    if (rc == 0)
        rc = postgres_row_fill_keys(&sink->keys, batch->records, batch->count, bad);
    if (rc == 1)
        operation->answer.outcome = SINK_REFUSED;
    return rc;
}

static void begin_phase(struct line *line, enum phase phase)
{
    line->phase = phase;
    line->results = 0;
    postgres_conn_forget_warnings(line->conn);
}

static void start(struct line *line, struct operation *operation)
{
    TAILQ_REMOVE(&line->waiting, operation, link);
    line->active = operation;
    line->failed = false;
    line->suspect = false;
    line->in_transaction = false;
    if (operation->kind == QUESTION_APPEND && fill_rows(line->sink, operation) != 0) {
        finish_active(line);
        return;
    }
    begin_phase(line, PHASE_ASKED);
    if (send_question(line, operation->question))
        postgres_conn_sync(line->conn);
    else
        postgres_conn_fail(line->conn);
}

static void look(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct line *line = context;
    struct operation *first = TAILQ_FIRST(&line->waiting);
    if (line->active || !first)
        return;
    if (postgres_conn_is_ready(line->conn))
        start(line, first);
    else if (first->kind == QUESTION_PROBE)
        postgres_conn_hurry(line->conn);
    else
        postgres_conn_open(line->conn);
}

static void ready(void *context)
{
    look(-1, 0, context);
}

/* What was under way has the answer that it had when the connection went. Probes that wait have
 * theirs with that; the others may still be served by the next connection. */
static void lost(void *context)
{
    struct line *line = context;
    struct operation *operation = TAILQ_FIRST(&line->waiting);
    while (operation) {
        struct operation *next = TAILQ_NEXT(operation, link);
        if (operation->kind == QUESTION_PROBE) {
            TAILQ_REMOVE(&line->waiting, operation, link);
            operation_finish(operation);
        }
        operation = next;
    }
    if (line->active)
        finish_active(line);
}

static void expired(void *context, struct operation *operation)
{
    (void)context;
    struct line *line = operation->place;
    if (operation == line->active) {
        postgres_conn_drop(line->conn);
        finish_active(line);
    } else {
        TAILQ_REMOVE(&line->waiting, operation, link);
        operation_finish(operation);
    }
}

/* ---- results of an append ------------------------------------------------------------------- */

static bool is_class(const char *state, const char *class)
{
    return strncmp(state, class, strlen(class)) == 0;
}

/* The server's detail of a refused row names its run_id: which of the batch is it? */
static size_t find_bad(const struct sink_batch *batch, const PGresult *result)
{
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    for (size_t i = 0; detail && i < batch->count; i++)
        if (strstr(detail, batch->records[i]->run_id))
            return i;
    return batch->count;
}

/* (writer, seq) is there already although the head says that it is not. */
static bool is_chain_conflict(const PGresult *result)
{
    const char *constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
    return constraint && (strcmp(constraint, "runs_writer_seq_key") == 0 ||
                          strcmp(constraint, "writers_pkey") == 0);
}

static void judge_error(struct line *line, const PGresult *result)
{
    struct answer *answer = &line->active->answer;
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    answer->outcome = SINK_NOT_STORED;
    if (state && is_class(state, "23") && is_chain_conflict(result)) {
        answer->outcome = SINK_CONFLICT;
    } else if (state && (is_class(state, "22") || is_class(state, "23"))) {
        answer->outcome = SINK_REFUSED;
        answer->bad = find_bad(&line->active->question->batch, result);
    } else if (!state || !is_class(state, "40")) {
        /* Not a row and not a deadlock: a server that was shut down, demoted, is full. */
        line->suspect = true;
    }
}

static bool changed_rows(const PGresult *result, size_t count)
{
    /* libpq takes a result that it may not change, and gives a text that it owns. */
    const char *changed = PQcmdTuples((PGresult *)result);
    return strtoull(changed, NULL, 10) == count;
}

static void take_append(struct line *line, const PGresult *result, size_t index)
{
    struct operation *operation = line->active;
    if (index == APPEND_HEAD && !changed_rows(result, 1)) {
        operation->answer.outcome = SINK_CONFLICT;
        line->failed = true;
    }
    if (index == APPEND_ROWS && !changed_rows(result, operation->question->batch.count))
        line->failed = true;
}

static void take_commit(struct line *line, const PGresult *result)
{
    struct answer *answer = &line->active->answer;
    bool committed = strcmp(PQcmdStatus((PGresult *)result), "COMMIT") == 0;
    if (!committed)
        answer->outcome = SINK_NOT_STORED; /* the transaction was rolled back instead */
    else if (!postgres_conn_has_warned(line->conn))
        answer->outcome = SINK_STORED;
}

/* ---- results of the other questions --------------------------------------------------------- */

static bool copy_value(const PGresult *result, int column, char *out, size_t bytes)
{
    if (PQgetisnull(result, 0, column) || (size_t)PQgetlength(result, 0, column) != bytes - 1)
        return false;
    memcpy(out, PQgetvalue(result, 0, column), bytes);
    return true;
}

static void take_head(struct answer *answer, const PGresult *result)
{
    if (PQntuples(result) == 0) {
        answer->found = SINK_ABSENT;
    } else if (copy_value(result, 1, answer->head.hash, DIGEST_HEX_BYTES)) {
        answer->head.seq = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        answer->found = SINK_FOUND;
    }
}

static void take_find(struct answer *answer, const PGresult *result)
{
    if (PQntuples(result) == 0)
        answer->found = SINK_ABSENT;
    else if (postgres_row_read(result, 0, &answer->record) == 0)
        answer->found = SINK_FOUND;
}

/* Who has the key is kept aside until COMMIT has come. */
static void take_claim(struct line *line, const PGresult *result, size_t index)
{
    const struct question *question = line->active->question;
    struct answer *answer = &line->active->answer;
    char request[DIGEST_HEX_BYTES];
    if (index == CLAIM_HOLDER) {
        if (PQntuples(result) == 1 && copy_value(result, 1, request, sizeof(request)) &&
            copy_value(result, 0, answer->holder, sizeof(answer->holder)))
            answer->same_request = strcmp(request, question->request_sha256) == 0;
        else
            line->failed = true;
    }
    if (index == CLAIM_COMMIT && !line->failed && !postgres_conn_has_warned(line->conn) &&
        strcmp(PQcmdStatus((PGresult *)result), "COMMIT") == 0)
        answer->claim =
            strcmp(answer->holder, question->run_id) == 0 ? SINK_CLAIMED : SINK_CLAIM_TAKEN;
}

static void take_answer(struct line *line, const PGresult *result, size_t index)
{
    struct answer *answer = &line->active->answer;
    switch (line->active->kind) {
    case QUESTION_APPEND:
        take_append(line, result, index);
        return;
    case QUESTION_HEAD:
        take_head(answer, result);
        return;
    case QUESTION_FIND:
        take_find(answer, result);
        return;
    case QUESTION_CLAIM:
        take_claim(line, result, index);
        return;
    case QUESTION_PROBE:
        answer->up = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't';
        return;
    }
}

/* ---- events of the connection --------------------------------------------------------------- */

static void follow_transaction(struct line *line, const PGresult *result)
{
    const char *tag = PQcmdStatus((PGresult *)result);
    if (strcmp(tag, "BEGIN") == 0)
        line->in_transaction = true;
    else if (strcmp(tag, "COMMIT") == 0 || strcmp(tag, "ROLLBACK") == 0)
        line->in_transaction = false;
}

/* Only an ERROR of the server says that COMMIT was not carried out; the end of the session, or what
 * libpq itself finds (neither has this severity), leaves it unknown. */
static bool leaves_unknown(const struct line *line, const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    return line->phase == PHASE_COMMITTING && (!severity || strcmp(severity, "ERROR") != 0);
}

static void take_failure(struct line *line, const PGresult *result)
{
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED)
        return; /* follows on a failure that has been taken */
    line->failed = true;
    if (line->phase == PHASE_CLEANING || line->active->kind != QUESTION_APPEND ||
        leaves_unknown(line, result))
        line->suspect = true;
    else
        judge_error(line, result);
}

static void take_result(void *context, const PGresult *result)
{
    struct line *line = context;
    ExecStatusType status = PQresultStatus(result);
    if (!line->active)
        return;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        take_failure(line, result);
        return;
    }
    size_t index = line->results++;
    follow_transaction(line, result);
    if (line->phase == PHASE_COMMITTING)
        take_commit(line, result);
    else if (line->phase == PHASE_ASKED && !line->failed)
        take_answer(line, result, index);
}

static void send_last(struct line *line, const char *sql, enum phase phase)
{
    begin_phase(line, phase);
    if (send_text(line, sql))
        postgres_conn_sync(line->conn);
    else
        postgres_conn_fail(line->conn);
}

static void synced(void *context)
{
    struct line *line = context;
    struct operation *operation = line->active;
    if (!operation)
        return;
    if (line->suspect) {
        postgres_conn_fail(line->conn);
        return;
    }
    if (operation->kind == QUESTION_APPEND && line->phase == PHASE_ASKED && !line->failed) {
        operation->answer.outcome = SINK_UNKNOWN; /* from now on, until the tag comes */
        send_last(line, "COMMIT", PHASE_COMMITTING);
    } else if (line->in_transaction) {
        send_last(line, "ROLLBACK", PHASE_CLEANING);
    } else {
        finish_active(line);
    }
}

static const struct postgres_conn_events conn_events = {
    .ready = ready, .result = take_result, .synced = synced, .lost = lost};

/* ---- operations ----------------------------------------------------------------------------- */

static void give(struct sink *sink, int which, struct operation *operation)
{
    struct line *line = &((struct postgres_sink *)sink)->lines[which];
    operation->place = line;
    TAILQ_INSERT_TAIL(&line->waiting, operation, link);
    event_active(line->kick, 0, 0);
}

static struct operation_desk *desk_of(struct sink *sink)
{
    return ((struct postgres_sink *)sink)->desk;
}

static void postgres_append(struct sink *sink, const struct sink_batch *batch, int deadline_ms,
                            sink_append_fn *done, void *context)
{
    give(sink, WRITES, operation_append(desk_of(sink), batch, deadline_ms, done, context));
}

static void postgres_head(struct sink *sink, const char *writer, int deadline_ms,
                          sink_head_fn *done, void *context)
{
    give(sink, READS, operation_head(desk_of(sink), writer, deadline_ms, done, context));
}

static void postgres_find(struct sink *sink, const struct sink_key *key, int deadline_ms,
                          sink_find_fn *done, void *context)
{
    give(sink, READS, operation_find(desk_of(sink), key, deadline_ms, done, context));
}

static void postgres_claim(struct sink *sink, const char *company, const char *key,
                           const char *request_sha256, const char *run_id, int deadline_ms,
                           sink_claim_fn *done, void *context)
{
    give(sink, WRITES,
         operation_claim(desk_of(sink), company, key, request_sha256, run_id, deadline_ms, done,
                         context));
}

static void postgres_probe(struct sink *sink, int deadline_ms, sink_probe_fn *done, void *context)
{
    give(sink, WRITES, operation_probe(desk_of(sink), deadline_ms, done, context));
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void line_close(struct line *line)
{
    struct operation *operation;
    postgres_conn_free(line->conn);
    if (line->active)
        operation_finish(AR_TAKE(line->active));
    while ((operation = TAILQ_FIRST(&line->waiting))) {
        TAILQ_REMOVE(&line->waiting, operation, link);
        operation_finish(operation);
    }
    if (line->kick)
        event_free(line->kick);
}

static void postgres_close(struct sink *sink)
{
    struct postgres_sink *self = (struct postgres_sink *)sink;
    for (size_t i = 0; i < LINE_COUNT; i++)
        line_close(&self->lines[i]);
    if (self->desk)
        operation_desk_flush(self->desk);
    operation_desk_free(self->desk);
    postgres_sql_free(&self->sql);
    postgres_row_free(&self->rows);
    postgres_row_free(&self->keys);
    free(self);
}

static const struct sink_ops postgres_ops = {
    .name = "postgres",
    .append = postgres_append,
    .head = postgres_head,
    .find = postgres_find,
    .claim = postgres_claim,
    .probe = postgres_probe,
    .close = postgres_close,
};

static int line_open(struct postgres_sink *sink, int which, const char *conninfo,
                     struct event_base *base)
{
    struct line *line = &sink->lines[which];
    const struct postgres_conn_plan plan = {
        .conninfo = conninfo,
        .statements = which == WRITES ? sink->sql.writes : sink->sql.reads,
        .statement_count = which == WRITES ? POSTGRES_SQL_WRITES : POSTGRES_SQL_READS,
        .events = &conn_events,
        .context = line,
    };
    line->sink = sink;
    line->kick = event_new(base, -1, 0, look, line);
    return line->kick ? postgres_conn_new(base, &plan, &line->conn) : -ENOMEM;
}

int postgres_open(const char *conninfo, struct event_base *base, struct sink **out)
{
    struct postgres_sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return -ENOMEM;
    sink->sink.ops = &postgres_ops;
    for (size_t i = 0; i < LINE_COUNT; i++)
        TAILQ_INIT(&sink->lines[i].waiting);
    int rc = operation_desk_new(base, expired, sink, &sink->desk);
    if (rc == 0)
        rc = postgres_sql_make(&sink->sql);
    for (int i = 0; i < LINE_COUNT && rc == 0; i++)
        rc = line_open(sink, i, conninfo, base);
    if (rc < 0) {
        postgres_close(&sink->sink);
        return rc;
    }
    *out = &sink->sink;
    return 0;
}
