/*
 * postgres_reader.c - reads a PostgreSQL ledger row by row: libpq's single-row mode, in the binary
 * formats, so that the memory stays flat and no setting of the server changes what is read. A walk
 * over the whole ledger is a COPY (postgres_walk.h).
 */
#include "sinks/postgres_reader.h"

#include "sinks/postgres_result.h"
#include "sinks/postgres_row.h"
#include "sinks/postgres_walk.h"
#include "sinks/reader_ops.h"
#include "sinks/reader_sql.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static const struct reader_sql_dialect dialect = {.schema = "auditrun.",
                                                  .text = "$%zu::text",
                                                  .uuid = "$%zu::uuid",
                                                  .time = "$%zu::timestamptz",
                                                  .integer = "$%zu::int8",
                                                  .digest = "decode($%zu::text, 'hex')",
                                                  .status = "$%zu::auditrun.run_status",
                                                  .kind = "$%zu::auditrun.event_kind"};

struct postgres_reader {
    struct reader reader;
    PGconn *pg;
    PGresult *row; /* of the query, single */
    bool querying; /* results are to come */
    struct postgres_walk walk;
};

static int say(struct postgres_reader *reader, int code)
{
    postgres_result_say(reader->reader.message, READER_MESSAGE_BYTES, PQerrorMessage(reader->pg));
    return code;
}

/* Stops a query that was not read to its end, without reading the rest of a big table. */
static void end_query(struct postgres_reader *reader)
{
    PGresult *result;
    if (!reader->querying)
        return;
    PGcancel *cancel = PQgetCancel(reader->pg);
    char ignored[256];
    if (cancel)
        (void)PQcancel(cancel, ignored, sizeof(ignored));
    PQfreeCancel(cancel);
    while ((result = PQgetResult(reader->pg))) {
        ExecStatusType status = PQresultStatus(result);
        PQclear(result);
        if (status == PGRES_COPY_OUT)
            postgres_walk_drain(reader->pg);
    }
    PQclear(reader->row);
    reader->row = NULL;
    reader->querying = false;
}

/* Rows of a small query, all at once: NULL when it failed. */
static PGresult *fetch(struct postgres_reader *reader, const char *sql, const char *const *values,
                       int count)
{
    end_query(reader);
    PGresult *result = PQexecParams(reader->pg, sql, count, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK)
        return result;
    PQclear(result);
    return NULL;
}

static int postgres_freeze(struct reader *base)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    AUTO_RESULT PGresult *begun =
        fetch(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, 0);
    /* A walk goes along the indexes from its first row on, and leaves no ledger of temporary files. */
    AUTO_RESULT PGresult *unsorted =
        begun ? fetch(reader, "SET LOCAL enable_sort = off", NULL, 0) : NULL;
    /* The moment that it sees is that of its first query. */
    AUTO_RESULT PGresult *first =
        unsorted ? fetch(reader, "SELECT 1 FROM auditrun.writers LIMIT 1", NULL, 0) : NULL;
    return first ? 0 : say(reader, 2);
}

static void postgres_thaw(struct reader *base)
{
    PQclear(fetch((struct postgres_reader *)base, "COMMIT", NULL, 0));
}

static int postgres_query(struct reader *base, enum reader_sql_table table,
                          const struct reader_filter *filter, enum reader_order order)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    AR_CLEANUP(reader_sql_free) struct reader_sql sql;
    end_query(reader);
    int rc = reader_sql_build(&dialect, table, filter, order, &sql);
    if (rc < 0)
        return rc;
    if (!PQsendQueryParams(reader->pg, sql.text, (int)sql.count, NULL, sql.values, NULL, NULL, 1) ||
        !PQsetSingleRowMode(reader->pg))
        return say(reader, 1);
    reader->querying = true;
    return 0;
}

/* 0: reader->row is the next one. */
static int next_row(struct postgres_reader *reader)
{
    if (!reader->querying)
        return 1;
    PQclear(reader->row);
    reader->row = PQgetResult(reader->pg);
    ExecStatusType status = PQresultStatus(reader->row);
    if (status == PGRES_SINGLE_TUPLE)
        return 0;
    int rc = status == PGRES_TUPLES_OK ? 1 : say(reader, 2);
    end_query(reader);
    return rc;
}

static int postgres_next(struct reader *base, const struct row_layout *layout, void *row)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    int rc = next_row(reader);
    if (rc != 0)
        return rc;
    rc = postgres_row_read(reader->row, 0, layout, row);
    return rc == 1 ? READER_UNREADABLE : rc;
}

