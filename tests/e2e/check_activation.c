/*
 * check_activation.c - the daemon under a service manager that holds its socket.
 *
 * The test is the manager: it binds the socket, gives it to one daemon after the other, and clients do
 * not notice which one serves them, but for those whose daemon was killed.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define WAITING      200
#define ANSWER_BYTES 4096

static const char question[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";

/* ---- the manager ------------------------------------------------------------------------------ */

static int bind_at(const char *path, int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_lt(strlen(path), sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(chmod(path, 0620), 0);
    return fd;
}

static int listen_at(const char *path)
{
    int fd = bind_at(path, SOCK_STREAM);
    ck_assert_int_eq(listen(fd, 2 * WAITING), 0);
    return fd;
}

/* Not started yet; *fd is its socket, at the usual place. */
static struct daemon *prepare(int *fd, const char *const *environment)
{
    struct daemon *daemon = daemon_prepare(
        &(struct daemon_options){.sockets = fd, .socket_count = 1, .environment = environment});
    *fd = listen_at(daemon_socket(daemon));
    return daemon;
}

static void give_back(struct daemon *daemon, int fd)
{
    (void)close(fd);
    ck_assert_msg(unlink(daemon_socket(daemon)) == 0, "the socket was not left to its owner");
    daemon_free(daemon);
}

/* ---- clients ---------------------------------------------------------------------------------- */

static int ask(const struct daemon *daemon)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, daemon_socket(daemon), strlen(daemon_socket(daemon)) + 1);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL), sizeof(question) - 1);
    return fd;
}

/* Waits for the answer, which must be whole; false when the connection ended without a byte of one. */
static bool is_answered(int fd)
{
    char answer[ANSWER_BYTES] = "";
    size_t length = 0;
    int64_t deadline = processes_now_ms() + CLIENT_WAIT_MS;
    while (length == 0 || answer[length - 1] != '\n') {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ck_assert_msg(poll(&wait, 1, (int)(deadline - processes_now_ms())) == 1, "no answer");
        ck_assert_uint_lt(length, sizeof(answer));
        ssize_t n = read(fd, answer + length, sizeof(answer) - length);
        if (n <= 0) {
            ck_assert_msg(length == 0, "half an answer");
            return false;
        }
        length += (size_t)n;
    }
    return true;
}

/* All that waited are served, each by a whole answer or, where lost ones are allowed, by none. */
static size_t count_answered(const int *fds, size_t count)
{
    size_t answered = 0;
    for (size_t i = 0; i < count; i++) {
        answered += is_answered(fds[i]);
        (void)close(fds[i]);
    }
    return answered;
}

/* ---- tests ------------------------------------------------------------------------------------ */

START_TEST(the_socket_is_used_and_left_alone)
{
    int fd;
    struct stat before, after;
    struct daemon *daemon = prepare(&fd, NULL);
    ck_assert_int_eq(stat(daemon_socket(daemon), &before), 0);
    for (int i = 0; i < 2; i++) {
        daemon_start_again(daemon);
        struct client *client = daemon_connect(daemon);
        AR_AUTO_JSON json_t *result =
            client_call(client, "run", client_params("bash", "exit 0", NULL));
        client_expect(result, "succeeded", "exit_zero");
        client_disconnect(client);
        ck_assert_int_eq(daemon_terminate(daemon), 0);
        ck_assert_int_eq(stat(daemon_socket(daemon), &after), 0);
        ck_assert_uint_eq(after.st_ino, before.st_ino);
        ck_assert_uint_eq(after.st_mode, before.st_mode);
    }
    rows_expect(daemon_ledger(daemon), 2);
    give_back(daemon, fd);
}
END_TEST

START_TEST(who_waits_is_served_by_the_next)
{
    int fd, waiting[WAITING];
    struct daemon *daemon = prepare(&fd, NULL);
    for (int i = 0; i < 3; i++) { /* before the first, after an end, after a kill */
        for (size_t j = 0; j < WAITING; j++)
            waiting[j] = ask(daemon);
        daemon_launch(daemon);
        ck_assert_uint_eq(count_answered(waiting, WAITING), WAITING);
        daemon_await(daemon);
        if (i == 1)
            daemon_kill9(daemon);
        else
            ck_assert_int_eq(daemon_terminate(daemon), 0);
    }
    give_back(daemon, fd);
}
END_TEST

/* Half of them come while the daemon is being killed: whom it had taken is cut off, without half an answer;
 * who was still waiting is served by the next one. */
