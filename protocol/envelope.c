/*
 * envelope.c - reading an executor's envelope, and the comparison with a grant.
 *
 * The text comes from a program that is not trusted: everything in it has a form and a bound, and
 * what is not known is a fault. The comparison is a list of questions in the order of enum demand;
 * each adds its denial or nothing, and none is skipped because another one failed.
 */
#include "protocol/envelope.h"

#include <string.h>

#define VERSION_BYTES       128
#define ISOLATION_MAX_FACTS 64
#define ISOLATION_BYTES     256
#define LIMIT_MAX           ((INT64_C(1) << 53) - 1)

/* ---- in ----------------------------------------------------------------------------------------- */

static int take_text(const char *text, char **out)
{
    *out = strdup(text);
    return *out ? 0 : -ENOMEM;
}

static int read_name(const json_t *object, const struct json_place *place, char **out,
                     struct fault *fault)
{
    const char *text = NULL;
    if (json_read_line(object, "name", place, 1, 32, &text, fault))
        return 1;
    if (!text_is_name(text))
        return json_fault(fault, place, "name", PROBLEM_MALFORMED);
    return take_text(text, out);
}

/* Printable ASCII: a version goes to terminals and logs. */
static int read_version(const json_t *object, const struct json_place *place, char **out,
                        struct fault *fault)
{
    const char *text = NULL;
    if (json_read_line(object, "version", place, 0, VERSION_BYTES, &text, fault))
        return 1;
    for (const char *p = text; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            return json_fault(fault, place, "version", PROBLEM_MALFORMED);
    return take_text(text, out);
}

static int read_language(const json_t *value, const struct json_place *place,
                         struct envelope *envelope, struct fault *fault)
{
    static const struct json_member members[] = {{"name", true}, {"version", true}};
    if (json_check_object(value, members, AR_COUNT(members), place, fault))
        return 1;
    struct envelope_language *language = &envelope->languages[envelope->language_count++];
    int error = read_name(value, place, &language->name, fault);
    if (!error)
        error = read_version(value, place, &language->version, fault);
    if (error)
        return error;
    for (size_t i = 0; i + 1 < envelope->language_count; i++)
        if (strcmp(envelope->languages[i].name, language->name) == 0)
            return json_fault(fault, place, "name", PROBLEM_REPEATED);
    return 0;
}

static int read_languages(const json_t *object, struct envelope *envelope, struct fault *fault)
{
    struct json_place here = {.member = "languages"};
    const json_t *list = json_object_get(object, "languages");
    if (!json_is_array(list))
        return json_fault(fault, &here, NULL, PROBLEM_WRONG_TYPE);
    if (json_array_size(list) > ENVELOPE_MAX_LANGUAGES)
        return json_fault(fault, &here, NULL, PROBLEM_TOO_MANY);
    envelope->languages = calloc(json_array_size(list) + 1, sizeof(*envelope->languages));
    if (!envelope->languages)
        return -ENOMEM;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_place at = {.parent = &here, .index = i};
        int error = read_language(json_array_get(list, i), &at, envelope, fault);
        if (error)
            return error;
    }
    return 0;
}

static int read_problem(const json_t *object, const struct json_place *place,
                        enum language_problem *problem, struct fault *fault)
{
    const char *word = NULL;
    if (json_read_line(object, "problem", place, 1, 32, &word, fault))
        return 1;
    if (!language_problem_from_word(word, problem))
        return json_fault(fault, place, "problem", PROBLEM_NOT_ALLOWED_WORD);
    return 0;
}

static int read_missing_language(const json_t *value, const struct json_place *place,
                                 struct envelope *envelope, struct fault *fault)
{
    static const struct json_member members[] = {{"name", true}, {"problem", true}};
    if (json_check_object(value, members, AR_COUNT(members), place, fault))
        return 1;
    struct envelope_unavailable *language = &envelope->unavailable[envelope->unavailable_count++];
    int error = read_name(value, place, &language->name, fault);
    if (!error)
        error = read_problem(value, place, &language->problem, fault);
    if (error)
        return error;
    if (envelope_has_language(envelope, language->name))
        return json_fault(fault, place, "name", PROBLEM_CONFLICT);
    for (size_t i = 0; i + 1 < envelope->unavailable_count; i++)
        if (strcmp(envelope->unavailable[i].name, language->name) == 0)
            return json_fault(fault, place, "name", PROBLEM_REPEATED);
    return 0;
}

