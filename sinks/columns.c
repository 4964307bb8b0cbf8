/*
 * columns.c - the table of columns; see columns.h.
 */
#include "sinks/columns.h"

#include <stdio.h>

#define COLUMN(name, type, place)                         \
    {                                                     \
#        name, type, place, offsetof(struct record, name) \
    }

const struct column columns_table[COLUMNS_COUNT] = {
    COLUMN(run_id, COLUMN_UUID, PLACE_INLINE),
    COLUMN(writer, COLUMN_UUID, PLACE_INLINE),
    COLUMN(seq, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(schema_version, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(company, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(actor, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(purpose, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(client_name, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(client_uid, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(client_gid, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(client_pid, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(language, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(code_sha256, COLUMN_TEXT, PLACE_INLINE),
    COLUMN(code_bytes, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(grant, COLUMN_JSON, PLACE_POINTER),
    COLUMN(provider, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(provider_version, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(envelope_sha256, COLUMN_TEXT, PLACE_INLINE),
    COLUMN(status, COLUMN_TEXT, PLACE_STATUS),
    COLUMN(reason, COLUMN_TEXT, PLACE_REASON),
    COLUMN(denials, COLUMN_JSON, PLACE_POINTER),
    COLUMN(exit_code, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(signal, COLUMN_INTEGER, PLACE_INTEGER),
    COLUMN(usage, COLUMN_JSON, PLACE_POINTER),
    COLUMN(trace_id, COLUMN_TEXT, PLACE_POINTER),
    COLUMN(received_at, COLUMN_TIME, PLACE_INTEGER),
    COLUMN(started_at, COLUMN_TIME, PLACE_INTEGER),
    COLUMN(finished_at, COLUMN_TIME, PLACE_INTEGER),
    COLUMN(recorded_at, COLUMN_TIME, PLACE_INTEGER),
    COLUMN(late, COLUMN_BOOL, PLACE_BOOL),
    COLUMN(prev_hash, COLUMN_TEXT, PLACE_INLINE),
    COLUMN(row_hash, COLUMN_TEXT, PLACE_INLINE),
};

static struct column_value text_value(const char *text)
{
    return (struct column_value){.is_null = !text, .text = text};
}

static struct column_value integer_value(int64_t integer)
{
    return (struct column_value){.is_null = integer == RECORD_NULL, .integer = integer};
}

struct column_value columns_value(const struct record *record, size_t column)
{
    const void *at = (const char *)record + columns_table[column].offset;
    switch (columns_table[column].place) {
    case PLACE_INLINE:
        return text_value(*(const char *)at ? at : NULL);
    case PLACE_POINTER:
        return text_value(*(const char *const *)at);
    case PLACE_INTEGER:
        return integer_value(*(const int64_t *)at);
    case PLACE_BOOL:
        return integer_value(*(const bool *)at);
    case PLACE_STATUS:
        return text_value(status_word(*(const enum status *)at));
    case PLACE_REASON:
        return text_value(reason_word(*(const enum reason *)at));
    }
    return text_value(NULL);
}

char *columns_names(void)
{
    char *names = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&names, &length);
    if (!stream)
        return NULL;
    for (size_t i = 0; i < COLUMNS_COUNT; i++)
        (void)fprintf(stream, "%s\"%s\"", i > 0 ? ", " : "", columns_table[i].name);
    if (fclose(stream) != 0) {
        free(names);
        return NULL;
    }
    return names;
}
