/*
 * line.c - see line.h.
 */
#include "tests/lib/line.h"

#include "tests/lib/ledger.h"
#include "tests/lib/processes.h"

#include <check.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void ready(void *context)
{
    struct line *line = context;
    line->is_ready = true;
    line->done = true;
}

static void lost(void *context)
{
    struct line *line = context;
    line->is_ready = false;
    line->lost++;
    line->done = true;
}

static void result(void *context, const PGresult *result)
{
    struct line *line = context;
    if (PQntuples(result) == 1)
        (void)snprintf(line->value, sizeof(line->value), "%s", PQgetvalue(result, 0, 0));
}

static void synced(void *context)
{
    ((struct line *)context)->done = true;
}

void line_open(struct line *line, const char *conninfo)
{
    static const struct postgres_conn_statement statements[] = {{"one", "SELECT 1"}};
    static const struct postgres_conn_events events = {
        .ready = ready, .result = result, .synced = synced, .lost = lost};
    const struct postgres_conn_plan plan = {.conninfo = conninfo,
                                            .statements = statements,
                                            .statement_count = 1,
                                            .events = &events,
                                            .context = line};
    *line = (struct line){.base = event_base_new()};
    ck_assert_ptr_nonnull(line->base);
    ck_assert_int_eq(postgres_conn_new(line->base, &plan, &line->conn), 0);
    ck_assert_ptr_null(postgres_conn_problem(line->conn));
    postgres_conn_open(line->conn);
}

void line_close(struct line *line)
{
    postgres_conn_free(line->conn);
    event_base_free(line->base);
}

void line_wait(struct line *line)
{
    ledger_wait(line->base, &line->done);
    line->done = false;
}

const char *line_ask(struct line *line, const char *sql)
{
    ck_assert(PQsendQueryParams(postgres_conn_pg(line->conn), sql, 0, NULL, NULL, NULL, NULL, 0));
    postgres_conn_sync(line->conn);
    line_wait(line);
    return line->value;
}

char *line_text(const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    ck_assert_int_gt(vasprintf(&text, format, list), 0);
    va_end(list);
    return text;
}

int64_t line_expect_ready(char *conninfo)
{
    struct line line;
    int64_t begin = processes_now_ms();
    line_open(&line, conninfo);
    line_wait(&line);
    int64_t took = processes_now_ms() - begin;
    ck_assert_msg(line.is_ready, "%s: %s", conninfo, postgres_conn_problem(line.conn));
    ck_assert_ptr_null(postgres_conn_problem(line.conn));
    ck_assert_str_eq(line_ask(&line, "SELECT 5"), "5");
    line_close(&line);
    free(conninfo);
    return took;
}

int64_t line_expect_problem(char *conninfo, const char *problem)
{
    struct line line;
    int64_t begin = processes_now_ms();
    line_open(&line, conninfo);
    line_wait(&line);
    int64_t took = processes_now_ms() - begin;
    ck_assert_msg(!line.is_ready, "%s", conninfo);
    ck_assert_msg(strcmp(postgres_conn_problem(line.conn), problem) == 0, "%s: %s, not %s",
                  conninfo, postgres_conn_problem(line.conn), problem);
    line_close(&line);
    free(conninfo);
    return took;
}
