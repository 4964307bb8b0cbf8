/*
 * ledger_entry.c - one row on its way into the sink.
 *
 * Two things can hold an entry: the ledger's line, and the journal while it makes the row durable.
 * It is freed when neither does. Whichever comes first, the commit or the deadline, answers the run;
 * the other finds nobody waiting.
 */
#include "daemon/ledger_entry.h"

#include "daemon/clock.h"
#include "daemon/journal.h"
#include "daemon/log.h"

#include <string.h>

static void free_if_loose(struct ledger_entry *entry)
{
    if (entry->in_line || entry->keeping)
        return;
    deadline_free(&entry->deadline);
    record_free(entry->record);
    chain_event_free(entry->event);
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
        log_error("%s %s: the row is neither in the ledger nor in the journal, only in memory: %s",
                  entry->event ? "event" : "run", ledger_entry_id(entry), strerror(-rc));
    else
        entry->noted = true;
    answer(entry, rc < 0 ? RUN_AUDIT_AT_RISK : RUN_AUDIT_KEPT);
    free_if_loose(entry);
}

static void keep_event(struct ledger_entry *entry)
{
    AR_AUTO_JSON json_t *value = chain_event_to_json(entry->event);
    AR_AUTO_FREE char *text = value ? json_canonical(value) : NULL;
    if (text)
        journal_keep_text(entry->journal, JOURNAL_EVENT, entry->event->event_id, text, is_kept,
                          entry);
    else
        is_kept(entry, -ENOMEM);
}

static void keep(void *context)
{
    struct ledger_entry *entry = context;
    entry->late = true;
    entry->keeping = true;
    if (entry->event)
        keep_event(entry);
    else
        journal_keep(entry->journal, entry->record, is_kept, entry);
}

static struct ledger_entry *entry_new(struct line *line)
{
    struct ledger_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->journal = line->journal;
    entry->in_line = true;
    entry->since_us = clock_monotonic_us();
    if (deadline_init(&entry->deadline, line->base, keep, entry) < 0) {
        free(entry);
        return NULL;
    }
    return entry;
}

struct ledger_entry *ledger_entry_new(struct line *line, struct record *record, struct run *run,
                                      run_done_fn *done)
{
    struct ledger_entry *entry = entry_new(line);
    if (!entry)
        return NULL;
    entry->record = record;
    entry->run = run;
    entry->done = done;
    entry->late = !run;
    entry->noted =
        true; /* its intent; nothing is settled that was never noted, which is harmless */
    return entry;
}

struct ledger_entry *ledger_entry_new_event(struct line *line, struct chain_event *event, bool late)
{
    struct ledger_entry *entry = entry_new(line);
    if (!entry)
        return NULL;
    entry->event = event;
    entry->late = late;
    entry->noted = late;
    return entry;
}

struct sink_key ledger_entry_key(const struct ledger_entry *entry)
{
    if (entry->event)
        return (struct sink_key){.event_id = entry->event->event_id};
    return (struct sink_key){.run_id = entry->record->run_id};
}

const char *ledger_entry_id(const struct ledger_entry *entry)
{
    return entry->event ? entry->event->event_id : entry->record->run_id;
}

int ledger_entry_seal(struct ledger_entry *entry, const char *writer, struct sink_head *head)
{
    int64_t seq = head->seq + 1, now = clock_wall_us();
    int rc = entry->event
                 ? chain_event_seal(entry->event, writer, seq, head->hash, now, entry->late)
                 : record_seal(entry->record, writer, seq, head->hash, now, entry->late);
    if (rc < 0)
        return rc;
    head->seq = seq;
    memcpy(head->hash, entry->event ? entry->event->row_hash : entry->record->row_hash,
           sizeof head->hash);
    return 0;
}

void ledger_entry_wait(struct ledger_entry *entry, int64_t ms)
{
    deadline_start(&entry->deadline, ms);
}

void ledger_entry_stored(struct ledger_entry *entry)
{
    entry->in_line = false;
    /* After a row that is on its way to the journal: the jobs keep their order. */
    if (entry->noted || entry->keeping)
        journal_settle(entry->journal, ledger_entry_id(entry));
    answer(entry, RUN_AUDIT_COMMITTED);
    free_if_loose(entry);
}

void ledger_entry_give_up(struct ledger_entry *entry)
{
    entry->in_line = false;
    if ((entry->run || !entry->noted) && !entry->keeping)
        keep(entry);
    else
        free_if_loose(entry);
}
