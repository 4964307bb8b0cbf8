/*
 * check_metrics.c - what the daemon says of itself over HTTP: right, complete, bounded, and nothing in
 * it that a client has made up. Prometheus' own promtool reads it, where it is installed.
 */
#include "protocol/vocabulary.h"
#include "tests/e2e/e2e.h"
#include "tests/lib/host.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define CANARY       "CANARY-5be1"
#define ANSWER_BYTES (1 << 20)
#define ANSWER_MS    20000
#define CONNECTIONS  16 /* the most that are served at a time */

#define GET(more) "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" more "\r\n"

struct scraped {
    struct daemon *daemon;
    struct client *client;
    char *socket;
    uint16_t port;
};

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

static char *scraped_config(const struct scraped *scraped, const char *more)
{
    AR_AUTO_FREE char *text = NULL;
    ck_assert_int_gt(asprintf(&text,
                              "[metrics]\nsocket = %s\nmode = 0600\nlisten = 127.0.0.1:%u\n%s",
                              scraped->socket, scraped->port, more),
                     0);
    return e2e_fake(text);
}

static struct scraped scraped_open(const char *more)
{
    struct scraped scraped = {.port = free_port()};
    scraped.daemon = daemon_prepare(&(struct daemon_options){.config = ""});
    scraped.socket = daemon_path(scraped.daemon, "metrics.sock");
    AR_AUTO_FREE char *config = scraped_config(&scraped, more);
    daemon_configure(scraped.daemon, config);
    daemon_start_again(scraped.daemon);
    scraped.client = daemon_connect(scraped.daemon);
    return scraped;
}

static void scraped_close(struct scraped *scraped)
{
    client_disconnect(scraped->client);
    daemon_free(scraped->daemon);
    free(scraped->socket);
}

/* ---- HTTP ---------------------------------------------------------------------------------------- */

static int connect_unix(const struct scraped *scraped)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_uint_lt(strlen(scraped->socket), sizeof(address.sun_path));
    memcpy(address.sun_path, scraped->socket, strlen(scraped->socket) + 1);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static int connect_tcp(const struct scraped *scraped)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(scraped->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* All that comes until the other side closes. malloc'd. */
static char *read_all(int fd)
{
    char *text = malloc(ANSWER_BYTES + 1);
    size_t length = 0;
    ck_assert_ptr_nonnull(text);
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        ck_assert_int_eq(poll(&poll_fd, 1, ANSWER_MS), 1);
        ssize_t n = read(fd, text + length, ANSWER_BYTES - length);
        if (n <= 0)
            break;
        length += (size_t)n;
        ck_assert_uint_lt(length, ANSWER_BYTES);
    }
    text[length] = '\0';
    return text;
}

/* Sends a request and reads the whole answer, head and body; closes. malloc'd. */
static char *exchange(int fd, const char *request)
{
    AR_AUTO_CLOSE int connection = fd;
    ssize_t sent = send(connection, request, strlen(request), MSG_NOSIGNAL);
    ck_assert_int_eq(sent, (ssize_t)strlen(request));
    return read_all(connection);
}

static const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    ck_assert_msg(end != NULL, "%.300s", answer);
    return end + 4;
}

/* The metrics, as text of Prometheus; malloc'd. */
static char *scrape(const struct scraped *scraped)
{
    AR_AUTO_FREE char *answer = exchange(connect_unix(scraped), GET(""));
    ck_assert_msg(strncmp(answer, "HTTP/1.1 200 ", 13) == 0, "%.300s", answer);
    ck_assert_ptr_nonnull(strstr(answer, "Content-Type: text/plain; version=0.0.4"));
    return strdup(body_of(answer));
}

/* The number behind "name{labels} ", which must be there once. */
static double value_of(const char *text, const char *sample)
{
    size_t length = strlen(sample);
    const char *found = NULL;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, sample, length) != 0 || line[length] != ' ')
            continue;
        ck_assert_msg(!found, "%s is there twice", sample);
        found = line;
    }
    ck_assert_msg(found != NULL, "%s is not there", sample);
    return found ? strtod(found + length + 1, NULL) : 0;
}
#define EXPECT(text, sample, value) ck_assert_double_eq_tol(value_of(text, sample), value, 0.001)

