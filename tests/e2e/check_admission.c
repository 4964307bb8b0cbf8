/*
 * check_admission.c - who is let in, and what is recorded of those who are not.
 *
 * Every run that is not let in has exactly one row, with the reason that its caller was told, and
 * nothing is started for it: neither a provider nor any other process below the daemon.
 */
#include "tests/e2e/gate.h"

#define ROOTS                                                                       \
    "[company acme]\nread = /srv/catalogue\nwrite = /srv/outbox/acme /srv/shared\n" \
    "[company initech]\nread = /\n"

/* ---- paths ------------------------------------------------------------------------------------ */

static json_t *path_params(const char *company, const char *list, const char *path)
{
    json_t *params = gate_params(NULL);
    json_t *grant = json_pack("{s:{s:[s]}}", "filesystem", list, path);
    ck_assert_ptr_nonnull(grant);
    ck_assert_int_eq(json_object_set_new(params, "grant", grant), 0);
    ck_assert_int_eq(json_object_set_new(params, "company", json_string(company)), 0);
    return params;
}

START_TEST(test_paths_that_are_not_canonical)
{
    static const struct {
        const char *path, *problem;
    } cases[] = {
        {"/srv/outbox/acme/../globex", "malformed"},
        {"/srv/outbox//acme/./x", "malformed"},
        {"/srv/outbox/acme/", "malformed"},
        {"/srv/outbox/acme/.", "malformed"},
        {"//srv/outbox/acme", "malformed"},
        {"srv/outbox/acme", "malformed"},
        {"./x", "malformed"},
        {"..", "malformed"},
        {"", "empty"},
        {"/srv/outbox/acme\n", "control_character"},
    };
    struct gate gate = gate_open(ROOTS);
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        gate_fault(&gate, path_params("acme", "write", cases[i].path), "/grant/filesystem/write/0",
                   cases[i].problem);
        gate_fault(&gate, path_params("acme", "read", cases[i].path), "/grant/filesystem/read/0",
                   cases[i].problem);
    }
    gate_fault(&gate,
               gate_params("{'grant': {'filesystem': {'read': ['/srv/shared/x'],"
                           "'write': ['/srv/outbox/acme', '/srv/shared/x']}}}"),
               "/grant/filesystem/write/1", "conflict");
    gate_fault(
        &gate,
        gate_params("{'grant': {'filesystem': {'read': ['/srv/catalogue', '/srv/catalogue']}}}"),
        "/grant/filesystem/read/1", "repeated");
    gate_close(&gate);
}
END_TEST

START_TEST(test_paths_outside_of_the_roots)
{
    static const struct {
        const char *company, *list, *path;
    } cases[] = {
        {"acme", "write", "/srv/outbox/acme-evil"},
        {"acme", "write", "/srv/outbox/acmeevil/x"},
        {"acme", "write", "/srv/outbox"},
        {"acme", "write", "/"},
        {"acme", "write", "/srv/outbox/ACME"},
        {"acme", "write", "/srv/outbox/acm"},
        {"acme", "write", "/srv/catalogue"}, /* may be read only */
        {"acme", "read", "/srv/outbox/acme"},
        {"acme", "read", "/srv/catalogue2"},
        {"globex", "write", "/srv/outbox/acme"},
        {"globex", "read", "/srv/catalogue"},
        {"initech", "write", "/srv/outbox/initech"},
    };
    struct gate gate = gate_open(ROOTS);
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        gate_refused(&gate, path_params(cases[i].company, cases[i].list, cases[i].path),
                     "unauthorized", "grant_not_allowed");
    /* One that is not allowed among others that are. */
    gate_refused(&gate,
                 gate_params("{'grant': {'filesystem': {'write': ['/srv/outbox/acme/a', "
                             "'/srv/shared', '/srv/sharedx']}}}"),
                 "unauthorized", "grant_not_allowed");
    gate_close(&gate);
}
END_TEST

