/*
 * check_policies.c - what a client may ask for: purposes and ceilings. What is over them is recorded under
 * the client that tried, and nothing is started for it.
 */
#include "tests/e2e/gate.h"

/* The newest row is of this client and of this process. */
static void expect_own_row(const struct gate *gate)
{
    struct rows rows = rows_read(daemon_ledger(gate->daemon));
    ck_assert_str_eq(rows.items[0]->client_name, "local");
    ck_assert_int_eq(rows.items[0]->client_uid, getuid());
    ck_assert_int_eq(rows.items[0]->client_gid, getgid());
    ck_assert_int_eq(rows.items[0]->client_pid, getpid());
    rows_free(&rows);
}

static void over_policy(struct gate *gate, json_t *params)
{
    gate_refused(gate, params, "unauthorized", "grant_not_allowed");
    expect_own_row(gate);
}

static json_t *grant_params(const char *grant)
{
    AR_AUTO_FREE char *more = NULL;
    ck_assert_int_gt(asprintf(&more, "{'grant': %s}", grant), 0);
    return gate_params(more);
}

START_TEST(test_purposes)
{
    static const char *const others[] = {
        "monthly",         "report", "monthly  report",    "Monthly report",
        "monthly report ", "*",      "\"monthly report\"", "plugins"};
    struct gate gate = gate_open("[client local]\npurposes = \"monthly report\" plugin\n");
    for (size_t i = 0; i < AR_COUNT(others); i++) {
        json_t *params = gate_params(NULL);
        ck_assert_int_eq(json_object_set_new(params, "purpose", json_string(others[i])), 0);
        over_policy(&gate, params);
    }
    gate_served(&gate, gate_params("{'purpose': 'monthly report'}"));
    gate_served(&gate, gate_params("{'purpose': 'plugin'}"));
    gate_close(&gate);
}
END_TEST

#define HOST(name) "{'network': {'mode': 'allowlist', 'hosts': ['" name "']}}"

/* What is over the ceilings of the first client, one by one. */
static const char *const over[] = {
    "{'network': {'mode': 'open'}}",
    HOST("api.t.test:80"),
    HOST("t.test:443"),
    HOST("*.test:443"),
    "{'network': {'mode': 'allowlist', 'hosts': ['api.t.test:443', 'api.u.test:443']}}",
    "{'data_api': ['invoices.read', 'mail.send']}",
    "{'data_api': ['invoices']}",
    "{'secrets': ['OTHER']}",
    "{'filesystem': {'write': ['/srv/outbox/acme']}}",
    "{'limits': {'wall_ms': 5001}}",
    "{'limits': {'cpu_ms': 2001}}",
    "{'limits': {'memory_bytes': 1048577}}",
    "{'limits': {'processes': 9}}",
    "{'limits': {'open_files': 33}}",
    "{'limits': {'scratch_bytes': 4097}}",
    "{'limits': {'output_bytes': 2049}}",
};

/* What is within them and no more is the executor's to deny. */
static const char *const within[] = {
    HOST("api.t.test:443"),
    HOST("*.w.t.test:443"),
    "{'data_api': ['invoices.read', 'invoices.*']}",
    "{'secrets': ['KEY']}",
    "{'filesystem': {'read': ['/srv/catalogue']}}",
};

START_TEST(test_ceilings)
{
    struct gate gate = gate_open("[company acme]\nread = /srv/catalogue\nwrite = /srv/outbox/acme\n"
                                 "[client local]\nnetwork = allowlist\nhosts = *.t.test:443\n"
                                 "data_api = invoices.*\nsecrets = KEY\nfilesystem = read\n"
                                 "max_wall = 5s\nmax_cpu = 2s\nmax_memory = 1M\nmax_processes = 8\n"
                                 "max_open_files = 32\nmax_scratch = 4K\nmax_output = 2K\n");
    for (size_t i = 0; i < AR_COUNT(over); i++)
        over_policy(&gate, grant_params(over[i]));
    for (size_t i = 0; i < AR_COUNT(within); i++) {
        json_decref(
            gate_refuse(&gate, grant_params(within[i]), "capability_denied", "not_enforceable"));
        expect_own_row(&gate);
    }
    gate_close(&gate);
}
END_TEST

