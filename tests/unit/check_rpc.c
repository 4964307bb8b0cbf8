/*
 * check_rpc.c - which lines are calls, and what the others are answered (C01, C02).
 */
#include "protocol/rpc.h"
#include "tests/unit/unit.h"

/* The answer to a line in which ' stands for ": "" for a notification, "call" for a call; malloc'd. */
static char *answer(const char *text)
{
    AR_AUTO_FREE char *line = unit_quote(text);
    struct rpc_call call = {0};
    struct rpc_error error = {0};
    int outcome = rpc_parse(line, strlen(line), &call, &error);
    ck_assert_int_ge(outcome, 0);
    if (outcome == RPC_CALL) {
        ck_assert(json_is_object(call.params));
        rpc_call_free(&call);
        return strdup("call");
    }
    if (error.id_text[0] == '\0')
        return strdup("");
    size_t length;
    char *refusal = rpc_refusal_line(&error, &length);
    ck_assert_uint_eq(strlen(refusal), length);
    ck_assert_int_eq(refusal[length - 1], '\n');
    return refusal;
}

static void expect(const char *text, const char *id, int code, const char *path,
                   const char *problem)
{
    AR_AUTO_FREE char *line = answer(text);
    json_error_t ignored;
    AR_AUTO_JSON json_t *reply = json_loads(line, 0, &ignored);
    ck_assert_msg(json_is_object(reply), "%.200s: %s", text, line);
    AR_AUTO_FREE char *echoed = json_canonical(json_object_get(reply, "id"));
    ck_assert_msg(strcmp(echoed, id) == 0, "%.200s: id %s", text, echoed);
    const json_t *error = json_object_get(reply, "error");
    ck_assert_msg(json_integer_value(json_object_get(error, "code")) == code, "%.200s: %s", text,
                  line);
    const json_t *data = json_object_get(error, "data");
    ck_assert_msg((data != NULL) == (path != NULL), "%.200s: %s", text, line);
    if (!path)
        return;
    ck_assert_msg(strcmp(json_string_value(json_object_get(data, "path")), path) == 0, "%s", line);
    ck_assert_msg(strcmp(json_string_value(json_object_get(data, "problem")), problem) == 0, "%s",
                  line);
}

START_TEST(test_calls)
{
    for (size_t i = 0; i < RPC_METHOD_COUNT; i++) {
        char line[200];
        struct rpc_call call = {0};
        struct rpc_error error = {0};
        (void)snprintf(line, sizeof(line),
                       "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"id\":\"x\",\"params\":{\"a\":1}}",
                       rpc_method_word((enum rpc_method)i));
        ck_assert_int_eq(rpc_parse(line, strlen(line), &call, &error), RPC_CALL);
        ck_assert_uint_eq(call.method, i);
        ck_assert_str_eq(call.id_text, "\"x\"");
        ck_assert_int_eq(json_integer_value(json_object_get(call.params, "a")), 1);
        rpc_call_free(&call);
        rpc_call_free(&call);
    }
}
END_TEST

START_TEST(test_ids_are_kept)
{
    static const char *const ids[] = {"1",
                                      "-5",
                                      "0",
                                      "-0",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "1.5",
                                      "1.50",
                                      "1e2",
                                      "0.1",
                                      "5e-324",
                                      "\"\"",
                                      "\"a b\"",
                                      "\"\\u0041\\n\"",
                                      "\"\xc3\xa9\"",
                                      "\"null\"",
                                      "\"\\u0000\"",
                                      NULL};
    for (size_t i = 0; ids[i]; i++) {
        char line[200];
        struct rpc_call call = {0};
        struct rpc_error error = {0};
        size_t length;
        (void)snprintf(line, sizeof(line),
                       "{\"id\": %s ,\"method\":\"status\",\"jsonrpc\":\"2.0\"}", ids[i]);
        ck_assert_msg(rpc_parse(line, strlen(line), &call, &error) == RPC_CALL, "%s", ids[i]);
        ck_assert_str_eq(call.id_text, ids[i]);
        AR_AUTO_FREE char *reply = rpc_result_line(call.id_text, call.params, &length);
        (void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n",
                       ids[i]);
        ck_assert_str_eq(reply, line);
        ck_assert_uint_eq(length, strlen(line));
        rpc_call_free(&call);
    }
}
END_TEST

