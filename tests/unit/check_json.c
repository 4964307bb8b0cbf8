/*
 * check_json.c - faults have a place, broken text has none, and nothing is quadratic (C01, C02).
 */
#include "tests/unit/unit.h"

#include <locale.h>
#include <time.h>

/* Parses text in which ' stands for "; the document is the caller's. */
static int parse(const char *text, struct json_document *document)
{
    AR_AUTO_FREE char *quoted = unit_quote(text);
    return json_parse(quoted, strlen(quoted), document);
}

struct expectation {
    const char *text;
    const char *path;
    enum problem problem;
};

static void expect_faults(const struct expectation *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json_document document;
        int outcome = parse(expected[i].text, &document);
        ck_assert_msg(outcome == JSON_FAULTY, "%.100s: outcome %d", expected[i].text, outcome);
        ck_assert_msg(document.fault.problem == expected[i].problem, "%.100s: %s", expected[i].text,
                      problem_word(document.fault.problem));
        ck_assert_msg(strcmp(document.fault.path, expected[i].path) == 0, "%.100s: at %s",
                      expected[i].text, document.fault.path);
        json_document_free(&document);
    }
}

START_TEST(test_sound)
{
    static const char *const texts[] = {
        "{}",
        " { } \r\n",
        "{'a':[1,-1,0,-0,1.5,1e3,5e-324,1e-400,9223372036854775807,-9223372036854775808]}",
        "{'a':{'a':{'a':[[],{},'']}}}",
        "{'a':'\\u0000\\ud83d\\ude00\\n','b':true,'c':false,'d':null}",
        "{'a':1,'b':1}",
        "{'':0}",
        "{'a':'{[,]}:\\\\'}",
        "{'a':0e99999,'b':0.0e308}",
        NULL};
    for (size_t i = 0; texts[i]; i++) {
        struct json_document document;
        ck_assert_msg(parse(texts[i], &document) == JSON_OK, "%s", texts[i]);
        ck_assert(json_is_object(document.root));
        ck_assert_int_eq(document.fault.problem, PROBLEM_NONE);
        json_document_free(&document);
        ck_assert_ptr_null(document.root);
    }
}
END_TEST

START_TEST(test_broken)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "}",
                                        "{'a'}",
                                        "{'a':}",
                                        "{'a':1,}",
                                        "{,}",
                                        "{'a':1 'b':2}",
                                        "{'a':01}",
                                        "{'a':1.}",
                                        "{'a':.5}",
                                        "{'a':+1}",
                                        "{'a':--99999999999999999999}",
                                        "{'a':1e}",
                                        "{'a':99999999999999999999x}",
                                        "{'a':0x10}",
                                        "{'a':NaN}",
                                        "{'a':Infinity}",
                                        "{'a':tru}",
                                        "{'a':'x}",
                                        "{'a':'\\x'}",
                                        "{'a':'\\u12g4'}",
                                        "{'a':'\t'}",
                                        "{a:1}",
                                        "{'a':1}}",
                                        "{'a':[1}",
                                        "{'a':1] }",
                                        "{'a':1}{",
                                        "{'a':1} x",
                                        "{'a':'\\",
                                        "{'a':'\\u",
                                        "/**/{}",
                                        "nul",
                                        "{'a':1e5.5}",
                                        "{'a':99999999999999999999.}",
                                        NULL};
    for (size_t i = 0; texts[i]; i++) {
        struct json_document document;
        ck_assert_msg(parse(texts[i], &document) == JSON_BROKEN, "%s", texts[i]);
        ck_assert_ptr_null(document.root);
        ck_assert_int_eq(document.fault.problem, PROBLEM_NONE);
    }
    struct json_document document;
    ck_assert_int_eq(json_parse("{\"a\":\0 1}", 9, &document), JSON_BROKEN);
    ck_assert_int_eq(json_parse("{}\0", 3, &document), JSON_BROKEN);
    ck_assert_int_eq(json_parse("\xef\xbb\xbf{}", 5, &document), JSON_BROKEN);
}
END_TEST

START_TEST(test_not_an_object)
{
    static const char *const texts[] = {"[]",   "[{'a':1}]", "1",     "'a'", "null",
                                        "true", " [1,2] ",   "1e400", NULL};
    for (size_t i = 0; texts[i]; i++) {
        struct json_document document;
        ck_assert_msg(parse(texts[i], &document) == JSON_BROKEN, "%s", texts[i]);
        ck_assert_int_eq(document.fault.problem, PROBLEM_WRONG_TYPE);
        ck_assert_str_eq(document.fault.path, "");
        ck_assert_ptr_null(document.root);
    }
}
END_TEST

