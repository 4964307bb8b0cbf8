/*
 * postgres_row.h - rows into and out of PostgreSQL, in its binary formats, by their layouts (row.h).
 *
 * A batch is a set of arrays, one a column, which the statement unnests: one round trip and one plan
 * for any number of rows, and nothing to quote. The formats are those of the types' send and recv
 * functions: uuid 16 bytes, bytea 32 for a digest, int8 and timestamptz (us since 2000) 8 bytes in
 * network order, bool one byte, text and json as they are. Words of a vocabulary go out as text and
 * are cast, for an enum has no number that is fixed; they come back as text, which is what an enum
 * sends.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_ROW_H
#define AUDITRUN_SINKS_POSTGRES_ROW_H

#include "protocol/chain_event.h"
#include "protocol/record.h"

#include <libpq-fe.h>

/* The columns of the table of keys, as they are in a struct record that has a key. */
extern const struct row_layout postgres_row_keys;

struct postgres_array {
    char *data;
    size_t length, capacity;
};

/* The parameters of a statement over rows; kept from batch to batch, so that the memory is. Zeroed is
 * empty. */
struct postgres_rows {
    const struct row_layout *layout;
    struct postgres_array columns[ROW_MAX_COLUMNS];
    const char *values[ROW_MAX_COLUMNS];
    int lengths[ROW_MAX_COLUMNS];
    int formats[ROW_MAX_COLUMNS];
    size_t count; /* rows in it */
};

/* Begins anew: 0, -ENOMEM. Rows are added one by one: 0; 1 when a row cannot be told to the store;
 * -ENOMEM. Then values, lengths and formats are made: 0, 1 when it is too much. */
int postgres_row_begin(struct postgres_rows *rows, const struct row_layout *layout) AR_MUST_CHECK;
int postgres_row_add(struct postgres_rows *rows, const void *row) AR_MUST_CHECK;
int postgres_row_end(struct postgres_rows *rows) AR_MUST_CHECK;
void postgres_row_free(struct postgres_rows *rows);

/* "INSERT INTO auditrun.TABLE (...) SELECT ... FROM unnest($1::uuid[], ...) ..." and more behind it:
 * malloc'd, NULL when out of memory. */
char *postgres_row_insert_sql(const struct row_layout *layout, const char *more) AR_MUST_CHECK;

/* The 32 bytes of a digest: false when it is not 64 hex digits. And the other way round. */
bool postgres_row_digest(const char *hex, unsigned char out[DIGEST_HEX_BYTES / 2]) AR_MUST_CHECK;
void postgres_row_hex(const unsigned char *bytes, char out[DIGEST_HEX_BYTES]);

/* Reads a row of a result in binary format, whose columns are those of the layout, into an
 * initialized struct: 0, 1 when a column does not have its form, -ENOMEM. */
int postgres_row_read(const PGresult *result, int row, const struct row_layout *layout,
                      void *out) AR_MUST_CHECK;
/* The same into a new record: 0 with *out owned. */
int postgres_row_read_record(const PGresult *result, int row, struct record **out) AR_MUST_CHECK;

#endif
