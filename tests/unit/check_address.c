/*
 * check_address.c - which addresses are public: each special range to its borders, whatever carries
 * another address inside, and the ranges that a configuration adds.
 */
#include "protocol/address.h"
#include "tests/unit/unit.h"

#include <netinet/in.h>

static struct address address(const char *text)
{
    struct address out;
    ck_assert_msg(address_parse(text, &out), "%s", text);
    return out;
}

static void expect_public(const char *const *texts, bool right)
{
    for (size_t i = 0; texts[i]; i++) {
        struct address one = address(texts[i]);
        ck_assert_msg(address_is_allowed(&one, NULL, 0) == right, "%s", texts[i]);
    }
}

/* First and last of each special range. */
START_TEST(test_special)
{
    static const char *const texts[] = {"0.0.0.0",
                                        "0.255.255.255",
                                        "10.0.0.0",
                                        "10.255.255.255",
                                        "100.64.0.0",
                                        "100.127.255.255",
                                        "127.0.0.0",
                                        "127.0.0.1",
                                        "127.255.255.255",
                                        "168.63.129.16",
                                        "169.254.0.0",
                                        "169.254.169.254",
                                        "169.254.255.255",
                                        "172.16.0.0",
                                        "172.31.255.255",
                                        "192.0.0.0",
                                        "192.0.0.255",
                                        "192.0.2.0",
                                        "192.0.2.255",
                                        "192.88.99.0",
                                        "192.88.99.255",
                                        "192.168.0.0",
                                        "192.168.255.255",
                                        "198.18.0.0",
                                        "198.19.255.255",
                                        "198.51.100.0",
                                        "198.51.100.255",
                                        "203.0.113.0",
                                        "203.0.113.255",
                                        "224.0.0.0",
                                        "239.255.255.255",
                                        "240.0.0.0",
                                        "255.255.255.254",
                                        "255.255.255.255",
                                        "::",
                                        "::1",
                                        "100::",
                                        "100::1",
                                        "1fff:ffff::1",
                                        "2001::",
                                        "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "2001:db8::",
                                        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "2002::",
                                        "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "3fff::",
                                        "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "4000::",
                                        "5f00::1",
                                        "8000::",
                                        "fc00::",
                                        "fd00:ec2::254",
                                        "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "fe80::",
                                        "fe80::1",
                                        "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "fec0::",
                                        "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "ff00::",
                                        "ff02::1",
                                        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        NULL};
    expect_public(texts, false);
}
END_TEST

/* The neighbors of those. */
START_TEST(test_public)
{
    static const char *const texts[] = {
        "1.0.0.0",         "9.255.255.255",
        "11.0.0.0",        "100.63.255.255",
        "100.128.0.0",     "126.255.255.255",
        "128.0.0.0",       "168.63.129.15",
        "168.63.129.17",   "169.253.255.255",
        "169.255.0.0",     "172.15.255.255",
        "172.32.0.0",      "191.255.255.255",
        "192.0.1.0",       "192.0.3.0",
        "192.88.98.255",   "192.88.100.0",
        "192.167.255.255", "192.169.0.0",
        "198.17.255.255",  "198.20.0.0",
        "198.51.99.255",   "198.51.101.0",
        "203.0.112.255",   "203.0.114.0",
        "223.255.255.255", "8.8.8.8",
        "2000::",          "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:200::",      "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db9::",      "2003::",
        "2606:4700::1111", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "3fff:1000::",     NULL};
    expect_public(texts, true);
}
END_TEST

/* Public or not, an address that carries another one is none that may be connected to. */
START_TEST(test_carried)
{
    static const char *const texts[] = {"::ffff:127.0.0.1",
                                        "::ffff:8.8.8.8",
                                        "::ffff:0:8.8.8.8",
                                        "::127.0.0.1",
                                        "::8.8.8.8",
                                        "64:ff9b::10.0.0.1",
                                        "64:ff9b::8.8.8.8",
                                        "64:ff9b:1::8.8.8.8",
                                        "2002:7f00:1::",
                                        "2002:808:808::1",
                                        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
                                        "fe80::5efe:8.8.8.8",
                                        NULL};
    expect_public(texts, false);
}
END_TEST