static int read_unavailable(const json_t *object, struct envelope *envelope, struct fault *fault)
{
    struct json_place here = {.member = "unavailable"};
    const json_t *list = json_object_get(object, "unavailable");
    if (!list)
        return 0;
    if (!json_is_array(list))
        return json_fault(fault, &here, NULL, PROBLEM_WRONG_TYPE);
    if (json_array_size(list) > ENVELOPE_MAX_LANGUAGES)
        return json_fault(fault, &here, NULL, PROBLEM_TOO_MANY);
    envelope->unavailable = calloc(json_array_size(list) + 1, sizeof(*envelope->unavailable));
    if (!envelope->unavailable)
        return -ENOMEM;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_place at = {.parent = &here, .index = i};
        int error = read_missing_language(json_array_get(list, i), &at, envelope, fault);
        if (error)
            return error;
    }
    return 0;
}

static int read_network(const json_t *object, struct envelope *envelope, struct fault *fault)
{
    struct json_place here = {.member = "network"};
    const json_t *list = json_object_get(object, "network");
    if (!json_is_array(list))
        return json_fault(fault, &here, NULL, PROBLEM_WRONG_TYPE);
    if (json_array_size(list) > NETWORK_MODE_COUNT)
        return json_fault(fault, &here, NULL, PROBLEM_TOO_MANY);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_place at = {.parent = &here, .index = i};
        enum network_mode mode = NETWORK_NONE;
        const char *word;
        if (json_check_line(json_array_get(list, i), NULL, &at, 1, 32, &word, fault))
            return 1;
        if (!network_mode_from_word(word, &mode))
            return json_fault(fault, &at, NULL, PROBLEM_NOT_ALLOWED_WORD);
        if (envelope->network[mode])
            return json_fault(fault, &at, NULL, PROBLEM_REPEATED);
        envelope->network[mode] = true;
    }
    return 0;
}

static int read_filesystem(const json_t *object, struct envelope *envelope, struct fault *fault)
{
    static const struct json_member members[] = {{"read", true}, {"write", true}};
    struct json_place here = {.member = "filesystem"};
    const json_t *value = json_object_get(object, "filesystem");
    if (json_check_object(value, members, AR_COUNT(members), &here, fault) ||
        json_read_bool(value, "read", &here, &envelope->filesystem_read, fault) ||
        json_read_bool(value, "write", &here, &envelope->filesystem_write, fault))
        return 1;
    return 0;
}

static int read_limits(const json_t *object, struct envelope *envelope, struct fault *fault)
{
    struct json_member members[LIMIT_COUNT];
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        members[i] = (struct json_member){limit_word((enum limit)i), false};
    struct json_place here = {.member = "limits"};
    const json_t *value = json_object_get(object, "limits");
    if (json_check_object(value, members, LIMIT_COUNT, &here, fault))
        return 1;
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (json_read_integer(value, members[i].name, &here, 1, LIMIT_MAX,
                              &envelope->limits.value[i], fault))
            return 1;
        envelope->limits.has[i] = json_object_get(value, members[i].name) != NULL;
    }
    return 0;
}

/* Facts have plain names and are short texts or bools. */
static int check_fact(const char *name, const json_t *fact, const struct json_place *place,
                      struct fault *fault)
{
    const char *text;
    if (!text_is_identifier(name))
        return json_fault(fault, place, NULL, PROBLEM_MALFORMED);
    if (json_is_boolean(fact))
        return 0;
    return json_check_line(fact, name, place, 0, ISOLATION_BYTES, &text, fault);
}

static int read_isolation(const json_t *object, struct envelope *envelope, struct fault *fault)
{
    struct json_place here = {.member = "isolation"};
    const json_t *value = json_object_get(object, "isolation");
    const char *name;
    json_t *fact;
    if (value && !json_is_object(value))
        return json_fault(fault, &here, NULL, PROBLEM_WRONG_TYPE);
    if (json_object_size(value) > ISOLATION_MAX_FACTS)
        return json_fault(fault, &here, NULL, PROBLEM_TOO_MANY);
    json_object_foreach((json_t *)value, name, fact) {
        if (check_fact(name, fact, &here, fault))
            return 1;
    }
    envelope->isolation = value ? json_deep_copy(value) : json_object();
    return envelope->isolation ? 0 : -ENOMEM;
}

static int read_members(const json_t *value, struct envelope *envelope, struct fault *fault)
{
    int64_t contract = 0;
    if (json_read_integer(value, "contract", NULL, ENVELOPE_CONTRACT, ENVELOPE_CONTRACT, &contract,
                          fault))
        return 1;
    int error = read_name(value, NULL, &envelope->name, fault);
    if (!error)
        error = read_version(value, NULL, &envelope->version, fault);
    if (!error)
        error = read_languages(value, envelope, fault);
    if (!error)
        error = read_unavailable(value, envelope, fault);
    if (!error)
        error = read_network(value, envelope, fault);
    if (!error)
        error = json_read_bool(value, "data_api", NULL, &envelope->data_api, fault);
    if (!error)
        error = json_read_bool(value, "secrets", NULL, &envelope->secrets, fault);
    if (!error)
        error = read_filesystem(value, envelope, fault);
    if (!error)
        error = read_limits(value, envelope, fault);
    return error ? error : read_isolation(value, envelope, fault);
}

