/*
 * postgres.h - a private PostgreSQL server for tests: a fresh cluster in a temporary directory, on a
 * Unix socket in it, gone with the test.
 *
 * It runs as the user postgres when the test is root (the server refuses root), and dies with the
 * process that started it. Faults are for real: processes are killed and stopped, a disk is full, a
 * primary is gone. Durability against a crash of the machine is off; against a crash of the
 * server it is not.
 */
#ifndef AUDITRUN_TESTS_LIB_POSTGRES_H
#define AUDITRUN_TESTS_LIB_POSTGRES_H

#include "protocol/base.h"

struct postgres_server;

#define POSTGRES_SUPERUSER "tester" /* of every server that is made here */

/* What a server may have beyond a Unix socket for everybody on it. Zero: nothing of it. */
struct postgres_options {
    bool tcp;             /* also on 127.0.0.1, at postgres_port() */
    const char *settings; /* lines of postgresql.conf */
    const char *hba;      /* pg_hba.conf, for who is not on the Unix socket */
    size_t disk_bytes;    /* its data is on a disk of its own, so large; see postgres_fill_disk() */
};

/* Makes and starts one; NULL, with the reason on the standard error, when that is not possible. */
struct postgres_server *postgres_start(void) AR_MUST_CHECK;
struct postgres_server *postgres_start_with(const struct postgres_options *options) AR_MUST_CHECK;
/* The same as a copy of another server, which it follows as a standby, by the name with which it can
 * be named in synchronous_standby_names. */
struct postgres_server *postgres_start_standby(const struct postgres_server *primary,
                                               const char *name) AR_MUST_CHECK;
/* Stops it (immediately) and removes its directory; NULL is harmless. */
void postgres_free(struct postgres_server *server);

/* The ledger URL of its first database; postgres_conninfo() is the same for libpq. */
const char *postgres_url(const struct postgres_server *server);
const char *postgres_conninfo(const struct postgres_server *server);

/* Another, empty database: its URL in *url. False when it could not be made. */
#define POSTGRES_URL_BYTES 256
bool postgres_new_database(struct postgres_server *server,
                           char url[POSTGRES_URL_BYTES]) AR_MUST_CHECK;

/* The same with a ledger in it: a copy of one that was made ready once, which is quicker. */
bool postgres_new_ledger(struct postgres_server *server,
                         char url[POSTGRES_URL_BYTES]) AR_MUST_CHECK;

/* Its directory, in which the socket is; that socket; the port, which is in the socket's name too. */
const char *postgres_folder(const struct postgres_server *server);
#define POSTGRES_PATH_BYTES 160
void postgres_socket(const struct postgres_server *server, char path[POSTGRES_PATH_BYTES]);
int postgres_port(const struct postgres_server *server);

/* The next three are for the process that started the server: only that one can reap it.
 *
 * Stops it at once: no client is told, nothing is written back. */
void postgres_stop_immediate(struct postgres_server *server);
/* kill -9 of the postmaster alone: its backends find out by themselves. */
void postgres_kill(struct postgres_server *server);
/* After either; waits until it serves (a standby: reads). */
bool postgres_start_again(struct postgres_server *server) AR_MUST_CHECK;
pid_t postgres_pid(const struct postgres_server *server);

/* Sends a signal to the backends of the URL's database with this application_name, and returns how
 * many there were. */
size_t postgres_signal_backends(const char *url, const char *application, int number);

/* Makes the stopped server a standby of another one that was its own, with a fresh copy of it. */
bool postgres_follow(struct postgres_server *server, const struct postgres_server *primary,
                     const char *name) AR_MUST_CHECK;
/* Makes a standby a primary; waits until it takes writes. */
bool postgres_promote(struct postgres_server *server) AR_MUST_CHECK;

/* Dumps the URL's database into the server's folder; and puts what was dumped in its place, at once, for
 * whoever connects to it after that. */
bool postgres_dump(const struct postgres_server *server, const char *url) AR_MUST_CHECK;
bool postgres_restore(const struct postgres_server *server, const char *url) AR_MUST_CHECK;

/* Can this process make disks for servers? It needs the rights to mount. */
bool postgres_has_disks(void);
/* Takes what is left of the disk, and gives it back. */
bool postgres_fill_disk(struct postgres_server *server) AR_MUST_CHECK;
void postgres_free_disk(struct postgres_server *server);

/* Runs statements in the database of the URL, as the superuser. The first value of the last result,
 * malloc'd ("" for none or null); NULL, with the reason on the standard error, on failure. */
char *postgres_sql(const char *url, const char *sql) AR_MUST_CHECK;
/* The same where only success counts. */
bool postgres_run(const char *url, const char *sql) AR_MUST_CHECK;

#endif
