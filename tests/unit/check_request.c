/*
 * check_request.c - the params of each method: what is taken, and where a fault is (C05, C06, C17,
 * C21).
 */
#include "protocol/request.h"
#include "tests/unit/unit.h"

#define BASE "'company':'acme','actor':'actor-1','purpose':'case','language':'python','grant':{}"
#define RUN  BASE ",'code':'print(1)'"

static int parse(const char *text, struct request **request, struct fault *fault)
{
    AR_AUTO_JSON json_t *params = unit_json(text);
    *fault = (struct fault){0};
    *request = NULL;
    return request_parse(params, request, fault);
}

static void expect_fault(const char *text, const char *path, enum problem problem)
{
    struct request *request;
    struct fault fault;
    ck_assert_msg(parse(text, &request, &fault) == 1, "%.200s", text);
    ck_assert_ptr_null(request);
    ck_assert_msg(fault.problem == problem, "%.200s: %s", text, problem_word(fault.problem));
    ck_assert_msg(strcmp(fault.path, path) == 0, "%.200s: at %s", text, fault.path);
}

static struct request *expect_request(const char *text)
{
    struct request *request;
    struct fault fault;
    int outcome = parse(text, &request, &fault);
    ck_assert_msg(outcome == 0, "%.200s: %s at %s", text, problem_word(fault.problem), fault.path);
    return request;
}

START_TEST(test_least)
{
    struct request *request = expect_request("{" RUN "}");
    ck_assert_str_eq(request->company, "acme");
    ck_assert_str_eq(request->language, "python");
    ck_assert_uint_eq(request->code.length, 8);
    ck_assert_ptr_null(request->executor);
    ck_assert_ptr_null(request->idempotency_key);
    ck_assert_ptr_null(request->trace_parent);
    ck_assert_uint_eq(request->stdin_bytes.length, 0);
    ck_assert_uint_eq(request->file_count + request->env_count + request->args.count, 0);
    ck_assert(!request->stream);
    ck_assert_int_eq(request->grant.network, NETWORK_NONE);
    char hex[DIGEST_HEX_BYTES];
    ck_assert_int_eq(digest_hex("print(1)", 8, hex), 0);
    ck_assert_str_eq(request->code_sha256, hex);
    request_free(request);
    request_free(NULL);
}
END_TEST

START_TEST(test_whole)
{
    struct request *request =
        expect_request("{" BASE ",'code_base64':'AAEC','executor':'namespace','args':['','a "
                       "b','x\\ny'],'stdin':'in\\u0000put',"
                       "'env':{'LANG':'C','x_1':''},'files':[{'path':'data/"
                       "in.csv','text':'1,2'},{'path':'b','base64':'/w=='}],"
                       "'outputs':['out/a','b'],'stream':true,'idempotency_key':'k1',"
                       "'traceparent':'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'}");
    ck_assert_uint_eq(request->code.length, 3);
    ck_assert_mem_eq(request->code.data, "\0\1\2", 3);
    ck_assert_str_eq(request->executor, "namespace");
    ck_assert_uint_eq(request->args.count, 3);
    ck_assert_str_eq(request->args.items[2], "x\ny");
    ck_assert_uint_eq(request->stdin_bytes.length, 6);
    ck_assert_mem_eq(request->stdin_bytes.data, "in\0put", 7);
    ck_assert_uint_eq(request->env_count, 2);
    ck_assert_str_eq(request->env[0].name, "LANG");
    ck_assert_str_eq(request->env[1].value, "");
    ck_assert_uint_eq(request->file_count, 2);
    ck_assert_str_eq(request->files[0].path, "data/in.csv");
    ck_assert_str_eq(request->files[0].content.data, "1,2");
    ck_assert_mem_eq(request->files[1].content.data, "\xff", 2);
    ck_assert_uint_eq(request->outputs.count, 2);
    ck_assert(request->stream);
    ck_assert_str_eq(request->idempotency_key, "k1");
    ck_assert_uint_eq(strlen(request->trace_parent), 55);
    request_free(request);
}
END_TEST

