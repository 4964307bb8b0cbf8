/*
 * options.c - the daemon's command line.
 */
#include "daemon/options.h"

#include "build_config.h"

#include <getopt.h>
#include <stdio.h>

static void print_help(FILE *out)
{
    (void)fputs(
        "Usage: auditrund [--config FILE] [--check-config | --check-journal |\n"
        "                 --repair-journal]\n"
        "\n"
        "The daemon that runs code for others and records every run before it answers.\n"
        "\n"
        "  -c, --config FILE   configuration (default " AR_CONFIG_FILE ")\n"
        "      --check-config  check the configuration, say what is wrong, and exit\n"
        "      --check-journal say what is in the journal of this configuration, and whether\n"
        "                      it is sound, and exit\n"
        "      --repair-journal\n"
        "                      keep a damaged journal aside, put one with all that is\n"
        "                      whole of it in its place, say what was dropped, and exit\n"
        "  -h, --help          this text\n"
        "  -V, --version       the version\n"
        "\n"
        "It stays in the foreground and logs to standard error. SIGTERM: takes no more\n"
        "runs, waits for those that run (daemon.drain_timeout), records all, exits.\n"
        "SIGUSR1: logs what it is doing.\n"
        "\n"
        "Examples:\n"
        "  auditrund --check-config --config ./auditrun.conf\n"
        "  auditrund --config ./auditrun.conf\n"
        "\n"
        "See auditrund(8), auditrun.conf(5), auditrun(1).\n",
        out);
}

int options_parse(int argc, char **argv, struct options *out)
{
    enum { OPTION_FOREGROUND = 256, OPTION_TASK };
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"check-config", no_argument, NULL, OPTION_TASK + OPTIONS_CHECK_CONFIG},
        {"check-journal", no_argument, NULL, OPTION_TASK + OPTIONS_CHECK_JOURNAL},
        {"repair-journal", no_argument, NULL, OPTION_TASK + OPTIONS_REPAIR_JOURNAL},
        {"foreground", no_argument, NULL, OPTION_FOREGROUND}, /* it always is */
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    *out = (struct options){.config_path = AR_CONFIG_FILE};
    while ((option = getopt_long(argc, argv, "c:hV", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->config_path = optarg;
            break;
        case OPTION_TASK + OPTIONS_CHECK_CONFIG:
        case OPTION_TASK + OPTIONS_CHECK_JOURNAL:
        case OPTION_TASK + OPTIONS_REPAIR_JOURNAL:
            out->task = (enum options_task)(option - OPTION_TASK);
            break;
        case OPTION_FOREGROUND:
            break;
        case 'h':
            print_help(stdout);
            return 1;
        case 'V':
            (void)puts("auditrund " AR_VERSION);
            return 1;
        default:
            return 2;
        }
    }
    if (optind == argc)
        return 0;
    (void)fputs("auditrund: takes no arguments, see --help\n", stderr);
    return 2;
}