START_TEST(test_forms)
{
    static const char *const wrong[] = {"",           "1",          "127.1",      "127.0.1",
                                        "127.0.0.1.", "127.0.0.01", "0177.0.0.1", "0x7f.0.0.1",
                                        "0x7f000001", "2130706433", "256.0.0.1",  "1.2.3.4.5",
                                        " 1.2.3.4",   "1.2.3.4 ",   "+1.2.3.4",   "1.2.3.-4",
                                        "::g",        ":::",        "1::2::3",    "fe80::1%lo",
                                        "[::1]",      "::1/128",    "12345::",    NULL};
    struct address out;
    for (size_t i = 0; wrong[i]; i++)
        ck_assert_msg(!address_parse(wrong[i], &out), "%s", wrong[i]);
}
END_TEST

START_TEST(test_ranges)
{
    static const char *const right[] = {"127.0.0.1",   "10.0.0.0/8",   "0.0.0.0/0",
                                        "10.1.2.3/32", "10.128.0.0/9", "::/0",
                                        "fd00::/8",    "::1/128",      NULL};
    static const char *const wrong[] = {"",
                                        "/",
                                        "/8",
                                        "10.0.0.0/",
                                        "10.0.0.0/33",
                                        "10.0.0.0/08",
                                        "10.0.0.0/8 ",
                                        "10.0.0.0/-1",
                                        "10.0.0.0/+8",
                                        "10.0.0.1/8",
                                        "10.64.0.0/9",
                                        "fd00::/129",
                                        "fd00::1/8",
                                        "10.0.0.0/8/8",
                                        "10/8",
                                        "a.test/8",
                                        "1::/0",
                                        NULL};
    struct address_range range;
    for (size_t i = 0; right[i]; i++)
        ck_assert_msg(address_range_parse(right[i], &range), "%s", right[i]);
    for (size_t i = 0; wrong[i]; i++)
        ck_assert_msg(!address_range_parse(wrong[i], &range), "%s", wrong[i]);
}
END_TEST

/* What is allowed besides is exactly the range: no other form of the same address, no neighbor. */
START_TEST(test_allowed)
{
    static const struct {
        const char *range, *in[4], *out[6];
    } cases[] = {
        {"127.0.0.0/8", {"127.0.0.1", "127.255.255.255"}, {"::ffff:127.0.0.1", "::1", "10.0.0.1"}},
        {"10.128.0.0/9", {"10.128.0.0", "10.255.255.255"}, {"10.127.255.255", "10.0.0.0"}},
        {"192.168.7.1", {"192.168.7.1"}, {"192.168.7.0", "192.168.7.2"}},
        {"::1", {"::1"}, {"::", "::2", "127.0.0.1"}},
        {"::ffff:0:0/96", {"::ffff:127.0.0.1"}, {"127.0.0.1", "::1"}},
        {"fd00:1::/33", {"fd00:1:7fff::1"}, {"fd00:1:8000::", "fd00:2::", "fd00::"}},
        {"0.0.0.0/0", {"127.0.0.1", "255.255.255.255"}, {"::1", "::ffff:127.0.0.1"}},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct address_range range;
        ck_assert(address_range_parse(cases[i].range, &range));
        for (size_t n = 0; cases[i].in[n]; n++) {
            struct address one = address(cases[i].in[n]);
            ck_assert_msg(address_is_allowed(&one, &range, 1), "%s", cases[i].in[n]);
        }
        for (size_t n = 0; cases[i].out[n]; n++) {
            struct address one = address(cases[i].out[n]);
            ck_assert_msg(!address_is_allowed(&one, &range, 1), "%s", cases[i].out[n]);
        }
    }
}
END_TEST

START_TEST(test_sockets)
{
    static const char *const texts[] = {"192.0.2.7", "2001:db8::7", NULL};
    for (size_t i = 0; texts[i]; i++) {
        struct sockaddr_storage storage;
        struct address before = address(texts[i]), after;
        socklen_t length = address_to_sockaddr(&before, 443, &storage);
        ck_assert_uint_eq(length,
                          before.is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
        ck_assert(address_from_sockaddr((const struct sockaddr *)&storage, &after));
        ck_assert_mem_eq(&before, &after, sizeof before);
    }
    struct address none;
    const struct sockaddr other = {.sa_family = AF_UNIX};
    ck_assert(!address_from_sockaddr(&other, &none));
}
END_TEST

int main(void)
{
    static const TTest **const all[] = {&test_special, &test_public,  &test_carried, &test_forms,
                                        &test_ranges,  &test_allowed, &test_sockets, NULL};
    static const struct unit_case cases[] = {{"address", all}};
    return unit_main("address", cases, AR_COUNT(cases));
}