START_TEST(test_required_and_unknown)
{
    static const char *const required[] = {"company",  "actor", "purpose",
                                           "language", "grant", NULL};
    for (size_t i = 0; required[i]; i++) {
        char path[64];
        AR_AUTO_JSON json_t *params = unit_json("{" RUN "}");
        ck_assert_int_eq(json_object_del(params, required[i]), 0);
        struct request *request;
        struct fault fault = {0};
        ck_assert_int_eq(request_parse(params, &request, &fault), 1);
        ck_assert_int_eq(fault.problem, PROBLEM_MISSING);
        (void)snprintf(path, sizeof(path), "/%s", required[i]);
        ck_assert_str_eq(fault.path, path);
    }
    expect_fault("{" BASE "}", "/code", PROBLEM_MISSING);
    expect_fault("{" RUN ",'code_base64':''}", "/code_base64", PROBLEM_CONFLICT);
    expect_fault("{" RUN ",'stdin':'','stdin_base64':''}", "/stdin_base64", PROBLEM_CONFLICT);
    expect_fault("{" RUN ",'grants':{}}", "/grants", PROBLEM_UNKNOWN_MEMBER);
    expect_fault("{" RUN ",'CANARY':{}}", "", PROBLEM_UNKNOWN_MEMBER);
    expect_fault("{}", "/company", PROBLEM_MISSING);
}
END_TEST

START_TEST(test_attributes)
{
    static const char *const members[] = {"company", "actor", "purpose", "idempotency_key", NULL};
    static const struct {
        const char *value;
        enum problem problem;
    } values[] = {{"''", PROBLEM_EMPTY},
                  {"1", PROBLEM_WRONG_TYPE},
                  {"null", PROBLEM_WRONG_TYPE},
                  {"'a\\nb'", PROBLEM_CONTROL_CHARACTER},
                  {"'a\\u0000'", PROBLEM_CONTROL_CHARACTER},
                  {"'\\u007f'", PROBLEM_CONTROL_CHARACTER},
                  {"'\\u0085'", PROBLEM_CONTROL_CHARACTER},
                  {"'../globex'", PROBLEM_NONE},
                  {"'ACME \xc3\xa9'", PROBLEM_NONE}};
    AR_AUTO_FREE char *longest = unit_repeat("'", "\xc3\xa9", 100, "'");
    AR_AUTO_FREE char *longer = unit_repeat("'", "\xc3\xa9", 100, "x'");
    for (size_t i = 0; members[i]; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/%s", members[i]);
        for (size_t j = 0; j < AR_COUNT(values) + 2; j++) {
            const char *value = j < AR_COUNT(values)    ? values[j].value
                                : j == AR_COUNT(values) ? longest
                                                        : longer;
            enum problem problem = j < AR_COUNT(values)    ? values[j].problem
                                   : j == AR_COUNT(values) ? PROBLEM_NONE
                                                           : PROBLEM_TOO_LONG;
            AR_AUTO_JSON json_t *params = unit_json("{" RUN "}");
            ck_assert_int_eq(json_object_set_new(params, members[i], unit_json(value)), 0);
            struct request *request = NULL;
            struct fault fault = {0};
            int outcome = request_parse(params, &request, &fault);
            ck_assert_msg(fault.problem == problem, "%s %s: %s", members[i], value,
                          problem_word(fault.problem));
            ck_assert_int_eq(outcome, problem != PROBLEM_NONE);
            ck_assert_str_eq(fault.path, outcome ? path : "");
            request_free(request);
        }
    }
}
END_TEST

