/*
 * sqlite_row.h - a record into and out of a row of SQLite.
 */
#ifndef AUDITRUN_SINKS_SQLITE_ROW_H
#define AUDITRUN_SINKS_SQLITE_ROW_H

#include "protocol/record.h"

#include <sqlite3.h>

/* "INSERT INTO runs (...) VALUES (...)" in the order of columns_table: malloc'd, NULL: no memory. */
char *sqlite_row_insert_sql(void) AR_MUST_CHECK;
/* Binds all columns; texts are borrowed until the statement is reset. A code of SQLite. */
int sqlite_row_bind(sqlite3_stmt *statement, const struct record *record) AR_MUST_CHECK;
/* The current row, whose first columns are those of columns_table: 0 with *out owned, 1 when a
 * column does not have its form, -ENOMEM. */
int sqlite_row_read(sqlite3_stmt *statement, struct record **out) AR_MUST_CHECK;

#endif
