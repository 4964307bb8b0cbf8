/*
 * postgres_sql.c - what tests do inside a server by SQL: statements, databases, signals to backends
 * (declared in postgres.h).
 */
#include "tests/lib/postgres.h"

#include "sinks/schema.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

char *postgres_sql(const char *url, const char *sql)
{
    PGconn *pg = PQconnectdb(url + strlen("postgres:"));
    PGresult *result = PQstatus(pg) == CONNECTION_OK ? PQexec(pg, sql) : NULL;
    ExecStatusType status = PQresultStatus(result);
    char *value = NULL;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        value = strdup(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    else
        (void)fprintf(stderr, "test server: %s: %s\n", sql, PQerrorMessage(pg));
    PQclear(result);
    PQfinish(pg);
    return value;
}

bool postgres_run(const char *url, const char *sql)
{
    AR_AUTO_FREE char *value = postgres_sql(url, sql);
    return value != NULL;
}

static bool new_database(struct postgres_server *server, const char *of,
                         char url[POSTGRES_URL_BYTES])
{
    static unsigned databases; /* of this process: the pid keeps apart those that share a server */
    char sql[96];
    unsigned number = databases++;
    (void)snprintf(sql, sizeof(sql), "CREATE DATABASE test_%d_%u TEMPLATE %s", (int)getpid(),
                   number, of);
    (void)snprintf(url, POSTGRES_URL_BYTES,
                   "postgres:host=%s port=%d user=" POSTGRES_SUPERUSER " dbname=test_%d_%u",
                   postgres_folder(server), postgres_port(server), (int)getpid(), number);
    return postgres_run(postgres_url(server), sql);
}

bool postgres_new_database(struct postgres_server *server, char url[POSTGRES_URL_BYTES])
{
    return new_database(server, "template1", url);
}

/* Makes the pattern ready under another name first, so that a test that ends in between leaves none. */
static bool make_pattern(const struct postgres_server *server)
{
    char url[POSTGRES_URL_BYTES], message[SCHEMA_MESSAGE_BYTES] = "";
    int applied = 0;
    (void)snprintf(url, sizeof(url),
                   "postgres:host=%s port=%d user=" POSTGRES_SUPERUSER " dbname=unready",
                   postgres_folder(server), postgres_port(server));
    if (!postgres_run(postgres_url(server), "DROP DATABASE IF EXISTS unready") ||
        !postgres_run(postgres_url(server), "CREATE DATABASE unready"))
        return false;
    int rc = schema_init(url, &applied, message);
    if (rc != 0 || applied == 0 || message[0]) {
        (void)fprintf(stderr, "test server: the schema: %d, %s\n", rc, message);
        return false;
    }
    return postgres_run(postgres_url(server), "ALTER DATABASE unready RENAME TO pattern");
}

bool postgres_new_ledger(struct postgres_server *server, char url[POSTGRES_URL_BYTES])
{
    AR_AUTO_FREE char *there = postgres_sql(
        postgres_url(server), "SELECT count(*) FROM pg_database WHERE datname = 'pattern'");
    if (!there || (strcmp(there, "0") == 0 && !make_pattern(server)))
        return false;
    return new_database(server, "pattern", url);
}

size_t postgres_signal_backends(const char *url, const char *application, int number)
{
    char sql[256];
    size_t count = 0;
    (void)snprintf(sql, sizeof(sql),
                   "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity "
                   "WHERE application_name = '%s' AND datname = current_database()",
                   application);
    AR_AUTO_FREE char *pids = postgres_sql(url, sql);
    char *rest = pids;
    const char *pid;
    while (rest && *rest && (pid = strsep(&rest, " ")))
        count += kill((pid_t)strtol(pid, NULL, 10), number) == 0;
    return count;
}
