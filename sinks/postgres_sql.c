/*
 * postgres_sql.c - see postgres_sql.h.
 */
#include "sinks/postgres_sql.h"

#include "sinks/columns.h"
#include "sinks/migrations.h"
#include "sinks/postgres_row.h"

#include <stdio.h>

enum made { RUN_INSERT, FIND_BY_ID, FIND_BY_KEY, PROBE };

static const char head_insert[] = "INSERT INTO auditrun.writers (writer, seq, hash) "
                                  "VALUES ($1::uuid, $2::int8, $3::text) ON CONFLICT DO NOTHING";
static const char head_update[] = "UPDATE auditrun.writers SET seq = $2::int8, hash = $3::text "
                                  "WHERE writer = $1::uuid AND seq = $4::int8 AND hash = $5::text";
static const char key_insert[] =
    "INSERT INTO auditrun.keys (company, idempotency_key, request_sha256, run_id) "
    "SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) "
    "ON CONFLICT DO NOTHING";
static const char claim[] =
    "INSERT INTO auditrun.keys (company, idempotency_key, request_sha256, run_id) "
    "VALUES ($1::text, $2::text, $3::text, $4::uuid) ON CONFLICT DO NOTHING";
static const char holder[] = "SELECT run_id, request_sha256 FROM auditrun.keys "
                             "WHERE company = $1::text AND idempotency_key = $2::text";
static const char head_select[] = "SELECT seq, hash FROM auditrun.writers WHERE writer = $1::uuid";

static const char probe_format[] =
    "SELECT NOT pg_catalog.pg_is_in_recovery() "
    "AND pg_catalog.current_setting('transaction_read_only') = 'off' "
    "AND (SELECT pg_catalog.max(version) FROM auditrun.migrations) >= %d "
    "AND pg_catalog.has_table_privilege('auditrun.runs', 'INSERT') "
    "AND pg_catalog.has_table_privilege('auditrun.keys', 'INSERT') "
    "AND pg_catalog.has_table_privilege('auditrun.writers', 'INSERT') "
    "AND pg_catalog.has_table_privilege('auditrun.writers', 'UPDATE')";

static const char find_by_id_format[] = "SELECT %s FROM auditrun.runs WHERE run_id = $1::uuid";
static const char find_by_key_format[] =
    "SELECT %s FROM auditrun.runs WHERE run_id = (SELECT run_id FROM auditrun.keys "
    "WHERE company = $1::text AND idempotency_key = $2::text)";

int postgres_sql_make(struct postgres_sql *sql)
{
    AR_AUTO_FREE char *names = columns_names();
    int newest = migrations_newest(migrations_postgres, migrations_postgres_count);
    *sql = (struct postgres_sql){0};
    sql->made[RUN_INSERT] = postgres_row_insert_sql();
    if (!names || !sql->made[RUN_INSERT] ||
        asprintf(&sql->made[FIND_BY_ID], find_by_id_format, names) < 0 ||
        asprintf(&sql->made[FIND_BY_KEY], find_by_key_format, names) < 0 ||
        asprintf(&sql->made[PROBE], probe_format, newest) < 0) {
        postgres_sql_free(sql);
        return -ENOMEM;
    }
    const struct postgres_conn_statement writes[POSTGRES_SQL_WRITES] = {
        {POSTGRES_SQL_HEAD_INSERT, head_insert},
        {POSTGRES_SQL_HEAD_UPDATE, head_update},
        {POSTGRES_SQL_RUN_INSERT, sql->made[RUN_INSERT]},
        {POSTGRES_SQL_KEY_INSERT, key_insert},
        {POSTGRES_SQL_CLAIM, claim},
        {POSTGRES_SQL_HOLDER, holder},
        {POSTGRES_SQL_PROBE, sql->made[PROBE]},
    };
    const struct postgres_conn_statement reads[POSTGRES_SQL_READS] = {
        {POSTGRES_SQL_HEAD_SELECT, head_select},
        {POSTGRES_SQL_FIND_BY_ID, sql->made[FIND_BY_ID]},
        {POSTGRES_SQL_FIND_BY_KEY, sql->made[FIND_BY_KEY]},
    };
    for (size_t i = 0; i < AR_COUNT(writes); i++)
        sql->writes[i] = writes[i];
    for (size_t i = 0; i < AR_COUNT(reads); i++)
        sql->reads[i] = reads[i];
    return 0;
}

void postgres_sql_free(struct postgres_sql *sql)
{
    for (size_t i = 0; i < AR_COUNT(sql->made); i++) {
        free(sql->made[i]);
        sql->made[i] = NULL;
    }
}
