/*
 * throw.h - what `auditrun disable` and `auditrun enable` have in common: which switch, why, and the call.
 */
#ifndef AUDITRUN_CLI_THROW_H
#define AUDITRUN_CLI_THROW_H

#include "cli/call.h"

struct throw_options {
    struct call_options call;
    const char *why;
    bool now;
};

#define THROW_WHICH_HELP                             \
    "  all                  every run\n"             \
    "  company NAME         runs for this company\n" \
    "  executor NAME        runs at this executor\n" \
    "  language NAME        runs in this language\n" \
    "\n"                                             \
    "Options:\n"                                     \
    "  --why TEXT           for the ledger, at most 200 bytes; must be given\n"

#define THROW_EXIT_HELP                                                                \
    "Exit code: 0; 64, 66 (no executor or language of that name), 69, 76, 77 (your\n"  \
    "client has no switches = yes) as for auditrun run; 2 the daemon could not keep\n" \
    "it over a restart.\n"

/* Throws the switch that the operands name and says what came of it. Returns the exit code. */
int throw_switch(const char *title, enum rpc_method method, const struct throw_options *options,
                 const struct options_rest *rest);

#endif
