/*
 * fuzz_rpc.c - any line of a client. What is refused gets an answer that is one line of JSON under an
 * id that is sound; what is a call keeps its id byte for byte.
 */
#include "protocol/rpc.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_line(char *line, size_t length, const char *id_text)
{
    require(line && length == strlen(line) && strchr(line, '\n') == line + length - 1);
    json_t *value = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
    require(json_is_object(value));
    require(strstr(line, id_text) != NULL);
    json_decref(value);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_call call = {0};
    struct rpc_error error = {0};
    size_t length = 0;
    int outcome = rpc_parse((const char *)data, size, &call, &error);
    require(outcome == RPC_CALL || outcome == RPC_REFUSED);
    if (outcome == RPC_CALL) {
        require(json_is_object(call.params) && call.method < RPC_METHOD_COUNT);
        if (call.id_text[0]) {
            char *line = rpc_result_line(call.id_text, call.params, &length);
            check_line(line, length, call.id_text);
        }
        rpc_call_free(&call);
    } else if (error.id_text[0]) {
        require(error.code != RPC_INVALID_PARAMS || error.fault.problem != PROBLEM_NONE);
        char *line = rpc_refusal_line(&error, &length);
        check_line(line, length, error.id_text);
    }
    return 0;
}
