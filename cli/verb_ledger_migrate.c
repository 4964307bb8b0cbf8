/*
 * verb_ledger_migrate.c - auditrun ledger migrate: bring a ledger that is there to this version.
 *
 * The same as init, which would make an absent one too: a wrong URL is a complaint here.
 */
#include "cli/exit_code.h"
#include "cli/store.h"
#include "cli/verb.h"

static const char help[] =
    "usage: auditrun ledger migrate [OPTIONS]\n"
    "\n"
    "Brings a ledger that is there to this version, in one transaction, and makes what is missing "
    "of\n"
    "roles, partitions and event triggers. Harmless when there is nothing to do. A ledger that is "
    "not\n"
    "there is not made: auditrun ledger init does that.\n"
    "\n" STORE_OPTION_HELP "  --json               print what was done as one line of JSON\n"
    "\n"
    "Exit code: 0; 2 there is no ledger, or the store refused or failed; 64 usage; 78 bad\n"
    "configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger migrate\n"
    "  auditrun ledger migrate --ledger 'postgres:host=/run/postgresql dbname=audit "
    "user=postgres'\n";

static const struct option_row rows[] = {STORE_OPTION_ROWS};

static int act(const char *title, void *options, const struct options_rest *rest)
{
    (void)title;
    (void)rest;
    return store_make_ready(options, NULL, false);
}

static const struct store_options defaults;

const struct verb verb_ledger_migrate = {
    .group = "ledger",
    .name = "migrate",
    .summary = "bring a ledger to this version",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