static size_t count_lines(const char *text, const char *begin)
{
    size_t count = 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += strncmp(line, begin, strlen(begin)) == 0;
    }
    return count;
}

/* ---- promtool ------------------------------------------------------------------------------------ */

/* It finds nothing to say about the text. */
static void promtool_approves(const struct scraped *scraped, const char *text)
{
    AR_AUTO_FREE char *in = daemon_path(scraped->daemon, "metrics.txt");
    AR_AUTO_FREE char *out = daemon_path(scraped->daemon, "promtool.out");
    char *const arguments[] = {(char *)(uintptr_t) "promtool", (char *)(uintptr_t) "check",
                               (char *)(uintptr_t) "metrics", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int status = 0;
    daemon_write_file(in, text, 0600);
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in, O_RDONLY, 0), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out,
                                                      O_WRONLY | O_CREAT | O_TRUNC, 0600),
                     0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO), 0);
    int rc = posix_spawnp(&pid, "promtool", &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (rc == ENOENT) {
        (void)fprintf(stderr, "NOT CHECKED by promtool, which is not installed (prometheus)\n");
        return;
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    AR_AUTO_FREE char *said = daemon_read_file(out);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0 && !said[0], "promtool: %.2000s",
                  said);
}

/* ---- what is told -------------------------------------------------------------------------------- */

static void run_so(const struct scraped *scraped, const char *code, const char *more,
                   const char *status, const char *reason)
{
    AR_AUTO_JSON json_t *result =
        client_call(scraped->client, "run", client_params("fake", code, more));
    client_expect(result, status, reason);
}

START_TEST(test_runs_are_counted)
{
    struct scraped scraped = scraped_open("");
    run_so(&scraped, "print a", NULL, "succeeded", "exit_zero");
    run_so(&scraped, "print b", "{'idempotency_key': 'k1'}", "succeeded", "exit_zero");
    run_so(&scraped, "exit 3", NULL, "failed", "exit_nonzero");
    run_so(&scraped, "print a", "{'grant': {'network': {'mode': 'open'}}}", "capability_denied",
           "not_enforceable");
    AR_AUTO_JSON json_t *error =
        client_fail(scraped.client, "run", client_params("fake", "x", "{'netwrok': 1}"));
    client_expect_error(error, -32602, "/netwrok", "unknown_member");
    AR_AUTO_FREE char *text = scrape(&scraped);
    EXPECT(text, "auditrun_runs_total{status=\"succeeded\",reason=\"exit_zero\"}", 2);
    EXPECT(text, "auditrun_runs_total{status=\"failed\",reason=\"exit_nonzero\"}", 1);
    EXPECT(text, "auditrun_runs_total{status=\"capability_denied\",reason=\"not_enforceable\"}", 1);
    EXPECT(text, "auditrun_runs_total{status=\"interrupted\",reason=\"host_restarted\"}", 0);
    ck_assert_uint_eq(count_lines(text, "auditrun_runs_total{"), REASON_COUNT - 1);
    EXPECT(text, "auditrun_run_seconds_count", 4);
    EXPECT(text, "auditrun_run_seconds_bucket{le=\"+Inf\"}", 4);
    EXPECT(text, "auditrun_run_stage_seconds_count{stage=\"queue\"}", 3);
    EXPECT(text, "auditrun_run_stage_seconds_count{stage=\"intent\"}", 3);
    EXPECT(text, "auditrun_run_stage_seconds_count{stage=\"claim\"}", 1);
    EXPECT(text, "auditrun_run_stage_seconds_count{stage=\"sandbox\"}", 3);
    EXPECT(text, "auditrun_run_stage_seconds_count{stage=\"ledger\"}", 4);
    EXPECT(text, "auditrun_requests_total{method=\"run\"}", 5);
    EXPECT(text, "auditrun_rpc_errors_total{code=\"-32602\"}", 1);
    EXPECT(text, "auditrun_connections", 1);
    EXPECT(text, "auditrun_ledger_up", 1);
    EXPECT(text, "auditrun_ledger_backlog_rows", 0);
    ck_assert_double_ge(value_of(text, "auditrun_ledger_rows_total"), 4);
    EXPECT(text, "auditrun_executor_usable{executor=\"fake\"}", 1);
    EXPECT(text, "auditrun_runs_in_state{state=\"running\"}", 0);
    ck_assert_double_gt(value_of(text, "process_resident_memory_bytes"), 1 << 20);
    scraped_close(&scraped);
}
END_TEST

