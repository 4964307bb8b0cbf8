/*
 * ledger_batch.h - the rows that are at the sink together, with the places in the chain that they
 * were given.
 *
 * A batch that may have been stored (its COMMIT was lost) is frozen: it keeps its rows, places and
 * hashes until it is known what became of it, so that the first attempt and a later one cannot both
 * win and no row changes its hash after it may have been read.
 */
#ifndef AUDITRUN_DAEMON_LEDGER_BATCH_H
#define AUDITRUN_DAEMON_LEDGER_BATCH_H

#include "daemon/ledger_entry.h"

struct ledger_batch {
    struct ledger_entry *entries[SINK_MAX_BATCH]; /* in the order of seq */
    size_t count;
    struct record *records[SINK_MAX_BATCH];
    struct chain_event *events[SINK_MAX_BATCH];
    struct sink_batch sink;  /* what the sink is given; points at the two */
    struct sink_head behind; /* the head when it is stored */
    bool frozen;
};

/* Fills an empty batch with at most so many entries from the front of pending, sealed behind head.
 * Ends the daemon when a row cannot be sealed. Returns their number. */
size_t ledger_batch_fill(struct ledger_batch *batch, struct ledger_entries *pending, size_t most,
                         const char *writer, const struct sink_head *head);
/* Stored: settles and answers all. Empty afterwards. */
void ledger_batch_stored(struct ledger_batch *batch);
/* Certainly not stored: the entries go back to the front of pending, in order. Empty afterwards. */
void ledger_batch_return(struct ledger_batch *batch, struct ledger_entries *pending);
/* The entry of a row that the sink names (see sink_append_fn); NULL when it does not know which. */
struct ledger_entry *ledger_batch_refused(const struct ledger_batch *batch, size_t bad);

#endif
