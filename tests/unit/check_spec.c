/*
 * check_spec.c - the executor contract from both sides, with what an honest and a lying peer says.
 */
#include "protocol/spec.h"
#include "tests/unit/unit.h"

#define RUN_ID "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"

static struct request *sample_request(void)
{
    struct request *request = NULL;
    struct fault fault = {0};
    AR_AUTO_JSON json_t *params = unit_json(
        "{'company':'acme','actor':'a','purpose':'p','language':'python','code_base64':'AAH/"
        "','args':['','x\\ny'],"
        "'env':{'A':'1'},'files':[{'path':'d/f','text':'t'}],'outputs':['o'],"
        "'grant':{'network':{'mode':'allowlist','hosts':['a.test:1']},'limits':{'wall_ms':5}}}");
    ck_assert_int_eq(request_parse(params, &request, &fault), 0);
    return request;
}

START_TEST(test_spec_round_trip)
{
    struct request *request = sample_request();
    struct spec *spec = NULL;
    struct fault fault = {0};
    size_t length;
    AR_AUTO_FREE char *text = spec_build(RUN_ID, request, &request->grant, &length);
    ck_assert_uint_eq(strlen(text), length);
    ck_assert_msg(spec_parse(text, length, &spec, &fault) == 0, "%s at %s",
                  problem_word(fault.problem), fault.path);
    ck_assert_str_eq(spec->run_id, RUN_ID);
    ck_assert_str_eq(spec->language, "python");
    ck_assert_uint_eq(spec->code.length, 3);
    ck_assert_mem_eq(spec->code.data, "\0\1\xff", 3);
    ck_assert_uint_eq(spec->args.count, 2);
    ck_assert_str_eq(spec->args.items[1], "x\ny");
    ck_assert_uint_eq(spec->env_count, 1);
    ck_assert_str_eq(spec->env[0].value, "1");
    ck_assert_uint_eq(spec->file_count, 1);
    ck_assert_str_eq(spec->files[0].content.data, "t");
    ck_assert_str_eq(spec->outputs.items[0], "o");
    AR_AUTO_JSON json_t *before = grant_to_json(&request->grant);
    AR_AUTO_JSON json_t *after = grant_to_json(&spec->grant);
    ck_assert(json_equal(before, after));
    spec_free(spec);
    spec_free(NULL);
    request_free(request);
}
END_TEST

/* Nothing of who the run is for goes to the provider. */
START_TEST(test_spec_tells_no_more)
{
    struct request *request = sample_request();
    size_t length;
    AR_AUTO_FREE char *text = spec_build(RUN_ID, request, &request->grant, &length);
    AR_AUTO_JSON json_t *value = json_loads(text, 0, NULL);
    ck_assert_uint_eq(json_object_size(value), 8);
    ck_assert_ptr_null(strstr(text, "acme"));
    request_free(request);
}
END_TEST

