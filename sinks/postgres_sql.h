/*
 * postgres_sql.h - the statements of the PostgreSQL sink, by name, as its connections prepare them.
 *
 * All names are qualified and all parameters are cast, so that no guess of the server decides what
 * they mean; only unnest() of several arrays cannot be qualified, and the session's search_path is
 * pg_catalog alone.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_SQL_H
#define AUDITRUN_SINKS_POSTGRES_SQL_H

#include "sinks/postgres_conn.h"

#define POSTGRES_SQL_HEAD_INSERT "head_insert" /* writer, seq, hash */
#define POSTGRES_SQL_HEAD_UPDATE "head_update" /* writer, seq, hash; seq and hash as expected */
#define POSTGRES_SQL_RUN_INSERT  "run_insert"  /* arrays of postgres_row_fill() */
#define POSTGRES_SQL_KEY_INSERT  "key_insert"  /* arrays of postgres_row_fill_keys() */
#define POSTGRES_SQL_CLAIM       "claim"       /* company, key, request_sha256, run_id */
#define POSTGRES_SQL_HOLDER      "holder"      /* company, key: run_id, request_sha256 */
#define POSTGRES_SQL_PROBE       "probe"       /* one boolean */
#define POSTGRES_SQL_HEAD_SELECT "head_select" /* writer: seq, hash */
#define POSTGRES_SQL_FIND_BY_ID  "find_by_id"  /* run_id: the row */
#define POSTGRES_SQL_FIND_BY_KEY "find_by_key" /* company, key: the row */

#define POSTGRES_SQL_WRITES 7 /* statements of the connection that writes */
#define POSTGRES_SQL_READS  3

struct postgres_sql {
    struct postgres_conn_statement writes[POSTGRES_SQL_WRITES];
    struct postgres_conn_statement reads[POSTGRES_SQL_READS];
    char *made[4]; /* owned: those that are made from the table of columns, and the probe */
};

/* 0 with *sql filled (postgres_sql_free), -ENOMEM. */
int postgres_sql_make(struct postgres_sql *sql) AR_MUST_CHECK;
void postgres_sql_free(struct postgres_sql *sql);

#endif
