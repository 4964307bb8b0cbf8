/*
 * verb_disable.c - auditrun disable: nothing starts any more for a company, at an executor, in a language,
 * or at all.
 */
#include "cli/throw.h"
#include "cli/verb.h"

static const char help[] =
    "usage: auditrun disable [OPTIONS] all --why TEXT\n"
    "       auditrun disable [OPTIONS] company|executor|language NAME --why TEXT\n"
    "\n"
    "Switches execution off. From now on such a run ends as disabled, also one that waits in the\n"
    "queue, and is recorded; what runs already goes on. It stays so over restarts, until\n"
    "auditrun enable; the ledger's chain tells who did it, when, and why.\n"
    "\n" THROW_WHICH_HELP "  --now                cancel what runs there already\n" CALL_OPTION_HELP
    "\n" THROW_EXIT_HELP "\n"
    "Examples\n"
    "  auditrun disable company acme --why 'incident 42: leaks data'\n"
    "  auditrun disable language ruby --why 'CVE-2026-1234' --now\n"
    "  auditrun disable all --why 'the database moves'\n";

static const struct option_row rows[] = {
    CALL_OPTION_ROWS,
    {"why", OPTION_TEXT, offsetof(struct throw_options, why)},
    {"now", OPTION_FLAG, offsetof(struct throw_options, now)},
};

static int act(const char *title, void *options, const struct options_rest *rest)
{
    return throw_switch(title, RPC_METHOD_DISABLE, options, rest);
}

static const struct throw_options defaults;

const struct verb verb_disable = {
    .name = "disable",
    .summary = "switch execution off",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .takes_operands = true,
    .act = act,
};
