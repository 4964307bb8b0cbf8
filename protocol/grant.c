/*
 * grant.c - reading, filling and writing a grant.
 *
 * Reading is all or nothing: a typo in a member's name or a contradiction is a fault, never a
 * smaller or larger grant. Lists keep their order while they are read, so that a fault can point at
 * the item as the client numbered it; they are sorted only when they are written.
 */
#include "protocol/grant.h"

#include <string.h>

#define LIMIT_MAX    ((INT64_C(1) << 53) - 1) /* what JSON readers keep exactly */
#define WALL_MAX_MS  86400000                 /* a day */
#define HOST_BYTES   (2 + 253 + 6)
#define METHOD_BYTES 128
#define SECRET_BYTES 64
#define PATH_BYTES   4095

/* A list of texts of one form. */
struct list_rule {
    const char *member;
    size_t max_items;
    size_t max_bytes;
    bool (*is_right)(const char *text);
};

static const struct list_rule hosts_rule = {"hosts", GRANT_MAX_HOSTS, HOST_BYTES,
                                            text_is_host_pattern};
static const struct list_rule data_api_rule = {"data_api", GRANT_MAX_METHODS, METHOD_BYTES,
                                               text_is_api_method};
static const struct list_rule secrets_rule = {"secrets", GRANT_MAX_SECRETS, SECRET_BYTES,
                                              text_is_identifier};
static const struct list_rule secrets_env_rule = {"secrets_env", GRANT_MAX_SECRETS, SECRET_BYTES,
                                                  text_is_identifier};
static const struct list_rule read_rule = {"read", GRANT_MAX_PATHS, PATH_BYTES,
                                           text_is_canonical_path};
static const struct list_rule write_rule = {"write", GRANT_MAX_PATHS, PATH_BYTES,
                                            text_is_canonical_path};

static int read_item(const json_t *item, const struct list_rule *rule,
                     const struct json_place *place, struct text_list *out, struct fault *fault)
{
    const char *text;
    if (json_check_line(item, NULL, place, 1, rule->max_bytes, &text, fault))
        return 1;
    if (!rule->is_right(text))
        return json_fault(fault, place, NULL, PROBLEM_MALFORMED);
    if (text_list_has(out, text))
        return json_fault(fault, place, NULL, PROBLEM_REPEATED);
    return text_list_add(out, text);
}

/* Reads an optional list into *out, which stays empty when it is absent. */
static int read_list(const json_t *object, const struct list_rule *rule,
                     const struct json_place *place, struct text_list *out, struct fault *fault)
{
    const json_t *list = json_object_get(object, rule->member);
    if (!list)
        return 0;
    if (!json_is_array(list))
        return json_fault(fault, place, rule->member, PROBLEM_WRONG_TYPE);
    if (json_array_size(list) > rule->max_items)
        return json_fault(fault, place, rule->member, PROBLEM_TOO_MANY);
    struct json_place here = {.parent = place, .member = rule->member};
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_place at = {.parent = &here, .index = i};
        int error = read_item(json_array_get(list, i), rule, &at, out, fault);
        if (error)
            return error;
    }
    return 0;
}

static int read_network(const json_t *grant, const struct json_place *place, struct grant *out,
                        struct fault *fault)
{
    static const struct json_member members[] = {{"mode", true}, {"hosts", false}};
    struct json_place here = {.parent = place, .member = "network"};
    const json_t *network = json_object_get(grant, "network");
    if (!network)
        return 0;
    if (json_check_object(network, members, AR_COUNT(members), &here, fault))
        return 1;
    const json_t *mode = json_object_get(network, "mode");
    if (!json_is_string(mode))
        return json_fault(fault, &here, "mode", PROBLEM_WRONG_TYPE);
    if (strlen(json_string_value(mode)) != json_string_length(mode) ||
        !network_mode_from_word(json_string_value(mode), &out->network))
        return json_fault(fault, &here, "mode", PROBLEM_NOT_ALLOWED_WORD);
    int error = read_list(network, &hosts_rule, &here, &out->hosts, fault);
    if (error)
        return error;
    bool has_hosts = json_object_get(network, "hosts") != NULL;
    if (out->network != NETWORK_ALLOWLIST)
        return has_hosts ? json_fault(fault, &here, "hosts", PROBLEM_CONFLICT) : 0;
    if (out->hosts.count == 0)
        return json_fault(fault, &here, "hosts", has_hosts ? PROBLEM_EMPTY : PROBLEM_MISSING);
    return 0;
}

