/*
 * postgres_conn.h - one connection to PostgreSQL in the event loop: connects, prepares statements,
 * moves bytes, notices that it is gone, and connects again after a pause that grows.
 *
 * libpq is in non-blocking pipeline mode. Who uses it queues statements with PQsend... on
 * postgres_conn_pg() and ends them with postgres_conn_sync(); results come as events, in order.
 * Nothing here has a deadline of its own but connecting: an operation that waits too long drops the
 * connection.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_CONN_H
#define AUDITRUN_SINKS_POSTGRES_CONN_H

#include "protocol/base.h"

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
    /* An attempt to connect has failed, or the connection is gone: nothing more will come. */
    void (*lost)(void *context);
};

struct postgres_conn_plan {
    const char *conninfo;
    const struct postgres_conn_statement *statements; /* must outlive the connection */
    size_t statement_count;
    const struct postgres_conn_events *events;
    void *context;
};

/* 0 with *out owned (postgres_conn_free), -ENOMEM. Does not connect yet. */
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
/* Closes it as lost, with the event. */
void postgres_conn_fail(struct postgres_conn *conn);

bool postgres_conn_is_ready(const struct postgres_conn *conn);
/* Borrowed; only while it is ready. */
PGconn *postgres_conn_pg(const struct postgres_conn *conn);
/* Ends what was queued and starts to send it; fails the connection when that is not possible. */
void postgres_conn_sync(struct postgres_conn *conn);

/* Has the server warned since the last postgres_conn_forget_warnings()? */
bool postgres_conn_has_warned(const struct postgres_conn *conn);
void postgres_conn_forget_warnings(struct postgres_conn *conn);

#endif
