/*
 * egress.h - what the tests of a run's proxy share: code's end in a network namespace of its own, a scripted
 * name server, origins on loopback addresses that the configuration allows, and a trap at the same port of
 * 127.0.0.1, which must never be reached.
 *
 * All is in the loop of the test: everything waits for a condition, with a tick that wakes the loop. Header
 * only: each test program is one file.
 */
#ifndef AUDITRUN_TESTS_UNIT_EGRESS_H
#define AUDITRUN_TESTS_UNIT_EGRESS_H

#include "daemon/clock.h"
#include "daemon/egress.h"
#include "daemon/loop.h"
#include "daemon/resolver.h"
#include "tests/lib/names.h"
#include "tests/lib/network.h"
#include "tests/unit/unit.h"

#include <event2/event.h>
#include <fcntl.h>
#include <sys/socket.h>

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

static inline void wake(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)context;
}

static inline void stop_loop(void *context)
{
    (void)context;
}

static inline void make_loop(void)
{
    static const struct loop_signals signals = {stop_loop, stop_loop, NULL};
    const struct timeval often = {.tv_usec = 2000};
    ck_assert_int_eq(loop_open(&signals, NULL, &loop), 0);
    base = loop_base(loop);
    tick = event_new(base, -1, EV_PERSIST, wake, NULL);
    ck_assert(tick && event_add(tick, &often) == 0);
}

static inline void make_origins(void)
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

static inline void make_config(void)
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

static inline void set_up(void)
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

static inline void allow(const char *format)
{
    char host[300];
    (void)snprintf(host, sizeof host, "%s:%u", format, port);
    ck_assert_int_eq(text_list_add(&grant.hosts, host), 0);
}

/* The run's proxy, with the grant that has been made. */
static inline void start(void)
{
    const struct egress_start with = {base, resolver, &config, &grant};
    struct sockaddr_in address = network_address("127.0.0.1", PROXY_PORT);
    int listener = network_listen(network, &address);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(egress_new(&with, &egress), 0);
    ck_assert_int_eq(egress_listen(egress, listener), 0);
}

static inline void tear_down(void)
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

static inline struct usage_network used(void)
{
    struct usage_network usage;
    egress_usage(egress, &usage);
    return usage;
}

/* ---- code and origins --------------------------------------------------------------------------- */

static inline int code(void)
{
    struct sockaddr_in address = network_address("127.0.0.1", PROXY_PORT);
    int fd = network_connect(network, &address);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static inline void say(int fd, const void *bytes, size_t length)
{
    ck_assert_int_eq(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* Text with %u for the port, and with %s for a host. */
static inline void fill(char out[TEXT_BYTES], const char *format, const char *host)
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

static inline void ask(int fd, const char *format)
{
    char text[TEXT_BYTES];
    fill(text, format, "");
    say(fd, text, strlen(text));
}

/* What has come until there is so much of it, or (enough is 0) until the end; NUL behind. */
static inline size_t hear(int fd, char *text, size_t enough)
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

static inline void expect(int fd, const char *text)
{
    char heard[TEXT_BYTES];
    (void)hear(fd, heard, strlen(text));
    ck_assert_str_eq(heard, text);
}

static inline void expect_end(int fd)
{
    char heard[TEXT_BYTES];
    ck_assert_uint_eq(hear(fd, heard, 0), 0);
}

/* All until the end begins with this and has that in it. */
static inline void expect_answer(int fd, const char *begin, const char *in)
{
    char heard[TEXT_BYTES];
    (void)hear(fd, heard, 0);
    ck_assert_msg(strncmp(heard, begin, strlen(begin)) == 0 && strstr(heard, in), "%s", heard);
    ck_assert_ptr_null(strstr(heard, "test"));
    (void)close(fd);
}

static inline int serve(void)
{
    int fd = -1;
    WAIT((fd = accept4(origin, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    return fd;
}

#define ESTABLISHED "HTTP/1.1 200 Connection established\r\n\r\n"

static inline void hello(int there, int here)
{
    say(here, "hello", 5);
    expect(there, "hello");
    say(there, "world", 5);
    expect(here, "world");
}

/* A tunnel to a granted name works. */
static inline void expect_tunnel(const char *format)
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

static inline size_t socks_request(uint8_t *request, const char *name, size_t length)
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
static inline int socks(int fd, const char *name, size_t length)
{
    uint8_t request[300], reply[13];
    say(fd, request, socks_request(request, name, length));
    ck_assert_uint_eq(hear(fd, (char *)reply, 12), 12);
    ck_assert_mem_eq(reply, "\5\0\5", 3);
    return reply[3];
}

static inline TCase *make_case(const char *name, const TTest **const *tests)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    for (; *tests; tests++)
        tcase_add_test(tcase, **tests);
    return tcase;
}

#endif
