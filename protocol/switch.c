/*
 * switch.c - see switch.h.
 */
#include "protocol/switch.h"

#include "protocol/text.h"

#include <string.h>

static void copy(char *out, size_t room, const char *text)
{
    size_t length = strnlen(text, room - 1);
    memcpy(out, text, length);
    out[length] = 0;
}

static int read_scope(const json_t *object, enum switch_scope *out, struct fault *fault)
{
    const char *word = NULL;
    if (json_read_line(object, "scope", NULL, 1, 16, &word, fault))
        return 1;
    if (!word)
        return json_fault(fault, NULL, "scope", PROBLEM_MISSING);
    return switch_scope_from_word(word, out)
               ? 0
               : json_fault(fault, NULL, "scope", PROBLEM_NOT_ALLOWED_WORD);
}

static int read_key(const json_t *object, struct switch_key *key, struct fault *fault)
{
    const char *name = NULL;
    if (read_scope(object, &key->scope, fault) ||
        json_read_line(object, "name", NULL, 1, SWITCH_NAME_BYTES, &name, fault))
        return 1;
    if (key->scope == SWITCH_ALL && name)
        return json_fault(fault, NULL, "name", PROBLEM_CONFLICT);
    if (key->scope != SWITCH_ALL && !name)
        return json_fault(fault, NULL, "name", PROBLEM_MISSING);
    if (name && key->scope != SWITCH_COMPANY && !text_is_name(name))
        return json_fault(fault, NULL, "name", PROBLEM_MALFORMED);
    copy(key->name, sizeof key->name, name ? name : "");
    return 0;
}

static int read_why(const json_t *object, char out[SWITCH_WHY_BYTES + 1], struct fault *fault)
{
    const char *why = NULL;
    if (json_read_line(object, "why", NULL, 1, SWITCH_WHY_BYTES, &why, fault))
        return 1;
    if (!why)
        return json_fault(fault, NULL, "why", PROBLEM_MISSING);
    copy(out, SWITCH_WHY_BYTES + 1, why);
    return 0;
}

int switch_order_parse(const json_t *params, bool disable, struct switch_order *out,
                       struct fault *fault)
{
    static const struct json_member members[] = {
        {"scope", true}, {"name", false}, {"why", true}, {"now", false}};
    *out = (struct switch_order){0};
    if (json_check_object(params, members, AR_COUNT(members) - (disable ? 0 : 1), NULL, fault) ||
        read_key(params, &out->key, fault) || read_why(params, out->why, fault))
        return 1;
    return json_read_bool(params, "now", NULL, &out->now, fault);
}

bool switch_key_equal(const struct switch_key *one, const struct switch_key *other)
{
    return one->scope == other->scope && strcmp(one->name, other->name) == 0;
}

json_t *switch_key_name(const struct switch_key *key)
{
    return key->scope == SWITCH_ALL ? json_null() : json_string(key->name);
}

char *switch_off_text(const struct switch_off *off)
{
    AR_AUTO_JSON json_t *value = json_pack(
        "{s:s, s:s, s:s, s:I, s:I}", "scope", switch_scope_word(off->key.scope), "why", off->why,
        "client", off->client, "uid", (json_int_t)off->uid, "since_us", (json_int_t)off->since_us);
    if (!value || (off->key.scope != SWITCH_ALL &&
                   json_object_set_new(value, "name", json_string(off->key.name)) != 0))
        return NULL;
    return json_canonical(value);
}

static int read_off(const json_t *value, struct switch_off *out, struct fault *fault)
{
    static const struct json_member members[] = {{"scope", true}, {"name", false},
                                                 {"why", true},   {"client", true},
                                                 {"uid", true},   {"since_us", true}};
    const char *client = NULL;
    if (json_check_object(value, members, AR_COUNT(members), NULL, fault) ||
        read_key(value, &out->key, fault) || read_why(value, out->why, fault) ||
        json_read_line(value, "client", NULL, 1, sizeof out->client - 1, &client, fault) ||
        json_read_integer(value, "uid", NULL, 0, UINT32_MAX, &out->uid, fault) ||
        json_read_integer(value, "since_us", NULL, 0, INT64_C(1) << 53, &out->since_us, fault))
        return 1;
    copy(out->client, sizeof out->client, client);
    return 0;
}

int switch_off_parse(const char *text, struct switch_off *out)
{
    struct json_document document = {0};
    struct fault fault = {0};
    *out = (struct switch_off){0};
    int rc = json_parse(text, strlen(text), &document);
    if (rc == JSON_OK)
        rc = read_off(document.root, out, &fault);
    json_document_free(&document);
    return rc > 0 ? 1 : rc;
}
