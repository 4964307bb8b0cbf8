/*
 * check_envelope.c - an executor's text is taken whole or not at all, and the comparison names every
 * demand that is not covered, whatever else is asked.
 */
#include "protocol/envelope.h"
#include "tests/unit/unit.h"

#define WHOLE                                                                                      \
    "{'contract':1,'name':'namespace','version':'1.0','languages':[{'name':'python','version':'3." \
    "11'},"                                                                                        \
    "{'name':'c','version':'gcc "                                                                  \
    "12'}],'network':['none','allowlist'],'data_api':false,'secrets':true,"                        \
    "'filesystem':{'read':true,'write':false},'limits':{'cpu_ms':1000,'memory_bytes':2048},"       \
    "'isolation':{'user_namespace':true,'kernel':'5.14'},"                                         \
    "'unavailable':[{'name':'go','problem':'not_installed'},{'name':'java','problem':'too_slow'}]" \
    "}"

static int parse(const char *text, struct envelope *envelope, struct fault *fault)
{
    AR_AUTO_FREE char *quoted = unit_quote(text);
    *fault = (struct fault){0};
    return envelope_parse(quoted, strlen(quoted), envelope, fault);
}

static struct grant grant_of(const char *text)
{
    struct grant grant;
    struct fault fault = {0};
    AR_AUTO_JSON json_t *value = unit_json(text);
    ck_assert_int_eq(grant_parse(value, NULL, &grant, &fault), 0);
    return grant;
}

START_TEST(test_whole)
{
    struct envelope envelope, again;
    struct fault fault;
    ck_assert_int_eq(parse(WHOLE, &envelope, &fault), 0);
    ck_assert_str_eq(envelope.name, "namespace");
    ck_assert_uint_eq(envelope.language_count, 2);
    ck_assert(envelope_has_language(&envelope, "c"));
    ck_assert(!envelope_has_language(&envelope, "C"));
    ck_assert_uint_eq(envelope.unavailable_count, 2);
    ck_assert_str_eq(envelope.unavailable[1].name, "java");
    ck_assert_int_eq(envelope.unavailable[1].problem, LANGUAGE_TOO_SLOW);
    ck_assert(!envelope_has_language(&envelope, "java"));
    ck_assert(envelope.network[NETWORK_NONE] && envelope.network[NETWORK_ALLOWLIST]);
    ck_assert(!envelope.network[NETWORK_OPEN] && !envelope.data_api && envelope.secrets);
    ck_assert(envelope.filesystem_read && !envelope.filesystem_write);
    ck_assert(envelope.limits.has[LIMIT_CPU_MS] && !envelope.limits.has[LIMIT_WALL_MS]);
    ck_assert(digest_is_hex(envelope.sha256));
    AR_AUTO_JSON json_t *value = envelope_to_json(&envelope);
    AR_AUTO_JSON json_t *expected = unit_json(WHOLE);
    ck_assert(json_equal(value, expected));
    AR_AUTO_FREE char *text = json_canonical(value);
    char hex[DIGEST_HEX_BYTES];
    ck_assert_int_eq(digest_hex(text, strlen(text), hex), 0);
    ck_assert_str_eq(hex, envelope.sha256);
    ck_assert_int_eq(envelope_from_json(value, &again, &fault), 0);
    ck_assert_str_eq(again.sha256, envelope.sha256);
    again.secrets = false;
    ck_assert_int_eq(envelope_seal(&again), 0);
    ck_assert_str_ne(again.sha256, envelope.sha256);
    envelope_free(&again);
    envelope_free(&envelope);
}
END_TEST

/* Nothing is missing: then there is no such member, in the hash neither. */
START_TEST(test_nothing_unavailable)
{
    static const char start[] = "{'contract':1,'name':'n','version':'','languages':[],'network':[],"
                                "'data_api':false,'secrets':false,"
                                "'filesystem':{'read':false,'write':false},'limits':{}";
    static const char *const ends[] = {"}", ",'unavailable':[]}"};
    struct envelope envelopes[2];
    for (size_t i = 0; i < AR_COUNT(ends); i++) {
        struct fault fault;
        char text[512];
        (void)snprintf(text, sizeof(text), "%s%s", start, ends[i]);
        ck_assert_int_eq(parse(text, &envelopes[i], &fault), 0);
        AR_AUTO_JSON json_t *value = envelope_to_json(&envelopes[i]);
        ck_assert(value && !json_object_get(value, "unavailable"));
    }
    ck_assert_str_eq(envelopes[0].sha256, envelopes[1].sha256);
    envelope_free(&envelopes[0]);
    envelope_free(&envelopes[1]);
}
END_TEST