/* Below a root they pass the company's policy: what is left is that the executor has no files. */
START_TEST(test_paths_below_the_roots)
{
    static const struct {
        const char *company, *list, *path;
    } cases[] = {
        {"acme", "write", "/srv/outbox/acme"},
        {"acme", "write", "/srv/outbox/acme/..x/y"},
        {"acme", "write", "/srv/shared/a/b/c"},
        {"acme", "read", "/srv/catalogue/Übersicht"},
        {"initech", "read", "/"},
        {"initech", "read", "/etc"},
    };
    struct gate gate = gate_open(ROOTS);
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_JSON json_t *result =
            gate_refuse(&gate, path_params(cases[i].company, cases[i].list, cases[i].path),
                        "capability_denied", "not_enforceable");
        json_t *paths = json_object_get(
            json_object_get(json_object_get(result, "grant"), "filesystem"), cases[i].list);
        ck_assert_str_eq(json_string_value(json_array_get(paths, 0)), cases[i].path);
    }
    gate_close(&gate);
}
END_TEST

/* ---- the client's policy ---------------------------------------------------------------------- */

START_TEST(test_companies_of_the_client)
{
    static const char *const others[] = {"globex",  "ACME", "acme ", "acme/", "acme/../globex",
                                         "../acme", ".",    "acm",   "*",     "acmé"};
    struct gate gate = gate_open("[client local]\ncompanies = acme initech\n");
    for (size_t i = 0; i < AR_COUNT(others); i++) {
        json_t *params = gate_params(NULL);
        ck_assert_int_eq(json_object_set_new(params, "company", json_string(others[i])), 0);
        gate_refused(&gate, params, "unauthorized", "company_not_allowed");
    }
    gate_served(&gate, gate_params(NULL));
    gate_served(&gate, gate_params("{'company': 'initech'}"));
    gate_close(&gate);
}
END_TEST

START_TEST(test_executors_and_languages_of_the_client)
{
    struct gate gate = gate_open("[client local]\nexecutors = other\nlanguages = fake lua\n");
    gate_refused(&gate, gate_params("{'executor': 'counted'}"), "unauthorized",
                 "executor_not_allowed");
    gate_refused(&gate, gate_params("{'language': 'python'}"), "unauthorized",
                 "executor_not_allowed");
    gate_refused(&gate, gate_params("{'executor': 'other'}"), "capability_denied", "no_executor");
    gate_refused(&gate, gate_params(NULL), "capability_denied", "no_executor");
    AR_AUTO_JSON json_t *result = client_call(gate.client, "executors", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "executors")), 0);
    gate_close(&gate);
}
END_TEST

START_TEST(test_executor_by_name)
{
    struct gate gate = gate_open("");
    gate_refused(&gate, gate_params("{'executor': 'nobody'}"), "capability_denied", "no_executor");
    AR_AUTO_JSON json_t *named =
        gate_run(&gate, gate_params("{'executor': 'counted'}"), "succeeded", "exit_zero");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(named, "provider"), "name")),
                     "counted");
    gate_fault(&gate, gate_params("{'executor': 'No Name'}"), "/executor", "malformed");
    gate_close(&gate);
}
END_TEST

/* ---- switches --------------------------------------------------------------------------------- */

static void expect_disabled(const char *config, const char *more, const char *reason)
{
    struct gate gate = gate_open(config);
    gate_refused(&gate, gate_params(more), "disabled", reason);
    gate_close(&gate);
}

START_TEST(test_switches)
{
    expect_disabled("[daemon]\nenabled = no\n", NULL, "globally");
    expect_disabled("[company acme]\nenabled = no\n", NULL, "company");
    expect_disabled("[language fake]\nenabled = no\n", NULL, "language");
    expect_disabled("[executor counted]\nenabled = no\n", NULL, "executor");
    expect_disabled("[executor counted]\nenabled = no\n", "{'executor': 'counted'}", "executor");
}
END_TEST

