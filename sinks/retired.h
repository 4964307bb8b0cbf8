/*
 * retired.h - the ranges of rows that retired partitions took with them, as the events
 * partition_retired tell them: where a chain goes on although its rows are gone.
 */
#ifndef AUDITRUN_SINKS_RETIRED_H
#define AUDITRUN_SINKS_RETIRED_H

#include "protocol/chain_event.h"

struct retired_range {
    char writer[UUID7_TEXT_BYTES];
    int64_t first_seq, last_seq;
    char prev_hash[DIGEST_HEX_BYTES]; /* of the first row */
    char last_hash[DIGEST_HEX_BYTES]; /* row_hash of the last row */
    bool is_signed;                   /* a checkpoint that counts vouches for the event */
};

/* Zeroed is empty; retired_free(). */
struct retired {
    struct retired_range *items;
    size_t count;
};

/* Adds the ranges of an event; what does not have the form of a range is none. 0, -ENOMEM. */
int retired_add(struct retired *retired, const struct chain_event *event,
                bool is_signed) AR_MUST_CHECK;
void retired_sort(struct retired *retired);
/* Sorted: the range that begins at this seq behind a row (or the start of the chain) with this hash;
 * a signed one before others. NULL: none. */
const struct retired_range *retired_find(const struct retired *retired, const char *writer,
                                         int64_t first_seq, const char *prev_hash);
void retired_free(struct retired *retired);

#endif
