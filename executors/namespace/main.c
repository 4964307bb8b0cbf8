/*
 * main.c - auditrun-executor-namespace: runs code in Linux namespaces, for auditrund.
 *
 * Verbs: `capabilities` proves and prints the envelope, `serve` is a provider (docs/executors.md).
 * `attack NAME [N]` is what `capabilities` runs inside of its sandboxes, against them; anywhere else
 * it is refused.
 */
#include "build_config.h"
#include "executors/namespace/attack.h"
#include "executors/namespace/probe.h"
#include "executors/namespace/provider.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define NAME             "auditrun-executor-namespace"
#define DEFAULT_UID_BASE 200000
#define MAX_SLOT         1000000

static const char usage_text[] =
    "Usage: " NAME " [OPTION]... capabilities | serve\n"
    "Runs code in Linux namespaces. auditrund starts it; people may ask what it can do here:\n"
    "\n"
    "  capabilities      try it, print the envelope as JSON\n"
    "  serve             be a provider: control socket on descriptor 3\n"
    "\n"
    "  --languages DIR   read the languages from here (" AR_LANGUAGES_DIR ")\n"
    "  --uid-base N      as root, slot S runs as uid and gid N + S of the host (200000)\n"
    "  --help            show this\n"
    "  --version         show the version\n"
    "\n"
    "The number of the slot, S, is in the variable AUDITRUN_SLOT (0). Started by anybody but "
    "root,\n"
    "code runs as that user on the host, in a user namespace of its own.\n";

struct settings {
    const char *languages;
    struct slot_options slot;
};

static int refuse(const char *what)
{
    (void)fprintf(stderr, NAME ": %s (--help shows the usage)\n", what);
    return 2;
}

/* A whole decimal number up to max. */
static bool read_number(const char *text, unsigned long max, uint32_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > max)
        return false;
    *out = (uint32_t)value;
    return true;
}

static int read_languages(const char *directory, struct languages *languages)
{
    struct languages_fault fault;
    int result = languages_read(directory, languages, &fault);
    if (result < 0)
        (void)fprintf(stderr, NAME ": cannot read %s: %s\n", directory, strerror(-result));
    else if (result > 0)
        (void)fprintf(stderr, NAME ": %s/%s:%d: %s\n", directory, fault.file, fault.line,
                      fault.problem);
    return result;
}

static int serve_or_probe(const struct settings *settings, const char *verb)
{
    struct languages languages;
    int (*run)(const struct slot_options *, const struct languages *) =
        strcmp(verb, "serve") == 0 ? provider_serve : probe_print;

    if (read_languages(settings->languages, &languages) != 0)
        return 1;
    int result = run(&settings->slot, &languages);
    languages_free(&languages);
    return result == 0 ? 0 : 1;
}

static int attack_code(const char *name, long granted)
{
    if (strcmp(name, "walls") == 0)
        return attack_walls();
    if (strcmp(name, "processes") == 0)
        return attack_processes(granted);
    if (strcmp(name, "open_files") == 0)
        return attack_open_files(granted);
    if (strcmp(name, "scratch") == 0)
        return attack_scratch(granted);
    if (strcmp(name, "processor") == 0)
        return attack_processor();
    return refuse("there is no such attack");
}

static int attack(char **arguments)
{
    if (getpid() != 2 || access("/etc/shadow", F_OK) == 0)
        return refuse("attack is only for the inside of a sandbox");
    if (!arguments[0] || !arguments[1])
        return refuse("attack takes a name and a number");
    /* Without the handlers of exit(): what instrumentation does there the sandbox does not allow. */
    _exit(attack_code(arguments[0], strtol(arguments[1], NULL, 10)));
}

static int run_verb(const struct settings *settings, char **arguments)
{
    if (!arguments[0])
        return refuse("a verb is missing");
    if (strcmp(arguments[0], "attack") == 0)
        return attack(arguments + 1);
    if (strcmp(arguments[0], "serve") != 0 && strcmp(arguments[0], "capabilities") != 0)
        return refuse("there is no such verb");
    if (arguments[1])
        return refuse("a verb takes no arguments");
    return serve_or_probe(settings, arguments[0]);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"languages", required_argument, NULL, 'l'},
                                            {"uid-base", required_argument, NULL, 'u'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    struct settings settings = {.languages = AR_LANGUAGES_DIR,
                                .slot = {.uid_base = DEFAULT_UID_BASE}};
    const char *slot = getenv("AUDITRUN_SLOT");
    int option;

    if (slot && !read_number(slot, MAX_SLOT, &settings.slot.number))
        return refuse("AUDITRUN_SLOT is not the number of a slot");
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'l')
            settings.languages = optarg;
        else if (option == 'u' && read_number(optarg, UINT32_MAX - 1, &settings.slot.uid_base))
            continue;
        else if (option == 'h')
            return fputs(usage_text, stdout) < 0;
        else if (option == 'v')
            return puts(NAME " " AR_VERSION) < 0;
        else
            return refuse(option == 'u' ? "--uid-base takes a number" : "unknown option");
    }
    return run_verb(&settings, argv + optind);
}
