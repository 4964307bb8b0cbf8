/*
 * check_vocabulary.c - every word of every table: there and back, held against the schemas, and
 * explained in docs/protocol.md. A word that is added in one place only fails here.
 */
#include "protocol/rpc.h"
#include "protocol/spec.h"
#include "protocol/vocabulary.h"
#include "tests/unit/unit.h"

/* A vocabulary with its functions brought to one form; first: value of the first word. */
struct vocabulary {
    const char *name; /* in vocabulary.schema.json */
    size_t first, count;
    const char *(*word)(size_t value);
    bool (*from_word)(const char *word, size_t *out); /* NULL: one way only */
};

/* NOLINTBEGIN(bugprone-macro-parentheses): the argument is the name of a type */
#define ONE_WAY(type, word_function)                \
    static const char *word_of_##type(size_t value) \
    {                                               \
        return word_function((enum type)value);     \
    }
#define BOTH_WAYS(type, word_function, from_function)         \
    ONE_WAY(type, word_function)                              \
    static bool type##_of_word(const char *word, size_t *out) \
    {                                                         \
        enum type value;                                      \
        bool known = from_function(word, &value);             \
        *out = known ? (size_t)value : SIZE_MAX;              \
        return known;                                         \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

BOTH_WAYS(status, status_word, status_from_word)
BOTH_WAYS(reason, reason_word, reason_from_word)
BOTH_WAYS(limit, limit_word, limit_from_word)
BOTH_WAYS(demand, demand_word, demand_from_word)
BOTH_WAYS(network_mode, network_mode_word, network_mode_from_word)
BOTH_WAYS(output_problem, output_problem_word, output_problem_from_word)
BOTH_WAYS(language_problem, language_problem_word, language_problem_from_word)
BOTH_WAYS(outcome, outcome_word, outcome_from_word)
BOTH_WAYS(event_kind, event_kind_word, event_kind_from_word)
BOTH_WAYS(switch_scope, switch_scope_word, switch_scope_from_word)
ONE_WAY(problem, problem_word)
ONE_WAY(rpc_method, rpc_method_word)

static const struct vocabulary vocabularies[] = {
    {"status", STATUS_NONE + 1, STATUS_COUNT, word_of_status, status_of_word},
    {"reason", REASON_NONE + 1, REASON_COUNT, word_of_reason, reason_of_word},
    {"limit", 0, LIMIT_COUNT, word_of_limit, limit_of_word},
    {"demand", 0, DEMAND_COUNT, word_of_demand, demand_of_word},
    {"network_mode", 0, NETWORK_MODE_COUNT, word_of_network_mode, network_mode_of_word},
    {"problem", PROBLEM_NONE + 1, PROBLEM_COUNT, word_of_problem, NULL},
    {"output_problem", OUTPUT_OK + 1, OUTPUT_PROBLEM_COUNT, word_of_output_problem,
     output_problem_of_word},
    {"language_problem", LANGUAGE_OK + 1, LANGUAGE_PROBLEM_COUNT, word_of_language_problem,
     language_problem_of_word},
    {"outcome", 0, OUTCOME_COUNT, word_of_outcome, outcome_of_word},
    {"event_kind", 0, EVENT_KIND_COUNT, word_of_event_kind, event_kind_of_word},
    {"switch_scope", 0, SWITCH_SCOPE_COUNT, word_of_switch_scope, switch_scope_of_word},
    {"method", 0, RPC_METHOD_COUNT, word_of_rpc_method, NULL},
};

/* The path of a file of the tree; tests run at its top, or are told where it is. */
static FILE *open_source(const char *path)
{
    const char *top = getenv("AUDITRUN_SOURCE");
    char whole[4096];
    (void)snprintf(whole, sizeof(whole), "%s/%s", top ? top : ".", path);
    return fopen(whole, "r");
}

static json_t *load_schema(const char *path)
{
    FILE *file = open_source(path);
    ck_assert_msg(file != NULL, "cannot open %s", path);
    json_error_t error;
    json_t *schema = json_loadf(file, 0, &error);
    (void)fclose(file);
    ck_assert_msg(schema != NULL, "%s: %s", path, error.text);
    return schema;
}

START_TEST(test_there_and_back)
{
    for (size_t v = 0; v < AR_COUNT(vocabularies); v++) {
        const struct vocabulary *vocabulary = &vocabularies[v];
        for (size_t i = vocabulary->first; i < vocabulary->count; i++) {
            const char *word = vocabulary->word(i);
            size_t value;
            ck_assert_msg(word && word[0], "%s %zu has no word", vocabulary->name, i);
            ck_assert_uint_eq(strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_."), strlen(word));
            for (size_t j = vocabulary->first; j < i; j++)
                ck_assert_str_ne(word, vocabulary->word(j));
            if (vocabulary->from_word)
                ck_assert_msg(vocabulary->from_word(word, &value) && value == i, "%s: %s",
                              vocabulary->name, word);
        }
    }
}
END_TEST

START_TEST(test_nothing_else)
{
    static const char *const strangers[] = {"",        "SUCCEEDED", "succeeded ", "none\n",
                                            "unknown", "limits.",   "limits",     NULL};
    for (size_t v = 0; v < AR_COUNT(vocabularies); v++) {
        size_t value;
        for (size_t i = 0; vocabularies[v].from_word && strangers[i]; i++)
            ck_assert_msg(!vocabularies[v].from_word(strangers[i], &value), "%s: '%s'",
                          vocabularies[v].name, strangers[i]);
    }
    ck_assert_str_eq(status_word(STATUS_NONE), "");
    ck_assert_str_eq(reason_word(REASON_NONE), "");
    ck_assert_str_eq(problem_word(PROBLEM_NONE), "");
    ck_assert_str_eq(output_problem_word(OUTPUT_OK), "");
    ck_assert_str_eq(language_problem_word(LANGUAGE_OK), "");
}
END_TEST

START_TEST(test_limits_are_demands)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        char word[64];
        enum demand demand;
        (void)snprintf(word, sizeof(word), "limits.%s", limit_word((enum limit)i));
        ck_assert(demand_from_word(word, &demand));
        ck_assert_uint_eq(demand, DEMAND_LIMIT_FIRST + i);
    }
}
END_TEST