START_TEST(test_ids_that_cannot_be_kept)
{
    static const char *const ids[] = {"null",
                                      "true",
                                      "false",
                                      "{}",
                                      "[]",
                                      "[1]",
                                      "{'id':1}",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "1e400",
                                      "-1e400",
                                      "'\\ud800'",
                                      "'\xff'",
                                      "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]",
                                      NULL};
    for (size_t i = 0; ids[i]; i++) {
        char line[300];
        (void)snprintf(line, sizeof(line), "{'jsonrpc':'2.0','method':'status','id':%s}", ids[i]);
        expect(line, "null", RPC_INVALID_REQUEST, NULL, NULL);
    }
    AR_AUTO_FREE char *text =
        unit_repeat("{'jsonrpc':'2.0','method':'status','id':'", "x", 200, "'}");
    expect(text, "null", RPC_INVALID_REQUEST, NULL, NULL);
    AR_AUTO_FREE char *number =
        unit_repeat("{'jsonrpc':'2.0','method':'status','id':1.", "1", 200, "}");
    expect(number, "null", RPC_INVALID_REQUEST, NULL, NULL);
}
END_TEST

START_TEST(test_no_json)
{
    static const char *const texts[] = {
        "", "x", "{", "{'jsonrpc':'2.0','id':1,'method':", "[1,", "[}", NULL};
    for (size_t i = 0; texts[i]; i++)
        expect(texts[i], "null", RPC_PARSE_ERROR, NULL, NULL);
}
END_TEST

START_TEST(test_no_call)
{
    static const char *const texts[] = {"[]",
                                        "[{'jsonrpc':'2.0','id':1,'method':'status'}]",
                                        "1",
                                        "'x'",
                                        "null",
                                        "{}",
                                        "{'id':1,'method':'status'}",
                                        "{'jsonrpc':'1.0','id':1,'method':'status'}",
                                        "{'jsonrpc':2.0,'id':1,'method':'status'}",
                                        "{'jsonrpc':'2.0\\u0000','id':1,'method':'status'}",
                                        "{'jsonrpc':null,'id':1,'method':'status'}",
                                        "{'jsonrpc':'2.0','id':1}",
                                        "{'jsonrpc':'2.0','id':1,'method':1}",
                                        "{'jsonrpc':'2.0','id':1,'method':1e400}",
                                        "{'jsonrpc':'2.0','id':1,'method':null}",
                                        "{'jsonrpc':'2.0','id':1,'method':'status','params':[]}",
                                        "{'jsonrpc':'2.0','id':1,'method':'status','params':null}",
                                        "{'jsonrpc':'2.0','id':1,'method':'status','params':1e400}",
                                        "{'jsonrpc':'2.0','id':1,'method':'status','Params':{}}",
                                        "{'jsonrpc':'2.0','id':1,'method':'status','x':1}",
                                        "{'jsonrpc':'2.0','id':1,'method':'status','result':{}}",
                                        "{'jsonrpc':'2.0','id':1,'method':'status','\xff':1}",
                                        NULL};
    for (size_t i = 0; texts[i]; i++)
        expect(texts[i], "null", RPC_INVALID_REQUEST, NULL, NULL);
}
END_TEST

