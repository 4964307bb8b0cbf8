/*
 * postgres_conn.h - one connection to PostgreSQL in the event loop: connects, prepares statements,
 * moves bytes, notices that it is gone, and connects again after a pause that grows.
 *
 * libpq is in non-blocking pipeline mode. Who uses it queues statements with PQsend... on
 * postgres_conn_pg() and ends them with postgres_conn_sync(); results come as events, in order.
 *
 * The hosts of the connection string are tried one at a time, beginning with the one that served
 * last, and each address of a host has a limit of its own (connect_timeout, or 3 s). Only after a
 * whole round comes the pause. Only a server that takes writes is taken. Nothing else here has a
 * deadline: an operation that waits too long drops the connection.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_CONN_H
#define AUDITRUN_SINKS_POSTGRES_CONN_H

#include "protocol/base.h"
#include "sinks/postgres_problem.h"

#include <libpq-fe.h>

struct event_base;
struct postgres_conn;

struct postgres_conn_statement {
    const char *name;
    const char *sql;
};

/* Called from the loop only. The connection may be dropped from within, but not freed. */
struct postgres_conn_events {
    /* Connected, and all statements are prepared. */
    void (*ready)(void *context);
    /* One result of what was sent. The result is not the callee's. */
    void (*result)(void *context, const PGresult *result);
    /* All results up to a postgres_conn_sync() have come. */
    void (*synced)(void *context);
    /* No host could be connected to, or the connection is gone: nothing more will come. */
    void (*lost)(void *context);
};

struct postgres_conn_plan {
    const char *conninfo;                             /* needed by postgres_conn_new() only */
    const struct postgres_conn_statement *statements; /* must outlive the connection */
    size_t statement_count;
    const struct postgres_conn_events *events;
    void *context;
};

/* 0 with *out owned (postgres_conn_free), -ENOMEM. Does not connect yet. A connection string that
 * libpq does not understand is found out when connecting. */
int postgres_conn_new(struct event_base *base, const struct postgres_conn_plan *plan,
                      struct postgres_conn **out) AR_MUST_CHECK;
void postgres_conn_free(struct postgres_conn *conn);

/* Connects unless it is connected, connecting, or in a pause, after which it connects by itself. */
void postgres_conn_open(struct postgres_conn *conn);
/* The same, at once: a pause ends. */
void postgres_conn_hurry(struct postgres_conn *conn);
/* Closes it, without an event; postgres_conn_open() opens it again. What was sent may still be
 * carried out by the server. */
void postgres_conn_drop(struct postgres_conn *conn);
/* Closes it as lost, with the event. When the server has said that it takes no writes or shuts down,
 * the search for the next one begins with another host. */
void postgres_conn_fail(struct postgres_conn *conn);

bool postgres_conn_is_ready(const struct postgres_conn *conn);
/* Borrowed; only while it is ready. */
PGconn *postgres_conn_pg(const struct postgres_conn *conn);
/* Ends what was queued and starts to send it; fails the connection when that is not possible. */
void postgres_conn_sync(struct postgres_conn *conn);

/* Has the server warned since the last postgres_conn_forget_warnings()? */
bool postgres_conn_has_warned(const struct postgres_conn *conn);
void postgres_conn_forget_warnings(struct postgres_conn *conn);

/* A word (see postgres_problem.h) for why there is no connection, or why the last one was lost; NULL
 * while nothing is known to be wrong. A full disk is told of until a COMMIT succeeds. */
const char *postgres_conn_problem(const struct postgres_conn *conn);
/* What the user of the connection has found out: told of when the connection fails next. */
void postgres_conn_blame(struct postgres_conn *conn, enum postgres_problem problem);

#endif
