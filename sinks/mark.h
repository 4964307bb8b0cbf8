/*
 * mark.h - what checkpoints say about a ledger: this row of this chain has this hash.
 *
 * The checkpoints come from the store and from where copies of them were kept, in any order. Each is
 * checked once and kept as a mark, in the order of the chains, so that a walk over the rows meets them
 * one after the other. A mark takes about 120 bytes; there are far fewer of them than rows.
 */
#ifndef AUDITRUN_SINKS_MARK_H
#define AUDITRUN_SINKS_MARK_H

#include "protocol/checkpoint.h"

struct mark {
    char writer[UUID7_TEXT_BYTES];
    int64_t seq;
    char row_hash[DIGEST_HEX_BYTES];
    bool counts; /* the signature is right, and by a key that counts */
};

/* Zeroed is empty; mark_list_free(). */
struct mark_list {
    struct mark *items;
    size_t count, capacity;
};

/* Which keys count: those with these ids; any when there are none. Borrowed. */
struct mark_trust {
    const char *const *key_ids;
    size_t count;
};

/* Checks the signature and adds the mark. 0, -ENOMEM, -EIO. */
int mark_list_add(struct mark_list *list, const struct checkpoint *checkpoint,
                  const struct mark_trust *trust) AR_MUST_CHECK;
/* Puts them in the order of (writer, seq). */
void mark_list_sort(struct mark_list *list);
/* In a sorted list: the first one at or behind this place, or list->count. */
size_t mark_list_find(const struct mark_list *list, const char *writer, int64_t seq);
/* In a sorted list: does one that counts say that this row has this hash? */
bool mark_list_vouches(const struct mark_list *list, const char *writer, int64_t seq,
                       const char *row_hash);
void mark_list_free(struct mark_list *list);

#endif
