/*
 * fuzz_spec.c - what daemon and provider say to each other, as each side's untrusted input: specs,
 * control messages, outputs documents. What is taken can be said again.
 */
#include "protocol/spec.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_spec(const char *text, size_t length)
{
    struct spec *spec = NULL;
    struct fault fault = {0};
    int outcome = spec_parse(text, length, &spec, &fault);
    require(outcome == 0 || (outcome == 1 && !spec && fault.problem != PROBLEM_NONE));
    spec_free(spec);
}

static void check_messages(const char *text, size_t length)
{
    enum spec_message kind, kind_again;
    struct report report, again;
    size_t bytes;
    if (spec_parse_daemon_message(text, length, &kind, &bytes) == 0 && kind == SPEC_RUN)
        require(bytes > 0 && bytes <= SPEC_MAX_BYTES);
    if (spec_parse_provider_message(text, length, &kind, &report) != 0 || kind != SPEC_REPORT)
        return;
    char *said = spec_report_message(&report);
    require(said && spec_parse_provider_message(said, strlen(said), &kind_again, &again) == 0);
    require(again.outcome == report.outcome && again.exit_code == report.exit_code);
    require(memcmp(&again.usage, &report.usage, sizeof(report.usage)) == 0);
    free(said);
}

static void check_outputs(const char *text, size_t length)
{
    static char *items[] = {(char *)"a", (char *)"b/c"};
    struct output_file *files = NULL;
    for (size_t count = 0; count <= AR_COUNT(items); count++) {
        const struct text_list asked = {items, count};
        struct fault fault = {0};
        int outcome = spec_outputs_parse(text, length, &asked, &files, &fault);
        require(outcome == 0 || (outcome == 1 && fault.problem != PROBLEM_NONE));
        if (outcome == 0) {
            size_t said_length = 0;
            char *said = spec_outputs_build(files, count, &said_length);
            require(said != NULL);
            free(said);
            spec_outputs_free(files, count);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_spec((const char *)data, size);
    check_messages((const char *)data, size);
    check_outputs((const char *)data, size);
    return 0;
}