/* A variable can only be made of a secret that is granted. */
static int check_variables(const struct grant *grant, const struct json_place *place,
                           struct fault *fault)
{
    struct json_place list = {.parent = place, .member = "secrets_env"};
    for (size_t i = 0; i < grant->secrets_env.count; i++) {
        struct json_place at = {.parent = &list, .index = i};
        if (!text_list_has(&grant->secrets, grant->secrets_env.items[i]))
            return json_fault(fault, &at, NULL, PROBLEM_CONFLICT);
    }
    return 0;
}

/* A path in both lists would be writable or not, depending on who reads it. */
static int check_paths_differ(const struct grant *grant, const struct json_place *place,
                              struct fault *fault)
{
    struct json_place list = {.parent = place, .member = "write"};
    for (size_t i = 0; i < grant->write.count; i++) {
        struct json_place at = {.parent = &list, .index = i};
        if (text_list_has(&grant->read, grant->write.items[i]))
            return json_fault(fault, &at, NULL, PROBLEM_CONFLICT);
    }
    return 0;
}

static int read_filesystem(const json_t *grant, const struct json_place *place, struct grant *out,
                           struct fault *fault)
{
    static const struct json_member members[] = {{"read", false}, {"write", false}};
    struct json_place here = {.parent = place, .member = "filesystem"};
    const json_t *filesystem = json_object_get(grant, "filesystem");
    if (!filesystem)
        return 0;
    if (json_check_object(filesystem, members, AR_COUNT(members), &here, fault))
        return 1;
    int error = read_list(filesystem, &read_rule, &here, &out->read, fault);
    if (!error)
        error = read_list(filesystem, &write_rule, &here, &out->write, fault);
    return error ? error : check_paths_differ(out, &here, fault);
}

static int read_limits(const json_t *grant, const struct json_place *place, struct grant *out,
                       struct fault *fault)
{
    struct json_member members[LIMIT_COUNT];
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        members[i] = (struct json_member){limit_word((enum limit)i), false};
    struct json_place here = {.parent = place, .member = "limits"};
    const json_t *limits = json_object_get(grant, "limits");
    if (!limits)
        return 0;
    if (json_check_object(limits, members, LIMIT_COUNT, &here, fault))
        return 1;
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        int64_t max = i == LIMIT_WALL_MS ? WALL_MAX_MS : LIMIT_MAX;
        if (json_read_integer(limits, members[i].name, &here, 1, max, &out->limits.value[i], fault))
            return 1;
        out->limits.has[i] = json_object_get(limits, members[i].name) != NULL;
    }
    return 0;
}

int grant_parse(const json_t *value, const struct json_place *place, struct grant *out,
                struct fault *fault)
{
    static const struct json_member members[] = {{"network", false},    {"data_api", false},
                                                 {"secrets", false},    {"secrets_env", false},
                                                 {"filesystem", false}, {"limits", false}};
    AR_CLEANUP(grant_free) struct grant grant = {0};
    *out = grant;
    if (!value)
        return 0;
    if (json_check_object(value, members, AR_COUNT(members), place, fault))
        return 1;
    int error = read_network(value, place, &grant, fault);
    if (!error)
        error = read_list(value, &data_api_rule, place, &grant.data_api, fault);
    if (!error)
        error = read_list(value, &secrets_rule, place, &grant.secrets, fault);
    if (!error)
        error = read_list(value, &secrets_env_rule, place, &grant.secrets_env, fault);
    if (!error)
        error = check_variables(&grant, place, fault);
    if (!error)
        error = read_filesystem(value, place, &grant, fault);
    if (!error)
        error = read_limits(value, place, &grant, fault);
    if (error)
        return error;
    *out = grant;
    grant = (struct grant){0};
    return 0;
}

