/*
 * fuzz_request.c - params of any method. A request that is taken can be handed to a provider, who
 * reads back the same code, files and grant.
 */
#include "protocol/spec.h"
#include "protocol/switch.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_spec(const struct request *request)
{
    struct spec *spec = NULL;
    struct fault fault = {0};
    size_t length = 0;
    char *text =
        spec_build("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", request, &request->grant, &length);
    require(text && spec_parse(text, length, &spec, &fault) == 0);
    require(spec->code.length == request->code.length && spec->file_count == request->file_count);
    require(memcmp(spec->code.data, request->code.data, spec->code.length) == 0);
    json_t *asked = grant_to_json(&request->grant);
    json_t *given = grant_to_json(&spec->grant);
    require(asked && json_equal(asked, given));
    json_decref(asked);
    json_decref(given);
    spec_free(spec);
    free(text);
}

static void check_run(const json_t *params)
{
    struct request *request = NULL;
    struct fault fault = {0};
    int outcome = request_parse(params, &request, &fault);
    require(outcome == 0 || (outcome == 1 && fault.problem != PROBLEM_NONE && !request));
    if (outcome == 0)
        check_spec(request);
    request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_document document;
    struct cancel_request cancel;
    struct record_request wanted;
    struct switch_order order;
    struct fault fault = {0};
    int outcome = json_parse((const char *)data, size, &document);
    require(outcome >= 0);
    if (outcome == JSON_BROKEN)
        return 0;
    require((outcome == JSON_FAULTY) == (document.fault.problem != PROBLEM_NONE));
    check_run(document.root);
    require(cancel_request_parse(document.root, &cancel, &fault) >= 0);
    require(record_request_parse(document.root, &wanted, &fault) >= 0);
    require(request_parse_empty(document.root, &fault) >= 0);
    require(switch_order_parse(document.root, true, &order, &fault) >= 0);
    json_document_free(&document);
    return 0;
}