static bool has_two_running(void *context)
{
    AR_AUTO_FREE char *text = scrape(context);
    return value_of(text, "auditrun_runs_in_state{state=\"running\"}") > 1.5 &&
           value_of(text, "auditrun_queue_waiting") > 0.5;
}

START_TEST(test_what_is_going_on)
{
    struct scraped scraped = scraped_open("[limits]\nmax_running = 2\n");
    for (json_int_t id = 1; id <= 3; id++)
        client_request(scraped.client, id, "run", client_params("fake", "sleep 60000", NULL));
    ck_assert(processes_wait(has_two_running, &scraped, 20000));
    AR_AUTO_FREE char *text = scrape(&scraped);
    EXPECT(text, "auditrun_queue_companies", 1);
    EXPECT(text, "auditrun_slots{executor=\"fake\",state=\"busy\"}", 2);
    EXPECT(text, "auditrun_runs_in_state{state=\"admitted\"}", 1);
    EXPECT(text, "auditrun_journal_open_intents", 2);
    for (json_int_t id = 1; id <= 3; id++) {
        json_decref(client_call(scraped.client, "cancel", json_pack("{s:I}", "request_id", id)));
        AR_AUTO_JSON json_t *result = client_result(scraped.client, id);
        client_expect(result, "cancelled", "client_cancelled");
    }
    AR_AUTO_FREE char *after = scrape(&scraped);
    EXPECT(after, "auditrun_runs_total{status=\"cancelled\",reason=\"client_cancelled\"}", 3);
    EXPECT(after, "auditrun_queue_waiting", 0);
    EXPECT(after, "auditrun_queue_companies", 0);
    scraped_close(&scraped);
}
END_TEST

/* ---- its form ------------------------------------------------------------------------------------ */

START_TEST(test_promtool_under_load)
{
    enum { RUNS = 200 };
    struct scraped scraped = scraped_open("[socket]\nmax_pending = 300\n");
    for (json_int_t id = 1; id <= RUNS; id++)
        client_request(scraped.client, id, "run", client_params("fake", "print x", NULL));
    for (json_int_t id = 1; id <= RUNS; id++) {
        AR_AUTO_JSON json_t *result = client_result(scraped.client, id);
        client_expect(result, "succeeded", "exit_zero");
        if (id % 50 != 1)
            continue;
        AR_AUTO_FREE char *text = scrape(&scraped);
        promtool_approves(&scraped, text);
        AR_AUTO_FREE char *tcp = exchange(connect_tcp(&scraped), GET(""));
        promtool_approves(&scraped, body_of(tcp));
    }
    AR_AUTO_FREE char *text = scrape(&scraped);
    EXPECT(text, "auditrun_runs_total{status=\"succeeded\",reason=\"exit_zero\"}", RUNS);
    EXPECT(text, "auditrun_run_seconds_count", RUNS);
    scraped_close(&scraped);
}
END_TEST

