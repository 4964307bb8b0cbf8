/*
 * ledger_batch.c - see ledger_batch.h.
 */
#include "daemon/ledger_batch.h"

#include "daemon/log.h"

static void add(struct ledger_batch *batch, struct ledger_entry *entry)
{
    batch->entries[batch->count++] = entry;
    if (entry->event)
        batch->events[batch->sink.event_count++] = entry->event;
    else
        batch->records[batch->sink.record_count++] = entry->record;
}

size_t ledger_batch_fill(struct ledger_batch *batch, struct ledger_entries *pending, size_t most,
                         const char *writer, const struct sink_head *head)
{
    struct ledger_entry *entry;
    batch->sink = (struct sink_batch){
        .writer = writer, .head = *head, .records = batch->records, .events = batch->events};
    batch->behind = *head;
    batch->frozen = false;
    batch->count = 0;
    while (batch->count < most && (entry = TAILQ_FIRST(pending))) {
        TAILQ_REMOVE(pending, entry, link);
        if (ledger_entry_seal(entry, writer, &batch->behind) < 0)
            log_fatal("a row cannot be sealed");
        add(batch, entry);
    }
    return batch->count;
}

void ledger_batch_stored(struct ledger_batch *batch)
{
    size_t count = batch->count;
    batch->count = 0;
    batch->frozen = false;
    for (size_t i = 0; i < count; i++)
        ledger_entry_stored(batch->entries[i]);
}

void ledger_batch_return(struct ledger_batch *batch, struct ledger_entries *pending)
{
    for (size_t i = batch->count; i > 0; i--)
        TAILQ_INSERT_HEAD(pending, batch->entries[i - 1], link);
    batch->count = 0;
    batch->frozen = false;
}

struct ledger_entry *ledger_batch_refused(const struct ledger_batch *batch, size_t bad)
{
    size_t records = batch->sink.record_count;
    if (batch->count == 1)
        return batch->entries[0];
    for (size_t i = 0; i < batch->count; i++) {
        const struct ledger_entry *entry = batch->entries[i];
        if (bad < records ? entry->record == batch->records[bad]
                          : bad < batch->count && entry->event == batch->events[bad - records])
            return batch->entries[i];
    }
    return NULL;
}