static int postgres_next_checkpoint(struct reader *base, struct checkpoint *out)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    int rc = next_row(reader);
    if (rc != 0)
        return rc;
    return postgres_walk_checkpoint(reader->row, out) ? 0 : READER_UNREADABLE;
}

static int postgres_start_walk(struct reader *base, const char *writer)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    end_query(reader);
    int rc = postgres_walk_begin(&reader->walk, reader->pg, writer);
    reader->querying = rc == 0;
    return rc == 1 ? say(reader, 1) : rc;
}

static int postgres_walk_on(struct reader *base, const struct chain_row **out)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    if (!reader->querying)
        return 1;
    int rc = postgres_walk_next(&reader->walk, reader->pg, out);
    if (rc == 2)
        rc = say(reader, 2);
    if (rc != 0)
        end_query(reader);
    return rc;
}

static int postgres_head(struct reader *base, const char *writer, int64_t *seq,
                         char hash[DIGEST_HEX_BYTES])
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    AUTO_RESULT PGresult *result = fetch(
        reader, "SELECT seq, encode(hash, 'hex') FROM auditrun.writers WHERE writer = $1::uuid",
        &writer, 1);
    if (!result)
        return say(reader, 2);
    if (PQntuples(result) == 0)
        return 1;
    *seq = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    (void)snprintf(hash, DIGEST_HEX_BYTES, "%s", PQgetvalue(result, 0, 1));
    return 0;
}

/* As of the last time that the table was analyzed. */
static int64_t postgres_estimate(struct reader *base)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    AUTO_RESULT PGresult *result = fetch(reader,
                                         "SELECT sum(greatest(c.reltuples, 0))::int8 "
                                         "FROM pg_catalog.pg_class AS c WHERE c.relkind = 'r' "
                                         "AND (c.oid = 'auditrun.events'::regclass OR c.oid IN ("
                                         "SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i "
                                         "WHERE i.inhparent = 'auditrun.runs'::regclass))",
                                         NULL, 0);
    if (!result || PQntuples(result) != 1)
        return -1;
    int64_t rows = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    return rows > 0 ? rows : -1;
}

static int postgres_writers(struct reader *base, struct text_list *writers)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    AUTO_RESULT PGresult *result = fetch(reader, READER_SQL_WRITERS("auditrun."), NULL, 0);
    if (!result)
        return say(reader, 2);
    for (int i = 0; i < PQntuples(result); i++) {
        int rc = text_list_add(writers, PQgetvalue(result, i, 0));
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void postgres_close(struct reader *base)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    end_query(reader);
    postgres_walk_free(&reader->walk);
    PQfinish(reader->pg);
    free(reader);
}

static const struct reader_ops postgres_reader_ops = {
    .close = postgres_close,
    .freeze = postgres_freeze,
    .thaw = postgres_thaw,
    .query = postgres_query,
    .next = postgres_next,
    .next_checkpoint = postgres_next_checkpoint,
    .walk = postgres_start_walk,
    .walk_next = postgres_walk_on,
    .head = postgres_head,
    .estimate = postgres_estimate,
    .writers = postgres_writers,
};

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

int postgres_reader_open(const char *conninfo, struct reader **out,
                         char message[READER_MESSAGE_BYTES])
{
    const char *const names[] = {"dbname", "client_encoding", "fallback_application_name", NULL};
    const char *const values[] = {conninfo, "UTF8", "auditrun", NULL};
    struct postgres_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return -ENOMEM;
    reader->reader.ops = &postgres_reader_ops;
    reader->pg = PQconnectdbParams(names, values, 1);
    if (!reader->pg) {
        free(reader);
        return -ENOMEM;
    }
    (void)PQsetNoticeReceiver(reader->pg, ignore_notice, NULL);
    AUTO_RESULT PGresult *path =
        fetch(reader, "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)", NULL, 0);
    AUTO_RESULT PGresult *there =
        path ? fetch(reader, "SELECT 1 FROM auditrun.migrations LIMIT 1", NULL, 0) : NULL;
    if (there) {
        *out = &reader->reader;
        return 0;
    }
    (void)say(reader, 1);
    (void)snprintf(message, READER_MESSAGE_BYTES, "%s", reader->reader.message);
    postgres_close(&reader->reader);
    return 1;
}
