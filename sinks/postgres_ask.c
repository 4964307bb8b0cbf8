/*
 * postgres_ask.c - see postgres_ask.h.
 */
#include "sinks/postgres_ask.h"

#include "protocol/text.h"
#include "sinks/postgres_sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_BYTES 24
#define ANY_NUMBER   SIZE_MAX

static struct operation *first_of(const struct postgres_ask *ask)
{
    return TAILQ_FIRST(ask->operations);
}

void postgres_ask_free(struct postgres_ask *ask)
{
    postgres_row_free(&ask->records);
    postgres_row_free(&ask->events);
    postgres_row_free(&ask->keys);
}

bool postgres_ask_joins(const struct operation_list *operations, size_t count,
                        const struct operation *next)
{
    const struct operation *first = TAILQ_FIRST(operations);
    return !first || (first->kind == QUESTION_CLAIM && next->kind == QUESTION_CLAIM &&
                      count < POSTGRES_ASK_MAX_CLAIMS);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int fill_records(struct postgres_ask *ask, const struct sink_batch *batch, size_t *bad)
{
    int rc = postgres_row_begin(&ask->records, &record_layout, &ask->types);
    if (rc == 0)
        rc = postgres_row_begin(&ask->keys, &postgres_row_keys, &ask->types);
    for (size_t i = 0; i < batch->record_count && rc == 0; i++) {
        rc = postgres_row_add(&ask->records, batch->records[i]);
        if (rc == 0 && batch->records[i]->idempotency_key)
            rc = postgres_row_add(&ask->keys, batch->records[i]);
        if (rc == 1)
            *bad = i;
    }
    if (rc == 0)
        rc = postgres_row_end(&ask->records);
    return rc == 0 ? postgres_row_end(&ask->keys) : rc;
}

static int fill_events(struct postgres_ask *ask, const struct sink_batch *batch, size_t *bad)
{
    int rc = postgres_row_begin(&ask->events, &chain_event_layout, &ask->types);
    for (size_t i = 0; i < batch->event_count && rc == 0; i++) {
        rc = postgres_row_add(&ask->events, batch->events[i]);
        if (rc == 1)
            *bad = batch->record_count + i;
    }
    return rc == 0 ? postgres_row_end(&ask->events) : rc;
}

static int fill_batch(struct postgres_ask *ask, struct operation *operation)
{
    const struct sink_batch *batch = &operation->question->batch;
    int rc = fill_records(ask, batch, &operation->answer.bad);
    if (rc == 0)
        rc = fill_events(ask, batch, &operation->answer.bad);
    if (rc == 1)
        operation->answer.outcome = SINK_REFUSED;
    return rc;
}

static bool copy_exactly(char *out, const char *text, size_t bytes)
{
    if (strlen(text) != bytes - 1)
        return false;
    memcpy(out, text, bytes);
    return true;
}

static int fill_claims(struct postgres_ask *ask)
{
    const struct operation *operation;
    int rc = postgres_row_begin(&ask->keys, &postgres_row_keys, &ask->types);
    TAILQ_FOREACH(operation, ask->operations, link) {
        const struct question *question = operation->question;
        struct record row = {.company = question->company, .idempotency_key = question->key};
        if (!copy_exactly(row.request_sha256, question->request_sha256, DIGEST_HEX_BYTES) ||
            !copy_exactly(row.run_id, question->run_id, UUID7_TEXT_BYTES))
            return 1;
        if (rc == 0)
            rc = postgres_row_add(&ask->keys, &row);
    }
    return rc == 0 ? postgres_row_end(&ask->keys) : rc;
}

int postgres_ask_begin(struct postgres_ask *ask, struct operation_list *operations)
{
    struct operation *first = TAILQ_FIRST(operations);
    ask->operations = operations;
    ask->results = ask->statements = 0;
    ask->problem = POSTGRES_FINE;
    ask->failed = false;
    if (first->kind == QUESTION_APPEND)
        return fill_batch(ask, first);
    return first->kind == QUESTION_CLAIM ? fill_claims(ask) : 0;
}

/* ---- sending -------------------------------------------------------------------------------- */

static void expect(struct postgres_ask *ask, size_t rows)
{
    ask->expected[ask->statements++] = rows;
}

static bool send_text(struct postgres_ask *ask, PGconn *pg, const char *sql)
{
    expect(ask, ANY_NUMBER);
    return PQsendQueryParams(pg, sql, 0, NULL, NULL, NULL, NULL, 0);
}

static bool send_values(struct postgres_ask *ask, PGconn *pg, const char *name,
                        const char *const *values, int count, size_t expected)
{
    expect(ask, expected);
    return PQsendQueryPrepared(pg, name, count, values, NULL, NULL, 0);
}

static bool send_rows(struct postgres_ask *ask, PGconn *pg, const char *name,
                      const struct postgres_rows *rows, size_t expected)
{
    const char *const values[] = {rows->data};
    const int lengths[] = {(int)rows->length}, formats[] = {1};
    if (rows->count == 0)
        return true;
    expect(ask, expected);
    return PQsendQueryPrepared(pg, name, 1, values, lengths, formats, 0);
}

static bool send_begin(struct postgres_ask *ask, PGconn *pg)
{
    return send_text(ask, pg, "BEGIN ISOLATION LEVEL READ COMMITTED");
}

/* An empty batch at the head of an empty chain: that there is no head shows in that one could be made,
 * which waits for a transaction that is making one. It is rolled back. */
static bool is_of_nothing(const struct sink_batch *batch)
{
    return batch->head.seq == 0 && sink_batch_rows(batch) == 0;
}

/* The compare and set; it comes first, and must change one row. */
enum { HEAD_RESULT = 1 };

static bool send_head(struct postgres_ask *ask, PGconn *pg, const struct sink_batch *batch)
{
    struct sink_head next = sink_batch_head(batch);
    char seq[NUMBER_BYTES], expected[NUMBER_BYTES];
    const char *const values[] = {batch->writer, seq, next.hash, expected, batch->head.hash};
    (void)snprintf(seq, sizeof(seq), "%" PRId64, is_of_nothing(batch) ? 1 : next.seq);
    (void)snprintf(expected, sizeof(expected), "%" PRId64, batch->head.seq);
    if (batch->head.seq == 0)
        return send_values(ask, pg, POSTGRES_SQL_HEAD_INSERT, values, 3, 1);
    return send_values(ask, pg, POSTGRES_SQL_HEAD_UPDATE, values, 5, 1);
}

static bool send_append(struct postgres_ask *ask, PGconn *pg, const struct sink_batch *batch)
{
    return send_begin(ask, pg) && send_head(ask, pg, batch) &&
           send_rows(ask, pg, POSTGRES_SQL_RUN_INSERT, &ask->records, batch->record_count) &&
           send_rows(ask, pg, POSTGRES_SQL_EVENT_INSERT, &ask->events, batch->event_count) &&
           send_rows(ask, pg, POSTGRES_SQL_KEY_INSERT, &ask->keys, ANY_NUMBER);
}

static bool send_find(struct postgres_ask *ask, PGconn *pg, const struct question *question)
{
    const char *const by_id[] = {question->run_id};
    const char *const by_key[] = {question->company, question->key};
    const char *const event[] = {question->event_id};
    expect(ask, ANY_NUMBER);
    if (question->event_id)
        return PQsendQueryPrepared(pg, POSTGRES_SQL_FIND_EVENT, 1, event, NULL, NULL, 1);
    if (question->run_id)
        return PQsendQueryPrepared(pg, POSTGRES_SQL_FIND_BY_ID, 1, by_id, NULL, NULL, 1);
    return PQsendQueryPrepared(pg, POSTGRES_SQL_FIND_BY_KEY, 2, by_key, NULL, NULL, 1);
}

/* The results of claims, with the place of each in the transaction. The second statement sees what the
 * first had to wait for. */
enum { CLAIM_HOLDERS = 2, CLAIM_COMMIT = 3 };

static bool send_claims(struct postgres_ask *ask, PGconn *pg)
{
    return send_begin(ask, pg) &&
           send_rows(ask, pg, POSTGRES_SQL_KEY_INSERT, &ask->keys, ANY_NUMBER) &&
           send_rows(ask, pg, POSTGRES_SQL_HOLDERS, &ask->keys, ask->keys.count) &&
           send_text(ask, pg, "COMMIT");
}

/* A key, a checkpoint: each as text; the bytes are in hex. */
static bool send_checkpoint(struct postgres_ask *ask, PGconn *pg,
                            const struct checkpoint *checkpoint)
{
    char seq[NUMBER_BYTES], made_at[ROW_TIME_BYTES];
    char public_key[2 * CHECKPOINT_KEY_BYTES + 1], signature[2 * CHECKPOINT_SIGNATURE_BYTES + 1];
    const char *const key[] = {checkpoint->key_id, public_key};
    const char *const values[] = {checkpoint->writer, seq,      checkpoint->row_hash, made_at,
                                  checkpoint->key_id, signature};
    (void)snprintf(seq, sizeof(seq), "%" PRId64, checkpoint->seq);
    row_time_text(checkpoint->made_at, made_at);
    text_to_hex(checkpoint->public_key, sizeof(checkpoint->public_key), public_key);
    text_to_hex(checkpoint->signature, sizeof(checkpoint->signature), signature);
    return send_begin(ask, pg) &&
           send_values(ask, pg, POSTGRES_SQL_CHECKPOINT_KEY, key, 2, ANY_NUMBER) &&
           send_values(ask, pg, POSTGRES_SQL_CHECKPOINT, values, 6, ANY_NUMBER) &&
           send_text(ask, pg, "COMMIT");
}

bool postgres_ask_send(struct postgres_ask *ask, PGconn *pg)
{
    const struct question *question = first_of(ask)->question;
    const char *const writer[] = {question->writer};
    switch (question->kind) {
    case QUESTION_APPEND:
        return send_append(ask, pg, &question->batch);
    case QUESTION_HEAD:
        return send_values(ask, pg, POSTGRES_SQL_HEAD_SELECT, writer, 1, ANY_NUMBER);
    case QUESTION_FIND:
        return send_find(ask, pg, question);
    case QUESTION_CLAIM:
        return send_claims(ask, pg);
    case QUESTION_PROBE:
        return send_values(ask, pg, POSTGRES_SQL_PROBE, NULL, 0, 1);
    case QUESTION_CHECKPOINT:
        return send_checkpoint(ask, pg, &question->checkpoint);
    case QUESTION_MAINTAIN:
        return send_values(ask, pg, POSTGRES_SQL_MAINTAIN, NULL, 0, 1);
    }
    return false;
}

/* ---- results -------------------------------------------------------------------------------- */

/* So many rows were changed, or read. */
static bool changed(const PGresult *result, size_t count)
{
    /* libpq takes a result that it may not change, and gives a text that it owns. */
    const char *number = PQcmdTuples((PGresult *)(uintptr_t)result);
    return strtoull(number, NULL, 10) == count;
}

static bool is_tag(const PGresult *result, const char *tag)
{
    return strcmp(PQcmdStatus((PGresult *)(uintptr_t)result), tag) == 0;
}

static bool copy_value(const PGresult *result, int row, int column, char *out, size_t bytes)
{
    return !PQgetisnull(result, row, column) &&
           copy_exactly(out, PQgetvalue(result, row, column), bytes);
}

static void take_head(struct answer *answer, const PGresult *result)
{
    if (PQntuples(result) == 0) {
        answer->found = SINK_ABSENT;
    } else if (copy_value(result, 0, 1, answer->head.hash, DIGEST_HEX_BYTES)) {
        answer->head.seq = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        answer->found = SINK_FOUND;
    }
}

static void take_find(const struct question *question, struct answer *answer,
                      const PGresult *result)
{
    if (PQntuples(result) == 0)
        answer->found = SINK_ABSENT;
    else if (question->event_id || postgres_row_read_record(result, 0, &answer->record) == 0)
        answer->found = SINK_FOUND;
}

/* Who has a key is kept aside until COMMIT has come. */
static void take_holders(struct postgres_ask *ask, const PGresult *result)
{
    struct operation *operation;
    int row = 0;
    TAILQ_FOREACH(operation, ask->operations, link) {
        struct answer *answer = &operation->answer;
        char request[DIGEST_HEX_BYTES];
        if (!copy_value(result, row, 0, answer->holder, sizeof(answer->holder)) ||
            !copy_value(result, row, 1, request, sizeof(request)))
            ask->failed = true;
        else
            answer->same_request = strcmp(request, operation->question->request_sha256) == 0;
        row++;
    }
}

static void take_claims(struct postgres_ask *ask, const PGresult *result, size_t index, bool warned)
{
    struct operation *operation;
    if (index == CLAIM_HOLDERS && !ask->failed)
        take_holders(ask, result);
    if (index != CLAIM_COMMIT || ask->failed || warned || !is_tag(result, "COMMIT"))
        return;
    TAILQ_FOREACH(operation, ask->operations, link) {
        struct answer *answer = &operation->answer;
        bool ours = strcmp(answer->holder, operation->question->run_id) == 0;
        answer->claim = ours ? SINK_CLAIMED : SINK_CLAIM_TAKEN;
    }
}

static void take_probe(struct postgres_ask *ask, const PGresult *result)
{
    static const struct {
        const char *word;
        enum postgres_problem problem;
    } words[] = {{"up", POSTGRES_FINE},
                 {"read_only", POSTGRES_READ_ONLY},
                 {"schema", POSTGRES_SCHEMA},
                 {"privilege", POSTGRES_PRIVILEGE}};
    ask->problem = POSTGRES_REFUSED;
    for (size_t i = 0; i < AR_COUNT(words) && !ask->failed; i++)
        if (strcmp(PQgetvalue(result, 0, 0), words[i].word) == 0)
            ask->problem = words[i].problem;
    first_of(ask)->answer.up = ask->problem == POSTGRES_FINE;
}

static void take_append(struct postgres_ask *ask, size_t index)
{
    struct operation *operation = first_of(ask);
    if (index == HEAD_RESULT && ask->failed)
        operation->answer.outcome = SINK_CONFLICT;
}

void postgres_ask_take(struct postgres_ask *ask, const PGresult *result, bool warned)
{
    struct operation *operation = first_of(ask);
    struct answer *answer = &operation->answer;
    size_t index = ask->results++;
    if (ask->failed || index >= ask->statements)
        return;
    if (ask->expected[index] != ANY_NUMBER && !changed(result, ask->expected[index]))
        ask->failed = true;
    switch (operation->kind) {
    case QUESTION_APPEND:
        take_append(ask, index);
        return;
    case QUESTION_HEAD:
        take_head(answer, result);
        return;
    case QUESTION_FIND:
        take_find(operation->question, answer, result);
        return;
    case QUESTION_CLAIM:
        take_claims(ask, result, index, warned);
        return;
    case QUESTION_PROBE:
        take_probe(ask, result);
        return;
    case QUESTION_CHECKPOINT:
        answer->done = index + 1 == ask->statements && !warned && is_tag(result, "COMMIT");
        return;
    case QUESTION_MAINTAIN:
        answer->done = !ask->failed;
        return;
    }
}

bool postgres_ask_is_good(const struct postgres_ask *ask)
{
    return !ask->failed && ask->results == ask->statements;
}

const char *postgres_ask_end(const struct postgres_ask *ask)
{
    const struct operation *operation = first_of(ask);
    if (operation->kind != QUESTION_APPEND)
        return NULL;
    return is_of_nothing(&operation->question->batch) ? "ROLLBACK" : "COMMIT";
}

/* ---- errors of an append -------------------------------------------------------------------- */

static bool is_class(const char *state, const char *class)
{
    return strncmp(state, class, strlen(class)) == 0;
}

/* The server's detail of a refused row names its id, where it may: which of the batch is it? */
static size_t find_bad(const struct sink_batch *batch, const PGresult *result)
{
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    for (size_t i = 0; detail && i < batch->record_count; i++)
        if (strstr(detail, batch->records[i]->run_id))
            return i;
    for (size_t i = 0; detail && i < batch->event_count; i++)
        if (strstr(detail, batch->events[i]->event_id))
            return batch->record_count + i;
    return sink_batch_rows(batch);
}

/* (writer, seq) is there already although the head says that it is not. */
static bool is_chain_conflict(const PGresult *result)
{
    const char *constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
    return constraint && (strcmp(constraint, "events_writer_seq_key") == 0 ||
                          strcmp(constraint, "writers_pkey") == 0);
}

bool postgres_ask_take_error(struct postgres_ask *ask, const PGresult *result)
{
    struct operation *operation = first_of(ask);
    struct answer *answer = &operation->answer;
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    ask->failed = true;
    if (operation->kind == QUESTION_MAINTAIN)
        return state && (is_class(state, "40") || is_class(state, "55"));
    if (operation->kind != QUESTION_APPEND)
        return false;
    /* The head is not what the batch follows on: its rows may well be there already. */
    if (answer->outcome == SINK_CONFLICT)
        return state && (is_class(state, "22") || is_class(state, "23") || is_class(state, "40"));
    answer->outcome = SINK_NOT_STORED;
    if (state && is_class(state, "23") && is_chain_conflict(result)) {
        answer->outcome = SINK_CONFLICT;
        return true;
    }
    if (state && (is_class(state, "22") || is_class(state, "23"))) {
        answer->outcome = SINK_REFUSED;
        answer->bad = find_bad(&operation->question->batch, result);
        return true;
    }
    /* Neither a row nor a deadlock: a server that was shut down, demoted, is full. */
    return state && is_class(state, "40");
}