START_TEST(test_spec_faults)
{
    static const struct {
        const char *member, *value, *path;
        enum problem problem;
    } cases[] = {{"run_id", "'x'", "/run_id", PROBLEM_MALFORMED},
                 {"run_id", NULL, "/run_id", PROBLEM_MISSING},
                 {"language", "'../x'", "/language", PROBLEM_MALFORMED},
                 {"code_base64", "'='", "/code_base64", PROBLEM_NOT_BASE64},
                 {"code_base64", NULL, "/code_base64", PROBLEM_MISSING},
                 {"args", "{}", "/args", PROBLEM_WRONG_TYPE},
                 {"env", "[]", "/env", PROBLEM_WRONG_TYPE},
                 {"files", "[{'path':'../x','base64':''}]", "/files/0/path", PROBLEM_MALFORMED},
                 {"files", "[{'path':'x','text':''}]", "/files/0/text", PROBLEM_UNKNOWN_MEMBER},
                 {"files", "[{'path':'x'}]", "/files/0/base64", PROBLEM_MISSING},
                 {"outputs", "['/etc/shadow']", "/outputs/0", PROBLEM_MALFORMED},
                 {"grant", "{'network':{}}", "/grant/network/mode", PROBLEM_MISSING},
                 {"grant", NULL, "/grant", PROBLEM_MISSING},
                 {"code", "''", "/code", PROBLEM_UNKNOWN_MEMBER}};
    struct request *request = sample_request();
    size_t length;
    AR_AUTO_FREE char *text = spec_build(RUN_ID, request, &request->grant, &length);
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_JSON json_t *value = json_loads(text, 0, NULL);
        if (cases[i].value)
            ck_assert_int_eq(json_object_set_new(value, cases[i].member, unit_json(cases[i].value)),
                             0);
        else
            ck_assert_int_eq(json_object_del(value, cases[i].member), 0);
        AR_AUTO_FREE char *changed = json_dumps(value, 0);
        struct spec *spec = NULL;
        struct fault fault = {0};
        ck_assert_msg(spec_parse(changed, strlen(changed), &spec, &fault) == 1, "%s",
                      cases[i].member);
        ck_assert_ptr_null(spec);
        ck_assert_msg(fault.problem == cases[i].problem, "%s: %s", cases[i].member,
                      problem_word(fault.problem));
        ck_assert_str_eq(fault.path, cases[i].path);
    }
    struct spec *spec = NULL;
    struct fault fault = {0};
    ck_assert_int_eq(spec_parse("{", 1, &spec, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_MALFORMED);
    request_free(request);
}
END_TEST

/* ---- messages ----------------------------------------------------------------------------------- */

START_TEST(test_messages)
{
    enum spec_message kind = SPEC_RUN;
    struct report report;
    struct spec_run order = {0};
    for (int ahead = 0; ahead < 2; ahead++) {
        AR_AUTO_FREE char *ready = spec_ready_message(ahead);
        ck_assert_int_eq(spec_parse_provider_message(ready, strlen(ready), &kind, &report), 0);
        ck_assert_int_eq(kind, ahead ? SPEC_READY_AHEAD : SPEC_READY);
        ck_assert_int_eq(spec_parse_daemon_message(ready, strlen(ready), &kind, &order), 1);
    }
    AR_AUTO_FREE char *run = spec_run_message(&(struct spec_run){.spec_bytes = 12345});
    ck_assert_int_eq(spec_parse_daemon_message(run, strlen(run), &kind, &order), 0);
    ck_assert_int_eq(kind, SPEC_RUN);
    ck_assert_uint_eq(order.spec_bytes, 12345);
    ck_assert_int_eq(spec_parse_provider_message(run, strlen(run), &kind, &report), 1);
    AR_AUTO_FREE char *clear = spec_clear_message();
    ck_assert_int_eq(spec_parse_daemon_message(clear, strlen(clear), &kind, &order), 0);
    ck_assert_int_eq(kind, SPEC_CLEAR);
    ck_assert_int_eq(spec_parse_provider_message(clear, strlen(clear), &kind, &report), 1);
}
END_TEST

