/*
 * check_target.c - hosts as code asks for them (C13): what is a name, what an address, what neither;
 * and which entries of a grant cover it.
 */
#include "protocol/target.h"
#include "protocol/text.h"
#include "tests/unit/unit.h"

#define X63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static bool covers(const char *pattern, const char *authority)
{
    struct target target;
    ck_assert_msg(text_is_host_pattern(pattern), "%s", pattern);
    return target_parse_authority(authority, strlen(authority), 443, &target) &&
           target_matches(&target, pattern);
}

START_TEST(test_names)
{
    static const struct {
        const char *text, *name;
    } right[] = {
        {"api.t.test", "api.t.test"},       {"API.T.TEST", "api.t.test"},
        {"api.t.test.", "api.t.test"},      {"localhost", "localhost"},
        {"a_b._tcp.test", "a_b._tcp.test"}, {"xn--bcher-kva.test", "xn--bcher-kva.test"},
        {"1.2.3.4.test", "1.2.3.4.test"},   {"1.a", "1.a"},
        {"0xg.test", "0xg.test"},           {"a.0y1", "a.0y1"},
        {X63 ".test", X63 ".test"},
    };
    for (size_t i = 0; i < AR_COUNT(right); i++) {
        struct target target;
        ck_assert_msg(target_parse_host(right[i].text, strlen(right[i].text), &target), "%s",
                      right[i].text);
        ck_assert(!target.is_address);
        ck_assert_str_eq(target.name, right[i].name);
    }
}
END_TEST

/* Whatever some resolver makes an address of, and bytes that are in no name. */
START_TEST(test_no_names)
{
    static const char *const wrong[] = {"",
                                        ".",
                                        "..",
                                        ".a",
                                        "a..b",
                                        "a.test..",
                                        "127.1",
                                        "127.0.1",
                                        "0x7f000001",
                                        "0X7F000001",
                                        "0x7f.1",
                                        "0x7f.0.0.1",
                                        "0x",
                                        "a.0x",
                                        "2130706433",
                                        "017700000001",
                                        "0177.0.0.1",
                                        "127.0.0.1.",
                                        "127.0.0.01",
                                        "127.0.0.256",
                                        "1.2.3.4.5",
                                        "a.1",
                                        "1",
                                        "-a.test",
                                        "a-.test",
                                        "user@a.test",
                                        "a.test/",
                                        "a.test%00.evil.test",
                                        "a test",
                                        " a.test",
                                        "a.test ",
                                        "a.test\n",
                                        "a\ttest",
                                        "*.test",
                                        "b\xc3\xbc"
                                        "cher.test",
                                        "b\xef\xbc\xa1.test",
                                        "a\xe3\x80\x82test",
                                        "::1",
                                        "[::1",
                                        "[]",
                                        "[127.0.0.1]",
                                        "[fe80::1%lo]",
                                        "[::1]x",
                                        "[v1.a]",
                                        "[::1.]",
                                        "a:b",
                                        X63 "a.test",
                                        NULL};
    struct target target;
    for (size_t i = 0; wrong[i]; i++)
        ck_assert_msg(!target_parse_host(wrong[i], strlen(wrong[i]), &target), "%s", wrong[i]);
    ck_assert(!target_parse_host("a.test\0.evil.test", 17, &target));
    ck_assert(!target_parse_host("127.0.0.1\0", 10, &target));
    ck_assert(!target_parse_host("[::1\0]", 6, &target));
    ck_assert(!target_parse_host("a.test\0", 7, &target));
}
END_TEST

START_TEST(test_length)
{
    AR_AUTO_FREE char *longest = unit_repeat("abc", ".abcdefghi", 25, "");
    AR_AUTO_FREE char *dotted = unit_repeat("abc", ".abcdefghi", 25, ".");
    AR_AUTO_FREE char *longer = unit_repeat("abcd", ".abcdefghi", 25, "");
    struct target target;
    ck_assert_uint_eq(strlen(longest), 253);
    ck_assert(target_parse_host(longest, 253, &target));
    ck_assert(target_parse_host(dotted, 254, &target));
    ck_assert_str_eq(target.name, longest);
    ck_assert(!target_parse_host(longer, 254, &target));
}
END_TEST

START_TEST(test_addresses)
{
    static const char *const right[] = {"127.0.0.1",     "255.255.255.255",    "[::1]",
                                        "[2001:DB8::1]", "[::ffff:127.0.0.1]", NULL};
    struct target target;
    for (size_t i = 0; right[i]; i++) {
        ck_assert_msg(target_parse_host(right[i], strlen(right[i]), &target), "%s", right[i]);
        ck_assert(target.is_address && target.name[0] == '\0');
        ck_assert_int_eq(target.address.is_v6, right[i][0] == '[');
    }
}
END_TEST

