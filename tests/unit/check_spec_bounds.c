/*
 * check_spec_bounds.c - the most that a spec, a message and an outputs document may have, and one more.
 */
#include "protocol/spec.h"
#include "tests/unit/unit.h"

/* The form with the number in the place of #. Returns the length. */
static size_t put_number(char *out, size_t room, const char *form, size_t number)
{
    const char *place = strchr(form, '#');
    ck_assert_ptr_nonnull(place);
    int length = snprintf(out, room, "%.*s%zu%s", (int)(place - form), form, number, place + 1);
    ck_assert(length > 0 && (size_t)length < room);
    return (size_t)length;
}

static const char head[] =
    "{\"run_id\":\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\",\"language\":\"c\","
    "\"code_base64\":\"\"";

/* Parses a spec whose one member is this text; the others are as small as they can be. */
static enum problem problem_of(const char *member, const char *value)
{
    static const char *const rest[][2] = {
        {"args", "[]"}, {"outputs", "[]"}, {"env", "{}"}, {"files", "[]"}, {"grant", "{}"}};
    struct spec *spec = NULL;
    struct fault fault = {0};
    size_t room = strlen(value) + 512, length = 0;
    AR_AUTO_FREE char *text = malloc(room);
    ck_assert_ptr_nonnull(text);
    length += (size_t)snprintf(text, room, "%s", head);
    for (size_t i = 0; i < AR_COUNT(rest); i++)
        length += (size_t)snprintf(text + length, room - length, ",\"%s\":%s", rest[i][0],
                                   strcmp(rest[i][0], member) == 0 ? value : rest[i][1]);
    length += (size_t)snprintf(text + length, room - length, "}");
    int outcome = spec_parse(text, length, &spec, &fault);
    ck_assert((outcome == 0) == (fault.problem == PROBLEM_NONE));
    spec_free(spec);
    return fault.problem;
}

/* A list of count items of a form, which has the number of the item in it. */
static char *list_of(const char *open, const char *form, size_t count, const char *close)
{
    size_t room = strlen(open) + (strlen(form) + 24) * (count + 1) + strlen(close) + 1, length;
    char *text = malloc(room);
    ck_assert_ptr_nonnull(text);
    length = (size_t)snprintf(text, room, "%s", open);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text[length++] = ',';
        length += put_number(text + length, room - length, form, i);
    }
    (void)snprintf(text + length, room - length, "%s", close);
    return text;
}

START_TEST(test_counts_are_bounded)
{
    static const struct {
        const char *member, *open, *form, *close;
        size_t max;
    } cases[] = {
        {"args", "[", "\"#\"", "]", REQUEST_MAX_ARGS},
        {"env", "{", "\"V#\":\"\"", "}", REQUEST_MAX_ENV},
        {"files", "[", "{\"path\":\"#\",\"base64\":\"\"}", "]", REQUEST_MAX_FILES},
        {"outputs", "[", "\"#\"", "]", REQUEST_MAX_OUTPUTS},
        {"grant", "{\"network\":{\"mode\":\"allowlist\",\"hosts\":[", "\"h#.t:1\"", "]}}",
         GRANT_MAX_HOSTS},
        {"grant", "{\"data_api\":[", "\"a.b#\"", "]}", GRANT_MAX_METHODS},
        {"grant", "{\"secrets\":[", "\"K#\"", "]}", GRANT_MAX_SECRETS},
        {"grant", "{\"filesystem\":{\"read\":[", "\"/#\"", "]}}", GRANT_MAX_PATHS},
        {"grant", "{\"filesystem\":{\"write\":[", "\"/#\"", "]}}", GRANT_MAX_PATHS},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_FREE char *most =
            list_of(cases[i].open, cases[i].form, cases[i].max, cases[i].close);
        AR_AUTO_FREE char *more =
            list_of(cases[i].open, cases[i].form, cases[i].max + 1, cases[i].close);
        ck_assert_msg(problem_of(cases[i].member, most) == PROBLEM_NONE, "%s", most);
        ck_assert_msg(problem_of(cases[i].member, more) == PROBLEM_TOO_MANY, "%s", more);
    }
}
END_TEST