START_TEST(test_reports_round_trip)
{
    static const enum limit limits[] = {LIMIT_CPU_MS, LIMIT_MEMORY_BYTES, LIMIT_PROCESSES,
                                        LIMIT_SCRATCH_BYTES};
    struct unit_random random = unit_random_new();
    for (int round = 0; round < 2000; round++) {
        struct report report = {.outcome = (enum outcome)unit_random_below(&random, OUTCOME_COUNT)};
        struct report again;
        enum spec_message kind;
        report.usage = USAGE_UNKNOWN;
        if (unit_random_below(&random, 2))
            report.usage.wall_us = (int64_t)(unit_random_next(&random) >> 11);
        if (unit_random_below(&random, 2))
            report.usage.memory_peak_bytes = 0;
        if (report.outcome == OUTCOME_EXITED || report.outcome == OUTCOME_COMPILE_FAILED)
            report.exit_code = (int)unit_random_below(&random, 256);
        if (report.outcome == OUTCOME_SIGNALED)
            report.signal = 1 + (int)unit_random_below(&random, 64);
        if (report.outcome == OUTCOME_LIMIT)
            report.limit = limits[unit_random_below(&random, AR_COUNT(limits))];
        AR_AUTO_FREE char *text = spec_report_message(&report);
        ck_assert_msg(spec_parse_provider_message(text, strlen(text), &kind, &again) == 0, "%s",
                      text);
        ck_assert_int_eq(kind, SPEC_REPORT);
        ck_assert_int_eq(again.outcome, report.outcome);
        ck_assert_int_eq(again.exit_code, report.exit_code);
        ck_assert_int_eq(again.signal, report.signal);
        ck_assert_int_eq(again.limit, report.limit);
        ck_assert_mem_eq(&again.usage, &report.usage, sizeof(report.usage));
    }
}
END_TEST

START_TEST(test_report_forms)
{
    static const char *const right[] = {
        "{'report':{'outcome':'exited','exit_code':137}}",
        "{'report':{'outcome':'exited','exit_code':0,'signal':null,'limit':null,'usage':{}}}",
        "{'report':{'outcome':'setup_failed'}}", NULL};
    for (size_t i = 0; right[i]; i++) {
        AR_AUTO_FREE char *text = unit_quote(right[i]);
        enum spec_message kind;
        struct report report;
        ck_assert_msg(spec_parse_provider_message(text, strlen(text), &kind, &report) == 0, "%s",
                      text);
        ck_assert_int_eq(report.usage.wall_us, -1);
    }
    static const char *const wrong[] = {
        "",
        "{}",
        "[]",
        "true",
        "ready",
        "{'ready':false}",
        "{'ready':1}",
        "{'ready':true,'x':1}",
        "{'ready':true,'ready':true}",
        "{'ready':true}{'ready':true}",
        "{'reported':{}}",
        "{'report':null}",
        "{'report':{}}",
        "{'report':{'outcome':'ok'}}",
        "{'report':{'outcome':1}}",
        "{'report':{'outcome':'exited'}}",
        "{'report':{'outcome':'exited','exit_code':256}}",
        "{'report':{'outcome':'exited','exit_code':-1}}",
        "{'report':{'outcome':'exited','exit_code':0.0}}",
        "{'report':{'outcome':'exited','exit_code':'0'}}",
        "{'report':{'outcome':'exited','exit_code':0,'signal':9}}",
        "{'report':{'outcome':'signaled'}}",
        "{'report':{'outcome':'signaled','signal':0}}",
        "{'report':{'outcome':'signaled','signal':65}}",
        "{'report':{'outcome':'signaled','signal':9,'exit_code':137}}",
        "{'report':{'outcome':'limit'}}",
        "{'report':{'outcome':'limit','limit':'wall_ms'}}",
        "{'report':{'outcome':'limit','limit':'output_bytes'}}",
        "{'report':{'outcome':'limit','limit':'memory'}}",
        "{'report':{'outcome':'setup_failed','limit':'cpu_ms'}}",
        "{'report':{'outcome':'setup_failed','message':'CANARY'}}",
        "{'report':{'outcome':'setup_failed','usage':{'wall_us':-1}}}",
        "{'report':{'outcome':'setup_failed','usage':{'wall_us':1e400}}}",
        "{'report':{'outcome':'setup_failed','usage':{'wall':1}}}",
        "{'report':{'outcome':'setup_failed','usage':null}}",
        NULL};
    for (size_t i = 0; wrong[i]; i++) {
        AR_AUTO_FREE char *text = unit_quote(wrong[i]);
        enum spec_message kind;
        struct report report;
        ck_assert_msg(spec_parse_provider_message(text, strlen(text), &kind, &report) == 1, "%s",
                      text);
    }
    AR_AUTO_FREE char *flood = unit_repeat("{\"ready\":true", " ", SPEC_MESSAGE_BYTES, "}");
    enum spec_message kind;
    struct report report;
    ck_assert_int_eq(spec_parse_provider_message(flood, strlen(flood), &kind, &report), 1);
}
END_TEST

