/*
 * check_egress.c - the ways into the proxy of a run and through it: CONNECT, SOCKS5, and one plain request a
 * connection, to their ends, half-closed and broken.
 */
#include "tests/lib/names.h"
#include "tests/unit/egress.h"

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
        ("POST http://ok.t.test:%u/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         "2\r\nxy\r\n0\r\n\r\nSMUGGLED"),
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

int main(void)
{
    static const TTest **const all[] = {
        &test_connect,      &test_socks,  &test_plain, &test_second_request,
        &test_early_answer, &test_broken, &test_much,  NULL};
    Suite *suite = suite_create("egress");
    TCase *tcase = make_case("egress", all);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