START_TEST(nobody_is_half_answered)
{
    int fd, waiting[WAITING];
    struct daemon *daemon = prepare(&fd, NULL);
    daemon_start_again(daemon);
    for (size_t i = 0; i < WAITING; i++) {
        if (i == WAITING / 2)
            ck_assert_int_eq(kill(daemon_pid(daemon), SIGKILL), 0);
        waiting[i] = ask(daemon);
    }
    daemon_kill9(daemon);
    daemon_launch(daemon);
    size_t answered = count_answered(waiting, WAITING);
    ck_assert_msg(answered >= WAITING / 2 - 8, "only %zu were answered", answered);
    daemon_await(daemon);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    give_back(daemon, fd);
}
END_TEST

static void expect_refusal(const int *sockets, size_t count, const char *words)
{
    struct daemon_options options = {.sockets = sockets, .socket_count = count};
    struct daemon *daemon = daemon_prepare(&options);
    ck_assert_int_eq(daemon_start_in_vain(daemon), 1);
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    ck_assert_msg(strstr(log, words) != NULL, "%s", log);
    daemon_free(daemon);
}

START_TEST(what_is_no_listener_is_refused)
{
    int pair[2], udp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int datagrams = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert(udp >= 0 && datagrams >= 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    expect_refusal(&udp, 1, "it is no Unix socket");
    expect_refusal(&datagrams, 1, "it is no stream socket");
    expect_refusal(pair, 1, "it does not listen");
    expect_refusal(pair, 2, "more than one socket");
    (void)close(udp);
    (void)close(datagrams);
    (void)close(pair[0]);
    (void)close(pair[1]);
}
END_TEST

/* Variables that were meant for another process, as a shell between us would leave them. */
START_TEST(sockets_of_somebody_else_are_left_alone)
{
    static const char *const environment[] = {"LISTEN_PID=1", "LISTEN_FDS=1", NULL};
    struct daemon_options options = {.environment = environment};
    struct daemon *daemon = daemon_new(&options);
    struct stat status;
    ck_assert_int_eq(stat(daemon_socket(daemon), &status), 0);
    daemon_free(daemon);
}
END_TEST

/* ---- what children see (C34) ------------------------------------------------------------------ */

static const char *const words[] = {"NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_",
                                    "CREDENTIALS_DIRECTORY", "CANARY"};

static void expect_clean(const char *environment, size_t length, const char *who)
{
    for (size_t i = 0; i < AR_COUNT(words); i++)
        ck_assert_msg(!memmem(environment, length, words[i], strlen(words[i])), "%s sees %s", who,
                      words[i]);
}

/* Of a process: its variables, and that it has no descriptor of this file. */
static void expect_clean_process(pid_t pid, ino_t socket)
{
    char path[64], environment[4096];
    struct stat status;
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    size_t length = fread(environment, 1, sizeof(environment), file);
    (void)fclose(file);
    ck_assert_uint_gt(length, 0);
    expect_clean(environment, length, "a provider");
    for (int fd = 0; fd < 64; fd++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
        ck_assert_msg(stat(path, &status) != 0 || status.st_ino != socket,
                      "a provider has the socket");
    }
}

START_TEST(children_see_nothing_of_the_unit)
{
    static const char *const environment[] = {"NOTIFY_SOCKET=/nowhere", "WATCHDOG_USEC=30000000",
                                              "CREDENTIALS_DIRECTORY=/nowhere", "UNIT_CANARY=1",
                                              NULL};
    int fd;
    struct stat status;
    struct daemon *daemon = prepare(&fd, environment);
    daemon_start_again(daemon);
    ck_assert_int_eq(fstat(fd, &status), 0);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = client_call(client, "run", client_params("bash", "env", NULL));
    client_expect(result, "succeeded", "exit_zero");
    expect_clean(e2e_stdout(result), strlen(e2e_stdout(result)), "code");
    struct processes children = processes_children(daemon_pid(daemon));
    ck_assert_uint_gt(children.count, 0);
    for (size_t i = 0; i < children.count; i++)
        expect_clean_process(children.items[i].pid, status.st_ino);
    processes_free(&children);
    client_disconnect(client);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    give_back(daemon, fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("activation");
    TCase *tcase = e2e_case(suite, "socket");
    tcase_add_test(tcase, the_socket_is_used_and_left_alone);
    tcase_add_test(tcase, who_waits_is_served_by_the_next);
    tcase_add_test(tcase, nobody_is_half_answered);
    tcase_add_test(tcase, what_is_no_listener_is_refused);
    tcase_add_test(tcase, sockets_of_somebody_else_are_left_alone);
    tcase_add_test(e2e_case(suite, "children"), children_see_nothing_of_the_unit);
    return e2e_run(suite);
}
