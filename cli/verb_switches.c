/*
 * verb_switches.c - auditrun switches: what is switched off, by whom, since when and why.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/table.h"
#include "cli/verb.h"

#include <stdio.h>

static const char help[] =
    "usage: auditrun switches [OPTIONS]\n"
    "\n"
    "Lists what is switched off: by auditrun disable, and by the configuration (enabled = no).\n"
    "\n" CALL_OPTION_HELP "\n"
    "Exit code: 0; 64, 69, 76, 77 (your client has no switches = yes) as for auditrun run.\n"
    "\n"
    "Examples\n"
    "  auditrun switches\n"
    "  auditrun switches --json\n";

static const struct option_row rows[] = {CALL_OPTION_ROWS};

static const struct table_column columns[] = {
    {"what", false, 0, 0}, {"name", false, 8, 0},  {"by", false, 0, 2},
    {"uid", true, 0, 4},   {"since", false, 0, 3}, {"why", false, 10, 1},
};

static const char *text_of(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

static int add_row(struct table *table, const json_t *item)
{
    char uid[24] = "";
    const json_t *number = json_object_get(item, "uid");
    const char *client = text_of(item, "client");
    if (json_is_integer(number))
        (void)snprintf(uid, sizeof uid, "%lld", (long long)json_integer_value(number));
    const struct table_cell cells[AR_COUNT(columns)] = {
        {text_of(item, "scope"), TERMINAL_BOLD},
        {text_of(item, "name"), TERMINAL_BOLD},
        {client ? client : text_of(item, "source"), TERMINAL_PLAIN},
        {uid, TERMINAL_PLAIN},
        {text_of(item, "since"), TERMINAL_PLAIN},
        {text_of(item, "why"), TERMINAL_PLAIN},
    };
    return table_add(table, cells);
}

static int print_table(const json_t *list)
{
    struct terminal terminal;
    AR_CLEANUP(table_cleanup) struct table *table = NULL;
    terminal_open(&terminal, stdout);
    int rc = table_new(columns, AR_COUNT(columns), &terminal, &table);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = add_row(table, json_array_get(list, i));
    if (rc < 0)
        return message_failure(rc, "cannot print the switches");
    table_flush(table);
    return EXIT_CODE_OK;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    const struct call_options *options = target;
    (void)title;
    (void)rest;
    AR_AUTO_JSON json_t *result = NULL;
    int code = call_daemon(options, RPC_METHOD_SWITCHES, NULL, &result);
    if (code != EXIT_CODE_OK)
        return code;
    if (options->json)
        return call_print_json(result);
    const json_t *list = json_object_get(result, "switches");
    if (json_array_size(list) > 0)
        return print_table(list);
    (void)puts("nothing is switched off");
    return EXIT_CODE_OK;
}

static const struct call_options defaults;

const struct verb verb_switches = {
    .name = "switches",
    .summary = "list what is switched off",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
