/*
 * postgres.h - a private PostgreSQL server for tests: a fresh cluster in a temporary directory, on a
 * Unix socket in it, gone with the test.
 *
 * It runs as the user postgres when the test is root (the server refuses root), and dies with the
 * process that started it. Durability against a crash of the machine is off; against a crash of the
 * server it is not.
 */
#ifndef AUDITRUN_TESTS_LIB_POSTGRES_H
#define AUDITRUN_TESTS_LIB_POSTGRES_H

#include "protocol/base.h"

struct postgres_server;

/* Makes and starts one; NULL, with the reason on the standard error, when that is not possible. */
struct postgres_server *postgres_start(void) AR_MUST_CHECK;
/* Stops it (immediately) and removes its directory; NULL is harmless. */
void postgres_free(struct postgres_server *server);

/* The ledger URL of its first database; postgres_conninfo() is the same for libpq. */
const char *postgres_url(const struct postgres_server *server);
const char *postgres_conninfo(const struct postgres_server *server);

/* Another, empty database: its URL in *url. False when it could not be made. */
#define POSTGRES_URL_BYTES 256
bool postgres_new_database(struct postgres_server *server,
                           char url[POSTGRES_URL_BYTES]) AR_MUST_CHECK;

/* As if it had crashed: no client is told, nothing is written back. */
void postgres_stop_immediate(struct postgres_server *server);
bool postgres_start_again(struct postgres_server *server) AR_MUST_CHECK;
pid_t postgres_pid(const struct postgres_server *server);

/* Runs statements in the database of the URL, as the superuser. The first value of the last result,
 * malloc'd ("" for none or null); NULL, with the reason on the standard error, on failure. */
char *postgres_sql(const char *url, const char *sql) AR_MUST_CHECK;
/* The same where only success counts. */
bool postgres_run(const char *url, const char *sql) AR_MUST_CHECK;

#endif
