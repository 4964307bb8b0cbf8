/*
 * check_clients.c - clients of the real daemon that are many, slow, half-closed, or never read.
 *
 * None of them takes anything from the others: neither their answers, nor their time, nor the row of
 * a run.
 */
#include "tests/e2e/e2e.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

START_TEST(test_half_closed_client_gets_its_answers)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run", client_params("fake", "sleep 200\nprint late", NULL));
    client_request(client, 2, "status", NULL);
    client_send_bytes(client, "{\"jsonrpc\":\"2.0\",\"id\":3", 24); /* never comes to its end */
    client_finish_sending(client);
    json_decref(client_result(client, 2));
    AR_AUTO_JSON json_t *result = client_result(client, 1);
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "late");
    client_expect_end(client);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

/* More lines at hand than a session serves in one turn of the loop, none of which is owed an answer,
 * and the end of the input is seen before the last of them is served. The first line is a long one, so
 * that there is room for all of them at once. */
START_TEST(test_last_line_behind_many_notifications)
{
    static const char notification[] = "{\"jsonrpc\":\"2.0\",\"method\":\"status\"}\n";
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
    enum { LONG = 60000, MANY = 800 };
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *text = malloc(LONG + MANY * sizeof(notification) + sizeof(request));
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', LONG);
    memcpy(text + LONG - sizeof(notification) + 1, notification, sizeof(notification) - 1);
    size_t length = LONG;
    for (size_t i = 0; i < MANY; i++) {
        memcpy(text + length, notification, sizeof(notification) - 1);
        length += sizeof(notification) - 1;
    }
    memcpy(text + length, request, sizeof(request));
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGSTOP), 0); /* so that all of it is there at once */
    client_send_bytes(client, text, length + sizeof(request) - 1);
    client_finish_sending(client);
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGCONT), 0);
    AR_AUTO_JSON json_t *status = client_result(client, 1);
    ck_assert_ptr_nonnull(status);
    client_expect_end(client);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* More in flight than socket.max_pending: the daemon reads on when some have been answered. */
START_TEST(test_many_in_flight)
{
    enum { MANY = 400 };
    struct daemon *daemon =
        e2e_fake_daemon("[socket]\nmax_pending = 16\n[limits]\nmax_queued = 1000\n");
    struct client *client = daemon_connect(daemon);
    for (int i = 0; i < MANY; i++) {
        char code[32];
        (void)snprintf(code, sizeof(code), "print %d", i);
        client_request(client, i, "run", client_params("fake", code, NULL));
    }
    for (int i = 0; i < MANY; i++) {
        char expected[16];
        AR_AUTO_JSON json_t *result = client_result(client, i);
        (void)snprintf(expected, sizeof(expected), "%d", i);
        client_expect(result, "succeeded", "exit_zero");
        ck_assert_str_eq(e2e_stdout(result), expected);
    }
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), MANY);
    daemon_free(daemon);
}
END_TEST

START_TEST(test_many_connections)
{
    enum { MANY = 300 };
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *clients[MANY];
    for (int i = 0; i < MANY; i++) {
        clients[i] = daemon_connect(daemon);
        client_request(clients[i], i, i % 10 ? "status" : "executors", NULL);
    }
    for (int i = 0; i < MANY; i++) {
        json_decref(client_result(clients[i], i));
        client_disconnect(clients[i]);
    }
    rows_expect(daemon_ledger(daemon), 0);
    daemon_free(daemon);
}
END_TEST

START_TEST(test_connections_over_the_limit_wait)
{
    struct daemon *daemon = e2e_fake_daemon("[socket]\nmax_connections = 3\n");
    struct client *clients[3];
    for (size_t i = 0; i < AR_COUNT(clients); i++) {
        clients[i] = daemon_connect(daemon);
        json_decref(client_call(clients[i], "status", NULL));
    }
    struct client *next = daemon_connect(daemon);
    client_request(next, 1, "status", NULL);
    for (size_t i = 0; i < 20; i++) { /* the loop turns, and does not come to it */
        json_decref(client_call(clients[0], "status", NULL));
        ck_assert_ptr_null(client_next_within(next, 0));
    }
    ck_assert(!client_has_ended(next));
    client_disconnect(clients[1]);
    json_decref(client_result(next, 1));
    client_disconnect(clients[0]);
    client_disconnect(clients[2]);
    client_disconnect(next);
    rows_expect(daemon_ledger(daemon), 0);
    daemon_free(daemon);
}
END_TEST

/* ---- a client that does not read -------------------------------------------------------------- */

/* The most memory that the daemon has had, in KiB. */
static long peak_kib(const struct daemon *daemon)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)daemon_pid(daemon));
    FILE *file = fopen(path, "re");
    char line[128];
    long peak = 0;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file))
        (void)sscanf(line, "VmHWM: %ld", &peak);
    (void)fclose(file);
    ck_assert_int_gt(peak, 0);
    return peak;
}

