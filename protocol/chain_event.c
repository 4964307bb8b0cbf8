/*
 * chain_event.c - the daemon's own rows of a chain: their layout and their place in it.
 */
#include "protocol/chain_event.h"

#include <stdio.h>
#include <string.h>

#define COLUMN(name, form)                                     \
    {                                                          \
#        name, form, offsetof(struct chain_event, name), false \
    }

static const struct row_column columns[] = {
    COLUMN(event_id, ROW_ID),
    COLUMN(writer, ROW_WRITER),
    COLUMN(seq, ROW_INTEGER),
    COLUMN(schema_version, ROW_INTEGER),
    COLUMN(kind, ROW_KIND),
    COLUMN(detail, ROW_OBJECT),
    COLUMN(happened_at, ROW_TIME),
    COLUMN(recorded_at, ROW_TIME),
    COLUMN(late, ROW_BOOL),
    COLUMN(prev_hash, ROW_CHAIN_DIGEST),
    COLUMN(row_hash, ROW_CHAIN_DIGEST),
};
const struct row_layout chain_event_layout = {"events", columns, AR_COUNT(columns)};

static struct chain_event *event_new(void)
{
    struct chain_event *event = calloc(1, sizeof(*event));
    if (!event)
        return NULL;
    row_init(&chain_event_layout, event);
    event->schema_version = CHAIN_EVENT_SCHEMA_VERSION;
    return event;
}

struct chain_event *chain_event_new(const char *event_id, enum event_kind kind, json_t *detail,
                                    int64_t happened_at)
{
    AR_AUTO_JSON json_t *owned = detail ? detail : json_object();
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = event_new();
    if (!owned || !event)
        return NULL;
    (void)snprintf(event->event_id, sizeof(event->event_id), "%s", event_id);
    event->kind = kind;
    event->happened_at = happened_at;
    event->detail = json_canonical(owned);
    return event->detail ? AR_TAKE(event) : NULL;
}

void chain_event_free(struct chain_event *event)
{
    if (!event)
        return;
    row_release(&chain_event_layout, event);
    free(event);
}

int chain_event_seal(struct chain_event *event, const char *writer, int64_t seq,
                     const char *prev_hash, int64_t recorded_at, bool late)
{
    (void)snprintf(event->writer, sizeof(event->writer), "%s", writer);
    (void)snprintf(event->prev_hash, sizeof(event->prev_hash), "%s", prev_hash);
    event->seq = seq;
    event->recorded_at = recorded_at;
    event->late = late;
    return row_hash(&chain_event_layout, event, event->prev_hash, event->row_hash);
}

int chain_event_check(const struct chain_event *event)
{
    char hash[DIGEST_HEX_BYTES];
    int error = row_hash(&chain_event_layout, event, event->prev_hash, hash);
    if (error)
        return error;
    return strcmp(hash, event->row_hash) == 0 ? 0 : 1;
}

json_t *chain_event_to_json(const struct chain_event *event)
{
    return row_to_json(&chain_event_layout, event);
}

int chain_event_from_json(const json_t *value, struct chain_event **out, struct fault *fault)
{
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = event_new();
    if (!event)
        return -ENOMEM;
    int error = row_from_json(&chain_event_layout, value, NULL, 0, event, fault);
    if (error)
        return error;
    *out = AR_TAKE(event);
    return 0;
}
