/*
 * check_dataport_service.c - a service behind the data port that is not there, hangs, dies or lies fails
 * the calls that are on their way, and nothing else: the next one is answered.
 */
#include "daemon/dataport_service.h"

#include "tests/lib/data_service.h"
#include "tests/unit/code.h"

#include <sys/socket.h>
#include <sys/un.h>

START_TEST(test_no_service)
{
    open_port("invoices.read");
    call(1, "invoices.read");
    expect_error("1", -32015, "unavailable");
    int fd = open(socket_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    call(2, "invoices.read");
    expect_error("2", -32015, "unavailable");
    ck_assert_int_eq(unlink(socket_path), 0);
    ck_assert(data_service_start(&service, socket_path));
    expect_ping();
}
END_TEST

START_TEST(test_bad_answers)
{
    static const char *const bad[] = {"rubbish",  "list",    "no_message", "both",
                                      "wrong_id", "unasked", "repeated",   "neither"};
    ck_assert(data_service_start(&service, socket_path));
    open_port("invoices.read rubbish list no_message both wrong_id unasked repeated neither");
    for (size_t i = 0; i < AR_COUNT(bad); i++) {
        call(1, bad[i]);
        expect_error("1", -32016, "bad_answer");
        expect_ping();
    }
}
END_TEST

START_TEST(test_bad_answer_takes_others_along)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("hang unasked rubbish");
    call(1, "hang");
    call(2, "unasked");
    expect_error("2", -32016, "bad_answer");
    expect_error("1", -32015, "unavailable");
    call(3, "hang");
    call(4, "rubbish");
    expect_error("3", -32016, "bad_answer");
    expect_error("4", -32016, "bad_answer");
}
END_TEST

START_TEST(test_dies)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("invoices.read die half hang");
    call(1, "die");
    expect_error("1", -32015, "unavailable");
    expect_ping();
    call(2, "half");
    expect_error("2", -32015, "unavailable");
    expect_ping();
    call(3, "hang");
    ck_assert_int_eq(event_base_loop(base, EVLOOP_NONBLOCK), 0);
    data_service_stop(&service);
    expect_error("3", -32015, "unavailable");
    ck_assert(data_service_start(&service, socket_path));
    expect_ping();
}
END_TEST

START_TEST(test_hangs)
{
    config.timeout_ms = 50;
    ck_assert(data_service_start(&service, socket_path));
    open_port("invoices.read hang");
    call(1, "hang");
    expect_error("1", -32014, "timeout");
    config.timeout_ms = GUARD_MS;
    expect_ping();
}
END_TEST

/* Nobody accepts: the first connection waits in the queue, another one cannot even do that. */
START_TEST(test_full_queue)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(connect(first, (struct sockaddr *)&address, sizeof address), 0);
    config.timeout_ms = 100;
    open_port("invoices.read");
    call(1, "invoices.read");
    expect_error("1", -32014, "timeout");
    config.timeout_ms = GUARD_MS;
    call(2, "invoices.read");
    ck_assert_int_eq(event_base_loop(base, EVLOOP_NONBLOCK), 0);
    ck_assert_int_eq(close(accept4(listener, NULL, NULL, SOCK_CLOEXEC)), 0);
    ck_assert_int_eq(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    int second = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (second < 0) {
        turn();
        second = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    ck_assert_int_eq(close(second), 0);
    expect_error("2", -32015, "unavailable");
    ck_assert_int_eq(close(first), 0);
    ck_assert_int_eq(close(listener), 0);
}
END_TEST

START_TEST(test_answer_too_big)
{
    ck_assert(data_service_start(&service, socket_path));
    open_port("invoices.read too_big");
    say("{'jsonrpc':'2.0','id':1,'method':'too_big','params':{'bytes':65000}}");
    ck_assert_uint_gt(strlen(hear()), 65000);
    say("{'jsonrpc':'2.0','id':2,'method':'too_big','params':{'bytes':65536}}");
    expect_error("2", -32016, "bad_answer");
    say("{'jsonrpc':'2.0','id':3,'method':'too_big','params':{'bytes':9000000}}");
    expect_error("3", -32016, "bad_answer");
    expect_ping();
}
END_TEST

static const TTest **const services[] = {&test_no_service,
                                         &test_bad_answers,
                                         &test_bad_answer_takes_others_along,
                                         &test_dies,
                                         &test_hangs,
                                         &test_full_queue,
                                         &test_answer_too_big,
                                         NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"services", services}};
    return code_main("dataport_service", cases, AR_COUNT(cases));
}
