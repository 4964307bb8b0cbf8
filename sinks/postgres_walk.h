/*
 * postgres_walk.h - all rows of a PostgreSQL ledger in the order of their chains, as fast as the
 * server sends them: one COPY in binary format over runs and events, merged by the server along its
 * indexes on (writer, seq). For postgres_reader.c.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_WALK_H
#define AUDITRUN_SINKS_POSTGRES_WALK_H

#include "protocol/checkpoint.h"
#include "sinks/chain_row.h"

#include <libpq-fe.h>

/* Zeroed is empty; postgres_walk_free(). */
struct postgres_walk {
    struct chain_row row;
    bool begun; /* the header of the COPY has been read */
};

/* 0: rows are to come; the connection is busy until the end. 1: the server says no (message of the
 * connection), -EINVAL: writer is no UUID, -ENOMEM. */
int postgres_walk_begin(struct postgres_walk *walk, PGconn *pg, const char *writer) AR_MUST_CHECK;
/* 0 with *out borrowed until the next call, 1 at the end, 2 when the server failed, -ENOMEM, -EPROTO
 * when what it sends is no COPY of this form. */
int postgres_walk_next(struct postgres_walk *walk, PGconn *pg,
                       const struct chain_row **out) AR_MUST_CHECK;
/* Reads a COPY that was canceled to its end. */
void postgres_walk_drain(PGconn *pg);
void postgres_walk_free(struct postgres_walk *walk);

/* The only row of a binary result with the columns of a checkpoint (reader_sql.h). */
bool postgres_walk_checkpoint(const PGresult *result, struct checkpoint *out) AR_MUST_CHECK;

#endif
