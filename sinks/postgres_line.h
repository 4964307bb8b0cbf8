/*
 * postgres_line.h - a line of operations on a connection of its own, in the event loop.
 *
 * One thing at a time is asked (postgres_ask.h), in the order of coming, except that a probe goes
 * first: it is to tell how things are now. A batch takes two pieces: everything up to the end of the
 * transaction, and, only when that went well, COMMIT alone. So a batch whose deadline passes, or whose
 * connection dies, before COMMIT was sent is certainly not stored; after that it is unknown until the
 * command tag COMMIT comes, without a warning.
 *
 * A connection that was left in a state that is not known is dropped, never mended. The server may
 * still carry out what it was sent; the compare and set of the head lets only one of two attempts win,
 * in whatever order they arrive.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_LINE_H
#define AUDITRUN_SINKS_POSTGRES_LINE_H

#include "sinks/operation.h"
#include "sinks/postgres_conn.h"

struct postgres_line;

/* 0 with *out owned (postgres_line_free), -ENOMEM. The statements must outlive it. */
int postgres_line_new(struct event_base *base, const char *conninfo,
                      const struct postgres_conn_statement *statements, size_t count,
                      struct postgres_line **out) AR_MUST_CHECK;
/* Finishes all operations that are in it. */
void postgres_line_free(struct postgres_line *line);

/* Takes an operation over; operation->place is the line from now on. */
void postgres_line_give(struct postgres_line *line, struct operation *operation);
/* The deadline of an operation in the line has passed: it is finished. */
void postgres_line_expire(struct operation *operation);
/* As postgres_conn_problem(). */
const char *postgres_line_problem(const struct postgres_line *line);

#endif
