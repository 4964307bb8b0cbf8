/*
 * code.h - code at its end of a data port, in one loop with the daemon's end and before a real service
 * (tests/lib/data_service.h): it says lines and hears answers.
 *
 * Header only: each test program is one file. What waits has a guard, so that a test that hangs fails.
 */
#ifndef AUDITRUN_TESTS_UNIT_CODE_H
#define AUDITRUN_TESTS_UNIT_CODE_H

#include "daemon/dataport.h"
#include "daemon/deadline.h"
#include "protocol/frame.h"
#include "tests/lib/data_service.h"
#include "tests/unit/unit.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>

#define GUARD_MS 20000 /* a test that hangs fails */

static struct event_base *base;
static struct config_data_port config;
static struct text_list methods;
static struct data_service service;
static struct dataport *port;
static char folder[] = "/tmp/check-dataport.XXXXXX";
static char socket_path[64];

/* The code. */
static int code = -1;
static struct event *code_readable;
static struct frame_reader code_reader;
static struct deadline guard;

static inline void guard_passed(void *context)
{
    (void)context;
    ck_abort_msg("nothing has come for %d ms", GUARD_MS);
}

static inline void code_reads(evutil_socket_t fd, short what, void *context)
{
    char *space;
    size_t available;
    (void)what;
    (void)context;
    ck_assert_int_eq(frame_space(&code_reader, &space, &available), 0);
    ssize_t n = read(fd, space, available);
    if (n > 0)
        frame_commit(&code_reader, (size_t)n);
    else if (n == 0)
        ck_assert_int_eq(event_del(code_readable), 0);
}

static inline void set_up(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(folder, sizeof folder, "/tmp/check-dataport.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
    config = (struct config_data_port){.socket = socket_path,
                                       .max_request_bytes = 4096,
                                       .max_answer_bytes = 65536,
                                       .max_pending = 4,
                                       .max_rate = 1000,
                                       .timeout_ms = 10000};
    base = event_base_new();
    ck_assert_ptr_nonnull(base);
    ck_assert_int_eq(deadline_init(&guard, base, guard_passed, NULL), 0);
    methods = (struct text_list){0};
}

/* Opens the port with these methods granted, which have blanks between them. */
static inline void open_port(const char *granted)
{
    AR_AUTO_FREE char *copy = strdup(granted);
    char *rest = NULL;
    for (char *method = strtok_r(copy, " ", &rest); method; method = strtok_r(NULL, " ", &rest))
        ck_assert_int_eq(text_list_add(&methods, method), 0);
    const struct dataport_start start = {.base = base,
                                         .config = &config,
                                         .methods = &methods,
                                         .company = "acme",
                                         .actor = "ann \"o'hara\"",
                                         .purpose = "check",
                                         .run_id = "0198-run"};
    ck_assert_int_eq(dataport_open(&start, &port, &code), 0);
    ck_assert_int_eq(fcntl(code, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fcntl(code, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(fcntl(code, F_SETFL, O_NONBLOCK), 0);
    frame_init(&code_reader, 32u << 20);
    code_readable = event_new(base, code, EV_READ | EV_PERSIST, code_reads, NULL);
    ck_assert_ptr_nonnull(code_readable);
    ck_assert_int_eq(event_add(code_readable, NULL), 0);
}

static inline void serve_and_open(const char *granted)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port(granted);
}

static inline void tear_down(void)
{
    if (code_readable)
        event_free(code_readable);
    code_readable = NULL;
    frame_free(&code_reader);
    if (code >= 0)
        ck_assert_int_eq(close(code), 0);
    code = -1;
    dataport_free(port);
    port = NULL;
    dataport_free(NULL);
    deadline_free(&guard);
    event_base_free(base);
    text_list_free(&methods);
    data_service_stop(&service);
    (void)unlink(socket_path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* One turn of the loop, which must come. */
static inline void turn(void)
{
    deadline_start(&guard, GUARD_MS);
    ck_assert_int_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    deadline_stop(&guard);
}

static inline void send_bytes(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(code, bytes, length);
        ck_assert(n > 0 || errno == EAGAIN);
        if (n < 0) {
            turn();
            continue;
        }
        bytes += n;
        length -= (size_t)n;
    }
}

/* A line, with ' for ". */
static inline void say(const char *text)
{
    AR_AUTO_FREE char *quoted = unit_quote(text);
    send_bytes(quoted, strlen(quoted));
    send_bytes("\n", 1);
}

static inline char *hear(void)
{
    char *line;
    size_t length;
    while (frame_next(&code_reader, &line, &length) != FRAME_DONE)
        turn();
    return line;
}

static inline void expect(const char *wanted)
{
    AR_AUTO_FREE char *quoted = unit_quote(wanted);
    ck_assert_str_eq(hear(), quoted);
}

static inline void expect_error(const char *id, int error_code, const char *message)
{
    char line[256];
    (void)snprintf(line, sizeof line,
                   "{'jsonrpc':'2.0','id':%s,'error':{'code':%d,'message':'%s'}}", id, error_code,
                   message);
    expect(line);
}

static inline void expect_ping(void)
{
    say("{'jsonrpc':'2.0','id':'ping','method':'invoices.read'}");
    expect("{'jsonrpc':'2.0','id':'ping','result':{'company':'acme','invoices':"
           "[{'number':'2026-001','total':1200},{'number':'2026-002','total':80}]}}");
}

static inline void call(int id, const char *method)
{
    char line[256];
    (void)snprintf(line, sizeof line, "{'jsonrpc':'2.0','id':%d,'method':'%s'}", id, method);
    say(line);
}

/* The main of a suite whose tests have a loop each, and no port yet. */
static inline int code_main(const char *name, const struct unit_case *cases, size_t count)
{
    Suite *suite = suite_create(name);
    for (size_t i = 0; i < count; i++) {
        TCase *tcase = tcase_create(cases[i].name);
        tcase_set_timeout(tcase, 120);
        tcase_add_checked_fixture(tcase, set_up, tear_down);
        for (const TTest **const *test = cases[i].tests; *test; test++)
            tcase_add_test(tcase, **test);
        suite_add_tcase(suite, tcase);
    }
    return suite_run(suite);
}

#endif
