/*
 * key_list.c - see key_list.h. One query for either store; a list has one of the two connections.
 */
#include "sinks/key_list.h"

#include "sinks/url.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define LOCK_WAIT_MS 10000

#define POSTGRES_SQL                                                                     \
    "SELECT company, idempotency_key, pg_catalog.encode(request_sha256, 'hex'), run_id " \
    "FROM auditrun.keys ORDER BY company, idempotency_key"
#define SQLITE_SQL                                                       \
    "SELECT company, idempotency_key, request_sha256, run_id FROM keys " \
    "ORDER BY company, idempotency_key"

enum { COMPANY, KEY, REQUEST, RUN, COLUMNS };

struct key_list {
    PGconn *pg;
    PGresult *row;
    sqlite3 *db;
    sqlite3_stmt *statement;
};

static int say(char message[READER_MESSAGE_BYTES], const char *text, int code)
{
    (void)snprintf(message, READER_MESSAGE_BYTES, "%s", text ? text : "");
    message[strcspn(message, "\n")] = '\0';
    return code;
}

void key_list_close(struct key_list *list)
{
    if (!list)
        return;
    PQclear(list->row);
    PQfinish(list->pg);
    (void)sqlite3_finalize(list->statement);
    (void)sqlite3_close(list->db);
    free(list);
}

static int open_postgres(struct key_list *list, const char *conninfo, char *message)
{
    const char *const names[] = {"dbname", "client_encoding", "fallback_application_name", NULL};
    const char *const values[] = {conninfo, "UTF8", "auditrun", NULL};
    list->pg = PQconnectdbParams(names, values, 1);
    if (!list->pg)
        return -ENOMEM;
    if (PQstatus(list->pg) != CONNECTION_OK || !PQsendQuery(list->pg, POSTGRES_SQL) ||
        !PQsetSingleRowMode(list->pg))
        return say(message, PQerrorMessage(list->pg), 1);
    return 0;
}

static int open_sqlite(struct key_list *list, const char *path, char *message)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(path, &list->db, flags, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(list->db, LOCK_WAIT_MS) != SQLITE_OK ||
        sqlite3_exec(list->db, "PRAGMA query_only = ON", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(list->db, SQLITE_SQL, -1, &list->statement, NULL) != SQLITE_OK)
        return say(message, sqlite3_errmsg(list->db), 1);
    return 0;
}

int key_list_open(const char *url, struct key_list **out, char message[READER_MESSAGE_BYTES])
{
    AR_CLEANUP(key_list_cleanup) struct key_list *list = calloc(1, sizeof(*list));
    const char *rest;
    int rc = 2;
    message[0] = '\0';
    if (!list)
        return -ENOMEM;
    switch (url_parse(url, &rest)) {
    case URL_SQLITE:
        rc = open_sqlite(list, rest, message);
        break;
    case URL_POSTGRES:
        rc = open_postgres(list, rest, message);
        break;
    case URL_UNKNOWN:
        break;
    }
    if (rc == 0)
        *out = AR_TAKE(list);
    return rc;
}

static void fill(struct key_list_item *out, const char *const texts[COLUMNS])
{
    *out = (struct key_list_item){.company = texts[COMPANY],
                                  .idempotency_key = texts[KEY],
                                  .request_sha256 = texts[REQUEST],
                                  .run_id = texts[RUN]};
}

static int next_postgres(struct key_list *list, struct key_list_item *out, char *message)
{
    const char *texts[COLUMNS];
    PQclear(list->row);
    list->row = PQgetResult(list->pg);
    ExecStatusType status = PQresultStatus(list->row);
    if (status == PGRES_TUPLES_OK)
        return 1;
    if (status != PGRES_SINGLE_TUPLE || PQnfields(list->row) != COLUMNS)
        return say(message, PQerrorMessage(list->pg), 2);
    for (int i = 0; i < COLUMNS; i++)
        texts[i] = PQgetvalue(list->row, 0, i);
    fill(out, texts);
    return 0;
}

static int next_sqlite(struct key_list *list, struct key_list_item *out, char *message)
{
    const char *texts[COLUMNS];
    int rc = sqlite3_step(list->statement);
    if (rc == SQLITE_DONE)
        return 1;
    if (rc != SQLITE_ROW)
        return say(message, sqlite3_errmsg(list->db), 2);
    for (int i = 0; i < COLUMNS; i++) {
        texts[i] = (const char *)sqlite3_column_text(list->statement, i);
        if (!texts[i])
            return say(message, "a key has a column without a text", 2);
    }
    fill(out, texts);
    return 0;
}

int key_list_next(struct key_list *list, struct key_list_item *out,
                  char message[READER_MESSAGE_BYTES])
{
    return list->pg ? next_postgres(list, out, message) : next_sqlite(list, out, message);
}
