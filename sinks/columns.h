/*
 * columns.h - the columns of a row as the stores see them: name, type, and the value without a copy.
 *
 * The same columns in the same order as record_columns (a test holds the two against each other);
 * what this table adds is where in the struct a value lies, so that an append does not have to
 * make a text of every column first.
 */
#ifndef AUDITRUN_SINKS_COLUMNS_H
#define AUDITRUN_SINKS_COLUMNS_H

#include "protocol/record.h"

#define COLUMNS_COUNT 32

enum column_type {
    COLUMN_UUID,
    COLUMN_TEXT,
    COLUMN_INTEGER,
    COLUMN_TIME, /* us since the epoch */
    COLUMN_BOOL,
    COLUMN_JSON
};

enum column_place {
    PLACE_INLINE, /* char[] in the struct; "" is null */
    PLACE_POINTER,
    PLACE_INTEGER,
    PLACE_BOOL,
    PLACE_STATUS,
    PLACE_REASON
};

struct column {
    const char *name;
    enum column_type type;
    enum column_place place;
    size_t offset;
};
extern const struct column columns_table[COLUMNS_COUNT];

/* UUID, TEXT and JSON give text (borrowed from the record), the others integer. */
struct column_value {
    bool is_null;
    const char *text;
    int64_t integer;
};
struct column_value columns_value(const struct record *record, size_t column);

/* "run_id", "writer", ... with quotes: malloc'd, NULL when out of memory. */
char *columns_names(void) AR_MUST_CHECK;

#endif
