/*
 * json.c - strict parsing, strict readers and canonical text over jansson.
 *
 * A text is scanned once (json_scan.c), what jansson cannot take is overwritten in a copy, and then
 * jansson parses with duplicates refused. Each step is linear; a text with duplicates is scanned and
 * parsed twice. Reading never converts: a member is of the right type and range, or it is a fault.
 */
#include "protocol/json.h"
#include "protocol/json_scan.h"
#include "protocol/text.h"

#include <string.h>

#define PLACES_MAX       (JSON_MAX_DEPTH + 1)
#define MEMBER_MAX_BYTES 32

/* ---- parsing ------------------------------------------------------------------------------------ */

/* jansson keeps its code in the text's last byte and may leave both alone when out of memory. */
static json_t *load(const char *text, size_t length, size_t flags, json_error_t *error)
{
    *error = (json_error_t){0};
    return json_loadb(text, length, flags | JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
}

static bool is_out_of_memory(const json_error_t *error)
{
    return error->text[0] == '\0' || json_error_code(error) == json_error_out_of_memory;
}

/* Names the member that jansson found for the second time, unless a fault was found before it. */
static int note_duplicate(struct json_scan *scan, const char *text, size_t position, bool *is_outer)
{
    AR_CLEANUP(json_scan_free) struct json_scan until;
    int error = json_scan_run(&until, text, position);
    if (error)
        return error;
    *is_outer = until.depth == 1;
    if (scan->fault.problem != PROBLEM_NONE && scan->fault_at < position && !*is_outer)
        return 0;
    scan->fault.problem = PROBLEM_DUPLICATE_MEMBER;
    json_scan_path(&until, scan->fault.path);
    return 0;
}

/* Parses again although there are duplicates. When some are in the outermost object, they are the
 * fault, whatever was found before: nothing else in the text can then be relied upon. */
static int load_with_duplicates(struct json_scan *scan, const char *text,
                                struct json_document *document, json_error_t *error)
{
    bool is_outer = false;
    int failed = note_duplicate(scan, text, (size_t)error->position, &is_outer);
    if (failed)
        return failed;
    document->root = load(text, scan->length, 0, error);
    if (!json_is_object(document->root) || json_object_size(document->root) == scan->outer_members)
        return 0;
    document->outer_duplicate = true;
    scan->fault.problem = PROBLEM_DUPLICATE_MEMBER;
    if (!is_outer)
        scan->fault.path[0] = '\0';
    return 0;
}

static void take_id(const struct json_scan *scan, struct json_document *document)
{
    size_t length = scan->id_end - scan->id_start;
    if (scan->id_end == 0)
        return;
    if (length >= sizeof(document->id_text)) {
        document->id_too_long = true;
        return;
    }
    memcpy(document->id_text, scan->text + scan->id_start, length);
    document->id_text[length] = '\0';
}

static int broken(struct json_document *document, enum problem problem)
{
    json_document_free(document);
    document->fault.problem = problem;
    return JSON_BROKEN;
}

int json_parse(const char *text, size_t length, struct json_document *document)
{
    *document = (struct json_document){0};
    AR_CLEANUP(json_scan_free) struct json_scan scan;
    int failed = json_scan_run(&scan, text, length);
    if (failed)
        return failed;
    const char *mended = scan.mended ? scan.mended : text;
    json_error_t error;
    document->root = load(mended, length, JSON_REJECT_DUPLICATES, &error);
    if (!document->root && json_error_code(&error) == json_error_duplicate_key) {
        failed = load_with_duplicates(&scan, mended, document, &error);
        if (failed)
            return failed;
    }
    if (!document->root)
        return is_out_of_memory(&error) ? -ENOMEM : broken(document, PROBLEM_NONE);
    if (!json_is_object(document->root))
        return broken(document, PROBLEM_WRONG_TYPE);
    take_id(&scan, document);
    document->fault = scan.fault;
    return scan.fault.problem == PROBLEM_NONE ? JSON_OK : JSON_FAULTY;
}

void json_document_free(struct json_document *document)
{
    json_decref(document->root);
    *document = (struct json_document){0};
}

/* ---- faults ------------------------------------------------------------------------------------- */

static bool is_tame(const char *member)
{
    size_t length = strspn(member, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length <= MEMBER_MAX_BYTES && member[length] == '\0';
}

/* Appends one step; false when it must not or cannot be told, and the path ends there. */
static bool append_step(char path[JSON_PATH_BYTES], const char *member, size_t index)
{
    size_t used = strlen(path);
    char step[MEMBER_MAX_BYTES + 2];
    if (member && !is_tame(member))
        return false;
    int length = member ? snprintf(step, sizeof(step), "/%s", member)
                        : snprintf(step, sizeof(step), "/%zu", index);
    if (length < 0 || used + (size_t)length >= JSON_PATH_BYTES)
        return false;
    memcpy(path + used, step, (size_t)length + 1);
    return true;
}

int json_fault(struct fault *fault, const struct json_place *place, const char *member,
               enum problem problem)
{
    if (fault->problem != PROBLEM_NONE)
        return 1;
    fault->problem = problem;
    fault->path[0] = '\0';
    const struct json_place *steps[PLACES_MAX];
    size_t count = 0;
    for (; place && count < PLACES_MAX; place = place->parent)
        steps[count++] = place;
    while (count-- > 0)
        if (!append_step(fault->path, steps[count]->member, steps[count]->index))
            return 1;
    if (member)
        (void)append_step(fault->path, member, 0);
    return 1;
}

/* ---- readers ------------------------------------------------------------------------------------ */

static bool is_member(const struct json_member *members, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(members[i].name, name) == 0)
            return true;
    return false;
}

int json_check_object(const json_t *value, const struct json_member *members, size_t count,
                      const struct json_place *place, struct fault *fault)
{
    if (!json_is_object(value))
        return json_fault(fault, place, NULL, PROBLEM_WRONG_TYPE);
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)value, name, item) {
        if (!is_member(members, count, name))
            return json_fault(fault, place, name, PROBLEM_UNKNOWN_MEMBER);
    }
    for (size_t i = 0; i < count; i++)
        if (members[i].required && !json_object_get(value, members[i].name))
            return json_fault(fault, place, members[i].name, PROBLEM_MISSING);
    return 0;
}

