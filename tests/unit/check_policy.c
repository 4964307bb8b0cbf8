/*
 * check_policy.c - what is within the ceilings of a client.
 */
#include "daemon/policy.h"
#include "tests/unit/unit.h"

/* Ceilings that allow everything, and a grant that asks for nothing. */
static struct config_ceilings all;
static struct grant grant;

static void setup(void)
{
    all = (struct config_ceilings){.network = NETWORK_OPEN, .files = CONFIG_FILES_WRITE};
    all.hosts.all = all.data_api.all = all.secrets.all = true;
    grant = (struct grant){0};
}

static void add(struct text_list *list, const char *item)
{
    ck_assert_int_eq(text_list_add(list, item), 0);
}

static void teardown(void)
{
    grant_free(&grant);
    text_list_free(&all.hosts.list);
    text_list_free(&all.data_api.list);
    text_list_free(&all.secrets.list);
}

static void only(struct config_names *names, const char *first, const char *second)
{
    names->all = false;
    if (first)
        add(&names->list, first);
    if (second)
        add(&names->list, second);
}

START_TEST(test_nothing_asked)
{
    all = (struct config_ceilings){.limits = {1, 1, 1, 1, 1, 1, 1}};
    ck_assert(policy_allows_grant(&all, &grant));
}
END_TEST

START_TEST(test_network_modes)
{
    for (enum network_mode most = NETWORK_NONE; most < NETWORK_MODE_COUNT; most++) {
        for (enum network_mode asked = NETWORK_NONE; asked < NETWORK_MODE_COUNT; asked++) {
            all.network = most;
            grant.network = asked;
            ck_assert(policy_allows_grant(&all, &grant) == (asked <= most));
        }
    }
    /* Everything is more than some hosts. */
    only(&all.hosts, "*.t.test:443", NULL);
    grant.network = NETWORK_OPEN;
    ck_assert(!policy_allows_grant(&all, &grant));
    grant.network = NETWORK_NONE;
    ck_assert(policy_allows_grant(&all, &grant));
}
END_TEST

START_TEST(test_hosts)
{
    only(&all.hosts, "*.t.test:443", "192.0.2.1:80");
    grant.network = NETWORK_ALLOWLIST;
    add(&grant.hosts, "api.t.test:443");
    add(&grant.hosts, "*.w.t.test:443");
    add(&grant.hosts, "192.0.2.1:80");
    ck_assert(policy_allows_grant(&all, &grant));
    add(&grant.hosts, "t.test:443");
    ck_assert(!policy_allows_grant(&all, &grant));
}
END_TEST

START_TEST(test_methods_and_secrets)
{
    only(&all.data_api, "invoices.*", "mail.send");
    only(&all.secrets, "KEY", NULL);
    add(&grant.data_api, "invoices.read");
    add(&grant.data_api, "invoices.*");
    add(&grant.data_api, "mail.send");
    add(&grant.secrets, "KEY");
    ck_assert(policy_allows_grant(&all, &grant));
    add(&grant.secrets, "KEY2");
    ck_assert(!policy_allows_grant(&all, &grant));
    all.secrets.all = true;
    ck_assert(policy_allows_grant(&all, &grant));
    add(&grant.data_api, "mail.*");
    ck_assert(!policy_allows_grant(&all, &grant));
}
END_TEST

START_TEST(test_files)
{
    add(&grant.read, "/srv");
    all.files = CONFIG_FILES_NONE;
    ck_assert(!policy_allows_grant(&all, &grant));
    all.files = CONFIG_FILES_READ;
    ck_assert(policy_allows_grant(&all, &grant));
    add(&grant.write, "/srv/x");
    ck_assert(!policy_allows_grant(&all, &grant));
    all.files = CONFIG_FILES_WRITE;
    ck_assert(policy_allows_grant(&all, &grant));
}
END_TEST

START_TEST(test_limits)
{
    struct limits defaults = {.has = {[LIMIT_CPU_MS] = true, [LIMIT_WALL_MS] = true},
                              .value = {[LIMIT_CPU_MS] = 1000, [LIMIT_WALL_MS] = 10}};
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        all.limits[i] = 100;
        grant.limits.value[i] = 100;
        grant.limits.has[i] = true;
        ck_assert(policy_allows_grant(&all, &grant));
        grant.limits.value[i] = 101;
        ck_assert(!policy_allows_grant(&all, &grant));
        grant.limits.has[i] = false;
        ck_assert(policy_allows_grant(&all, &grant));
    }
    policy_lower(&all, &defaults);
    ck_assert_int_eq(defaults.value[LIMIT_CPU_MS], 100);
    ck_assert_int_eq(defaults.value[LIMIT_WALL_MS], 10);
    ck_assert(!defaults.has[LIMIT_MEMORY_BYTES]);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_nothing_asked, &test_network_modes,
                                          &test_hosts,         &test_methods_and_secrets,
                                          &test_files,         &test_limits};
    Suite *suite = suite_create("policy");
    TCase *tcase = tcase_create("ceilings");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