/* What is switched off stops nobody else. */
START_TEST(test_switches_of_others)
{
    struct gate gate = gate_open("[company globex]\nenabled = no\n[language lua]\nenabled = no\n"
                                 "[executor spare]\nenabled = no\nprogram = /bin/false\n");
    gate_served(&gate, gate_params(NULL));
    gate_refused(&gate, gate_params("{'company': 'globex'}"), "disabled", "company");
    gate_refused(&gate, gate_params("{'language': 'lua'}"), "disabled", "language");
    gate_refused(&gate, gate_params("{'executor': 'spare'}"), "disabled", "executor");
    gate_close(&gate);
}
END_TEST

/* ---- grants against envelopes ----------------------------------------------------------------- */

/* One demand that the executor does not cover: the grant that asks for it. */
static const struct {
    const char *demand, *grant;
} uncovered[] = {
    {"network", "'network': {'mode': 'open'}"},
    {"data_api", "'data_api': ['invoices.read', 'invoices.*']"},
    {"secrets", "'secrets': ['BILLING_KEY']"},
    {"filesystem.read", "'filesystem': {'read': ['/srv/catalogue']}"},
    {"filesystem.write", "'filesystem': {'write': ['/srv/outbox/acme']}"},
    {"limits.wall_ms", "'limits': {'wall_ms': 3600001}"},
    {"limits.cpu_ms", "'limits': {'cpu_ms': 3600001}"},
    {"limits.open_files", "'limits': {'open_files': 64}"},
    {"limits.scratch_bytes", "'limits': {'scratch_bytes': 1048576}"},
    {"limits.output_bytes", "'limits': {'output_bytes': 67108865}"},
};

/* The denials of the answer, and of the row, are these demands in this order. */
static void expect_denials(const struct gate *gate, const json_t *result,
                           const char *const *demands, size_t count)
{
    const json_t *denials = json_object_get(result, "denials");
    ck_assert_uint_eq(json_array_size(denials), count);
    for (size_t i = 0; i < count; i++) {
        const json_t *denial = json_array_get(denials, i);
        ck_assert_str_eq(json_string_value(json_object_get(denial, "demand")), demands[i]);
        ck_assert_ptr_nonnull(json_object_get(denial, "requested"));
        ck_assert_ptr_nonnull(json_object_get(denial, "offered"));
    }
    struct rows rows = rows_read(daemon_ledger(gate->daemon));
    const struct record *row =
        rows_find(&rows, json_string_value(json_object_get(result, "run_id")));
    AR_AUTO_JSON json_t *recorded = json_loads(row->denials, 0, NULL);
    ck_assert(json_equal(recorded, denials));
    ck_assert_uint_eq(strlen(row->envelope_sha256), DIGEST_HEX_BYTES - 1);
    rows_free(&rows);
}

START_TEST(test_each_uncovered_demand)
{
    struct gate gate = gate_open(ROOTS);
    for (size_t i = 0; i < AR_COUNT(uncovered); i++) {
        AR_AUTO_FREE char *more = NULL;
        ck_assert_int_gt(asprintf(&more, "{'grant': {%s}}", uncovered[i].grant), 0);
        AR_AUTO_JSON json_t *result =
            gate_refuse(&gate, gate_params(more), "capability_denied", "not_enforceable");
        expect_denials(&gate, result, &uncovered[i].demand, 1);
    }
    AR_AUTO_JSON json_t *language = gate_refuse(&gate, gate_params("{'language': 'cobol'}"),
                                                "capability_denied", "not_enforceable");
    expect_denials(&gate, language, (const char *const[]){"language"}, 1);
    gate_close(&gate);
}
END_TEST

