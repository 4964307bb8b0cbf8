/*
 * dataport_call.c - the lines of the data port.
 *
 * Both sides are read strictly: no unknown members, no member twice, no number that would change on
 * its way. What passes is written anew from the parsed document, so that the code and the service
 * never see each other's bytes, only what they mean.
 */
#include "daemon/dataport_call.h"

#include "protocol/rpc.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    const char *message;
} errors[DATAPORT_ERROR_COUNT] = {
    [DATAPORT_PARSE_ERROR] = {-32700, "parse_error"},
    [DATAPORT_INVALID_REQUEST] = {-32600, "invalid_request"},
    [DATAPORT_NOT_GRANTED] = {-32601, "method_not_granted"},
    [DATAPORT_TOO_BIG] = {-32011, "too_big"},
    [DATAPORT_TOO_MANY] = {-32012, "too_many"},
    [DATAPORT_RATE_LIMITED] = {-32013, "rate_limited"},
    [DATAPORT_TIMEOUT] = {-32014, "timeout"},
    [DATAPORT_UNAVAILABLE] = {-32015, "unavailable"},
    [DATAPORT_BAD_ANSWER] = {-32016, "bad_answer"},
};

int dataport_error_code(enum dataport_error error)
{
    return errors[error].code;
}

const char *dataport_error_message(enum dataport_error error)
{
    return errors[error].message;
}

/* ---- the code's side ---------------------------------------------------------------------------- */

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           strcmp(json_string_value(value), text) == 0;
}

/* A name without a pattern in it. */
static bool is_method(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) && !strchr(text, '*') &&
           text_is_api_method(text);
}

static bool is_call(const struct json_document *document)
{
    static const struct json_member members[] = {
        {"jsonrpc", true}, {"method", true}, {"params", false}, {"id", false}};
    struct fault ignored = {0};
    const json_t *id = json_object_get(document->root, "id");
    const json_t *params = json_object_get(document->root, "params");
    if (json_check_object(document->root, members, AR_COUNT(members), NULL, &ignored) ||
        !is_text(json_object_get(document->root, "jsonrpc"), "2.0"))
        return false;
    if (id && (document->id_too_long || !(json_is_string(id) || json_is_number(id))))
        return false;
    return json_is_string(json_object_get(document->root, "method")) &&
           (!params || json_is_object(params) || json_is_array(params));
}

static int take_call(const struct json_document *document, struct dataport_call *call)
{
    const json_t *method = json_object_get(document->root, "method");
    json_t *params = json_object_get(document->root, "params");
    *call = (struct dataport_call){.params = params ? json_incref(params) : json_object()};
    memcpy(call->id_text, document->id_text, sizeof call->id_text);
    /* One that is no name is granted to nobody. */
    call->method = strdup(is_method(method) ? json_string_value(method) : "");
    if (call->params && call->method)
        return 0;
    dataport_call_free(call);
    return -ENOMEM;
}

int dataport_call_parse(const char *line, size_t length, struct dataport_call *call,
                        enum dataport_error *error)
{
    AR_CLEANUP(json_document_free) struct json_document document;
    int rc = json_parse(line, length, &document);
    if (rc < 0)
        return rc;
    bool is_json = rc != JSON_BROKEN || document.fault.problem != PROBLEM_NONE;
    *error = is_json ? DATAPORT_INVALID_REQUEST : DATAPORT_PARSE_ERROR;
    if (rc != JSON_OK || !is_call(&document))
        return 1;
    return take_call(&document, call);
}

void dataport_call_free(struct dataport_call *call)
{
    json_decref(call->params);
    free(call->method);
    *call = (struct dataport_call){0};
}

bool dataport_call_is_granted(const struct dataport_call *call, const struct text_list *methods)
{
    if (!call->method[0])
        return false;
    for (size_t i = 0; i < methods->count; i++) {
        const char *granted = methods->items[i];
        size_t length = strlen(granted);
        if (strcmp(granted, call->method) == 0)
            return true;
        if (length > 2 && strcmp(granted + length - 2, ".*") == 0 &&
            strncmp(call->method, granted, length - 1) == 0)
            return true;
    }
    return false;
}

/* ---- lines -------------------------------------------------------------------------------------- */

/* {"jsonrpc":"2.0","id":ID,"MEMBER":VALUE} */
static char *write_line(const char *id_text, const char *member, const json_t *value,
                        size_t *length)
{
    AR_AUTO_FREE char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    char *line = NULL;
    int bytes =
        text ? asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":%s}\n", id_text, member, text)
             : -1;
    if (bytes < 0)
        return NULL;
    *length = (size_t)bytes;
    return line;
}

char *dataport_error_line(enum dataport_error error, const char *id_text, size_t *length)
{
    AR_AUTO_JSON json_t *value =
        json_pack("{s:i, s:s}", "code", errors[error].code, "message", errors[error].message);
    return write_line(id_text, "error", value, length);
}

char *dataport_call_line(const struct dataport_call *call, int64_t number, const json_t *context,
                         size_t *length)
{
    AR_AUTO_JSON json_t *value =
        json_pack("{s:s, s:I, s:s, s:{s:O, s:O}}", "jsonrpc", "2.0", "id", (json_int_t)number,
                  "method", call->method, "params", "context", context, "params", call->params);
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    if (!text)
        return NULL;
    *length = strlen(text) + 1;
    text[*length - 1] = '\n'; /* in the place of the NUL: the line has a length */
    return text;
}

char *dataport_answer_line(const struct dataport_answer *answer, const char *id_text,
                           size_t *length)
{
    if (answer->error)
        return write_line(id_text, "error", answer->error, length);
    return write_line(id_text, "result", answer->result, length);
}

/* ---- the service's side ------------------------------------------------------------------------- */

static bool is_error(const json_t *value)
{
    static const struct json_member members[] = {
        {"code", true}, {"message", true}, {"data", false}};
    struct fault ignored = {0};
    return json_check_object(value, members, AR_COUNT(members), NULL, &ignored) == 0 &&
           json_is_integer(json_object_get(value, "code")) &&
           json_is_string(json_object_get(value, "message"));
}

static bool is_answer(const json_t *root)
{
    static const struct json_member members[] = {
        {"jsonrpc", true}, {"id", true}, {"result", false}, {"error", false}};
    struct fault ignored = {0};
    const json_t *error = json_object_get(root, "error");
    const json_t *result = json_object_get(root, "result");
    return json_check_object(root, members, AR_COUNT(members), NULL, &ignored) == 0 &&
           is_text(json_object_get(root, "jsonrpc"), "2.0") &&
           json_is_integer(json_object_get(root, "id")) && !error != !result &&
           (!error || is_error(error));
}

int dataport_answer_parse(const char *line, size_t length, struct dataport_answer *answer)
{
    AR_CLEANUP(json_document_free) struct json_document document;
    *answer = (struct dataport_answer){0};
    int rc = json_parse(line, length, &document);
    if (rc < 0)
        return rc;
    if (rc == JSON_BROKEN)
        return 1;
    const json_t *id = json_object_get(document.root, "id");
    answer->number = json_integer_value(id);
    answer->known_number = json_is_integer(id) && answer->number > 0;
    if (rc != JSON_OK || !is_answer(document.root))
        return 1;
    answer->result = json_incref(json_object_get(document.root, "result"));
    answer->error = json_incref(json_object_get(document.root, "error"));
    return 0;
}

void dataport_answer_free(struct dataport_answer *answer)
{
    json_decref(answer->result);
    json_decref(answer->error);
    *answer = (struct dataport_answer){0};
}
