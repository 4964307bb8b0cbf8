/*
 * postgres_sql.h - the statements of the PostgreSQL sink, by name, as its connections prepare them.
 *
 * All names are qualified and all parameters are cast, so that no guess of the server decides what
 * they mean; functions and operators are those of pg_catalog, which is the whole search_path of the
 * session. Digests are parameters and results in hex, where they do not stand in rows.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_SQL_H
#define AUDITRUN_SINKS_POSTGRES_SQL_H

#include "sinks/postgres_conn.h"

#define POSTGRES_SQL_HEAD_INSERT  "head_insert"  /* writer, seq, hash */
#define POSTGRES_SQL_HEAD_UPDATE  "head_update"  /* writer, seq, hash; seq and hash as expected */
#define POSTGRES_SQL_RUN_INSERT   "run_insert"   /* rows of record_layout */
#define POSTGRES_SQL_EVENT_INSERT "event_insert" /* rows of chain_event_layout */
#define POSTGRES_SQL_KEY_INSERT   "key_insert"   /* rows of postgres_row_keys */
#define POSTGRES_SQL_PROBE        "probe"        /* "up", or a word for why not */
#define POSTGRES_SQL_HOLDERS \
    "holders" /* rows of postgres_row_keys: run_id, request_sha256, in order */
#define POSTGRES_SQL_CHECKPOINT_KEY "checkpoint_key" /* key_id, public_key */
#define POSTGRES_SQL_CHECKPOINT     "checkpoint" /* writer, seq, row_hash, made_at, key_id, signature */
#define POSTGRES_SQL_TYPES          "types"      /* what postgres_row_learn() takes */
#define POSTGRES_SQL_HEAD_SELECT    "head_select" /* writer: seq, hash */
#define POSTGRES_SQL_FIND_BY_ID     "find_by_id"  /* run_id: the row */
#define POSTGRES_SQL_FIND_BY_KEY    "find_by_key" /* company, key: the row */
#define POSTGRES_SQL_FIND_EVENT     "find_event"  /* event_id: a row when it is there */
#define POSTGRES_SQL_MAINTAIN       "maintain"

#define POSTGRES_SQL_APPENDS 7 /* statements of the connection that appends */
#define POSTGRES_SQL_CLAIMS  5 /* of the one that claims keys and signs heads */
#define POSTGRES_SQL_READS   5
#define POSTGRES_SQL_MADE    6

struct postgres_sql {
    struct postgres_conn_statement appends[POSTGRES_SQL_APPENDS];
    struct postgres_conn_statement claims[POSTGRES_SQL_CLAIMS];
    struct postgres_conn_statement reads[POSTGRES_SQL_READS];
    char *made[POSTGRES_SQL_MADE]; /* owned: those that are made from layouts, and the probe */
};

/* 0 with *sql filled (postgres_sql_free), -ENOMEM. */
int postgres_sql_make(struct postgres_sql *sql) AR_MUST_CHECK;
void postgres_sql_free(struct postgres_sql *sql);

#endif
