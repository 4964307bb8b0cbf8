/*
 * check_text.c - which texts are names, paths and hosts (C05, C13, C17, C21), and base64.
 */
#include "protocol/text.h"
#include "tests/unit/unit.h"

#define REPEAT_16(x) x x x x x x x x x x x x x x x x
#define X64          REPEAT_16("xxxx")
#define X256         X64 X64 X64 X64

typedef bool question(const char *text);

static void expect(question *ask, bool answer, const char *const *texts)
{
    for (; *texts; texts++)
        ck_assert_msg(ask(*texts) == answer, "%.60s: not %s", *texts, answer ? "taken" : "refused");
}

START_TEST(test_names)
{
    static const char *const right[] = {
        "python", "c++", "c#", "a", "0", "x.y_z-1", "abcdefghijklmnopqrstuvwxyz012345", NULL};
    static const char *const wrong[] = {"",
                                        "Python",
                                        "+c",
                                        ".",
                                        "..",
                                        "a/b",
                                        "a b",
                                        "a\n",
                                        "-a",
                                        "\xc3\xa9",
                                        "abcdefghijklmnopqrstuvwxyz0123456",
                                        NULL};
    expect(text_is_name, true, right);
    expect(text_is_name, false, wrong);
}
END_TEST

START_TEST(test_identifiers)
{
    static const char *const right[] = {"BILLING_KEY", "_", "a1", X64, NULL};
    static const char *const wrong[] = {"",      "1a",  "../globex/KEY", "/etc/shadow", ".", "KEY/",
                                        "KEY\n", "a-b", "a=b",           X64 "x",       NULL};
    expect(text_is_identifier, true, right);
    expect(text_is_identifier, false, wrong);
}
END_TEST

START_TEST(test_api_methods_that_cover_others)
{
    static const struct {
        const char *pattern, *method;
        bool right;
    } cases[] = {{"a.b", "a.b", true},    {"a.b", "a.c", false},   {"a.b", "a.*", false},
                 {"a.*", "a.b", true},    {"a.*", "a.b.c", true},  {"a.*", "a.b.*", true},
                 {"a.*", "a.*", true},    {"a.*", "a", false},     {"a.*", "ab.c", false},
                 {"a.b.*", "a.*", false}, {"a.b.*", "a.b", false}, {"a.b", "a.b.c", false}};
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        ck_assert_msg(text_api_method_covers(cases[i].pattern, cases[i].method) == cases[i].right,
                      "%s and %s", cases[i].pattern, cases[i].method);
}
END_TEST

START_TEST(test_api_methods)
{
    static const char *const right[] = {"invoices.read", "invoices", "a.b.c", "Invoices.read_all-2",
                                        "invoices.*",    "a.b.*",    X64 X64, NULL};
    static const char *const wrong[] = {"",   "*",    ".",   "a.",  ".a",   "a..b",      "a.*.b",
                                        "a*", "a.b*", "a/b", "a b", "a.\n", X64 X64 "x", NULL};
    expect(text_is_api_method, true, right);
    expect(text_is_api_method, false, wrong);
}
END_TEST

START_TEST(test_canonical_paths)
{
    static const char *const right[] = {
        "/",         "/srv", "/srv/outbox/acme", "/srv/.hidden", "/srv/...", "/srv/outbox/ACME",
        "/\xc3\xa9", NULL};
    static const char *const wrong[] = {"",
                                        "srv/outbox/acme",
                                        "/srv/outbox/acme/../globex",
                                        "/srv/outbox//acme/./x",
                                        "/srv/outbox/acme/",
                                        "//",
                                        "/.",
                                        "/..",
                                        "/a/..",
                                        "/a\nb",
                                        "/a\x7f",
                                        "/" X256,
                                        NULL};
    expect(text_is_canonical_path, true, right);
    expect(text_is_canonical_path, false, wrong);
    AR_AUTO_FREE char *longest = unit_repeat("", "/abcd", 819, "");
    AR_AUTO_FREE char *longer = unit_repeat("", "/abcd", 819, "e");
    ck_assert_uint_eq(strlen(longest), 4095);
    ck_assert(text_is_canonical_path(longest));
    ck_assert(!text_is_canonical_path(longer));
}
END_TEST

START_TEST(test_relative_paths)
{
    static const char *const right[] = {"a", "a/b/c", ".profile", "a/..b", "\xc3\xa9/x", NULL};
    static const char *const wrong[] = {"",   "/a",   "../x", "/etc/cron.d/x", "a/../../x", ".",
                                        "..", "a//b", "a/",   "a/.",           "a\nb",      X256,
                                        NULL};
    expect(text_is_relative_path, true, right);
    expect(text_is_relative_path, false, wrong);
    AR_AUTO_FREE char *deepest = unit_repeat("x", "/x", 31, "");
    AR_AUTO_FREE char *deeper = unit_repeat("x", "/x", 32, "");
    ck_assert(text_is_relative_path(deepest));
    ck_assert(!text_is_relative_path(deeper));
    AR_AUTO_FREE char *longer = unit_repeat("x", "/" X64, 16, "");
    ck_assert(!text_is_relative_path(longer));
}
END_TEST

