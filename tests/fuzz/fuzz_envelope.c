/*
 * fuzz_envelope.c - what a program prints when it is asked what it can do. An envelope that is taken
 * comes back with the same digest, and denies nothing to the least grant.
 */
#include "protocol/envelope.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_comparison(const struct envelope *envelope)
{
    struct grant least = {0};
    struct denials denials;
    const char *language = envelope->language_count ? envelope->languages[0].name : "none";
    require(envelope_compare(envelope, language, &least, &denials) == 0);
    require(denials.count == (envelope->language_count ? 0 : 1));
    denials_free(&denials);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct envelope envelope, again;
    struct fault fault = {0};
    int outcome = envelope_parse((const char *)data, size, &envelope, &fault);
    require(outcome == 0 || (outcome == 1 && fault.problem != PROBLEM_NONE));
    if (outcome != 0)
        return 0;
    check_comparison(&envelope);
    json_t *value = envelope_to_json(&envelope);
    require(value && envelope_from_json(value, &again, &fault) == 0);
    require(strcmp(envelope.sha256, again.sha256) == 0);
    json_decref(value);
    envelope_free(&again);
    envelope_free(&envelope);
    return 0;
}
