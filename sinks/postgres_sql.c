/*
 * postgres_sql.c - see postgres_sql.h.
 */
#include "sinks/postgres_sql.h"

#include "sinks/migrations.h"
#include "sinks/postgres_row.h"

#include <stdio.h>
#include <string.h>

enum made { RUN_INSERT, EVENT_INSERT, KEY_INSERT, FIND_BY_ID, FIND_BY_KEY, PROBE };

static const char head_insert[] =
    "INSERT INTO auditrun.writers (writer, seq, hash) "
    "VALUES ($1::uuid, $2::int8, decode($3::text, 'hex')) ON CONFLICT DO NOTHING";
static const char head_update[] =
    "UPDATE auditrun.writers SET seq = $2::int8, hash = decode($3::text, 'hex') "
    "WHERE writer = $1::uuid AND seq = $4::int8 AND hash = decode($5::text, 'hex')";
static const char head_select[] =
    "SELECT seq, encode(hash, 'hex') FROM auditrun.writers WHERE writer = $1::uuid";

/* In an order, so that two daemons that claim the same keys never wait for each other. */
static const char key_insert_more[] = " ORDER BY 1, 2 ON CONFLICT DO NOTHING";

/* A lookup for each, whatever the server believes of how many keys there are. */
static const char holders[] =
    "SELECT found.run_id, found.request FROM unnest($1::auditrun.keys[]) "
    "WITH ORDINALITY AS asked (company, idempotency_key, request_sha256, run_id, place), LATERAL "
    "(SELECT run_id, "
    "encode(request_sha256, 'hex') FROM auditrun.keys WHERE company = asked.company "
    "AND idempotency_key = asked.idempotency_key LIMIT 1) AS found (run_id, request) ORDER BY "
    "place";

static const char checkpoint_key[] =
    "INSERT INTO auditrun.checkpoint_keys (key_id, public_key) "
    "VALUES (decode($1::text, 'hex'), decode($2::text, 'hex')) ON CONFLICT DO NOTHING";
static const char checkpoint[] =
    "INSERT INTO auditrun.checkpoints (writer, seq, row_hash, made_at, key_id, signature) "
    "VALUES ($1::uuid, $2::int8, decode($3::text, 'hex'), $4::timestamptz, "
    "decode($5::text, 'hex'), decode($6::text, 'hex')) ON CONFLICT DO NOTHING";

static const char maintain[] = "SELECT auditrun.make_partitions()";

static const char probe_format[] =
    "SELECT CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') <> 'off' "
    "THEN 'read_only' WHEN (SELECT coalesce(max(version), 0) FROM auditrun.migrations) < %d "
    "THEN 'schema' WHEN has_table_privilege('auditrun.runs', 'INSERT') "
    "AND has_table_privilege('auditrun.events', 'INSERT') "
    "AND has_table_privilege('auditrun.keys', 'INSERT') "
    "AND has_table_privilege('auditrun.writers', 'INSERT') "
    "AND has_column_privilege('auditrun.writers', 'seq', 'UPDATE') "
    "AND has_column_privilege('auditrun.writers', 'hash', 'UPDATE') "
    "THEN 'up' ELSE 'privilege' END";

static const char find_by_id_format[] = "SELECT %s FROM auditrun.runs WHERE run_id = $1::uuid";
static const char find_by_key_format[] =
    "SELECT %s FROM auditrun.runs WHERE run_id = (SELECT run_id FROM auditrun.keys "
    "WHERE company = $1::text AND idempotency_key = $2::text)";

static bool make_texts(struct postgres_sql *sql)
{
    AR_AUTO_FREE char *names = row_names(&record_layout);
    int newest = migrations_newest(migrations_postgres, migrations_postgres_count);
    sql->made[RUN_INSERT] = postgres_row_insert_sql(&record_layout, "");
    sql->made[EVENT_INSERT] = postgres_row_insert_sql(&chain_event_layout, "");
    sql->made[KEY_INSERT] = postgres_row_insert_sql(&postgres_row_keys, key_insert_more);
    return names && sql->made[RUN_INSERT] && sql->made[EVENT_INSERT] && sql->made[KEY_INSERT] &&
           asprintf(&sql->made[FIND_BY_ID], find_by_id_format, names) >= 0 &&
           asprintf(&sql->made[FIND_BY_KEY], find_by_key_format, names) >= 0 &&
           asprintf(&sql->made[PROBE], probe_format, newest) >= 0;
}

static const char find_event[] = "SELECT 1 FROM auditrun.events WHERE event_id = $1::uuid";

int postgres_sql_make(struct postgres_sql *sql)
{
    *sql = (struct postgres_sql){0};
    if (!make_texts(sql)) {
        postgres_sql_free(sql);
        return -ENOMEM;
    }
    const struct postgres_conn_statement appends[POSTGRES_SQL_APPENDS] = {
        {POSTGRES_SQL_HEAD_INSERT, head_insert},
        {POSTGRES_SQL_HEAD_UPDATE, head_update},
        {POSTGRES_SQL_RUN_INSERT, sql->made[RUN_INSERT]},
        {POSTGRES_SQL_EVENT_INSERT, sql->made[EVENT_INSERT]},
        {POSTGRES_SQL_KEY_INSERT, sql->made[KEY_INSERT]},
        {POSTGRES_SQL_PROBE, sql->made[PROBE]},
        {POSTGRES_SQL_TYPES, POSTGRES_ROW_TYPES_SQL},
    };
    const struct postgres_conn_statement claims[POSTGRES_SQL_CLAIMS] = {
        {POSTGRES_SQL_KEY_INSERT, sql->made[KEY_INSERT]}, {POSTGRES_SQL_HOLDERS, holders},
        {POSTGRES_SQL_CHECKPOINT_KEY, checkpoint_key},    {POSTGRES_SQL_CHECKPOINT, checkpoint},
        {POSTGRES_SQL_TYPES, POSTGRES_ROW_TYPES_SQL},
    };
    const struct postgres_conn_statement reads[POSTGRES_SQL_READS] = {
        {POSTGRES_SQL_HEAD_SELECT, head_select},
        {POSTGRES_SQL_FIND_BY_ID, sql->made[FIND_BY_ID]},
        {POSTGRES_SQL_FIND_BY_KEY, sql->made[FIND_BY_KEY]},
        {POSTGRES_SQL_FIND_EVENT, find_event},
        {POSTGRES_SQL_MAINTAIN, maintain},
    };
    memcpy(sql->appends, appends, sizeof(appends));
    memcpy(sql->claims, claims, sizeof(claims));
    memcpy(sql->reads, reads, sizeof(reads));
    return 0;
}

void postgres_sql_free(struct postgres_sql *sql)
{
    for (size_t i = 0; i < AR_COUNT(sql->made); i++) {
        free(sql->made[i]);
        sql->made[i] = NULL;
    }
}
