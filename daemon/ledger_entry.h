/*
 * ledger_entry.h - one record on its way into the sink.
 *
 * An entry owns its record from the verdict until the sink has it. It may owe an answer to a run; at
 * its deadline the record goes to the journal and the run gets its audit failure, while the entry
 * stays in line.
 */
#ifndef AUDITRUN_DAEMON_LEDGER_ENTRY_H
#define AUDITRUN_DAEMON_LEDGER_ENTRY_H

#include "daemon/deadline.h"
#include "daemon/run.h"

struct ledger_entry {
    TAILQ_ENTRY(ledger_entry) link;
    struct record *record;
    struct journal *journal;
    struct run *run; /* who waits; NULL: nobody (any more) */
    run_done_fn *done;
    struct deadline deadline;
    bool late;    /* its caller was answered before */
    bool keeping; /* the journal has it at this moment */
    bool in_line; /* the ledger has it: pending or in a batch */
};
TAILQ_HEAD(ledger_entries, ledger_entry);

/* Takes over the record. run may be NULL. NULL when out of memory (the record stays the caller's). */
struct ledger_entry *ledger_entry_new(struct line *line, struct record *record, struct run *run,
                                      run_done_fn *done) AR_MUST_CHECK;
/* Its caller waits at most so long from now on; 0: not at all. */
void ledger_entry_wait(struct ledger_entry *entry, int64_t ms);
/* The record is committed: settles it in the journal, answers who waits, frees the entry. */
void ledger_entry_stored(struct ledger_entry *entry);
/* The ledger lets go of the entry without having stored it: it is kept in the journal. */
void ledger_entry_give_up(struct ledger_entry *entry);

#endif
