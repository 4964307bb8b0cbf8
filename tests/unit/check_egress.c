/*
 * check_egress.c - the proxy of a run, for real: code's end in a network namespace of its own, a scripted
 * name server, origins on loopback addresses that the configuration allows, and a trap at the same port of
 * 127.0.0.1, which must never be reached (C12, C13, C14, C15).
 *
 * All is in the loop of the test: everything waits for a condition, with a tick that wakes the loop.
 */
#include "daemon/clock.h"
#include "daemon/egress.h"
#include "daemon/egress_account.h"
#include "daemon/loop.h"
#include "daemon/resolver.h"
#include "tests/lib/names.h"
#include "tests/lib/network.h"
#include "tests/unit/unit.h"

#include <event2/event.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PROXY_PORT 3128
#define WAIT_US    20000000
#define TEXT_BYTES 4096

static struct loop *loop;
static struct event_base *base;
static struct event *tick;
static struct names *names;
static struct resolver *resolver;
static struct egress *egress;
static struct config_network config;
static struct address_range allowed[1];
static struct grant grant;
static int network, origin,
    trap;             /* namespace; listeners of the granted address, and of 127.0.0.1 */
static unsigned port; /* of both */

#define WAIT(condition)                                                     \
    do {                                                                    \
        int64_t end_us = clock_monotonic_us() + WAIT_US;                    \
        while (!(condition)) {                                              \
            ck_assert_msg(clock_monotonic_us() < end_us, "%s", #condition); \
            (void)event_base_loop(base, EVLOOP_ONCE);                       \
        }                                                                   \
    } while (0)

/* ---- the world ---------------------------------------------------------------------------------- */

static void wake(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)context;
}

static void stop_loop(void *context)
{
    (void)context;
}

static void make_loop(void)
{
    static const struct loop_signals signals = {stop_loop, stop_loop};
    const struct timeval often = {.tv_usec = 2000};
    ck_assert_int_eq(loop_open(&signals, NULL, &loop), 0);
    base = loop_base(loop);
    tick = event_new(base, -1, EV_PERSIST, wake, NULL);
    ck_assert(tick && event_add(tick, &often) == 0);
}

