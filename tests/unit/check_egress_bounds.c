/*
 * check_egress_bounds.c - what the proxy of a run is held to: connections, bytes, time, listeners that it must
 * not take, and its end at any moment.
 */
#include "tests/lib/names.h"
#include "tests/unit/egress.h"

#include <sys/un.h>

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

int main(void)
{
    static const TTest **const all[] = {&test_max_connections,
                                        &test_max_bytes,
                                        &test_timeouts,
                                        &test_long_head,
                                        &test_listeners,
                                        &test_end,
                                        NULL};
    Suite *suite = suite_create("egress_bounds");
    TCase *tcase = make_case("egress_bounds", all);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
