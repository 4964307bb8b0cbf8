/*
 * memory.c - see memory.h. Heads are what the rows say: the head of a writer is its last row, so
 * that rows and head cannot differ.
 */
#include "sinks/memory.h"

#include "sinks/columns.h"
#include "sinks/operation.h"

#include <string.h>

struct claim {
    char *company, *key;
    char request_sha256[DIGEST_HEX_BYTES];
    char run_id[UUID7_TEXT_BYTES];
};

struct memory_sink {
    struct sink sink;
    struct operation_desk *desk;
    struct operation_list stalled;
    struct record **records;
    size_t count;
    struct claim *claims;
    size_t claim_count;
    enum memory_fault fault;
    int fault_times;
    char *refused_company;
    size_t appends;
};

static struct memory_sink *self(struct sink *sink)
{
    return (struct memory_sink *)sink;
}

/* ---- what is stored ------------------------------------------------------------------------- */

static const struct record *head_of(const struct memory_sink *sink, const char *writer)
{
    for (size_t i = sink->count; i-- > 0;)
        if (strcmp(sink->records[i]->writer, writer) == 0)
            return sink->records[i];
    return NULL;
}

static const struct record *find_row(const struct memory_sink *sink, const char *run_id)
{
    for (size_t i = 0; i < sink->count; i++)
        if (strcmp(sink->records[i]->run_id, run_id) == 0)
            return sink->records[i];
    return NULL;
}

static const struct claim *find_claim(const struct memory_sink *sink, const char *company,
                                      const char *key)
{
    for (size_t i = 0; i < sink->claim_count; i++)
        if (strcmp(sink->claims[i].company, company) == 0 && strcmp(sink->claims[i].key, key) == 0)
            return &sink->claims[i];
    return NULL;
}

static struct record *copy_record(const struct record *record)
{
    AR_CLEANUP(record_cleanup) struct record *copy = record_new();
    for (size_t i = 0; copy && i < record_column_count; i++) {
        AR_AUTO_FREE char *text = NULL;
        if (record_get(record, i, &text) < 0 || record_set(copy, i, text) != 0)
            return NULL;
    }
    return AR_TAKE(copy);
}

static bool add_claim(struct memory_sink *sink, const char *company, const char *key,
                      const char *request_sha256, const char *run_id)
{
    struct claim *claims = realloc(sink->claims, (sink->claim_count + 1) * sizeof(*claims));
    if (!claims)
        return false;
    sink->claims = claims;
    struct claim *claim = &claims[sink->claim_count];
    *claim = (struct claim){.company = strdup(company), .key = strdup(key)};
    if (!claim->company || !claim->key) {
        free(claim->company);
        free(claim->key);
        return false;
    }
    (void)stpncpy(claim->request_sha256, request_sha256, sizeof(claim->request_sha256) - 1);
    (void)stpncpy(claim->run_id, run_id, sizeof(claim->run_id) - 1);
    sink->claim_count++;
    return true;
}

static bool add_record(struct memory_sink *sink, const struct record *record)
{
    struct record **records = realloc(sink->records, (sink->count + 1) * sizeof(*records));
    if (!records)
        return false;
    sink->records = records;
    records[sink->count] = copy_record(record);
    if (!records[sink->count])
        return false;
    sink->count++;
    return !record->idempotency_key ||
           find_claim(sink, record->company, record->idempotency_key) != NULL ||
           add_claim(sink, record->company, record->idempotency_key, record->request_sha256,
                     record->run_id);
}

void memory_forget(struct sink *sink, size_t rows)
{
    for (; rows > 0 && self(sink)->count > 0; rows--)
        record_free(self(sink)->records[--self(sink)->count]);
}

/* ---- questions ------------------------------------------------------------------------------ */

static bool is_refused(const struct memory_sink *sink, const struct record *record)
{
    return find_row(sink, record->run_id) != NULL ||
           (sink->refused_company && strcmp(sink->refused_company, record->company) == 0);
}