START_TEST(test_below_by_components)
{
    static const char root[] = "/srv/outbox/acme";
    ck_assert(text_path_is_below(root, root));
    ck_assert(text_path_is_below("/srv/outbox/acme/x", root));
    ck_assert(!text_path_is_below("/srv/outbox/acme-evil", root));
    ck_assert(!text_path_is_below("/srv/outbox/acm", root));
    ck_assert(!text_path_is_below("/srv/outbox", root));
    ck_assert(!text_path_is_below("/", root));
    ck_assert(!text_path_is_below("/srv/outbox/ACME", root));
    ck_assert(text_path_is_below("/anything", "/"));
    ck_assert(text_path_is_below("/", "/"));
}
END_TEST

START_TEST(test_host_patterns)
{
    static const char *const right[] = {"api.t.test:443",
                                        "*.w.t.test:443",
                                        "localhost:1",
                                        "a-b.c:65535",
                                        "*.test:443",
                                        "192.0.2.1:80",
                                        "[2001:db8::1]:443",
                                        "xn--bcher-kva.test:1",
                                        "[::ffff:192.0.2.1]:80",
                                        "1.a:2",
                                        NULL};
    static const char *const wrong[] = {"",
                                        "*",
                                        "*.test",
                                        "a*.t.test:443",
                                        ":443",
                                        "[::1]:443",
                                        "[::]:443",
                                        "*:443",
                                        "*.:443",
                                        "api.t.test",
                                        "api.t.test:",
                                        "api.t.test:0",
                                        "api.t.test:0443",
                                        "api.t.test:65536",
                                        "api.t.test:99999999999999999999",
                                        "api.t.test:44a",
                                        "api.t.test.:443",
                                        ".t.test:443",
                                        "a..b:1",
                                        "API.T.TEST:443",
                                        "user@api.t.test:443",
                                        "http://a.test:80",
                                        "a.test:80/",
                                        "a b:1",
                                        "a\n:1",
                                        "-a.test:1",
                                        "a-.test:1",
                                        "a_b.test:1",
                                        "127.0.0.1:80",
                                        "0.0.0.0:80",
                                        "1.2.3:80",
                                        "1.2.3.4.5:80",
                                        "01.2.3.4:80",
                                        "256.1.1.1:80",
                                        "0x7f.1:80",
                                        "2130706433:80",
                                        "*.1.2.3.4:80",
                                        "::1:443",
                                        "[::1:443",
                                        "[fe80::1%eth0]:1",
                                        "[2001:DB8::1]:1",
                                        "[]:1",
                                        "[2001:db8::1]",
                                        "b\xc3\xbc"
                                        "cher.test:1",
                                        "a.*.test:1",
                                        "**.test:1",
                                        X64 ".test:1",
                                        NULL};
    AR_AUTO_FREE char *longest = unit_repeat("abc", ".abcdefghi", 25, ":1");
    AR_AUTO_FREE char *longer = unit_repeat("abcd", ".abcdefghi", 25, ":1");
    expect(text_is_host_pattern, true, right);
    expect(text_is_host_pattern, false, wrong);
    ck_assert(text_is_host_pattern(longest));
    ck_assert(!text_is_host_pattern(longer));
}
END_TEST

START_TEST(test_utf8)
{
    static const char *const right[] = {"",
                                        "plain",
                                        "\xc3\xa9",
                                        "e\xcc\x81",
                                        "\xe2\x80\xa8",
                                        "\xed\x9f\xbf",
                                        "\xee\x80\x80",
                                        "\xf0\x9f\x98\x80",
                                        "\xf4\x8f\xbf\xbf",
                                        NULL};
    static const char *const wrong[] = {"\x80",
                                        "\xc0\xaf",
                                        "\xc1\xbf",
                                        "\xc3",
                                        "\xc3(",
                                        "\xe0\x9f\xbf",
                                        "\xe2\x80",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "a\xfe",
                                        "\xf0\x9f\x98",
                                        NULL};
    for (size_t i = 0; right[i]; i++)
        ck_assert(text_is_utf8(right[i], strlen(right[i])));
    for (size_t i = 0; wrong[i]; i++)
        ck_assert_msg(!text_is_utf8(wrong[i], strlen(wrong[i])), "wrong[%zu]", i);
}
END_TEST

