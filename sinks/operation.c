/*
 * operation.c - desks and operations; see operation.h.
 *
 * An operation is always on exactly one list: one of its sink's, or the desk's list of finished
 * ones. A call back may ask the sink again, or close it: the desk takes an operation off its list
 * before it calls back, touches neither it nor the sink afterwards, and when it was freed meanwhile
 * goes away at the end of the round.
 */
#include "sinks/operation.h"

#include <event2/event.h>
#include <string.h>

struct operation_desk {
    struct event_base *base;
    struct event *deliver; /* active while something is finished */
    struct operation_list finished;
    operation_expired_fn *expired;
    void *sink;
    unsigned delivering; /* depth */
    bool freed;          /* operation_desk_free() came from within a call back */
};

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static char *copy_text(const char *text)
{
    return text ? need(strdup(text)) : NULL;
}

/* ---- records -------------------------------------------------------------------------------- */

/* The texts of a record that are apart from the struct, in any order. */
static const size_t record_texts[] = {
    offsetof(struct record, company),         offsetof(struct record, actor),
    offsetof(struct record, purpose),         offsetof(struct record, client_name),
    offsetof(struct record, language),        offsetof(struct record, grant),
    offsetof(struct record, provider),        offsetof(struct record, provider_version),
    offsetof(struct record, denials),         offsetof(struct record, usage),
    offsetof(struct record, idempotency_key), offsetof(struct record, trace_id),
};

static char **record_text(struct record *record, size_t i)
{
    return (char **)(void *)((char *)record + record_texts[i]);
}

static size_t copied_bytes(const struct sink_batch *batch)
{
    size_t bytes = batch->count * sizeof(struct record);
    for (size_t i = 0; i < batch->count; i++)
        for (size_t t = 0; t < AR_COUNT(record_texts); t++) {
            const char *text = *record_text(batch->records[i], t);
            bytes += text ? strlen(text) + 1 : 0;
        }
    return bytes;
}

int operation_question_own_records(struct question *question)
{
    struct sink_batch *batch = &question->batch;
    struct record *copies = malloc(copied_bytes(batch));
    struct record **pointers = calloc(batch->count, sizeof(*pointers));
    if (!copies || !pointers) {
        free(copies);
        free(pointers);
        return -ENOMEM;
    }
    char *texts = (char *)(copies + batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        copies[i] = *batch->records[i];
        pointers[i] = &copies[i];
        for (size_t t = 0; t < AR_COUNT(record_texts); t++) {
            char **text = record_text(&copies[i], t);
            if (!*text)
                continue;
            size_t bytes = strlen(*text) + 1;
            *text = memcpy(texts, *text, bytes);
            texts += bytes;
        }
    }
    free((void *)batch->records);
    batch->records = pointers;
    question->block = copies;
    return 0;
}

/* ---- questions ------------------------------------------------------------------------------ */

static struct question *question_new(enum question_kind kind)
{
    struct question *question = need(calloc(1, sizeof(*question)));
    question->kind = kind;
    return question;
}

void operation_question_free(struct question *question)
{
    if (!question)
        return;
    free((void *)question->batch.records);
    free(question->block);
    free(question->writer);
    free(question->company);
    free(question->key);
    free(question->request_sha256);
    free(question->run_id);
    free(question);
}

/* ---- operations ----------------------------------------------------------------------------- */

static void deadline_passed(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct operation *operation = context;
    operation->desk->expired(operation->desk->sink, operation);
}

static struct operation *operation_new(struct operation_desk *desk, enum question_kind kind,
                                       int deadline_ms, void *context)
{
    struct operation *operation = need(calloc(1, sizeof(*operation)));
    operation->desk = desk;
    operation->kind = kind;
    operation->context = context;
    operation->question = question_new(kind);
    operation->answer = (struct answer){
        .outcome = SINK_NOT_STORED, .found = SINK_FAILED, .claim = SINK_CLAIM_FAILED};
    operation->deadline = need(evtimer_new(desk->base, deadline_passed, operation));
    int ms = deadline_ms > 0 ? deadline_ms : 0;
    struct timeval in = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    if (evtimer_add(operation->deadline, &in) < 0)
        abort();
    return operation;
}

static void operation_free(struct operation *operation)
{
    event_free(operation->deadline);
    operation_question_free(operation->question);
    record_free(operation->answer.record);
    free(operation);
}

