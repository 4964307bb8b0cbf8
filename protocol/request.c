/*
 * request.c - the params of the methods as checked structs.
 *
 * A request is read in one go and owned whole: request_parse() unwinds through request_free(). The
 * first fault ends the reading. What is read is copied, so a request does not keep the line alive.
 */
#include "protocol/request.h"
#include "protocol/parts.h"

#include <string.h>

#define NAME_BYTES         32
#define TRACE_PARENT_BYTES 55

static const struct json_member run_members[] = {
    {"company", true},       {"actor", true},
    {"purpose", true},       {"language", true},
    {"code", false},         {"code_base64", false},
    {"grant", true},         {"executor", false},
    {"args", false},         {"stdin", false},
    {"stdin_base64", false}, {"env", false},
    {"files", false},        {"outputs", false},
    {"stream", false},       {"idempotency_key", false},
    {"traceparent", false}};

/* Members that do not decide what would be run. */
static const char *const unhashed_members[] = {"idempotency_key", "traceparent", "stream"};

/* ---- run ---------------------------------------------------------------------------------------- */

/* 00-<32 hex>-<16 hex>-<2 hex>, neither id all zero, no version ff (W3C Trace Context). */
static bool is_trace_parent(const char *text)
{
    static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    for (size_t i = 0; i < sizeof(form); i++) {
        char c = text[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (form[i] == 'x' ? !hex : c != form[i])
            return false;
    }
    return strncmp(text, "ff", 2) != 0 && strspn(text + 3, "0") < 32 && strspn(text + 36, "0") < 16;
}

/* A copy of an optional text of a form; the form may be NULL. */
static int read_text(const json_t *params, const char *member, size_t max,
                     bool (*is_right)(const char *), char **out, struct fault *fault)
{
    const char *text = NULL;
    if (json_read_line(params, member, NULL, 1, max, &text, fault))
        return 1;
    if (!text)
        return 0;
    if (is_right && !is_right(text))
        return json_fault(fault, NULL, member, PROBLEM_MALFORMED);
    *out = strdup(text);
    return *out ? 0 : -ENOMEM;
}

static int read_texts(const json_t *params, struct request *request, struct fault *fault)
{
    const struct {
        const char *member;
        size_t max;
        bool (*is_right)(const char *);
        char **out;
    } texts[] = {
        {"company", REQUEST_ATTRIBUTE_BYTES, NULL, &request->company},
        {"actor", REQUEST_ATTRIBUTE_BYTES, NULL, &request->actor},
        {"purpose", REQUEST_ATTRIBUTE_BYTES, NULL, &request->purpose},
        {"language", NAME_BYTES, text_is_name, &request->language},
        {"executor", NAME_BYTES, text_is_name, &request->executor},
        {"idempotency_key", REQUEST_KEY_BYTES, NULL, &request->idempotency_key},
        {"traceparent", TRACE_PARENT_BYTES, is_trace_parent, &request->trace_parent},
    };
    for (size_t i = 0; i < AR_COUNT(texts); i++) {
        int error = read_text(params, texts[i].member, texts[i].max, texts[i].is_right,
                              texts[i].out, fault);
        if (error)
            return error;
    }
    return 0;
}

static int read_code(const json_t *params, struct request *request, struct fault *fault)
{
    bool given;
    int error =
        parts_read_bytes(params, "code", "code_base64", NULL, &request->code, &given, fault);
    if (error)
        return error;
    return given ? 0 : json_fault(fault, NULL, "code", PROBLEM_MISSING);
}

static int read_material(const json_t *params, struct request *request, struct fault *fault)
{
    struct json_place grant = {.member = "grant"};
    bool given;
    int error = read_code(params, request, fault);
    if (!error)
        error = parts_read_bytes(params, "stdin", "stdin_base64", NULL, &request->stdin_bytes,
                                 &given, fault);
    if (!error)
        error = parts_read_args(params, NULL, &request->args, fault);
    if (!error)
        error = parts_read_env(params, NULL, &request->env, &request->env_count, fault);
    if (!error)
        error = parts_read_files(params, true, NULL, &request->files, &request->file_count, fault);
    if (!error)
        error = parts_read_outputs(params, NULL, &request->outputs, fault);
    if (!error)
        error = json_read_bool(params, "stream", NULL, &request->stream, fault);
    if (!error)
        error = grant_parse(json_object_get(params, "grant"), &grant, &request->grant, fault);
    return error;
}

static int compute_digests(const json_t *params, struct request *request)
{
    AR_AUTO_JSON json_t *decisive = json_copy((json_t *)params);
    if (!decisive)
        return -ENOMEM;
    for (size_t i = 0; i < AR_COUNT(unhashed_members); i++)
        (void)json_object_del(decisive, unhashed_members[i]); /* fails when it is not there */
    AR_AUTO_FREE char *text = json_canonical(decisive);
    if (!text)
        return -ENOMEM;
    int error = digest_hex(text, strlen(text), request->request_sha256);
    return error ? error
                 : digest_hex(request->code.data, request->code.length, request->code_sha256);
}

static void request_cleanup(struct request **request)
{
    request_free(*request);
}

int request_parse(const json_t *params, struct request **out, struct fault *fault)
{
    if (json_check_object(params, run_members, AR_COUNT(run_members), NULL, fault))
        return 1;
    AR_CLEANUP(request_cleanup) struct request *request = calloc(1, sizeof(*request));
    if (!request)
        return -ENOMEM;
    int error = read_texts(params, request, fault);
    if (!error)
        error = read_material(params, request, fault);
    if (!error)
        error = compute_digests(params, request);
    if (error)
        return error;
    *out = AR_TAKE(request);
    return 0;
}

void request_free(struct request *request)
{
    if (!request)
        return;
    free(request->company);
    free(request->actor);
    free(request->purpose);
    free(request->language);
    free(request->executor);
    free(request->idempotency_key);
    free(request->trace_parent);
    bytes_free(&request->code);
    bytes_free(&request->stdin_bytes);
    text_list_free(&request->args);
    text_list_free(&request->outputs);
    parts_free_env(request->env, request->env_count);
    parts_free_files(request->files, request->file_count);
    grant_free(&request->grant);
    free(request);
}

/* ---- cancel, record, and methods without params ------------------------------------------------- */

static int read_run_id(const json_t *params, const char **out, struct fault *fault)
{
    if (json_read_line(params, "run_id", NULL, 1, UUID7_TEXT_BYTES - 1, out, fault))
        return 1;
    if (*out && !uuid7_is_valid(*out))
        return json_fault(fault, NULL, "run_id", PROBLEM_MALFORMED);
    return 0;
}

static int read_request_id(const json_t *value, char out[JSON_ID_TEXT_BYTES], struct fault *fault)
{
    if (!json_is_string(value) && !json_is_number(value))
        return json_fault(fault, NULL, "request_id", PROBLEM_WRONG_TYPE);
    AR_AUTO_FREE char *text = json_canonical(value);
    if (!text)
        return -ENOMEM;
    size_t length = strlen(text);
    if (length >= JSON_ID_TEXT_BYTES)
        return json_fault(fault, NULL, "request_id", PROBLEM_TOO_LONG);
    memcpy(out, text, length + 1);
    return 0;
}

int cancel_request_parse(const json_t *params, struct cancel_request *out, struct fault *fault)
{
    static const struct json_member members[] = {{"run_id", false}, {"request_id", false}};
    *out = (struct cancel_request){0};
    if (json_check_object(params, members, AR_COUNT(members), NULL, fault))
        return 1;
    const char *run_id = NULL;
    const json_t *request_id = json_object_get(params, "request_id");
    if (read_run_id(params, &run_id, fault))
        return 1;
    if (run_id && request_id)
        return json_fault(fault, NULL, "request_id", PROBLEM_CONFLICT);
    if (!run_id && !request_id)
        return json_fault(fault, NULL, "run_id", PROBLEM_MISSING);
    if (!run_id)
        return read_request_id(request_id, out->id_text, fault);
    memcpy(out->run_id, run_id, sizeof(out->run_id));
    return 0;
}

int record_request_parse(const json_t *params, struct record_request *out, struct fault *fault)
{
    static const struct json_member members[] = {
        {"run_id", false}, {"company", false}, {"idempotency_key", false}};
    *out = (struct record_request){0};
    if (json_check_object(params, members, AR_COUNT(members), NULL, fault) ||
        read_run_id(params, &out->run_id, fault) ||
        json_read_line(params, "company", NULL, 1, REQUEST_ATTRIBUTE_BYTES, &out->company, fault) ||
        json_read_line(params, "idempotency_key", NULL, 1, REQUEST_KEY_BYTES, &out->idempotency_key,
                       fault))
        return 1;
    if (out->run_id && out->company)
        return json_fault(fault, NULL, "company", PROBLEM_CONFLICT);
    if (out->run_id && out->idempotency_key)
        return json_fault(fault, NULL, "idempotency_key", PROBLEM_CONFLICT);
    if (out->run_id || (out->company && out->idempotency_key))
        return 0;
    const char *lacking = out->company           ? "idempotency_key"
                          : out->idempotency_key ? "company"
                                                 : "run_id";
    return json_fault(fault, NULL, lacking, PROBLEM_MISSING);
}

int request_parse_empty(const json_t *params, struct fault *fault)
{
    return json_check_object(params, NULL, 0, NULL, fault);
}