int json_read_bool(const json_t *object, const char *member, const struct json_place *place,
                   bool *out, struct fault *fault)
{
    const json_t *value = json_object_get(object, member);
    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return json_fault(fault, place, member, PROBLEM_WRONG_TYPE);
    *out = json_is_true(value);
    return 0;
}

int json_read_integer(const json_t *object, const char *member, const struct json_place *place,
                      int64_t min, int64_t max, int64_t *out, struct fault *fault)
{
    const json_t *value = json_object_get(object, member);
    if (!value)
        return 0;
    if (json_is_real(value))
        return json_fault(fault, place, member, PROBLEM_NOT_AN_INTEGER);
    if (!json_is_integer(value))
        return json_fault(fault, place, member, PROBLEM_WRONG_TYPE);
    json_int_t number = json_integer_value(value);
    if (number < min || number > max)
        return json_fault(fault, place, member, PROBLEM_OUT_OF_RANGE);
    *out = number;
    return 0;
}

int json_read_line(const json_t *object, const char *member, const struct json_place *place,
                   size_t min, size_t max, const char **out, struct fault *fault)
{
    const json_t *value = json_object_get(object, member);
    return value ? json_check_line(value, member, place, min, max, out, fault) : 0;
}

int json_check_line(const json_t *value, const char *member, const struct json_place *place,
                    size_t min, size_t max, const char **out, struct fault *fault)
{
    if (!json_is_string(value))
        return json_fault(fault, place, member, PROBLEM_WRONG_TYPE);
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (length < min)
        return json_fault(fault, place, member, length == 0 ? PROBLEM_EMPTY : PROBLEM_OUT_OF_RANGE);
    if (length > max)
        return json_fault(fault, place, member, PROBLEM_TOO_LONG);
    if (text_has_control(text, length))
        return json_fault(fault, place, member, PROBLEM_CONTROL_CHARACTER);
    *out = text;
    return 0;
}

/* ---- canonical text ----------------------------------------------------------------------------- */

/* RFC 8785 writes the hex digits of \u00xx in lower case, jansson in upper case. A backslash occurs
 * in JSON text only within strings. */
static void lower_escapes(char *text)
{
    const char *end = text + strlen(text);
    for (char *p = text; (p = memchr(p, '\\', (size_t)(end - p))); p += 2) {
        if (p[1] != 'u')
            continue;
        for (size_t i = 2; i < 6; i++)
            if (p[i] >= 'A' && p[i] <= 'F')
                p[i] = (char)(p[i] - 'A' + 'a');
    }
}

char *json_canonical(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text)
        lower_escapes(text);
    return text;
}