START_TEST(test_nothing_but_code)
{
    struct gate gate = gate_open("[company acme]\nread = /srv/catalogue\n"
                                 "[client local]\nnetwork = none\nhosts =\ndata_api =\nsecrets =\n"
                                 "filesystem = none\n");
    for (size_t i = 0; i < AR_COUNT(within); i++)
        over_policy(&gate, grant_params(within[i]));
    gate_served(&gate, gate_params(NULL));
    gate_close(&gate);
}
END_TEST

static void expect_limit(const json_t *result, const char *limit, json_int_t value)
{
    const json_t *limits = json_object_get(json_object_get(result, "grant"), "limits");
    ck_assert_int_eq(json_integer_value(json_object_get(limits, limit)), value);
}

/* What is not asked for is the default, but no more than the client may have. */
START_TEST(test_defaults_are_lowered)
{
    struct gate gate = gate_open("[limits]\nwall = 7s\ncpu = 3s\noutput = 4K\n"
                                 "[client local]\nmax_wall = 5s\nmax_cpu = 4s\nmax_output = 2K\n");
    AR_AUTO_JSON json_t *result = gate_run(&gate, gate_params(NULL), "succeeded", "exit_zero");
    expect_limit(result, "wall_ms", 5000);
    expect_limit(result, "cpu_ms", 3000);
    expect_limit(result, "output_bytes", 2048);
    AR_AUTO_JSON json_t *asked =
        gate_run(&gate, grant_params("{'limits': {'wall_ms': 1500}}"), "succeeded", "exit_zero");
    expect_limit(asked, "wall_ms", 1500);
    struct rows rows = rows_read(daemon_ledger(gate.daemon));
    AR_AUTO_JSON json_t *recorded = json_loads(rows.items[0]->grant, 0, NULL);
    ck_assert(json_equal(recorded, json_object_get(asked, "grant")));
    rows_free(&rows);
    gate_close(&gate);
}
END_TEST

/* The executor has no limit on open files: so it cannot keep the client to its ceiling, whether or not it
 * is asked for. */
START_TEST(test_ceiling_that_nobody_enforces)
{
    struct gate gate = gate_open("[client local]\nmax_open_files = 8\n");
    AR_AUTO_JSON json_t *result =
        gate_refuse(&gate, gate_params(NULL), "capability_denied", "not_enforceable");
    const json_t *denial = json_array_get(json_object_get(result, "denials"), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "denials")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(denial, "demand")), "limits.open_files");
    ck_assert_int_eq(json_integer_value(json_object_get(denial, "requested")), 8);
    ck_assert(json_is_null(json_object_get(denial, "offered")));
    gate_close(&gate);
}
END_TEST

/* What a client may not ask for, it is not offered either. */
START_TEST(test_executors_as_a_client_has_them)
{
    struct daemon *daemon =
        e2e_fake_daemon("[client local]\nmax_wall = 3s\nmax_output = 2M\nnetwork = none\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = client_call(client, "executors", NULL);
    const json_t *executor = json_array_get(json_object_get(result, "executors"), 0);
    const json_t *limits = json_object_get(executor, "limits");
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "wall_ms")), 3000);
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "output_bytes")), 2 << 20);
    ck_assert_uint_eq(json_array_size(json_object_get(executor, "languages")), 1);
    client_disconnect(client);
    daemon_free(daemon);
    daemon = e2e_fake_daemon("[client local]\nlanguages = python\n");
    client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *none = client_call(client, "executors", NULL);
    executor = json_array_get(json_object_get(none, "executors"), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(executor, "languages")), 0);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_purposes,
                                          &test_ceilings,
                                          &test_nothing_but_code,
                                          &test_defaults_are_lowered,
                                          &test_ceiling_that_nobody_enforces,
                                          &test_executors_as_a_client_has_them,
                                          NULL};
    return e2e_main("policies", tests);
}