START_TEST(test_run_forms)
{
    static const char *const wrong[] = {"{'run':{}}",
                                        "{'run':1}",
                                        "{'run':{'spec_bytes':0}}",
                                        "{'run':{'spec_bytes':100663297}}",
                                        "{'run':{'spec_bytes':1.0}}",
                                        "{'run':{'spec_bytes':1,'x':1}}",
                                        "{'walk':{'spec_bytes':1}}",
                                        "{'clear':false}",
                                        "{'clear':true,'run':{'spec_bytes':1}}",
                                        "",
                                        NULL};
    enum spec_message kind;
    struct spec_run order;
    for (size_t i = 0; wrong[i]; i++) {
        AR_AUTO_FREE char *text = unit_quote(wrong[i]);
        ck_assert_msg(spec_parse_daemon_message(text, strlen(text), &kind, &order) == 1, "%s",
                      text);
    }
}
END_TEST

START_TEST(test_outcome_words)
{
    for (size_t i = 0; i < OUTCOME_COUNT; i++) {
        enum outcome outcome;
        ck_assert(outcome_from_word(outcome_word((enum outcome)i), &outcome));
        ck_assert_uint_eq(outcome, i);
    }
    enum outcome outcome;
    ck_assert(!outcome_from_word("", &outcome));
    ck_assert(!outcome_from_word("timed_out", &outcome));
}
END_TEST

START_TEST(test_usage)
{
    struct usage usage = USAGE_UNKNOWN;
    AR_AUTO_JSON json_t *none = usage_to_json(&usage);
    ck_assert_uint_eq(json_object_size(none), 0);
    usage = (struct usage){1, 2, 3, 4, 5, 0, {6, 7, 8, 9}, {10, 11, 12, 0}};
    AR_AUTO_JSON json_t *all = usage_to_json(&usage);
    AR_AUTO_JSON json_t *expected =
        unit_json("{'wall_us':1,'user_us':2,'system_us':3,'memory_peak_bytes':4,"
                  "'processes_peak':5,'output_bytes':0,"
                  "'network':{'connections':6,'refusals':7,'bytes_in':8,'bytes_out':9},"
                  "'data_api':{'calls':10,'denials':11,'bytes_in':12,'bytes_out':0}}");
    ck_assert(json_equal(all, expected));
}
END_TEST

/* ---- outputs ------------------------------------------------------------------------------------ */

static struct text_list asked_for(const char *first, const char *second)
{
    struct text_list asked = {0};
    ck_assert_int_eq(text_list_add(&asked, first), 0);
    ck_assert_int_eq(text_list_add(&asked, second), 0);
    return asked;
}

START_TEST(test_outputs_round_trip)
{
    struct text_list asked = asked_for("a", "b/c");
    struct output_file files[] = {{.path = (char *)"a", .content = {(char *)"x\0y", 3}},
                                  {.path = (char *)"b/c", .problem = OUTPUT_TOO_BIG}};
    struct output_file *read = NULL;
    struct fault fault = {0};
    size_t length;
    AR_AUTO_FREE char *text = spec_outputs_build(files, 2, &length);
    ck_assert_int_eq(spec_outputs_parse(text, length, &asked, &read, &fault), 0);
    ck_assert_str_eq(read[0].path, "a");
    ck_assert_uint_eq(read[0].content.length, 3);
    ck_assert_mem_eq(read[0].content.data, "x\0y", 4);
    ck_assert_int_eq(read[0].problem, OUTPUT_OK);
    ck_assert_int_eq(read[1].problem, OUTPUT_TOO_BIG);
    ck_assert_uint_eq(read[1].content.length, 0);
    spec_outputs_free(read, 2);
    spec_outputs_free(NULL, 0);
    AR_AUTO_FREE char *none = spec_outputs_build(NULL, 0, &length);
    struct text_list nothing = {0};
    ck_assert_int_eq(spec_outputs_parse(none, length, &nothing, &read, &fault), 0);
    spec_outputs_free(read, 0);
    text_list_free(&asked);
}
END_TEST

