/*
 * ledger_entry.h - one row on its way into the sink: the record of a run, or an event of the daemon.
 *
 * An entry owns its row from the verdict until the sink has it. It may owe an answer to a run; at
 * its deadline the row goes to the journal and the run gets its audit failure, while the entry
 * stays in line.
 */
#ifndef AUDITRUN_DAEMON_LEDGER_ENTRY_H
#define AUDITRUN_DAEMON_LEDGER_ENTRY_H

#include "daemon/deadline.h"
#include "daemon/run.h"
#include "sinks/sink.h"

struct ledger_entry {
    TAILQ_ENTRY(ledger_entry) link;
    struct record *record;     /* one of the two */
    struct chain_event *event; /* NULL: it is a record */
    struct journal *journal;
    struct run *run; /* who waits; NULL: nobody (any more) */
    run_done_fn *done;
    struct deadline deadline;
    int64_t since_us; /* monotonic: when it came */
    bool late;        /* its caller was answered before, or it was left by a former daemon */
    bool noted;       /* the journal holds something for it, to be settled */
    bool keeping;     /* the journal has it at this moment */
    bool in_line;     /* the ledger has it: pending or in a batch */
};
TAILQ_HEAD(ledger_entries, ledger_entry);

/* Takes over the record. run: who waits for it; NULL: it is an old one, from the journal. NULL when
 * out of memory (the record stays the caller's). */
struct ledger_entry *ledger_entry_new(struct line *line, struct record *record, struct run *run,
                                      run_done_fn *done) AR_MUST_CHECK;
/* The same of an event; late: it is from the journal. */
struct ledger_entry *ledger_entry_new_event(struct line *line, struct chain_event *event,
                                            bool late) AR_MUST_CHECK;

/* Of the run, or of the event. */
const char *ledger_entry_id(const struct ledger_entry *entry);
/* By which the sink finds its row; borrowed from the entry. */
struct sink_key ledger_entry_key(const struct ledger_entry *entry);
/* Gives the row its place behind *head, which then is the head. 0, -ENOMEM, -EIO. */
int ledger_entry_seal(struct ledger_entry *entry, const char *writer,
                      struct sink_head *head) AR_MUST_CHECK;
/* Whoever waits does so at most so long from now on; 0: not at all. Then the row is kept. */
void ledger_entry_wait(struct ledger_entry *entry, int64_t ms);
/* The row is committed: settles it in the journal, answers who waits, frees the entry. */
void ledger_entry_stored(struct ledger_entry *entry);
/* The ledger lets go of the entry without having stored it: it is kept in the journal. */
void ledger_entry_give_up(struct ledger_entry *entry);

#endif
