/*
 * dataport_call.c - the lines of the data port.
 *
 * Both outer objects are read strictly: no unknown member, none twice, none in disguise. They are written
 * anew around what is inside, which is checked to be JSON and passed on byte for byte: no number
 * changes on its way, and no document is made of text that nobody here has to understand.
 */
#include "daemon/dataport_call.h"

#include "protocol/json_span.h"

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

enum { CALL_VERSION, CALL_ID, CALL_METHOD, CALL_PARAMS, CALL_MEMBERS };

static bool is_call(const struct json_span members[CALL_MEMBERS])
{
    const struct json_span *id = &members[CALL_ID], *params = &members[CALL_PARAMS];
    if (!json_span_is(&members[CALL_VERSION], "2.0") || !members[CALL_METHOD].text ||
        members[CALL_METHOD].text[0] != '"')
        return false;
    if (id->text && (id->length >= JSON_ID_TEXT_BYTES || !memchr("\"-0123456789", id->text[0], 12)))
        return false;
    return !params->text || params->text[0] == '{' || params->text[0] == '[';
}

/* A name that is written plainly, without a pattern in it; all others are granted to nobody. */
static void take_method(const struct json_span *method, char out[129])
{
    size_t length = method->length - 2;
    out[0] = '\0';
    if (length > 128 || memchr(method->text, '*', method->length))
        return;
    memcpy(out, method->text + 1, length);
    out[length] = '\0';
    if (!text_is_api_method(out))
        out[0] = '\0';
}

int dataport_call_parse(const char *line, size_t length, struct dataport_call *call,
                        enum dataport_error *error)
{
    struct json_span members[CALL_MEMBERS] = {[CALL_VERSION] = {.name = "jsonrpc"},
                                              [CALL_ID] = {.name = "id"},
                                              [CALL_METHOD] = {.name = "method"},
                                              [CALL_PARAMS] = {.name = "params"}};
    bool is_json;
    enum json_outcome outcome = json_span_read(line, length, members, CALL_MEMBERS, &is_json);
    *error = is_json ? DATAPORT_INVALID_REQUEST : DATAPORT_PARSE_ERROR;
    if (outcome != JSON_OK || !is_call(members))
        return 1;
    const struct json_span *id = &members[CALL_ID], *params = &members[CALL_PARAMS];
    *call = (struct dataport_call){.params = params->text ? params->text : "{}",
                                   .params_length = params->text ? params->length : 2};
    if (id->text)
        memcpy(call->id_text, id->text, id->length);
    take_method(&members[CALL_METHOD], call->method);
    return 0;
}

bool dataport_call_is_granted(const struct dataport_call *call, const struct text_list *methods)
{
    if (!call->method[0])
        return false;
    for (size_t i = 0; i < methods->count; i++)
        if (text_api_method_covers(methods->items[i], call->method))
            return true;
    return false;
}

/* ---- lines -------------------------------------------------------------------------------------- */

/* head, value, tail; malloc'd. */
static char *join(const char *head, const char *value, size_t value_length, const char *tail,
                  size_t *length)
{
    size_t head_length = strlen(head), tail_length = strlen(tail);
    *length = head_length + value_length + tail_length;
    char *line = malloc(*length);
    if (line)
        memcpy(mempcpy(mempcpy(line, head, head_length), value, value_length), tail, tail_length);
    return line;
}

char *dataport_error_line(enum dataport_error error, const char *id_text, size_t *length)
{
    char *line;
    int bytes = asprintf(
        &line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":\"%s\"}}\n",
        id_text, errors[error].code, errors[error].message);
    *length = bytes > 0 ? (size_t)bytes : 0;
    return bytes > 0 ? line : NULL;
}

char *dataport_call_line(const struct dataport_call *call, int64_t number, const char *context,
                         size_t *length)
{
    AR_AUTO_FREE char *head = NULL;
    if (asprintf(&head,
                 "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\","
                 "\"params\":{\"context\":%s,\"params\":",
                 (long long)number, call->method, context) < 0) {
        head = NULL;
        return NULL;
    }
    return join(head, call->params, call->params_length, "}}\n", length);
}

char *dataport_answer_line(const struct dataport_answer *answer, const char *id_text,
                           size_t *length)
{
    char head[JSON_ID_TEXT_BYTES + 64];
    (void)snprintf(head, sizeof head, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":", id_text,
                   answer->is_error ? "error" : "result");
    return join(head, answer->value, answer->length, "}\n", length);
}

/* ---- the service's side ------------------------------------------------------------------------- */

static bool is_error(const struct json_span *value)
{
    struct json_span members[] = {{.name = "code"}, {.name = "message"}, {.name = "data"}};
    bool is_json;
    int64_t code;
    return json_span_read(value->text, value->length, members, AR_COUNT(members), &is_json) ==
               JSON_OK &&
           json_span_integer(&members[0], &code) && members[1].text && members[1].text[0] == '"';
}

enum { ANSWER_VERSION, ANSWER_ID, ANSWER_RESULT, ANSWER_ERROR, ANSWER_MEMBERS };

int dataport_answer_parse(const char *line, size_t length, struct dataport_answer *answer)
{
    struct json_span members[ANSWER_MEMBERS] = {[ANSWER_VERSION] = {.name = "jsonrpc"},
                                                [ANSWER_ID] = {.name = "id"},
                                                [ANSWER_RESULT] = {.name = "result"},
                                                [ANSWER_ERROR] = {.name = "error"}};
    const struct json_span *result = &members[ANSWER_RESULT], *error = &members[ANSWER_ERROR];
    bool is_json;
    *answer = (struct dataport_answer){0};
    enum json_outcome outcome = json_span_read(line, length, members, ANSWER_MEMBERS, &is_json);
    if (outcome == JSON_BROKEN)
        return 1;
    answer->known_number = json_span_integer(&members[ANSWER_ID], &answer->number);
    if (outcome != JSON_OK || !answer->known_number ||
        !json_span_is(&members[ANSWER_VERSION], "2.0") || !result->text == !error->text ||
        (error->text && !is_error(error)))
        return 1;
    answer->is_error = error->text != NULL;
    answer->value = error->text ? error->text : result->text;
    answer->length = error->text ? error->length : result->length;
    return 0;
}
