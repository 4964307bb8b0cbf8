/*
 * verb_ledger_init.c - auditrun ledger init: make a store ready for records.
 */
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/store.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "sinks/schema.h"

#include <string.h>

static const char help[] =
    "usage: auditrun ledger init [OPTIONS]\n"
    "\n"
    "Makes the store ready: tables, indexes, and the triggers that refuse changes. Brings an "
    "older\n"
    "ledger to this version. It may be run again: what is there stays.\n"
    "\n" STORE_OPTION_HELP "  --json               print what was done as one line of JSON\n"
    "\n"
    "Exit code: 0; 2 the store refused or failed; 64 usage; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger init\n"
    "  auditrun ledger init --ledger sqlite:/var/lib/auditrun/ledger.db\n"
    "  auditrun ledger init --ledger 'postgres:host=/run/postgresql dbname=audit'\n";

static const struct option_row rows[] = {STORE_OPTION_ROWS};

static int init(const struct store_options *options)
{
    char message[SCHEMA_MESSAGE_BYTES] = "";
    AR_AUTO_FREE char *url = NULL;
    int applied = 0;
    int code = store_url(options, &url);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = schema_init(url, &applied, message);
    if (rc < 0)
        return message_failure(rc, "cannot make the ledger ready");
    if (rc == 2)
        return message_error(EXIT_CODE_USAGE, "%s", store_url_forms);
    if (rc != 0) {
        AR_AUTO_FREE char *escaped = terminal_escape(message, strlen(message));
        return message_error(EXIT_CODE_STORE, "cannot make the ledger ready: %s",
                             escaped ? escaped : "");
    }
    if (options->json)
        (void)printf("{\"applied\":%d}\n", applied);
    else if (applied == 0)
        (void)puts("the ledger was ready already");
    else
        (void)printf("the ledger is ready (%d migration%s applied)\n", applied,
                     applied == 1 ? "" : "s");
    return EXIT_CODE_OK;
}

static int act(const char *title, void *options, const struct options_rest *rest)
{
    (void)title;
    (void)rest;
    return init(options);
}

static const struct store_options defaults;

const struct verb verb_ledger_init = {
    .group = "ledger",
    .name = "init",
    .summary = "make a store ready for records",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
