/*
 * reader_sql.c - see reader_sql.h. Values are always bound, never part of the text.
 */
#include "sinks/reader_sql.h"

#include <inttypes.h>
#include <stdio.h>

static void add(FILE *stream, struct reader_sql *sql, const char *left, const char *place,
                const char *value)
{
    if (!value)
        return;
    (void)fprintf(stream, " %s %s ", sql->count == 0 ? "WHERE" : "AND", left);
    sql->values[sql->count++] = value;
    /* The formats are constants of the dialects. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)fprintf(stream, place, sql->count);
#pragma GCC diagnostic pop
}

static const char *time_value(int64_t us, char text[ROW_TIME_BYTES])
{
    if (us == ROW_NULL)
        return NULL;
    row_time_text(us, text);
    return text;
}

static const struct {
    const char *name, *id, *time;
} tables[] = {
    [READER_SQL_RUNS] = {"runs", "run_id", "received_at"},
    [READER_SQL_EVENTS] = {"events", "event_id", "happened_at"},
    [READER_SQL_CHECKPOINTS] = {"checkpoints", NULL, "made_at"},
};

static void add_run_conditions(FILE *stream, struct reader_sql *sql,
                               const struct reader_sql_dialect *dialect,
                               const struct reader_filter *filter)
{
    add(stream, sql, "run_id =", dialect->uuid, filter->run_id);
    add(stream, sql, "company =", dialect->text, filter->company);
    add(stream, sql, "actor =", dialect->text, filter->actor);
    add(stream, sql, "status =", dialect->status, filter->status);
    add(stream, sql, "code_sha256 =", dialect->digest, filter->code_sha256);
}

static void add_times(FILE *stream, struct reader_sql *sql,
                      const struct reader_sql_dialect *dialect, const char *column,
                      const struct reader_filter *filter)
{
    char left[32];
    (void)snprintf(left, sizeof(left), "%s >=", column);
    add(stream, sql, left, dialect->time, time_value(filter->since, sql->since));
    (void)snprintf(left, sizeof(left), "%s <", column);
    add(stream, sql, left, dialect->time, time_value(filter->until, sql->until));
}

/* As two comparisons; the first alone is what an index can be asked for. */
static void add_after(FILE *stream, struct reader_sql *sql,
                      const struct reader_sql_dialect *dialect, const struct reader_filter *filter)
{
    if (!filter->after_writer)
        return;
    (void)snprintf(sql->after_seq, sizeof(sql->after_seq), "%" PRId64, filter->after_seq);
    add(stream, sql, "writer >=", dialect->uuid, filter->after_writer);
    add(stream, sql, "(writer >", dialect->uuid, filter->after_writer);
    (void)fputs(" OR seq > ", stream);
    sql->values[sql->count++] = sql->after_seq;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)fprintf(stream, dialect->integer, sql->count);
#pragma GCC diagnostic pop
    (void)fputs(")", stream);
}

static void add_conditions(FILE *stream, struct reader_sql *sql,
                           const struct reader_sql_dialect *dialect, enum reader_sql_table table,
                           const struct reader_filter *filter)
{
    if (table == READER_SQL_RUNS)
        add_run_conditions(stream, sql, dialect, filter);
    if (table == READER_SQL_EVENTS)
        add(stream, sql, "kind =", dialect->kind, filter->kind);
    add(stream, sql, "writer =", dialect->uuid, filter->writer);
    add_times(stream, sql, dialect, tables[table].time, filter);
    add_after(stream, sql, dialect, filter);
}

static void write_rows(FILE *stream, struct reader_sql *sql, const char *names,
                       const struct reader_sql_dialect *dialect, enum reader_sql_table table,
                       const struct reader_filter *filter, enum reader_order order)
{
    bool limited = filter->limit != ROW_NULL;
    bool nested = limited && order != READER_NEWEST_FIRST;
    if (nested)
        (void)fprintf(stream, "SELECT %s FROM (", names);
    (void)fprintf(stream, "SELECT %s FROM %s%s", names, dialect->schema, tables[table].name);
    add_conditions(stream, sql, dialect, table, filter);
    if (nested || order == READER_NEWEST_FIRST)
        (void)fprintf(stream, " ORDER BY %s DESC", tables[table].id);
    if (limited)
        (void)fprintf(stream, " LIMIT %" PRId64, filter->limit);
    if (nested)
        (void)fputs(") AS newest", stream);
    if (order == READER_BY_CHAIN)
        (void)fputs(" ORDER BY writer, seq", stream);
}

static void write_checkpoints(FILE *stream, struct reader_sql *sql,
                              const struct reader_sql_dialect *dialect,
                              const struct reader_filter *filter)
{
    (void)fprintf(stream,
                  "SELECT writer, seq, row_hash, made_at, c.key_id, signature, public_key "
                  "FROM %scheckpoints AS c LEFT JOIN %scheckpoint_keys AS k ON k.key_id = c.key_id",
                  dialect->schema, dialect->schema);
    add_conditions(stream, sql, dialect, READER_SQL_CHECKPOINTS, filter);
    (void)fputs(" ORDER BY writer, seq, c.key_id", stream);
}

int reader_sql_build(const struct reader_sql_dialect *dialect, enum reader_sql_table table,
                     const struct reader_filter *filter, enum reader_order order,
                     struct reader_sql *out)
{
    size_t length;
    *out = (struct reader_sql){0};
    AR_AUTO_FREE char *names =
        row_names(table == READER_SQL_EVENTS ? &chain_event_layout : &record_layout);
    FILE *stream = names ? open_memstream(&out->text, &length) : NULL;
    if (!stream)
        return -ENOMEM;
    if (table == READER_SQL_CHECKPOINTS)
        write_checkpoints(stream, out, dialect, filter);
    else
        write_rows(stream, out, names, dialect, table, filter, order);
    if (fclose(stream) != 0) {
        reader_sql_free(out);
        return -ENOMEM;
    }
    return 0;
}

void reader_sql_free(struct reader_sql *sql)
{
    free(sql->text);
    sql->text = NULL;
}