START_TEST(test_control_characters)
{
    static const char *const without[] = {"",         " ~", "\xc2\xa0", "\xc3\x80", "\xe2\x80\xa8",
                                          "\xc3\xa9", NULL};
    static const char *const with[] = {"\n",       "a\t",       "\x01",     "\x1f", "\x7f",
                                       "\xc2\x80", "x\xc2\x9f", "\xc2\x85", NULL};
    for (size_t i = 0; without[i]; i++)
        ck_assert(!text_has_control(without[i], strlen(without[i])));
    for (size_t i = 0; with[i]; i++)
        ck_assert(text_has_control(with[i], strlen(with[i])));
    ck_assert(text_has_control("a\0b", 3));
}
END_TEST

START_TEST(test_base64_vectors)
{
    static const char *const vectors[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"},
                                             {"\xff\xfe\xfb", "//77"}};
    for (size_t i = 0; i < AR_COUNT(vectors); i++) {
        AR_AUTO_FREE char *text = text_base64_encode(vectors[i][0], strlen(vectors[i][0]));
        struct bytes bytes = {0};
        ck_assert_str_eq(text, vectors[i][1]);
        ck_assert_int_eq(text_base64_decode(text, strlen(text), &bytes), 0);
        ck_assert_uint_eq(bytes.length, strlen(vectors[i][0]));
        ck_assert_str_eq(bytes.data, vectors[i][0]);
        bytes_free(&bytes);
    }
}
END_TEST

START_TEST(test_base64_refuses)
{
    static const char *const wrong[] = {"Z",
                                        "Zg",
                                        "Zg=",
                                        "Zg===",
                                        "=",
                                        "==",
                                        "===",
                                        "====",
                                        "Zg=a",
                                        "Z===",
                                        "Zm9v\n",
                                        "Zm 9v",
                                        "Zm9-",
                                        "Zm9_",
                                        "Zh==",
                                        "Zm9=",
                                        "Zg==Zg==",
                                        "Zm9v=",
                                        "\xc3\xa9\xc3\xa9",
                                        "Zg=\xff",
                                        NULL};
    struct bytes bytes = {0};
    for (size_t i = 0; wrong[i]; i++)
        ck_assert_msg(text_base64_decode(wrong[i], strlen(wrong[i]), &bytes) == 1, "%s", wrong[i]);
    ck_assert_ptr_null(bytes.data);
    ck_assert_int_eq(text_base64_decode("Zm\0v", 4, &bytes), 1);
}
END_TEST

START_TEST(test_base64_round_trip)
{
    struct unit_random random = unit_random_new();
    for (size_t length = 0; length < 300; length++) {
        char data[300];
        struct bytes bytes = {0};
        for (size_t i = 0; i < length; i++)
            data[i] = (char)unit_random_next(&random);
        AR_AUTO_FREE char *text = text_base64_encode(data, length);
        ck_assert_int_eq(text_base64_decode(text, strlen(text), &bytes), 0);
        ck_assert_uint_eq(bytes.length, length);
        ck_assert_mem_eq(bytes.data, data, length);
        bytes_free(&bytes);
    }
}
END_TEST

START_TEST(test_lists)
{
    struct text_list list = {0};
    for (int i = 0; i < 100; i++) {
        char item[8];
        (void)snprintf(item, sizeof(item), "%d", i);
        ck_assert(!text_list_has(&list, item));
        ck_assert_int_eq(text_list_add(&list, item), 0);
        ck_assert(text_list_has(&list, item));
    }
    ck_assert_uint_eq(list.count, 100);
    ck_assert_str_eq(list.items[99], "99");
    text_list_free(&list);
    ck_assert_uint_eq(list.count, 0);
    struct bytes bytes = {0};
    ck_assert_int_eq(bytes_set(&bytes, "a\0b", 3), 0);
    ck_assert_int_eq(bytes_set(&bytes, "cd", 2), 0);
    ck_assert_uint_eq(bytes.length, 2);
    ck_assert_str_eq(bytes.data, "cd");
    bytes_free(&bytes);
}
END_TEST

static const TTest **const forms[] = {&test_names,
                                      &test_identifiers,
                                      &test_api_methods,
                                      &test_api_methods_that_cover_others,
                                      &test_canonical_paths,
                                      &test_relative_paths,
                                      &test_below_by_components,
                                      &test_host_patterns,
                                      &test_utf8,
                                      &test_control_characters,
                                      NULL};
static const TTest **const bytes_tests[] = {&test_base64_vectors, &test_base64_refuses,
                                            &test_base64_round_trip, &test_lists, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"forms", forms}, {"bytes", bytes_tests}};
    return unit_main("text", cases, AR_COUNT(cases));
}
