/*
 * reader_sql.h - a filter and an order as one SELECT, the same for all stores but for their dialect.
 */
#ifndef AUDITRUN_SINKS_READER_SQL_H
#define AUDITRUN_SINKS_READER_SQL_H

#include "sinks/reader.h"

#define READER_SQL_MAX_VALUES    12
#define READER_SQL_INTEGER_BYTES 24

enum reader_sql_table { READER_SQL_RUNS, READER_SQL_EVENTS, READER_SQL_CHECKPOINTS };

/* Columns of a checkpoint, in this order. */
enum {
    READER_SQL_WRITER,
    READER_SQL_SEQ,
    READER_SQL_ROW_HASH,
    READER_SQL_MADE_AT,
    READER_SQL_KEY_ID,
    READER_SQL_SIGNATURE,
    READER_SQL_PUBLIC_KEY,
    READER_SQL_CHECKPOINT_COLUMNS
};

struct reader_sql_dialect {
    const char *schema; /* before the name of a table: "" or "auditrun." */
    /* printf formats of the place of a value, with one %zu; values are texts, digests hex */
    const char *text, *uuid, *time, *integer, *digest, *status, *kind;
};

struct reader_sql {
    char *text;                                /* owned */
    const char *values[READER_SQL_MAX_VALUES]; /* borrowed from the filter, or the texts below */
    size_t count;
    char since[ROW_TIME_BYTES], until[ROW_TIME_BYTES], after_seq[READER_SQL_INTEGER_BYTES];
};

/* The columns are those of record_layout, of chain_event_layout, or of a checkpoint. 0 with *out
 * filled (reader_sql_free), -ENOMEM. */
int reader_sql_build(const struct reader_sql_dialect *dialect, enum reader_sql_table table,
                     const struct reader_filter *filter, enum reader_order order,
                     struct reader_sql *out) AR_MUST_CHECK;
void reader_sql_free(struct reader_sql *sql);

/* Every writer that anything speaks of; skips through the index of the runs instead of reading every
 * row of them. The parameter is the prefix of a table. */
#define READER_SQL_WRITERS(schema)                                                         \
    "WITH RECURSIVE found AS (SELECT (SELECT writer FROM " schema                          \
    "runs ORDER BY writer LIMIT 1) AS writer UNION ALL SELECT (SELECT writer FROM " schema \
    "runs AS r WHERE r.writer > found.writer ORDER BY writer LIMIT 1) FROM found "         \
    "WHERE found.writer IS NOT NULL) SELECT writer FROM found WHERE writer IS NOT NULL "   \
    "UNION SELECT writer FROM " schema "events UNION SELECT writer FROM " schema           \
    "writers UNION SELECT writer FROM " schema "checkpoints ORDER BY writer"

#endif