START_TEST(test_names)
{
    expect_fault("{" RUN ",'executor':'../x'}", "/executor", PROBLEM_MALFORMED);
    expect_fault("{" RUN ",'executor':''}", "/executor", PROBLEM_EMPTY);
    expect_fault(
        "{'company':'a','actor':'b','purpose':'c','grant':{},'code':'','language':'Python'}",
        "/language", PROBLEM_MALFORMED);
    expect_fault("{" RUN ",'stream':1}", "/stream", PROBLEM_WRONG_TYPE);
    static const char *const traces[] = {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                                         "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                         "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                         "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                         "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                                         "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                         NULL};
    for (size_t i = 0; traces[i]; i++) {
        char text[400];
        (void)snprintf(text, sizeof(text), "{" RUN ",'traceparent':'%s'}", traces[i]);
        expect_fault(text, "/traceparent", PROBLEM_MALFORMED);
    }
}
END_TEST

START_TEST(test_bytes)
{
    struct request *request = expect_request("{" BASE ",'code':''}");
    ck_assert_uint_eq(request->code.length, 0);
    request_free(request);
    request = expect_request("{" BASE ",'code':'a\\u0000b'}");
    ck_assert_uint_eq(request->code.length, 3);
    request_free(request);
    expect_fault("{" BASE ",'code':1}", "/code", PROBLEM_WRONG_TYPE);
    expect_fault("{" BASE ",'code':null}", "/code", PROBLEM_WRONG_TYPE);
    expect_fault("{" BASE ",'code_base64':'A'}", "/code_base64", PROBLEM_NOT_BASE64);
    expect_fault("{" BASE ",'code_base64':'AAE=\\n'}", "/code_base64", PROBLEM_NOT_BASE64);
    expect_fault("{" RUN ",'stdin_base64':'_w=='}", "/stdin_base64", PROBLEM_NOT_BASE64);
    expect_fault("{" RUN ",'stdin_base64':[]}", "/stdin_base64", PROBLEM_WRONG_TYPE);
}
END_TEST

START_TEST(test_args_and_env)
{
    expect_fault("{" RUN ",'args':'x'}", "/args", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'args':['a',1]}", "/args/1", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'args':['a\\u0000b']}", "/args/0", PROBLEM_CONTROL_CHARACTER);
    expect_fault("{" RUN ",'env':[]}", "/env", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'env':{'A=B':'1'}}", "/env", PROBLEM_MALFORMED);
    expect_fault("{" RUN ",'env':{'':'1'}}", "/env", PROBLEM_MALFORMED);
    expect_fault("{" RUN ",'env':{'CANARY':1}}", "/env", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'env':{'lower':1}}", "/env/lower", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'env':{'A':'\\u0000'}}", "/env", PROBLEM_CONTROL_CHARACTER);
    AR_AUTO_FREE char *longest =
        unit_repeat("{" RUN ",'args':['", "x", REQUEST_MAX_ARG_BYTES, "']}");
    request_free(expect_request(longest));
    AR_AUTO_FREE char *longer =
        unit_repeat("{" RUN ",'args':['", "x", REQUEST_MAX_ARG_BYTES + 1, "']}");
    expect_fault(longer, "/args/0", PROBLEM_TOO_LONG);
    AR_AUTO_FREE char *most =
        unit_repeat("{" RUN ",'args':[", "'a',", REQUEST_MAX_ARGS - 1, "'a']}");
    request_free(expect_request(most));
    AR_AUTO_FREE char *more = unit_repeat("{" RUN ",'args':[", "'a',", REQUEST_MAX_ARGS, "'a']}");
    expect_fault(more, "/args", PROBLEM_TOO_MANY);
    AR_AUTO_FREE char *item = unit_repeat("'", "x", 60000, "',");
    AR_AUTO_FREE char *sum = unit_repeat("{" RUN ",'args':[", item, 9, "'a']}");
    expect_fault(sum, "/args", PROBLEM_TOO_LONG);
}
END_TEST

START_TEST(test_env_count)
{
    for (size_t extra = 0; extra < 2; extra++) {
        AR_AUTO_JSON json_t *params = unit_json("{" RUN ",'env':{}}");
        json_t *env = json_object_get(params, "env");
        for (size_t i = 0; i < REQUEST_MAX_ENV + extra; i++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "V%zu", i);
            ck_assert_int_eq(json_object_set_new(env, name, json_string("x")), 0);
        }
        struct request *request = NULL;
        struct fault fault = {0};
        ck_assert_int_eq(request_parse(params, &request, &fault), (int)extra);
        ck_assert_int_eq(fault.problem, extra ? PROBLEM_TOO_MANY : PROBLEM_NONE);
        request_free(request);
    }
}
END_TEST

