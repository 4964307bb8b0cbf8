/*
 * check_dataport.c - the data port in a loop of its own, between code that is this test and a real
 * service: what is granted passes, with a context that code cannot forge; everything else is refused
 * in words, whatever the code does; and the modules for code work.
 */
#include "daemon/dataport.h"

#include "daemon/dataport_call.h"
#include "tests/lib/data_service.h"
#include "tests/unit/code.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- what passes -------------------------------------------------------------------------------- */

START_TEST(test_call)
{
    serve_and_open("echo");
    say("{'jsonrpc':'2.0','id':1,'method':'echo','params':{'a':[1,-2.5,null,'\\u0000\\n']}}");
    AR_AUTO_FREE char *wanted =
        unit_quote("{'jsonrpc':'2.0','id':1,'result':{'context':{'company':'acme','actor':'ann "
                   "\\'o#hara\\'','purpose':'check','run_id':'0198-run'},'params':{'a':[1,-2.5,"
                   "null,'\\u0000\\n']}}}");
    *strchr(wanted, '#') = '\'';
    ck_assert_str_eq(hear(), wanted);
    struct usage_data_api usage;
    dataport_usage(port, &usage);
    ck_assert_int_eq(usage.calls, 1);
    ck_assert_int_eq(usage.denials, 0);
    ck_assert_int_eq(usage.bytes_in, (int64_t)strlen(wanted) + 1);
    ck_assert_int_gt(usage.bytes_out, 70);
}
END_TEST

START_TEST(test_context_cannot_be_forged)
{
    serve_and_open("echo");
    say("{'jsonrpc':'2.0','id':1,'method':'echo','params':{'context':{'company':'globex'}}}");
    json_t *answer = json_loads(hear(), 0, NULL);
    const json_t *result = json_object_get(answer, "result");
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(result, "context"), "company")), "acme");
    json_decref(answer);
    say("{'jsonrpc':'2.0','id':2,'method':'echo','context':{'company':'globex'}}");
    expect_error("null", -32600, "invalid_request");
}
END_TEST

START_TEST(test_ids_and_errors_of_the_service)
{
    serve_and_open("fail");
    say("{'jsonrpc':'2.0','id':'a \\u00e9 1','method':'fail','params':[]}");
    expect("{'jsonrpc':'2.0','id':'a \\u00e9 1','error':{'code':4711,'message':'no such "
           "invoice','data':{'number':'2026-003'}}}");
    say("{'jsonrpc':'2.0','id':-7.50,'method':'fail'}");
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":-7.50,"));
}
END_TEST

START_TEST(test_patterns)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("invoices.* echo");
    expect_ping();
    static const char *const others[] = {"invoices",  "invoicesread", "echo.x", "ech",
                                         "invoices.", "invoices.*",   "*",      "",
                                         "Echo",      "echo ",        "fail",   "echo\\u0000"};
    for (size_t i = 0; i < AR_COUNT(others); i++) {
        call(5, others[i]);
        expect_error("5", -32601, "method_not_granted");
    }
    struct usage_data_api usage;
    dataport_usage(port, &usage);
    ck_assert_int_eq(usage.calls, 1);
    ck_assert_int_eq(usage.denials, (int64_t)AR_COUNT(others));
}
END_TEST

START_TEST(test_answers_in_any_order_and_pieces)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("later slow");
    call(1, "later");
    call(2, "slow");
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":2,\"result\""));
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":1,\"result\""));
    const char *bytes = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"slow\"}\n";
    for (; *bytes; bytes++) {
        send_bytes(bytes, 1);
        ck_assert_int_eq(event_base_loop(base, EVLOOP_NONBLOCK), 0);
    }
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":3,\"result\""));
}
END_TEST

/* ---- what is refused ---------------------------------------------------------------------------- */

