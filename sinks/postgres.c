/*
 * postgres.c - the PostgreSQL sink: three lines of operations (postgres_line.h), so that none waits
 * behind another's disk: what appends, what claims and signs, what reads.
 */
#include "sinks/postgres.h"

#include "sinks/postgres_line.h"
#include "sinks/postgres_sql.h"

enum { APPENDS, CLAIMS, READS, LINE_COUNT };

struct postgres_sink {
    struct sink sink;
    struct operation_desk *desk;
    struct postgres_sql sql;
    struct postgres_line *lines[LINE_COUNT];
};

static struct postgres_sink *self(struct sink *sink)
{
    return (struct postgres_sink *)sink;
}

static void postgres_append(struct sink *sink, const struct sink_batch *batch, int deadline_ms,
                            sink_append_fn *done, void *context)
{
    postgres_line_give(self(sink)->lines[APPENDS],
                       operation_append(self(sink)->desk, batch, deadline_ms, done, context));
}

static void postgres_head(struct sink *sink, const char *writer, int deadline_ms,
                          sink_head_fn *done, void *context)
{
    postgres_line_give(self(sink)->lines[READS],
                       operation_head(self(sink)->desk, writer, deadline_ms, done, context));
}

static void postgres_find(struct sink *sink, const struct sink_key *key, int deadline_ms,
                          sink_find_fn *done, void *context)
{
    postgres_line_give(self(sink)->lines[READS],
                       operation_find(self(sink)->desk, key, deadline_ms, done, context));
}

static void postgres_claim(struct sink *sink, const char *company, const char *key,
                           const char *request_sha256, const char *run_id, int deadline_ms,
                           sink_claim_fn *done, void *context)
{
    postgres_line_give(self(sink)->lines[CLAIMS],
                       operation_claim(self(sink)->desk, company, key, request_sha256, run_id,
                                       deadline_ms, done, context));
}

static void postgres_probe(struct sink *sink, int deadline_ms, sink_probe_fn *done, void *context)
{
    postgres_line_give(self(sink)->lines[APPENDS],
                       operation_probe(self(sink)->desk, deadline_ms, done, context));
}

static void postgres_checkpoint(struct sink *sink, const struct checkpoint *checkpoint,
                                int deadline_ms, sink_done_fn *done, void *context)
{
    postgres_line_give(self(sink)->lines[CLAIMS], operation_checkpoint(self(sink)->desk, checkpoint,
                                                                       deadline_ms, done, context));
}

static void postgres_maintain(struct sink *sink, int deadline_ms, sink_done_fn *done, void *context)
{
    postgres_line_give(self(sink)->lines[READS],
                       operation_maintain(self(sink)->desk, deadline_ms, done, context));
}

static const char *postgres_problem(const struct sink *sink)
{
    const struct postgres_sink *postgres = (const struct postgres_sink *)sink;
    for (size_t i = 0; i < LINE_COUNT; i++) {
        const char *problem = postgres_line_problem(postgres->lines[i]);
        if (problem)
            return problem;
    }
    return "";
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void expired(void *context, struct operation *operation)
{
    (void)context;
    postgres_line_expire(operation);
}

static void postgres_close(struct sink *sink)
{
    struct postgres_sink *postgres = self(sink);
    for (size_t i = 0; i < LINE_COUNT; i++)
        postgres_line_free(postgres->lines[i]);
    if (postgres->desk)
        operation_desk_flush(postgres->desk);
    operation_desk_free(postgres->desk);
    postgres_sql_free(&postgres->sql);
    free(postgres);
}

static const struct sink_ops postgres_ops = {
    .name = "postgres",
    .append = postgres_append,
    .head = postgres_head,
    .find = postgres_find,
    .claim = postgres_claim,
    .probe = postgres_probe,
    .checkpoint = postgres_checkpoint,
    .maintain = postgres_maintain,
    .problem = postgres_problem,
    .close = postgres_close,
};

static int open_lines(struct postgres_sink *postgres, const char *conninfo, struct event_base *base)
{
    const struct postgres_sql *sql = &postgres->sql;
    int rc = postgres_line_new(base, conninfo, sql->appends, POSTGRES_SQL_APPENDS,
                               &postgres->lines[APPENDS]);
    if (rc == 0)
        rc = postgres_line_new(base, conninfo, sql->claims, POSTGRES_SQL_CLAIMS,
                               &postgres->lines[CLAIMS]);
    if (rc == 0)
        rc = postgres_line_new(base, conninfo, sql->reads, POSTGRES_SQL_READS,
                               &postgres->lines[READS]);
    return rc;
}

int postgres_open(const char *conninfo, struct event_base *base, struct sink **out)
{
    struct postgres_sink *postgres = calloc(1, sizeof(*postgres));
    if (!postgres)
        return -ENOMEM;
    postgres->sink.ops = &postgres_ops;
    int rc = operation_desk_new(base, expired, postgres, &postgres->desk);
    if (rc == 0)
        rc = postgres_sql_make(&postgres->sql);
    if (rc == 0)
        rc = open_lines(postgres, conninfo, base);
    if (rc < 0) {
        postgres_close(&postgres->sink);
        return rc;
    }
    *out = &postgres->sink;
    return 0;
}
