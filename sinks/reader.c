/*
 * reader.c - from the URL of a ledger to the reader of its store, and what all readers share.
 */
#include "sinks/reader.h"

#include "sinks/postgres_reader.h"
#include "sinks/reader_ops.h"
#include "sinks/sqlite_reader.h"
#include "sinks/url.h"

int reader_open(const char *url, struct reader **out, char message[READER_MESSAGE_BYTES])
{
    const char *rest;
    message[0] = '\0';
    switch (url_parse(url, &rest)) {
    case URL_SQLITE:
        return sqlite_reader_open(rest, out, message);
    case URL_POSTGRES:
        return postgres_reader_open(rest, out, message);
    case URL_UNKNOWN:
        break;
    }
    return 2;
}

void reader_close(struct reader *reader)
{
    if (reader)
        reader->ops->close(reader);
}

int reader_freeze(struct reader *reader)
{
    return reader->ops->freeze(reader);
}

void reader_thaw(struct reader *reader)
{
    reader->ops->thaw(reader);
}

int reader_query(struct reader *reader, const struct reader_filter *filter, enum reader_order order)
{
    return reader->ops->query(reader, READER_SQL_RUNS, filter, order);
}

int reader_query_events(struct reader *reader, const struct reader_filter *filter,
                        enum reader_order order)
{
    return reader->ops->query(reader, READER_SQL_EVENTS, filter, order);
}

int reader_query_checkpoints(struct reader *reader, const struct reader_filter *filter)
{
    return reader->ops->query(reader, READER_SQL_CHECKPOINTS, filter, READER_BY_CHAIN);
}

int reader_next(struct reader *reader, struct record **out)
{
    AR_CLEANUP(record_cleanup) struct record *record = record_new();
    *out = NULL;
    if (!record)
        return -ENOMEM;
    int rc = reader->ops->next(reader, &record_layout, record);
    if (rc == 0)
        *out = AR_TAKE(record);
    return rc;
}

int reader_next_event(struct reader *reader, struct chain_event **out)
{
    AR_CLEANUP(chain_event_cleanup)
    struct chain_event *event = chain_event_new("", EVENT_STARTED, NULL, 0);
    *out = NULL;
    if (!event)
        return -ENOMEM;
    int rc = reader->ops->next(reader, &chain_event_layout, event);
    if (rc == 0)
        *out = AR_TAKE(event);
    return rc;
}

int reader_next_checkpoint(struct reader *reader, struct checkpoint *out)
{
    *out = (struct checkpoint){0};
    return reader->ops->next_checkpoint(reader, out);
}

int reader_walk(struct reader *reader, const char *writer)
{
    return reader->ops->walk(reader, writer);
}

int reader_walk_next(struct reader *reader, const struct chain_row **out)
{
    return reader->ops->walk_next(reader, out);
}

const char *reader_message(const struct reader *reader)
{
    return reader->message;
}

int reader_head(struct reader *reader, const char *writer, int64_t *seq,
                char hash[DIGEST_HEX_BYTES])
{
    return reader->ops->head(reader, writer, seq, hash);
}

int64_t reader_estimate(struct reader *reader)
{
    return reader->ops->estimate(reader);
}

int reader_writers(struct reader *reader, char ***writers, size_t *count)
{
    struct text_list found = {0};
    int rc = reader->ops->writers(reader, &found);
    if (rc != 0) {
        text_list_free(&found);
        return rc;
    }
    *writers = found.items;
    *count = found.count;
    return 0;
}
