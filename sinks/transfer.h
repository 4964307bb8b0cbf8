/*
 * transfer.h - a sink for who can wait: rows that are sealed already go into a ledger as they are, in
 * order, each call returning when it is done. For import, never for the daemon's loop.
 *
 * What the sink is not sure of is asked again until it is known, and what it could not do for the
 * moment is tried again for a while. A transfer can be cut off anywhere and be done again.
 */
#ifndef AUDITRUN_SINKS_TRANSFER_H
#define AUDITRUN_SINKS_TRANSFER_H

#include "sinks/sink.h"

struct transfer;

#define TRANSFER_MESSAGE_BYTES 512
#define TRANSFER_MAX_KEYS      1000

/* Same URLs as sink_open(). 0 with *out owned (transfer_close), 1 when the store cannot be used
 * (message), 2 when the URL is of no known form, -errno. */
int transfer_open(const char *url, struct transfer **out,
                  char message[TRANSFER_MESSAGE_BYTES]) AR_MUST_CHECK;
void transfer_close(struct transfer *transfer);
static inline void transfer_cleanup(struct transfer **transfer)
{
    transfer_close(*transfer);
}

/* Below: TRANSFER_FAILED says that the store failed (transfer_message()). */
enum transfer_outcome {
    TRANSFER_DONE = 0,
    TRANSFER_CONFLICT = 1, /* the head of the chain is not what the batch expects; or below */
    TRANSFER_REFUSED = 2,  /* the store refuses a row of the batch */
    TRANSFER_FAILED = 3
};

/* The head of a writer's chain; {0, digest_zero} when there is none. */
int transfer_head(struct transfer *transfer, const char *writer,
                  struct sink_head *head) AR_MUST_CHECK;

/* A batch, as sink.h says. On PostgreSQL the partitions for its runs are made first. bad: as of
 * sink_append_fn, with TRANSFER_REFUSED. Or -ENOMEM. */
int transfer_append(struct transfer *transfer, const struct sink_batch *batch,
                    size_t *bad) AR_MUST_CHECK;

/* TRANSFER_CONFLICT: a key belongs to another run, bad is its index; those before it are there. */
struct transfer_key {
    const char *company, *idempotency_key, *request_sha256, *run_id;
};
int transfer_keys(struct transfer *transfer, const struct transfer_key *keys, size_t count,
                  size_t *bad) AR_MUST_CHECK;

int transfer_checkpoint(struct transfer *transfer,
                        const struct checkpoint *checkpoint) AR_MUST_CHECK;

/* Why the store failed. */
const char *transfer_message(const struct transfer *transfer);

#endif
