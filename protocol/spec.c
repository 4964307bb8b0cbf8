/*
 * spec.c - the spec of a run, and the document with its output files.
 *
 * Both are built on one side and read on the other, so each builder stands beside its reader. The
 * short control messages are in spec_message.c.
 */
#include "protocol/spec.h"
#include "protocol/parts.h"

#include <string.h>

/* ---- spec out ----------------------------------------------------------------------------------- */

static json_t *bytes_to_json(const struct bytes *bytes)
{
    AR_AUTO_FREE char *text = text_base64_encode(bytes->data, bytes->length);
    return text ? json_string_nocheck(text) : NULL;
}

static json_t *list_to_json(const struct text_list *list)
{
    AR_AUTO_JSON json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(array, json_string(list->items[i])))
            return NULL;
    return AR_TAKE(array);
}

static json_t *env_to_json(const struct request *request)
{
    AR_AUTO_JSON json_t *env = json_object();
    for (size_t i = 0; i < request->env_count; i++)
        if (json_object_set_new(env, request->env[i].name, json_string(request->env[i].value)))
            return NULL;
    return AR_TAKE(env);
}

static json_t *file_to_json(const char *path, const struct bytes *content)
{
    AR_AUTO_JSON json_t *file = json_object();
    if (json_object_set_new(file, "path", json_string(path)) ||
        json_object_set_new(file, "base64", bytes_to_json(content)))
        return NULL;
    return AR_TAKE(file);
}

static json_t *files_to_json(const struct request *request)
{
    AR_AUTO_JSON json_t *array = json_array();
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        if (json_array_append_new(array, file_to_json(file->path, &file->content)))
            return NULL;
    }
    return AR_TAKE(array);
}

static char *dump(const json_t *value, size_t *length)
{
    char *text = json_dumps(value, JSON_COMPACT);
    if (text)
        *length = strlen(text);
    return text;
}

char *spec_build(const char *run_id, const struct request *request, const struct grant *effective,
                 size_t *length)
{
    AR_AUTO_JSON json_t *spec = json_object();
    if (json_object_set_new(spec, "run_id", json_string(run_id)) ||
        json_object_set_new(spec, "language", json_string(request->language)) ||
        json_object_set_new(spec, "code_base64", bytes_to_json(&request->code)) ||
        json_object_set_new(spec, "args", list_to_json(&request->args)) ||
        json_object_set_new(spec, "outputs", list_to_json(&request->outputs)) ||
        json_object_set_new(spec, "env", env_to_json(request)) ||
        json_object_set_new(spec, "files", files_to_json(request)) ||
        json_object_set_new(spec, "grant", grant_to_json(effective)))
        return NULL;
    return dump(spec, length);
}

/* ---- spec in ------------------------------------------------------------------------------------ */

/* The document of a text of at most SPEC_MAX_BYTES: 0 with *document owned, 1 with the fault set. */
static int parse_document(const char *text, size_t length, struct json_document *document,
                          struct fault *fault)
{
    *document = (struct json_document){0};
    if (length > SPEC_MAX_BYTES)
        return json_fault(fault, NULL, NULL, PROBLEM_TOO_LONG);
    int outcome = json_parse(text, length, document);
    if (outcome == JSON_BROKEN)
        return json_fault(fault, NULL, NULL, PROBLEM_MALFORMED);
    if (outcome == JSON_FAULTY) {
        *fault = document->fault;
        json_document_free(document);
    }
    return outcome;
}

static int read_names(const json_t *root, struct spec *spec, struct fault *fault)
{
    const char *run_id = NULL;
    const char *language = NULL;
    if (json_read_line(root, "run_id", NULL, 1, UUID7_TEXT_BYTES - 1, &run_id, fault) ||
        json_read_line(root, "language", NULL, 1, 32, &language, fault))
        return 1;
    if (!uuid7_is_valid(run_id))
        return json_fault(fault, NULL, "run_id", PROBLEM_MALFORMED);
    if (!text_is_name(language))
        return json_fault(fault, NULL, "language", PROBLEM_MALFORMED);
    spec->run_id = strdup(run_id);
    spec->language = strdup(language);
    return spec->run_id && spec->language ? 0 : -ENOMEM;
}

static int read_spec(const json_t *root, struct spec *spec, struct fault *fault)
{
    struct json_place grant = {.member = "grant"};
    bool given;
    int error = read_names(root, spec, fault);
    if (!error)
        error = parts_read_bytes(root, NULL, "code_base64", NULL, &spec->code, &given, fault);
    if (!error)
        error = parts_read_args(root, NULL, &spec->args, fault);
    if (!error)
        error = parts_read_outputs(root, NULL, &spec->outputs, fault);
    if (!error)
        error = parts_read_env(root, NULL, &spec->env, &spec->env_count, fault);
    if (!error)
        error = parts_read_files(root, false, NULL, &spec->files, &spec->file_count, fault);
    if (!error)
        error = grant_parse(json_object_get(root, "grant"), &grant, &spec->grant, fault);
    return error;
}

static void spec_cleanup(struct spec **spec)
{
    spec_free(*spec);
}

