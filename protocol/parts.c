/*
 * parts.c - see parts.h.
 *
 * Counts are checked before anything is allocated, and arrays are allocated whole, so that a half
 * read list is always as long as its count says and its owner can free it.
 */
#include "protocol/parts.h"

#include <string.h>

#define PATH_BYTES 1023

int parts_read_bytes(const json_t *object, const char *member, const char *base64_member,
                     const struct json_place *place, struct bytes *out, bool *given,
                     struct fault *fault)
{
    const json_t *text = member ? json_object_get(object, member) : NULL;
    const json_t *base64 = base64_member ? json_object_get(object, base64_member) : NULL;
    const json_t *value = text ? text : base64;
    *given = value != NULL;
    if (text && base64)
        return json_fault(fault, place, base64_member, PROBLEM_CONFLICT);
    if (!value)
        return 0;
    if (!json_is_string(value))
        return json_fault(fault, place, text ? member : base64_member, PROBLEM_WRONG_TYPE);
    if (text)
        return bytes_set(out, json_string_value(text), json_string_length(text));
    int error = text_base64_decode(json_string_value(base64), json_string_length(base64), out);
    return error > 0 ? json_fault(fault, place, base64_member, PROBLEM_NOT_BASE64) : error;
}

/* A text for execve: any UTF-8 but NUL. *total counts on, with the end of each text. */
static int check_argument(const json_t *value, const struct json_place *place, size_t *total,
                          const char **out, struct fault *fault)
{
    *out = json_string_value(value);
    if (!*out)
        return json_fault(fault, place, NULL, PROBLEM_WRONG_TYPE);
    size_t length = json_string_length(value);
    if (length > REQUEST_MAX_ARG_BYTES)
        return json_fault(fault, place, NULL, PROBLEM_TOO_LONG);
    if (strlen(*out) != length)
        return json_fault(fault, place, NULL, PROBLEM_CONTROL_CHARACTER);
    *total += length + 1;
    if (*total > REQUEST_MAX_LIST_BYTES)
        return json_fault(fault, place->parent, NULL, PROBLEM_TOO_LONG);
    return 0;
}

/* The list that is the member, or NULL when it is absent; 1 when it is no list or too long. */
static int find_list(const json_t *object, const char *member, size_t max,
                     const struct json_place *place, const json_t **out, struct fault *fault)
{
    *out = json_object_get(object, member);
    if (*out && !json_is_array(*out))
        return json_fault(fault, place, member, PROBLEM_WRONG_TYPE);
    if (json_array_size(*out) > max)
        return json_fault(fault, place, member, PROBLEM_TOO_MANY);
    return 0;
}

int parts_read_args(const json_t *object, const struct json_place *place, struct text_list *out,
                    struct fault *fault)
{
    struct json_place here = {.parent = place, .member = "args"};
    const json_t *list;
    size_t total = 0;
    if (find_list(object, "args", REQUEST_MAX_ARGS, place, &list, fault))
        return 1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_place at = {.parent = &here, .index = i};
        const char *text = NULL;
        int error = check_argument(json_array_get(list, i), &at, &total, &text, fault);
        if (!error)
            error = text_list_add(out, text);
        if (error)
            return error;
    }
    return 0;
}

/* ---- paths -------------------------------------------------------------------------------------- */

struct numbered_path {
    const char *path;
    size_t index;
};

/* By bytes, but with the slash before all others: what lies below a path then follows it at once. */
static int compare_paths(const void *a, const void *b)
{
    const char *p = ((const struct numbered_path *)a)->path;
    const char *q = ((const struct numbered_path *)b)->path;
    while (*p && *p == *q) {
        p++;
        q++;
    }
    int left = *p == '/' ? 1 : (unsigned char)*p;
    int right = *q == '/' ? 1 : (unsigned char)*q;
    return left - right;
}

/* No path twice, none below another. The fault is at the later of the first two that clash;
 * member: of the items, or NULL when the items are the paths. */
static int check_clashes(struct numbered_path *paths, size_t count, const char *member,
                         const struct json_place *place, struct fault *fault)
{
    size_t first = SIZE_MAX;
    enum problem problem = PROBLEM_NONE;
    qsort(paths, count, sizeof(*paths), compare_paths);
    for (size_t i = 1; i < count; i++) {
        if (!text_path_is_below(paths[i].path, paths[i - 1].path))
            continue;
        bool same = strcmp(paths[i].path, paths[i - 1].path) == 0;
        size_t later = paths[i].index > paths[i - 1].index ? paths[i].index : paths[i - 1].index;
        if (later < first) {
            first = later;
            problem = same ? PROBLEM_REPEATED : PROBLEM_CONFLICT;
        }
    }
    struct json_place at = {.parent = place, .index = first};
    return problem == PROBLEM_NONE ? 0 : json_fault(fault, &at, member, problem);
}

