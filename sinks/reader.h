/*
 * reader.h - blocking, streaming, read-only access to a ledger for people: `auditrun ledger list`,
 * `show`, `export`, `verify`. Holds one row in memory at a time, whatever the size of the ledger. A
 * reader does one thing at a time: what begins a query, or asks for a head, ends the query before.
 */
#ifndef AUDITRUN_SINKS_READER_H
#define AUDITRUN_SINKS_READER_H

#include "protocol/chain_event.h"
#include "protocol/checkpoint.h"
#include "protocol/record.h"
#include "sinks/chain_row.h"

struct reader;

#define READER_MESSAGE_BYTES 512

/* NULL or ROW_NULL members do not filter. Of events only kind, writer, the times (happened_at), after
 * and limit count, of checkpoints only writer, the times (made_at) and after. */
struct reader_filter {
    const char *run_id, *company, *actor, *status, *code_sha256, *writer, *kind;
    int64_t since, until; /* received_at in us since the epoch, since <= t < until */
    int64_t limit;        /* the newest so many rows; ROW_NULL: all */
    /* Only rows behind this place in the order of (writer, seq): where an export broke off. */
    const char *after_writer;
    int64_t after_seq; /* with after_writer */
};
#define READER_FILTER_ALL \
    ((struct reader_filter){.since = ROW_NULL, .until = ROW_NULL, .limit = ROW_NULL})

enum reader_order {
    READER_NEWEST_FIRST, /* by run_id or event_id, downwards */
    READER_BY_CHAIN      /* by writer, seq */
};

/* Same URLs as sink_open(). 0 with *out owned, 1 when the store says no (message), 2 when the URL is
 * of no known form, -errno. */
int reader_open(const char *url, struct reader **out,
                char message[READER_MESSAGE_BYTES]) AR_MUST_CHECK;
void reader_close(struct reader *reader);

/* Starts a query; one at a time. 0, 1 (reader_message()), -errno. */
int reader_query(struct reader *reader, const struct reader_filter *filter,
                 enum reader_order order) AR_MUST_CHECK;
/* Until thawed (or closed) this reader sees the ledger as it is now, whatever is appended meanwhile.
 * Ends a query that is going on. 0, 2 store failed, -errno. */
int reader_freeze(struct reader *reader) AR_MUST_CHECK;
void reader_thaw(struct reader *reader);
/* The next row: 0 with *out owned, 1 at the end, 2 when the store failed (reader_message()),
 * READER_UNREADABLE when a column of the row does not have its form, -errno. */
int reader_next(struct reader *reader, struct record **out) AR_MUST_CHECK;
#define READER_UNREADABLE 3
/* The same for events; and for checkpoints, which always come by writer, seq, key_id. A checkpoint
 * whose key is not registered has a public_key of zeros. Of one that is unreadable *out has what could
 * be read. */
int reader_query_events(struct reader *reader, const struct reader_filter *filter,
                        enum reader_order order) AR_MUST_CHECK;
int reader_next_event(struct reader *reader, struct chain_event **out) AR_MUST_CHECK;
int reader_query_checkpoints(struct reader *reader,
                             const struct reader_filter *filter) AR_MUST_CHECK;
int reader_next_checkpoint(struct reader *reader, struct checkpoint *out) AR_MUST_CHECK;

/* The rows of both tables, in the order of their chains (writer, seq), as what their hashes are taken
 * over: for a walk over the whole ledger. writer: only its chain; NULL: all. 0, 1, -errno. */
int reader_walk(struct reader *reader, const char *writer) AR_MUST_CHECK;
/* The next one: 0 with *out borrowed until the next call (look at readable), 1 at the end, 2 when
 * the store failed, -errno. */
int reader_walk_next(struct reader *reader, const struct chain_row **out) AR_MUST_CHECK;

const char *reader_message(const struct reader *reader);

/* The head that the store keeps for a writer: 0, 1 when there is none, 2 store failed, -errno. */
int reader_head(struct reader *reader, const char *writer, int64_t *seq,
                char hash[DIGEST_HEX_BYTES]) AR_MUST_CHECK;
/* Number of rows of both tables, roughly, for progress; -1: not known. */
int64_t reader_estimate(struct reader *reader);
/* All writers that have rows, a head or a checkpoint, in order: 0 with *writers a malloc'd array of
 * malloc'd texts, -errno, 2 store failed. */
int reader_writers(struct reader *reader, char ***writers, size_t *count) AR_MUST_CHECK;

#endif
