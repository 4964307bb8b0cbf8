/*
 * verb_enable.c - auditrun enable: takes back what auditrun disable did.
 */
#include "cli/throw.h"
#include "cli/verb.h"

static const char help[] =
    "usage: auditrun enable [OPTIONS] all --why TEXT\n"
    "       auditrun enable [OPTIONS] company|executor|language NAME --why TEXT\n"
    "\n"
    "Takes back what auditrun disable switched off. What the configuration switches off\n"
    "(enabled = no) stays off. auditrun switches lists both.\n"
    "\n" THROW_WHICH_HELP CALL_OPTION_HELP "\n" THROW_EXIT_HELP "\n"
    "Example\n"
    "  auditrun enable company acme --why 'incident 42 is closed'\n";

static const struct option_row rows[] = {
    CALL_OPTION_ROWS,
    {"why", OPTION_TEXT, offsetof(struct throw_options, why)},
};

static int act(const char *title, void *options, const struct options_rest *rest)
{
    return throw_switch(title, RPC_METHOD_ENABLE, options, rest);
}

static const struct throw_options defaults;

const struct verb verb_enable = {
    .name = "enable",
    .summary = "switch execution on again",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .takes_operands = true,
    .act = act,
};
