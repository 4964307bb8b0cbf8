/*
 * check_protocol.c - what goes over the wire of the real daemon: faulty lines and where their faults
 * are, ids, framing, and the answers of the methods.
 *
 * Each test ends with the count of rows: a line that never was a run leaves none. All traffic of the
 * program is held against the schemas at its end.
 */
#include "tests/e2e/e2e.h"

#include <fcntl.h>
#include <sys/wait.h>

/* One line of a run; the test says what stands for the company, and behind the code. */
#define RUN(id, params)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"run\",\"params\":{\"company\":\"acme\"," \
    "\"actor\":\"actor-1\",\"purpose\":\"case\",\"language\":\"fake\",\"code\":\"print "      \
    "1\"," params "}}"

/* The answer to a line, which is an error: the whole message, owned. */
static json_t *refusal(struct client *client, const char *line)
{
    client_send_line(client, line);
    json_t *answer = client_next(client);
    ck_assert_msg(json_object_get(answer, "error") != NULL, "%.300s is answered with %.300s", line,
                  client_last_line(client));
    return answer;
}

static void expect_refusal(struct client *client, const char *line, const char *id_text, int code,
                           const char *path, const char *problem)
{
    char id_member[64];
    AR_AUTO_JSON json_t *answer = refusal(client, line);
    (void)snprintf(id_member, sizeof(id_member), "\"id\":%s", id_text);
    client_expect_error(json_object_get(answer, "error"), code, path, problem);
    ck_assert_msg(strstr(client_last_line(client), id_member) != NULL, "no %s in %s", id_member,
                  client_last_line(client));
}

/* The connection serves the next line, and none of those before was a run. */
static void expect_no_runs(struct daemon *daemon, struct client *client)
{
    ck_assert_int_eq(e2e_status(client, "runs", "total"), 0);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 0);
    daemon_free(daemon);
}

START_TEST(test_member_that_occurs_twice)
{
    static const struct {
        const char *line;
        const char *path; /* NULL: in the outer object */
    } cases[] = {
        {RUN("1", "\"grant\":{\"network\":{\"mode\":\"none\"},\"network\":{\"mode\":\"open\"}}"),
         "/grant/network"},
        {RUN("1", "\"grant\":{\"network\":{\"mode\":\"none\"},"
                  "\"\\u006eetwork\":{\"mode\":\"open\"}}"),
         "/grant/network"},
        {RUN("1", "\"grant\":{},\"grant\":{}"), "/grant"},
        {RUN("1", "\"grant\":{\"limits\":{\"wall_ms\":1000,\"wall_ms\":2000}}"),
         "/grant/limits/wall_ms"},
        {RUN("1", "\"grant\":{},\"files\":[{\"path\":\"a\",\"path\":\"b\",\"text\":\"\"}]"),
         "/files/0/path"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"status\"}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"method\":\"run\"}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"params\":{},\"params\":{}}", NULL},
    };
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        if (cases[i].path)
            expect_refusal(client, cases[i].line, "1", -32602, cases[i].path, "duplicate_member");
        else
            expect_refusal(client, cases[i].line, "null", -32600, NULL, NULL);
    }
    expect_no_runs(daemon, client);
}
END_TEST

/* A run whose wall_ms is this text, under id 7. */
static char *run_with_wall(const char *text)
{
    char *line = NULL;
    ck_assert_int_gt(asprintf(&line, RUN("7", "\"grant\":{\"limits\":{\"wall_ms\":%s}}"), text), 0);
    return line;
}

/* A locale with a decimal comma, made below the folder when the host knows how; else only the words
 * of the environment say so. */
