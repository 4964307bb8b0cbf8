/*
 * check_peers.c - who is on the other end: by the credentials that the kernel took when the connection
 * was opened, whoever holds it later, and whether or not he is still there. And how much such a client
 * may have running.
 *
 * Needs root, to open connections as somebody else.
 */
#include "tests/e2e/e2e.h"

#include <grp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define STRANGER 65533
#define GROUP    12345

static const char status_line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
static const char run_line[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"run\",\"params\":{\"company\":\"acme\",\"actor\":"
    "\"actor-1\",\"purpose\":\"case\",\"language\":\"fake\",\"code\":\"sleep "
    "3000\",\"grant\":{}}}\n";

struct opener {
    uid_t uid;
    gid_t group;       /* supplementary; 0: none */
    const char *words; /* sent by the opener itself, before it ends; NULL: nothing */
};

/* In the child: becomes the opener, connects the socket. */
static void open_as(const struct daemon *daemon, const struct opener *opener, int fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = daemon_socket(daemon);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (opener->uid != getuid() && (setgroups(opener->group ? 1 : 0, &opener->group) != 0 ||
                                    setgid(opener->uid) != 0 || setuid(opener->uid) != 0))
        _exit(2);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        _exit(3);
    if (opener->words && send(fd, opener->words, strlen(opener->words), MSG_NOSIGNAL) !=
                             (ssize_t)strlen(opener->words))
        _exit(4);
    _exit(0);
}

/* A connection that somebody else opened, who has ended since. *pid is who he was. */
static int opened_by(const struct daemon *daemon, const struct opener *opener, pid_t *pid)
{
    int status;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    *pid = fork();
    if (*pid == 0)
        open_as(daemon, opener, fd);
    ck_assert_int_eq(waitpid(*pid, &status, 0), *pid);
    ck_assert_int_eq(status, 0);
    return fd;
}

/* One error, and the end. */
static void expect_forbidden(struct client *client)
{
    AR_AUTO_JSON json_t *answer = client_next(client);
    ck_assert(json_is_null(json_object_get(answer, "id")));
    client_expect_error(json_object_get(answer, "error"), -32002, NULL, NULL);
    client_expect_end(client);
    client_disconnect(client);
}

static void expect_no_run(struct daemon *daemon)
{
    struct client *client = daemon_connect(daemon);
    ck_assert_int_eq(e2e_status(client, "runs", "total"), 0);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 0);
    daemon_free(daemon);
}

START_TEST(test_stranger_is_told_once_and_cut_off)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    pid_t pid;
    expect_forbidden(client_adopt(opened_by(daemon, &(struct opener){.uid = STRANGER}, &pid)));
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "uid %d gid %d pid %d", STRANGER, STRANGER,
                   (int)pid);
    ck_assert_msg(strstr(log, expected) != NULL, "the log does not say who it was");
    expect_no_run(daemon);
}
END_TEST

/* A connection that was handed on is the one of its opener. Whoever holds it now, uses it here. */
START_TEST(test_connection_that_is_handed_on)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    pid_t pid;
    /* Opened by a stranger, and used by one who would be allowed. */
    struct opener stranger = {.uid = STRANGER};
    int fd = opened_by(daemon, &stranger, &pid);
    (void)send(fd, run_line, strlen(run_line), MSG_NOSIGNAL); /* it may have been cut off already */
    expect_forbidden(client_adopt(fd));
    /* The other way round. */
    struct opener allowed = {.uid = getuid(), .words = status_line};
    struct client *client = client_adopt(opened_by(daemon, &allowed, &pid));
    json_decref(client_result(client, 1));
    client_disconnect(client);
    expect_no_run(daemon);
}
END_TEST

/* The daemon looks when the client has long gone; its words are there all the same. */
START_TEST(test_stranger_who_has_gone)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct opener stranger = {.uid = STRANGER, .words = run_line};
    pid_t pid;
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGSTOP), 0);
    for (int i = 0; i < 5; i++)
        (void)close(opened_by(daemon, &stranger, &pid));
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGCONT), 0);
    expect_no_run(daemon);
}
END_TEST

/* One that may, and has gone: its run is attributed to it, by the numbers of the socket. */
START_TEST(test_client_who_has_gone)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct opener allowed = {.uid = getuid(), .words = run_line};
    pid_t pid;
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGSTOP), 0);
    (void)close(opened_by(daemon, &allowed, &pid));
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGCONT), 0);
    struct rows rows = rows_wait(daemon_ledger(daemon), 1, 10000);
    ck_assert_uint_eq(rows_count(&rows, STATUS_CANCELLED, REASON_CLIENT_GONE), 1);
    ck_assert_int_eq(rows.items[0]->client_pid, pid);
    ck_assert_int_eq(rows.items[0]->client_uid, getuid());
    ck_assert_str_eq(rows.items[0]->client_name, "local");
    rows_free(&rows);
    daemon_free(daemon);
}
END_TEST