START_TEST(test_what_is_no_call)
{
    static const struct {
        const char *line;
        int code;
        const char *message;
    } lines[] = {
        {"hello", -32700, "parse_error"},
        {"", -32700, "parse_error"},
        {"{'jsonrpc':'2.0'", -32700, "parse_error"},
        {"[{'jsonrpc':'2.0','id':1,'method':'echo'}]", -32600, "invalid_request"},
        {"7", -32600, "invalid_request"},
        {"{'jsonrpc':'1.0','id':1,'method':'echo'}", -32600, "invalid_request"},
        {"{'id':1,'method':'echo'}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':1}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':1,'method':3}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':null,'method':'echo'}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':[1],'method':'echo'}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':1,'id':2,'method':'echo'}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':1,'method':'echo','method':'fail'}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':1,'method':'echo','params':3}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':1,'method':'echo','params':[1.]}", -32700, "parse_error"},
        {"{'jsonrpc':'2.0','id':1,'method':'echo','params':['\xff']}", -32700, "parse_error"},
        {"{'jsonrpc':'2.0','id':1,'m\\u0065thod':'echo'}", -32600, "invalid_request"},
        {"{'jsonrpc':'2.0','id':1,'method':'echo','extra':1}", -32600, "invalid_request"},
    };
    serve_and_open("echo");
    for (size_t i = 0; i < AR_COUNT(lines); i++) {
        say(lines[i].line);
        expect_error("null", lines[i].code, lines[i].message);
    }
    AR_AUTO_FREE char *long_id =
        unit_repeat("{'jsonrpc':'2.0','method':'echo','id':'", "x", 200, "'}");
    say(long_id);
    expect_error("null", -32600, "invalid_request");
    call(1, "echo");
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":1,\"result\""));
}
END_TEST

START_TEST(test_notifications_do_nothing)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("invoices.read die");
    say("{'jsonrpc':'2.0','method':'die'}");
    say("{'jsonrpc':'2.0','method':'nothing'}");
    expect_ping();
}
END_TEST

START_TEST(test_too_big)
{
    serve_and_open("invoices.read");
    AR_AUTO_FREE char *line = unit_repeat("{'jsonrpc':'2.0','id':1,'method':'", "x", 300000, "'}");
    say(line);
    expect_error("null", -32011, "too_big");
    expect_ping();
    AR_AUTO_FREE char *most = unit_repeat("", " ", 4096 - 54, "");
    AR_AUTO_FREE char *text = NULL;
    ck_assert_int_gt(
        asprintf(&text, "{'jsonrpc':'2.0','id':'ping','method':'invoices.read'}%s", most), 0);
    ck_assert_uint_eq(strlen(text), 4096);
    say(text);
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":\"ping\",\"result\""));
    AR_AUTO_FREE char *over = unit_repeat("", " ", 4097, "");
    say(over);
    expect_error("null", -32011, "too_big");
    expect_ping();
}
END_TEST

START_TEST(test_too_many)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("hang invoices.read");
    for (int i = 0; i < 4; i++)
        call(i, "hang");
    call(4, "hang");
    expect_error("4", -32012, "too_many");
    call(5, "nothing");
    expect_error("5", -32601, "method_not_granted");
}
END_TEST

START_TEST(test_rate)
{
    config.max_rate = 1;
    serve_and_open("invoices.read");
    expect_ping();
    /* In the second until the next one is allowed. */
    int limited = 0;
    for (int i = 0; i < 20; i++) {
        call(9, "invoices.read");
        limited += strstr(hear(), "{\"code\":-32013,\"message\":\"rate_limited\"}") != NULL;
    }
    ck_assert_int_gt(limited, 10);
    struct usage_data_api usage;
    dataport_usage(port, &usage);
    ck_assert_int_eq(usage.calls, 1 + 20 - limited);
}
END_TEST

/* Denied lines are not read faster than the pace: most are still in the socket, or not written. */
START_TEST(test_pace)
{
    config.max_rate = 1;
    serve_and_open("invoices.read");
    AR_AUTO_FREE char *lines = unit_repeat("", "x\n", 1200, "");
    send_bytes(lines, 2400);
    for (int i = 0; i < 1200; i++)
        expect_error("null", -32700, "parse_error");
    struct usage_data_api usage;
    dataport_usage(port, &usage);
    ck_assert_int_eq(usage.bytes_out, 2400);
}
END_TEST