void grant_free(struct grant *grant)
{
    text_list_free(&grant->hosts);
    text_list_free(&grant->data_api);
    text_list_free(&grant->secrets);
    text_list_free(&grant->secrets_env);
    text_list_free(&grant->read);
    text_list_free(&grant->write);
    *grant = (struct grant){0};
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_list(struct text_list *list)
{
    if (list->count > 1)
        qsort(list->items, list->count, sizeof(*list->items), compare_texts);
}

void grant_fill(struct grant *grant, const struct limits *defaults, const struct limits *offered)
{
    struct text_list *lists[] = {&grant->hosts,       &grant->data_api, &grant->secrets,
                                 &grant->secrets_env, &grant->read,     &grant->write};
    for (size_t i = 0; i < AR_COUNT(lists); i++)
        sort_list(lists[i]);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (grant->limits.has[i] || !defaults->has[i] || !offered->has[i])
            continue;
        int64_t value = defaults->value[i];
        grant->limits.has[i] = true;
        grant->limits.value[i] = value < offered->value[i] ? value : offered->value[i];
    }
}

/* ---- out ---------------------------------------------------------------------------------------- */

/* A sorted copy without repetition. */
static json_t *list_to_json(const struct text_list *list)
{
    AR_AUTO_FREE const char **sorted = calloc(list->count + 1, sizeof(*sorted));
    AR_AUTO_JSON json_t *array = json_array();
    if (!sorted || !array)
        return NULL;
    for (size_t i = 0; i < list->count; i++)
        sorted[i] = list->items[i];
    qsort(sorted, list->count, sizeof(*sorted), compare_texts);
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            continue;
        if (json_array_append_new(array, json_string(sorted[i])))
            return NULL;
    }
    return AR_TAKE(array);
}

json_t *limits_to_json(const struct limits *limits)
{
    AR_AUTO_JSON json_t *object = json_object();
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if (limits->has[i] &&
            json_object_set_new(object, limit_word((enum limit)i), json_integer(limits->value[i])))
            return NULL;
    return AR_TAKE(object);
}

/* As it can be read back: hosts only with an allow-list. */
static json_t *network_to_json(const struct grant *grant)
{
    AR_AUTO_JSON json_t *network = json_object();
    if (json_object_set_new(network, "mode", json_string(network_mode_word(grant->network))))
        return NULL;
    if (grant->network == NETWORK_ALLOWLIST &&
        json_object_set_new(network, "hosts", list_to_json(&grant->hosts)))
        return NULL;
    return AR_TAKE(network);
}

static json_t *filesystem_to_json(const struct grant *grant)
{
    AR_AUTO_JSON json_t *filesystem = json_object();
    if (json_object_set_new(filesystem, "read", list_to_json(&grant->read)) ||
        json_object_set_new(filesystem, "write", list_to_json(&grant->write)))
        return NULL;
    return AR_TAKE(filesystem);
}

json_t *grant_to_json(const struct grant *grant)
{
    AR_AUTO_JSON json_t *object = json_object();
    if (json_object_set_new(object, "network", network_to_json(grant)) ||
        json_object_set_new(object, "data_api", list_to_json(&grant->data_api)) ||
        json_object_set_new(object, "secrets", list_to_json(&grant->secrets)) ||
        json_object_set_new(object, "filesystem", filesystem_to_json(grant)) ||
        json_object_set_new(object, "limits", limits_to_json(&grant->limits)))
        return NULL;
    if (grant->secrets_env.count > 0 &&
        json_object_set_new(object, "secrets_env", list_to_json(&grant->secrets_env)))
        return NULL;
    return AR_TAKE(object);
}