START_TEST(test_all_uncovered_demands_at_once)
{
    static const char *const demands[] = {"language",           "network",
                                          "data_api",           "secrets",
                                          "filesystem.read",    "filesystem.write",
                                          "limits.wall_ms",     "limits.cpu_ms",
                                          "limits.open_files",  "limits.scratch_bytes",
                                          "limits.output_bytes"};
    struct gate gate = gate_open(ROOTS);
    AR_AUTO_JSON json_t *result = gate_refuse(
        &gate,
        gate_params("{'language': 'cobol', 'grant': {"
                    "'network': {'mode': 'allowlist', 'hosts': ['api.t.test:443']},"
                    "'data_api': ['invoices.read'], 'secrets': ['BILLING_KEY', 'OTHER'],"
                    "'filesystem': {'read': ['/srv/catalogue'], 'write': ['/srv/outbox/acme']},"
                    "'limits': {'wall_ms': 3600001, 'cpu_ms': 3600001, 'open_files': 64,"
                    "'scratch_bytes': 1048576, 'output_bytes': 67108865}}}"),
        "capability_denied", "not_enforceable");
    expect_denials(&gate, result, demands, AR_COUNT(demands));
    gate_close(&gate);
}
END_TEST

/* What is asked for and covered is what is in force, said in full in the answer and in the row. */
START_TEST(test_effective_grant)
{
    struct gate gate = gate_open("[limits]\nwall = 7s\noutput = 4K\n");
    AR_AUTO_JSON json_t *result = gate_run(
        &gate, gate_params("{'grant': {'limits': {'cpu_ms': 1500}}}"), "succeeded", "exit_zero");
    const json_t *grant = json_object_get(result, "grant");
    const json_t *limits = json_object_get(grant, "limits");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(grant, "network"), "mode")),
                     "none");
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "cpu_ms")), 1500);
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "wall_ms")), 7000);
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "output_bytes")), 4096);
    struct rows rows = rows_read(daemon_ledger(gate.daemon));
    AR_AUTO_JSON json_t *recorded = json_loads(rows.items[0]->grant, 0, NULL);
    ck_assert(json_equal(recorded, grant));
    rows_free(&rows);
    gate_close(&gate);
}
END_TEST

/* ---- networks --------------------------------------------------------------------------------- */

START_TEST(test_network_that_says_nothing)
{
    static const struct {
        const char *network, *path, *problem;
    } cases[] = {
        {"{'mode': 'allowlist', 'hosts': []}", "/grant/network/hosts", "empty"},
        {"{'mode': 'allowlist'}", "/grant/network/hosts", "missing"},
        {"{'mode': 'none', 'hosts': ['a.t.test:443']}", "/grant/network/hosts", "conflict"},
        {"{'mode': 'open', 'hosts': ['a.t.test:443']}", "/grant/network/hosts", "conflict"},
        {"{'hosts': ['a.t.test:443']}", "/grant/network/mode", "missing"},
        {"{}", "/grant/network/mode", "missing"},
        {"null", "/grant/network", "wrong_type"},
        {"{'mode': 'Open'}", "/grant/network/mode", "not_allowed_word"},
        {"{'mode': null}", "/grant/network/mode", "wrong_type"},
    };
    struct gate gate = gate_open("");
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_FREE char *more = NULL;
        ck_assert_int_gt(asprintf(&more, "{'grant': {'network': %s}}", cases[i].network), 0);
        gate_fault(&gate, gate_params(more), cases[i].path, cases[i].problem);
    }
    gate_close(&gate);
}
END_TEST

static json_t *host_params(const char *host)
{
    json_t *params = gate_params(NULL);
    json_t *grant = json_pack("{s:{s:s, s:[s, s]}}", "network", "mode", "allowlist", "hosts",
                              "api.t.test:443", host);
    ck_assert_ptr_nonnull(grant);
    ck_assert_int_eq(json_object_set_new(params, "grant", grant), 0);
    return params;
}