/* ---- code that is not as it should be ----------------------------------------------------------- */

static int64_t moved(void)
{
    struct usage_data_api usage;
    dataport_usage(port, &usage);
    return usage.bytes_in + usage.bytes_out;
}

/* Turns the loop for as long as that moves anything; how much has been moved in all. */
static int64_t settle(void)
{
    int64_t before = moved();
    for (int idle = 0; idle < 50; idle++) {
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
        if (moved() != before)
            idle = 0;
        before = moved();
    }
    return before;
}

/* It writes and writes, and reads nothing: it is not read from for ever. */
START_TEST(test_code_reads_nothing)
{
    config.max_rate = 1000000;
    serve_and_open("invoices.read");
    ck_assert_int_eq(event_del(code_readable), 0);
    AR_AUTO_FREE char *lines = unit_repeat("", "x\n", 2048, "");
    size_t sent = 0;
    for (bool full = false; !full;) {
        ssize_t n = write(code, lines, 4096);
        sent += n > 0 ? (size_t)n : 0;
        ck_assert_uint_lt(sent, 1u << 20);
        if (n < 0) {
            int64_t before = moved();
            full = settle() == before;
        }
    }
    ck_assert_int_eq(event_add(code_readable, NULL), 0);
    for (size_t i = 0; i < sent / 2; i++)
        expect_error("null", -32700, "parse_error");
    if (sent % 2)
        send_bytes("\n", 1);
}
END_TEST

START_TEST(test_half_closed)
{
    serve_and_open("slow");
    call(1, "slow");
    say("{'jsonrpc':'2.0','id':2,'method':'slow'}");
    ck_assert_int_eq(shutdown(code, SHUT_WR), 0);
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":1,\"result\""));
    ck_assert_ptr_nonnull(strstr(hear(), "\"id\":2,\"result\""));
    while (event_pending(code_readable, EV_READ, NULL))
        turn();
}
END_TEST

START_TEST(test_code_leaves)
{
    serve_and_open("hang");
    call(1, "hang");
    ck_assert_int_eq(event_base_loop(base, EVLOOP_NONBLOCK), 0);
    event_free(code_readable);
    code_readable = NULL;
    ck_assert_int_eq(close(code), 0);
    code = -1;
    /* The loop has nothing more to wait for. */
    while (event_base_loop(base, EVLOOP_ONCE) == 0)
        continue;
    struct usage_data_api usage;
    dataport_usage(port, &usage);
    ck_assert_int_eq(usage.calls, 1);
}
END_TEST

START_TEST(test_descriptors_are_dropped)
{
    serve_and_open("invoices.read");
    int pipe_ends[2];
    ck_assert_int_eq(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK), 0);
    char text[] = "x\n", control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {text, 2};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &pipe_ends[1], sizeof(int));
    /* A kernel from 6.16 on refuses them; before, they are dropped with the line. */
    ssize_t sent = sendmsg(code, &message, 0);
    ck_assert(sent == 2 || (sent < 0 && errno == EPERM));
    ck_assert_int_eq(close(pipe_ends[1]), 0);
    if (sent > 0)
        expect_error("null", -32700, "parse_error");
    ck_assert_int_eq(read(pipe_ends[0], text, 1), 0); /* nobody holds the other end */
    ck_assert_int_eq(close(pipe_ends[0]), 0);
    expect_ping();
}
END_TEST

/* ---- the document ------------------------------------------------------------------------------- */

static FILE *open_document(void)
{
    char path[512];
    const char *source = getenv("AUDITRUN_SOURCE");
    (void)snprintf(path, sizeof path, "%s/docs/data-port.md", source ? source : ".");
    FILE *document = fopen(path, "re");
    ck_assert_ptr_nonnull(document);
    return document;
}

/* The next line of a fenced block of that kind; NULL at the document's end. */
static const char *next_line(FILE *document, const char *kind, bool *inside)
{
    static char line[1024];
    while (fgets(line, sizeof line, document)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "```", 3) == 0)
            *inside = !*inside && strcmp(line + 3, kind) == 0;
        else if (*inside)
            return line;
    }
    return NULL;
}

