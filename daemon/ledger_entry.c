/*
 * ledger_entry.c - one record on its way into the sink.
 *
 * Two things can hold an entry: the ledger's line, and the journal while it makes the record durable.
 * It is freed when neither does. Whichever comes first, the commit or the deadline, answers the run;
 * the other finds nobody waiting.
 */
#include "daemon/ledger_entry.h"

#include "daemon/journal.h"
#include "daemon/log.h"

#include <string.h>

static void free_if_loose(struct ledger_entry *entry)
{
    if (entry->in_line || entry->keeping)
        return;
    deadline_free(&entry->deadline);
    record_free(entry->record);
    free(entry);
}

static void answer(struct ledger_entry *entry, enum run_audit audit)
{
    struct run *run = AR_TAKE(entry->run);
    deadline_stop(&entry->deadline);
    if (!run)
        return;
    run->audit = audit;
    if (audit == RUN_AUDIT_COMMITTED) {
        memcpy(run->place.writer, entry->record->writer, sizeof run->place.writer);
        memcpy(run->place.hash, entry->record->row_hash, sizeof run->place.hash);
        run->place.seq = entry->record->seq;
    }
    entry->done(run);
}

static void is_kept(void *context, int rc)
{
    struct ledger_entry *entry = context;
    entry->keeping = false;
    if (rc < 0)
        log_error("run %s: the record is neither in the ledger nor in the journal, only in memory: "
                  "%s",
                  entry->record->run_id, strerror(-rc));
    answer(entry, rc < 0 ? RUN_AUDIT_AT_RISK : RUN_AUDIT_KEPT);
    if (!entry->in_line && rc == 0 && entry->late)
        log_debug("run %s is kept in the journal", entry->record->run_id);
    free_if_loose(entry);
}

static void keep(void *context)
{
    struct ledger_entry *entry = context;
    entry->late = true;
    entry->keeping = true;
    journal_keep(entry->journal, entry->record, is_kept, entry);
}

struct ledger_entry *ledger_entry_new(struct line *line, struct record *record, struct run *run,
                                      run_done_fn *done)
{
    struct ledger_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    *entry = (struct ledger_entry){.record = record,
                                   .journal = line->journal,
                                   .run = run,
                                   .done = done,
                                   .late = !run,
                                   .in_line = true};
    if (deadline_init(&entry->deadline, line->base, keep, entry) < 0) {
        free(entry);
        return NULL;
    }
    return entry;
}

void ledger_entry_wait(struct ledger_entry *entry, int64_t ms)
{
    deadline_start(&entry->deadline, ms);
}

void ledger_entry_stored(struct ledger_entry *entry)
{
    entry->in_line = false;
    /* After a record that is on its way to the journal: the jobs keep their order. */
    journal_settle(entry->journal, entry->record->run_id);
    answer(entry, RUN_AUDIT_COMMITTED);
    free_if_loose(entry);
}

void ledger_entry_give_up(struct ledger_entry *entry)
{
    entry->in_line = false;
    if (entry->run && !entry->keeping)
        keep(entry);
    else
        free_if_loose(entry);
}
