/*
 * metrics.h - what the daemon counts about itself.
 *
 * Counting is adding to a number that is there anyway: no lock, no memory, no label that a client could
 * choose. What is a state and not a count (queue, slots, ledger ...) is not kept here but asked of its
 * owner when somebody looks (metrics_table.c). Everything is the loop's.
 */
#ifndef AUDITRUN_DAEMON_METRICS_H
#define AUDITRUN_DAEMON_METRICS_H

#include "daemon/histogram.h"
#include "daemon/run.h"
#include "protocol/rpc.h"

/* The parts of a run's way that are timed. */
enum metrics_stage {
    METRICS_QUEUE,   /* waits for its turn */
    METRICS_INTENT,  /* the intent is made durable */
    METRICS_CLAIM,   /* the ledger is asked for its idempotency key; only of runs that have one */
    METRICS_SANDBOX, /* is at a provider */
    METRICS_LEDGER,  /* the record is committed, or kept */
    METRICS_STAGE_COUNT
};

/* Why a connection was not served. */
enum metrics_refusal {
    METRICS_FORBIDDEN, /* matches no [client] */
    METRICS_NO_MEMORY,
    METRICS_REFUSAL_COUNT
};

struct metrics {
    int64_t runs[REASON_COUNT]; /* that ended so; the status follows from the reason */
    int64_t replays;            /* answered from the record of the run that has the key */
    struct histogram run, stages[METRICS_STAGE_COUNT]; /* microseconds */
    int64_t audit_failures[2];                         /* lost to memory alone, kept */
    int64_t requests[RPC_METHOD_COUNT];
    int64_t errors[RPC_CODE_COUNT];
    int64_t connections, open_connections; /* that were served, that are open now */
    int64_t refusals[METRICS_REFUSAL_COUNT];
    struct histogram commit_us, batch_rows; /* of the ledger's batches that were stored */
    int64_t reloads[2];                     /* that failed, that took effect */
    int64_t started_us;                     /* wall clock */
};

/* NULL when out of memory. */
struct metrics *metrics_new(void) AR_MUST_CHECK;
void metrics_free(struct metrics *metrics);

const char *metrics_stage_word(enum metrics_stage stage);
const char *metrics_refusal_word(enum metrics_refusal refusal);

/* The run leaves the stage of its present state, in which it was for so long. */
void metrics_count_stage(struct line *line, const struct run *run, int64_t us);
/* The run is about to be answered: its end, its audit failure, how long it took in all. */
void metrics_count_run(struct line *line, const struct run *run);
/* A run of a former daemon has ended now (interrupted). */
void metrics_count_end(struct line *line, enum reason reason);
void metrics_count_request(struct line *line, enum rpc_method method);
void metrics_count_error(struct line *line, enum rpc_code code);
/* A connection has been opened, or is closed. */
void metrics_count_connection(struct line *line, bool opened);
void metrics_count_refusal(struct line *line, enum metrics_refusal refusal);
/* A batch was stored, so many rows in so long. */
void metrics_count_batch(struct line *line, size_t rows, int64_t us);
/* A reload of the configuration took effect, or failed. */
void metrics_count_reload(struct line *line, bool ok);

#endif