/* Each case changes one piece of WHOLE. */
START_TEST(test_faults)
{
    static const struct {
        const char *from, *to, *path;
        enum problem problem;
    } cases[] = {
        {"'contract':1", "'contract':2", "/contract", PROBLEM_OUT_OF_RANGE},
        {"'contract':1", "'contract':1.0", "/contract", PROBLEM_NOT_AN_INTEGER},
        {"'contract':1,", "", "/contract", PROBLEM_MISSING},
        {"'contract':1", "'contract':1,'contract':1", "/contract", PROBLEM_DUPLICATE_MEMBER},
        {"'name':'namespace'", "'name':'Name Space'", "/name", PROBLEM_MALFORMED},
        {"'name':'namespace'", "'name':''", "/name", PROBLEM_EMPTY},
        {"'name':'namespace'", "'name':'../x'", "/name", PROBLEM_MALFORMED},
        {"'version':'1.0'", "'version':'\xc3\xa9'", "/version", PROBLEM_MALFORMED},
        {"'version':'1.0'", "'version':'\\n'", "/version", PROBLEM_CONTROL_CHARACTER},
        {"'version':'1.0'", "'version':1", "/version", PROBLEM_WRONG_TYPE},
        {"{'name':'c','version':'gcc 12'}", "{'name':'c'}", "/languages/1/version",
         PROBLEM_MISSING},
        {"{'name':'c','version':'gcc 12'}", "{'name':'python','version':''}", "/languages/1/name",
         PROBLEM_REPEATED},
        {"{'name':'c','version':'gcc 12'}", "'c'", "/languages/1", PROBLEM_WRONG_TYPE},
        {"['none','allowlist']", "['none','all']", "/network/1", PROBLEM_NOT_ALLOWED_WORD},
        {"['none','allowlist']", "['none','none']", "/network/1", PROBLEM_REPEATED},
        {"['none','allowlist']", "'open'", "/network", PROBLEM_WRONG_TYPE},
        {"['none','allowlist']", "['none','allowlist','open','none']", "/network",
         PROBLEM_TOO_MANY},
        {"'data_api':false", "'data_api':0", "/data_api", PROBLEM_WRONG_TYPE},
        {"'secrets':true", "'secrets':null", "/secrets", PROBLEM_WRONG_TYPE},
        {"{'read':true,'write':false}", "{'read':true}", "/filesystem/write", PROBLEM_MISSING},
        {"'cpu_ms':1000", "'cpu_ms':0", "/limits/cpu_ms", PROBLEM_OUT_OF_RANGE},
        {"'cpu_ms':1000", "'cpu_seconds':1", "/limits/cpu_seconds", PROBLEM_UNKNOWN_MEMBER},
        {"'cpu_ms':1000", "'cpu_ms':1e999", "/limits/cpu_ms", PROBLEM_OUT_OF_RANGE},
        {"'user_namespace':true", "'user_namespace':1", "/isolation/user_namespace",
         PROBLEM_WRONG_TYPE},
        {"'user_namespace':true", "'user namespace':true", "/isolation", PROBLEM_MALFORMED},
        {"'secrets':true", "'secrets':true,'CANARY':1", "", PROBLEM_UNKNOWN_MEMBER},
        {"'problem':'not_installed'", "'problem':'CANARY'", "/unavailable/0/problem",
         PROBLEM_NOT_ALLOWED_WORD},
        {"'problem':'not_installed'", "'problem':''", "/unavailable/0/problem", PROBLEM_EMPTY},
        {"{'name':'go',", "{", "/unavailable/0/name", PROBLEM_MISSING},
        {"{'name':'go',", "{'version':'1','name':'go',", "/unavailable/0/version",
         PROBLEM_UNKNOWN_MEMBER},
        {"'name':'java'", "'name':'go'", "/unavailable/1/name", PROBLEM_REPEATED},
        {"'name':'java'", "'name':'python'", "/unavailable/1/name", PROBLEM_CONFLICT},
        {"'unavailable':[", "'unavailable':['go',", "/unavailable/0", PROBLEM_WRONG_TYPE},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        char text[1024];
        struct envelope envelope;
        struct fault fault;
        const char *at = strstr(WHOLE, cases[i].from);
        ck_assert_msg(at != NULL, "%s", cases[i].from);
        (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - WHOLE), WHOLE, cases[i].to,
                       at + strlen(cases[i].from));
        ck_assert_msg(parse(text, &envelope, &fault) == 1, "%s", cases[i].to);
        ck_assert_msg(fault.problem == cases[i].problem, "%s: %s", cases[i].to,
                      problem_word(fault.problem));
        ck_assert_msg(strcmp(fault.path, cases[i].path) == 0, "%s: at %s", cases[i].to, fault.path);
    }
}
END_TEST