int envelope_from_json(const json_t *value, struct envelope *out, struct fault *fault)
{
    static const struct json_member members[] = {
        {"contract", true}, {"name", true},       {"version", true},     {"languages", true},
        {"network", true},  {"data_api", true},   {"secrets", true},     {"filesystem", true},
        {"limits", true},   {"isolation", false}, {"unavailable", false}};
    AR_CLEANUP(envelope_free) struct envelope envelope = {0};
    if (json_check_object(value, members, AR_COUNT(members), NULL, fault))
        return 1;
    int error = read_members(value, &envelope, fault);
    if (!error)
        error = envelope_seal(&envelope);
    if (error)
        return error;
    *out = envelope;
    envelope = (struct envelope){0};
    return 0;
}

int envelope_parse(const char *text, size_t length, struct envelope *out, struct fault *fault)
{
    if (length > ENVELOPE_MAX_BYTES)
        return json_fault(fault, NULL, NULL, PROBLEM_TOO_LONG);
    AR_CLEANUP(json_document_free) struct json_document document;
    int outcome = json_parse(text, length, &document);
    if (outcome < 0)
        return outcome;
    if (outcome == JSON_BROKEN)
        return json_fault(fault, NULL, NULL, PROBLEM_MALFORMED);
    if (outcome == JSON_FAULTY) {
        *fault = document.fault;
        return 1;
    }
    return envelope_from_json(document.root, out, fault);
}

void envelope_free(struct envelope *envelope)
{
    free(envelope->name);
    free(envelope->version);
    for (size_t i = 0; i < envelope->language_count; i++) {
        free(envelope->languages[i].name);
        free(envelope->languages[i].version);
    }
    free(envelope->languages);
    for (size_t i = 0; i < envelope->unavailable_count; i++)
        free(envelope->unavailable[i].name);
    free(envelope->unavailable);
    json_decref(envelope->isolation);
    *envelope = (struct envelope){0};
}

/* ---- out ---------------------------------------------------------------------------------------- */

static json_t *languages_to_json(const struct envelope *envelope)
{
    AR_AUTO_JSON json_t *list = json_array();
    for (size_t i = 0; i < envelope->language_count; i++) {
        const struct envelope_language *language = &envelope->languages[i];
        json_t *item =
            json_pack("{s:s, s:s}", "name", language->name, "version", language->version);
        if (json_array_append_new(list, item))
            return NULL;
    }
    return AR_TAKE(list);
}

static json_t *unavailable_to_json(const struct envelope *envelope)
{
    AR_AUTO_JSON json_t *list = json_array();
    for (size_t i = 0; i < envelope->unavailable_count; i++) {
        const struct envelope_unavailable *language = &envelope->unavailable[i];
        json_t *item = json_pack("{s:s, s:s}", "name", language->name, "problem",
                                 language_problem_word(language->problem));
        if (json_array_append_new(list, item))
            return NULL;
    }
    return AR_TAKE(list);
}

static json_t *modes_to_json(const struct envelope *envelope)
{
    AR_AUTO_JSON json_t *list = json_array();
    for (size_t i = 0; i < NETWORK_MODE_COUNT; i++)
        if (envelope->network[i] &&
            json_array_append_new(list, json_string(network_mode_word((enum network_mode)i))))
            return NULL;
    return AR_TAKE(list);
}

json_t *envelope_to_json(const struct envelope *envelope)
{
    json_t *isolation = envelope->isolation ? json_incref(envelope->isolation) : json_object();
    AR_AUTO_JSON json_t *value =
        json_pack("{s:i, s:s, s:s, s:o, s:o, s:b, s:b, s:{s:b, s:b}, s:o, s:o}", "contract",
                  ENVELOPE_CONTRACT, "name", envelope->name, "version", envelope->version,
                  "languages", languages_to_json(envelope), "network", modes_to_json(envelope),
                  "data_api", envelope->data_api, "secrets", envelope->secrets, "filesystem",
                  "read", envelope->filesystem_read, "write", envelope->filesystem_write, "limits",
                  limits_to_json(&envelope->limits), "isolation", isolation);
    if (envelope->unavailable_count > 0 &&
        json_object_set_new(value, "unavailable", unavailable_to_json(envelope)))
        return NULL;
    return AR_TAKE(value);
}

