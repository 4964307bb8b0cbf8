/*
 * verb.h - what a verb of the command line is, and the list of them.
 *
 * A verb is one file, verb_NAME.c, that exports one constant: its words, its help, its options as a
 * table, and what it does. main.c finds it by its words; verb_call() reads the command line into the
 * verb's own struct, answers --help and complains about what is wrong, so that a verb begins with
 * options that are of their form.
 */
#ifndef AUDITRUN_CLI_VERB_H
#define AUDITRUN_CLI_VERB_H

#include "cli/options.h"

struct verb {
    const char *group;   /* first word of a two-word verb ("ledger"), or NULL */
    const char *name;    /* its word */
    const char *summary; /* half a line for the list of verbs */
    const char *help;    /* the whole page for --help, with examples */
    const struct option_row *rows;
    size_t row_count;
    const void *defaults; /* its options where nothing is given; options_size bytes */
    size_t options_size;
    bool takes_operands; /* false: words behind the options are a usage error */
    /* title is "auditrun WORDS", for message_usage(). options and rest are the verb's own for the
     * time of the call; lists in them are freed by the caller. Returns the exit code of the
     * program (exit_code.h). */
    int (*act)(const char *title, void *options, const struct options_rest *rest);
};

/* Reads the command line (argv[0] is the title) and acts. Returns the exit code of the program. */
int verb_call(const struct verb *verb, int argc, char **argv);

extern const struct verb verb_run;
extern const struct verb verb_cancel;
extern const struct verb verb_record;
extern const struct verb verb_executors;
extern const struct verb verb_status;
extern const struct verb verb_top;
extern const struct verb verb_disable;
extern const struct verb verb_enable;
extern const struct verb verb_switches;
extern const struct verb verb_ledger_init;
extern const struct verb verb_ledger_migrate;
extern const struct verb verb_ledger_status;
extern const struct verb verb_ledger_list;
extern const struct verb verb_ledger_show;
extern const struct verb verb_ledger_events;
extern const struct verb verb_ledger_checkpoints;
extern const struct verb verb_ledger_export;
extern const struct verb verb_ledger_import;
extern const struct verb verb_ledger_retire;
extern const struct verb verb_ledger_keygen;
extern const struct verb verb_verify;

#endif