START_TEST(test_foreign_text)
{
    static const char *const texts[] = {"", "Traceback", "[]", "null", "{", WHOLE WHOLE, NULL};
    struct envelope envelope;
    struct fault fault;
    for (size_t i = 0; texts[i]; i++) {
        ck_assert_int_eq(parse(texts[i], &envelope, &fault), 1);
        ck_assert_int_ne(fault.problem, PROBLEM_NONE);
    }
    AR_AUTO_FREE char *flood = unit_repeat("", " ", ENVELOPE_MAX_BYTES + 1, "");
    ck_assert_int_eq(parse(flood, &envelope, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_TOO_LONG);
    AR_AUTO_FREE char *padded = unit_repeat(WHOLE, "\n", 10, "");
    ck_assert_int_eq(parse(padded, &envelope, &fault), 0);
    envelope_free(&envelope);
    envelope_free(&envelope);
}
END_TEST

/* The denials of a grant as canonical text; malloc'd. */
static char *denials_text(const char *language, const char *grant_text)
{
    struct envelope envelope;
    struct fault fault;
    struct denials denials;
    ck_assert_int_eq(parse(WHOLE, &envelope, &fault), 0);
    struct grant grant = grant_of(grant_text);
    ck_assert_int_eq(envelope_compare(&envelope, language, &grant, &denials), 0);
    AR_AUTO_JSON json_t *list = denials_to_json(&denials);
    ck_assert_uint_eq(json_array_size(list), denials.count);
    denials_free(&denials);
    grant_free(&grant);
    envelope_free(&envelope);
    return json_canonical(list);
}

START_TEST(test_compare)
{
    static const char *const cases[][3] = {
        {"python", "{}", "[]"},
        {"c",
         "{'network':{'mode':'allowlist','hosts':['a.test:1']},'secrets':['K'],'filesystem':{'read'"
         ":['/a']},"
         "'limits':{'cpu_ms':1000,'memory_bytes':1}}",
         "[]"},
        {"python", "{'data_api':[],'filesystem':{'write':[]}}", "[]"},
        {"cobol", "{}", "[{'demand':'language','offered':['python','c'],'requested':'cobol'}]"},
        {"python", "{'network':{'mode':'open'}}",
         "[{'demand':'network','offered':['none','allowlist'],'requested':'open'}]"},
        {"python", "{'limits':{'cpu_ms':1001}}",
         "[{'demand':'limits.cpu_ms','offered':1000,'requested':1001}]"},
        {"python", "{'limits':{'processes':1}}",
         "[{'demand':'limits.processes','offered':null,'requested':1}]"},
        {"cobol",
         "{'network':{'mode':'open'},'data_api':['b.read','a.read'],'secrets':['K'],"
         "'filesystem':{'read':['/r'],'write':['/"
         "w']},'limits':{'wall_ms':5,'cpu_ms':2000,'memory_bytes':1}}",
         "[{'demand':'language','offered':['python','c'],'requested':'cobol'},"
         "{'demand':'network','offered':['none','allowlist'],'requested':'open'},"
         "{'demand':'data_api','offered':null,'requested':['b.read','a.read']},"
         "{'demand':'filesystem.write','offered':null,'requested':['/w']},"
         "{'demand':'limits.wall_ms','offered':null,'requested':5},"
         "{'demand':'limits.cpu_ms','offered':1000,'requested':2000}]"},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_FREE char *text = denials_text(cases[i][0], cases[i][1]);
        AR_AUTO_FREE char *expected = unit_quote(cases[i][2]);
        ck_assert_str_eq(text, expected);
    }
}
END_TEST

static void random_grant(struct unit_random *random, struct grant *grant)
{
    struct text_list *lists[] = {&grant->data_api, &grant->secrets, &grant->read, &grant->write};
    *grant =
        (struct grant){.network = (enum network_mode)unit_random_below(random, NETWORK_MODE_COUNT)};
    for (size_t i = 0; i < AR_COUNT(lists); i++)
        if (unit_random_below(random, 2))
            ck_assert_int_eq(text_list_add(lists[i], "x"), 0);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        grant->limits.has[i] = unit_random_below(random, 2);
        grant->limits.value[i] = 1 + (int64_t)unit_random_below(random, 4);
    }
}

