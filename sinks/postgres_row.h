/*
 * postgres_row.h - rows into and out of PostgreSQL, in its binary formats, by their layouts (row.h).
 *
 * A batch is one parameter, an array of rows of the table, which the statement unnests: one round trip
 * and one plan for any number of rows, and nothing to quote. (An array for each column costs the
 * server several times as much, for it lays each out on its own.) The formats are those of the types'
 * send and recv functions: uuid 16 bytes, bytea 32 for a digest, int8 and timestamptz (us since 2000)
 * 8 bytes in network order, bool one byte, text, json and words as they are.
 *
 * Every value says its type. The ids of built-in types are fixed, those of the ledger's own are learned
 * from each connection.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_ROW_H
#define AUDITRUN_SINKS_POSTGRES_ROW_H

#include "protocol/chain_event.h"
#include "protocol/record.h"

#include <libpq-fe.h>

/* The columns of the table of keys, as they are in a struct record that has a key. */
extern const struct row_layout postgres_row_keys;

/* Object ids of a database: of values by their forms, and of rows. */
struct postgres_types {
    uint32_t forms[ROW_FORM_COUNT];
    uint32_t records, events, keys;
};
/* One row: the ids that postgres_row_learn() reads. */
#define POSTGRES_ROW_TYPES_SQL                                                 \
    "SELECT 'auditrun.runs'::regtype::oid, 'auditrun.events'::regtype::oid, "  \
    "'auditrun.keys'::regtype::oid, 'auditrun.sha256'::regtype::oid, "         \
    "'auditrun.trace_id'::regtype::oid, 'auditrun.run_status'::regtype::oid, " \
    "'auditrun.run_reason'::regtype::oid, 'auditrun.event_kind'::regtype::oid"
/* False when the result is something else. */
bool postgres_row_learn(const PGresult *result, struct postgres_types *types) AR_MUST_CHECK;

/* The parameter of a statement over rows; kept from batch to batch, so that the memory is. Zeroed is
 * empty. */
struct postgres_rows {
    const struct row_layout *layout;
    const struct postgres_types *types;
    char *data;
    size_t length, capacity;
    size_t count; /* rows in it */
};

/* Begins anew, with one of record_layout, chain_event_layout and postgres_row_keys: 0, -ENOMEM. Rows
 * are added one by one: 0; 1 when a row cannot be told to the store; -ENOMEM. Then the parameter is
 * finished: 0, 1 when it is too much. types is borrowed until then. */
int postgres_row_begin(struct postgres_rows *rows, const struct row_layout *layout,
                       const struct postgres_types *types) AR_MUST_CHECK;
int postgres_row_add(struct postgres_rows *rows, const void *row) AR_MUST_CHECK;
int postgres_row_end(struct postgres_rows *rows) AR_MUST_CHECK;
void postgres_row_free(struct postgres_rows *rows);

/* "INSERT INTO auditrun.TABLE (...) SELECT ... FROM unnest($1::auditrun.TABLE[]) ..." and more behind
 * it: malloc'd, NULL when out of memory. */
char *postgres_row_insert_sql(const struct row_layout *layout, const char *more) AR_MUST_CHECK;

/* Reads a row of a result in binary format, whose columns are those of the layout, into an
 * initialized struct: 0, 1 when a column does not have its form, -ENOMEM. */
int postgres_row_read(const PGresult *result, int row, const struct row_layout *layout,
                      void *out) AR_MUST_CHECK;
/* The same into a new record: 0 with *out owned. */
int postgres_row_read_record(const PGresult *result, int row, struct record **out) AR_MUST_CHECK;

#endif