/* Texts of this many bytes between head and tail. */
static enum problem problem_of_long(const char *member, const char *begin, size_t bytes,
                                    const char *end)
{
    AR_AUTO_FREE char *value = unit_repeat(begin, "x", bytes, end);
    return problem_of(member, value);
}

START_TEST(test_lengths_are_bounded)
{
    static const struct {
        const char *member, *begin, *end;
        size_t max;
    } cases[] = {{"args", "[\"", "\"]", REQUEST_MAX_ARG_BYTES},
                 {"env", "{\"A\":\"", "\"}", REQUEST_MAX_ARG_BYTES},
                 {"outputs", "[\"", "\"]", 255},
                 {"files", "[{\"base64\":\"\",\"path\":\"", "\"}]", 255},
                 {"grant", "{\"data_api\":[\"a.", "\"]}", 126},
                 {"grant", "{\"secrets\":[\"", "\"]}", 64}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        ck_assert_msg(problem_of_long(cases[i].member, cases[i].begin, cases[i].max,
                                      cases[i].end) == PROBLEM_NONE,
                      "%s%s", cases[i].member, cases[i].begin);
        ck_assert_msg(problem_of_long(cases[i].member, cases[i].begin, cases[i].max + 1,
                                      cases[i].end) != PROBLEM_NONE,
                      "%s%s", cases[i].member, cases[i].begin);
    }
    /* All arguments together, each with its end. */
    AR_AUTO_FREE char *one = unit_repeat("", "x", 65535, "");
    AR_AUTO_FREE char *item = unit_repeat("\"", one, 1, "\",");
    AR_AUTO_FREE char *most = unit_repeat("[", item, 7, "\"\"]");
    AR_AUTO_FREE char *more = unit_repeat("[", item, 8, "\"\"]");
    ck_assert_int_eq(problem_of("args", most), PROBLEM_NONE);
    ck_assert_int_eq(problem_of("args", more), PROBLEM_TOO_LONG);
}
END_TEST

/* A document that is too long is not looked at: there are no bytes behind the first. */
START_TEST(test_documents_are_bounded)
{
    static char *items[] = {(char *)(uintptr_t) "a"};
    static const struct text_list asked = {items, 1};
    struct spec *spec = NULL;
    struct output_file *files = NULL;
    struct fault fault = {0};
    AR_AUTO_FREE char *byte = strdup("");
    ck_assert_int_eq(spec_parse(byte, SPEC_MAX_BYTES + (size_t)1, &spec, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_TOO_LONG);
    ck_assert_int_eq(spec_outputs_parse(byte, SPEC_MAX_BYTES + (size_t)1, &asked, &files, &fault),
                     1);
    ck_assert_int_eq(fault.problem, PROBLEM_TOO_LONG);
    AR_AUTO_FREE char *deep = unit_repeat("[", "[", 100000, "");
    ck_assert_int_ne(problem_of("args", deep), PROBLEM_NONE);
}
END_TEST

/* Blanks are part of the length. */
START_TEST(test_messages_are_bounded)
{
    static const char ready[] = "{\"ready\":true", clear[] = "{\"clear\":true";
    const size_t most = SPEC_MESSAGE_BYTES - sizeof(ready);
    enum spec_message kind;
    struct report report;
    struct spec_run order;
    for (size_t more = 0; more < 2; more++) {
        AR_AUTO_FREE char *provider = unit_repeat(ready, " ", most + more, "}");
        AR_AUTO_FREE char *daemon = unit_repeat(clear, " ", most + more, "}");
        ck_assert_uint_eq(strlen(provider), SPEC_MESSAGE_BYTES + more);
        ck_assert_int_eq(spec_parse_provider_message(provider, strlen(provider), &kind, &report),
                         (int)more);
        ck_assert_int_eq(spec_parse_daemon_message(daemon, strlen(daemon), &kind, &order),
                         (int)more);
    }
}
END_TEST

static const TTest **const bounds[] = {&test_counts_are_bounded, &test_lengths_are_bounded,
                                       &test_documents_are_bounded, &test_messages_are_bounded,
                                       NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"bounds", bounds}};
    return unit_main("spec_bounds", cases, AR_COUNT(cases));
}