int spec_parse(const char *text, size_t length, struct spec **out, struct fault *fault)
{
    static const struct json_member members[] = {
        {"run_id", true},  {"language", true}, {"code_base64", true}, {"args", true},
        {"outputs", true}, {"env", true},      {"files", true},       {"grant", true}};
    AR_CLEANUP(json_document_free) struct json_document document;
    int error = parse_document(text, length, &document, fault);
    if (error)
        return error;
    if (json_check_object(document.root, members, AR_COUNT(members), NULL, fault))
        return 1;
    AR_CLEANUP(spec_cleanup) struct spec *spec = calloc(1, sizeof(*spec));
    if (!spec)
        return -ENOMEM;
    error = read_spec(document.root, spec, fault);
    if (error)
        return error;
    *out = AR_TAKE(spec);
    return 0;
}

void spec_free(struct spec *spec)
{
    if (!spec)
        return;
    free(spec->run_id);
    free(spec->language);
    bytes_free(&spec->code);
    text_list_free(&spec->args);
    text_list_free(&spec->outputs);
    parts_free_env(spec->env, spec->env_count);
    parts_free_files(spec->files, spec->file_count);
    grant_free(&spec->grant);
    free(spec);
}

/* ---- outputs ------------------------------------------------------------------------------------ */

static json_t *output_to_json(const struct output_file *file)
{
    if (file->problem == OUTPUT_OK)
        return file_to_json(file->path, &file->content);
    return json_pack("{s:s, s:s}", "path", file->path, "problem",
                     output_problem_word(file->problem));
}

char *spec_outputs_build(const struct output_file *files, size_t count, size_t *length)
{
    AR_AUTO_JSON json_t *document = json_object();
    json_t *list = json_array();
    if (json_object_set_new(document, "outputs", list))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(list, output_to_json(&files[i])))
            return NULL;
    return dump(document, length);
}

static int read_output_problem(const json_t *value, const struct json_place *place,
                               enum output_problem *out, struct fault *fault)
{
    const char *word;
    if (json_check_line(value, "problem", place, 1, 32, &word, fault))
        return 1;
    if (!output_problem_from_word(word, out))
        return json_fault(fault, place, "problem", PROBLEM_NOT_ALLOWED_WORD);
    return 0;
}

/* One entry, which must be of the path that was asked for at its place. */
static int read_output(const json_t *item, const char *asked, const struct json_place *place,
                       struct output_file *file, struct fault *fault)
{
    static const struct json_member members[] = {
        {"path", true}, {"base64", false}, {"problem", false}};
    const json_t *problem = json_object_get(item, "problem");
    const char *path = NULL;
    bool given;
    if (json_check_object(item, members, AR_COUNT(members), place, fault) ||
        json_read_line(item, "path", place, 1, 1023, &path, fault))
        return 1;
    if (strcmp(path, asked) != 0)
        return json_fault(fault, place, "path", PROBLEM_CONFLICT);
    file->path = strdup(path);
    if (!file->path)
        return -ENOMEM;
    int error = parts_read_bytes(item, NULL, "base64", place, &file->content, &given, fault);
    if (error)
        return error;
    if (given == (problem != NULL))
        return json_fault(fault, place, "base64", given ? PROBLEM_CONFLICT : PROBLEM_MISSING);
    return problem ? read_output_problem(problem, place, &file->problem, fault) : 0;
}

static int read_outputs(const json_t *list, const struct text_list *asked,
                        struct output_file *files, struct fault *fault)
{
    struct json_place here = {.member = "outputs"};
    size_t total = 0;
    for (size_t i = 0; i < asked->count; i++) {
        struct json_place at = {.parent = &here, .index = i};
        int error = read_output(json_array_get(list, i), asked->items[i], &at, &files[i], fault);
        if (error)
            return error;
        total += files[i].content.length;
        if (total > SPEC_MAX_OUTPUT_BYTES)
            return json_fault(fault, &at, NULL, PROBLEM_TOO_LONG);
    }
    return 0;
}

int spec_outputs_parse(const char *text, size_t length, const struct text_list *asked,
                       struct output_file **files, struct fault *fault)
{
    static const struct json_member members[] = {{"outputs", true}};
    AR_CLEANUP(json_document_free) struct json_document document;
    int error = parse_document(text, length, &document, fault);
    if (error)
        return error;
    if (json_check_object(document.root, members, AR_COUNT(members), NULL, fault))
        return 1;
    const json_t *list = json_object_get(document.root, "outputs");
    if (!json_is_array(list))
        return json_fault(fault, NULL, "outputs", PROBLEM_WRONG_TYPE);
    if (json_array_size(list) != asked->count)
        return json_fault(fault, NULL, "outputs", PROBLEM_CONFLICT);
    struct output_file *read = calloc(asked->count + 1, sizeof(*read));
    if (!read)
        return -ENOMEM;
    error = read_outputs(list, asked, read, fault);
    if (error) {
        spec_outputs_free(read, asked->count);
        return error;
    }
    *files = read;
    return 0;
}

void spec_outputs_free(struct output_file *files, size_t count)
{
    if (!files)
        return;
    for (size_t i = 0; i < count; i++) {
        free(files[i].path);
        bytes_free(&files[i].content);
    }
    free(files);
}
