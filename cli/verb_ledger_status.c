/*
 * verb_ledger_status.c - auditrun ledger status: what a ledger has, and what there is to do.
 *
 * Each thing that is not as it should be is one line that says what to do about it; the exit code
 * says whether there was one, so that a monitor needs no more than that.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/show.h"
#include "cli/store.h"
#include "cli/verb.h"
#include "sinks/schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define AHEAD_LEAST_US (INT64_C(86400) * 1000000)
#define TASK_BYTES     256

static const char help[] =
    "usage: auditrun ledger status [OPTIONS]\n"
    "\n"
    "Tells which version the ledger has, how many chains and rows, and what there is to do. On\n"
    "PostgreSQL also whether roles or event triggers are missing, whether anything of the "
    "structure\n"
    "was changed since the last migration, and until when there are partitions.\n"
    "\n"
    "  --json               as one line of JSON; todo lists what there is to do\n" STORE_OPTION_HELP
    "\n"
    "Exit code: 0 good; 1 there is something to do; 2 the store failed; 64 usage; 78 bad\n"
    "configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger status\n"
    "  auditrun ledger status --json | jq -r '.todo[]'\n";

static const struct option_row rows[] = {STORE_OPTION_ROWS};

struct findings {
    struct schema_status schema;
    int64_t chains, rows; /* -1: not known */
    struct text_list todo;
};

static void findings_free(struct findings *findings)
{
    schema_status_free(&findings->schema);
    text_list_free(&findings->todo);
}

/* ---- what there is to do ------------------------------------------------------------------------ */

AR_PRINTF(2, 3) static int add_todo(struct findings *findings, const char *format, ...)
{
    char text[TASK_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return text_list_add(&findings->todo, text);
}

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int judge_partitions(struct findings *findings)
{
    int64_t until = 0;
    if (row_time_parse(findings->schema.partitions_until, &until) &&
        until - AHEAD_LEAST_US >= now_us())
        return 0;
    return add_todo(findings,
                    "the partitions end within a day or have ended: the daemon makes them "
                    "each hour, SELECT auditrun.make_partitions() does it now");
}

static int judge_guards(struct findings *findings)
{
    const struct schema_status *schema = &findings->schema;
    int rc = 0;
    for (size_t i = 0; i < schema->roles_missing.count && rc == 0; i++)
        rc = add_todo(findings,
                      "the role %s is missing: run auditrun ledger migrate as a user with "
                      "CREATEROLE",
                      schema->roles_missing.items[i]);
    for (size_t i = 0; i < schema->event_triggers_missing.count && rc == 0; i++)
        rc = add_todo(findings,
                      "the event trigger %s is missing: run auditrun ledger migrate as a "
                      "superuser",
                      schema->event_triggers_missing.items[i]);
    for (size_t i = 0; i < schema->changes.count && rc == 0; i++)
        rc = add_todo(findings,
                      "%s: ask who did that. If it is right, SELECT "
                      "auditrun_guard.seal_structure() says so",
                      schema->changes.items[i]);
    return rc;
}

static int judge(struct findings *findings)
{
    const struct schema_status *schema = &findings->schema;
    if (schema->differs)
        return add_todo(findings,
                        "its migrations are not those of this program, which must not use "
                        "it: use the program that made it");
    if (schema->version == 0)
        return add_todo(findings, "there is no ledger yet: auditrun ledger init makes one");
    if (schema->version < schema->newest)
        return add_todo(findings, "it is of an older version: auditrun ledger migrate");
    int rc = judge_guards(findings);
    return rc == 0 && schema->has_partitions ? judge_partitions(findings) : rc;
}

/* ---- looking ------------------------------------------------------------------------------------ */

/* 0, or an exit code after the complaint. */
static int count_chains(const struct store_options *options, struct findings *findings)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    struct text_list writers = {0};
    int code = store_open(options, &reader);
    if (code != EXIT_CODE_OK)
        return code;
    findings->rows = reader_estimate(reader);
    int rc = reader_writers(reader, &writers.items, &writers.count);
    if (rc != 0)
        return store_failed(reader, rc);
    findings->chains = (int64_t)writers.count;
    text_list_free(&writers);
    return EXIT_CODE_OK;
}