/* Dishonest names, alone and as the second of a list, as file and as output. */
START_TEST(test_dishonest_paths)
{
    AR_AUTO_FREE char *component = unit_repeat("", "x", 256, "");
    AR_AUTO_FREE char *all = unit_repeat("", "xxx/", 1024, "x");
    AR_AUTO_FREE char *deep = unit_repeat("", "x/", 59, "x");
    const struct {
        const char *path;
        enum problem problem;
    } paths[] = {{"../x", PROBLEM_MALFORMED},
                 {"/etc/cron.d/x", PROBLEM_MALFORMED},
                 {"a/../../x", PROBLEM_MALFORMED},
                 {".", PROBLEM_MALFORMED},
                 {"..", PROBLEM_MALFORMED},
                 {"", PROBLEM_EMPTY},
                 {"a//b", PROBLEM_MALFORMED},
                 {"a/", PROBLEM_MALFORMED},
                 {"a\\nb", PROBLEM_CONTROL_CHARACTER},
                 {"a\\u0000b", PROBLEM_CONTROL_CHARACTER},
                 {component, PROBLEM_MALFORMED},
                 {all, PROBLEM_TOO_LONG},
                 {deep, PROBLEM_MALFORMED}};
    for (size_t i = 0; i < AR_COUNT(paths); i++) {
        char text[5000];
        (void)snprintf(text, sizeof(text),
                       "{" RUN ",'files':[{'path':'ok','text':''},{'path':'%s','text':''}]}",
                       paths[i].path);
        expect_fault(text, "/files/1/path", paths[i].problem);
        (void)snprintf(text, sizeof(text), "{" RUN ",'outputs':['ok','%s']}", paths[i].path);
        expect_fault(text, "/outputs/1", paths[i].problem);
    }
}
END_TEST

START_TEST(test_clashing_paths)
{
    static const struct {
        const char *paths[5];
        int clash; /* index of the item at fault, -1: none */
        enum problem problem;
    } cases[] = {{{"a", "a/b"}, 1, PROBLEM_CONFLICT},
                 {{"a/b", "a"}, 1, PROBLEM_CONFLICT},
                 {{"a", "a"}, 1, PROBLEM_REPEATED},
                 {{"a", "a-b", "a/b"}, 2, PROBLEM_CONFLICT},
                 {{"a/b", "x", "a-b", "a"}, 3, PROBLEM_CONFLICT},
                 {{"a", "a.b", "a-b", "ab"}, -1, PROBLEM_NONE},
                 {{"a/b/c", "a/b/d", "a/c", "b"}, -1, PROBLEM_NONE},
                 {{"a/b/c/d", "a/b"}, 1, PROBLEM_CONFLICT},
                 {{"x", "y", "x", "y"}, 2, PROBLEM_REPEATED}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_JSON json_t *as_files = unit_json("{" RUN ",'files':[]}");
        AR_AUTO_JSON json_t *as_outputs = unit_json("{" RUN ",'outputs':[]}");
        for (size_t j = 0; j < AR_COUNT(cases[i].paths) && cases[i].paths[j]; j++) {
            const char *path = cases[i].paths[j];
            ck_assert_int_eq(
                json_array_append_new(json_object_get(as_files, "files"),
                                      json_pack("{s:s, s:s}", "path", path, "text", "")),
                0);
            ck_assert_int_eq(
                json_array_append_new(json_object_get(as_outputs, "outputs"), json_string(path)),
                0);
        }
        const json_t *both[] = {as_files, as_outputs};
        static const char *const forms[] = {"/files/%d/path", "/outputs/%d"};
        for (size_t k = 0; k < 2; k++) {
            char path[64] = "";
            struct request *request = NULL;
            struct fault fault = {0};
            int outcome = request_parse(both[k], &request, &fault);
            ck_assert_msg(outcome == (cases[i].clash >= 0), "case %zu", i);
            ck_assert_int_eq(fault.problem, cases[i].problem);
            if (cases[i].clash >= 0)
                (void)(k ? snprintf(path, sizeof(path), "/outputs/%d", cases[i].clash)
                         : snprintf(path, sizeof(path), "/files/%d/path", cases[i].clash));
            ck_assert_msg(strcmp(fault.path, path) == 0, "case %zu: %s (%s)", i, fault.path,
                          forms[k]);
            request_free(request);
        }
    }
}
END_TEST

