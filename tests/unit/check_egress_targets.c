/*
 * check_egress_targets.c - where the proxy of a run leads and where it never does: names that change their
 * addresses, aliases, redirects, names and addresses that are not granted (C12, C13, C14, C15).
 */
#include "daemon/egress_account.h"
#include "tests/lib/names.h"
#include "tests/unit/egress.h"

#include <net/if.h>
#include <sys/ioctl.h>

/* The address that was checked is the one that is connected to, and each connection asks anew. */
START_TEST(test_rebinding)
{
    names_set(names, "a.t.test", "127.1.0.1 127.0.0.1");
    names_set(names, "b.t.test", "127.0.0.1 127.0.0.1 127.1.0.1");
    allow("*.t.test");
    start();
    expect_tunnel("CONNECT a.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    for (size_t i = 2; i < 6; i++) {
        int fd = code();
        ask(fd, i % 2 ? "CONNECT a.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n"
                      : "GET http://a.t.test:%u/ HTTP/1.1\r\nHost: x\r\n\r\n");
        expect_answer(fd, "HTTP/1.1 403 ", "\r\n\r\nauditrun: address not allowed\n");
        ck_assert_uint_eq(names_asked(names, "a.t.test"), i);
    }
    for (int i = 0; i < 2; i++) {
        int fd = code();
        ck_assert_int_eq(socks(fd, "b.t.test", 8), 2);
        (void)close(fd);
    }
    expect_tunnel("CONNECT b.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_uint_eq(names_asked(names, "b.t.test"), 3);
    ck_assert_int_eq(used().connections, 2);
    ck_assert_int_eq(used().refusals, 6);
}
END_TEST

/* Of several addresses only those that are allowed are tried; an alias counts by where it ends. */
START_TEST(test_answers)
{
    names_set(names, "many.t.test", "127.0.0.1,10.0.0.1,::1,127.1.0.1,::ffff:127.1.0.1");
    names_set(names, "second.t.test", "127.1.0.9,127.1.0.1");
    names_set(names, "alias.t.test", "@other.test,127.1.0.1");
    names_set(names, "bad.t.test", "@other.test,127.0.0.1");
    names_set(names, "six.t.test", "::1,::ffff:127.1.0.1,64:ff9b::7f01:1,fe80::1");
    allow("*.t.test");
    start();
    expect_tunnel("CONNECT many.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_tunnel("CONNECT second.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_tunnel("CONNECT alias.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    static const char *const bad[] = {"CONNECT bad.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                                      "CONNECT six.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n"};
    for (size_t i = 0; i < AR_COUNT(bad); i++) {
        int fd = code();
        ask(fd, bad[i]);
        expect_answer(fd, "HTTP/1.1 403 ", "address not allowed");
    }
    ck_assert_uint_eq(names_asked(names, "other.test"), 0);
}
END_TEST

START_TEST(test_problems)
{
    static const struct {
        const char *name, *answers, *status, *reason;
        int code;
    } cases[] = {
        {"none.t.test", "-", "HTTP/1.1 502 ", "no such name", 4},
        {"fails.t.test", "!", "HTTP/1.1 504 ", "name not resolved", 4},
        {"slow.t.test", "?", "HTTP/1.1 504 ", "name not resolved", 4},
        {"closed.t.test", "127.1.0.9", "HTTP/1.1 502 ", "connection refused", 5},
    };
    config.connect_timeout_ms = 300;
    allow("*.t.test");
    start();
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        char text[200];
        names_set(names, cases[i].name, cases[i].answers);
        (void)snprintf(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                       cases[i].name, port);
        int fd = code();
        say(fd, text, strlen(text));
        expect_answer(fd, cases[i].status, cases[i].reason);
        fd = code();
        ck_assert_int_eq(socks(fd, cases[i].name, strlen(cases[i].name)), cases[i].code);
        (void)close(fd);
    }
    ck_assert_int_eq(used().connections, 0);
    ck_assert_int_eq(used().refusals, 0);
}
END_TEST

/* While one name is not found, others are. */
START_TEST(test_slow_resolver)
{
    names_set(names, "slow.t.test", "?");
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("*.t.test");
    start();
    int slow[5];
    for (size_t i = 0; i < AR_COUNT(slow); i++) {
        slow[i] = code();
        ask(slow[i], "CONNECT slow.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    WAIT(names_asked(names, "slow.t.test") >= AR_COUNT(slow));
    int64_t from_us = clock_monotonic_us();
    for (int i = 0; i < 10; i++)
        expect_tunnel("CONNECT ok.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_int_lt(clock_monotonic_us() - from_us, 5000000);
    for (size_t i = 0; i < AR_COUNT(slow); i++) {
        char byte;
        ck_assert(recv(slow[i], &byte, 1, 0) < 0 && errno == EAGAIN);
        (void)close(slow[i]);
    }
}
END_TEST

/* A redirect goes to the code as it is, and what the code makes of it is a request like any other. */
START_TEST(test_redirect)
{
    static const char moved[] = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n";
    static const char *const next[] = {"GET http://b.other:%u/ HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "GET http://127.1.0.1:%u/ HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "GET http://ok.t.test:1%u/ HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "GET http://ok.t.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "CONNECT ok.t.test:22 HTTP/1.1\r\nHost: x\r\n\r\n"};
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    int fd = code();
    ask(fd, "GET http://ok.t.test:%u/ HTTP/1.1\r\nHost: x\r\n\r\n");
    int there = serve();
    say(there, moved, sizeof moved - 1);
    (void)close(there);
    expect_answer(fd, moved, "");
    for (size_t i = 0; i < AR_COUNT(next); i++) {
        char heard[TEXT_BYTES];
        fd = code();
        ask(fd, next[i]);
        (void)hear(fd, heard, 0);
        ck_assert_msg(strncmp(heard, "HTTP/1.1 40", 11) == 0, "%s: %s", next[i], heard);
        (void)close(fd);
    }
    ck_assert_int_eq(used().connections, 1);
    ck_assert_int_eq(used().refusals, AR_COUNT(next));
    ck_assert_uint_eq(names_asked_all(names), 1);
}
END_TEST

/* By every way in: what is not granted is refused before anybody is asked about it (C13, C14). */
START_TEST(test_not_granted)
{
    static const struct {
        const char *host;
        size_t length;
    } hosts[] = {
        {"CANARY.evil.test", 16},
        {"xapi.t.test", 11},
        {"api.t.test.evil.test", 20},
        {"w.t.test", 8},
        {"aw.t.test", 9},
        {"user@api.t.test", 15},
        {"127.0.0.1", 9},
        {"127.1", 5},
        {"0x7f000001", 10},
        {"2130706433", 10},
        {"localhost", 9},
        {"169.254.169.254", 15},
        {"api.t.test\n", 11},
        {"api.t.test%00", 13},
        {"b\xc3\xbc"
         "cher.w.t.test",
         16},
        {"[::1]", 5},
        {"[::ffff:127.0.0.1]", 18},
        {"api.t.test..", 12},
    };
    static const char *const forms[] = {"CONNECT %s:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "GET http://%s:%u/ HTTP/1.1\r\nHost: x\r\n\r\n"};
    allow("api.t.test");
    allow("*.w.t.test");
    start();
    int64_t refusals = 0;
    for (size_t i = 0; i < AR_COUNT(hosts); i++) {
        for (size_t form = 0; form < AR_COUNT(forms); form++) {
            char text[TEXT_BYTES];
            fill(text, forms[form], hosts[i].host);
            int fd = code();
            say(fd, text, strlen(text));
            expect_answer(fd, "HTTP/1.1 40", "\r\n\r\nauditrun: ");
        }
        int fd = code();
        ck_assert_int_eq(socks(fd, hosts[i].host, hosts[i].length), 2);
        (void)close(fd);
        refusals += 3;
    }
    ck_assert_int_eq(used().refusals, refusals);
    ck_assert_int_eq(used().connections, 0);
    ck_assert_uint_eq(names_asked_all(names), 0);
}
END_TEST

START_TEST(test_nothing_granted)
{
    static const enum network_mode modes[] = {NETWORK_ALLOWLIST, NETWORK_NONE};
    names_set(names, "ok.t.test", "127.1.0.1");
    grant.network = modes[_i];
    start();
    static const char *const requests[] = {"CONNECT ok.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                                           "CONNECT 127.1.0.1:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                                           "GET http://8.8.8.8/ HTTP/1.1\r\nHost: x\r\n\r\n"};
    for (size_t i = 0; i < AR_COUNT(requests); i++) {
        int fd = code();
        ask(fd, requests[i]);
        expect_answer(fd, "HTTP/1.1 403 ", "host not granted");
    }
    ck_assert_uint_eq(names_asked_all(names), 0);
}
END_TEST

/* "open" is any name, and still no address that is not public. */
START_TEST(test_open)
{
    static const char *const addresses[] = {"127.0.0.1",
                                            "10.0.0.1",
                                            "169.254.169.254",
                                            "0.0.0.0",
                                            "[::1]",
                                            "[::]",
                                            "[::ffff:127.1.0.1]",
                                            "[fe80::1]",
                                            "[64:ff9b::7f01:1]",
                                            "[2002:7f01:1::]",
                                            "224.0.0.1",
                                            "255.255.255.255"};
    names_set(names, "any.t.test", "127.1.0.1");
    names_set(names, "meta.t.test", "169.254.169.254");
    grant.network = NETWORK_OPEN;
    start();
    expect_tunnel("CONNECT any.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_tunnel("CONNECT 127.1.0.1:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    for (size_t i = 0; i < AR_COUNT(addresses); i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\nHost: x\r\n\r\n", addresses[i],
                       port);
        int fd = code();
        say(fd, text, strlen(text));
        expect_answer(fd, "HTTP/1.1 403 ", "address not allowed");
    }
    int fd = code();
    ask(fd, "CONNECT meta.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_answer(fd, "HTTP/1.1 403 ", "address not allowed");
    ck_assert_int_eq(used().refusals, AR_COUNT(addresses) + 1);
    AR_AUTO_JSON json_t *hosts = egress_hosts(egress);
    ck_assert_uint_eq(json_array_size(hosts), 0);
}
END_TEST

/* In a namespace whose loopback has a public address. */
static int look_at_own_address(void *context)
{
    struct sockaddr_in address = network_address("8.8.8.8", 0);
    struct ifreq request = {.ifr_name = "lo:1"};
    struct address own, other;
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)context;
    memcpy(&request.ifr_addr, &address, sizeof address);
    if (fd < 0 || ioctl(fd, SIOCSIFADDR, &request) != 0 || !address_parse("8.8.8.8", &own) ||
        !address_parse("9.9.9.9", &other))
        return -errno;
    return (egress_account_permits(&config, &own) ? 1 : 0) +
           (egress_account_permits(&config, &other) ? 2 : 0);
}

START_TEST(test_own_address)
{
    ck_assert_int_eq(network_call(network, look_at_own_address, NULL), 2);
}
END_TEST

int main(void)
{
    static const TTest **const all[] = {&test_rebinding,     &test_answers,     &test_problems,
                                        &test_slow_resolver, &test_redirect,    &test_not_granted,
                                        &test_open,          &test_own_address, NULL};
    Suite *suite = suite_create("egress_targets");
    TCase *tcase = make_case("egress_targets", all);
    tcase_add_loop_test(tcase, test_nothing_granted, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
