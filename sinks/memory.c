/*
 * memory.c - see memory.h. Heads are what the rows say: the head of a writer is its last row, so
 * that rows and head cannot differ.
 */
#include "sinks/memory.h"

#include "sinks/operation.h"

#include <string.h>

/* A row: one of the two. */
struct stored {
    struct record *record;
    struct chain_event *event;
};

struct claim {
    char *company, *key;
    char request_sha256[DIGEST_HEX_BYTES];
    char run_id[UUID7_TEXT_BYTES];
};

struct memory_sink {
    struct sink sink;
    struct operation_desk *desk;
    struct operation_list stalled;
    struct question *delayed; /* or NULL */
    struct stored *rows;      /* in the order of their coming */
    size_t count;
    struct checkpoint *checkpoints;
    size_t checkpoint_count;
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

static const char *writer_of(const struct stored *row)
{
    return row->record ? row->record->writer : row->event->writer;
}

static struct sink_head head_of(const struct memory_sink *sink, const char *writer)
{
    struct sink_head head = {0};
    memcpy(head.hash, digest_zero, sizeof(head.hash));
    for (size_t i = sink->count; i-- > 0;) {
        const struct stored *row = &sink->rows[i];
        if (strcmp(writer_of(row), writer) != 0)
            continue;
        int64_t seq = row->record ? row->record->seq : row->event->seq;
        if (seq <= head.seq)
            continue; /* in a batch records come first, whatever their places */
        head.seq = seq;
        memcpy(head.hash, row->record ? row->record->row_hash : row->event->row_hash,
               sizeof(head.hash));
    }
    return head;
}

static const struct record *find_row(const struct memory_sink *sink, const char *run_id)
{
    for (size_t i = 0; i < sink->count; i++)
        if (sink->rows[i].record && strcmp(sink->rows[i].record->run_id, run_id) == 0)
            return sink->rows[i].record;
    return NULL;
}

static bool find_event(const struct memory_sink *sink, const char *event_id)
{
    for (size_t i = 0; i < sink->count; i++)
        if (sink->rows[i].event && strcmp(sink->rows[i].event->event_id, event_id) == 0)
            return true;
    return false;
}

static const struct claim *find_claim(const struct memory_sink *sink, const char *company,
                                      const char *key)
{
    for (size_t i = 0; i < sink->claim_count; i++)
        if (strcmp(sink->claims[i].company, company) == 0 && strcmp(sink->claims[i].key, key) == 0)
            return &sink->claims[i];
    return NULL;
}

static bool copy_columns(const struct row_layout *layout, const void *from, void *to)
{
    for (size_t i = 0; i < layout->count; i++) {
        AR_AUTO_FREE char *text = NULL;
        if (row_get(layout, from, i, &text) < 0 || row_set(layout, to, i, text) != 0)
            return false;
    }
    return true;
}

static struct record *copy_record(const struct record *record)
{
    AR_CLEANUP(record_cleanup) struct record *copy = record_new();
    return copy && copy_columns(&record_layout, record, copy) ? AR_TAKE(copy) : NULL;
}

static struct chain_event *copy_event(const struct chain_event *event)
{
    AR_CLEANUP(chain_event_cleanup)
    struct chain_event *copy = chain_event_new(event->event_id, event->kind, NULL, 0);
    return copy && copy_columns(&chain_event_layout, event, copy) ? AR_TAKE(copy) : NULL;
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

/* Takes the row over; false when there is none, or no memory. */
static bool add_row(struct memory_sink *sink, struct stored row)
{
    struct stored *rows = realloc(sink->rows, (sink->count + 1) * sizeof(*rows));
    if (rows)
        sink->rows = rows;
    if (!rows || (!row.record && !row.event)) {
        record_free(row.record);
        chain_event_free(row.event);
        return false;
    }
    rows[sink->count++] = row;
    return true;
}

static bool add_record(struct memory_sink *sink, const struct record *record)
{
    if (!add_row(sink, (struct stored){.record = copy_record(record)}))
        return false;
    return !record->idempotency_key ||
           find_claim(sink, record->company, record->idempotency_key) != NULL ||
           add_claim(sink, record->company, record->idempotency_key, record->request_sha256,
                     record->run_id);
}

void memory_forget(struct sink *sink, size_t rows)
{
    for (; rows > 0 && self(sink)->count > 0; rows--) {
        struct stored *row = &self(sink)->rows[--self(sink)->count];
        record_free(row->record);
        chain_event_free(row->event);
    }
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
    struct sink_head head = head_of(sink, batch->writer);
    size_t before = sink->count;
    bool good = true;
    if (head.seq != batch->head.seq || strcmp(head.hash, batch->head.hash) != 0)
        return SINK_CONFLICT;
    for (*bad = 0; *bad < batch->record_count; ++*bad)
        if (is_refused(sink, batch->records[*bad]))
            return SINK_REFUSED;
    *bad = sink_batch_rows(batch);
    for (size_t i = 0; i < batch->record_count && good; i++)
        good = add_record(sink, batch->records[i]);
    for (size_t i = 0; i < batch->event_count && good; i++)
        good = add_row(sink, (struct stored){.event = copy_event(batch->events[i])});
    if (!good)
        memory_forget(&sink->sink, sink->count - before);
    return good ? SINK_STORED : SINK_NOT_STORED;
}

static void answer_head(const struct memory_sink *sink, const struct question *question,
                        struct answer *answer)
{
    answer->head = head_of(sink, question->writer);
    answer->found = answer->head.seq > 0 ? SINK_FOUND : SINK_ABSENT;
}

static void answer_find(const struct memory_sink *sink, const struct question *question,
                        struct answer *answer)
{
    const char *run_id = question->run_id;
    if (question->event_id) {
        answer->found = find_event(sink, question->event_id) ? SINK_FOUND : SINK_ABSENT;
        return;
    }
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

static void answer_checkpoint(struct memory_sink *sink, const struct checkpoint *checkpoint,
                              struct answer *answer)
{
    size_t bytes = (sink->checkpoint_count + 1) * sizeof(*checkpoint);
    struct checkpoint *checkpoints = realloc(sink->checkpoints, bytes);
    if (!checkpoints)
        return;
    sink->checkpoints = checkpoints;
    checkpoints[sink->checkpoint_count++] = *checkpoint;
    answer->done = true;
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
    case QUESTION_CHECKPOINT:
        answer_checkpoint(sink, &question->checkpoint, answer);
        return;
    case QUESTION_MAINTAIN:
        answer->done = true;
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

/* Keeps the question: its rows may change or go once it has been answered. */
static void delay(struct memory_sink *sink, struct operation *operation)
{
    if (operation_question_own_rows(operation->question) < 0)
        return;
    operation_question_free(sink->delayed);
    sink->delayed = AR_TAKE(operation->question);
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
    bool lost = append && (fault == MEMORY_LOSES_BATCH || fault == MEMORY_DELAYS_BATCH);
    bool has_rows = append && sink_batch_rows(&operation->question->batch) > 0;
    bool failed = fault == MEMORY_FAILS || (has_rows && fault == MEMORY_FAILS_ROWS) ||
                  (append && !has_rows && fault == MEMORY_FAILS_CONFIRM);
    if (!failed && !lost)
        ask(self(sink), operation->question, &operation->answer);
    if (lost || (append && fault == MEMORY_LOSES_ANSWER))
        operation->answer.outcome = SINK_UNKNOWN;
    if (lost && fault == MEMORY_DELAYS_BATCH)
        delay(self(sink), operation);
    operation_finish(operation);
}

static void expired(void *context, struct operation *operation)
{
    struct memory_sink *sink = context;
    TAILQ_REMOVE(&sink->stalled, operation, link);
    operation_finish(operation);
}

bool memory_commit_delayed(struct sink *sink)
{
    struct question *question = AR_TAKE(self(sink)->delayed);
    struct answer answer = {.outcome = SINK_NOT_STORED};
    if (question)
        ask(self(sink), question, &answer);
    operation_question_free(question);
    return answer.outcome == SINK_STORED;
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

static void memory_checkpoint(struct sink *sink, const struct checkpoint *checkpoint,
                              int deadline_ms, sink_done_fn *done, void *context)
{
    give(sink, operation_checkpoint(self(sink)->desk, checkpoint, deadline_ms, done, context));
}

static void memory_maintain(struct sink *sink, int deadline_ms, sink_done_fn *done, void *context)
{
    give(sink, operation_maintain(self(sink)->desk, deadline_ms, done, context));
}

static const char *memory_problem(const struct sink *sink)
{
    const struct memory_sink *memory = (const struct memory_sink *)sink;
    return memory->fault_times != 0 && memory->fault != MEMORY_WORKS ? "fault" : "";
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

static const struct stored *nth(const struct sink *sink, bool record, size_t index)
{
    const struct memory_sink *memory = (const struct memory_sink *)sink;
    for (size_t i = 0; i < memory->count; i++)
        if ((memory->rows[i].record != NULL) == record && index-- == 0)
            return &memory->rows[i];
    return NULL;
}

size_t memory_count(const struct sink *sink)
{
    size_t count = 0;
    while (nth(sink, true, count))
        count++;
    return count;
}

const struct record *memory_record(const struct sink *sink, size_t index)
{
    const struct stored *row = nth(sink, true, index);
    return row ? row->record : NULL;
}

const struct chain_event *memory_event(const struct sink *sink, size_t index)
{
    const struct stored *row = nth(sink, false, index);
    return row ? row->event : NULL;
}

const struct checkpoint *memory_checkpoint_at(const struct sink *sink, size_t index)
{
    const struct memory_sink *memory = (const struct memory_sink *)sink;
    return index < memory->checkpoint_count ? &memory->checkpoints[index] : NULL;
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
    operation_question_free(memory->delayed);
    free(memory->rows);
    free(memory->checkpoints);
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
    .checkpoint = memory_checkpoint,
    .maintain = memory_maintain,
    .problem = memory_problem,
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