static void random_envelope(struct unit_random *random, struct envelope *envelope)
{
    static struct envelope_language language = {.name = (char *)"l", .version = (char *)""};
    *envelope =
        (struct envelope){.languages = &language, .language_count = unit_random_below(random, 2)};
    for (size_t i = 0; i < NETWORK_MODE_COUNT; i++)
        envelope->network[i] = unit_random_below(random, 2);
    envelope->data_api = unit_random_below(random, 2);
    envelope->secrets = unit_random_below(random, 2);
    envelope->filesystem_read = unit_random_below(random, 2);
    envelope->filesystem_write = unit_random_below(random, 2);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        envelope->limits.has[i] = unit_random_below(random, 2);
        envelope->limits.value[i] = 1 + (int64_t)unit_random_below(random, 4);
    }
}

/* Which demands are denied, as a set of bits; the order is checked on the way. */
static unsigned int denied(const struct envelope *envelope, const struct grant *grant)
{
    struct denials denials;
    unsigned int set = 0;
    ck_assert_int_eq(envelope_compare(envelope, "l", grant, &denials), 0);
    for (size_t i = 0; i < denials.count; i++) {
        ck_assert(i == 0 || denials.items[i - 1].demand < denials.items[i].demand);
        ck_assert(denials.items[i].requested && denials.items[i].offered);
        set |= 1u << denials.items[i].demand;
    }
    denials_free(&denials);
    return set;
}

/* The least of two grants, demand by demand; what it asks is asked by both. */
static void shrink_grant(struct unit_random *random, struct grant *grant)
{
    struct text_list *lists[] = {&grant->data_api, &grant->secrets, &grant->read, &grant->write};
    if (unit_random_below(random, 2))
        grant->network = NETWORK_NONE;
    for (size_t i = 0; i < AR_COUNT(lists); i++)
        if (unit_random_below(random, 2))
            text_list_free(lists[i]);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (unit_random_below(random, 3) == 0)
            grant->limits.has[i] = false;
        if (grant->limits.value[i] > 1 && unit_random_below(random, 2))
            grant->limits.value[i]--;
    }
}

START_TEST(test_smaller_grant_is_never_denied_more)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < 5000; round++) {
        struct envelope envelope;
        struct grant grant;
        random_envelope(&random, &envelope);
        random_grant(&random, &grant);
        unsigned int before = denied(&envelope, &grant);
        ck_assert_uint_eq(before, denied(&envelope, &grant)); /* pure */
        shrink_grant(&random, &grant);
        unsigned int after = denied(&envelope, &grant);
        ck_assert_msg((after & ~before) == 0, "%x then %x, seed %llu", before, after,
                      (unsigned long long)random.seed);
        grant_free(&grant);
    }
}
END_TEST

/* Each demand alone decides about itself: all denials together are the union of the single ones. */
START_TEST(test_all_is_the_union_of_each)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < 5000; round++) {
        struct envelope envelope;
        struct grant grant;
        random_envelope(&random, &envelope);
        random_grant(&random, &grant);
        unsigned int together = denied(&envelope, &grant);
        unsigned int single = 0;
        struct grant parts[DEMAND_COUNT] = {0};
        parts[DEMAND_NETWORK].network = grant.network;
        parts[DEMAND_DATA_API].data_api = grant.data_api;
        parts[DEMAND_SECRETS].secrets = grant.secrets;
        parts[DEMAND_FILESYSTEM_READ].read = grant.read;
        parts[DEMAND_FILESYSTEM_WRITE].write = grant.write;
        for (size_t i = 0; i < LIMIT_COUNT; i++) {
            parts[DEMAND_LIMIT_FIRST + i].limits.has[i] = grant.limits.has[i];
            parts[DEMAND_LIMIT_FIRST + i].limits.value[i] = grant.limits.value[i];
        }
        for (size_t i = 0; i < DEMAND_COUNT; i++)
            single |= denied(&envelope, &parts[i]);
        ck_assert_uint_eq(together, single);
        grant_free(&grant);
    }
}
END_TEST

static const TTest **const reading[] = {&test_whole, &test_nothing_unavailable, &test_faults,
                                        &test_foreign_text, NULL};
static const TTest **const comparing[] = {&test_compare, &test_smaller_grant_is_never_denied_more,
                                          &test_all_is_the_union_of_each, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"reading", reading}, {"comparing", comparing}};
    return unit_main("envelope", cases, AR_COUNT(cases));
}
