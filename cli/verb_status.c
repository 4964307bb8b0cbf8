/*
 * verb_status.c - auditrun status: how the daemon is.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/health.h"
#include "cli/message.h"
#include "cli/verb.h"

static const char help[] =
    "usage: auditrun status [OPTIONS]\n"
    "\n"
    "Shows the daemon's version, how long it has been up, its writer in the ledger, its runs,\n"
    "executors with their slots, ledger, journal, newest checkpoint, how late its loop was, and "
    "switches.\n"
    "\n" CALL_OPTION_HELP "\n"
    "Exit code: 0; 64, 69 (not reachable), 76, 77 as for auditrun run.\n"
    "\n"
    "Examples\n"
    "  auditrun status\n"
    "  auditrun status --json | jq .ledger\n";

static const struct option_row rows[] = {CALL_OPTION_ROWS};

static int act(const char *title, void *target, const struct options_rest *rest)
{
    const struct call_options *options = target;
    (void)title;
    (void)rest;
    AR_AUTO_JSON json_t *result = NULL;
    struct terminal terminal;
    int code = call_daemon(options, RPC_METHOD_STATUS, NULL, &result);
    if (code != EXIT_CODE_OK)
        return code;
    if (options->json)
        return call_print_json(result);
    terminal_open(&terminal, stdout);
    health_show(&terminal, result);
    return EXIT_CODE_OK;
}

static const struct call_options defaults;

const struct verb verb_status = {
    .name = "status",
    .summary = "show how the daemon is",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