START_TEST(test_open_metrics_on_demand)
{
    static const char *const wanted[] = {
        GET("Accept: application/openmetrics-text; version=1.0.0\r\n"),
        GET("Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1\r\n")};
    struct scraped scraped = scraped_open("");
    for (size_t i = 0; i < AR_COUNT(wanted); i++) {
        AR_AUTO_FREE char *answer = exchange(connect_unix(&scraped), wanted[i]);
        ck_assert_ptr_nonnull(
            strstr(answer, "Content-Type: application/openmetrics-text; version=1.0.0"));
        const char *body = body_of(answer);
        ck_assert_str_eq(body + strlen(body) - 6, "# EOF\n");
        ck_assert_uint_eq(count_lines(body, "# EOF"), 1);
        ck_assert_uint_eq(count_lines(body, "# TYPE auditrun_runs counter"), 1);
        ck_assert_uint_eq(count_lines(body, "# TYPE auditrun_build info"), 1);
        ck_assert_uint_eq(count_lines(body, "auditrun_runs_total{"), REASON_COUNT - 1);
    }
    AR_AUTO_FREE char *refused = exchange(
        connect_unix(&scraped), GET("Accept: application/openmetrics-text;q=0,text/plain\r\n"));
    ck_assert_ptr_nonnull(strstr(refused, "Content-Type: text/plain; version=0.0.4"));
    ck_assert_ptr_null(strstr(refused, "# EOF"));
    scraped_close(&scraped);
}
END_TEST

/* What clients call themselves is in no name and no label. */
START_TEST(test_nothing_of_clients)
{
    struct scraped scraped = scraped_open("");
    run_so(&scraped, "print " CANARY,
           "{'company': '" CANARY "', 'actor': '" CANARY "', 'purpose': '" CANARY "', "
           "'stdin': '" CANARY "', 'idempotency_key': '" CANARY "'}",
           "succeeded", "exit_zero");
    run_so(&scraped, "print a", "{'language': 'canary-5be1'}", "capability_denied",
           "not_enforceable");
    AR_AUTO_FREE char *before = scrape(&scraped);
    ck_assert_ptr_null(strcasestr(before, CANARY));
    ck_assert_ptr_null(strcasestr(before, "acme"));
    scraped_close(&scraped);
}
END_TEST

/* ---- who asks ------------------------------------------------------------------------------------ */

START_TEST(test_only_this_is_served)
{
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"GET /metrics/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 405 "},
        {"DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 405 "},
        {"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
         "HTTP/1.1 413 "},
        {"GET /metrics?x=1 HTTP/1.0\r\n\r\n", "HTTP/1.0 200 "},
        {"rubbish\r\n\r\n", "HTTP/1.1 400 "},
    };
    struct scraped scraped = scraped_open("");
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_FREE char *answer = exchange(connect_unix(&scraped), cases[i].request);
        ck_assert_msg(strncmp(answer, cases[i].answer, strlen(cases[i].answer)) == 0,
                      "%s\nis answered\n%.300s", cases[i].request, answer);
    }
    AR_AUTO_FREE char *text = scrape(&scraped);
    EXPECT(text, "auditrun_connections", 1);
    scraped_close(&scraped);
}
END_TEST

START_TEST(test_headers_are_bounded)
{
    struct scraped scraped = scraped_open("");
    AR_AUTO_FREE char *request = NULL;
    ck_assert_int_gt(asprintf(&request, "GET /metrics HTTP/1.1\r\nX: %0*d\r\n\r\n", 20000, 0), 0);
    AR_AUTO_FREE char *answer = exchange(connect_unix(&scraped), request);
    ck_assert_ptr_null(strstr(answer, " 200 "));
    AR_AUTO_FREE char *text = scrape(&scraped);
    EXPECT(text, "auditrun_draining", 0);
    scraped_close(&scraped);
}
END_TEST

struct descriptors {
    pid_t pid;
    size_t most;
};

static bool are_closed(void *context)
{
    const struct descriptors *descriptors = context;
    return host_descriptors(descriptors->pid) <= descriptors->most;
}

/* Connections that say nothing: no more than so many are held, the daemon goes on with its work, and
 * whoever waits is served when the silent ones have been closed. */
