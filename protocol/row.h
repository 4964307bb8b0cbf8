/*
 * row.h - rows of the ledger as tables say them: which columns, in which order, where in the struct.
 *
 * Two structs are rows of a chain: struct record (record.h), one a run, and struct chain_event
 * (chain_event.h), the daemon's own. Each has a layout, and all that must treat every column alike
 * (canonical bytes, hash, JSON, what a store writes and reads back) walks the layout, so that no
 * column can be forgotten in one of them.
 *
 * canonical: one line a column, in the order of the layout, "name:value\n", or "name\n" (no colon)
 * for null, so that null and empty differ. No value holds a newline. Times are UTC with microseconds,
 * "2026-01-31T12:00:00.123456Z"; JSON columns are RFC 8785 text; bools are "true" and "false". The
 * last two columns, prev_hash and row_hash, are not part of it:
 * row_hash = SHA-256(prev_hash "\n" canonical). Stores keep exactly these texts, or types that give
 * them back, so anyone can recompute it.
 */
#ifndef AUDITRUN_PROTOCOL_ROW_H
#define AUDITRUN_PROTOCOL_ROW_H

#include "protocol/digest.h"
#include "protocol/json.h"
#include "protocol/uuid7.h"

#define ROW_NULL          INT64_MIN /* null in an integer or time column */
#define ROW_SCRATCH_BYTES 32        /* an integer or a time as text */
#define ROW_MAX_COLUMNS   32
#define ROW_TIME_BYTES    28

/* How the struct holds a column, and with that which texts it takes. */
enum row_form {
    ROW_LINE,         /* char *: UTF-8 without control characters */
    ROW_OBJECT,       /* char *: JSON text of an object */
    ROW_ARRAY,        /* char *: JSON text of an array */
    ROW_TRACE,        /* char *: 32 hex digits */
    ROW_INTEGER,      /* int64_t */
    ROW_TIME,         /* int64_t, us since the epoch */
    ROW_BOOL,         /* bool */
    ROW_STATUS,       /* enum status */
    ROW_REASON,       /* enum reason */
    ROW_KIND,         /* enum event_kind */
    ROW_ID,           /* char[UUID7_TEXT_BYTES]: a UUIDv7 */
    ROW_WRITER,       /* char[UUID7_TEXT_BYTES]; "" until the row is sealed */
    ROW_DIGEST,       /* char[DIGEST_HEX_BYTES]; "" is null where null is allowed */
    ROW_CHAIN_DIGEST, /* char[DIGEST_HEX_BYTES]; "" until the row is sealed, which is not null */
    ROW_FORM_COUNT
};

struct row_column {
    const char *name;
    enum row_form form;
    size_t offset; /* of the member in the struct */
    bool nullable;
};

struct row_layout {
    const char *table; /* its name in a store */
    const struct row_column *columns;
    size_t count; /* at most ROW_MAX_COLUMNS; the last two are prev_hash and row_hash */
};

/* One column without a copy: text (borrowed) for texts, JSON, words, ids and digests; integer for
 * integers, times and bools. */
struct row_value {
    bool is_null;
    const char *text;
    int64_t integer;
};
struct row_value row_value(const struct row_layout *layout, const void *row, size_t column);

/* One column as its canonical text: borrowed from the row or written to scratch; NULL: null. */
const char *row_text(const struct row_layout *layout, const void *row, size_t column,
                     char scratch[ROW_SCRATCH_BYTES]);
/* The same, malloc'd: 0 with *text set (NULL: null), -ENOMEM, -ENOENT: no such column. */
int row_get(const struct row_layout *layout, const void *row, size_t column,
            char **text) AR_MUST_CHECK;
/* Sets one column from its canonical text (NULL: null), as a store reads it back. 0, 1 when the text
 * is not of the column's form, -ENOMEM. */
int row_set(const struct row_layout *layout, void *row, size_t column,
            const char *text) AR_MUST_CHECK;
/* The column's place in the layout, or layout->count. */
size_t row_find(const struct row_layout *layout, const char *name);

/* The member of a column whose text lies apart from the struct; NULL for the other columns. */
char **row_apart(const struct row_layout *layout, void *row, size_t column);

/* Nulls in the columns of a zeroed struct; and frees what the columns hold. */
void row_init(const struct row_layout *layout, void *row);
void row_release(const struct row_layout *layout, void *row);

/* The canonical bytes, NUL-terminated; malloc'd, NULL when out of memory. */
char *row_canonical(const struct row_layout *layout, const void *row, size_t *length) AR_MUST_CHECK;
/* What the row's hash is, behind this one: 0, -ENOMEM, -EIO. */
int row_hash(const struct row_layout *layout, const void *row, const char *prev_hash,
             char out[DIGEST_HEX_BYTES]) AR_MUST_CHECK;

/* All columns, JSON columns as values. */
json_t *row_to_json(const struct row_layout *layout, const void *row) AR_MUST_CHECK;
/* The other way round, into an initialized row. more: members beside the columns that may be there.
 * 0, 1 with the fault set, -ENOMEM. */
int row_from_json(const struct row_layout *layout, const json_t *value,
                  const struct json_member *more, size_t more_count, void *row,
                  struct fault *fault) AR_MUST_CHECK;

/* Time: us since the epoch to text and back (years 0001..9999). */
void row_time_text(int64_t us, char out[ROW_TIME_BYTES]);
bool row_time_parse(const char *text, int64_t *us);

/* "run_id", "writer", ... with quotes and commas, as SQL wants them: malloc'd, NULL when out of
 * memory. */
char *row_names(const struct row_layout *layout) AR_MUST_CHECK;

#endif
