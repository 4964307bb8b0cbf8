/*
 * rpc.c - the JSON-RPC envelope.
 *
 * The outer object is judged before params: a line whose outer object is wrong has no id that could
 * be trusted. The id is judged by its own bytes, for its value in the document may be a stand-in.
 */
#include "protocol/rpc.h"
#include "protocol/text.h"

#include <string.h>

static const char *const method_words[RPC_METHOD_COUNT] = {
    [RPC_METHOD_RUN] = "run",
    [RPC_METHOD_CANCEL] = "cancel",
    [RPC_METHOD_EXECUTORS] = "executors",
    [RPC_METHOD_RECORD] = "record",
    [RPC_METHOD_STATUS] = "status",
    [RPC_METHOD_DISABLE] = "disable",
    [RPC_METHOD_ENABLE] = "enable",
    [RPC_METHOD_SWITCHES] = "switches",
    [RPC_METHOD_TOP] = "top",
};

static const struct {
    enum rpc_code code;
    const char *message;
} messages[RPC_CODE_COUNT] = {
    {RPC_PARSE_ERROR, "parse error"},
    {RPC_INVALID_REQUEST, "invalid request"},
    {RPC_METHOD_NOT_FOUND, "method not found"},
    {RPC_INVALID_PARAMS, "invalid params"},
    {RPC_INTERNAL_ERROR, "internal error"},
    {RPC_AUDIT_FAILURE, "audit_failure"},
    {RPC_FORBIDDEN, "forbidden"},
    {RPC_NOT_FOUND, "not_found"},
};

static const struct json_member outer_members[] = {
    {"jsonrpc", true}, {"method", true}, {"params", false}, {"id", false}};

const char *rpc_method_word(enum rpc_method method)
{
    return method_words[method];
}

enum rpc_code rpc_code_at(size_t i)
{
    return messages[i].code;
}

const char *rpc_message(enum rpc_code code)
{
    for (size_t i = 0; i < AR_COUNT(messages); i++)
        if (messages[i].code == code)
            return messages[i].message;
    return "error";
}

/* ---- in ----------------------------------------------------------------------------------------- */

static int refuse(struct rpc_error *error, enum rpc_code code, const char *id_text)
{
    *error = (struct rpc_error){.code = code};
    memcpy(error->id_text, id_text, strlen(id_text) + 1);
    return RPC_REFUSED;
}

/* Can the id be echoed and compared by its bytes? There is none, or a text, or a number that fits. */
static bool is_sound_id(const struct json_document *document)
{
    if (document->id_too_long)
        return false;
    if (document->id_text[0] == '\0')
        return true;
    json_error_t ignored;
    AR_AUTO_JSON json_t *id =
        json_loads(document->id_text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &ignored);
    return json_is_string(id) || json_is_number(id);
}

static bool is_inside_params(const struct fault *fault)
{
    size_t length = strlen("/params");
    return strncmp(fault->path, "/params", length) == 0 &&
           (fault->path[length] == '\0' || fault->path[length] == '/');
}

static bool is_sound_outer(const struct json_document *document)
{
    struct fault ignored = {0};
    const json_t *version = json_object_get(document->root, "jsonrpc");
    const json_t *params = json_object_get(document->root, "params");
    if (document->outer_duplicate ||
        json_check_object(document->root, outer_members, AR_COUNT(outer_members), NULL, &ignored))
        return false;
    if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0 ||
        json_string_length(version) != 3)
        return false;
    if (!json_is_string(json_object_get(document->root, "method")))
        return false;
    if (params && !json_is_object(params))
        return false;
    if (document->fault.problem != PROBLEM_NONE && !is_inside_params(&document->fault))
        return false;
    return is_sound_id(document);
}

static bool find_method(const json_t *word, enum rpc_method *out)
{
    for (size_t i = 0; i < RPC_METHOD_COUNT; i++) {
        if (json_string_length(word) == strlen(method_words[i]) &&
            strcmp(json_string_value(word), method_words[i]) == 0) {
            *out = (enum rpc_method)i;
            return true;
        }
    }
    return false;
}

static int refuse_params(const struct json_document *document, struct rpc_error *error)
{
    (void)refuse(error, RPC_INVALID_PARAMS, document->id_text);
    const char *path = document->fault.path + strlen("/params");
    error->fault.problem = document->fault.problem;
    memcpy(error->fault.path, path, strlen(path) + 1);
    return RPC_REFUSED;
}

static int take_call(const struct json_document *document, struct rpc_call *call,
                     struct rpc_error *error)
{
    if (!is_sound_outer(document))
        return refuse(error, RPC_INVALID_REQUEST, "null");
    enum rpc_method method;
    if (!find_method(json_object_get(document->root, "method"), &method))
        return refuse(error, RPC_METHOD_NOT_FOUND, document->id_text);
    if (document->fault.problem != PROBLEM_NONE)
        return refuse_params(document, error);
    json_t *params = json_object_get(document->root, "params");
    params = params ? json_incref(params) : json_object();
    if (!params)
        return -ENOMEM;
    *call = (struct rpc_call){.method = method, .params = params};
    memcpy(call->id_text, document->id_text, sizeof(call->id_text));
    return RPC_CALL;
}

