/*
 * chain_event.h - the other row of a chain: what the daemon says of itself, so that a quiet hour can
 * be told from a ledger that was switched off.
 *
 * Events stand in the same chain as the runs (row.h has the canonical bytes and the hash). detail is
 * an object whose members depend on the kind (docs/ledger.md); it holds words, numbers, digests and
 * ids, never text of a client, of code or of a provider.
 */
#ifndef AUDITRUN_PROTOCOL_CHAIN_EVENT_H
#define AUDITRUN_PROTOCOL_CHAIN_EVENT_H

#include "protocol/row.h"
#include "protocol/vocabulary.h"

#define CHAIN_EVENT_SCHEMA_VERSION 1

extern const struct row_layout chain_event_layout; /* the table is "events" */

struct chain_event {
    char event_id[UUID7_TEXT_BYTES];
    char writer[UUID7_TEXT_BYTES]; /* "" until sealed */
    int64_t seq;                   /* 0 until sealed; shared with the runs of the writer */
    int64_t schema_version;
    enum event_kind kind;
    char *detail;                     /* RFC 8785 text of an object */
    int64_t happened_at, recorded_at; /* us since the epoch */
    bool late;                        /* was kept in the journal before it got its place */
    char prev_hash[DIGEST_HEX_BYTES];
    char row_hash[DIGEST_HEX_BYTES];
};

/* Takes over the reference to detail, also when it fails (NULL: an empty object). NULL when out of
 * memory. */
struct chain_event *chain_event_new(const char *event_id, enum event_kind kind, json_t *detail,
                                    int64_t happened_at) AR_MUST_CHECK;
void chain_event_free(struct chain_event *event);
static inline void chain_event_cleanup(struct chain_event **event)
{
    chain_event_free(*event);
}

/* Gives the event its place in a chain, as record_seal() does. 0, -ENOMEM, -EIO. */
int chain_event_seal(struct chain_event *event, const char *writer, int64_t seq,
                     const char *prev_hash, int64_t recorded_at, bool late) AR_MUST_CHECK;
/* Recomputes the hash: 0 right, 1 wrong, -ENOMEM, -EIO. */
int chain_event_check(const struct chain_event *event) AR_MUST_CHECK;

json_t *chain_event_to_json(const struct chain_event *event) AR_MUST_CHECK;
/* 0 with *out owned, 1 with the fault set, -ENOMEM. */
int chain_event_from_json(const json_t *value, struct chain_event **out,
                          struct fault *fault) AR_MUST_CHECK;

#endif
