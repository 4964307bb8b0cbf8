/*
 * reader_sql.h - a filter and an order as one SELECT, the same for all stores but for their dialect.
 */
#ifndef AUDITRUN_SINKS_READER_SQL_H
#define AUDITRUN_SINKS_READER_SQL_H

#include "sinks/reader.h"

#define READER_SQL_MAX_VALUES 8

struct reader_sql_dialect {
    const char *table;
    /* printf formats of the place of a value, with one %zu */
    const char *text, *uuid, *time;
};

struct reader_sql {
    char *text;                                /* owned */
    const char *values[READER_SQL_MAX_VALUES]; /* borrowed from the filter, or the texts below */
    size_t count;
    char since[ROW_TIME_BYTES], until[ROW_TIME_BYTES];
};

/* The columns are those of record_layout. 0 with *out filled (reader_sql_free), -ENOMEM. */
int reader_sql_build(const struct reader_sql_dialect *dialect, const struct reader_filter *filter,
                     enum reader_order order, struct reader_sql *out) AR_MUST_CHECK;
void reader_sql_free(struct reader_sql *sql);

/* Every writer of the store, also one that has rows but no head; skips through the index instead of
 * reading every row of it. One %s twice, and a third time: table of rows, the same, of writers. */
#define READER_SQL_WRITERS                                                                       \
    "WITH RECURSIVE found AS (SELECT (SELECT writer FROM %s ORDER BY writer LIMIT 1) AS writer " \
    "UNION ALL SELECT (SELECT writer FROM %s AS r WHERE r.writer > found.writer "                \
    "ORDER BY writer LIMIT 1) FROM found WHERE found.writer IS NOT NULL) "                       \
    "SELECT writer FROM found WHERE writer IS NOT NULL "                                         \
    "UNION SELECT writer FROM %s ORDER BY writer"

#endif
