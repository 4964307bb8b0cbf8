/*
 * operation.h - one thing that a sink was asked: the question, its deadline, its answer, and the
 * call back, exactly once and never from within the call. Shared by all sinks.
 *
 * A desk belongs to a sink. The sink makes an operation for each call, keeps it on lists of its
 * own, and hands it back with operation_finish(); the desk then calls back from the loop, in the
 * order of finishing, and frees it. When a deadline passes, the desk asks the sink (expired), which
 * must finish the operation within that call: only the sink knows whether COMMIT was on its way.
 *
 * A question is what a store needs to answer. It is apart from the operation so that a thread may
 * go on with it after the loop has given the answer.
 */
#ifndef AUDITRUN_SINKS_OPERATION_H
#define AUDITRUN_SINKS_OPERATION_H

#include "sinks/sink.h"

#include <sys/queue.h>

enum question_kind {
    QUESTION_APPEND,
    QUESTION_HEAD,
    QUESTION_FIND,
    QUESTION_CLAIM,
    QUESTION_PROBE,
    QUESTION_CHECKPOINT,
    QUESTION_MAINTAIN
};

struct question {
    enum question_kind kind;
    struct sink_batch batch;     /* QUESTION_APPEND; it points at the three that are next */
    struct record **records;     /* owned array */
    struct chain_event **events; /* owned array */
    struct checkpoint checkpoint;
    char *writer;         /* owned; also of QUESTION_HEAD */
    char *company, *key;  /* owned; NULL where they do not apply */
    char *request_sha256; /* owned */
    char *run_id;         /* owned */
    char *event_id;       /* owned */
    void *block;          /* owned: what the rows lie in when they are a copy; else NULL */
};

/* As if nothing had happened: not stored, failed, down. operation_new() starts with this. */
struct answer {
    enum sink_outcome outcome;
    size_t bad;
    enum sink_answer found;
    struct sink_head head;
    struct record *record; /* owned */
    enum sink_claim claim;
    char holder[UUID7_TEXT_BYTES];
    bool same_request;
    bool up;   /* QUESTION_PROBE */
    bool done; /* QUESTION_CHECKPOINT, QUESTION_MAINTAIN */
};

TAILQ_HEAD(operation_list, operation);

struct operation_desk;

struct operation {
    TAILQ_ENTRY(operation) link; /* for the list it is on: the sink's, then the desk's */
    struct operation_desk *desk;
    struct question *question; /* owned, or NULL when the sink took it */
    struct answer answer;
    void *place; /* the sink's own */
    union {
        sink_append_fn *append;
        sink_head_fn *head;
        sink_find_fn *find;
        sink_claim_fn *claim;
        sink_probe_fn *probe;
        sink_done_fn *done;
    } done;
    enum question_kind kind;
    void *context;
    struct event *deadline;
};

/* The deadline of an operation has passed: finish it now. */
typedef void operation_expired_fn(void *sink, struct operation *operation);

/* 0 with *out owned (operation_desk_free), -ENOMEM. */
int operation_desk_new(struct event_base *base, operation_expired_fn *expired, void *sink,
                       struct operation_desk **out) AR_MUST_CHECK;
/* Calls back everything that was finished, also what is finished meanwhile. For close. */
void operation_desk_flush(struct operation_desk *desk);
/* Every operation must have been flushed. May be called from within a call back. */
void operation_desk_free(struct operation_desk *desk);
struct event_base *operation_desk_base(const struct operation_desk *desk);

/* One for each function of struct sink_ops. Arguments are copied; records stay the caller's. Never
 * NULL: a few hundred bytes that cannot be had end the process, for there is nobody to tell. */
struct operation *operation_append(struct operation_desk *desk, const struct sink_batch *batch,
                                   int deadline_ms, sink_append_fn *done, void *context);
struct operation *operation_head(struct operation_desk *desk, const char *writer, int deadline_ms,
                                 sink_head_fn *done, void *context);
struct operation *operation_find(struct operation_desk *desk, const struct sink_key *key,
                                 int deadline_ms, sink_find_fn *done, void *context);
struct operation *operation_claim(struct operation_desk *desk, const char *company, const char *key,
                                  const char *request_sha256, const char *run_id, int deadline_ms,
                                  sink_claim_fn *done, void *context);
struct operation *operation_probe(struct operation_desk *desk, int deadline_ms, sink_probe_fn *done,
                                  void *context);

struct operation *operation_checkpoint(struct operation_desk *desk,
                                       const struct checkpoint *checkpoint, int deadline_ms,
                                       sink_done_fn *done, void *context);
struct operation *operation_maintain(struct operation_desk *desk, int deadline_ms,
                                     sink_done_fn *done, void *context);

/* Hands it over with the answer that it has; it must be on no list. Called in the loop only. */
void operation_finish(struct operation *operation);

/* Puts copies of the rows in place of the caller's, in one block. 0, -ENOMEM. */
int operation_question_own_rows(struct question *question) AR_MUST_CHECK;
void operation_question_free(struct question *question);

#endif
