/*
 * main.c - auditrun, the command line: finds the verb and hands the rest of the line to it.
 *
 * Verbs have one word (run) or two (ledger list). The list below is the list that --help prints.
 */
#include "build_config.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/terminal.h"
#include "cli/verb.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#define TITLE_BYTES 64

static const struct verb *const verbs[] = {
    &verb_run,           &verb_executors,     &verb_status,         &verb_top,
    &verb_record,        &verb_cancel,        &verb_disable,        &verb_enable,
    &verb_switches,      &verb_ledger_init,   &verb_ledger_migrate, &verb_ledger_status,
    &verb_ledger_list,   &verb_ledger_show,   &verb_ledger_events,  &verb_ledger_checkpoints,
    &verb_ledger_export, &verb_ledger_import, &verb_ledger_retire,  &verb_ledger_keygen,
    &verb_verify,
};

static void print_verbs(FILE *stream, const char *group)
{
    for (size_t i = 0; i < AR_COUNT(verbs); i++) {
        const struct verb *verb = verbs[i];
        if (group && (!verb->group || strcmp(verb->group, group) != 0))
            continue;
        int printed = fprintf(stream, "  %s%s%s", verb->group ? verb->group : "",
                              verb->group ? " " : "", verb->name);
        (void)fprintf(stream, "%*s%s\n", printed < 22 ? 22 - printed : 1, "", verb->summary);
    }
}

static int print_help(void)
{
    (void)puts(
        "usage: auditrun VERB [OPTIONS] ...\n"
        "\n"
        "Runs code for somebody in a sandbox; every run, also a refused one, leaves one row in\n"
        "the ledger.\n");
    print_verbs(stdout, NULL);
    (void)puts("\n"
               "auditrun VERB --help tells about each, with examples. auditrun --version\n"
               "Environment: AUDITRUN_COMPANY, AUDITRUN_ACTOR, AUDITRUN_PURPOSE, AUDITRUN_SOCKET,\n"
               "AUDITRUN_CONFIG, NO_COLOR. Installed configuration: " AR_CONFIG_FILE "\n"
               "\n"
               "Example\n"
               "  auditrun run --company acme --actor ana --purpose 'monthly report' report.py");
    return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_OUTPUT;
}

static bool is_verb(const struct verb *verb, int argc, char **argv, int *words)
{
    *words = verb->group ? 2 : 1;
    if (argc <= *words)
        return false;
    if (verb->group && strcmp(argv[1], verb->group) != 0)
        return false;
    return strcmp(argv[*words], verb->name) == 0;
}

static bool is_group(const char *word)
{
    for (size_t i = 0; i < AR_COUNT(verbs); i++)
        if (verbs[i]->group && strcmp(verbs[i]->group, word) == 0)
            return true;
    return false;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* argv[1] is the first word of two, and what follows is not the second. */
static int unknown_in_group(int argc, char **argv)
{
    bool asked = argc > 2 && asks_for_help(argv[2]);
    (void)fprintf(asked ? stdout : stderr, "usage: auditrun %s VERB [OPTIONS] ...\n\n", argv[1]);
    print_verbs(asked ? stdout : stderr, argv[1]);
    return asked ? EXIT_CODE_OK : EXIT_CODE_USAGE;
}

static int unknown(int argc, char **argv)
{
    if (argc > 1 && is_group(argv[1]))
        return unknown_in_group(argc, argv);
    if (argc < 2)
        return message_usage("auditrun", "which verb?");
    AR_AUTO_FREE char *word = terminal_escape(argv[1], strlen(argv[1]));
    return message_usage("auditrun", "there is no verb or option %s", word ? word : "");
}

static int dispatch(int argc, char **argv)
{
    char title[TITLE_BYTES];
    for (size_t i = 0; i < AR_COUNT(verbs); i++) {
        int words = 0;
        if (!is_verb(verbs[i], argc, argv, &words))
            continue;
        (void)snprintf(title, sizeof(title), "auditrun %s%s%s",
                       verbs[i]->group ? verbs[i]->group : "", verbs[i]->group ? " " : "",
                       verbs[i]->name);
        argv[words] = title; /* getopt_long() begins its complaints with it */
        return verb_call(verbs[i], argc - words, argv + words);
    }
    return unknown(argc, argv);
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_CTYPE, "");
    if (argc > 1 && asks_for_help(argv[1]))
        return print_help();
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return puts("auditrun " AR_VERSION) < 0 ? EXIT_CODE_OUTPUT : EXIT_CODE_OK;
    return dispatch(argc, argv);
}
