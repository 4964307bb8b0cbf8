/*
 * sink.c - from the URL of a ledger to the sink that serves it, and what all sinks know of a batch.
 */
#include "sinks/sink.h"

#include "sinks/postgres.h"
#include "sinks/sqlite.h"
#include "sinks/url.h"

#include <string.h>

static void raise_head(struct sink_head *head, int64_t seq, const char *hash)
{
    if (seq <= head->seq)
        return;
    head->seq = seq;
    memcpy(head->hash, hash, sizeof(head->hash));
}

struct sink_head sink_batch_head(const struct sink_batch *batch)
{
    struct sink_head head = batch->head;
    if (batch->record_count > 0) {
        const struct record *last = batch->records[batch->record_count - 1];
        raise_head(&head, last->seq, last->row_hash);
    }
    if (batch->event_count > 0) {
        const struct chain_event *last = batch->events[batch->event_count - 1];
        raise_head(&head, last->seq, last->row_hash);
    }
    return head;
}

int sink_open(const char *url, struct event_base *base, struct sink **out)
{
    const char *rest;
    switch (url_parse(url, &rest)) {
    case URL_SQLITE:
        return sqlite_open(rest, base, out);
    case URL_POSTGRES:
        return postgres_open(rest, base, out);
    case URL_UNKNOWN:
        break;
    }
    return 1;
}