START_TEST(test_file_entries)
{
    expect_fault("{" RUN ",'files':{}}", "/files", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'files':['a']}", "/files/0", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'files':[{'text':''}]}", "/files/0/path", PROBLEM_MISSING);
    expect_fault("{" RUN ",'files':[{'path':'a'}]}", "/files/0/text", PROBLEM_MISSING);
    expect_fault("{" RUN ",'files':[{'path':'a','text':'','base64':''}]}", "/files/0/base64",
                 PROBLEM_CONFLICT);
    expect_fault("{" RUN ",'files':[{'path':'a','text':'','mode':7}]}", "/files/0/mode",
                 PROBLEM_UNKNOWN_MEMBER);
    expect_fault("{" RUN ",'files':[{'path':1,'text':''}]}", "/files/0/path", PROBLEM_WRONG_TYPE);
    expect_fault("{" RUN ",'outputs':[1]}", "/outputs/0", PROBLEM_WRONG_TYPE);
    AR_AUTO_FREE char *files =
        unit_repeat("{" RUN ",'files':[", "{'path':'a','text':''},", 10000, "0]}");
    expect_fault(files, "/files", PROBLEM_TOO_MANY);
    AR_AUTO_FREE char *outputs = unit_repeat("{" RUN ",'outputs':[", "'a',", 10000, "0]}");
    expect_fault(outputs, "/outputs", PROBLEM_TOO_MANY);
    struct request *request = expect_request(
        "{" RUN ",'files':[{'path':'a/b/c.txt','text':'x'}],'outputs':['a/b/c.txt']}");
    ck_assert_str_eq(request->files[0].path, "a/b/c.txt");
    request_free(request);
}
END_TEST

START_TEST(test_grant_is_placed)
{
    expect_fault(
        "{'company':'a','actor':'b','purpose':'c','language':'python','code':'','grant':null}",
        "/grant", PROBLEM_WRONG_TYPE);
    expect_fault("{'company':'a','actor':'b','purpose':'c','language':'python','code':'',"
                 "'grant':{'limits':{'wall_ms':0}}}",
                 "/grant/limits/wall_ms", PROBLEM_OUT_OF_RANGE);
}
END_TEST

/* What decides the run changes the digest; how it is asked for does not. */
START_TEST(test_request_digest)
{
    static const struct {
        const char *text;
        bool same;
    } cases[] = {
        {"{" RUN "}", true},
        {"{'code':'print(1)'," BASE "}", true},
        {"{" RUN ",'stream':true}", true},
        {"{" RUN ",'idempotency_key':'k'}", true},
        {"{" RUN ",'traceparent':'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'}", true},
        {"{" BASE ",'code':'print(2)'}", false},
        {"{" RUN ",'args':[]}", false},
        {"{" RUN ",'stdin':'x'}", false},
        {"{" RUN ",'executor':'oci'}", false},
        {"{" RUN ",'env':{'A':'1'}}", false},
        {"{" RUN ",'outputs':['x']}", false},
        {"{" RUN ",'files':[{'path':'x','text':''}]}", false}};
    struct request *base = expect_request("{" RUN "}");
    ck_assert(digest_is_hex(base->request_sha256));
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct request *request = expect_request(cases[i].text);
        ck_assert_msg((strcmp(request->request_sha256, base->request_sha256) == 0) == cases[i].same,
                      "%s", cases[i].text);
        request_free(request);
    }
    request_free(base);
}
END_TEST

/* ---- the small methods -------------------------------------------------------------------------- */

#define RUN_ID "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"