/* What the deaf client would like to send: runs with much output among questions; malloc'd. */
static char *deaf_lines(const char *more)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(out);
    for (int i = 0; i < 20000; i++) {
        ck_assert_int_gt(
            fprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":\"s%d\",\"method\":\"status\"}\n", i), 0);
        if (i % 100)
            continue;
        ck_assert_int_gt(
            fprintf(
                out,
                "{\"jsonrpc\":\"2.0\",\"id\":\"r%d\",\"method\":\"run\",\"params\":{\"company\":"
                "\"acme\",\"actor\":\"deaf\",\"purpose\":\"case\",\"language\":\"fake\",\"code\":"
                "\"spam 65536\",\"grant\":{}%s}}\n",
                i, more),
            0);
    }
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

/* Sends what the socket takes. False when the daemon has cut the connection. */
static bool push(int fd, const char **rest)
{
    ssize_t n = **rest ? send(fd, *rest, strlen(*rest), MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (n > 0)
        *rest += n;
    struct pollfd state = {.fd = fd, .events = 0};
    return (n >= 0 || errno == EAGAIN) &&
           !(poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)));
}

/* One client only sends (or sips a byte now and then); another works beside it. */
static void be_deaf(struct daemon *daemon, const char *more, bool sips)
{
    long before = peak_kib(daemon);
    struct client *deaf = daemon_connect(daemon);
    struct client *other = daemon_connect(daemon);
    AR_AUTO_FREE char *lines = deaf_lines(more);
    const char *rest = lines;
    size_t small = 0;
    char byte;
    int64_t slowest = 0, deadline = processes_now_ms() + 30000;
    while (push(client_fd(deaf), &rest)) {
        ck_assert_msg(processes_now_ms() < deadline, "the deaf client is not cut off");
        if (sips && small % 8 == 0)
            (void)recv(client_fd(deaf), &byte, 1, MSG_DONTWAIT);
        int64_t start = processes_now_ms();
        AR_AUTO_JSON json_t *result =
            client_call(other, "run", client_params("fake", "sleep 20\nprint 1", NULL));
        client_expect(result, "succeeded", "exit_zero");
        int64_t took = processes_now_ms() - start;
        slowest = took > slowest ? took : slowest;
        small++;
    }
    ck_assert_msg(*rest, "the daemon has read everything from a client that reads nothing");
    ck_assert_msg(small > 3, "the deaf client was cut off at once");
    ck_assert_msg(slowest < 3000, "another client waited %lld ms", (long long)slowest);
    ck_assert_msg(peak_kib(daemon) - before < 65536 + E2E_SANITIZER_KB,
                  "the daemon took %ld KiB more", peak_kib(daemon) - before);
    client_disconnect(deaf);
    client_disconnect(other);
}

/* Every run that was accepted has one row, with its true end. */
static void expect_true_ends(struct daemon *daemon)
{
    struct client *client = daemon_connect(daemon);
    json_int_t total = e2e_status(client, "runs", "total");
    client_disconnect(client);
    struct rows rows = rows_wait(daemon_ledger(daemon), (size_t)total, 20000);
    ck_assert_uint_eq(rows.count, (size_t)total);
    ck_assert_uint_eq(rows_count(&rows, STATUS_SUCCEEDED, REASON_EXIT_ZERO) +
                          rows_count(&rows, STATUS_CANCELLED, REASON_CLIENT_GONE),
                      rows.count);
    rows_free(&rows);
}

START_TEST(test_client_that_never_reads)
{
    struct daemon *daemon = e2e_fake_daemon("[socket]\nstall_timeout = 2s\n");
    be_deaf(daemon, "", false);
    be_deaf(daemon, ",\"stream\":true", false);
    be_deaf(daemon, "", true);
    expect_true_ends(daemon);
    daemon_free(daemon);
}
END_TEST

/* One that is slow, but reads, is not cut off, and misses nothing. */
START_TEST(test_slow_client_misses_nothing)
{
    enum { RUNS = 40 };
    struct daemon *daemon = e2e_fake_daemon("[socket]\nstall_timeout = 2s\n");
    struct client *client = daemon_connect(daemon);
    struct client *other = daemon_connect(daemon);
    for (int i = 0; i < RUNS; i++)
        client_request(client, i, "run", client_params("fake", "spam 65536", NULL));
    for (int i = 0; i < RUNS; i++) {
        json_decref(client_call(other, "run", client_params("fake", "sleep 50", NULL)));
        AR_AUTO_JSON json_t *result = client_result(client, i);
        client_expect(result, "succeeded", "exit_zero");
        ck_assert_uint_eq(strlen(e2e_stdout(result)), 65536);
    }
    client_disconnect(client);
    client_disconnect(other);
    expect_true_ends(daemon);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_half_closed_client_gets_its_answers,
                                          &test_last_line_behind_many_notifications,
                                          &test_many_in_flight,
                                          &test_many_connections,
                                          &test_connections_over_the_limit_wait,
                                          &test_client_that_never_reads,
                                          &test_slow_client_misses_nothing,
                                          NULL};
    return e2e_main("clients", tests);
}
