/*
 * sqlite_row.h - rows of the ledger into and out of rows of SQLite.
 */
#ifndef AUDITRUN_SINKS_SQLITE_ROW_H
#define AUDITRUN_SINKS_SQLITE_ROW_H

#include "protocol/record.h"

#include <sqlite3.h>

/* "INSERT INTO runs (...) VALUES (...)" in the order of the layout: malloc'd, NULL: no memory. */
char *sqlite_row_insert_sql(const struct row_layout *layout) AR_MUST_CHECK;
/* Binds all columns; texts are borrowed until the statement is reset. A code of SQLite. */
int sqlite_row_bind(sqlite3_stmt *statement, const struct row_layout *layout,
                    const void *row) AR_MUST_CHECK;
/* The current row of the statement, whose first columns are those of the layout, into an initialized
 * row: 0, 1 when a column does not have its form, -ENOMEM. */
int sqlite_row_read(sqlite3_stmt *statement, const struct row_layout *layout,
                    void *row) AR_MUST_CHECK;
/* The same into a new record: 0 with *out owned. */
int sqlite_row_read_record(sqlite3_stmt *statement, struct record **out) AR_MUST_CHECK;

#endif