static void make_locale(const struct daemon *daemon)
{
    AR_AUTO_FREE char *path = daemon_path(daemon, "de_DE.UTF-8");
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        execlp("localedef", "localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", path,
               (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void check_numbers(struct client *client)
{
    static const char *const values[] = {
        "9223372036854775808", "1e400", "-0",  "5e-324",  "1000.0", "1e3", "0.5", "0", "-1", "1e-3",
        "9007199254740993",    "1.5",   "1E3", "86400001"};
    for (size_t i = 0; i < AR_COUNT(values); i++) {
        AR_AUTO_FREE char *line = run_with_wall(values[i]);
        expect_refusal(client, line, "7", -32602, "/grant/limits/wall_ms", NULL);
    }
    AR_AUTO_FREE char *digits = malloc(100001);
    ck_assert_ptr_nonnull(digits);
    memset(digits, '7', 100000);
    digits[100000] = '\0';
    AR_AUTO_FREE char *line = run_with_wall(digits);
    expect_refusal(client, line, "7", -32602, "/grant/limits/wall_ms", NULL);
}

static void check_ids(struct client *client)
{
    static const struct {
        const char *id;
        bool kept;
    } ids[] = {{"1.5", true},         {"1", true},
               {"-7", true},          {"9007199254740993", true},
               {"\"\\u00e9\"", true}, {"\"a\"", true},
               {"1e400", false},      {"123456789012345678901234567890", false},
               {"null", false},       {"true", false},
               {"[1]", false},        {"{}", false}};
    for (size_t i = 0; i < AR_COUNT(ids); i++) {
        char line[128], member[64];
        (void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"status\"}",
                       ids[i].id);
        (void)snprintf(member, sizeof(member), "\"id\":%s,", ids[i].kept ? ids[i].id : "null");
        client_send_line(client, line);
        AR_AUTO_JSON json_t *answer = client_next(client);
        ck_assert_msg(strstr(client_last_line(client), member) != NULL, "no %s in %s", member,
                      client_last_line(client));
        ck_assert_int_eq(json_object_get(answer, "result") != NULL, ids[i].kept);
    }
}

START_TEST(test_numbers_under_a_locale_with_a_comma)
{
    char locales[128];
    /* The C library itself leaks the words of LOCPATH when a library asks for a locale. */
    const char *environment[] = {"LC_ALL=de_DE.UTF-8", locales, "LSAN_OPTIONS=detect_leaks=0",
                                 NULL};
    AR_AUTO_FREE char *config = e2e_fake(NULL);
    struct daemon *daemon =
        daemon_prepare(&(struct daemon_options){.config = config, .environment = environment});
    (void)snprintf(locales, sizeof(locales), "LOCPATH=%s", daemon_folder(daemon));
    make_locale(daemon);
    daemon_start_again(daemon);
    struct client *client = daemon_connect(daemon);
    check_numbers(client);
    check_ids(client);
    expect_no_runs(daemon, client);
}
END_TEST

START_TEST(test_one_id_twice_in_flight)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    struct client *other = daemon_connect(daemon);
    client_request(client, 1, "run", client_params("fake", "print A\nsleep 10000", NULL));
    client_request(client, 1, "run", client_params("fake", "print B", NULL));
    AR_AUTO_JSON json_t *refused = client_next(client);
    ck_assert(json_is_null(json_object_get(refused, "id")));
    client_expect_error(json_object_get(refused, "error"), -32600, NULL, NULL);
    expect_refusal(client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}", "null", -32600,
                   NULL, NULL);
    /* The same id on another connection is another id; it cannot cancel the first one's run. */
    client_request(other, 1, "run", client_params("fake", "print C", NULL));
    AR_AUTO_JSON json_t *third = client_result(other, 1);
    client_expect(third, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(third), "C");
    AR_AUTO_JSON json_t *nothing = client_call(other, "cancel", client_json("{'request_id': 1}"));
    ck_assert(json_is_false(json_object_get(nothing, "cancelled")));
    AR_AUTO_JSON json_t *hit = client_call(client, "cancel", client_json("{'request_id': 1}"));
    ck_assert(json_is_true(json_object_get(hit, "cancelled")));
    AR_AUTO_JSON json_t *first = client_result(client, 1);
    client_expect(first, "cancelled", "client_cancelled");
    rows_expect_result(daemon_ledger(daemon), first);
    /* Once it has been answered, an id may be used again. */
    client_request(client, 1, "run", client_params("fake", "print D", NULL));
    AR_AUTO_JSON json_t *again = client_result(client, 1);
    client_expect(again, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(again), "D");
    client_disconnect(client);
    client_disconnect(other);
    rows_expect(daemon_ledger(daemon), 3);
    daemon_free(daemon);
}
END_TEST

/* Both run at once under one id, each on its own connection. */
START_TEST(test_ids_of_connections_never_meet)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *clients[8];
    for (size_t i = 0; i < AR_COUNT(clients); i++) {
        char code[64];
        clients[i] = daemon_connect(daemon);
        (void)snprintf(code, sizeof(code), "sleep %zu\nprint own-%zu", (i % 3) * 20, i);
        for (int id = 1; id <= 4; id++)
            client_request(clients[i], id, "run", client_params("fake", code, NULL));
    }
    for (size_t i = 0; i < AR_COUNT(clients); i++) {
        char expected[32];
        (void)snprintf(expected, sizeof(expected), "own-%zu", i);
        for (int id = 4; id >= 1; id--) {
            AR_AUTO_JSON json_t *result = client_result(clients[i], id);
            ck_assert_str_eq(e2e_stdout(result), expected);
        }
        client_disconnect(clients[i]);
    }
    rows_expect(daemon_ledger(daemon), 4 * AR_COUNT(clients));
    daemon_free(daemon);
}
END_TEST