struct operation *operation_append(struct operation_desk *desk, const struct sink_batch *batch,
                                   int deadline_ms, sink_append_fn *done, void *context)
{
    struct operation *operation = operation_new(desk, QUESTION_APPEND, deadline_ms, context);
    struct question *question = operation->question;
    operation->done.append = done;
    operation->answer.bad = batch->count;
    struct record **records = need(calloc(batch->count, sizeof(*records)));
    memcpy(records, batch->records, batch->count * sizeof(*records));
    question->writer = copy_text(batch->writer);
    question->batch = *batch;
    question->batch.records = records;
    question->batch.writer = question->writer;
    return operation;
}

struct operation *operation_head(struct operation_desk *desk, const char *writer, int deadline_ms,
                                 sink_head_fn *done, void *context)
{
    struct operation *operation = operation_new(desk, QUESTION_HEAD, deadline_ms, context);
    operation->done.head = done;
    operation->question->writer = copy_text(writer);
    memcpy(operation->answer.head.hash, digest_zero, DIGEST_HEX_BYTES);
    return operation;
}

struct operation *operation_find(struct operation_desk *desk, const struct sink_key *key,
                                 int deadline_ms, sink_find_fn *done, void *context)
{
    struct operation *operation = operation_new(desk, QUESTION_FIND, deadline_ms, context);
    operation->done.find = done;
    operation->question->run_id = copy_text(key->run_id);
    operation->question->company = copy_text(key->company);
    operation->question->key = copy_text(key->idempotency_key);
    return operation;
}

struct operation *operation_claim(struct operation_desk *desk, const char *company, const char *key,
                                  const char *request_sha256, const char *run_id, int deadline_ms,
                                  sink_claim_fn *done, void *context)
{
    struct operation *operation = operation_new(desk, QUESTION_CLAIM, deadline_ms, context);
    operation->done.claim = done;
    operation->question->company = copy_text(company);
    operation->question->key = copy_text(key);
    operation->question->request_sha256 = copy_text(request_sha256);
    operation->question->run_id = copy_text(run_id);
    return operation;
}

struct operation *operation_probe(struct operation_desk *desk, int deadline_ms, sink_probe_fn *done,
                                  void *context)
{
    struct operation *operation = operation_new(desk, QUESTION_PROBE, deadline_ms, context);
    operation->done.probe = done;
    return operation;
}

void operation_finish(struct operation *operation)
{
    struct operation_desk *desk = operation->desk;
    evtimer_del(operation->deadline);
    TAILQ_INSERT_TAIL(&desk->finished, operation, link);
    event_active(desk->deliver, 0, 0);
}

static void call_back(const struct operation *operation)
{
    const struct answer *answer = &operation->answer;
    switch (operation->kind) {
    case QUESTION_APPEND:
        operation->done.append(operation->context, answer->outcome, answer->bad);
        return;
    case QUESTION_HEAD:
        operation->done.head(operation->context, answer->found, &answer->head);
        return;
    case QUESTION_FIND:
        operation->done.find(operation->context, answer->found,
                             answer->found == SINK_FOUND ? answer->record : NULL);
        return;
    case QUESTION_CLAIM:
        operation->done.claim(operation->context, answer->claim,
                              answer->claim == SINK_CLAIM_TAKEN ? answer->holder : NULL,
                              answer->same_request);
        return;
    case QUESTION_PROBE:
        operation->done.probe(operation->context, answer->up);
        return;
    }
}

/* ---- desks ---------------------------------------------------------------------------------- */

void operation_desk_flush(struct operation_desk *desk)
{
    struct operation *operation;
    desk->delivering++;
    while ((operation = TAILQ_FIRST(&desk->finished))) {
        TAILQ_REMOVE(&desk->finished, operation, link);
        call_back(operation);
        operation_free(operation);
    }
    desk->delivering--;
}

static void deliver(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct operation_desk *desk = context;
    operation_desk_flush(desk);
    if (desk->freed)
        operation_desk_free(desk);
}

int operation_desk_new(struct event_base *base, operation_expired_fn *expired, void *sink,
                       struct operation_desk **out)
{
    struct operation_desk *desk = calloc(1, sizeof(*desk));
    if (!desk)
        return -ENOMEM;
    desk->base = base;
    desk->expired = expired;
    desk->sink = sink;
    TAILQ_INIT(&desk->finished);
    desk->deliver = event_new(base, -1, 0, deliver, desk);
    if (!desk->deliver) {
        free(desk);
        return -ENOMEM;
    }
    *out = desk;
    return 0;
}

void operation_desk_free(struct operation_desk *desk)
{
    if (!desk)
        return;
    if (desk->delivering > 0) {
        desk->freed = true;
        return;
    }
    event_free(desk->deliver);
    free(desk);
}

struct event_base *operation_desk_base(const struct operation_desk *desk)
{
    return desk->base;
}
