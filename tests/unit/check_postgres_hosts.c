/*
 * check_postgres_hosts.c - names in a connection string become addresses, without blocking.
 */
#include "sinks/postgres_hosts.h"
#include "tests/unit/unit.h"

#include <event2/event.h>

#define LABEL_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct found {
    bool done, calling;
    char host[512], hostaddr[512], port[512]; /* "" when nothing was found */
};

static void take(void *context, const struct postgres_hosts_lists *lists)
{
    struct found *found = context;
    ck_assert(!found->calling);
    ck_assert(!found->done);
    found->done = true;
    if (!lists)
        return;
    (void)snprintf(found->host, sizeof(found->host), "%s", lists->host);
    (void)snprintf(found->hostaddr, sizeof(found->hostaddr), "%s", lists->hostaddr);
    (void)snprintf(found->port, sizeof(found->port), "%s", lists->port);
}

static struct found find(const char *conninfo)
{
    struct event_base *base = event_base_new();
    struct postgres_hosts *hosts = NULL;
    struct found found = {.calling = true};
    ck_assert_int_eq(postgres_hosts_find(base, conninfo, take, &found, &hosts), 0);
    found.calling = false;
    while (!found.done)
        ck_assert_int_ge(event_base_loop(base, EVLOOP_ONCE), 0);
    postgres_hosts_free(hosts);
    event_base_free(base);
    return found;
}

START_TEST(test_names_become_addresses)
{
    struct found found = find("postgresql://localhost:7/db");
    ck_assert_ptr_nonnull(strstr(found.host, "localhost"));
    ck_assert(strstr(found.hostaddr, "127.0.0.1") || strstr(found.hostaddr, "::1"));
    ck_assert_int_eq(found.port[0], '7');
}
END_TEST

START_TEST(test_lists_stay_in_step)
{
    struct found found = find("host=/run/a,localhost,192.0.2.7 port=1,2,3");
    ck_assert(strncmp(found.host, "/run/a,localhost", 16) == 0);
    ck_assert(strncmp(found.port, "1,2", 3) == 0);
    ck_assert_int_eq(found.hostaddr[0], ',');
    ck_assert_ptr_nonnull(strstr(found.host, ",192.0.2.7"));
    ck_assert_str_eq(found.port + strlen(found.port) - 2, ",3");
    found = find("host=localhost,192.0.2.7 port=9");
    ck_assert_str_eq(found.port + strlen(found.port) - 2, ",9");
}
END_TEST

START_TEST(test_no_address)
{
    struct found found = find("host=" LABEL_64 " port=1");
    ck_assert_str_eq(found.host, "");
}
END_TEST

START_TEST(test_nothing_to_ask_for)
{
    static const char *const conninfos[] = {
        "host=/run/postgresql",         "host=127.0.0.1",          "host=::1,/tmp",
        "host=name hostaddr=127.0.0.1", "not a connection string", "host=a,b,c port=1,2"};
    struct event_base *base = event_base_new();
    struct postgres_hosts *hosts = NULL;
    struct found found = {0};
    for (size_t i = 0; i < AR_COUNT(conninfos); i++)
        ck_assert_int_eq(postgres_hosts_find(base, conninfos[i], take, &found, &hosts), 1);
    ck_assert(!found.done);
    event_base_free(base);
}
END_TEST

START_TEST(test_free_without_waiting)
{
    struct event_base *base = event_base_new();
    struct found found = {0};
    for (int i = 0; i < 50; i++) {
        struct postgres_hosts *hosts = NULL;
        ck_assert_int_eq(postgres_hosts_find(base, "host=localhost", take, &found, &hosts), 0);
        postgres_hosts_free(hosts);
    }
    ck_assert_int_ge(event_base_loop(base, EVLOOP_NONBLOCK), 0);
    ck_assert(!found.done);
    event_base_free(base);
}
END_TEST

static const TTest **const tests[] = {
    &test_names_become_addresses, &test_lists_stay_in_step,   &test_no_address,
    &test_nothing_to_ask_for,     &test_free_without_waiting, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"postgres_hosts", tests}};
    return unit_main("postgres_hosts", cases, AR_COUNT(cases));
}
