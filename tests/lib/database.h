/*
 * database.h - a PostgreSQL ledger for tests that speak SQL themselves: a fresh database with the
 * schema in it, one connection as the superuser, and others as whoever a test wants to be.
 *
 * Everything that a test cannot go on without ends it.
 */
#ifndef AUDITRUN_TESTS_LIB_DATABASE_H
#define AUDITRUN_TESTS_LIB_DATABASE_H

#include "protocol/chain_event.h"
#include "protocol/record.h"
#include "tests/lib/postgres.h"
#include "tests/lib/records.h"

#include <libpq-fe.h>

struct database {
    char url[POSTGRES_URL_BYTES];
    PGconn *pg; /* as the superuser */
};

/* With the schema in it, or empty. */
void database_begin(struct database *database, struct postgres_server *server);
void database_begin_empty(struct database *database, struct postgres_server *server);
void database_end(struct database *database);
/* The same database as another user; PQfinish(). The URL of that is for schema.h. */
PGconn *database_as(const struct database *database, const char *user);
void database_url_as(const struct database *database, const char *user,
                     char url[POSTGRES_URL_BYTES + 64]);

/* Statements that must work. */
void database_run(PGconn *pg, const char *sql);
/* The same with printf's formats. */
void database_runf(PGconn *pg, const char *format, ...) AR_PRINTF(2, 3);
/* Statements that must fail for this reason: SQLSTATE, and a part of the message (NULL: any). */
void database_refused(PGconn *pg, const char *sql, const char *state, const char *message);
/* The first value of a query; malloc'd, "" for none and null. And a comparison of it. */
char *database_value(PGconn *pg, const char *sql);
void database_expect(PGconn *pg, const char *sql, const char *value);

/* One row of the layout's table, by its columns' names. */
void database_insert(PGconn *pg, const struct row_layout *layout, const void *row);
/* So many plain records more, and the head. */
void database_grow(PGconn *pg, struct records_chain *chain, size_t count);
/* One event more, and the head. detail: JSON text.. */
void database_event(PGconn *pg, struct records_chain *chain, enum event_kind kind,
                    const char *detail, int64_t happened_at);
void database_head(PGconn *pg, const struct records_chain *chain);

/* From here on the guards of this database are out of the way: what only a superuser can do. */
void database_open_guards(PGconn *pg);

#endif