START_TEST(test_outer_duplicates)
{
    static const char *const texts[] = {
        "{'jsonrpc':'2.0','id':1,'id':2,'method':'status'}",
        "{'jsonrpc':'2.0','id':1,'id':1,'method':'status'}",
        "{'jsonrpc':'2.0','id':1,'method':'status','method':'run'}",
        "{'jsonrpc':'2.0','id':1,'method':'status','params':{},'params':{}}",
        "{'jsonrpc':'2.0','id':1,'method':'status','params':{},'p\\u0061rams':{}}",
        "{'jsonrpc':'2.0','jsonrpc':'2.0','id':1,'method':'status'}",
        "{'jsonrpc':'2.0','id':1,'method':'run','params':{'a':1,'a':2},'id':2}",
        "{'jsonrpc':'2.0','id':1,'method':'run','params':{'A':1,'A':2},'params':{}}",
        "{'jsonrpc':'2.0','id':1,'method':'run','params':{'a':1e400},'params':{}}",
        NULL};
    for (size_t i = 0; texts[i]; i++)
        expect(texts[i], "null", RPC_INVALID_REQUEST, NULL, NULL);
}
END_TEST

#define RUN(params) "{'jsonrpc':'2.0','id':7,'method':'run','params':" params "}"

START_TEST(test_faults_in_params)
{
    static const char *const texts[][3] = {
        {RUN("{'grant':{'network':1,'network':2}}"), "/grant/network", "duplicate_member"},
        {RUN("{'grant':{'network':{},'\\u006eetwork':{}}}"), "/grant/network", "duplicate_member"},
        {RUN("{'grant':{},'grant':{}}"), "/grant", "duplicate_member"},
        {RUN("{'grant':{'limits':{'wall_ms':1,'wall_ms':2}}}"), "/grant/limits/wall_ms",
         "duplicate_member"},
        {RUN("{'files':[{'path':'a','path':'b'}]}"), "/files/0/path", "duplicate_member"},
        {RUN("{'CANARY':1,'CANARY':2}"), "", "duplicate_member"},
        {RUN("{'grant':{'limits':{'wall_ms':9223372036854775808}}}"), "/grant/limits/wall_ms",
         "out_of_range"},
        {RUN("{'grant':{'limits':{'wall_ms':1e400}}}"), "/grant/limits/wall_ms", "out_of_range"},
        {RUN("{'code':'\\ud800'}"), "/code", "not_utf8"},
        {RUN("{'code':'\xff'}"), "/code", "not_utf8"},
        {RUN("{'env':{'CANARY':1e999}}"), "/env", "out_of_range"},
        {RUN("[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]"), NULL, NULL},
        {RUN("{'a':[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}"), "/a/0/0/0/0/0/0/0/0/0/0/0/0/0/0",
         "too_deep"},
    };
    for (size_t i = 0; i < AR_COUNT(texts); i++) {
        bool inside = texts[i][1] != NULL;
        expect(texts[i][0], inside ? "7" : "null",
               inside ? RPC_INVALID_PARAMS : RPC_INVALID_REQUEST, texts[i][1], texts[i][2]);
    }
    AR_AUTO_FREE char *digits =
        unit_repeat("{'jsonrpc':'2.0','method':'run','params':{'grant':{'limits':{'wall_ms':", "9",
                    100000, "}}},'id':'x'}");
    expect(digits, "\"x\"", RPC_INVALID_PARAMS, "/grant/limits/wall_ms", "out_of_range");
}
END_TEST

START_TEST(test_unknown_method)
{
    expect("{'jsonrpc':'2.0','id':3,'method':'nope'}", "3", RPC_METHOD_NOT_FOUND, NULL, NULL);
    expect("{'jsonrpc':'2.0','id':3,'method':'run\\u0000'}", "3", RPC_METHOD_NOT_FOUND, NULL, NULL);
    expect("{'jsonrpc':'2.0','id':3,'method':'','params':{'a':1,'a':2}}", "3", RPC_METHOD_NOT_FOUND,
           NULL, NULL);
}
END_TEST

