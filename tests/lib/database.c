/*
 * database.c - see database.h.
 */
#include "tests/lib/database.h"

#include "sinks/schema.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static PGconn *open_connection(const char *conninfo)
{
    PGconn *pg = PQconnectdb(conninfo);
    ck_assert_msg(PQstatus(pg) == CONNECTION_OK, "%s: %s", conninfo, PQerrorMessage(pg));
    database_run(pg, "SET client_min_messages = warning");
    return pg;
}

void database_begin_empty(struct database *database, struct postgres_server *server)
{
    ck_assert(postgres_new_database(server, database->url));
    database->pg = open_connection(database->url + strlen("postgres:"));
}

void database_begin(struct database *database, struct postgres_server *server)
{
    ck_assert(postgres_new_ledger(server, database->url));
    database->pg = open_connection(database->url + strlen("postgres:"));
}

void database_end(struct database *database)
{
    PQfinish(database->pg);
    database->pg = NULL;
}

/* The last word of a connection string counts. */
void database_url_as(const struct database *database, const char *user,
                     char url[POSTGRES_URL_BYTES + 64])
{
    (void)snprintf(url, POSTGRES_URL_BYTES + 64, "%s user=%s", database->url, user);
}

PGconn *database_as(const struct database *database, const char *user)
{
    char url[POSTGRES_URL_BYTES + 64];
    database_url_as(database, user, url);
    return open_connection(url + strlen("postgres:"));
}

/* ---- statements ----------------------------------------------------------------------------- */

void database_run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(result);
    ck_assert_msg(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", sql,
                  PQerrorMessage(pg));
    PQclear(result);
}

void database_runf(PGconn *pg, const char *format, ...)
{
    va_list arguments;
    char *sql = NULL;
    va_start(arguments, format);
    ck_assert_int_ge(vasprintf(&sql, format, arguments), 0);
    va_end(arguments);
    database_run(pg, sql);
    free(sql);
}

void database_refused(PGconn *pg, const char *sql, const char *state, const char *message)
{
    PGresult *result = PQexec(pg, sql);
    const char *found = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    ck_assert_msg(found != NULL, "%s: was not refused", sql);
    ck_assert_msg(strcmp(found, state) == 0, "%s: %s", sql, PQresultErrorMessage(result));
    ck_assert_msg(!message || strstr(PQresultErrorMessage(result), message), "%s: %s", sql,
                  PQresultErrorMessage(result));
    PQclear(result);
    if (PQtransactionStatus(pg) != PQTRANS_IDLE)
        database_run(pg, "ROLLBACK");
}

char *database_value(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);
    ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK, "%s: %s", sql, PQerrorMessage(pg));
    char *value = strdup(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    ck_assert_ptr_nonnull(value);
    PQclear(result);
    return value;
}

void database_expect(PGconn *pg, const char *sql, const char *value)
{
    AR_AUTO_FREE char *found = database_value(pg, sql);
    ck_assert_msg(strcmp(found, value) == 0, "%s: \"%s\", not \"%s\"", sql, found, value);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool is_digest(enum row_form form)
{
    return form == ROW_DIGEST || form == ROW_CHAIN_DIGEST;
}

void database_insert(PGconn *pg, const struct row_layout *layout, const void *row)
{
    char *values[ROW_MAX_COLUMNS] = {NULL}, *sql = NULL;
    size_t length;
    AR_AUTO_FREE char *names = row_names(layout);
    FILE *stream = open_memstream(&sql, &length);
    ck_assert(names && stream);
    (void)fprintf(stream, "INSERT INTO auditrun.%s (%s) VALUES (", layout->table, names);
    for (size_t i = 0; i < layout->count; i++) {
        AR_AUTO_FREE char *text = NULL;
        ck_assert_int_eq(row_get(layout, row, i, &text), 0);
        if (text && is_digest(layout->columns[i].form))
            ck_assert_int_gt(asprintf(&values[i], "\\x%s", text), 0);
        else if (text)
            values[i] = strdup(text);
        (void)fprintf(stream, "%s$%zu", i > 0 ? ", " : "", i + 1);
    }
    (void)fputs(")", stream);
    ck_assert_int_eq(fclose(stream), 0);
    PGresult *result =
        PQexecParams(pg, sql, (int)layout->count, NULL, (const char *const *)values, NULL, NULL, 0);
    ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(pg));
    PQclear(result);
    free(sql);
    for (size_t i = 0; i < layout->count; i++)
        free(values[i]);
}

void database_head(PGconn *pg, const struct records_chain *chain)
{
    database_runf(pg,
                  "INSERT INTO auditrun.writers AS w VALUES ('%s', %" PRId64 ", '\\x%s') "
                  "ON CONFLICT (writer) DO UPDATE SET seq = EXCLUDED.seq, hash = EXCLUDED.hash",
                  chain->writer, chain->seq, chain->hash);
}

void database_grow(PGconn *pg, struct records_chain *chain, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AR_CLEANUP(record_cleanup) struct record *record = records_plain(chain);
        records_seal(chain, record);
        database_insert(pg, &record_layout, record);
    }
    database_head(pg, chain);
}

void database_event(PGconn *pg, struct records_chain *chain, enum event_kind kind,
                    const char *detail, int64_t happened_at)
{
    AR_CLEANUP(record_cleanup) struct record *for_id = records_plain(chain);
    AR_CLEANUP(chain_event_cleanup)
    struct chain_event *event = chain_event_new(
        for_id->run_id, kind, json_loads(detail, JSON_REJECT_DUPLICATES, NULL), happened_at);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(
        chain_event_seal(event, chain->writer, chain->seq + 1, chain->hash, happened_at + 1, false),
        0);
    database_insert(pg, &chain_event_layout, event);
    chain->seq++;
    memcpy(chain->hash, event->row_hash, sizeof(chain->hash));
    database_head(pg, chain);
}

void database_open_guards(PGconn *pg)
{
    database_run(pg, "SELECT auditrun_guard.drop_event_triggers();"
                     "ALTER TABLE auditrun.runs DISABLE TRIGGER ALL;"
                     "ALTER TABLE auditrun.events DISABLE TRIGGER ALL;"
                     "ALTER TABLE auditrun.writers DISABLE TRIGGER ALL;"
                     "ALTER TABLE auditrun.checkpoints DISABLE TRIGGER ALL;"
                     "ALTER TABLE auditrun.migrations DISABLE TRIGGER ALL");
}