int rpc_parse(const char *line, size_t length, struct rpc_call *call, struct rpc_error *error)
{
    AR_CLEANUP(json_document_free) struct json_document document;
    int outcome = json_parse(line, length, &document);
    if (outcome < 0)
        return outcome;
    if (outcome != JSON_BROKEN)
        return take_call(&document, call, error);
    bool is_json = document.fault.problem != PROBLEM_NONE;
    return refuse(error, is_json ? RPC_INVALID_REQUEST : RPC_PARSE_ERROR, "null");
}

void rpc_call_free(struct rpc_call *call)
{
    json_decref(call->params);
    *call = (struct rpc_call){0};
}

/* ---- out ---------------------------------------------------------------------------------------- */

struct line {
    char *text;
    size_t length;
    size_t capacity;
};

static void line_free(struct line *line)
{
    free(line->text);
}

/* Room is always left for the newline and a NUL. A json_dump_callback_t. */
static int line_put(const char *bytes, size_t count, void *context)
{
    struct line *line = context;
    size_t wanted;
    if (!base_add(line->length, count, &wanted) || !base_add(wanted, (size_t)2, &wanted))
        return -1;
    if (!line->text || wanted > line->capacity) {
        size_t capacity = wanted < 256 ? 256 : wanted;
        if (capacity < SIZE_MAX / 2 && capacity < 2 * line->capacity)
            capacity = 2 * line->capacity;
        char *text = realloc(line->text, capacity);
        if (!text)
            return -1;
        line->text = text;
        line->capacity = capacity;
    }
    memcpy(line->text + line->length, bytes, count);
    line->length += count;
    return 0;
}

static int line_put_text(struct line *line, const char *text)
{
    return line_put(text, strlen(text), line);
}

static int line_put_json(struct line *line, const json_t *value)
{
    return json_dump_callback(value, line_put, line, JSON_COMPACT | JSON_ENCODE_ANY);
}

static char *line_take(struct line *line, size_t *length)
{
    if (line_put_text(line, "}\n"))
        return NULL;
    line->text[line->length] = '\0';
    *length = line->length;
    return AR_TAKE(line->text);
}

/* {"jsonrpc":"2.0","id":ID */
static int line_begin(struct line *line, const char *id_text)
{
    return line_put_text(line, "{\"jsonrpc\":\"2.0\",\"id\":") || line_put_text(line, id_text);
}

char *rpc_result_line(const char *id_text, const json_t *result, size_t *length)
{
    AR_CLEANUP(line_free) struct line line = {0};
    if (line_begin(&line, id_text) || line_put_text(&line, ",\"result\":") ||
        line_put_json(&line, result))
        return NULL;
    return line_take(&line, length);
}

char *rpc_error_line(const char *id_text, enum rpc_code code, const json_t *data, size_t *length)
{
    AR_CLEANUP(line_free) struct line line = {0};
    AR_AUTO_JSON json_t *error =
        json_pack("{s:i, s:s}", "code", (int)code, "message", rpc_message(code));
    if (!error || (data && json_object_set(error, "data", (json_t *)data)))
        return NULL;
    if (line_begin(&line, id_text) || line_put_text(&line, ",\"error\":") ||
        line_put_json(&line, error))
        return NULL;
    return line_take(&line, length);
}

char *rpc_refusal_line(const struct rpc_error *error, size_t *length)
{
    AR_AUTO_JSON json_t *data = NULL;
    if (error->code == RPC_INVALID_PARAMS) {
        data = json_pack("{s:s, s:s}", "path", error->fault.path, "problem",
                         problem_word(error->fault.problem));
        if (!data)
            return NULL;
    }
    return rpc_error_line(error->id_text, error->code, data, length);
}

char *rpc_notification_line(const char *method, const json_t *params, size_t *length)
{
    AR_CLEANUP(line_free) struct line line = {0};
    if (line_put_text(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"") ||
        line_put_text(&line, method) || line_put_text(&line, "\",\"params\":") ||
        line_put_json(&line, params))
        return NULL;
    return line_take(&line, length);
}

char *rpc_request_line(const char *id_text, enum rpc_method method, const json_t *params,
                       size_t *length)
{
    AR_CLEANUP(line_free) struct line line = {0};
    if (line_begin(&line, id_text) || line_put_text(&line, ",\"method\":\"") ||
        line_put_text(&line, method_words[method]) || line_put_text(&line, "\",\"params\":") ||
        line_put_json(&line, params))
        return NULL;
    return line_take(&line, length);
}
