/*
 * check_postgres_hosts.c - a server's name becomes addresses, without blocking.
 */
#include "sinks/postgres_hosts.h"
#include "tests/unit/unit.h"

#include <event2/event.h>

#define LABEL_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct found {
    bool done, calling;
};

static void take(void *context, struct postgres_hosts *hosts)
{
    struct found *found = context;
    ck_assert(!found->calling);
    ck_assert(!found->done);
    ck_assert_ptr_nonnull(postgres_hosts_answer(hosts));
    found->done = true;
}

static struct postgres_hosts_answer find(const char *name)
{
    struct event_base *base = event_base_new();
    struct postgres_hosts *hosts = NULL;
    struct found found = {.calling = true};
    ck_assert_int_eq(postgres_hosts_ask(base, name, take, &found, &hosts), 0);
    found.calling = false;
    while (!found.done)
        ck_assert_int_ge(event_base_loop(base, EVLOOP_ONCE), 0);
    struct postgres_hosts_answer answer = *postgres_hosts_answer(hosts);
    postgres_hosts_free(hosts);
    event_base_free(base);
    return answer;
}

START_TEST(test_a_name_becomes_addresses)
{
    struct postgres_hosts_answer answer = find("localhost");
    ck_assert_uint_ge(answer.count, 1);
    for (size_t i = 0; i < answer.count; i++)
        ck_assert(strcmp(answer.addresses[i], "127.0.0.1") == 0 ||
                  strcmp(answer.addresses[i], "::1") == 0);
}
END_TEST

START_TEST(test_no_address)
{
    ck_assert_uint_eq(find(LABEL_64).count, 0);
}
END_TEST

static void let_go(void *context, struct postgres_hosts *hosts)
{
    *(bool *)context = true;
    postgres_hosts_free(hosts);
}

START_TEST(test_free_from_within)
{
    struct event_base *base = event_base_new();
    struct postgres_hosts *hosts = NULL;
    bool done = false;
    ck_assert_int_eq(postgres_hosts_ask(base, "localhost", let_go, &done, &hosts), 0);
    while (!done)
        ck_assert_int_ge(event_base_loop(base, EVLOOP_ONCE), 0);
    event_base_free(base);
}
END_TEST

START_TEST(test_free_without_waiting)
{
    struct event_base *base = event_base_new();
    struct found found = {0};
    for (int i = 0; i < 50; i++) {
        struct postgres_hosts *hosts = NULL;
        ck_assert_int_eq(postgres_hosts_ask(base, "localhost", take, &found, &hosts), 0);
        postgres_hosts_free(hosts);
    }
    ck_assert_int_ge(event_base_loop(base, EVLOOP_NONBLOCK), 0);
    ck_assert(!found.done);
    event_base_free(base);
}
END_TEST

static const TTest **const tests[] = {&test_a_name_becomes_addresses, &test_no_address,
                                      &test_free_from_within, &test_free_without_waiting, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"postgres_hosts", tests}};
    return unit_main("postgres_hosts", cases, AR_COUNT(cases));
}
