/*
 * retirement.h - lets old partitions of a PostgreSQL ledger go, as sinks/postgres/006_retirement.sql
 * does it: what goes is planned by the store, told by an event in a chain of its own, and signed.
 * Blocking; for `auditrun ledger retire`.
 */
#ifndef AUDITRUN_SINKS_RETIREMENT_H
#define AUDITRUN_SINKS_RETIREMENT_H

#include "protocol/chain_event.h"
#include "protocol/checkpoint.h"
#include "protocol/text.h"

struct retirement;

#define RETIREMENT_MESSAGE_BYTES 512

/* 0 with *out owned (retirement_close), 1 when the store says no (message), 2 when the URL is of no
 * known form or no PostgreSQL, -errno. */
int retirement_open(const char *url, struct retirement **out,
                    char message[RETIREMENT_MESSAGE_BYTES]) AR_MUST_CHECK;
void retirement_close(struct retirement *retirement);
static inline void retirement_cleanup(struct retirement **retirement)
{
    retirement_close(*retirement);
}

/* Names of the partitions that end at this time (us since the epoch) or before, and are over, the
 * oldest first. All below: 0, 1 when the store says no (retirement_message()), -errno. */
int retirement_list(struct retirement *retirement, int64_t before,
                    struct text_list *partitions) AR_MUST_CHECK;

/* What its event has to say: {"partition", "from", "until", "rows", "ranges"}. Reads every row of it,
 * and is refused when one is not as it was written. *plan is owned. */
int retirement_plan(struct retirement *retirement, const char *partition,
                    json_t **plan) AR_MUST_CHECK;

/* Drops the partition and leaves the event and the checkpoint, which are made and signed here, in one
 * transaction. writer and event_id: new ids; now: us since the epoch. A plan that does not hold any
 * more is refused. *checkpoint is what was signed. */
int retirement_carry_out(struct retirement *retirement, const json_t *plan, const char *writer,
                         const char *event_id, int64_t now, const struct checkpoint_key *key,
                         struct checkpoint *checkpoint) AR_MUST_CHECK;

const char *retirement_message(const struct retirement *retirement);

#endif
