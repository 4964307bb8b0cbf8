/*
 * check_proxy_socks.c - what a SOCKS5 client says: each message to the byte, in pieces as at once, and
 * each way to be wrong (C13).
 */
#include "protocol/proxy_socks.h"
#include "tests/unit/unit.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

/* Every beginning says "more", and all says that; what is behind is not used. */
static enum proxy_socks_code request(const uint8_t *data, size_t length, struct target *out)
{
    uint8_t more[600];
    size_t used = 0;
    enum proxy_socks_code code = PROXY_SOCKS_FAILURE;
    memcpy(more, data, length);
    memset(more + length, 0xff, sizeof more - length);
    for (size_t n = 0; n < length; n++)
        ck_assert_int_eq(proxy_socks_request(data, n, &used, &code, out), PROXY_SOCKS_MORE);
    ck_assert_int_eq(proxy_socks_request(more, sizeof more, &used, &code, out), PROXY_SOCKS_DONE);
    ck_assert_uint_eq(used, length);
    return code;
}

START_TEST(test_greeting)
{
    size_t used;
    bool offered;
    ck_assert_int_eq(proxy_socks_greeting(BYTES("\5\1\0"), &used, &offered), PROXY_SOCKS_DONE);
    ck_assert(offered && used == 3);
    ck_assert_int_eq(proxy_socks_greeting(BYTES("\5\3\2\1\0\5"), &used, &offered),
                     PROXY_SOCKS_DONE);
    ck_assert(offered && used == 5);
    ck_assert_int_eq(proxy_socks_greeting(BYTES("\5\2\1\2\0"), &used, &offered), PROXY_SOCKS_DONE);
    ck_assert(!offered && used == 4);
    ck_assert_int_eq(proxy_socks_greeting(BYTES(""), &used, &offered), PROXY_SOCKS_MORE);
    ck_assert_int_eq(proxy_socks_greeting(BYTES("\5"), &used, &offered), PROXY_SOCKS_MORE);
    ck_assert_int_eq(proxy_socks_greeting(BYTES("\5\2\0"), &used, &offered), PROXY_SOCKS_MORE);
    ck_assert_int_eq(proxy_socks_greeting(BYTES("\5\0"), &used, &offered), PROXY_SOCKS_BAD);
    ck_assert_int_eq(proxy_socks_greeting(BYTES("\4\1\0\120"), &used, &offered), PROXY_SOCKS_BAD);
}
END_TEST

START_TEST(test_requests)
{
    struct target target;
    ck_assert_int_eq(request(BYTES("\5\1\0\3\6A.test\1\273"), &target), PROXY_SOCKS_GRANTED);
    ck_assert_str_eq(target.name, "a.test");
    ck_assert_uint_eq(target.port, 443);
    ck_assert_int_eq(request(BYTES("\5\1\0\1\177\0\0\1\0\120"), &target), PROXY_SOCKS_GRANTED);
    ck_assert(target.is_address && !target.address.is_v6 && target.port == 80);
    ck_assert_int_eq(target.address.bytes[0], 127);
    ck_assert_int_eq(request(BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\120"), &target),
                     PROXY_SOCKS_GRANTED);
    ck_assert(target.is_address && target.address.is_v6 && target.address.bytes[15] == 1);
    /* An address that is written as a name is one all the same. */
    ck_assert_int_eq(request(BYTES("\5\1\0\3\011127.0.0.1\0\120"), &target), PROXY_SOCKS_GRANTED);
    ck_assert(target.is_address);
}
END_TEST

START_TEST(test_refused)
{
    struct target target;
    ck_assert_int_eq(request(BYTES("\5\2\0\3\6a.test\1\273"), &target),
                     PROXY_SOCKS_NO_SUCH_COMMAND);
    ck_assert_int_eq(request(BYTES("\5\3\0\3\6a.test\1\273"), &target),
                     PROXY_SOCKS_NO_SUCH_COMMAND);
    ck_assert_int_eq(request(BYTES("\5\1\0\3\6a.test\0\0"), &target), PROXY_SOCKS_NOT_ALLOWED);
    ck_assert_int_eq(request(BYTES("\5\1\0\3\0\1\273"), &target), PROXY_SOCKS_NOT_ALLOWED);
    ck_assert_int_eq(request(BYTES("\5\1\0\3\6a\0test\1\273"), &target), PROXY_SOCKS_NOT_ALLOWED);
    ck_assert_int_eq(request(BYTES("\5\1\0\3\6a\ntest\1\273"), &target), PROXY_SOCKS_NOT_ALLOWED);
    ck_assert_int_eq(request(BYTES("\5\1\0\3\005127.1\1\273"), &target), PROXY_SOCKS_NOT_ALLOWED);
    ck_assert_int_eq(request(BYTES("\5\1\0\3\5[::1]\1\273"), &target), PROXY_SOCKS_NOT_ALLOWED);
    uint8_t longest[4 + 256 + 2] = {5, 1, 0, 3, 255};
    memset(longest + 5, 'a', 255);
    longest[sizeof longest - 1] = 80;
    ck_assert_int_eq(request(longest, sizeof longest, &target), PROXY_SOCKS_NOT_ALLOWED);
}
END_TEST

START_TEST(test_bad)
{
    struct target target;
    size_t used;
    enum proxy_socks_code code;
    ck_assert_int_eq(proxy_socks_request(BYTES("\4"), &used, &code, &target), PROXY_SOCKS_BAD);
    ck_assert_int_eq(proxy_socks_request(BYTES("\5\1\1"), &used, &code, &target), PROXY_SOCKS_BAD);
    ck_assert_int_eq(proxy_socks_request(BYTES("\5\1\0\2a"), &used, &code, &target),
                     PROXY_SOCKS_DONE);
    ck_assert_int_eq(code, PROXY_SOCKS_NO_SUCH_ADDRESS_TYPE);
}
END_TEST

START_TEST(test_reply)
{
    uint8_t reply[PROXY_SOCKS_REPLY_BYTES];
    proxy_socks_reply(PROXY_SOCKS_HOST_UNREACHABLE, reply);
    ck_assert_mem_eq(reply, "\5\4\0\1\0\0\0\0\0\0", sizeof reply);
}
END_TEST

int main(void)
{
    static const TTest **const all[] = {&test_greeting, &test_requests, &test_refused,
                                        &test_bad,      &test_reply,    NULL};
    static const struct unit_case cases[] = {{"proxy_socks", all}};
    return unit_main("proxy_socks", cases, AR_COUNT(cases));
}