int envelope_seal(struct envelope *envelope)
{
    AR_AUTO_JSON json_t *value = envelope_to_json(envelope);
    AR_AUTO_FREE char *text = json_canonical(value);
    return text ? digest_hex(text, strlen(text), envelope->sha256) : -ENOMEM;
}

bool envelope_has_language(const struct envelope *envelope, const char *language)
{
    for (size_t i = 0; i < envelope->language_count; i++)
        if (strcmp(envelope->languages[i].name, language) == 0)
            return true;
    return false;
}

/* ---- comparison --------------------------------------------------------------------------------- */

/* Adds a denial; takes requested and offered, either of which may be NULL for want of memory. */
static int deny(struct denials *denials, enum demand demand, json_t *requested, json_t *offered)
{
    denials->items[denials->count++] =
        (struct denial){.demand = demand, .requested = requested, .offered = offered};
    return requested && offered ? 0 : -ENOMEM;
}

static json_t *texts_to_json(const struct text_list *list)
{
    AR_AUTO_JSON json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(array, json_string(list->items[i])))
            return NULL;
    return AR_TAKE(array);
}

static json_t *names_to_json(const struct envelope *envelope)
{
    AR_AUTO_JSON json_t *array = json_array();
    for (size_t i = 0; i < envelope->language_count; i++)
        if (json_array_append_new(array, json_string(envelope->languages[i].name)))
            return NULL;
    return AR_TAKE(array);
}

static int compare_language(const struct envelope *envelope, const char *language,
                            struct denials *denials)
{
    if (envelope_has_language(envelope, language))
        return 0;
    return deny(denials, DEMAND_LANGUAGE, json_string(language), names_to_json(envelope));
}

static int compare_network(const struct envelope *envelope, const struct grant *grant,
                           struct denials *denials)
{
    if (grant->network == NETWORK_NONE || envelope->network[grant->network])
        return 0;
    return deny(denials, DEMAND_NETWORK, json_string(network_mode_word(grant->network)),
                modes_to_json(envelope));
}

/* A list that is asked for needs an executor that can give any of that kind. */
static int compare_list(enum demand demand, const struct text_list *asked, bool offered,
                        struct denials *denials)
{
    if (asked->count == 0 || offered)
        return 0;
    return deny(denials, demand, texts_to_json(asked), json_null());
}

static int compare_limit(enum limit limit, const struct limits *asked, const struct limits *offered,
                         struct denials *denials)
{
    if (!asked->has[limit])
        return 0;
    if (offered->has[limit] && asked->value[limit] <= offered->value[limit])
        return 0;
    enum demand demand = (enum demand)(DEMAND_LIMIT_FIRST + (unsigned int)limit);
    return deny(denials, demand, json_integer(asked->value[limit]),
                offered->has[limit] ? json_integer(offered->value[limit]) : json_null());
}

int envelope_compare(const struct envelope *envelope, const char *language,
                     const struct grant *grant, struct denials *denials)
{
    *denials = (struct denials){0};
    int error = compare_language(envelope, language, denials);
    if (!error)
        error = compare_network(envelope, grant, denials);
    if (!error)
        error = compare_list(DEMAND_DATA_API, &grant->data_api, envelope->data_api, denials);
    if (!error)
        error = compare_list(DEMAND_SECRETS, &grant->secrets, envelope->secrets, denials);
    if (!error)
        error =
            compare_list(DEMAND_FILESYSTEM_READ, &grant->read, envelope->filesystem_read, denials);
    if (!error)
        error = compare_list(DEMAND_FILESYSTEM_WRITE, &grant->write, envelope->filesystem_write,
                             denials);
    for (size_t i = 0; !error && i < LIMIT_COUNT; i++)
        error = compare_limit((enum limit)i, &grant->limits, &envelope->limits, denials);
    if (error)
        denials_free(denials);
    return error;
}

int denials_add_list(struct denials *denials, enum demand demand, const struct text_list *requested)
{
    return deny(denials, demand, texts_to_json(requested), json_null());
}

void denials_free(struct denials *denials)
{
    for (size_t i = 0; i < denials->count; i++) {
        json_decref(denials->items[i].requested);
        json_decref(denials->items[i].offered);
    }
    *denials = (struct denials){0};
}

json_t *denials_to_json(const struct denials *denials)
{
    AR_AUTO_JSON json_t *list = json_array();
    for (size_t i = 0; i < denials->count; i++) {
        const struct denial *denial = &denials->items[i];
        json_t *item = json_pack("{s:s, s:O, s:O}", "demand", demand_word(denial->demand),
                                 "requested", denial->requested, "offered", denial->offered);
        if (json_array_append_new(list, item))
            return NULL;
    }
    return AR_TAKE(list);
}
