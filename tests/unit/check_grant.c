/*
 * check_grant.c - what is a grant, what is a fault in it and where (C05, C13, C15, C21), and the
 * effective grant.
 */
#include "protocol/grant.h"
#include "tests/unit/unit.h"

/* Reads a grant as it lies in params. */
static int parse(const char *text, struct grant *grant, struct fault *fault)
{
    static const struct json_place place = {.member = "grant"};
    AR_AUTO_JSON json_t *value = unit_json(text);
    *fault = (struct fault){0};
    return grant_parse(value, &place, grant, fault);
}

struct expectation {
    const char *text;
    const char *path;
    enum problem problem;
};

static void expect_faults(const struct expectation *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct grant grant;
        struct fault fault;
        ck_assert_msg(parse(expected[i].text, &grant, &fault) == 1, "%s", expected[i].text);
        ck_assert_msg(fault.problem == expected[i].problem, "%s: %s", expected[i].text,
                      problem_word(fault.problem));
        ck_assert_msg(strcmp(fault.path, expected[i].path) == 0, "%s: at %s", expected[i].text,
                      fault.path);
    }
}

START_TEST(test_least)
{
    static const char *const texts[] = {"{}", "{'network':{'mode':'none'}}",
                                        "{'data_api':[],'secrets':[],'filesystem':{},'limits':{}}",
                                        "{'filesystem':{'read':[],'write':[]}}", NULL};
    for (size_t i = 0; texts[i]; i++) {
        struct grant grant;
        struct fault fault;
        ck_assert_int_eq(parse(texts[i], &grant, &fault), 0);
        AR_AUTO_JSON json_t *value = grant_to_json(&grant);
        AR_AUTO_JSON json_t *least =
            unit_json("{'network':{'mode':'none'},'data_api':[],'secrets':[],"
                      "'filesystem':{'read':[],'write':[]},'limits':{}}");
        ck_assert(json_equal(value, least));
        grant_free(&grant);
    }
    struct grant grant;
    struct fault fault = {0};
    ck_assert_int_eq(grant_parse(NULL, NULL, &grant, &fault), 0);
    ck_assert_int_eq(grant.network, NETWORK_NONE);
    grant_free(&grant);
}
END_TEST

START_TEST(test_whole)
{
    struct grant grant;
    struct fault fault;
    ck_assert_int_eq(
        parse("{'network':{'mode':'allowlist','hosts':['b.test:443','*.a.test:80','[2001:db8::1]:1'"
              "]},"
              "'data_api':['invoices.read','a.*'],'secrets':['BILLING_KEY'],"
              "'filesystem':{'read':['/srv/catalogue','/'],'write':['/srv/outbox/acme']},"
              "'limits':{'wall_ms':86400000,'cpu_ms':1,'memory_bytes':9007199254740991,'processes':"
              "16,"
              "'open_files':64,'scratch_bytes':16777216,'output_bytes':1048576}}",
              &grant, &fault),
        0);
    ck_assert_int_eq(grant.network, NETWORK_ALLOWLIST);
    ck_assert_uint_eq(grant.hosts.count, 3);
    ck_assert_str_eq(grant.hosts.items[0], "b.test:443");
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        ck_assert(grant.limits.has[i]);
    ck_assert_int_eq(grant.limits.value[LIMIT_MEMORY_BYTES], 9007199254740991);
    AR_AUTO_JSON json_t *value = grant_to_json(&grant);
    AR_AUTO_FREE char *text = json_canonical(value);
    AR_AUTO_FREE char *expected = unit_quote(
        "{'data_api':['a.*','invoices.read'],'filesystem':{'read':['/','/srv/catalogue'],"
        "'write':['/srv/outbox/acme']},'limits':{'cpu_ms':1,'memory_bytes':9007199254740991,"
        "'open_files':64,'output_bytes':1048576,'processes':16,'scratch_bytes':16777216,"
        "'wall_ms':86400000},'network':{'hosts':['*.a.test:80','[2001:db8::1]:1','b.test:443'],"
        "'mode':'allowlist'},'secrets':['BILLING_KEY']}");
    ck_assert_str_eq(text, expected);
    /* The effective grant is a grant: the provider reads it with the same function. */
    struct grant again;
    ck_assert_int_eq(grant_parse(value, NULL, &again, &fault), 0);
    AR_AUTO_JSON json_t *value_again = grant_to_json(&again);
    ck_assert(json_equal(value, value_again));
    grant_free(&again);
    grant_free(&grant);
}
END_TEST