START_TEST(test_authorities)
{
    static const char *const right[] = {"a.test:443", "a.test:1",      "a.test:65535",
                                        "[::1]:443",  "127.0.0.1:443", NULL};
    static const char *const wrong[] = {"",
                                        ":443",
                                        "a.test",
                                        "a.test:",
                                        "a.test:0",
                                        "a.test:00",
                                        "a.test:0443",
                                        "a.test:65536",
                                        "a.test:99999",
                                        "a.test:4294967739",
                                        "a.test:44a",
                                        "a.test: 443",
                                        "a.test:+443",
                                        "a.test:443:443",
                                        "a:b:443",
                                        "::1:443",
                                        "[::1]",
                                        "[::1]443",
                                        "[::1]x:443",
                                        "user@a.test:443",
                                        "user:443@a.test:443",
                                        NULL};
    struct target target;
    for (size_t i = 0; right[i]; i++)
        ck_assert_msg(target_parse_authority(right[i], strlen(right[i]), 0, &target), "%s",
                      right[i]);
    for (size_t i = 0; wrong[i]; i++)
        ck_assert_msg(!target_parse_authority(wrong[i], strlen(wrong[i]), 0, &target), "%s",
                      wrong[i]);
    ck_assert(target_parse_authority("a.test", 6, 80, &target));
    ck_assert_uint_eq(target.port, 80);
    ck_assert(!target_parse_authority("a.test:", 7, 80, &target));
}
END_TEST

START_TEST(test_grants)
{
    static const struct {
        const char *pattern, *authority;
        bool right;
    } cases[] = {
        {"api.t.test:443", "api.t.test", true},
        {"api.t.test:443", "api.t.test.", true},
        {"api.t.test:443", "API.T.TEST", true},
        {"api.t.test:443", "API.T.TEST.:443", true},
        {"api.t.test:443", "xapi.t.test", false},
        {"api.t.test:443", "x.api.t.test", false},
        {"api.t.test:443", "api.t.test.evil.test", false},
        {"api.t.test:443", "t.test", false},
        {"api.t.test:443", "api.t.test:80", false},
        {"api.t.test:443", "api.t.test:4430", false},
        {"api.t.test:443", "api.t.test:44", false},
        {"api.t.test:443", "api.t.test:0443", false},
        {"*.w.t.test:443", "w.t.test", false},
        {"*.w.t.test:443", "a.w.t.test", true},
        {"*.w.t.test:443", "A.W.T.TEST.", true},
        {"*.w.t.test:443", "a.b.w.t.test", true},
        {"*.w.t.test:443", "aw.t.test", false},
        {"*.w.t.test:443", "a.w.t.test.evil.test", false},
        {"*.w.t.test:443", ".w.t.test", false},
        {"*.w.t.test:443", "*.w.t.test", false},
        {"*.w.t.test:443", "a_b.w.t.test", true},
        {"*.w.t.test:443", "a.w.t.test:444", false},
        {"192.0.2.1:443", "192.0.2.1", true},
        {"192.0.2.1:443", "192.0.2.2", false},
        {"192.0.2.1:443", "[::ffff:192.0.2.1]", false},
        {"192.0.2.1:443", "192.0.2.1.test", false},
        {"[2001:db8::1]:443", "[2001:db8:0:0::1]", true},
        {"[2001:db8::1]:443", "[2001:DB8::1]", true},
        {"[2001:db8::1]:443", "[2001:db8::2]", false},
        {"*.test:443", "192.0.2.1", false},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        ck_assert_msg(covers(cases[i].pattern, cases[i].authority) == cases[i].right, "%s and %s",
                      cases[i].pattern, cases[i].authority);
}
END_TEST

/* Of two entries: all that the second covers is covered by the first. */
START_TEST(test_patterns)
{
    static const struct {
        const char *pattern, *other;
        bool right;
    } cases[] = {
        {"api.t.test:443", "api.t.test:443", true},
        {"api.t.test:443", "api.t.test:80", false},
        {"api.t.test:443", "*.t.test:443", false},
        {"*.t.test:443", "api.t.test:443", true},
        {"*.t.test:443", "*.t.test:443", true},
        {"*.t.test:443", "*.w.t.test:443", true},
        {"*.t.test:443", "*.w.t.test:80", false},
        {"*.t.test:443", "t.test:443", false},
        {"*.t.test:443", "*.test:443", false},
        {"*.t.test:443", "*.xt.test:443", false},
        {"*.t.test:443", "xt.test:443", false},
        {"*.t.test:443", "*.t.test.evil.test:443", false},
        {"192.0.2.1:80", "192.0.2.1:80", true},
        {"192.0.2.1:80", "192.0.2.2:80", false},
        {"[2001:db8::1]:443", "[2001:db8:0::1]:443", true},
        {"*.test:443", "192.0.2.1:443", false},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        ck_assert_msg(target_pattern_covers(cases[i].pattern, cases[i].other) == cases[i].right,
                      "%s and %s", cases[i].pattern, cases[i].other);
}
END_TEST

START_TEST(test_written)
{
    static const struct {
        const char *authority, *text;
    } cases[] = {{"A.test.:80", "a.test"},
                 {"a.test:8080", "a.test:8080"},
                 {"192.0.2.1:80", "192.0.2.1"},
                 {"[2001:DB8:0::1]:8", "[2001:db8::1]:8"}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct target target;
        char text[TARGET_AUTHORITY_BYTES];
        const char *from = cases[i].authority;
        ck_assert(target_parse_authority(from, strlen(from), 0, &target));
        target_to_authority(&target, 80, text);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

int main(void)
{
    static const TTest **const all[] = {&test_names,     &test_no_names,    &test_length,
                                        &test_addresses, &test_authorities, &test_grants,
                                        &test_patterns,  &test_written,     NULL};
    static const struct unit_case cases[] = {{"target", all}};
    return unit_main("target", cases, AR_COUNT(cases));
}
