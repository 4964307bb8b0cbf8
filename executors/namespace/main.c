/*
 * main.c - auditrun-executor-namespace: runs code in Linux namespaces, for auditrund.
 *
 * Verbs: `capabilities` proves and prints the envelope, `serve` is a provider (docs/executors.md).
 * `attack NAME [N]` is what `capabilities` runs inside of its sandboxes, against them; anywhere else
 * it is refused.
 */
#include "build_config.h"
#include "executors/namespace/attack.h"
#include "executors/namespace/ids.h"
#include "executors/namespace/probe.h"
#include "executors/namespace/provider.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define NAME     "auditrun-executor-namespace"
#define MAX_SLOT 1000000
/* Above what is handed out as subordinate ids, to containers and to the users of a directory, and
 * below the ids that are negative to somebody. */
#define DEFAULT_UID_BASE  2100000000
#define DEFAULT_UID_COUNT 65536

static const char usage_text[] =
    "Usage: " NAME " [OPTION]... capabilities | serve\n"
    "Runs code in Linux namespaces. auditrund starts it; people may ask what it can do here:\n"
    "\n"
    "  capabilities      try it, print the envelope as JSON\n"
    "  serve             be a provider: control socket on descriptor 3\n"
    "\n"
    "  --languages DIR   read the languages from here (" AR_LANGUAGES_DIR ")\n"
    "  --lib DIR         modules that code may import (" AR_MODULES_DIR ")\n"
    "  --uid-base N      as root, slot S runs as uid and gid N + S of the host (2100000000)\n"
    "  --uid-count N     as root, so many ids from there on are for slots (65536)\n"
    "  --help            show this\n"
    "  --version         show the version\n"
    "\n"
    "The number of the slot, S, is in the variable AUDITRUN_SLOT (0). Started by anybody but "
    "root,\n"
    "slots have the ids that /etc/subuid and /etc/subgid give to that user; where there are none,\n"
    "code runs as that user.\n";

