/*
 * verb_cancel.c - auditrun cancel: end a run that this client started.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/verb.h"
#include "protocol/uuid7.h"

#include <stdio.h>

static const char help[] =
    "usage: auditrun cancel [OPTIONS] RUN_ID\n"
    "\n"
    "Asks the daemon to end a run. Only the client (by its uid) that started it may. The run ends\n"
    "with status cancelled and is recorded like every other.\n"
    "\n" CALL_OPTION_HELP "\n"
    "Exit code: 0 the run was cancelled, 1 it had ended before; 64, 66 (not found), 69, 76, 77 as "
    "for\n"
    "auditrun run.\n"
    "\n"
    "Example\n"
    "  auditrun cancel 01937a5e-8c4f-7b21-9d3e-5f60718293a4\n";

static const struct option_row rows[] = {CALL_OPTION_ROWS};

static int cancel(const struct call_options *options, const char *run_id)
{
    AR_AUTO_JSON json_t *params = json_object();
    AR_AUTO_JSON json_t *result = NULL;
    if (json_object_set_new(params, "run_id", json_string(run_id)) != 0)
        return message_failure(-ENOMEM, "cannot build the request");
    int code = call_daemon(options, RPC_METHOD_CANCEL, params, &result);
    if (code != EXIT_CODE_OK)
        return code;
    bool cancelled = json_is_true(json_object_get(result, "cancelled"));
    if (options->json)
        code = call_print_json(result);
    else
        (void)puts(cancelled ? "cancelled" : "not cancelled: the run had ended before");
    return code == EXIT_CODE_OK && !cancelled ? EXIT_CODE_NO : code;
}

static int act(const char *title, void *options, const struct options_rest *rest)
{
    if (rest->operands.count != 1 || rest->behind.count > 0)
        return message_usage(title, "which run? Name one RUN_ID");
    if (!uuid7_is_valid(rest->operands.items[0]))
        return message_usage(title, "a RUN_ID is a UUID of version 7 in lower case");
    return cancel(options, rest->operands.items[0]);
}

static const struct call_options defaults;

const struct verb verb_cancel = {
    .name = "cancel",
    .summary = "end a run that you started",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .takes_operands = true,
    .act = act,
};
