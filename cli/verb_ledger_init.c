/*
 * verb_ledger_init.c - auditrun ledger init: make a store ready for records.
 */
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/store.h"
#include "cli/verb.h"

#include <string.h>

static const char help[] =
    "usage: auditrun ledger init [OPTIONS]\n"
    "\n"
    "Makes the store ready: tables, indexes, and the triggers that refuse changes; on PostgreSQL "
    "also\n"
    "roles, partitions, and event triggers, as far as the user may make them: what is missing is\n"
    "told. Brings an older ledger to this version. It may be run again: what is there stays.\n"
    "\n"
    "  --partitions WIDTH   on PostgreSQL: a partition of the runs for each day, week or month; "
    "week\n"
    "                       in a new ledger. Given again, it is for partitions that are yet to be "
    "made\n" STORE_OPTION_HELP "  --json               print what was done as one line of JSON\n"
    "\n"
    "Exit code: 0; 2 the store refused or failed; 64 usage; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger init\n"
    "  auditrun ledger init --ledger sqlite:/var/lib/auditrun/ledger.db\n"
    "  auditrun ledger init --partitions month --ledger 'postgres:host=/run/postgresql "
    "dbname=audit'\n";

struct given {
    struct store_options store; /* first */
    const char *width;
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    {"partitions", OPTION_TEXT, offsetof(struct given, width)},
};

static int act(const char *title, void *target, const struct options_rest *rest)
{
    const struct given *given = target;
    const char *width = given->width;
    (void)rest;
    if (width && strcmp(width, "day") != 0 && strcmp(width, "week") != 0 &&
        strcmp(width, "month") != 0)
        return message_usage(title, "--partitions takes day, week or month");
    return store_make_ready(&given->store, width, true);
}

static const struct given defaults;

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
