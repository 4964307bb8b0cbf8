/*
 * sink.h - the contract of a store of records, as the daemon sees it.
 *
 * A sink lives in the daemon's event loop and never blocks it: every operation returns at once and
 * calls back exactly once, later, from the loop (never from within the call), also when its deadline
 * passes or the sink is closed. Operations of one sink are carried out in the order in which they
 * were given, appends and queries each in a line of their own, so that a query never waits behind a
 * disk. Sinks return; they do not log.
 *
 * What decides whether a batch counts as stored is the COMMIT alone. A batch is all or nothing.
 * Beside the rows, in the same transaction: the head of the writer's chain (compare and set, so
 * that no chain can fork) and the keys of runs that carry an idempotency_key.
 *
 * A batch without rows confirms the head: it is a transaction that writes the head as it is, so that
 * SINK_STORED says that the head is exactly that, and that everything up to it is as durable as a
 * commit can be (also on a synchronous standby, which a mere look at the head does not say).
 */
#ifndef AUDITRUN_SINKS_SINK_H
#define AUDITRUN_SINKS_SINK_H

#include "protocol/chain_event.h"
#include "protocol/checkpoint.h"
#include "protocol/record.h"

struct event_base;
struct sink;

enum sink_outcome {
    SINK_STORED,     /* committed, for certain */
    SINK_NOT_STORED, /* not stored, for certain; may be tried again */
    SINK_UNKNOWN,    /* the connection or the time ran out around COMMIT: ask with find */
    SINK_CONFLICT,   /* the head of the writer's chain is not what the batch expects; not stored */
    SINK_REFUSED     /* the store refuses a row of the batch as it is; nothing stored */
};

enum sink_answer { SINK_FOUND, SINK_ABSENT, SINK_FAILED };

struct sink_head {
    int64_t seq; /* 0: the chain is empty */
    char hash[DIGEST_HEX_BYTES];
};

/* Records and events are sealed, each in the order of seq, together without holes and following on
 * head. They stay the caller's, and must stay unchanged until the callback. */
struct sink_batch {
    const char *writer;
    struct sink_head head;
    struct record *const *records;
    size_t record_count;
    struct chain_event *const *events;
    size_t event_count; /* with record_count at most SINK_MAX_BATCH; 0 and 0 confirms the head */
};
#define SINK_MAX_BATCH 1000

static inline size_t sink_batch_rows(const struct sink_batch *batch)
{
    return batch->record_count + batch->event_count;
}
/* What the head is when the batch is stored. */
struct sink_head sink_batch_head(const struct sink_batch *batch);

/* bad: index of the row that was refused (SINK_REFUSED), records first, then events; the number of
 * rows when it is not known which. */
typedef void sink_append_fn(void *context, enum sink_outcome outcome, size_t bad);
typedef void sink_head_fn(void *context, enum sink_answer answer, const struct sink_head *head);
/* record borrows; NULL unless SINK_FOUND, and for an event. */
typedef void sink_find_fn(void *context, enum sink_answer answer, const struct record *record);
/* What became of a claim of an idempotency key. holder: the run that has it (with SINK_CLAIM_TAKEN),
 * same_request: whether it was taken for the same request_sha256. */
enum sink_claim { SINK_CLAIMED, SINK_CLAIM_TAKEN, SINK_CLAIM_FAILED };
typedef void sink_claim_fn(void *context, enum sink_claim claim, const char *holder,
                           bool same_request);
typedef void sink_probe_fn(void *context, bool up);
typedef void sink_done_fn(void *context, bool done);

/* Which record: by run_id, or by company and idempotency_key (run_id NULL). With event_id the
 * question is only whether that event is there: the answer comes without a record. */
struct sink_key {
    const char *run_id, *company, *idempotency_key, *event_id;
};

struct sink_ops {
    const char *name; /* "sqlite", "postgres", "memory" */
    void (*append)(struct sink *sink, const struct sink_batch *batch, int deadline_ms,
                   sink_append_fn *done, void *context);
    /* SINK_ABSENT: no such writer (head is then {0, digest_zero}). */
    void (*head)(struct sink *sink, const char *writer, int deadline_ms, sink_head_fn *done,
                 void *context);
    void (*find)(struct sink *sink, const struct sink_key *key, int deadline_ms, sink_find_fn *done,
                 void *context);
    /* Takes (company, key) for run_id unless somebody has it: durable when SINK_CLAIMED. Claiming
     * again for the same run_id is SINK_CLAIMED. append() takes the key of its rows too, without
     * complaint when another run has it. */
    void (*claim)(struct sink *sink, const char *company, const char *key,
                  const char *request_sha256, const char *run_id, int deadline_ms,
                  sink_claim_fn *done, void *context);
    /* Can an append work now? Connects if need be; checks that the schema is there and writable. */
    void (*probe)(struct sink *sink, int deadline_ms, sink_probe_fn *done, void *context);
    /* Stores a checkpoint, and its public key if it is a new one. Harmless when it is there. */
    void (*checkpoint)(struct sink *sink, const struct checkpoint *checkpoint, int deadline_ms,
                       sink_done_fn *done, void *context);
    /* Prepares the store for the time to come (partitions). To be called when the sink has come up
     * and every hour; appends go on without it. */
    void (*maintain)(struct sink *sink, int deadline_ms, sink_done_fn *done, void *context);
    /* Why the store cannot be used, in words of a fixed list; "" when nothing is known to be wrong. */
    const char *(*problem)(const struct sink *sink);
    /* Calls back what is pending (SINK_UNKNOWN, SINK_FAILED, ...) and frees the sink. */
    void (*close)(struct sink *sink);
};

/* Every sink's struct begins with this. */
struct sink {
    const struct sink_ops *ops;
};

/* Opens the sink that the URL names: "sqlite:/path/to/ledger.db", or a libpq URL or connection
 * string behind "postgres:" ("postgres:host=/run/postgresql dbname=audit",
 * "postgres:postgresql://host/db"). Does not wait for the store and does not create it
 * (see schema.h). 0 with *out owned (sink_close), 1 when the URL is of no known form, or -errno. */
int sink_open(const char *url, struct event_base *base, struct sink **out) AR_MUST_CHECK;
static inline void sink_close(struct sink *sink)
{
    if (sink)
        sink->ops->close(sink);
}

#endif