static enum sink_outcome store(struct memory_sink *sink, const struct sink_batch *batch,
                               size_t *bad)
{
    const struct record *last = head_of(sink, batch->writer);
    size_t before = sink->count;
    if ((last ? last->seq : 0) != batch->head.seq ||
        strcmp(last ? last->row_hash : digest_zero, batch->head.hash) != 0)
        return SINK_CONFLICT;
    for (*bad = 0; *bad < batch->count; ++*bad)
        if (is_refused(sink, batch->records[*bad]))
            return SINK_REFUSED;
    for (size_t i = 0; i < batch->count; i++)
        if (!add_record(sink, batch->records[i])) {
            memory_forget(&sink->sink, sink->count - before);
            return SINK_NOT_STORED;
        }
    return SINK_STORED;
}

static void answer_head(const struct memory_sink *sink, const struct question *question,
                        struct answer *answer)
{
    const struct record *last = head_of(sink, question->writer);
    answer->found = last ? SINK_FOUND : SINK_ABSENT;
    if (last) {
        answer->head.seq = last->seq;
        memcpy(answer->head.hash, last->row_hash, sizeof(answer->head.hash));
    }
}

static void answer_find(const struct memory_sink *sink, const struct question *question,
                        struct answer *answer)
{
    const char *run_id = question->run_id;
    if (!run_id) {
        const struct claim *claim = find_claim(sink, question->company, question->key);
        run_id = claim ? claim->run_id : "";
    }
    const struct record *record = find_row(sink, run_id);
    answer->found = record ? SINK_FOUND : SINK_ABSENT;
    if (record)
        answer->record = copy_record(record);
    if (record && !answer->record)
        answer->found = SINK_FAILED;
}

static void answer_claim(struct memory_sink *sink, const struct question *question,
                         struct answer *answer)
{
    const struct claim *claim = find_claim(sink, question->company, question->key);
    if (!claim && add_claim(sink, question->company, question->key, question->request_sha256,
                            question->run_id))
        claim = &sink->claims[sink->claim_count - 1];
    if (!claim)
        return;
    memcpy(answer->holder, claim->run_id, sizeof(answer->holder));
    answer->same_request = strcmp(claim->request_sha256, question->request_sha256) == 0;
    answer->claim = strcmp(claim->run_id, question->run_id) == 0 ? SINK_CLAIMED : SINK_CLAIM_TAKEN;
}

static void ask(struct memory_sink *sink, const struct question *question, struct answer *answer)
{
    switch (question->kind) {
    case QUESTION_APPEND:
        answer->outcome = store(sink, &question->batch, &answer->bad);
        return;
    case QUESTION_HEAD:
        answer_head(sink, question, answer);
        return;
    case QUESTION_FIND:
        answer_find(sink, question, answer);
        return;
    case QUESTION_CLAIM:
        answer_claim(sink, question, answer);
        return;
    case QUESTION_PROBE:
        answer->up = true;
        return;
    }
}

/* ---- operations ----------------------------------------------------------------------------- */

static enum memory_fault next_fault(struct memory_sink *sink)
{
    enum memory_fault fault = sink->fault_times == 0 ? MEMORY_WORKS : sink->fault;
    if (sink->fault_times > 0)
        sink->fault_times--;
    return fault;
}

static void give(struct sink *sink, struct operation *operation)
{
    enum memory_fault fault = next_fault(self(sink));
    operation->place = sink;
    if (operation->kind == QUESTION_APPEND)
        self(sink)->appends++;
    if (fault == MEMORY_STALLS) {
        TAILQ_INSERT_TAIL(&self(sink)->stalled, operation, link);
        return;
    }
    bool append = operation->kind == QUESTION_APPEND;
    if (fault != MEMORY_FAILS && !(append && fault == MEMORY_LOSES_BATCH))
        ask(self(sink), operation->question, &operation->answer);
    if (append && (fault == MEMORY_LOSES_ANSWER || fault == MEMORY_LOSES_BATCH))
        operation->answer.outcome = SINK_UNKNOWN;
    operation_finish(operation);
}