static int look(const struct store_options *options, struct findings *findings)
{
    char message[SCHEMA_MESSAGE_BYTES] = "";
    AR_AUTO_FREE char *url = NULL;
    int code = store_url(options, &url);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = schema_status(url, &findings->schema, message);
    if (rc < 0)
        return message_failure(rc, "cannot look at the ledger");
    if (rc == 2)
        return message_error(EXIT_CODE_USAGE, "%s", store_url_forms);
    if (rc != 0)
        return store_says("cannot look at the ledger", message);
    if (findings->schema.version == findings->schema.newest && !findings->schema.differs)
        code = count_chains(options, findings);
    if (code == EXIT_CODE_OK && judge(findings) != 0)
        code = message_failure(-ENOMEM, "cannot look at the ledger");
    return code;
}

/* ---- telling ------------------------------------------------------------------------------------ */

static json_t *list_to_json(const struct text_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < list->count; i++)
        if (json_array_append_new(array, json_string(list->items[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *partitions_to_json(const struct schema_status *schema)
{
    if (!schema->has_partitions)
        return json_null();
    return json_pack("{s:s, s:I, s:s?, s:I}", "width", schema->partition_width, "count",
                     (json_int_t)schema->partitions, "until",
                     schema->partitions_until[0] ? schema->partitions_until : NULL,
                     "rows_in_default", (json_int_t)schema->rows_in_default);
}

static int print_json(const struct findings *findings)
{
    const struct schema_status *schema = &findings->schema;
    AR_AUTO_JSON json_t *value = json_pack(
        "{s:i, s:i, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "version", schema->version, "newest",
        schema->newest, "differs", schema->differs, "chains", (json_int_t)findings->chains,
        "rows_estimate", (json_int_t)findings->rows, "partitions", partitions_to_json(schema),
        "roles_missing", list_to_json(&schema->roles_missing), "event_triggers_missing",
        list_to_json(&schema->event_triggers_missing), "changes", list_to_json(&schema->changes),
        "todo", list_to_json(&findings->todo));
    return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print the status");
}

AR_PRINTF(4, 5)
static void line(const struct terminal *terminal, const char *label, enum terminal_style style,
                 const char *format, ...)
{
    char text[TASK_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    show_line(terminal, label, text, style);
}

static void print_partitions(const struct terminal *terminal, const struct schema_status *schema)
{
    line(terminal, "partitions", TERMINAL_PLAIN, "%" PRId64 ", one a %s, until %s",
         schema->partitions, schema->partition_width,
         schema->partitions_until[0] ? schema->partitions_until : "-");
    if (schema->rows_in_default > 0)
        line(terminal, "runs_default", TERMINAL_WARN,
             "%" PRId64 " rows whose partition was not there", schema->rows_in_default);
}

static void print(const struct findings *findings)
{
    const struct schema_status *schema = &findings->schema;
    struct terminal terminal;
    terminal_open(&terminal, stdout);
    line(&terminal, "version", TERMINAL_PLAIN, "%d of %d", schema->version, schema->newest);
    if (findings->chains >= 0)
        line(&terminal, "chains", TERMINAL_PLAIN, "%" PRId64, findings->chains);
    if (findings->rows >= 0)
        line(&terminal, "rows", TERMINAL_PLAIN, "about %" PRId64, findings->rows);
    if (schema->has_partitions)
        print_partitions(&terminal, schema);
    for (size_t i = 0; i < findings->todo.count; i++)
        show_line(&terminal, "to do", findings->todo.items[i], TERMINAL_BAD);
    if (findings->todo.count == 0)
        show_line(&terminal, "to do", "nothing", TERMINAL_GOOD);
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    AR_CLEANUP(findings_free) struct findings findings = {.chains = -1, .rows = -1};
    const struct store_options *options = target;
    (void)title;
    (void)rest;
    int code = look(options, &findings);
    if (code != EXIT_CODE_OK)
        return code;
    if (options->json)
        code = print_json(&findings);
    else
        print(&findings);
    return code == EXIT_CODE_OK && findings.todo.count > 0 ? EXIT_CODE_NO : code;
}

static const struct store_options defaults;

const struct verb verb_ledger_status = {
    .group = "ledger",
    .name = "status",
    .summary = "what a ledger has, and what to do",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
