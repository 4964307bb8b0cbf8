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
    return reader->ops->query(reader, filter, order);
}

int reader_next(struct reader *reader, struct record **out)
{
    *out = NULL;
    return reader->ops->next(reader, out);
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
