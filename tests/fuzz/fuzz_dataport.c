/*
 * fuzz_dataport.c - any line of code, or of a service. What is passed on is one line of JSON with what was
 * said in it; and the reader that keeps no tree takes nothing for JSON that jansson does not.
 */
#include "daemon/dataport_call.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Numbers may be beyond what jansson holds: then it cannot say. */
static void check_line(char *line, size_t length)
{
    json_error_t error;
    require(line && length > 0 && memchr(line, '\n', length) == line + length - 1);
    json_t *value = json_loadb(line, length, JSON_ALLOW_NUL, &error);
    require(json_is_object(value) || json_error_code(&error) == json_error_numeric_overflow ||
            json_error_code(&error) == json_error_null_byte_in_key);
    json_decref(value);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dataport_call call;
    struct dataport_answer answer;
    enum dataport_error error;
    size_t length = 0;
    const char *line = (const char *)data;
    if (size > 0 && memchr(data, '\n', size))
        return 0;
    if (dataport_call_parse(line, size, &call, &error) == 0) {
        char *forwarded = dataport_call_line(&call, 1, "{\"company\":\"acme\"}", &length);
        check_line(forwarded, length);
        if (call.id_text[0]) {
            char *refused = dataport_error_line(DATAPORT_TIMEOUT, call.id_text, &length);
            check_line(refused, length);
        }
    } else {
        require(error == DATAPORT_PARSE_ERROR || error == DATAPORT_INVALID_REQUEST);
    }
    if (dataport_answer_parse(line, size, &answer) == 0) {
        require(answer.known_number);
        char *handed = dataport_answer_line(&answer, "\"an id\"", &length);
        check_line(handed, length);
    }
    return 0;
}