/* Each reason has one status, and each status has a reason. */
START_TEST(test_reasons_belong)
{
    bool has_reason[STATUS_COUNT] = {false};
    ck_assert_int_eq(reason_status(REASON_NONE), STATUS_NONE);
    for (size_t i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        enum status status = reason_status((enum reason)i);
        ck_assert_int_ne(status, STATUS_NONE);
        has_reason[status] = true;
    }
    for (size_t i = STATUS_NONE + 1; i < STATUS_COUNT; i++)
        ck_assert_msg(has_reason[i], "%s", status_word((enum status)i));
}
END_TEST

START_TEST(test_schema_has_the_same_words)
{
    AR_AUTO_JSON json_t *schema = load_schema("protocol/schema/vocabulary.schema.json");
    const json_t *definitions = json_object_get(schema, "$defs");
    for (size_t v = 0; v < AR_COUNT(vocabularies); v++) {
        const struct vocabulary *vocabulary = &vocabularies[v];
        const json_t *words =
            json_object_get(json_object_get(definitions, vocabulary->name), "enum");
        ck_assert_msg(json_array_size(words) == vocabulary->count - vocabulary->first, "%s",
                      vocabulary->name);
        for (size_t i = vocabulary->first; i < vocabulary->count; i++)
            ck_assert_str_eq(json_string_value(json_array_get(words, i - vocabulary->first)),
                             vocabulary->word(i));
    }
}
END_TEST

START_TEST(test_schema_has_the_same_endings)
{
    AR_AUTO_JSON json_t *schema = load_schema("protocol/schema/vocabulary.schema.json");
    const json_t *endings =
        json_object_get(json_object_get(json_object_get(schema, "$defs"), "ending"), "oneOf");
    size_t reasons = 0;
    ck_assert_uint_eq(json_array_size(endings), STATUS_COUNT - 1);
    for (size_t i = 0; i < json_array_size(endings); i++) {
        const json_t *properties = json_object_get(json_array_get(endings, i), "properties");
        const char *status =
            json_string_value(json_object_get(json_object_get(properties, "status"), "const"));
        const json_t *words = json_object_get(json_object_get(properties, "reason"), "enum");
        ck_assert_str_eq(status, status_word((enum status)(i + 1)));
        for (size_t j = 0; j < json_array_size(words); j++, reasons++) {
            enum reason reason;
            ck_assert(reason_from_word(json_string_value(json_array_get(words, j)), &reason));
            ck_assert_uint_eq(reason_status(reason), i + 1);
        }
    }
    ck_assert_uint_eq(reasons, REASON_COUNT - 1);
}
END_TEST

/* The members of limits, of usage and of the record are written out in schemas of their own. */
START_TEST(test_schema_has_the_same_members)
{
    AR_AUTO_JSON json_t *limits = load_schema("protocol/schema/limits.schema.json");
    AR_AUTO_JSON json_t *envelope = load_schema("protocol/schema/envelope.schema.json");
    const json_t *of_envelope = json_object_get(
        json_object_get(json_object_get(envelope, "properties"), "limits"), "properties");
    const json_t *of_grant = json_object_get(limits, "properties");
    ck_assert_uint_eq(json_object_size(of_grant), LIMIT_COUNT);
    ck_assert_uint_eq(json_object_size(of_envelope), LIMIT_COUNT);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        ck_assert_ptr_nonnull(json_object_get(of_grant, limit_word((enum limit)i)));
        ck_assert_ptr_nonnull(json_object_get(of_envelope, limit_word((enum limit)i)));
    }
    struct usage known = {0, 0, 0, 0, 0, 0, {0, 0, 0, 0}, {0, 0, 0, 0}};
    AR_AUTO_JSON json_t *usage = load_schema("protocol/schema/usage.schema.json");
    AR_AUTO_JSON json_t *members = usage_to_json(&known);
    const char *name;
    json_t *ignored;
    json_object_foreach(members, name, ignored) {
        ck_assert_ptr_nonnull(json_object_get(json_object_get(usage, "properties"), name));
    }
    ck_assert_uint_eq(json_object_size(members),
                      json_object_size(json_object_get(usage, "properties")));
}
END_TEST