/* The policy is that of the first [client] that matches, by uid or by any of the groups. */
START_TEST(test_client_by_its_group)
{
    struct daemon *daemon = e2e_fake_daemon("[client grouped]\ngid = 12345\ncompanies = globex\n");
    pid_t pid;
    struct opener member = {.uid = STRANGER, .group = GROUP};
    struct client *client = client_adopt(opened_by(daemon, &member, &pid));
    AR_AUTO_JSON json_t *refused =
        client_call(client, "run", client_params("fake", "print 1", NULL));
    client_expect(refused, "unauthorized", "company_not_allowed");
    AR_AUTO_JSON json_t *done =
        client_call(client, "run", client_params("fake", "print 1", "{'company': 'globex'}"));
    client_expect(done, "succeeded", "exit_zero");
    client_disconnect(client);
    struct rows rows = rows_read(daemon_ledger(daemon));
    ck_assert_uint_eq(rows.count, 2);
    for (size_t i = 0; i < rows.count; i++) {
        ck_assert_str_eq(rows.items[i]->client_name, "grouped");
        ck_assert_int_eq(rows.items[i]->client_uid, STRANGER);
        ck_assert_int_eq(rows.items[i]->client_gid, STRANGER);
        ck_assert_int_eq(rows.items[i]->client_pid, pid);
    }
    rows_free(&rows);
    daemon_free(daemon);
}
END_TEST