START_TEST(test_outputs_forms)
{
    static const struct {
        const char *text, *path;
        enum problem problem;
    } cases[] = {
        {"{'outputs':[]}", "/outputs", PROBLEM_CONFLICT},
        {"{'outputs':[{'path':'a','base64':''}]}", "/outputs", PROBLEM_CONFLICT},
        {"{'outputs':[{'path':'b','base64':''},{'path':'a','base64':''}]}", "/outputs/0/path",
         PROBLEM_CONFLICT},
        {"{'outputs':[{'path':'a','base64':''},{'path':'../b','base64':''}]}", "/outputs/1/path",
         PROBLEM_CONFLICT},
        {"{'outputs':[{'path':'a','base64':''},{'path':'b'}]}", "/outputs/1/base64",
         PROBLEM_MISSING},
        {"{'outputs':[{'path':'a','base64':'','problem':'missing'},{'path':'b','base64':''}]}",
         "/outputs/0/base64", PROBLEM_CONFLICT},
        {"{'outputs':[{'path':'a','problem':'CANARY'},{'path':'b','base64':''}]}",
         "/outputs/0/problem", PROBLEM_NOT_ALLOWED_WORD},
        {"{'outputs':[{'path':'a','problem':''},{'path':'b','base64':''}]}", "/outputs/0/problem",
         PROBLEM_EMPTY},
        {"{'outputs':[{'path':'a','base64':'*'},{'path':'b','base64':''}]}", "/outputs/0/base64",
         PROBLEM_NOT_BASE64},
        {"{'outputs':[{'path':'a','base64':'','mode':1},{'path':'b','base64':''}]}",
         "/outputs/0/mode", PROBLEM_UNKNOWN_MEMBER},
        {"{'outputs':{}}", "/outputs", PROBLEM_WRONG_TYPE},
        {"{'outputs':[1,2]}", "/outputs/0", PROBLEM_WRONG_TYPE},
        {"{}", "/outputs", PROBLEM_MISSING},
        {"CANARY", "", PROBLEM_MALFORMED},
        {"", "", PROBLEM_MALFORMED},
    };
    struct text_list asked = asked_for("a", "b");
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_FREE char *text = unit_quote(cases[i].text);
        struct output_file *files = NULL;
        struct fault fault = {0};
        ck_assert_msg(spec_outputs_parse(text, strlen(text), &asked, &files, &fault) == 1, "%s",
                      text);
        ck_assert_ptr_null(files);
        ck_assert_msg(fault.problem == cases[i].problem, "%s: %s", text,
                      problem_word(fault.problem));
        ck_assert_msg(strcmp(fault.path, cases[i].path) == 0, "%s: at %s", text, fault.path);
    }
    text_list_free(&asked);
}
END_TEST

static const TTest **const specs[] = {&test_spec_round_trip, &test_spec_tells_no_more,
                                      &test_spec_faults, NULL};
static const TTest **const messages[] = {&test_messages,
                                         &test_reports_round_trip,
                                         &test_report_forms,
                                         &test_run_forms,
                                         &test_outcome_words,
                                         &test_usage,
                                         NULL};
static const TTest **const outputs[] = {&test_outputs_round_trip, &test_outputs_forms, NULL};

int main(void)
{
    static const struct unit_case cases[] = {
        {"specs", specs}, {"messages", messages}, {"outputs", outputs}};
    return unit_main("spec", cases, AR_COUNT(cases));
}
