/*
 * check_resolver.c - looking up names in the loop: each kind of answer, none in time, and none wanted any
 * more; and never an answer before the asking has returned.
 */
#include "daemon/clock.h"
#include "daemon/resolver.h"
#include "tests/lib/names.h"
#include "tests/unit/unit.h"

#include <event2/event.h>

#define WAIT_US 20000000

static struct event_base *base;
static struct names *names;
static struct resolver *resolver;

struct heard {
    bool is_asking;
    int answers;
    enum resolver_outcome outcome;
    size_t count;
    struct address first;
};

static void set_up(void)
{
    struct config_network config = {0};
    base = event_base_new();
    ck_assert_ptr_nonnull(base);
    names = names_start(base);
    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(text_list_add(&config.nameservers, names_server(names)), 0);
    ck_assert_int_eq(resolver_new(base, &config, &resolver), 0);
    text_list_free(&config.nameservers);
}

static void tear_down(void)
{
    resolver_free(resolver);
    (void)event_base_loop(base, EVLOOP_NONBLOCK); /* what was taken back is heard of */
    names_stop(names);
    event_base_free(base);
}

static void answered(void *context, enum resolver_outcome outcome, const struct address *addresses,
                     size_t count)
{
    struct heard *heard = context;
    ck_assert(!heard->is_asking);
    heard->answers++;
    heard->outcome = outcome;
    heard->count = count;
    if (count > 0)
        heard->first = addresses[0];
}

static struct resolver_query *ask(const char *name, int64_t timeout_ms, struct heard *heard)
{
    struct resolver_query *query;
    *heard = (struct heard){.is_asking = true};
    ck_assert_int_eq(resolver_lookup(resolver, name, timeout_ms, answered, heard, &query), 0);
    heard->is_asking = false;
    return query;
}

static void await(const struct heard *heard)
{
    int64_t end_us = clock_monotonic_us() + WAIT_US;
    while (heard->answers == 0) {
        ck_assert(clock_monotonic_us() < end_us);
        (void)event_base_loop(base, EVLOOP_ONCE);
    }
    ck_assert_int_eq(heard->answers, 1);
}

START_TEST(test_outcomes)
{
    static const struct {
        const char *name, *answers;
        enum resolver_outcome outcome;
        size_t count;
    } cases[] = {
        {"one.test", "192.0.2.1", RESOLVER_FOUND, 1},
        {"both.test", "192.0.2.1,2001:db8::1,192.0.2.2", RESOLVER_FOUND, 3},
        {"six.test", "2001:db8::1", RESOLVER_FOUND, 1},
        {"alias.test", "@other.test,192.0.2.1", RESOLVER_FOUND, 1},
        {"none.test", "-", RESOLVER_NOT_FOUND, 0},
        {"empty.test", "@other.test", RESOLVER_FAILED, 0},
        {"fails.test", "!", RESOLVER_FAILED, 0},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct heard heard;
        names_set(names, cases[i].name, cases[i].answers);
        (void)ask(cases[i].name, 10000, &heard);
        await(&heard);
        ck_assert_msg(heard.outcome == cases[i].outcome && heard.count == cases[i].count,
                      "%s: %d, %zu", cases[i].name, (int)heard.outcome, heard.count);
        ck_assert_uint_le(names_asked(names, cases[i].name), 3);
    }
    ck_assert_uint_eq(names_asked(names, "other.test"), 0);
}
END_TEST

START_TEST(test_deadline)
{
    struct heard slow, quick;
    names_set(names, "slow.test", "?");
    names_set(names, "quick.test", "192.0.2.1");
    int64_t from_us = clock_monotonic_us();
    (void)ask("slow.test", 200, &slow);
    (void)ask("quick.test", 10000, &quick);
    await(&quick);
    ck_assert_int_eq(quick.outcome, RESOLVER_FOUND);
    await(&slow);
    ck_assert_int_eq(slow.outcome, RESOLVER_FAILED);
    ck_assert_int_ge(clock_monotonic_us() - from_us, 200000);
}
END_TEST

/* At once, while it is out, and with its answer on the way. */
START_TEST(test_cancel)
{
    struct heard heard, other;
    names_set(names, "slow.test", "?");
    names_set(names, "quick.test", "192.0.2.1");
    resolver_cancel(ask("quick.test", 10000, &heard));
    struct resolver_query *query = ask("slow.test", 10000, &heard);
    (void)ask("quick.test", 10000, &other);
    await(&other);
    resolver_cancel(query);
    query = ask("quick.test", 10000, &heard);
    int64_t end_us = clock_monotonic_us() + WAIT_US;
    while (names_asked(names, "quick.test") < 2) {
        ck_assert(clock_monotonic_us() < end_us);
        (void)event_base_loop(base, EVLOOP_ONCE);
    }
    resolver_cancel(query);
    (void)ask("quick.test", 10000, &other);
    await(&other);
    ck_assert_int_eq(heard.answers, 0);
    resolver_cancel(NULL);
}
END_TEST

/* A name of hosts(5) is there at once, and still told from the loop; its owner may have gone by then. */
START_TEST(test_hosts)
{
    const struct config_network config = {0};
    struct heard heard, gone;
    resolver_free(resolver);
    ck_assert_int_eq(resolver_new(base, &config, &resolver), 0);
    resolver_cancel(ask("localhost", 10000, &gone));
    (void)ask("localhost", 10000, &heard);
    await(&heard);
    ck_assert_int_eq(heard.outcome, RESOLVER_FOUND);
    ck_assert_uint_ge(heard.count, 1);
    ck_assert_int_eq(gone.answers, 0);
}
END_TEST

START_TEST(test_free_with_requests_out)
{
    struct heard heard;
    names_set(names, "slow.test", "?");
    resolver_cancel(ask("slow.test", 10000, &heard));
    resolver_free(resolver);
    resolver = NULL;
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
    ck_assert_int_eq(heard.answers, 0);
}
END_TEST

int main(void)
{
    static const TTest **const all[] = {&test_outcomes, &test_deadline, &test_cancel, &test_hosts,
                                        &test_free_with_requests_out};
    Suite *suite = suite_create("resolver");
    TCase *tcase = tcase_create("resolver");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < AR_COUNT(all); i++)
        tcase_add_test(tcase, *all[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