static void make_origins(void)
{
    struct sockaddr_in address = network_address("127.1.0.1", 0);
    origin = network_listen(-1, &address);
    ck_assert_int_ge(origin, 0);
    port = ntohs(address.sin_port);
    address = network_address("127.0.0.1", (uint16_t)port);
    trap = network_listen(-1, &address);
    ck_assert_int_ge(trap, 0);
    ck_assert_int_eq(fcntl(origin, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(fcntl(trap, F_SETFL, O_NONBLOCK), 0);
}

static void make_config(void)
{
    ck_assert(address_range_parse("127.1.0.0/16", &allowed[0]));
    config = (struct config_network){.allowlist = true,
                                     .open = true,
                                     .allowed = {allowed, 1},
                                     .max_connections = 8,
                                     .max_bytes = INT64_C(1) << 40,
                                     .connect_timeout_ms = 10000,
                                     .idle_timeout_ms = 60000};
    ck_assert_int_eq(text_list_add(&config.nameservers, names_server(names)), 0);
    ck_assert_int_eq(resolver_new(base, &config, &resolver), 0);
}

static void set_up(void)
{
    network = network_new();
    ck_assert_msg(network >= 0, "needs root: %s", strerror(-network));
    make_loop();
    names = names_start(base);
    ck_assert_ptr_nonnull(names);
    make_origins();
    make_config();
    grant = (struct grant){.network = NETWORK_ALLOWLIST};
}

static void allow(const char *format)
{
    char host[300];
    (void)snprintf(host, sizeof host, "%s:%u", format, port);
    ck_assert_int_eq(text_list_add(&grant.hosts, host), 0);
}

/* The run's proxy, with the grant that has been made. */
static void start(void)
{
    const struct egress_start with = {base, resolver, &config, &grant};
    struct sockaddr_in address = network_address("127.0.0.1", PROXY_PORT);
    int listener = network_listen(network, &address);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(egress_new(&with, &egress), 0);
    ck_assert_int_eq(egress_listen(egress, listener), 0);
}

static void tear_down(void)
{
    ck_assert_int_lt(accept4(trap, NULL, NULL, SOCK_NONBLOCK), 0); /* never */
    egress_free(egress);
    egress = NULL;
    resolver_free(resolver);
    names_stop(names);
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
    event_free(tick);
    loop_free(loop);
    text_list_free(&grant.hosts);
    text_list_free(&config.nameservers);
    (void)close(origin);
    (void)close(trap);
    (void)close(network);
}

static struct usage_network used(void)
{
    struct usage_network usage;
    egress_usage(egress, &usage);
    return usage;
}

/* ---- code and origins --------------------------------------------------------------------------- */

static int code(void)
{
    struct sockaddr_in address = network_address("127.0.0.1", PROXY_PORT);
    int fd = network_connect(network, &address);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void say(int fd, const void *bytes, size_t length)
{
    ck_assert_int_eq(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* Text with %u for the port, and with %s for a host. */
static void fill(char out[TEXT_BYTES], const char *format, const char *host)
{
    size_t length = 0;
    for (; *format; format++) {
        int n = 1;
        if (format[0] == '%' && format[1] == 'u')
            n = snprintf(out + length, TEXT_BYTES - length, "%u", port);
        else if (format[0] == '%' && format[1] == 's')
            n = snprintf(out + length, TEXT_BYTES - length, "%s", host);
        else
            out[length] = *format;
        format += format[0] == '%' && (format[1] == 'u' || format[1] == 's') ? 1 : 0;
        length += (size_t)n;
        ck_assert_uint_lt(length, TEXT_BYTES);
    }
    out[length] = '\0';
}

static void ask(int fd, const char *format)
{
    char text[TEXT_BYTES];
    fill(text, format, "");
    say(fd, text, strlen(text));
}

/* What has come until there is so much of it, or (enough is 0) until the end; NUL behind. */
static size_t hear(int fd, char *text, size_t enough)
{
    size_t length = 0;
    bool ended = false;
    int64_t end_us = clock_monotonic_us() + WAIT_US;
    while (!ended && (enough == 0 || length < enough)) {
        ck_assert_msg(clock_monotonic_us() < end_us, "%zu bytes of %zu", length, enough);
        ssize_t n = recv(fd, text + length, (enough ? enough : TEXT_BYTES - 1) - length, 0);
        ended = n == 0 || (n < 0 && errno != EAGAIN);
        length += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno == EAGAIN)
            (void)event_base_loop(base, EVLOOP_ONCE);
    }
    text[length] = '\0';
    return length;
}

static void expect(int fd, const char *text)
{
    char heard[TEXT_BYTES];
    (void)hear(fd, heard, strlen(text));
    ck_assert_str_eq(heard, text);
}

static void expect_end(int fd)
{
    char heard[TEXT_BYTES];
    ck_assert_uint_eq(hear(fd, heard, 0), 0);
}

/* All until the end begins with this and has that in it. */
static void expect_answer(int fd, const char *begin, const char *in)
{
    char heard[TEXT_BYTES];
    (void)hear(fd, heard, 0);
    ck_assert_msg(strncmp(heard, begin, strlen(begin)) == 0 && strstr(heard, in), "%s", heard);
    ck_assert_ptr_null(strstr(heard, "test"));
    (void)close(fd);
}

static int serve(void)
{
    int fd = -1;
    WAIT((fd = accept4(origin, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    return fd;
}

#define ESTABLISHED "HTTP/1.1 200 Connection established\r\n\r\n"

static void hello(int there, int here)
{
    say(here, "hello", 5);
    expect(there, "hello");
    say(there, "world", 5);
    expect(here, "world");
}

/* A tunnel to a granted name works. */
static void expect_tunnel(const char *format)
{
    int fd = code();
    ask(fd, format);
    expect(fd, ESTABLISHED);
    int there = serve();
    hello(there, fd);
    (void)close(fd);
    expect_end(there);
    (void)close(there);
}

static size_t socks_request(uint8_t *request, const char *name, size_t length)
{
    static const uint8_t begin[] = {5, 1, 0, 5, 1, 0, 3};
    memcpy(request, begin, sizeof begin);
    request[sizeof begin] = (uint8_t)length;
    memcpy(request + sizeof begin + 1, name, length);
    request[sizeof begin + 1 + length] = (uint8_t)(port >> 8);
    request[sizeof begin + 2 + length] = (uint8_t)port;
    return sizeof begin + 3 + length;
}

/* The code of the reply. */
static int socks(int fd, const char *name, size_t length)
{
    uint8_t request[300], reply[13];
    say(fd, request, socks_request(request, name, length));
    ck_assert_uint_eq(hear(fd, (char *)reply, 12), 12);
    ck_assert_mem_eq(reply, "\5\0\5", 3);
    return reply[3];
}

/* ---- ways in ------------------------------------------------------------------------------------ */

START_TEST(test_connect)
{
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    int fd = code();
    ask(fd, "CONNECT OK.T.TEST.:%u HTTP/1.1\r\nHost: x\r\n\r\nearly");
    expect(fd, ESTABLISHED);
    int there = serve();
    expect(there, "early");
    hello(there, fd);
    /* Half-closed, one way and then the other. */
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect_end(there);
    say(there, "more", 4);
    expect(fd, "more");
    (void)close(there);
    expect_end(fd);
    (void)close(fd);
    struct usage_network usage = used();
    ck_assert_int_eq(usage.connections, 1);
    ck_assert_int_eq(usage.refusals, 0);
    ck_assert_int_eq(usage.bytes_out, 10);
    ck_assert_int_eq(usage.bytes_in, 9);
    ck_assert_uint_eq(names_asked_all(names), 1);
    AR_AUTO_JSON json_t *hosts = egress_hosts(egress);
    AR_AUTO_FREE char *text = json_canonical(hosts);
    char right[200];
    (void)snprintf(
        right, sizeof right,
        "[{\"bytes_in\":9,\"bytes_out\":10,\"connections\":1,\"host\":\"ok.t.test:%u\"}]", port);
    ck_assert_str_eq(text, right);
}
END_TEST

START_TEST(test_socks)
{
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    int fd = code();
    ck_assert_int_eq(socks(fd, "ok.t.test", 9), 0);
    int there = serve();
    hello(there, fd);
    (void)close(there);
    expect_end(fd);
    (void)close(fd);
    fd = code();
    ck_assert_int_eq(socks(fd, "no.t.test", 9), 2);
    expect_end(fd);
    (void)close(fd);
    fd = code();
    say(fd, "\5\1\2", 3); /* a user and a password alone */
    expect_answer(fd, "\5\xff", "");
    ck_assert_int_eq(used().connections, 1);
    ck_assert_int_eq(used().refusals, 2);
}
END_TEST

START_TEST(test_plain)
{
    char right[TEXT_BYTES];
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    int fd = code();
    ask(fd, "POST http://ok.t.test:%u/a?b HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\n"
            "Content-Length: 4\r\nAccept: */*\r\n\r\nbo");
    int there = serve();
    (void)snprintf(right, sizeof right,
                   "POST /a?b HTTP/1.1\r\nHost: ok.t.test:%u\r\nContent-Length: 4\r\n"
                   "Accept: */*\r\nConnection: close\r\n\r\nbo",
                   port);
    expect(there, right);
    say(fd, "dy", 2);
    expect(there, "dy");
    say(there, "HTTP/1.1 200 OK\r\n\r\nanswer", 25);
    (void)close(there);
    expect_answer(fd, "HTTP/1.1 200 OK\r\n\r\nanswer", "");
    ck_assert_int_eq(used().refusals, 0);
    ck_assert_int_eq(used().bytes_out, (int64_t)strlen(right) + 2);
    ck_assert_int_eq(used().bytes_in, 25);
}
END_TEST

/* Whatever comes behind the one request never reaches the origin, whole or in pieces (C12). */
START_TEST(test_second_request)
{
    static const char *const requests[] = {
        "GET http://ok.t.test:%u/ HTTP/1.1\r\nHost: x\r\n\r\nGET /SMUGGLED HTTP/1.1\r\n\r\n",
        "POST http://ok.t.test:%u/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nxySMUGGLED",
        "POST http://ok.t.test:%u/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\nxy\r\n0\r\n\r\nSMUGGLED",
    };
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    for (size_t i = 0; i < AR_COUNT(requests); i++) {
        char heard[TEXT_BYTES];
        int fd = code();
        ask(fd, requests[i]);
        int there = serve();
        say(fd, "SMUGGLED", 8);
        WAIT(used().refusals == (int64_t)i + 1);
        say(there, "HTTP/1.1 200 OK\r\n\r\n", 19);
        ck_assert_int_eq(shutdown(there, SHUT_WR), 0);
        expect_answer(fd, "HTTP/1.1 200 OK\r\n\r\n", "");
        (void)hear(there, heard, 0);
        ck_assert_ptr_null(strstr(heard, "SMUGGLED"));
        (void)close(there);
    }
    ck_assert_int_eq(used().refusals, 3);
}
END_TEST

/* A server may answer and leave before it has read all that it was sent. */
START_TEST(test_early_answer)
{
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    int fd = code();
    ask(fd, "POST http://ok.t.test:%u/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\nx");
    int there = serve();
    say(there, "HTTP/1.1 413 No\r\n\r\n", 19);
    ck_assert_int_eq(shutdown(there, SHUT_WR), 0);
    expect_answer(fd, "HTTP/1.1 413 No\r\n\r\n", "");
    (void)close(there);
}
END_TEST

/* What is cut short at one end must not look whole at the other. */
START_TEST(test_broken)
{
    const struct linger now = {.l_onoff = 1};
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    int fd = code();
    ask(fd, "GET http://ok.t.test:%u/ HTTP/1.1\r\nHost: x\r\n\r\n");
    int there = serve(), error = 0;
    say(there, "HTTP/1.1 200 OK\r\n\r\nhalf", 23);
    expect(fd, "HTTP/1.1 200 OK\r\n\r\nhalf");
    ck_assert_int_eq(setsockopt(there, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    (void)close(there);
    WAIT((error = recv(fd, &error, 1, 0) < 0 ? errno : 0) != EAGAIN);
    ck_assert_int_eq(error, ECONNRESET);
    (void)close(fd);
}
END_TEST

/* More than sockets take, both ways at once: nothing is lost and nothing held without bounds. */
START_TEST(test_much)
{
    enum { TOTAL = 8 << 20 };
    static char chunk[65536];
    size_t sent[2] = {0}, heard[2] = {0};
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    start();
    int fds[2] = {code(), -1};
    ask(fds[0], "CONNECT ok.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(fds[0], ESTABLISHED);
    fds[1] = serve();
    int64_t end_us = clock_monotonic_us() + WAIT_US;
    while (heard[0] < TOTAL || heard[1] < TOTAL) {
        ck_assert(clock_monotonic_us() < end_us);
        for (int i = 0; i < 2; i++) {
            size_t most = TOTAL - sent[i] < sizeof chunk ? TOTAL - sent[i] : sizeof chunk;
            ssize_t n = most ? send(fds[i], chunk, most, MSG_NOSIGNAL) : 0;
            sent[i] += n > 0 ? (size_t)n : 0;
            /* One end reads only when the other has said all: what is between has to wait. */
            if (sent[0] == TOTAL || heard[0] > 0 || n < 0)
                n = recv(fds[i], chunk, sizeof chunk, 0);
            else
                n = 0;
            heard[i] += n > 0 ? (size_t)n : 0;
        }
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
    }
    (void)close(fds[0]);
    (void)close(fds[1]);
    ck_assert_int_eq(used().bytes_in, TOTAL);
    ck_assert_int_eq(used().bytes_out, TOTAL);
}
END_TEST

/* ---- names and addresses ------------------------------------------------------------------------ */

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

/* ---- bounds ------------------------------------------------------------------------------------- */

START_TEST(test_max_connections)
{
    int fds[8];
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    config.max_connections = AR_COUNT(fds);
    start();
    for (size_t i = 0; i < AR_COUNT(fds); i++)
        fds[i] = code();
    int over = code();
    expect_end(over);
    (void)close(over);
    ck_assert_int_eq(used().refusals, 1);
    for (size_t i = 0; i < AR_COUNT(fds); i++)
        (void)close(fds[i]);
    /* Those that are gone make room, once the proxy has heard of it. */
    char byte;
    for (int fd = -1; fd < 0 || recv(fd, &byte, 1, MSG_PEEK) == 0;) {
        if (fd >= 0)
            (void)close(fd);
        fd = code();
        for (int turns = 0; turns < 5; turns++)
            (void)event_base_loop(base, EVLOOP_ONCE);
        if (recv(fd, &byte, 1, MSG_PEEK) < 0)
            (void)close(fd);
    }
    expect_tunnel("CONNECT ok.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
}
END_TEST

START_TEST(test_max_bytes)
{
    char heard[TEXT_BYTES];
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    config.max_bytes = 1000;
    start();
    int fd = code(), other = code();
    ask(fd, "CONNECT ok.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(fd, ESTABLISHED);
    int there = serve();
    say(there, heard, 999);
    ck_assert_uint_eq(hear(fd, heard, 999), 999);
    say(fd, "x", 1); /* exactly as many as may be */
    expect(there, "x");
    say(there, "y", 1);
    expect_end(fd); /* reset: nothing more comes */
    expect_end(there);
    expect_end(other); /* all are cut */
    (void)close(fd);
    (void)close(other);
    (void)close(there);
    fd = code();
    expect_end(fd);
    (void)close(fd);
    ck_assert_int_eq(used().bytes_in + used().bytes_out, 1000);
    ck_assert_int_ge(used().refusals, 1);
}
END_TEST

/* Code that asks for nothing, or drop by drop, and a connection over which nothing goes. */
START_TEST(test_timeouts)
{
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("ok.t.test");
    config.connect_timeout_ms = 200;
    config.idle_timeout_ms = 200;
    start();
    int silent = code(), slow = code();
    int64_t end_us = clock_monotonic_us() + WAIT_US;
    while (send(slow, "G", 1, MSG_NOSIGNAL) == 1) {
        ck_assert(clock_monotonic_us() < end_us);
        (void)event_base_loop(base, EVLOOP_ONCE);
    }
    expect_end(silent);
    (void)close(silent);
    (void)close(slow);
    int fd = code();
    ask(fd, "CONNECT ok.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(fd, ESTABLISHED);
    int there = serve();
    expect_end(there);
    expect_end(fd);
    (void)close(fd);
    (void)close(there);
}
END_TEST

START_TEST(test_long_head)
{
    static char filler[20000];
    start();
    memset(filler, 'x', sizeof filler);
    int fd = code();
    say(fd, "GET http://a.test/ HTTP/1.1\r\nX: ", 32);
    say(fd, filler, sizeof filler);
    expect_answer(fd, "HTTP/1.1 400 ", "malformed request");
    ck_assert_int_eq(used().refusals, 1);
}
END_TEST

/* ---- the listener, and the end ------------------------------------------------------------------ */

START_TEST(test_listeners)
{
    struct sockaddr_in address = network_address("127.0.0.1", 0);
    const struct egress_start with = {base, resolver, &config, &grant};
    const struct sockaddr_un path = {.sun_family = AF_UNIX};
    ck_assert_int_eq(egress_new(&with, &egress), 0);
    int fds[] = {network_listen(-1, &address),     socket(AF_INET, SOCK_DGRAM, 0),
                 socket(AF_INET, SOCK_STREAM, 0),  socket(AF_UNIX, SOCK_STREAM, 0),
                 socket(AF_INET6, SOCK_STREAM, 0), open("/dev/null", O_RDWR)};
    ck_assert_int_eq(bind(fds[3], (const struct sockaddr *)&path, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(listen(fds[3], 1), 0);
    (void)listen(fds[4], 1);
    for (size_t i = 0; i < AR_COUNT(fds); i++) {
        ck_assert_int_eq(egress_listen(egress, fds[i]), 1);
        ck_assert(fcntl(fds[i], F_GETFD) < 0 && errno == EBADF);
    }
    address = network_address("127.0.0.1", 0);
    ck_assert_int_eq(egress_listen(egress, network_listen(network, &address)), 0);
    address = network_address("127.0.0.1", 0);
    ck_assert_int_eq(egress_listen(egress, network_listen(network, &address)), 1);
}
END_TEST

/* The run ends while its connections are at every stage. */
START_TEST(test_end)
{
    static const char *const requests[] = {"CONN",
                                           "CONNECT slow.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                                           "CONNECT far.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                                           "CONNECT ok.t.test:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                                           "CONNECT no.test:%u HTTP/1.1\r\nHost: x\r\n\r\n"};
    int fds[AR_COUNT(requests)];
    names_set(names, "slow.t.test", "?");
    names_set(names, "far.t.test", "127.1.0.2");
    names_set(names, "ok.t.test", "127.1.0.1");
    allow("*.t.test");
    start();
    for (size_t i = 0; i < AR_COUNT(fds); i++) {
        fds[i] = code();
        ask(fds[i], requests[i]);
    }
    int there = serve();
    WAIT(names_asked(names, "slow.t.test") > 0 && used().refusals == 1);
    egress_free(egress);
    egress = NULL;
    expect_end(there);
    (void)close(there);
    for (size_t i = 0; i < AR_COUNT(fds); i++) {
        char heard[TEXT_BYTES];
        (void)hear(fds[i], heard, 0);
        (void)close(fds[i]);
    }
}
END_TEST

static TCase *make_case(const char *name, const TTest **const *tests)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    for (; *tests; tests++)
        tcase_add_test(tcase, **tests);
    return tcase;
}

int main(void)
{
    static const TTest **const ways[] = {
        &test_connect,      &test_socks,  &test_plain, &test_second_request,
        &test_early_answer, &test_broken, &test_much,  NULL};
    static const TTest **const targets[] = {
        &test_rebinding,     &test_answers,     &test_problems,
        &test_slow_resolver, &test_redirect,    &test_not_granted,
        &test_open,          &test_own_address, NULL};
    static const TTest **const bounds[] = {&test_max_connections,
                                           &test_max_bytes,
                                           &test_timeouts,
                                           &test_long_head,
                                           &test_listeners,
                                           &test_end,
                                           NULL};
    Suite *suite = suite_create("egress");
    TCase *named = make_case("targets", targets);
    tcase_add_loop_test(named, test_nothing_granted, 0, 2);
    suite_add_tcase(suite, make_case("ways", ways));
    suite_add_tcase(suite, named);
    suite_add_tcase(suite, make_case("bounds", bounds));
    return suite_run(suite);
}