/* A run belongs to the client that started it: another one cannot cancel it by its id. */
START_TEST(test_cancel_by_another_client)
{
    struct daemon *daemon = e2e_fake_daemon("[client grouped]\ngid = 12345\ncompanies = *\n");
    struct client *owner = daemon_connect(daemon);
    struct client *second = daemon_connect(daemon);
    pid_t pid;
    struct opener member = {.uid = STRANGER, .group = GROUP};
    struct client *other = client_adopt(opened_by(daemon, &member, &pid));
    client_request(owner, 1, "run",
                   client_params("fake", "print x\nsleep 10000", "{'stream': true}"));
    AR_AUTO_JSON json_t *output = client_next(owner);
    json_t *run_id = json_object_get(json_object_get(output, "params"), "run_id");
    ck_assert(json_is_string(run_id));
    AR_AUTO_JSON json_t *not_his =
        client_fail(other, "cancel", json_pack("{s:O}", "run_id", run_id));
    client_expect_error(not_his, -32003, NULL, NULL);
    /* The same client on another connection can. */
    AR_AUTO_JSON json_t *his = client_call(second, "cancel", json_pack("{s:O}", "run_id", run_id));
    ck_assert(json_is_true(json_object_get(his, "cancelled")));
    AR_AUTO_JSON json_t *twice =
        client_call(second, "cancel", json_pack("{s:O}", "run_id", run_id));
    ck_assert(json_is_false(json_object_get(twice, "cancelled")));
    AR_AUTO_JSON json_t *result = client_result(owner, 1);
    client_expect(result, "cancelled", "client_cancelled");
    rows_expect_result(daemon_ledger(daemon), result);
    client_disconnect(owner);
    client_disconnect(second);
    client_disconnect(other);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

/* ---- runs at a time ----------------------------------------------------------------------------- */

static void start_sleeper(struct client *client, json_int_t id)
{
    client_request(client, id, "run",
                   client_params("fake", "print x\nsleep 100000", "{'stream': true}"));
}

/* The output of this run has come: it runs. */
static void expect_output(struct client *client, json_int_t id)
{
    AR_AUTO_JSON json_t *message = client_next(client);
    const json_t *params = json_object_get(message, "params");
    ck_assert_int_eq(json_integer_value(json_object_get(params, "request_id")), id);
}

static void cancel_sleeper(struct client *client, json_int_t id)
{
    AR_AUTO_JSON json_t *cancelled =
        client_call(client, "cancel", json_pack("{s:I}", "request_id", id));
    ck_assert(json_is_true(json_object_get(cancelled, "cancelled")));
    AR_AUTO_JSON json_t *result = client_result(client, id);
    client_expect(result, "cancelled", "client_cancelled");
}

struct queued {
    struct client *client;
    json_int_t count;
};

static bool are_queued(void *context)
{
    struct queued *queued = context;
    return e2e_status(queued->client, "runs", "queued") == queued->count;
}

#define BOUND "[client local]\nmax_running = 1\n[client grouped]\ngid = 12345\ncompanies = *\n"

/* A client that has all its runs waits, on whatever connection, and holds up nobody else: not even for
 * the same company. */
START_TEST(test_bound_of_a_client)
{
    struct daemon *daemon = e2e_fake_daemon(BOUND);
    struct client *bounded = daemon_connect(daemon), *second = daemon_connect(daemon);
    struct queued queued = {daemon_connect(daemon), 1};
    struct opener member = {.uid = STRANGER, .group = GROUP};
    pid_t pid;
    struct client *other = client_adopt(opened_by(daemon, &member, &pid));
    start_sleeper(bounded, 1);
    expect_output(bounded, 1);
    start_sleeper(second, 2);
    ck_assert(processes_wait(are_queued, &queued, 10000));
    start_sleeper(bounded, 3);
    queued.count = 2;
    ck_assert(processes_wait(are_queued, &queued, 10000));
    for (int i = 0; i < 3; i++) {
        AR_AUTO_JSON json_t *done =
            client_call(other, "run", client_params("fake", "print 1", NULL));
        client_expect(done, "succeeded", "exit_zero");
    }
    ck_assert_int_eq(e2e_status(queued.client, "runs", "queued"), 2);
    ck_assert_int_eq(e2e_status(queued.client, "runs", "running"), 1);
    cancel_sleeper(bounded, 1);
    expect_output(second, 2); /* its turn; and that of no more */
    ck_assert_int_eq(e2e_status(queued.client, "runs", "queued"), 1);
    cancel_sleeper(bounded, 3); /* while it waits */
    cancel_sleeper(second, 2);
    AR_AUTO_JSON json_t *after = client_call(second, "run", client_params("fake", "print 1", NULL));
    client_expect(after, "succeeded", "exit_zero");
    client_disconnect(bounded);
    client_disconnect(second);
    client_disconnect(queued.client);
    client_disconnect(other);
    rows_expect(daemon_ledger(daemon), 7);
    daemon_free(daemon);
}
END_TEST

/* A bound that is raised is in force at once, for those that wait as well; the count goes on. */
START_TEST(test_bound_of_a_client_and_a_reload)
{
    struct daemon *daemon = e2e_fake_daemon("[client local]\nmax_running = 1\n");
    struct client *client = daemon_connect(daemon);
    struct queued queued = {daemon_connect(daemon), 1};
    start_sleeper(client, 1);
    expect_output(client, 1);
    start_sleeper(client, 2);
    ck_assert(processes_wait(are_queued, &queued, 10000));
    start_sleeper(client, 3);
    AR_AUTO_FREE char *config = e2e_fake("[client local]\nmax_running = 2\n");
    daemon_configure(daemon, config);
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGHUP), 0);
    expect_output(client, 2);
    ck_assert(processes_wait(are_queued, &queued, 10000));
    cancel_sleeper(client, 3);
    cancel_sleeper(client, 2);
    cancel_sleeper(client, 1);
    client_disconnect(client);
    client_disconnect(queued.client);
    daemon_free(daemon);
}
END_TEST

/* What waits for the client's own bound waits no longer than any other. */
START_TEST(test_bound_of_a_client_and_the_deadline)
{
    struct daemon *daemon = e2e_fake_daemon("[limits]\nqueue_deadline = 100ms\n" BOUND);
    struct client *client = daemon_connect(daemon);
    start_sleeper(client, 1);
    expect_output(client, 1);
    client_request(client, 2, "run", client_params("fake", "print 1", NULL));
    AR_AUTO_JSON json_t *refused = client_result(client, 2);
    client_expect(refused, "refused", "overloaded");
    rows_expect_result(daemon_ledger(daemon), refused);
    cancel_sleeper(client, 1);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_stranger_is_told_once_and_cut_off,
                                          &test_connection_that_is_handed_on,
                                          &test_stranger_who_has_gone,
                                          &test_client_who_has_gone,
                                          &test_client_by_its_group,
                                          &test_cancel_by_another_client,
                                          &test_bound_of_a_client,
                                          &test_bound_of_a_client_and_a_reload,
                                          &test_bound_of_a_client_and_the_deadline,
                                          NULL};
    if (getuid() != 0)
        return 77; /* this host cannot: run-checks counts it as skipped */
    return e2e_main("peers", tests);
}