START_TEST(test_notifications_get_no_answer)
{
    static const char *const texts[] = {"{'jsonrpc':'2.0','method':'nope'}",
                                        "{'jsonrpc':'2.0','method':'run','params':{'a':1,'a':2}}",
                                        NULL};
    for (size_t i = 0; texts[i]; i++) {
        AR_AUTO_FREE char *line = answer(texts[i]);
        ck_assert_str_eq(line, "");
    }
    AR_AUTO_FREE char *call = answer("{'jsonrpc':'2.0','method':'status'}");
    ck_assert_str_eq(call, "call");
    /* What is no request at all is answered, for nobody can tell that it is a notification. */
    expect("{'method':'status'}", "null", RPC_INVALID_REQUEST, NULL, NULL);
}
END_TEST

START_TEST(test_error_repeats_nothing)
{
    static const char *const texts[] = {"{'jsonrpc':'2.0','id':7,'method':'CANARY'}",
                                        RUN("{'CANARY':1,'CANARY':2}"),
                                        RUN("{'CANARY':{'CANARY':1e400}}"),
                                        "CANARY",
                                        "{'CANARY':1}",
                                        RUN("{'a':'CANARY\xff'}"),
                                        NULL};
    for (size_t i = 0; texts[i]; i++) {
        AR_AUTO_FREE char *line = answer(texts[i]);
        ck_assert_msg(!strstr(line, "CANARY"), "%s", line);
    }
}
END_TEST

START_TEST(test_lines_out)
{
    size_t length;
    AR_AUTO_JSON json_t *params = unit_json("{'b':'\\n','a':1}");
    AR_AUTO_FREE char *notification = rpc_notification_line("output", params, &length);
    ck_assert_str_eq(
        notification,
        "{\"jsonrpc\":\"2.0\",\"method\":\"output\",\"params\":{\"b\":\"\\n\",\"a\":1}}\n");
    AR_AUTO_FREE char *request = rpc_request_line("5", RPC_METHOD_CANCEL, params, &length);
    ck_assert_str_eq(request, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"cancel\",\"params\":{"
                              "\"b\":\"\\n\",\"a\":1}}\n");
    AR_AUTO_FREE char *error = rpc_error_line("\"q\"", RPC_FORBIDDEN, NULL, &length);
    ck_assert_str_eq(error, "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"error\":{\"code\":-32002,"
                            "\"message\":\"forbidden\"}}\n");
    ck_assert_uint_eq(length, strlen(error));
    AR_AUTO_FREE char *with = rpc_error_line("1", RPC_AUDIT_FAILURE, params, &length);
    ck_assert_ptr_nonnull(strstr(with, "\"data\":{\"b\":\"\\n\",\"a\":1}"));
    struct rpc_call call = {0};
    struct rpc_error refused = {0};
    ck_assert_int_eq(rpc_parse(request, strlen(request), &call, &refused), RPC_CALL);
    ck_assert_int_eq(call.method, RPC_METHOD_CANCEL);
    rpc_call_free(&call);
}
END_TEST

/* A result with long texts comes out whole, and holds no newline but the last. */
START_TEST(test_long_result)
{
    size_t length;
    AR_AUTO_FREE char *text = unit_repeat("", "line\n\"\\\t\x01", 100000, "");
    AR_AUTO_JSON json_t *result = json_pack("{s:s}", "text", text);
    AR_AUTO_FREE char *line = rpc_result_line("1", result, &length);
    ck_assert_ptr_eq(strchr(line, '\n'), line + length - 1);
    AR_AUTO_JSON json_t *reply = json_loads(line, 0, NULL);
    ck_assert(json_equal(json_object_get(reply, "result"), result));
}
END_TEST

static const TTest **const in[] = {&test_calls,
                                   &test_ids_are_kept,
                                   &test_ids_that_cannot_be_kept,
                                   &test_no_json,
                                   &test_no_call,
                                   &test_outer_duplicates,
                                   &test_faults_in_params,
                                   &test_unknown_method,
                                   &test_notifications_get_no_answer,
                                   NULL};
static const TTest **const out[] = {&test_error_repeats_nothing, &test_lines_out, &test_long_result,
                                    NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"in", in}, {"out", out}};
    return unit_main("rpc", cases, AR_COUNT(cases));
}
