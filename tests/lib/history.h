/*
 * history.h - chains of runs and events in a ledger, with checkpoints over them, for tests that
 * change what is written and ask who notices.
 */
#ifndef AUDITRUN_TESTS_LIB_HISTORY_H
#define AUDITRUN_TESTS_LIB_HISTORY_H

#include "tests/lib/ledger.h"

/* Rows of each chain of history_begin(): events at 1, 4 and 10, runs at the other places. */
#define HISTORY_ROWS 10

/* A fresh ledger with two mixed chains; chains[0] is that of the lower writer. */
void history_begin(struct ledger *ledger, enum ledger_kind kind, struct postgres_server *server,
                   struct records_chain chains[2]);
/* Makes the chain of a writer who wrote nothing yet, whose id is the highest so far. */
void history_new_chain(struct records_chain *chain, uint64_t seed);

/* The next event of the chain, sealed; chain_event_free(). */
struct chain_event *history_event(struct records_chain *chain, enum event_kind kind,
                                  const char *detail);
/* The same, appended. */
void history_grow_event(struct ledger *ledger, struct records_chain *chain, enum event_kind kind,
                        const char *detail);

/* Signs the head of the chain. */
struct checkpoint history_sign(const struct records_chain *chain, const struct checkpoint_key *key);
struct checkpoint_key *history_key(void);

/* A statement with the writer in each place of "%s", behind the guards. */
void history_tamper(const struct ledger *ledger, const char *sql, const char *writer);

/* What verify says, which is also what SQL says (but for unsigned). options may be NULL. */
struct verify_result history_verify(const struct ledger *ledger,
                                    const struct verify_options *options);
void history_expect(const struct ledger *ledger, const struct verify_options *options,
                    enum verify_finding finding, const char *writer, int64_t seq);

#endif
