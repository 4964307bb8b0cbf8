/*
 * verb_executors.c - auditrun executors: who can run what, and what they can enforce.
 *
 * Each executor is shown with its effective envelope: what it has proved on this host, with what
 * the host enforces itself, cut down by what the configuration allows this client.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/show.h"
#include "cli/verb.h"
#include "protocol/vocabulary.h"

#include <string.h>

static const char help[] =
    "usage: auditrun executors [OPTIONS]\n"
    "\n"
    "Lists the executors that you may use, each with the languages that work here, those that do\n"
    "not and why, and with what it can enforce: a grant that asks for more is denied.\n"
    "\n" CALL_OPTION_HELP "\n"
    "Exit code: 0; 64, 69 (not reachable), 76, 77 as for auditrun run.\n"
    "\n"
    "Examples\n"
    "  auditrun executors\n"
    "  auditrun executors --json\n";

static const struct option_row rows[] = {CALL_OPTION_ROWS};

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

static void show_languages(const struct terminal *terminal, const json_t *languages)
{
    for (size_t i = 0; i < json_array_size(languages); i++) {
        const json_t *language = json_array_get(languages, i);
        AR_AUTO_FREE char *text = NULL;
        if (asprintf(&text, "%s (%s)", text_of(language, "name"), text_of(language, "version")) < 0)
            text = NULL;
        show_line(terminal, i == 0 ? "languages" : "", text ? text : "?", TERMINAL_PLAIN);
    }
}

/* What a person should know about each problem. */
static const char *problem_text(const char *word)
{
    static const char *const texts[LANGUAGE_PROBLEM_COUNT] = {
        [LANGUAGE_NOT_INSTALLED] = "is not installed",
        [LANGUAGE_DOES_NOT_START] = "is installed, and cannot be started in a sandbox",
        [LANGUAGE_DOES_NOT_COMPILE] = "refuses a right program",
        [LANGUAGE_SAMPLE_FAILED] = "does not run a right program to its end",
        [LANGUAGE_TOO_SLOW] = "was too slow when it was tried",
    };
    enum language_problem problem;
    return language_problem_from_word(word, &problem) ? texts[problem] : word;
}

static void show_unavailable(const struct terminal *terminal, const json_t *languages)
{
    for (size_t i = 0; i < json_array_size(languages); i++) {
        const json_t *language = json_array_get(languages, i);
        AR_AUTO_FREE char *text = NULL;
        if (asprintf(&text, "%s %s", text_of(language, "name"),
                     problem_text(text_of(language, "problem"))) < 0)
            text = NULL;
        show_line(terminal, i == 0 ? "unavailable" : "", text ? text : "?", TERMINAL_WARN);
    }
}

/* The rest of an object, without what was shown in its own way. */
static void show_others(const struct terminal *terminal, const json_t *executor)
{
    static const char *const shown[] = {"name", "version", "languages", "unavailable", "envelope"};
    AR_AUTO_JSON json_t *others = json_copy((json_t *)executor);
    for (size_t i = 0; i < AR_COUNT(shown); i++)
        (void)json_object_del(others, shown[i]);
    show_object(terminal, others);
}

static void show_executor(const struct terminal *terminal, const json_t *executor)
{
    const json_t *envelope = json_object_get(executor, "envelope");
    const json_t *source = json_is_object(envelope) ? envelope : executor;
    AR_AUTO_FREE char *title = NULL;
    const char *name = text_of(executor, "name");
    if (asprintf(&title, "%s %s", *name ? name : text_of(source, "name"),
                 text_of(source, "version")) < 0)
        title = NULL;
    show_line(terminal, "executor", title ? title : "?", TERMINAL_BOLD);
    show_languages(terminal, json_object_get(source, "languages"));
    show_unavailable(terminal, json_object_get(source, "unavailable"));
    show_others(terminal, source);
    if (source != executor)
        show_others(terminal, executor);
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    const struct call_options *options = target;
    (void)title;
    (void)rest;
    AR_AUTO_JSON json_t *result = NULL;
    struct terminal terminal;
    int code = call_daemon(options, RPC_METHOD_EXECUTORS, NULL, &result);
    if (code != EXIT_CODE_OK)
        return code;
    if (options->json)
        return call_print_json(result);
    const json_t *list = json_is_array(result) ? result : json_object_get(result, "executors");
    terminal_open(&terminal, stdout);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i > 0)
            (void)putchar('\n');
        show_executor(&terminal, json_array_get(list, i));
    }
    if (json_array_size(list) == 0)
        (void)puts("no executor that you may use is registered");
    return EXIT_CODE_OK;
}

static const struct call_options defaults;

const struct verb verb_executors = {
    .name = "executors",
    .summary = "list who can run what",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