struct settings {
    const char *languages;
    const char *modules;
    struct idrange range; /* of host ids, as root */
    uint32_t number;      /* of the slot */
    int space;            /* user namespace with the ids of slots; -1: none */
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

/* Which limits the host enforces, as the daemon tells a provider. */
static void read_host_limits(const char *words, bool enforced[LIMIT_COUNT])
{
    char word[32];
    enum limit limit;
    for (; words && *words; words += strspn(words, " ")) {
        size_t length = strcspn(words, " ");
        (void)snprintf(word, sizeof(word), "%.*s", (int)length, words);
        if (limit_from_word(word, &limit))
            enforced[limit] = true;
        words += length;
    }
}

/* What its runs may reach, as the daemon tells a provider. False: something that we do not know. */
static bool read_reach(const char *words, unsigned *reach)
{
    static const struct {
        const char *word;
        unsigned reach;
    } known[] = {{"network", REACH_NETWORK}, {"files", REACH_FILES}};
    *reach = 0;
    for (; words && *(words += strspn(words, " "));) {
        const size_t length = strcspn(words, " ");
        size_t i = 0;
        while (i < AR_COUNT(known) &&
               (strlen(known[i].word) != length || strncmp(known[i].word, words, length) != 0))
            i++;
        if (i == AR_COUNT(known))
            return false;
        *reach |= known[i].reach;
        words += length;
    }
    return true;
}

/* The id space, as the daemon tells a provider: nothing that is executed later may have it. False: what
 * was told is none. */
static bool take_space(const char *text, int *space)
{
    uint32_t number;
    *space = -1;
    if (!text)
        return true;
    if (!read_number(text, INT_MAX, &number) || number <= STDERR_FILENO ||
        ioctl((int)number, NS_GET_NSTYPE) != CLONE_NEWUSER ||
        fcntl((int)number, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    *space = (int)number;
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

static int read_modules(const char *folder, struct modules *modules)
{
    int result = modules_read(folder, modules);
    if (result != 0)
        (void)fprintf(stderr, NAME ": cannot read the modules in %s: %s\n", folder,
                      result < 0 ? strerror(-result) : "too many, too big or no regular file");
    return result;
}

/* Who the slot is on the host; before code is run at all, also whether nobody else is it. */
static int choose_ids(const struct settings *settings, bool look_around, struct ids *ids)
{
    const char *problem = "they cannot be looked up";
    int result = ids_choose(&settings->range, settings->space, settings->number, ids, &problem);
    if (result == 0 && look_around && geteuid() == 0)
        result = idrange_is_free(&settings->range, &problem) ? 0 : 1;
    if (result != 0)
        (void)fprintf(stderr, NAME ": the ids of the slot: %s\n", problem);
    return result;
}

static int serve_or_probe(const struct settings *settings, const char *verb)
{
    struct languages languages;
    struct text_list etc;
    AR_CLEANUP(modules_free) struct modules modules = {0};
    struct slot_options options = {
        .timed = getenv("AUDITRUN_STEPS") != NULL, .etc = &etc, .modules = &modules};
    const bool serve = strcmp(verb, "serve") == 0;

    read_host_limits(getenv("AUDITRUN_HOST_LIMITS"), options.host_enforces);
    if (serve && !read_reach(getenv("AUDITRUN_REACH"), &options.reach))
        return refuse("AUDITRUN_REACH names what there is not");
    if (choose_ids(settings, !serve, &options.ids) != 0 ||
        read_modules(settings->modules, &modules) != 0 ||
        read_languages(settings->languages, &languages) != 0)
        return 1;
    int result = languages_etc(&languages, &etc);
    if (result < 0)
        (void)fprintf(stderr, NAME ": cannot read /etc: %s\n", strerror(-result));
    else
        result = (serve ? provider_serve : probe_print)(&options, &languages);
    text_list_free(&etc);
    languages_free(&languages);
    return result == 0 ? 0 : 1;
}

static int attack_code(const char *name, long granted)
{
    if (strcmp(name, "walls") == 0)
        return attack_walls((unsigned)granted);
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
    int status = serve_or_probe(settings, arguments[0]);
    /* Without the handlers of exit(): what instrumentation does there our own walls do not allow. */
    _exit(fflush(stdout) != 0 ? 1 : status);
}

/* 0, or the exit status of a command line that is wrong or has been answered. */
static int read_options(int argc, char **argv, struct settings *settings, bool *answered)
{
    static const struct option options[] = {{"languages", required_argument, NULL, 'l'},
                                            {"lib", required_argument, NULL, 'm'},
                                            {"uid-base", required_argument, NULL, 'u'},
                                            {"uid-count", required_argument, NULL, 'c'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        *answered = option == 'h' || option == 'v';
        if (option == 'l')
            settings->languages = optarg;
        else if (option == 'm')
            settings->modules = optarg;
        else if (option == 'h')
            return fputs(usage_text, stdout) < 0;
        else if (option == 'v')
            return puts(NAME " " AR_VERSION) < 0;
        else if (option != 'u' && option != 'c')
            return refuse("unknown option");
        else if (!read_number(optarg, UINT32_MAX - 1,
                              option == 'u' ? &settings->range.first : &settings->range.count))
            return refuse(option == 'u' ? "--uid-base takes a number"
                                        : "--uid-count takes a number");
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.languages = AR_LANGUAGES_DIR,
                                .modules = AR_MODULES_DIR,
                                .range = {DEFAULT_UID_BASE, DEFAULT_UID_COUNT}};
    const char *slot = getenv("AUDITRUN_SLOT");
    bool answered = false;

    if (!take_space(getenv("AUDITRUN_ID_SPACE"), &settings.space))
        return refuse("AUDITRUN_ID_SPACE is not the descriptor of a user namespace");
    if (slot && !read_number(slot, MAX_SLOT, &settings.number))
        return refuse("AUDITRUN_SLOT is not the number of a slot");
    int status = read_options(argc, argv, &settings, &answered);
    return status != 0 || answered ? status : run_verb(&settings, argv + optind);
}
