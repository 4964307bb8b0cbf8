/*
 * postgres_row.h - records into and out of PostgreSQL, in its binary formats.
 *
 * A batch is a set of arrays, one a column, which the statement unnests: one round trip and one plan
 * for any number of rows, and nothing to quote. The formats are those of the types' send and recv
 * functions: uuid 16 bytes, int8 and timestamptz (us since 2000) 8 bytes in network order, bool one
 * byte, text and json as they are.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_ROW_H
#define AUDITRUN_SINKS_POSTGRES_ROW_H

#include "sinks/columns.h"

#include <libpq-fe.h>

#define POSTGRES_ROW_KEY_COLUMNS 4

struct postgres_array {
    char *data;
    size_t length, capacity;
};

/* The parameters of a batch; kept from batch to batch, so that the memory is. */
struct postgres_rows {
    struct postgres_array columns[COLUMNS_COUNT];
    const char *values[COLUMNS_COUNT];
    int lengths[COLUMNS_COUNT];
    int formats[COLUMNS_COUNT];
    size_t count; /* rows in it */
};

/* Fills *rows with the columns of all records: 0; 1 when a record cannot be told to the store, with
 * *bad its index (or count: too much of it); -ENOMEM. Zeroed is empty. */
int postgres_row_fill(struct postgres_rows *rows, struct record *const *records, size_t count,
                      size_t *bad) AR_MUST_CHECK;
/* The same with company, idempotency_key, request_sha256 and run_id of those that have a key. */
int postgres_row_fill_keys(struct postgres_rows *rows, struct record *const *records, size_t count,
                           size_t *bad) AR_MUST_CHECK;
void postgres_row_free(struct postgres_rows *rows);

/* "INSERT INTO auditrun.runs (...) SELECT ... FROM unnest($1::uuid[], ...)": malloc'd, NULL when out
 * of memory. */
char *postgres_row_insert_sql(void) AR_MUST_CHECK;

/* Reads a row of a result in binary format whose columns are those of columns_table: 0 with *out
 * owned, 1 when a column does not have its form, -ENOMEM. */
int postgres_row_read(const PGresult *result, int row, struct record **out) AR_MUST_CHECK;

#endif