START_TEST(test_document)
{
    serve_and_open("invoices.read");
    FILE *document = open_document();
    bool inside = false;
    int lines = 0;
    for (const char *line; (line = next_line(document, "wire", &inside)); lines++) {
        if (line[0] == '>') {
            send_bytes(line + 2, strlen(line + 2));
            send_bytes("\n", 1);
        } else {
            ck_assert_str_eq(hear(), line + 2);
        }
    }
    ck_assert_int_eq(lines, 6);
    ck_assert_int_eq(fclose(document), 0);
}
END_TEST

START_TEST(test_document_of_the_service)
{
    static const char line[] =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"invoices.read\",\"params\":{\"year\":2026}}";
    struct dataport_call asked;
    enum dataport_error error;
    size_t length;
    bool inside = false;
    FILE *document = open_document();
    const char *wanted = next_line(document, "service", &inside);
    ck_assert_ptr_nonnull(wanted);
    ck_assert_int_eq(dataport_call_parse(line, strlen(line), &asked, &error), 0);
    AR_AUTO_FREE char *got =
        dataport_call_line(&asked, 1,
                           "{\"company\":\"acme\",\"actor\":\"ann\",\"purpose\":\"monthly report\","
                           "\"run_id\":\"01990b2e-5c3a-7000-8000-0123456789ab\"}",
                           &length);
    ck_assert_uint_eq(length, strlen(wanted) + 1);
    ck_assert_mem_eq(got, wanted, length - 1);
    ck_assert_int_eq(got[length - 1], '\n');
    ck_assert_int_eq(fclose(document), 0);
}
END_TEST

/* Each error of the daemon has its row. */
START_TEST(test_document_of_errors)
{
    FILE *document = open_document();
    char line[1024], wanted[64];
    unsigned found = 0;
    while (fgets(line, sizeof line, document))
        for (enum dataport_error error = 0; error < DATAPORT_ERROR_COUNT; error++) {
            (void)snprintf(wanted, sizeof wanted, "| %d | `%s` |", dataport_error_code(error),
                           dataport_error_message(error));
            found |= strncmp(line, wanted, strlen(wanted)) == 0 ? 1u << error : 0;
        }
    ck_assert_uint_eq(found, (1u << DATAPORT_ERROR_COUNT) - 1);
    ck_assert_int_eq(fclose(document), 0);
}
END_TEST

/* ---- helper modules ----------------------------------------------------------------------------- */

static bool ended(pid_t pid, int *status)
{
    pid_t reaped = waitpid(pid, status, WNOHANG);
    ck_assert_int_ge(reaped, 0);
    return reaped == pid;
}

static void nothing(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)context;
}

/* Runs a program with the code's end as its descriptor 3, as an executor does. */
static void run_helper(const char *program, const char *flag, const char *script)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("invoices.read echo fail die");
    event_free(code_readable);
    code_readable = NULL;
    ck_assert_int_eq(fcntl(code, F_SETFL, 0), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const char *source = getenv("AUDITRUN_SOURCE");
        if (dup2(code, 3) != 3 || (code == 3 && fcntl(3, F_SETFD, 0) < 0) ||
            setenv("AUDITRUN_API_FD", "3", 1) < 0 ||
            setenv("PYTHONDONTWRITEBYTECODE", "1", 1) < 0 || chdir(source ? source : ".") < 0)
            _exit(126);
        execlp(program, program, flag, script, NULL);
        _exit(127);
    }
    ck_assert_int_eq(close(code), 0);
    code = -1;
    int status, pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct event *end = event_new(base, pidfd, EV_READ, nothing, NULL);
    ck_assert_int_eq(event_add(end, NULL), 0);
    while (!ended(pid, &status))
        turn();
    event_free(end);
    ck_assert_int_eq(close(pidfd), 0);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %#x", program,
                  (unsigned)status);
    struct usage_data_api usage;
    dataport_usage(port, &usage);
    ck_assert_int_eq(usage.calls, 5);
    ck_assert_int_eq(usage.denials, 1);
}

