/*
 * activity.c - see activity.h. Company and actor are what clients have called them: the table escapes
 * its cells.
 */
#include "cli/activity.h"

#include "cli/show.h"
#include "cli/table.h"

#include <inttypes.h>

static const struct table_column running_columns[] = {
    {"RUN", false, 0, 0},      {"COMPANY", false, 8, 0},  {"ACTOR", false, 6, 4},
    {"LANGUAGE", false, 6, 3}, {"EXECUTOR", false, 6, 2}, {"CLIENT", false, 6, 5},
    {"STATE", false, 0, 0},    {"FOR", true, 0, 0},
};

static const struct table_column recent_columns[] = {
    {"RUN", false, 0, 0},    {"COMPANY", false, 8, 0}, {"STATUS", false, 0, 0},
    {"REASON", false, 8, 1}, {"WALL", true, 0, 0},     {"AGO", true, 0, 2},
};

static const char *text_of(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* "-" for null. */
static const char *duration_of(const json_t *object, const char *member, int64_t factor,
                               char out[SHOW_TEXT_BYTES])
{
    const json_t *value = json_object_get(object, member);
    int64_t us;
    if (!json_is_integer(value))
        return "-";
    return show_duration(base_mul((int64_t)json_integer_value(value), factor, &us) ? us : -1, out);
}

static int add_running(struct table *table, const json_t *run)
{
    char age[SHOW_TEXT_BYTES];
    const struct table_cell cells[AR_COUNT(running_columns)] = {
        {text_of(run, "run_id"), TERMINAL_PLAIN},
        {text_of(run, "company"), TERMINAL_PLAIN},
        {text_of(run, "actor"), TERMINAL_PLAIN},
        {text_of(run, "language"), TERMINAL_PLAIN},
        {text_of(run, "executor"), TERMINAL_PLAIN},
        {text_of(run, "client"), TERMINAL_PLAIN},
        {text_of(run, "state"), TERMINAL_PLAIN},
        {duration_of(run, "age_ms", 1000, age), TERMINAL_PLAIN},
    };
    return table_add(table, cells);
}

static int add_recent(struct table *table, const json_t *run)
{
    char wall[SHOW_TEXT_BYTES], ago[SHOW_TEXT_BYTES];
    const char *word = text_of(run, "status");
    enum status status = STATUS_NONE;
    if (!word || !status_from_word(word, &status))
        status = STATUS_NONE;
    const struct table_cell cells[AR_COUNT(recent_columns)] = {
        {text_of(run, "run_id"), TERMINAL_PLAIN},
        {text_of(run, "company"), TERMINAL_PLAIN},
        {word, show_status_style(status)},
        {text_of(run, "reason"), TERMINAL_PLAIN},
        {duration_of(run, "wall_us", 1, wall), TERMINAL_PLAIN},
        {duration_of(run, "ago_ms", 1000, ago), TERMINAL_DIM},
    };
    return table_add(table, cells);
}

static int show_list(const struct terminal *terminal, const struct table_column *columns,
                     size_t count, const json_t *list, size_t most,
                     int (*add)(struct table *table, const json_t *run))
{
    AR_CLEANUP(table_cleanup) struct table *table = NULL;
    int rc = table_new(columns, count, terminal, &table);
    for (size_t i = 0; rc == 0 && i < json_array_size(list) && i < most; i++)
        rc = add(table, json_array_get(list, i));
    if (rc == 0)
        table_flush(table);
    return rc;
}

int activity_show(const struct terminal *terminal, const json_t *top, size_t most_running,
                  size_t most_recent)
{
    const json_t *running = json_object_get(top, "running");
    const json_t *recent = json_object_get(top, "recent");
    size_t count = json_array_size(running), shown = count < most_running ? count : most_running;
    int64_t more = (int64_t)(count - shown) + json_integer_value(json_object_get(top, "more"));
    int rc = show_list(terminal, running_columns, AR_COUNT(running_columns), running, shown,
                       add_running);
    if (rc < 0)
        return rc;
    if (more > 0)
        (void)fprintf(terminal->stream, "and %" PRId64 " more\n", more);
    (void)fputc('\n', terminal->stream);
    return show_list(terminal, recent_columns, AR_COUNT(recent_columns), recent, most_recent,
                     add_recent);
}