START_TEST(test_members)
{
    static const struct expectation expected[] = {
        {"null", "/grant", PROBLEM_WRONG_TYPE},
        {"[]", "/grant", PROBLEM_WRONG_TYPE},
        {"'open'", "/grant", PROBLEM_WRONG_TYPE},
        {"{'netwrok':{'mode':'open'}}", "/grant/netwrok", PROBLEM_UNKNOWN_MEMBER},
        {"{'Network':{'mode':'open'}}", "/grant", PROBLEM_UNKNOWN_MEMBER},
        {"{'data_api':'x'}", "/grant/data_api", PROBLEM_WRONG_TYPE},
        {"{'data_api':null}", "/grant/data_api", PROBLEM_WRONG_TYPE},
        {"{'data_api':{}}", "/grant/data_api", PROBLEM_WRONG_TYPE},
        {"{'data_api':['a.b',1]}", "/grant/data_api/1", PROBLEM_WRONG_TYPE},
        {"{'data_api':['*']}", "/grant/data_api/0", PROBLEM_MALFORMED},
        {"{'data_api':['a','a']}", "/grant/data_api/1", PROBLEM_REPEATED},
        {"{'filesystem':[]}", "/grant/filesystem", PROBLEM_WRONG_TYPE},
        {"{'filesystem':{'reed':[]}}", "/grant/filesystem/reed", PROBLEM_UNKNOWN_MEMBER},
        {"{'limits':[]}", "/grant/limits", PROBLEM_WRONG_TYPE},
        {"{'limits':{'wall':1}}", "/grant/limits/wall", PROBLEM_UNKNOWN_MEMBER},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

START_TEST(test_network)
{
    static const struct expectation expected[] = {
        {"{'network':{'mode':'allowlist','hosts':[]}}", "/grant/network/hosts", PROBLEM_EMPTY},
        {"{'network':{'mode':'allowlist'}}", "/grant/network/hosts", PROBLEM_MISSING},
        {"{'network':{'mode':'none','hosts':['a.t.test:443']}}", "/grant/network/hosts",
         PROBLEM_CONFLICT},
        {"{'network':{'mode':'none','hosts':[]}}", "/grant/network/hosts", PROBLEM_CONFLICT},
        {"{'network':{'mode':'open','hosts':['a.t.test:443']}}", "/grant/network/hosts",
         PROBLEM_CONFLICT},
        {"{'network':{'hosts':['a.t.test:443']}}", "/grant/network/mode", PROBLEM_MISSING},
        {"{'network':{}}", "/grant/network/mode", PROBLEM_MISSING},
        {"{'network':null}", "/grant/network", PROBLEM_WRONG_TYPE},
        {"{'network':'open'}", "/grant/network", PROBLEM_WRONG_TYPE},
        {"{'network':{'mode':null}}", "/grant/network/mode", PROBLEM_WRONG_TYPE},
        {"{'network':{'mode':'Open'}}", "/grant/network/mode", PROBLEM_NOT_ALLOWED_WORD},
        {"{'network':{'mode':'open\\u0000'}}", "/grant/network/mode", PROBLEM_NOT_ALLOWED_WORD},
        {"{'network':{'mode':''}}", "/grant/network/mode", PROBLEM_NOT_ALLOWED_WORD},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

START_TEST(test_hosts)
{
    static const char *const hosts[] = {"*",
                                        "*.test",
                                        "a*.t.test:443",
                                        ":443",
                                        "[::1]:443",
                                        "API.t.test:443",
                                        "api.t.test.:443",
                                        "user@api.t.test:443",
                                        "api.t.test:0443",
                                        NULL};
    for (size_t i = 0; hosts[i]; i++) {
        char text[200];
        struct grant grant;
        struct fault fault;
        (void)snprintf(text, sizeof(text),
                       "{'network':{'mode':'allowlist','hosts':['a.test:1','%s']}}", hosts[i]);
        ck_assert_int_eq(parse(text, &grant, &fault), 1);
        ck_assert_msg(fault.problem == PROBLEM_MALFORMED, "%s", hosts[i]);
        ck_assert_str_eq(fault.path, "/grant/network/hosts/1");
    }
    static const struct expectation expected[] = {
        {"{'network':{'mode':'allowlist','hosts':['api.t.test\\u0000.evil.test:443']}}",
         "/grant/network/hosts/0", PROBLEM_CONTROL_CHARACTER},
        {"{'network':{'mode':'allowlist','hosts':['']}}", "/grant/network/hosts/0", PROBLEM_EMPTY},
        {"{'network':{'mode':'allowlist','hosts':['a.test:1','b.test:1','a.test:1']}}",
         "/grant/network/hosts/2", PROBLEM_REPEATED},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

START_TEST(test_paths)
{
    static const char *const paths[] = {"/srv/outbox/acme/../globex",
                                        "/srv/outbox//acme/./x",
                                        "/srv/outbox/acme/",
                                        "srv/outbox/acme",
                                        ".",
                                        "..",
                                        "~",
                                        NULL};
    for (size_t i = 0; paths[i]; i++) {
        char text[200];
        struct grant grant;
        struct fault fault;
        (void)snprintf(text, sizeof(text), "{'filesystem':{'write':['/srv','%s']}}", paths[i]);
        ck_assert_int_eq(parse(text, &grant, &fault), 1);
        ck_assert_msg(fault.problem == PROBLEM_MALFORMED, "%s", paths[i]);
        ck_assert_str_eq(fault.path, "/grant/filesystem/write/1");
    }
    static const struct expectation expected[] = {
        {"{'filesystem':{'read':['']}}", "/grant/filesystem/read/0", PROBLEM_EMPTY},
        {"{'filesystem':{'read':['/a','/b','/a']}}", "/grant/filesystem/read/2", PROBLEM_REPEATED},
        {"{'filesystem':{'read':['/a','/b'],'write':['/c','/b']}}", "/grant/filesystem/write/1",
         PROBLEM_CONFLICT},
    };
    expect_faults(expected, AR_COUNT(expected));
    AR_AUTO_FREE char *longest = unit_repeat("{'filesystem':{'read':['", "/abcd", 819, "e']}}");
    const struct expectation too_long = {longest, "/grant/filesystem/read/0", PROBLEM_TOO_LONG};
    expect_faults(&too_long, 1);
}
END_TEST

START_TEST(test_secrets)
{
    static const struct expectation expected[] = {
        {"{'secrets':['../globex/KEY']}", "/grant/secrets/0", PROBLEM_MALFORMED},
        {"{'secrets':['A','/etc/shadow']}", "/grant/secrets/1", PROBLEM_MALFORMED},
        {"{'secrets':['.']}", "/grant/secrets/0", PROBLEM_MALFORMED},
        {"{'secrets':['KEY/']}", "/grant/secrets/0", PROBLEM_MALFORMED},
        {"{'secrets':['KEY\\n']}", "/grant/secrets/0", PROBLEM_CONTROL_CHARACTER},
        {"{'secrets':['K','K']}", "/grant/secrets/1", PROBLEM_REPEATED},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

START_TEST(test_limits)
{
    static const struct expectation expected[] = {
        {"{'limits':{'wall_ms':0}}", "/grant/limits/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'limits':{'wall_ms':-0}}", "/grant/limits/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'limits':{'wall_ms':-1}}", "/grant/limits/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'limits':{'wall_ms':86400001}}", "/grant/limits/wall_ms", PROBLEM_OUT_OF_RANGE},
        {"{'limits':{'cpu_ms':9007199254740992}}", "/grant/limits/cpu_ms", PROBLEM_OUT_OF_RANGE},
        {"{'limits':{'wall_ms':1000.0}}", "/grant/limits/wall_ms", PROBLEM_NOT_AN_INTEGER},
        {"{'limits':{'wall_ms':1e3}}", "/grant/limits/wall_ms", PROBLEM_NOT_AN_INTEGER},
        {"{'limits':{'wall_ms':0.5}}", "/grant/limits/wall_ms", PROBLEM_NOT_AN_INTEGER},
        {"{'limits':{'wall_ms':5e-324}}", "/grant/limits/wall_ms", PROBLEM_NOT_AN_INTEGER},
        {"{'limits':{'wall_ms':'1000'}}", "/grant/limits/wall_ms", PROBLEM_WRONG_TYPE},
        {"{'limits':{'wall_ms':null}}", "/grant/limits/wall_ms", PROBLEM_WRONG_TYPE},
        {"{'limits':{'wall_ms':true}}", "/grant/limits/wall_ms", PROBLEM_WRONG_TYPE},
    };
    expect_faults(expected, AR_COUNT(expected));
}
END_TEST

/* One more item than a list may have. */
START_TEST(test_counts)
{
    static const struct {
        const char *head, *tail, *path;
        size_t max;
        const char *form;
    } lists[] = {
        {"{\"network\":{\"mode\":\"allowlist\",\"hosts\":[", "]}}", "/grant/network/hosts",
         GRANT_MAX_HOSTS, "\"h%zu.test:1\""},
        {"{\"data_api\":[", "]}", "/grant/data_api", GRANT_MAX_METHODS, "\"m%zu\""},
        {"{\"secrets\":[", "]}", "/grant/secrets", GRANT_MAX_SECRETS, "\"S%zu\""},
        {"{\"filesystem\":{\"read\":[", "]}}", "/grant/filesystem/read", GRANT_MAX_PATHS,
         "\"/p%zu\""},
        {"{\"filesystem\":{\"write\":[", "]}}", "/grant/filesystem/write", GRANT_MAX_PATHS,
         "\"/p%zu\""},
    };
    for (size_t i = 0; i < AR_COUNT(lists); i++) {
        for (size_t extra = 0; extra < 2; extra++) {
            char text[4096];
            size_t used = (size_t)snprintf(text, sizeof(text), "%s", lists[i].head);
            for (size_t n = 0; n < lists[i].max + extra; n++) {
                char item[32];
                char form[32];
                (void)snprintf(form, sizeof(form), "%s", lists[i].form);
                char *number = strstr(form, "%zu");
                (void)snprintf(item, sizeof(item), "%.*s%zu%s", (int)(number - form), form, n,
                               number + 3);
                used +=
                    (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", n ? "," : "", item);
            }
            (void)snprintf(text + used, sizeof(text) - used, "%s", lists[i].tail);
            struct grant grant;
            struct fault fault;
            ck_assert_int_eq(parse(text, &grant, &fault), (int)extra);
            ck_assert_int_eq(fault.problem, extra ? PROBLEM_TOO_MANY : PROBLEM_NONE);
            ck_assert_str_eq(fault.path, extra ? lists[i].path : "");
            grant_free(&grant);
        }
    }
}
END_TEST

START_TEST(test_fill)
{
    struct grant grant = {0};
    struct limits defaults = {0}, offered = {0};
    grant.limits.has[LIMIT_WALL_MS] = true;
    grant.limits.value[LIMIT_WALL_MS] = 999;
    defaults.has[LIMIT_WALL_MS] = defaults.has[LIMIT_CPU_MS] = true;
    defaults.has[LIMIT_PROCESSES] = defaults.has[LIMIT_MEMORY_BYTES] = true;
    defaults.value[LIMIT_WALL_MS] = 5;
    defaults.value[LIMIT_CPU_MS] = 100;
    defaults.value[LIMIT_PROCESSES] = 10;
    defaults.value[LIMIT_MEMORY_BYTES] = 77;
    offered.has[LIMIT_WALL_MS] = offered.has[LIMIT_CPU_MS] = true;
    offered.has[LIMIT_PROCESSES] = offered.has[LIMIT_OPEN_FILES] = true;
    offered.value[LIMIT_WALL_MS] = 1;
    offered.value[LIMIT_CPU_MS] = 50;
    offered.value[LIMIT_PROCESSES] = 20;
    offered.value[LIMIT_OPEN_FILES] = 30;
    grant_fill(&grant, &defaults, &offered);
    ck_assert_int_eq(grant.limits.value[LIMIT_WALL_MS], 999); /* what was asked stays */
    ck_assert_int_eq(grant.limits.value[LIMIT_CPU_MS], 50);   /* lowered to what is offered */
    ck_assert_int_eq(grant.limits.value[LIMIT_PROCESSES], 10);
    ck_assert(!grant.limits.has[LIMIT_MEMORY_BYTES]); /* not offered */
    ck_assert(!grant.limits.has[LIMIT_OPEN_FILES]);   /* no default */
    AR_AUTO_JSON json_t *limits = limits_to_json(&grant.limits);
    AR_AUTO_JSON json_t *expected = unit_json("{'wall_ms':999,'cpu_ms':50,'processes':10}");
    ck_assert(json_equal(limits, expected));
}
END_TEST

static const TTest **const reading[] = {&test_least,  &test_whole, &test_members, &test_network,
                                        &test_hosts,  &test_paths, &test_secrets, &test_limits,
                                        &test_counts, NULL};
static const TTest **const filling[] = {&test_fill, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"reading", reading}, {"filling", filling}};
    return unit_main("grant", cases, AR_COUNT(cases));
}