/* The error lines of the schema have our codes and messages. */
START_TEST(test_schema_has_the_same_errors)
{
    static const enum rpc_code codes[] = {
        RPC_PARSE_ERROR,    RPC_INVALID_REQUEST, RPC_METHOD_NOT_FOUND, RPC_INVALID_PARAMS,
        RPC_INTERNAL_ERROR, RPC_AUDIT_FAILURE,   RPC_FORBIDDEN,        RPC_NOT_FOUND};
    AR_AUTO_JSON json_t *schema = load_schema("protocol/schema/error-line.schema.json");
    const json_t *errors =
        json_object_get(json_object_get(json_object_get(schema, "properties"), "error"), "oneOf");
    ck_assert_uint_eq(json_array_size(errors), AR_COUNT(codes));
    for (size_t i = 0; i < AR_COUNT(codes); i++) {
        const json_t *properties = json_object_get(json_array_get(errors, i), "properties");
        ck_assert_int_eq(
            json_integer_value(json_object_get(json_object_get(properties, "code"), "const")),
            codes[i]);
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(properties, "message"), "const")),
            rpc_message(codes[i]));
    }
}
END_TEST

/* The whole text, malloc'd. */
static char *read_source(const char *path)
{
    FILE *file = open_source(path);
    ck_assert_msg(file != NULL, "cannot open %s", path);
    char *text = calloc(1, (1u << 20) + 1);
    ck_assert_ptr_nonnull(text);
    size_t length = fread(text, 1, 1u << 20, file);
    (void)fclose(file);
    ck_assert_uint_lt(length, 1u << 20);
    return text;
}

/* Each word stands in its document as code: `word` or "word". */
START_TEST(test_document_explains_each)
{
    AR_AUTO_FREE char *protocol = read_source("docs/protocol.md");
    AR_AUTO_FREE char *executors = read_source("docs/executors.md");
    AR_AUTO_FREE char *ledger = read_source("docs/ledger.md");
    for (size_t v = 0; v < AR_COUNT(vocabularies); v++) {
        const char *text = strcmp(vocabularies[v].name, "outcome") == 0      ? executors
                           : strcmp(vocabularies[v].name, "event_kind") == 0 ? ledger
                                                                             : protocol;
        for (size_t i = vocabularies[v].first; i < vocabularies[v].count; i++) {
            char as_code[80], as_text[80];
            (void)snprintf(as_code, sizeof(as_code), "`%s`", vocabularies[v].word(i));
            (void)snprintf(as_text, sizeof(as_text), "\"%s\"", vocabularies[v].word(i));
            ck_assert_msg(strstr(text, as_code) || strstr(text, as_text),
                          "%s: not in the documents: %s", vocabularies[v].name,
                          vocabularies[v].word(i));
        }
    }
}
END_TEST

/* Whoever has only the man page finds each way in which a run can end, and each method. */
START_TEST(test_manual_has_each)
{
    static const char *const wanted[] = {"status", "reason", "method", "switch_scope"};
    AR_AUTO_FREE char *page = read_source("man/auditrun-protocol.7");
    for (size_t v = 0; v < AR_COUNT(vocabularies); v++) {
        bool is_wanted = false;
        for (size_t i = 0; i < AR_COUNT(wanted); i++)
            is_wanted |= strcmp(vocabularies[v].name, wanted[i]) == 0;
        for (size_t i = vocabularies[v].first; is_wanted && i < vocabularies[v].count; i++)
            ck_assert_msg(strstr(page, vocabularies[v].word(i)) != NULL, "%s is not in the manual",
                          vocabularies[v].word(i));
    }
}
END_TEST

static const TTest **const tables[] = {&test_there_and_back, &test_nothing_else,
                                       &test_limits_are_demands, &test_reasons_belong, NULL};
static const TTest **const schemas[] = {&test_schema_has_the_same_words,
                                        &test_schema_has_the_same_endings,
                                        &test_schema_has_the_same_members,
                                        &test_schema_has_the_same_errors,
                                        &test_document_explains_each,
                                        &test_manual_has_each,
                                        NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"tables", tables}, {"schemas", schemas}};
    return unit_main("vocabulary", cases, AR_COUNT(cases));
}