START_TEST(test_connections_are_bounded)
{
    enum { SILENT = 3 * CONNECTIONS };
    struct scraped scraped = scraped_open("");
    int silent[SILENT];
    run_so(&scraped, "print a", NULL, "succeeded", "exit_zero");
    free(scrape(&scraped));
    struct descriptors before = {daemon_pid(scraped.daemon),
                                 host_descriptors(daemon_pid(scraped.daemon))};
    for (size_t i = 0; i < SILENT; i++)
        silent[i] = i % 2 ? connect_tcp(&scraped) : -1;
    for (size_t i = 0; i < CONNECTIONS; i += 2)
        silent[i] = connect_unix(&scraped);
    run_so(&scraped, "print b", NULL, "succeeded", "exit_zero");
    ck_assert_uint_le(host_descriptors(before.pid), before.most + CONNECTIONS + 4);
    AR_AUTO_FREE char *waited = scrape(&scraped);
    EXPECT(waited, "auditrun_runs_total{status=\"succeeded\",reason=\"exit_zero\"}", 2);
    for (size_t i = 0; i < SILENT; i++)
        base_close(&silent[i]);
    AR_AUTO_FREE char *after = scrape(&scraped);
    EXPECT(after, "auditrun_connections", 1);
    ck_assert(processes_wait(are_closed, &before, 20000));
    scraped_close(&scraped);
}
END_TEST

static bool has_taken_one(void *context)
{
    AR_AUTO_FREE char *text = scrape(context);
    return value_of(text, "auditrun_config_reloads_total{result=\"ok\"}") > 0.5;
}

static bool has_refused_one(void *context)
{
    AR_AUTO_FREE char *text = scrape(context);
    return value_of(text, "auditrun_config_reloads_total{result=\"failed\"}") > 0.5;
}

static void reload_with(const struct scraped *scraped, const char *more)
{
    AR_AUTO_FREE char *text = scraped_config(scraped, more);
    daemon_configure(scraped->daemon, text);
    ck_assert_int_eq(kill(daemon_pid(scraped->daemon), SIGHUP), 0);
}

START_TEST(test_reloads_and_switches)
{
    struct scraped scraped = scraped_open("");
    AR_AUTO_FREE char *text = scrape(&scraped);
    EXPECT(text, "auditrun_switches_off", 0);
    reload_with(&scraped, "[company acme]\nenabled = no\n[language perl]\nenabled = no\n");
    ck_assert(processes_wait(has_taken_one, &scraped, 20000));
    AR_AUTO_FREE char *after = scrape(&scraped);
    EXPECT(after, "auditrun_switches_off", 2);
    EXPECT(after, "auditrun_executor_usable{executor=\"fake\"}", 1);
    reload_with(&scraped, "[company acme]\nenabled = maybe\n");
    ck_assert(processes_wait(has_refused_one, &scraped, 20000));
    AR_AUTO_FREE char *refused = scrape(&scraped);
    EXPECT(refused, "auditrun_config_reloads_total{result=\"ok\"}", 1);
    EXPECT(refused, "auditrun_switches_off", 2);
    promtool_approves(&scraped, refused);
    scraped_close(&scraped);
}
END_TEST

START_TEST(test_a_stranger_is_counted)
{
    if (geteuid() != 0)
        return; /* nobody else can be played */
    struct scraped scraped = scraped_open("");
    AR_AUTO_FREE char *text = scrape(&scraped);
    EXPECT(text, "auditrun_connections_refused_total{why=\"forbidden\"}", 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char byte;
        memcpy(address.sun_path, daemon_socket(scraped.daemon),
               strlen(daemon_socket(scraped.daemon)) + 1);
        if (setgid(4343) != 0 || setuid(4343) != 0 ||
            connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
            _exit(1);
        _exit(read(fd, &byte, 1) == 1 ? 0 : 2);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    AR_AUTO_FREE char *after = scrape(&scraped);
    EXPECT(after, "auditrun_connections_refused_total{why=\"forbidden\"}", 1);
    scraped_close(&scraped);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_runs_are_counted,
                                          &test_what_is_going_on,
                                          &test_promtool_under_load,
                                          &test_open_metrics_on_demand,
                                          &test_nothing_of_clients,
                                          &test_only_this_is_served,
                                          &test_headers_are_bounded,
                                          &test_connections_are_bounded,
                                          &test_reloads_and_switches,
                                          &test_a_stranger_is_counted,
                                          NULL};
    return e2e_main("metrics", tests);
}
