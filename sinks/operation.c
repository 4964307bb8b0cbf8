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

/* ---- rows ----------------------------------------------------------------------------------- */

/* Where copies of texts go; without a block their bytes are counted. */
struct copies {
    char *block;
    size_t used;
};

static void copy_apart(struct copies *copies, char **text)
{
    if (!text || !*text)
        return;
    size_t bytes = strlen(*text) + 1;
    if (copies->block)
        *text = memcpy(copies->block + copies->used, *text, bytes);
    copies->used += bytes;
}

static void copy_texts(struct copies *copies, const struct row_layout *layout, void *row)
{
    for (size_t column = 0; column < layout->count; column++)
        copy_apart(copies, row_apart(layout, row, column));
}

static void copy_all_texts(struct copies *copies, const struct question *question)
{
    for (size_t i = 0; i < question->batch.record_count; i++) {
        copy_texts(copies, &record_layout, question->records[i]);
        copy_apart(copies, &question->records[i]->idempotency_key);
    }
    for (size_t i = 0; i < question->batch.event_count; i++)
        copy_texts(copies, &chain_event_layout, question->events[i]);
}

int operation_question_own_rows(struct question *question)
{
    const struct sink_batch *batch = &question->batch;
    struct copies copies = {0};
    copy_all_texts(&copies, question);
    size_t structs = batch->record_count * sizeof(struct record) +
                     batch->event_count * sizeof(struct chain_event);
    char *block = malloc(structs + copies.used + 1);
    if (!block)
        return -ENOMEM;
    struct record *records = (struct record *)(void *)block;
    struct chain_event *events = (struct chain_event *)(void *)(records + batch->record_count);
    for (size_t i = 0; i < batch->record_count; i++) {
        records[i] = *question->records[i];
        question->records[i] = &records[i];
    }
    for (size_t i = 0; i < batch->event_count; i++) {
        events[i] = *question->events[i];
        question->events[i] = &events[i];
    }
    copies = (struct copies){.block = block + structs};
    copy_all_texts(&copies, question);
    question->block = block;
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
    free((void *)question->records);
    free((void *)question->events);
    free(question->block);
    free(question->writer);
    free(question->company);
    free(question->key);
    free(question->request_sha256);
    free(question->run_id);
    free(question->event_id);
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
    operation->answer.bad = sink_batch_rows(batch);
    question->writer = copy_text(batch->writer);
    question->records = need(calloc(batch->record_count + 1, sizeof(struct record *)));
    question->events = need(calloc(batch->event_count + 1, sizeof(struct chain_event *)));
    for (size_t i = 0; i < batch->record_count; i++)
        question->records[i] = batch->records[i];
    for (size_t i = 0; i < batch->event_count; i++)
        question->events[i] = batch->events[i];
    question->batch = *batch;
    question->batch.writer = question->writer;
    question->batch.records = question->records;
    question->batch.events = question->events;
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
    operation->question->event_id = copy_text(key->event_id);
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

struct operation *operation_checkpoint(struct operation_desk *desk,
                                       const struct checkpoint *checkpoint, int deadline_ms,
                                       sink_done_fn *done, void *context)
{
    struct operation *operation = operation_new(desk, QUESTION_CHECKPOINT, deadline_ms, context);
    operation->done.done = done;
    operation->question->checkpoint = *checkpoint;
    return operation;
}

struct operation *operation_maintain(struct operation_desk *desk, int deadline_ms,
                                     sink_done_fn *done, void *context)
{
    struct operation *operation = operation_new(desk, QUESTION_MAINTAIN, deadline_ms, context);
    operation->done.done = done;
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
    case QUESTION_CHECKPOINT:
    case QUESTION_MAINTAIN:
        operation->done.done(operation->context, answer->done);
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