static int check_path(const json_t *value, const char *member, const struct json_place *place,
                      const char **out, struct fault *fault)
{
    if (json_check_line(value, member, place, 1, PATH_BYTES, out, fault))
        return 1;
    if (!text_is_relative_path(*out))
        return json_fault(fault, place, member, PROBLEM_MALFORMED);
    return 0;
}

int parts_read_outputs(const json_t *object, const struct json_place *place, struct text_list *out,
                       struct fault *fault)
{
    struct json_place here = {.parent = place, .member = "outputs"};
    struct numbered_path paths[REQUEST_MAX_OUTPUTS];
    const json_t *list;
    if (find_list(object, "outputs", REQUEST_MAX_OUTPUTS, place, &list, fault))
        return 1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_place at = {.parent = &here, .index = i};
        const char *path;
        if (check_path(json_array_get(list, i), NULL, &at, &path, fault))
            return 1;
        int error = text_list_add(out, path);
        if (error)
            return error;
        paths[i] = (struct numbered_path){path, i};
    }
    return check_clashes(paths, json_array_size(list), NULL, &here, fault);
}

static int read_file(const json_t *item, bool with_text, const struct json_place *place,
                     struct request_file *file, struct fault *fault)
{
    static const struct json_member members[] = {
        {"path", true}, {"base64", false}, {"text", false}};
    const char *path;
    bool given;
    if (json_check_object(item, members, with_text ? 3 : 2, place, fault) ||
        check_path(json_object_get(item, "path"), "path", place, &path, fault))
        return 1;
    file->path = strdup(path);
    if (!file->path)
        return -ENOMEM;
    const char *text = with_text ? "text" : NULL;
    int error = parts_read_bytes(item, text, "base64", place, &file->content, &given, fault);
    if (error)
        return error;
    return given ? 0 : json_fault(fault, place, with_text ? text : "base64", PROBLEM_MISSING);
}

int parts_read_files(const json_t *object, bool with_text, const struct json_place *place,
                     struct request_file **out, size_t *count, struct fault *fault)
{
    struct json_place here = {.parent = place, .member = "files"};
    struct numbered_path paths[REQUEST_MAX_FILES];
    const json_t *list;
    if (find_list(object, "files", REQUEST_MAX_FILES, place, &list, fault))
        return 1;
    *out = calloc(json_array_size(list) + 1, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    *count = json_array_size(list);
    for (size_t i = 0; i < *count; i++) {
        struct json_place at = {.parent = &here, .index = i};
        int error = read_file(json_array_get(list, i), with_text, &at, &(*out)[i], fault);
        if (error)
            return error;
        paths[i] = (struct numbered_path){(*out)[i].path, i};
    }
    return check_clashes(paths, *count, "path", &here, fault);
}

void parts_free_files(struct request_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(files[i].path);
        bytes_free(&files[i].content);
    }
    free(files);
}

/* ---- environment -------------------------------------------------------------------------------- */

int parts_read_env(const json_t *object, const struct json_place *place,
                   struct request_variable **out, size_t *count, struct fault *fault)
{
    struct json_place here = {.parent = place, .member = "env"};
    json_t *env = json_object_get(object, "env");
    const char *name;
    json_t *value;
    size_t total = 0;
    if (env && !json_is_object(env))
        return json_fault(fault, place, "env", PROBLEM_WRONG_TYPE);
    if (json_object_size(env) > REQUEST_MAX_ENV)
        return json_fault(fault, place, "env", PROBLEM_TOO_MANY);
    *out = calloc(json_object_size(env) + 1, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    json_object_foreach(env, name, value) {
        struct json_place at = {.parent = &here, .member = name};
        const char *text = NULL;
        if (!text_is_identifier(name))
            return json_fault(fault, &here, NULL, PROBLEM_MALFORMED);
        if (check_argument(value, &at, &total, &text, fault))
            return 1;
        struct request_variable *variable = &(*out)[(*count)++];
        variable->name = strdup(name);
        variable->value = strdup(text);
        if (!variable->name || !variable->value)
            return -ENOMEM;
    }
    return 0;
}

void parts_free_env(struct request_variable *env, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(env[i].name);
        free(env[i].value);
    }
    free(env);
}
