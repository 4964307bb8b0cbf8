/*
 * postgres_schema.c - the migrations of a PostgreSQL ledger, all of them in one transaction under a
 * lock: two operators at a time do not meet, and a store is never between two versions.
 */
#include "sinks/postgres_schema.h"

#include "protocol/digest.h"
#include "sinks/migrations.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* Any number, as long as it is always the same: who migrates a ledger holds the lock of it. */
#define LOCK_SQL "SELECT pg_advisory_xact_lock(7021735521340142689)"

static int say(const PGconn *pg, char message[SCHEMA_MESSAGE_BYTES])
{
    const char *text = PQerrorMessage(pg);
    (void)snprintf(message, SCHEMA_MESSAGE_BYTES, "%s", text ? text : "");
    message[strcspn(message, "\n")] = '\0';
    return 1;
}

static int run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : 1;
}

static int version_of(PGconn *pg, int *version)
{
    PGresult *result = PQexec(pg, "SELECT coalesce(max(version), 0) FROM auditrun.migrations");
    bool there = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    if (there)
        *version = (int)strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return there ? 0 : 1;
}

static int note_version(PGconn *pg, const struct migration *migration)
{
    char version[16], digest[DIGEST_HEX_BYTES];
    const char *const values[] = {version, migration->name, digest};
    int rc = digest_hex(migration->sql, strlen(migration->sql), digest);
    if (rc < 0)
        return rc;
    (void)snprintf(version, sizeof(version), "%d", migration->version);
    PGresult *result = PQexecParams(pg,
                                    "INSERT INTO auditrun.migrations (version, name, sha256) "
                                    "VALUES ($1::int, $2, decode($3, 'hex'))",
                                    3, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK ? 0 : 1;
}

static int migrate(PGconn *pg, int *applied)
{
    int version = 0;
    int rc = run(pg, "CREATE SCHEMA IF NOT EXISTS auditrun;"
                     "CREATE TABLE IF NOT EXISTS auditrun.migrations ("
                     "version integer PRIMARY KEY, name text NOT NULL, "
                     "sha256 bytea NOT NULL, "
                     "applied_at timestamptz NOT NULL DEFAULT now())");
    if (rc == 0)
        rc = version_of(pg, &version);
    for (size_t i = 0; i < migrations_postgres_count && rc == 0; i++) {
        const struct migration *migration = &migrations_postgres[i];
        if (migration->version <= version)
            continue;
        rc = run(pg, migration->sql);
        if (rc == 0)
            rc = note_version(pg, migration);
        ++*applied;
    }
    return rc;
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

int postgres_schema_init(const char *conninfo, int *applied, char message[SCHEMA_MESSAGE_BYTES])
{
    const char *const names[] = {"dbname", "client_encoding", "fallback_application_name", NULL};
    const char *const values[] = {conninfo, "UTF8", "auditrun", NULL};
    PGconn *pg = PQconnectdbParams(names, values, 1);
    if (!pg)
        return -ENOMEM;
    (void)PQsetNoticeReceiver(pg, ignore_notice, NULL);
    int rc = 1;
    if (PQstatus(pg) == CONNECTION_OK && run(pg, "BEGIN") == 0 &&
        run(pg, "SET LOCAL search_path = pg_catalog") == 0 && run(pg, LOCK_SQL) == 0 &&
        migrate(pg, applied) == 0)
        rc = run(pg, "COMMIT");
    if (rc != 0)
        (void)say(pg, message);
    PQfinish(pg);
    return rc;
}