START_TEST(test_lines_that_are_no_requests)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"", -32700},
        {"{", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"} {}", -32700},
        {"{'jsonrpc':'2.0'}", -32700},
        {"[]", -32600},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}]", -32600},
        {"1", -32600},
        {"\"status\"", -32600},
        {"{}", -32600},
        {"{\"id\":1,\"method\":\"status\"}", -32600},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"status\"}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"params\":[]}", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"more\":1}", -32600},
    };
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        expect_refusal(client, cases[i].line, "null", cases[i].code, NULL, NULL);
    expect_refusal(client, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"CANARY\"}", "5", -32601,
                   NULL, NULL);
    ck_assert_ptr_null(strstr(client_last_line(client), "CANARY"));
    expect_refusal(client,
                   "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"status\",\"params\":{\"a\":1}}", "6",
                   -32602, "/a", "unknown_member");
    expect_no_runs(daemon, client);
}
END_TEST

START_TEST(test_bytes_that_are_not_text)
{
    static const char with_nul[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"meth\0od\":\"status\"}\n";
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    expect_refusal(client,
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"run\",\"params\":{\"company\":"
                   "\"\xff\xfe\"}}",
                   "1", -32602, "/company", "not_utf8");
    AR_AUTO_JSON json_t *outside =
        refusal(client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}");
    ck_assert(json_is_null(json_object_get(outside, "id")));
    client_send_bytes(client, with_nul, sizeof(with_nul) - 1);
    AR_AUTO_JSON json_t *nul = client_next(client);
    ck_assert(json_is_null(json_object_get(nul, "id")));
    expect_no_runs(daemon, client);
}
END_TEST

START_TEST(test_line_that_is_too_long)
{
    struct daemon *daemon = e2e_fake_daemon("[socket]\nmax_line = 64K\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *line = malloc(65537);
    ck_assert_ptr_nonnull(line);
    /* One that just fits is served. */
    int used = snprintf(line, 65537, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}");
    memset(line + used, ' ', (size_t)(65536 - used));
    line[65536] = '\0';
    client_send_line(client, line);
    json_decref(client_result(client, 1));
    /* One byte more, and the connection is of no more use: the rest cannot be told from a line. */
    client_send_bytes(client, " ", 1);
    client_send_bytes(client, line, 65536);
    AR_AUTO_JSON json_t *answer = client_next(client);
    ck_assert(json_is_null(json_object_get(answer, "id")));
    client_expect_error(json_object_get(answer, "error"), -32600, NULL, NULL);
    client_expect_end(client);
    client_disconnect(client);
    expect_no_runs(daemon, daemon_connect(daemon));
}
END_TEST

START_TEST(test_notifications_get_no_answer)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    client_request_as(client, NULL, "status", NULL);
    client_send_line(client, "{\"jsonrpc\":\"2.0\",\"method\":\"no-such-method\"}");
    client_send_line(client, "{\"jsonrpc\":\"2.0\",\"method\":\"run\",\"params\":{\"a\":1}}");
    client_request_as(client, NULL, "run", client_params("fake", "print 1", NULL));
    struct rows rows = rows_wait(daemon_ledger(daemon), 1, 10000);
    ck_assert_uint_eq(rows_count(&rows, STATUS_SUCCEEDED, REASON_NONE), 1);
    rows_free(&rows);
    /* What comes next is the answer to what is asked next. */
    client_request(client, 1, "status", NULL);
    AR_AUTO_JSON json_t *answer = client_next(client);
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "id")), 1);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

START_TEST(test_framing_does_not_depend_on_the_pieces)
{
    static const char line[] = RUN("11", "\"grant\":{}") "\n";
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *many = calloc(1, 70 * sizeof(line));
    ck_assert_ptr_nonnull(many);
    for (size_t i = 0; i < sizeof(line) - 1; i++)
        client_send_bytes(client, line + i, 1);
    AR_AUTO_JSON json_t *bytewise = client_result(client, 11);
    client_expect(bytewise, "succeeded", "exit_zero");
    for (int i = 0; i < 150; i++) {
        char *end = many + strlen(many);
        (void)snprintf(end, 64, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"status\"}\n", 100 + i);
    }
    client_send_bytes(client, many, strlen(many));
    for (int i = 0; i < 150; i++) {
        AR_AUTO_JSON json_t *answer = client_next(client);
        ck_assert_int_eq(json_integer_value(json_object_get(answer, "id")), 100 + i);
    }
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

/* ---- methods ---------------------------------------------------------------------------------- */

static void check_executors(struct client *client)
{
    AR_AUTO_JSON json_t *result = client_call(client, "executors", NULL);
    json_t *list = json_object_get(result, "executors");
    ck_assert_uint_eq(json_array_size(list), 1);
    json_t *limits = json_object_get(json_array_get(list, 0), "limits");
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "name")), "fake");
    ck_assert_int_gt(json_integer_value(json_object_get(limits, "wall_ms")), 0);
    ck_assert_ptr_null(json_object_get(limits, "scratch_bytes"));
}

