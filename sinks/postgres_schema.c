/*
 * postgres_schema.c - the migrations of a PostgreSQL ledger, all of them in one transaction under a
 * lock: two operators at a time do not meet, and a store is never between two versions.
 */
#include "sinks/postgres_schema.h"

#include "sinks/migrations.h"
#include "sinks/postgres_result.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* Any number, as long as it is always the same: who migrates a ledger holds the lock of it. */
#define LOCK_SQL "SELECT pg_advisory_xact_lock(7021735521340142689)"

#define UNDEFINED_COLUMN "42703"

/* One value for each struct member, lists by newlines, so that there is nothing to parse. */
#define STATUS_SQL                                                         \
    "SELECT partition_width, partitions, "                                 \
    "coalesce(auditrun.canonical_time(until_time), ''), rows_in_default, " \
    "array_to_string(roles_missing, chr(10)), "                            \
    "array_to_string(event_triggers_missing, chr(10)), "                   \
    "array_to_string(structure_changes, chr(10)) FROM auditrun.status()"

static int say(char message[SCHEMA_MESSAGE_BYTES], const char *text)
{
    postgres_result_say(message, SCHEMA_MESSAGE_BYTES, text);
    return 1;
}

/* ---- statements ----------------------------------------------------------------------------- */

static bool worked(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static int run(PGconn *pg, const char *sql, char message[SCHEMA_MESSAGE_BYTES])
{
    AUTO_RESULT PGresult *result = PQexec(pg, sql);
    return worked(result) ? 0 : say(message, PQerrorMessage(pg));
}

static int run_with(PGconn *pg, const char *sql, const char *const *values, int count,
                    char message[SCHEMA_MESSAGE_BYTES])
{
    AUTO_RESULT PGresult *result = PQexecParams(pg, sql, count, NULL, values, NULL, NULL, 0);
    return worked(result) ? 0 : say(message, PQerrorMessage(pg));
}

static int is_there(PGconn *pg, const char *sql, bool *there, char message[SCHEMA_MESSAGE_BYTES])
{
    AUTO_RESULT PGresult *result = PQexec(pg, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
        return say(message, PQerrorMessage(pg));
    *there = PQgetvalue(result, 0, 0)[0] == 't';
    return 0;
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

/* 0 with *out to be finished, 1, -ENOMEM. */
static int connect_to(const char *conninfo, PGconn **out, char message[SCHEMA_MESSAGE_BYTES])
{
    const char *const names[] = {"dbname", "client_encoding", "fallback_application_name", NULL};
    const char *const values[] = {conninfo, "UTF8", "auditrun", NULL};
    *out = PQconnectdbParams(names, values, 1);
    if (!*out)
        return -ENOMEM;
    if (PQstatus(*out) != CONNECTION_OK)
        return say(message, PQerrorMessage(*out));
    (void)PQsetNoticeReceiver(*out, ignore_notice, NULL);
    return run(*out, "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)", message);
}

/* ---- which migrations are there ------------------------------------------------------------- */

/* 0 with *version set, 1 when they are not those of this program, 2 when the store failed, -EIO. */
static int version_of(PGconn *pg, int *version, char message[SCHEMA_MESSAGE_BYTES])
{
    bool there = false;
    *version = 0;
    if (is_there(pg, "SELECT to_regclass('auditrun.migrations') IS NOT NULL", &there, message) != 0)
        return 2;
    if (!there)
        return 0;
    AUTO_RESULT PGresult *result = PQexec(
        pg, "SELECT version, encode(sha256, 'hex') FROM auditrun.migrations ORDER BY version");
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (state && strcmp(state, UNDEFINED_COLUMN) == 0)
        return say(message, migrations_too_old);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        (void)say(message, PQerrorMessage(pg));
        return 2;
    }
    int rc = 0;
    for (int i = 0; i < PQntuples(result) && rc == 0; i++) {
        rc = migrations_check(migrations_postgres, migrations_postgres_count, i,
                              PQgetvalue(result, i, 0), PQgetvalue(result, i, 1), message,
                              SCHEMA_MESSAGE_BYTES);
        *version = i + 1;
    }
    return rc;
}

/* ---- status --------------------------------------------------------------------------------- */

static int read_list(const char *lines, struct text_list *list)
{
    AR_AUTO_FREE char *copy = strdup(lines);
    char *rest = copy, *line;
    int rc = copy ? 0 : -ENOMEM;
    while (rc == 0 && (line = strsep(&rest, "\n")))
        if (line[0] != '\0')
            rc = text_list_add(list, line);
    return rc;
}

static int read_status(PGconn *pg, struct schema_status *status, char message[SCHEMA_MESSAGE_BYTES])
{
    AUTO_RESULT PGresult *result = PQexec(pg, STATUS_SQL);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return say(message, PQerrorMessage(pg));
    if (PQntuples(result) != 1)
        return say(message, "auditrun.settings has no row");
    status->has_partitions = true;
    (void)snprintf(status->partition_width, sizeof(status->partition_width), "%s",
                   PQgetvalue(result, 0, 0));
    status->partitions = strtoll(PQgetvalue(result, 0, 1), NULL, 10);
    (void)snprintf(status->partitions_until, sizeof(status->partitions_until), "%s",
                   PQgetvalue(result, 0, 2));
    status->rows_in_default = strtoll(PQgetvalue(result, 0, 3), NULL, 10);
    int rc = read_list(PQgetvalue(result, 0, 4), &status->roles_missing);
    if (rc == 0)
        rc = read_list(PQgetvalue(result, 0, 5), &status->event_triggers_missing);
    if (rc == 0)
        rc = read_list(PQgetvalue(result, 0, 6), &status->changes);
    return rc;
}

static int status_of(PGconn *pg, struct schema_status *status, char message[SCHEMA_MESSAGE_BYTES])
{
    status->newest = migrations_newest(migrations_postgres, migrations_postgres_count);
    int rc = version_of(pg, &status->version, message);
    if (rc == 1) {
        status->differs = true;
        return 0;
    }
    if (rc == 2)
        return 1;
    return rc == 0 && status->version == status->newest ? read_status(pg, status, message) : rc;
}

int postgres_schema_status(const char *conninfo, struct schema_status *status,
                           char message[SCHEMA_MESSAGE_BYTES])
{
    PGconn *pg = NULL;
    int rc = connect_to(conninfo, &pg, message);
    if (rc == 0)
        rc = status_of(pg, status, message);
    PQfinish(pg);
    return rc;
}

/* ---- init ----------------------------------------------------------------------------------- */

static int apply(PGconn *pg, const struct migration *migration, char message[SCHEMA_MESSAGE_BYTES])
{
    char version[16], digest[DIGEST_HEX_BYTES];
    const char *const values[] = {version, migration->name, digest};
    int rc = migrations_digest(migration, digest);
    if (rc < 0)
        return rc;
    (void)snprintf(version, sizeof(version), "%d", migration->version);
    rc = run(pg, migration->sql, message);
    if (rc != 0)
        return rc;
    return run_with(pg,
                    "INSERT INTO auditrun.migrations (version, name, sha256) "
                    "VALUES ($1::int, $2, decode($3, 'hex'))",
                    values, 3, message);
}

/* Not IF NOT EXISTS, which asks for the right to create what is there already. */
static int make_list(PGconn *pg, char message[SCHEMA_MESSAGE_BYTES])
{
    bool schema = false, table = false;
    int rc = is_there(pg, "SELECT to_regnamespace('auditrun') IS NOT NULL", &schema, message);
    if (rc == 0)
        rc = is_there(pg, "SELECT to_regclass('auditrun.migrations') IS NOT NULL", &table, message);
    if (rc == 0 && !schema)
        rc = run(pg, "CREATE SCHEMA auditrun", message);
    if (rc == 0 && !table)
        rc = run(pg,
                 "CREATE TABLE auditrun.migrations (version integer PRIMARY KEY, "
                 "name text NOT NULL, sha256 bytea NOT NULL, "
                 "applied_at timestamptz NOT NULL DEFAULT now())",
                 message);
    return rc;
}

static int set_width(PGconn *pg, const char *width, bool fresh, char message[SCHEMA_MESSAGE_BYTES])
{
    if (!width)
        return 0;
    return run_with(pg,
                    fresh ? "SELECT set_config('auditrun.partition_width', $1, true)"
                          : "UPDATE auditrun.settings SET partition_width = $1 "
                            "WHERE partition_width <> $1",
                    &width, 1, message);
}

static int migrate(PGconn *pg, const struct schema_options *options, int *applied,
                   char message[SCHEMA_MESSAGE_BYTES])
{
    int version = 0;
    int rc = version_of(pg, &version, message);
    if (rc != 0)
        return rc < 0 ? rc : 1;
    bool whole = (size_t)version == migrations_postgres_count;
    rc = make_list(pg, message);
    if (rc == 0)
        rc = set_width(pg, options->partition_width, version == 0, message);
    if (rc == 0 && version > 0 && !whole)
        rc = run(pg, "SELECT auditrun_guard.drop_event_triggers()", message);
    for (size_t i = (size_t)version; i < migrations_postgres_count && rc == 0; i++) {
        rc = apply(pg, &migrations_postgres[i], message);
        ++*applied;
    }
    if (rc == 0)
        rc = run(pg, whole ? "SELECT auditrun.complete(false)" : "SELECT auditrun.complete(true)",
                 message);
    return rc;
}

static void add_missing(FILE *stream, const char *what, const struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        (void)fprintf(stream, "%s%s", i > 0 ? ", " : what, list->items[i]);
}

/* What this user could not make. */
static int tell_missing(PGconn *pg, char message[SCHEMA_MESSAGE_BYTES])
{
    struct schema_status status = {0};
    char text[SCHEMA_MESSAGE_BYTES] = "";
    FILE *stream = NULL;
    int rc = read_status(pg, &status, message);
    if (rc == 0)
        stream = fmemopen(text, sizeof(text), "w");
    if (stream) {
        add_missing(stream,
                    "without the right to make roles these are missing: ", &status.roles_missing);
        add_missing(stream,
                    status.roles_missing.count > 0 ? "; and without a superuser these: "
                                                   : "without a superuser these are missing: ",
                    &status.event_triggers_missing);
        (void)fclose(stream);
        (void)say(message, text);
    }
    schema_status_free(&status);
    return rc;
}

int postgres_schema_init(const char *conninfo, const struct schema_options *options, int *applied,
                         char message[SCHEMA_MESSAGE_BYTES])
{
    PGconn *pg = NULL;
    int rc = connect_to(conninfo, &pg, message);
    if (rc == 0)
        rc = run(pg, "BEGIN", message);
    if (rc == 0)
        rc = run(pg, LOCK_SQL, message);
    if (rc == 0)
        rc = migrate(pg, options, applied, message);
    if (rc == 0)
        rc = run(pg, "COMMIT", message);
    if (rc == 0)
        rc = tell_missing(pg, message);
    PQfinish(pg);
    return rc;
}
