/*
 * journal_state.h - what the frames of a journal add up to: whose it is, where its writer's chain
 * was, and what is still open.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_STATE_H
#define AUDITRUN_DAEMON_JOURNAL_STATE_H

#include "daemon/journal_entries.h"
#include "daemon/journal_file.h"
#include "protocol/digest.h"
#include "protocol/record.h"

struct journal_state {
    char writer[UUID7_TEXT_BYTES]; /* "": none yet */
    int64_t head_seq;              /* 0: none of this writer */
    char head_hash[DIGEST_HEX_BYTES];
    char last_id[UUID7_TEXT_BYTES]; /* the highest id of all; "": none */
    struct journal_entries entries;
};

void journal_state_init(struct journal_state *state);
void journal_state_free(struct journal_state *state);

/* Adds a frame. 0; -EUCLEAN: it is whole and says nothing that a daemon writes; -ENOMEM. */
int journal_state_apply(struct journal_state *state,
                        const struct journal_frame *frame) AR_MUST_CHECK;

/* Another writer from now on: the head was the former one's. */
void journal_state_set_writer(struct journal_state *state, const char *writer);
/* Remembers the highest id. */
void journal_state_raise(struct journal_state *state, const char *id);
/* "seq hash", the payload of a head. */
#define JOURNAL_HEAD_BYTES (20 + 1 + DIGEST_HEX_BYTES)
void journal_state_head_text(int64_t seq, const char *hash, char out[JOURNAL_HEAD_BYTES]);

/* The record in the payload of an entry or frame; owned by the caller. 0, -EUCLEAN or -ENOMEM. */
int journal_state_record(const char *payload, size_t length, struct record **out) AR_MUST_CHECK;

/* Writes the frames that give this state again. */
int journal_state_write(const struct journal_state *state, struct journal_file *file) AR_MUST_CHECK;

#endif