static void check_record(struct client *client, const json_t *result)
{
    const char *run_id = json_string_value(json_object_get(result, "run_id"));
    AR_AUTO_JSON json_t *by_id =
        client_call(client, "record", json_pack("{s:s}", "run_id", run_id));
    AR_AUTO_JSON json_t *by_key =
        client_call(client, "record", client_json("{'company': 'acme', 'idempotency_key': 'k'}"));
    ck_assert(json_equal(by_id, by_key));
    json_t *record = json_object_get(by_id, "record");
    ck_assert_str_eq(json_string_value(json_object_get(record, "run_id")), run_id);
    ck_assert_str_eq(json_string_value(json_object_get(record, "purpose")), "case");
    AR_AUTO_JSON json_t *no_run = client_fail(
        client, "record", client_json("{'run_id': '0190a5d0-0000-7000-8000-000000000000'}"));
    client_expect_error(no_run, -32003, NULL, NULL);
    AR_AUTO_JSON json_t *no_key = client_fail(
        client, "record", client_json("{'company': 'acme', 'idempotency_key': 'other'}"));
    client_expect_error(no_key, -32003, NULL, NULL);
}

static void check_cancel(struct client *client)
{
    AR_AUTO_JSON json_t *unknown = client_call(
        client, "cancel", client_json("{'run_id': '0190a5d0-0000-7000-8000-000000000000'}"));
    ck_assert(json_is_false(json_object_get(unknown, "cancelled")));
    AR_AUTO_JSON json_t *neither = client_fail(client, "cancel", client_json("{}"));
    client_expect_error(neither, -32602, "/run_id", "missing");
    AR_AUTO_JSON json_t *wrong = client_fail(client, "cancel", client_json("{'request_id': null}"));
    client_expect_error(wrong, -32602, "/request_id", "wrong_type");
}

START_TEST(test_results_of_the_methods)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    check_executors(client);
    AR_AUTO_JSON json_t *result = client_call(
        client, "run",
        client_params("fake", "print out\nerror err\nexit 3", "{'idempotency_key': 'k'}"));
    client_expect(result, "failed", "exit_nonzero");
    ck_assert_int_eq(json_integer_value(json_object_get(result, "exit_code")), 3);
    ck_assert_str_eq(e2e_stdout(result), "out");
    rows_expect_result(daemon_ledger(daemon), result);
    check_record(client, result);
    check_cancel(client);
    ck_assert_int_eq(e2e_status(client, "protocol", NULL), 1);
    ck_assert_int_eq(e2e_status(client, "runs", "total"), 1);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

/* Only for companies that the client may speak for. */
START_TEST(test_records_of_other_companies)
{
    AR_AUTO_FREE char *all = e2e_fake(NULL);
    AR_AUTO_FREE char *one = e2e_fake("[client local]\ncompanies = acme\n");
    struct daemon *daemon = e2e_daemon(all);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = client_call(
        client, "run",
        client_params("fake", "print 1", "{'company': 'globex', 'idempotency_key': 'k'}"));
    client_expect(result, "succeeded", "exit_zero");
    client_disconnect(client);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    daemon_configure(daemon, one);
    daemon_start_again(daemon);
    client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *by_id = client_fail(
        client, "record", json_pack("{s:O}", "run_id", json_object_get(result, "run_id")));
    client_expect_error(by_id, -32003, NULL, NULL);
    AR_AUTO_JSON json_t *by_key =
        client_fail(client, "record", client_json("{'company': 'globex', 'idempotency_key': 'k'}"));
    client_expect_error(by_key, -32002, NULL, NULL);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_member_that_occurs_twice,
                                          &test_numbers_under_a_locale_with_a_comma,
                                          &test_one_id_twice_in_flight,
                                          &test_ids_of_connections_never_meet,
                                          &test_lines_that_are_no_requests,
                                          &test_bytes_that_are_not_text,
                                          &test_line_that_is_too_long,
                                          &test_notifications_get_no_answer,
                                          &test_framing_does_not_depend_on_the_pieces,
                                          &test_results_of_the_methods,
                                          &test_records_of_other_companies,
                                          NULL};
    return e2e_main("protocol", tests);
}