START_TEST(test_cancel)
{
    static const struct {
        const char *text, *run_id, *id_text, *path;
        enum problem problem;
    } cases[] = {
        {"{'run_id':'" RUN_ID "'}", RUN_ID, "", "", PROBLEM_NONE},
        {"{'request_id':1}", "", "1", "", PROBLEM_NONE},
        {"{'request_id':'\\u0061'}", "", "'a'", "", PROBLEM_NONE},
        {"{'request_id':1.5}", "", "1.5", "", PROBLEM_NONE},
        {"{}", "", "", "/run_id", PROBLEM_MISSING},
        {"{'run_id':'" RUN_ID "','request_id':1}", "", "", "/request_id", PROBLEM_CONFLICT},
        {"{'run_id':'../x'}", "", "", "/run_id", PROBLEM_MALFORMED},
        {"{'run_id':1}", "", "", "/run_id", PROBLEM_WRONG_TYPE},
        {"{'request_id':null}", "", "", "/request_id", PROBLEM_WRONG_TYPE},
        {"{'request_id':{}}", "", "", "/request_id", PROBLEM_WRONG_TYPE},
        {"{'id':1}", "", "", "/id", PROBLEM_UNKNOWN_MEMBER}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_JSON json_t *params = unit_json(cases[i].text);
        AR_AUTO_FREE char *id_text = unit_quote(cases[i].id_text);
        struct cancel_request cancel;
        struct fault fault = {0};
        ck_assert_int_eq(cancel_request_parse(params, &cancel, &fault),
                         cases[i].problem != PROBLEM_NONE);
        ck_assert_int_eq(fault.problem, cases[i].problem);
        ck_assert_str_eq(fault.path, cases[i].path);
        ck_assert_str_eq(cancel.run_id, cases[i].run_id);
        ck_assert_str_eq(cancel.id_text, id_text);
    }
    AR_AUTO_FREE char *text = unit_repeat("{'request_id':'", "x", 200, "'}");
    AR_AUTO_JSON json_t *params = unit_json(text);
    struct cancel_request cancel;
    struct fault fault = {0};
    ck_assert_int_eq(cancel_request_parse(params, &cancel, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_TOO_LONG);
}
END_TEST

START_TEST(test_record)
{
    static const struct {
        const char *text, *path;
        enum problem problem;
    } cases[] = {
        {"{'run_id':'" RUN_ID "'}", "", PROBLEM_NONE},
        {"{'company':'acme','idempotency_key':'k'}", "", PROBLEM_NONE},
        {"{}", "/run_id", PROBLEM_MISSING},
        {"{'company':'acme'}", "/idempotency_key", PROBLEM_MISSING},
        {"{'idempotency_key':'k'}", "/company", PROBLEM_MISSING},
        {"{'run_id':'" RUN_ID "','company':'acme'}", "/company", PROBLEM_CONFLICT},
        {"{'run_id':'" RUN_ID "','idempotency_key':'k'}", "/idempotency_key", PROBLEM_CONFLICT},
        {"{'run_id':''}", "/run_id", PROBLEM_EMPTY},
        {"{'run':1}", "/run", PROBLEM_UNKNOWN_MEMBER},
        {"[]", "", PROBLEM_WRONG_TYPE}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_JSON json_t *params = unit_json(cases[i].text);
        struct record_request wanted;
        struct fault fault = {0};
        ck_assert_int_eq(record_request_parse(params, &wanted, &fault),
                         cases[i].problem != PROBLEM_NONE);
        ck_assert_int_eq(fault.problem, cases[i].problem);
        ck_assert_str_eq(fault.path, cases[i].path);
    }
}
END_TEST

START_TEST(test_no_params)
{
    AR_AUTO_JSON json_t *none = unit_json("{}");
    AR_AUTO_JSON json_t *some = unit_json("{'verbose':true}");
    struct fault fault = {0};
    ck_assert_int_eq(request_parse_empty(none, &fault), 0);
    ck_assert_int_eq(request_parse_empty(some, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_UNKNOWN_MEMBER);
    ck_assert_str_eq(fault.path, "/verbose");
}
END_TEST

static const TTest **const run[] = {&test_least,
                                    &test_whole,
                                    &test_required_and_unknown,
                                    &test_attributes,
                                    &test_names,
                                    &test_bytes,
                                    &test_args_and_env,
                                    &test_env_count,
                                    &test_dishonest_paths,
                                    &test_clashing_paths,
                                    &test_file_entries,
                                    &test_grant_is_placed,
                                    &test_request_digest,
                                    NULL};
static const TTest **const small[] = {&test_cancel, &test_record, &test_no_params, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"run", run}, {"small", small}};
    return unit_main("request", cases, AR_COUNT(cases));
}