START_TEST(test_python)
{
    run_helper("python3", "-c",
               "import sys; sys.path.insert(0, 'executors/lib/python')\n"
               "import auditrun\n"
               "def error_of(*call):\n"
               "    try: auditrun.call(*call)\n"
               "    except auditrun.Error as error: return error.code, error.message, error.data\n"
               "got = auditrun.call('invoices.read', {'year': 2026})\n"
               "assert got['company'] == 'acme' and len(got['invoices']) == 2, got\n"
               "assert auditrun.call('echo', ['\\u00e9', 1.5])['params'] == ['\\u00e9', 1.5]\n"
               "assert error_of('invoices.pay') == (-32601, 'method_not_granted', None)\n"
               "assert error_of('fail') == (4711, 'no such invoice', {'number': '2026-003'})\n"
               "assert error_of('die') == (-32015, 'unavailable', None)\n"
               "assert error_of('echo', ['x' * 5000]) == (-32011, 'too_big', None)\n"
               "assert auditrun.call('echo')['params'] == {}\n");
}
END_TEST

START_TEST(test_javascript)
{
    run_helper("node", "-e",
               "const assert = require('node:assert');\n"
               "const { call } = require('./executors/lib/javascript/auditrun.js');\n"
               "const error_of = async (...c) => { try { await call(...c); return null; }\n"
               "  catch (e) { return [e.code, e.message, e.data]; } };\n"
               "(async () => {\n"
               "  const [a, b] = await Promise.all([call('invoices.read', { year: 2026 }),\n"
               "    call('echo', ['\\u00e9', 1.5])]);\n"
               "  assert.equal(a.company, 'acme'); assert.equal(a.invoices.length, 2);\n"
               "  assert.deepEqual(b.params, ['\\u00e9', 1.5]);\n"
               "  assert.deepEqual(await error_of('invoices.pay'), [-32601, 'method_not_granted', "
               "undefined]);\n"
               "  assert.deepEqual(await error_of('fail'), [4711, 'no such invoice', { number: "
               "'2026-003' }]);\n"
               "  assert.deepEqual(await error_of('die'), [-32015, 'unavailable', undefined]);\n"
               "  assert.deepEqual(await error_of('echo', ['x'.repeat(5000)]), [-32011, 'too_big', "
               "undefined]);\n"
               "  assert.deepEqual((await call('echo')).params, {});\n"
               "})();\n");
}
END_TEST

START_TEST(test_shell)
{
    run_helper("bash", "-c",
               "ask() { echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"'$1'\"}' >&3; read -r "
               "answer <&3; }\n"
               "for i in 1 2 3 4 5; do\n"
               "    ask invoices.read; [[ $answer == *'\"company\":\"acme\"'* ]] || exit 1\n"
               "done\n"
               "ask invoices.pay; [[ $answer == *method_not_granted* ]]\n");
}
END_TEST

static const TTest **const passes[] = {
    &test_call,     &test_context_cannot_be_forged,        &test_ids_and_errors_of_the_service,
    &test_patterns, &test_answers_in_any_order_and_pieces, NULL};
static const TTest **const refused[] = {&test_what_is_no_call,
                                        &test_notifications_do_nothing,
                                        &test_too_big,
                                        &test_too_many,
                                        &test_rate,
                                        &test_pace,
                                        NULL};
static const TTest **const code_tests[] = {&test_code_reads_nothing, &test_half_closed,
                                           &test_code_leaves, &test_descriptors_are_dropped, NULL};
static const TTest **const helpers[] = {&test_python, &test_javascript, &test_shell, NULL};

static const TTest **const documents[] = {&test_document, &test_document_of_the_service,
                                          &test_document_of_errors, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"document", documents},
                                             {"passes", passes},
                                             {"refused", refused},
                                             {"code", code_tests},
                                             {"helpers", helpers}};
    return code_main("dataport", cases, AR_COUNT(cases));
}
