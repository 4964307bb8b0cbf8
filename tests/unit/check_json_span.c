/*
 * check_json_span.c - the members of an object are found where they are; and what is JSON to it is JSON to
 * jansson, and nothing else.
 */
#include "protocol/json_span.h"

#include "tests/unit/unit.h"

static struct json_span members[] = {{.name = "id"}, {.name = "a"}};
static bool is_json;

static enum json_outcome read_quoted(const char *text)
{
    static char *kept;
    free(kept);
    kept = unit_quote(text);
    return json_span_read(kept, strlen(kept), members, AR_COUNT(members), &is_json);
}

static void expect_span(size_t i, const char *wanted)
{
    if (!wanted) {
        ck_assert_ptr_null(members[i].text);
        return;
    }
    AR_AUTO_FREE char *quoted = unit_quote(wanted);
    ck_assert_ptr_nonnull(members[i].text);
    ck_assert_uint_eq(members[i].length, strlen(quoted));
    ck_assert_mem_eq(members[i].text, quoted, members[i].length);
}

START_TEST(test_members)
{
    ck_assert_int_eq(read_quoted(" { 'a' : [1, {'id':2}] , 'id':'x' } "), JSON_OK);
    expect_span(0, "'x'");
    expect_span(1, "[1, {'id':2}]");
    ck_assert_int_eq(read_quoted("{}"), JSON_OK);
    expect_span(0, NULL);
    expect_span(1, NULL);
    ck_assert_int_eq(read_quoted("{'id':-1.50e+3}"), JSON_OK);
    expect_span(0, "-1.50e+3");
    ck_assert_int_eq(read_quoted("{'id':1,'a':2,'b':3}"), JSON_FAULTY);
    expect_span(1, "2");
    ck_assert_int_eq(read_quoted("{'id':1,'id':2}"), JSON_FAULTY);
    expect_span(0, "1");
    ck_assert_int_eq(read_quoted("{'\\u0069d':1}"), JSON_FAULTY);
    expect_span(0, NULL);
    ck_assert_int_eq(read_quoted("[{'id':1}]"), JSON_BROKEN);
    ck_assert(is_json);
    expect_span(0, NULL);
    ck_assert_int_eq(read_quoted("{'id':1"), JSON_BROKEN);
    ck_assert(!is_json);
}
END_TEST

START_TEST(test_depth)
{
    for (size_t depth = JSON_MAX_DEPTH - 3; depth < JSON_MAX_DEPTH + 3; depth++) {
        AR_AUTO_FREE char *open = unit_repeat("{'a':", "[", depth - 1, "");
        AR_AUTO_FREE char *text = unit_repeat(open, "]", depth - 1, "}");
        ck_assert_int_eq(read_quoted(text), depth <= JSON_MAX_DEPTH ? JSON_OK : JSON_FAULTY);
    }
    AR_AUTO_FREE char *abyss = unit_repeat("{'a':", "[", 1000000, "");
    ck_assert_int_eq(read_quoted(abyss), JSON_FAULTY);
}
END_TEST

START_TEST(test_values)
{
    static const struct {
        const char *text;
        int64_t value;
    } integers[] = {{"0", 0},
                    {"-0", 0},
                    {"17", 17},
                    {"9223372036854775807", INT64_MAX},
                    {"-9223372036854775808", INT64_MIN}};
    static const char *const others[] = {
        "1.0", "1e2", "9223372036854775808", "'1'", "true", "-9223372036854775809", "[1]"};
    int64_t value = 1;
    for (size_t i = 0; i < AR_COUNT(integers); i++) {
        struct json_span span = {NULL, integers[i].text, strlen(integers[i].text)};
        ck_assert(json_span_integer(&span, &value));
        ck_assert_int_eq(value, integers[i].value);
    }
    for (size_t i = 0; i < AR_COUNT(others); i++) {
        struct json_span span = {NULL, others[i], strlen(others[i])};
        ck_assert(!json_span_integer(&span, &value));
    }
    ck_assert_int_eq(read_quoted("{'id':'2.0','a':2.0}"), JSON_OK);
    ck_assert(json_span_is(&members[0], "2.0"));
    ck_assert(!json_span_is(&members[0], "2."));
    ck_assert(!json_span_is(&members[1], "."));
}
END_TEST

/* Texts that are nearly JSON. */
static size_t make_text(struct unit_random *random, char *text)
{
    static const char *const parts[] = {"{",       "}",       "[",
                                        "]",       ",",       ":",
                                        "\"a\"",   "\"",      "\\",
                                        "\\u00e9", "\\n",     "1",
                                        "0",       "-",       ".",
                                        "e",       "+",       "12.5e3",
                                        "true",    "false",   "null",
                                        " ",       "\t",      "\xc3",
                                        "\xa9",    "\x01",    "\xf0\x9f\x98\x80",
                                        "\\ud83d", "\\ude00", "\"\"",
                                        "\"b\":",  "[1,2]",   "{\"c\":",
                                        "nul",     "/",       "\xff",
                                        "\\u12",   "]}",      "\":",
                                        "\"x\":1"};
    size_t length = 0, words = 1 + unit_random_below(random, 9);
    bool object = unit_random_below(random, 3) > 0;
    if (object)
        length += (size_t)snprintf(text, 16, "{\"a\":");
    for (size_t i = 0; i < words; i++)
        length += (size_t)snprintf(text + length, 16, "%s",
                                   parts[unit_random_below(random, AR_COUNT(parts))]);
    if (object)
        length += (size_t)snprintf(text + length, 16, "}");
    return length;
}

START_TEST(test_same_as_jansson)
{
    struct unit_random random = unit_random_new();
    int good = 0;
    for (int round = 0; round < 200000; round++) {
        char text[256];
        size_t length = make_text(&random, text);
        json_error_t error;
        AR_AUTO_JSON json_t *value =
            json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        enum json_outcome outcome =
            json_span_read(text, length, members, AR_COUNT(members), &is_json);
        ck_assert(is_json || outcome == JSON_BROKEN);
        if (!value && json_error_code(&error) == json_error_numeric_overflow)
            continue; /* its limit, not the grammar's */
        good += value != NULL;
        ck_assert_msg(is_json == (value != NULL), "seed %lu: \"%s\" is %sJSON to jansson (%s)",
                      (unsigned long)random.seed, text, value ? "" : "not ", error.text);
    }
    ck_assert_int_gt(good, 1000);
}
END_TEST

static const TTest **const tests[] = {&test_members, &test_depth, &test_values,
                                      &test_same_as_jansson, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"json_span", tests}};
    return unit_main("json_span", cases, AR_COUNT(cases));
}
