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

static void add_conditions(FILE *stream, struct reader_sql *sql,
                           const struct reader_sql_dialect *dialect,
                           const struct reader_filter *filter)
{
    add(stream, sql, "run_id =", dialect->uuid, filter->run_id);
    add(stream, sql, "company =", dialect->text, filter->company);
    add(stream, sql, "actor =", dialect->text, filter->actor);
    add(stream, sql, "status =", dialect->text, filter->status);
    add(stream, sql, "code_sha256 =", dialect->text, filter->code_sha256);
    add(stream, sql, "writer =", dialect->uuid, filter->writer);
    add(stream, sql, "received_at >=", dialect->time, time_value(filter->since, sql->since));
    add(stream, sql, "received_at <", dialect->time, time_value(filter->until, sql->until));
}

static void write_select(FILE *stream, struct reader_sql *sql, const char *names,
                         const struct reader_sql_dialect *dialect,
                         const struct reader_filter *filter, enum reader_order order)
{
    static const char *const orders[] = {
        [READER_NEWEST_FIRST] = " ORDER BY run_id DESC",
        [READER_BY_CHAIN] = " ORDER BY writer, seq",
    };
    bool limited = filter->limit != ROW_NULL;
    bool nested = limited && order != READER_NEWEST_FIRST;
    if (nested)
        (void)fprintf(stream, "SELECT %s FROM (", names);
    (void)fprintf(stream, "SELECT %s FROM %s", names, dialect->table);
    add_conditions(stream, sql, dialect, filter);
    (void)fputs(orders[nested ? READER_NEWEST_FIRST : order], stream);
    if (limited)
        (void)fprintf(stream, " LIMIT %" PRId64, filter->limit);
    if (nested)
        (void)fprintf(stream, ") AS newest%s", orders[order]);
}

int reader_sql_build(const struct reader_sql_dialect *dialect, const struct reader_filter *filter,
                     enum reader_order order, struct reader_sql *out)
{
    size_t length;
    *out = (struct reader_sql){0};
    AR_AUTO_FREE char *names = row_names(&record_layout);
    FILE *stream = names ? open_memstream(&out->text, &length) : NULL;
    if (!stream)
        return -ENOMEM;
    write_select(stream, out, names, dialect, filter, order);
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