START_TEST(test_duplicates)
{
    static const struct expectation expected[] = {
        {"{'p':{'network':1,'network':2}}", "/p/network", PROBLEM_DUPLICATE_MEMBER},
        {"{'p':{'network':1,'\\u006eetwork':2}}", "/p/network", PROBLEM_DUPLICATE_MEMBER},
        {"{'p':{'\\u006eetwork':1,'network':2}}", "/p/network", PROBLEM_DUPLICATE_MEMBER},
        {"{'p':[0,{'path':1,'path':2}]}", "/p/1/path", PROBLEM_DUPLICATE_MEMBER},
        {"{'p':{'l':{'a':1,'b':[{'c':1,'c':1}]}}}", "/p/l/b/0/c", PROBLEM_DUPLICATE_MEMBER},
        {"{'p':{'A b':1,'A b':2}}", "/p", PROBLEM_DUPLICATE_MEMBER},
        {"{'p':{'\\u0000':1,'\\u0000':2}}", "/p", PROBLEM_DUPLICATE_MEMBER},
        {"{'a':1,'a':2}", "/a", PROBLEM_DUPLICATE_MEMBER},
        {"{'A':1,'A':2}", "", PROBLEM_DUPLICATE_MEMBER},
        /* Not the same member: another object, another item, a value. */
        {"{'p':[{'a':1},{'a':1,'b':'a','b':0}]}", "/p/1/b", PROBLEM_DUPLICATE_MEMBER},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

START_TEST(test_outer_duplicates_win)
{
    static const char *const texts[] = {
        "{'id':1,'p':{'a':1,'a':2},'id':2}", "{'p':{'a':1,'a':2},'p':{}}",
        "{'p':{'a':1e400},'id':1,'id':2}",   "{'id':1,'\\u0069d':2}",
        "{'p':{'A':1,'A':2},'p':1}",         NULL};
    for (size_t i = 0; texts[i]; i++) {
        struct json_document document;
        ck_assert_msg(parse(texts[i], &document) == JSON_FAULTY, "%s", texts[i]);
        ck_assert_msg(document.outer_duplicate, "%s", texts[i]);
        ck_assert_int_eq(document.fault.problem, PROBLEM_DUPLICATE_MEMBER);
        json_document_free(&document);
    }
    struct json_document document;
    ck_assert_int_eq(parse("{'p':{'a':1,'a':2},'q':1}", &document), JSON_FAULTY);
    ck_assert(!document.outer_duplicate);
    json_document_free(&document);
}
END_TEST

START_TEST(test_numbers_that_do_not_fit)
{
    static const struct expectation expected[] = {
        {"{'p':{'wall_ms':9223372036854775808}}", "/p/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'wall_ms':-9223372036854775809}}", "/p/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'wall_ms':1e400}}", "/p/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'wall_ms':-1E+400}}", "/p/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'wall_ms':1e99999999999999999999}}", "/p/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'wall_ms':0.0001e313}}", "/p/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'p':[1,2,1e309]}", "/p/2", PROBLEM_OUT_OF_RANGE},
        {"{'p':[[],[1e309,1e310],1e311]}", "/p/1/0", PROBLEM_OUT_OF_RANGE},
        {"{'a':1e400,'p':{'x':1,'x':2}}", "/a", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'x':1,'x':2},'a':1e400}", "/p/x", PROBLEM_DUPLICATE_MEMBER},
        {"{'Secret text':{'b':1e400}}", "", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'Secret text':{'b':1e400}}}", "/p", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'\\u0062':1e400}}", "/p/b", PROBLEM_OUT_OF_RANGE},
        {"{'p':{'abcdefghijklmnopqrstuvwxyz012345':1e400}}", "/p/abcdefghijklmnopqrstuvwxyz012345",
         PROBLEM_OUT_OF_RANGE},
        {"{'p':{'abcdefghijklmnopqrstuvwxyz0123456':1e400}}", "/p", PROBLEM_OUT_OF_RANGE},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

START_TEST(test_number_of_many_digits)
{
    AR_AUTO_FREE char *whole = unit_repeat("{\"a\":{\"b\":", "7", 100000, "},\"id\":5}");
    AR_AUTO_FREE char *real = unit_repeat("{\"a\":{\"b\":0.", "7", 100000, "},\"id\":5}");
    const char *const texts[] = {whole, real};
    for (size_t i = 0; i < AR_COUNT(texts); i++) {
        struct json_document document;
        ck_assert_int_eq(json_parse(texts[i], strlen(texts[i]), &document), JSON_FAULTY);
        ck_assert_int_eq(document.fault.problem, PROBLEM_OUT_OF_RANGE);
        ck_assert_str_eq(document.fault.path, "/a/b");
        ck_assert_str_eq(document.id_text, "5");
        json_document_free(&document);
    }
}
END_TEST

START_TEST(test_depth)
{
    struct json_document document;
    AR_AUTO_FREE char *deepest = unit_repeat("{\"a\":", "[", JSON_MAX_DEPTH - 1, "");
    AR_AUTO_FREE char *sound = unit_repeat(deepest, "]", JSON_MAX_DEPTH - 1, ",\"id\":7}");
    ck_assert_int_eq(json_parse(sound, strlen(sound), &document), JSON_OK);
    ck_assert_str_eq(document.id_text, "7");
    json_document_free(&document);
    static const size_t levels[] = {JSON_MAX_DEPTH, JSON_MAX_DEPTH + 1, 100000};
    for (size_t i = 0; i < AR_COUNT(levels); i++) {
        AR_AUTO_FREE char *head = unit_repeat("{\"a\":", "[", levels[i], "\"]}\\\"\",{}");
        AR_AUTO_FREE char *deep = unit_repeat(head, "]", levels[i], ",\"id\":7}");
        ck_assert_int_eq(json_parse(deep, strlen(deep), &document), JSON_FAULTY);
        ck_assert_int_eq(document.fault.problem, PROBLEM_TOO_DEEP);
        ck_assert_str_eq(document.fault.path, "/a/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0");
        ck_assert_str_eq(document.id_text, "7");
        json_document_free(&document);
        AR_AUTO_FREE char *open = unit_repeat("{\"a\":", "[", levels[i], "");
        ck_assert_int_eq(json_parse(open, strlen(open), &document), JSON_BROKEN);
    }
}
END_TEST

START_TEST(test_not_utf8)
{
    static const struct expectation expected[] = {
        {"{'p':{'a':'x\xff'}}", "/p/a", PROBLEM_NOT_UTF8},
        {"{'p':{'a':'\xc0\xaf'}}", "/p/a", PROBLEM_NOT_UTF8},
        {"{'p':{'a':'\xed\xa0\x80'}}", "/p/a", PROBLEM_NOT_UTF8},
        {"{'p':{'a':'\\ud800'}}", "/p/a", PROBLEM_NOT_UTF8},
        {"{'p':{'a':'\\udc00'}}", "/p/a", PROBLEM_NOT_UTF8},
        {"{'p':{'a':'\\ud800\\n'}}", "/p/a", PROBLEM_NOT_UTF8},
        {"{'p':{'a':'\\ud800\\ud800'}}", "/p/a", PROBLEM_NOT_UTF8},
        {"{'p':['\\ud83d\\ude00','\\ud83d\\ude00\\udc00']}", "/p/1", PROBLEM_NOT_UTF8},
        {"{'p':{'\xff':1}}", "/p", PROBLEM_NOT_UTF8},
        {"{'p':{'\xff':1,'\xfe':2}}", "/p", PROBLEM_NOT_UTF8},
        {"{'p':{'\\ud800':1}}", "/p", PROBLEM_NOT_UTF8},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

START_TEST(test_id_text)
{
    static const char *const texts[][2] = {{"{'a':1}", ""},
                                           {"{'id':1}", "1"},
                                           {"{'id': -0 ,'a':2}", "-0"},
                                           {"{'id':1.50}", "1.50"},
                                           {"{'id':1e2}", "1e2"},
                                           {"{'\\u0069\\u0064':'x'}", "\"x\""},
                                           {"{'id':'a\\u0062\\n'}", "\"a\\u0062\\n\""},
                                           {"{'id':null}", "null"},
                                           {"{'id':{'id':1}}", "{\"id\":1}"},
                                           {"{'id':[1,[2]] }", "[1,[2]]"},
                                           {"{'a':{'id':3}}", ""},
                                           {"{'a':{'id':3},'id':4}", "4"},
                                           {"{'a':'id','b':[{'id':9}]}", ""}};
    for (size_t i = 0; i < AR_COUNT(texts); i++) {
        struct json_document document;
        AR_AUTO_FREE char *expected = unit_quote(texts[i][1]);
        ck_assert_int_eq(parse(texts[i][0], &document), JSON_OK);
        ck_assert_str_eq(document.id_text, expected);
        ck_assert(!document.id_too_long);
        json_document_free(&document);
    }
}
END_TEST

START_TEST(test_id_too_long)
{
    for (size_t length = JSON_ID_TEXT_BYTES - 5; length < JSON_ID_TEXT_BYTES + 5; length++) {
        struct json_document document;
        AR_AUTO_FREE char *text = unit_repeat("{\"id\":\"", "x", length - 2, "\"}");
        ck_assert_int_eq(json_parse(text, strlen(text), &document), JSON_OK);
        ck_assert_int_eq(document.id_too_long, length >= JSON_ID_TEXT_BYTES);
        ck_assert_uint_eq(strlen(document.id_text), document.id_too_long ? 0 : length);
        json_document_free(&document);
    }
}
END_TEST

/* Work per byte must not grow with the text: 4 MiB of each shape within a bound that any quadratic
 * step would break a thousand times over. */
START_TEST(test_linear)
{
    static const struct {
        const char *head, *unit, *tail;
    } shapes[] = {
        {"{\"a\":", "[", ""},
        {"{\"a\":[", "1e400,", "1]}"},
        {"{\"a\":[", "\"\\ud800\",", "1]}"},
        {"{\"a\":[", "{\"b\":1,\"b\":2},", "1]}"},
        {"{\"a\":\"", "\\u0000", "\"}"},
        {"{\"", "\\u0000", "\":1}"},
        {"{", "\"a\":1,", "\"a\":1}"},
        {"{\"a\":[", "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]],", "1]}"},
        {"{\"a\":", "7", "}"},
        {"", "\"", ""},
        {"{\"a\":[", "\"\xff\",", "1]}"},
        {"", "{\"a\":", ""},
    };
    for (size_t i = 0; i < AR_COUNT(shapes); i++) {
        size_t count = (4u << 20) / strlen(shapes[i].unit);
        AR_AUTO_FREE char *text =
            unit_repeat(shapes[i].head, shapes[i].unit, count, shapes[i].tail);
        struct json_document document;
        clock_t begin = clock();
        int outcome = json_parse(text, strlen(text), &document);
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        ck_assert_int_ge(outcome, 0);
        ck_assert_msg(seconds < 20, "shape %zu took %f s", i, seconds);
        if (outcome != JSON_BROKEN)
            json_document_free(&document);
    }
}
END_TEST

START_TEST(test_decimal_comma)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        return; /* this host has no locale with a decimal comma */
    struct json_document document;
    ck_assert_int_eq(parse("{'id':1.5,'a':1.5}", &document), JSON_OK);
    ck_assert_str_eq(document.id_text, "1.5");
    AR_AUTO_FREE char *text = json_canonical(json_object_get(document.root, "a"));
    ck_assert_str_eq(text, "1.5");
    json_document_free(&document);
}
END_TEST

/* Cutting or changing any byte of a sound text never reads out of bounds nor loses the outcome. */
START_TEST(test_mangled)
{
    AR_AUTO_FREE char *text =
        unit_quote("{'jsonrpc':'2.0','id':'\\u00e9','params':{'a':[1,-2.5e3,{'b':null}],"
                   "'c':'\xc3\xa9\\ud83d\\ude00','d':{'e':true}}}");
    size_t length = strlen(text);
    struct unit_random random = unit_random_new();
    for (size_t i = 0; i < 20000; i++) {
        char *copy = malloc(length); /* exactly as long, for the sanitizer */
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, text, length);
        size_t cut = i < length ? i : length;
        static const char bytes[] = "\"\\{}[]:,0e-u\xff";
        if (i >= length)
            copy[unit_random_below(&random, length)] =
                bytes[unit_random_below(&random, sizeof(bytes))];
        struct json_document document;
        int outcome = json_parse(copy, cut, &document);
        ck_assert_int_ge(outcome, 0);
        if (outcome != JSON_BROKEN)
            ck_assert(json_is_object(document.root));
        ck_assert_int_eq(outcome == JSON_FAULTY,
                         outcome != JSON_BROKEN && document.fault.problem != PROBLEM_NONE);
        json_document_free(&document);
        free(copy);
    }
}
END_TEST

/* ---- places and readers ------------------------------------------------------------------------- */

START_TEST(test_fault_paths)
{
    struct json_place grant = {.member = "grant"};
    struct json_place hosts = {.parent = &grant, .member = "hosts"};
    struct json_place third = {.parent = &hosts, .index = 3};
    struct json_place wild = {.parent = &grant, .member = "se/cret"};
    struct json_place below = {.parent = &wild, .member = "x"};
    const struct {
        const struct json_place *place;
        const char *member, *path;
    } expected[] = {{NULL, NULL, ""},
                    {NULL, "a_1", "/a_1"},
                    {&third, NULL, "/grant/hosts/3"},
                    {&hosts, "path", "/grant/hosts/path"},
                    {&below, "y", "/grant"},
                    {&grant, "Loud", "/grant"},
                    {&grant, "", "/grant"},
                    {&grant, "abcdefghijklmnopqrstuvwxyz0123456", "/grant"}};
    for (size_t i = 0; i < AR_COUNT(expected); i++) {
        struct fault fault = {0};
        ck_assert_int_eq(json_fault(&fault, expected[i].place, expected[i].member, PROBLEM_EMPTY),
                         1);
        ck_assert_str_eq(fault.path, expected[i].path);
        ck_assert_int_eq(json_fault(&fault, NULL, NULL, PROBLEM_MISSING), 1);
        ck_assert_int_eq(fault.problem, PROBLEM_EMPTY); /* the first one stays */
    }
}
END_TEST

START_TEST(test_check_object)
{
    static const struct json_member members[] = {{"a", true}, {"b", false}};
    static const struct {
        const char *text, *path;
        enum problem problem;
    } expected[] = {{"{'a':1}", "", PROBLEM_NONE},
                    {"{'a':null,'b':1}", "", PROBLEM_NONE},
                    {"{'b':1}", "/a", PROBLEM_MISSING},
                    {"{'a':1,'c':1}", "/c", PROBLEM_UNKNOWN_MEMBER},
                    {"{'a':1,'CANARY':1}", "", PROBLEM_UNKNOWN_MEMBER},
                    {"{'a':1,'a\\u0001':1}", "", PROBLEM_UNKNOWN_MEMBER},
                    {"[]", "", PROBLEM_WRONG_TYPE},
                    {"null", "", PROBLEM_WRONG_TYPE}};
    for (size_t i = 0; i < AR_COUNT(expected); i++) {
        struct fault fault = {0};
        AR_AUTO_JSON json_t *value = unit_json(expected[i].text);
        int outcome = json_check_object(value, members, AR_COUNT(members), NULL, &fault);
        ck_assert_int_eq(outcome, expected[i].problem != PROBLEM_NONE);
        ck_assert_int_eq(fault.problem, expected[i].problem);
        ck_assert_str_eq(fault.path, expected[i].path);
    }
}
END_TEST

START_TEST(test_read_integer)
{
    static const struct {
        const char *text;
        enum problem problem;
    } expected[] = {{"{'n':1}", PROBLEM_NONE},
                    {"{'n':10}", PROBLEM_NONE},
                    {"{'n':0}", PROBLEM_OUT_OF_RANGE},
                    {"{'n':-0}", PROBLEM_OUT_OF_RANGE},
                    {"{'n':11}", PROBLEM_OUT_OF_RANGE},
                    {"{'n':5.0}", PROBLEM_NOT_AN_INTEGER},
                    {"{'n':1e0}", PROBLEM_NOT_AN_INTEGER},
                    {"{'n':0.5}", PROBLEM_NOT_AN_INTEGER},
                    {"{'n':5e-324}", PROBLEM_NOT_AN_INTEGER},
                    {"{'n':'5'}", PROBLEM_WRONG_TYPE},
                    {"{'n':null}", PROBLEM_WRONG_TYPE},
                    {"{'n':true}", PROBLEM_WRONG_TYPE}};
    for (size_t i = 0; i < AR_COUNT(expected); i++) {
        struct fault fault = {0};
        int64_t number = -7;
        AR_AUTO_JSON json_t *object = unit_json(expected[i].text);
        int outcome = json_read_integer(object, "n", NULL, 1, 10, &number, &fault);
        ck_assert_int_eq(outcome, expected[i].problem != PROBLEM_NONE);
        ck_assert_msg(fault.problem == expected[i].problem, "%s", expected[i].text);
        ck_assert(outcome == 0 || number == -7);
        ck_assert_int_eq(json_read_integer(object, "absent", NULL, 1, 10, &number, &fault), 0);
    }
}
END_TEST

START_TEST(test_read_bool_and_line)
{
    AR_AUTO_JSON json_t *object = unit_json(
        "{'t':true,'n':null,'s':'text','e':'','c':'a\\u0000b','d':'\\u007f','u':'\\u2028'}");
    struct fault fault = {0};
    bool flag = false;
    const char *line = NULL;
    ck_assert_int_eq(json_read_bool(object, "absent", NULL, &flag, &fault), 0);
    ck_assert(!flag);
    ck_assert_int_eq(json_read_bool(object, "t", NULL, &flag, &fault), 0);
    ck_assert(flag);
    ck_assert_int_eq(json_read_bool(object, "n", NULL, &flag, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_WRONG_TYPE);
    ck_assert_int_eq(json_read_line(object, "s", NULL, 1, 4, &line, &fault), 0);
    ck_assert_str_eq(line, "text");
    ck_assert_int_eq(json_read_line(object, "u", NULL, 1, 4, &line, &fault), 0);
    static const struct {
        const char *member;
        enum problem problem;
    } wrong[] = {{"e", PROBLEM_EMPTY},
                 {"c", PROBLEM_CONTROL_CHARACTER},
                 {"d", PROBLEM_CONTROL_CHARACTER},
                 {"t", PROBLEM_WRONG_TYPE},
                 {"n", PROBLEM_WRONG_TYPE}};
    for (size_t i = 0; i < AR_COUNT(wrong); i++) {
        fault = (struct fault){0};
        ck_assert_int_eq(json_read_line(object, wrong[i].member, NULL, 1, 4, &line, &fault), 1);
        ck_assert_int_eq(fault.problem, wrong[i].problem);
    }
    fault = (struct fault){0};
    ck_assert_int_eq(json_read_line(object, "s", NULL, 1, 3, &line, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_TOO_LONG);
}
END_TEST

START_TEST(test_canonical)
{
    static const char *const texts[][2] = {
        {"{'b':1,'a':[ 2 ,{'d':null,'c':true}]}", "{'a':[2,{'c':true,'d':null}],'b':1}"},
        {"'\\u0001\\u001F\\u007f\\b\\f\\n\\r\\t\\/\\\\'",
         "'\\u0001\\u001f\x7f\\b\\f\\n\\r\\t/\\\\'"},
        {"'\\u2028\\u00e9e\\u0301\\ud83d\\ude00'", "'\xe2\x80\xa8\xc3\xa9"
                                                   "e\xcc\x81\xf0\x9f\x98\x80'"},
        {"'\\\\u00AB'", "'\\\\u00AB'"},
        {"[9007199254740991,-9007199254740991,0,-0]", "[9007199254740991,-9007199254740991,0,0]"},
        {"'\\u0000'", "'\\u0000'"},
        {"{'aa':1,'a_':2,'a':3,'B':4}", "{'B':4,'a':3,'a_':2,'aa':1}"},
        {"[]", "[]"},
        {"{}", "{}"},
        {"''", "''"}};
    for (size_t i = 0; i < AR_COUNT(texts); i++) {
        AR_AUTO_JSON json_t *value = unit_json(texts[i][0]);
        AR_AUTO_FREE char *expected = unit_quote(texts[i][1]);
        AR_AUTO_FREE char *text = json_canonical(value);
        ck_assert_str_eq(text, expected);
    }
    ck_assert_ptr_null(json_canonical(NULL));
}
END_TEST

static const TTest **const parsing[] = {&test_sound,
                                        &test_broken,
                                        &test_not_an_object,
                                        &test_duplicates,
                                        &test_outer_duplicates_win,
                                        &test_numbers_that_do_not_fit,
                                        &test_number_of_many_digits,
                                        &test_depth,
                                        &test_not_utf8,
                                        &test_id_text,
                                        &test_id_too_long,
                                        &test_linear,
                                        &test_decimal_comma,
                                        &test_mangled,
                                        NULL};
static const TTest **const reading[] = {&test_fault_paths,  &test_check_object,
                                        &test_read_integer, &test_read_bool_and_line,
                                        &test_canonical,    NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"parsing", parsing}, {"reading", reading}};
    return unit_main("json", cases, AR_COUNT(cases));
}