START_TEST(test_host_patterns)
{
    static const char *const malformed[] = {
        "*",           "*.test",          "a*.t.test:443",   ":443",
        "*:443",       "*.:443",          "a.*.test:443",    "api.t.test",
        "t.test:0443", "t.test:0",        "t.test:65536",    "t.test:443 ",
        "T.TEST:443",  "user@t.test:443", "t.test.:443",     "t..test:443",
        "-a.test:443", "https://t.test",  "t.test:443/path", "[::1]",
        "::1:443",     "t_.test:+443",    "t%00.test:443"};
    static const char *const sound[] = {"*.w.t.test:443", "xn--bcher-kva.test:443", "192.0.2.7:80",
                                        "[2001:db8::1]:443"};
    struct gate gate = gate_open("");
    for (size_t i = 0; i < AR_COUNT(malformed); i++)
        gate_fault(&gate, host_params(malformed[i]), "/grant/network/hosts/1", "malformed");
    gate_fault(&gate, host_params("api.t.test:443"), "/grant/network/hosts/1", "repeated");
    gate_fault(&gate, host_params(""), "/grant/network/hosts/1", "empty");
    gate_fault(&gate, host_params("t.test:443\n"), "/grant/network/hosts/1", "control_character");
    for (size_t i = 0; i < AR_COUNT(sound); i++) {
        AR_AUTO_JSON json_t *result =
            gate_refuse(&gate, host_params(sound[i]), "capability_denied", "not_enforceable");
        expect_denials(&gate, result, (const char *const[]){"network"}, 1);
    }
    gate_close(&gate);
}
END_TEST

/* ---- names ------------------------------------------------------------------------------------ */

START_TEST(test_names_of_secrets)
{
    static const struct {
        const char *name, *problem;
    } names[] = {{"../globex/KEY", "malformed"},
                 {"/etc/shadow", "malformed"},
                 {".", "malformed"},
                 {"..", "malformed"},
                 {"KEY/", "malformed"},
                 {"KEY\n", "control_character"},
                 {"", "empty"},
                 {"1KEY", "malformed"},
                 {"KEY-A", "malformed"},
                 {"KÉY", "malformed"}};
    struct gate gate = gate_open("");
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        json_t *params = gate_params(NULL);
        ck_assert_int_eq(
            json_object_set_new(params, "grant", json_pack("{s:[s]}", "secrets", names[i].name)),
            0);
        gate_fault(&gate, params, "/grant/secrets/0", names[i].problem);
    }
    gate_close(&gate);
}
END_TEST

/* A client that may speak for every company may name one that looks like a path. It is a name like any
 * other, and leads nowhere: the secret is denied. */
START_TEST(test_names_of_companies)
{
    static const char *const names[] = {"../globex", ".",    "acme/../globex",
                                        "acme/",     "ACME", "/etc"};
    char longest[201];
    struct gate gate = gate_open("");
    for (size_t i = 0; i < sizeof(longest) - 1; i++)
        longest[i] = i % 2 ? '/' : 'a';
    longest[200] = '\0';
    for (size_t i = 0; i <= AR_COUNT(names); i++) {
        json_t *params = gate_params("{'grant': {'secrets': ['KEY']}}");
        const char *name = i < AR_COUNT(names) ? names[i] : longest;
        ck_assert_int_eq(json_object_set_new(params, "company", json_string(name)), 0);
        AR_AUTO_JSON json_t *result =
            gate_refuse(&gate, params, "capability_denied", "not_enforceable");
        expect_denials(&gate, result, (const char *const[]){"secrets"}, 1);
    }
    gate_fault(&gate, gate_params("{'company': ''}"), "/company", "empty");
    gate_fault(&gate, gate_params("{'company': 'a\\nb'}"), "/company", "control_character");
    gate_fault(&gate, gate_params("{'company': null}"), "/company", "wrong_type");
    gate_close(&gate);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_paths_that_are_not_canonical,
                                          &test_paths_outside_of_the_roots,
                                          &test_paths_below_the_roots,
                                          &test_companies_of_the_client,
                                          &test_executors_and_languages_of_the_client,
                                          &test_executor_by_name,
                                          &test_switches,
                                          &test_switches_of_others,
                                          &test_each_uncovered_demand,
                                          &test_all_uncovered_demands_at_once,
                                          &test_effective_grant,
                                          &test_network_that_says_nothing,
                                          &test_host_patterns,
                                          &test_names_of_secrets,
                                          &test_names_of_companies,
                                          NULL};
    return e2e_main("admission", tests);
}