static void expired(void *context, struct operation *operation)
{
    struct memory_sink *sink = context;
    TAILQ_REMOVE(&sink->stalled, operation, link);
    operation_finish(operation);
}

void memory_resume(struct sink *sink)
{
    struct operation *operation;
    self(sink)->fault_times = 0;
    while ((operation = TAILQ_FIRST(&self(sink)->stalled))) {
        TAILQ_REMOVE(&self(sink)->stalled, operation, link);
        ask(self(sink), operation->question, &operation->answer);
        operation_finish(operation);
    }
}

static void memory_append(struct sink *sink, const struct sink_batch *batch, int deadline_ms,
                          sink_append_fn *done, void *context)
{
    give(sink, operation_append(self(sink)->desk, batch, deadline_ms, done, context));
}

static void memory_head(struct sink *sink, const char *writer, int deadline_ms, sink_head_fn *done,
                        void *context)
{
    give(sink, operation_head(self(sink)->desk, writer, deadline_ms, done, context));
}

static void memory_find(struct sink *sink, const struct sink_key *key, int deadline_ms,
                        sink_find_fn *done, void *context)
{
    give(sink, operation_find(self(sink)->desk, key, deadline_ms, done, context));
}

static void memory_claim(struct sink *sink, const char *company, const char *key,
                         const char *request_sha256, const char *run_id, int deadline_ms,
                         sink_claim_fn *done, void *context)
{
    give(sink, operation_claim(self(sink)->desk, company, key, request_sha256, run_id, deadline_ms,
                               done, context));
}

static void memory_probe(struct sink *sink, int deadline_ms, sink_probe_fn *done, void *context)
{
    give(sink, operation_probe(self(sink)->desk, deadline_ms, done, context));
}

/* ---- cues and looks ------------------------------------------------------------------------- */

void memory_set_fault(struct sink *sink, enum memory_fault fault, int times)
{
    self(sink)->fault = fault;
    self(sink)->fault_times = times;
}

int memory_refuse_company(struct sink *sink, const char *company)
{
    char *copy = company ? strdup(company) : NULL;
    if (company && !copy)
        return -ENOMEM;
    free(self(sink)->refused_company);
    self(sink)->refused_company = copy;
    return 0;
}

size_t memory_count(const struct sink *sink)
{
    return ((const struct memory_sink *)sink)->count;
}

const struct record *memory_record(const struct sink *sink, size_t index)
{
    return ((const struct memory_sink *)sink)->records[index];
}

size_t memory_appends(const struct sink *sink)
{
    return ((const struct memory_sink *)sink)->appends;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void memory_close(struct sink *sink)
{
    struct memory_sink *memory = self(sink);
    struct operation *operation;
    while ((operation = TAILQ_FIRST(&memory->stalled))) {
        TAILQ_REMOVE(&memory->stalled, operation, link);
        operation_finish(operation);
    }
    operation_desk_flush(memory->desk);
    operation_desk_free(memory->desk);
    memory_forget(sink, memory->count);
    for (size_t i = 0; i < memory->claim_count; i++) {
        free(memory->claims[i].company);
        free(memory->claims[i].key);
    }
    free((void *)memory->records);
    free(memory->claims);
    free(memory->refused_company);
    free(memory);
}

static const struct sink_ops memory_ops = {
    .name = "memory",
    .append = memory_append,
    .head = memory_head,
    .find = memory_find,
    .claim = memory_claim,
    .probe = memory_probe,
    .close = memory_close,
};

int memory_open(struct event_base *base, struct sink **out)
{
    struct memory_sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return -ENOMEM;
    sink->sink.ops = &memory_ops;
    TAILQ_INIT(&sink->stalled);
    int rc = operation_desk_new(base, expired, sink, &sink->desk);
    if (rc < 0) {
        free(sink);
        return rc;
    }
    *out = &sink->sink;
    return 0;
}
