/*
 * fuzz_spec.c - what daemon and provider say to each other, as each side's untrusted input: specs,
 * control messages, outputs documents. What is taken can be said again, and is then the same; what is
 * said of one side is never taken from the other.
 */
#include "protocol/spec.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* ---- specs ------------------------------------------------------------------------------------ */

static void require_same_bytes(const struct bytes *a, const struct bytes *b)
{
    require(a->length == b->length && memcmp(a->data, b->data, a->length) == 0);
}

static void require_same_list(const struct text_list *a, const struct text_list *b)
{
    require(a->count == b->count);
    for (size_t i = 0; i < a->count; i++)
        require(strcmp(a->items[i], b->items[i]) == 0);
}

static void require_same_grant(const struct grant *a, const struct grant *b)
{
    json_t *first = grant_to_json(a), *second = grant_to_json(b);
    require(first && second && json_equal(first, second));
    json_decref(first);
    json_decref(second);
}

static void require_same_spec(const struct spec *a, const struct spec *b)
{
    require(strcmp(a->run_id, b->run_id) == 0 && strcmp(a->language, b->language) == 0);
    require_same_bytes(&a->code, &b->code);
    require_same_list(&a->args, &b->args);
    require_same_list(&a->outputs, &b->outputs);
    require(a->env_count == b->env_count && a->file_count == b->file_count);
    for (size_t i = 0; i < a->env_count; i++)
        require(strcmp(a->env[i].name, b->env[i].name) == 0 &&
                strcmp(a->env[i].value, b->env[i].value) == 0);
    for (size_t i = 0; i < a->file_count; i++) {
        require(strcmp(a->files[i].path, b->files[i].path) == 0);
        require_same_bytes(&a->files[i].content, &b->files[i].content);
    }
    require_same_grant(&a->grant, &b->grant);
}

/* Says what was read, as the daemon does, and reads that. */
static void say_again(const struct spec *spec)
{
    const struct request request = {.language = spec->language,
                                    .code = spec->code,
                                    .args = spec->args,
                                    .outputs = spec->outputs,
                                    .env = spec->env,
                                    .env_count = spec->env_count,
                                    .files = spec->files,
                                    .file_count = spec->file_count};
    struct spec *again = NULL;
    struct fault fault = {0};
    size_t length = 0;
    char *said = spec_build(spec->run_id, &request, &spec->grant, &length);
    require(said && spec_parse(said, length, &again, &fault) == 0);
    require_same_spec(spec, again);
    spec_free(again);
    free(said);
}

static void check_spec(const char *text, size_t length)
{
    struct spec *spec = NULL;
    struct fault fault = {0};
    int outcome = spec_parse(text, length, &spec, &fault);
    require(outcome == 0 || (outcome == 1 && !spec && fault.problem != PROBLEM_NONE));
    if (outcome == 0)
        say_again(spec);
    spec_free(spec);
}

/* ---- messages --------------------------------------------------------------------------------- */

static void check_report(const struct report *report)
{
    enum spec_message kind;
    struct report again;
    char *said = spec_report_message(report);
    require(said && strlen(said) <= SPEC_MESSAGE_BYTES);
    require(spec_parse_provider_message(said, strlen(said), &kind, &again) == 0);
    require(kind == SPEC_REPORT && again.outcome == report->outcome);
    require(again.exit_code == report->exit_code && again.signal == report->signal);
    require(again.limit == report->limit);
    require(memcmp(&again.usage, &report->usage, sizeof(report->usage)) == 0);
    free(said);
}

static void check_messages(const char *text, size_t length)
{
    enum spec_message kind;
    struct report report;
    struct spec_run order = {0};
    int daemon = spec_parse_daemon_message(text, length, &kind, &order);
    require(daemon == 0 || daemon == 1);
    if (daemon == 0)
        require(kind == SPEC_CLEAR ||
                (kind == SPEC_RUN && order.spec_bytes > 0 && order.spec_bytes <= SPEC_MAX_BYTES));
    int provider = spec_parse_provider_message(text, length, &kind, &report);
    require(provider == 1 || (provider == 0 && daemon == 1));
    if (provider == 0)
        require(kind == SPEC_READY || kind == SPEC_READY_AHEAD || kind == SPEC_REPORT);
    if (provider == 0 && kind == SPEC_REPORT)
        check_report(&report);
}

/* ---- outputs ---------------------------------------------------------------------------------- */

static void say_outputs_again(const struct output_file *files, const struct text_list *asked)
{
    struct output_file *again = NULL;
    struct fault fault = {0};
    size_t length = 0;
    char *said = spec_outputs_build(files, asked->count, &length);
    require(said && spec_outputs_parse(said, length, asked, &again, &fault) == 0);
    for (size_t i = 0; i < asked->count; i++) {
        require(strcmp(files[i].path, asked->items[i]) == 0 &&
                strcmp(again[i].path, files[i].path) == 0);
        require(again[i].problem == files[i].problem);
        require(files[i].problem == OUTPUT_OK || files[i].content.length == 0);
        if (files[i].problem == OUTPUT_OK)
            require_same_bytes(&files[i].content, &again[i].content);
    }
    spec_outputs_free(again, asked->count);
    free(said);
}

static void check_outputs(const char *text, size_t length)
{
    static char *items[] = {(char *)"a", (char *)"b/c"};
    for (size_t count = 0; count <= AR_COUNT(items); count++) {
        const struct text_list asked = {items, count};
        struct output_file *files = NULL;
        struct fault fault = {0};
        int outcome = spec_outputs_parse(text, length, &asked, &files, &fault);
        require(outcome == 0 || (outcome == 1 && !files && fault.problem != PROBLEM_NONE));
        if (outcome == 0)
            say_outputs_again(files, &asked);
        spec_outputs_free(files, count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_spec((const char *)data, size);
    check_messages((const char *)data, size);
    check_outputs((const char *)data, size);
    return 0;
}
