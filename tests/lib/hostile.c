/*
 * hostile.c - see hostile.h. What a program printed is not repeated but for the lines in which it
 * says that something got through.
 */
#include "tests/lib/hostile.h"

#include "tests/lib/client.h"
#include "tests/lib/daemon.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES   512
#define MAX_PROGRAMS 256
#define SHOWN_BYTES  300

struct hostile {
    json_t *root;
    struct hostile_program programs[MAX_PROGRAMS];
    size_t count;
};

/* ---- the list --------------------------------------------------------------------------------- */

static char *read_source(const char *name)
{
    char path[PATH_BYTES];
    const char *source = getenv("AUDITRUN_SOURCE");
    (void)snprintf(path, sizeof(path), "%s/tests/hostile/%s", source ? source : ".", name);
    return daemon_read_file(path);
}

static json_int_t number(const json_t *object, const char *member, json_int_t otherwise)
{
    const json_t *value = json_object_get(object, member);
    return value ? json_integer_value(value) : otherwise;
}

static const char *word(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

static const json_t *limit_of(const struct hostile *hostile, const json_t *entry, const char *name)
{
    const json_t *own = json_object_get(json_object_get(entry, "limits"), name);
    return own ? own : json_object_get(json_object_get(hostile->root, "limits"), name);
}

static void add(struct hostile *hostile, const char *category, const json_t *entry)
{
    ck_assert_uint_lt(hostile->count, MAX_PROGRAMS);
    hostile->programs[hostile->count++] = (struct hostile_program){
        .file = word(entry, "file"),
        .category = category,
        .language = word(entry, "language"),
        .times = (size_t)number(entry, "times", 1),
        .at_once = (size_t)number(entry, "at_once", 1),
        .wall_ms = json_integer_value(limit_of(hostile, entry, "wall_ms")),
        .distinct_host_uids = json_is_true(json_object_get(entry, "distinct_host_uids")),
        .entry = entry};
}

static void add_all(struct hostile *hostile, const char *category, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        add(hostile, category, json_array_get(list, i));
}

struct hostile *hostile_load(void)
{
    json_error_t error;
    struct hostile *hostile = calloc(1, sizeof(*hostile));
    AR_AUTO_FREE char *text = read_source("programs.json");
    ck_assert_ptr_nonnull(hostile);
    hostile->root = json_loads(text, 0, &error);
    ck_assert_msg(hostile->root != NULL, "programs.json:%d: %s", error.line, error.text);
    json_t *categories = json_object_get(hostile->root, "categories");
    for (void *at = json_object_iter(categories); at; at = json_object_iter_next(categories, at))
        add_all(hostile, json_object_iter_key(at), json_object_iter_value(at));
    ck_assert_uint_gt(hostile->count, 0);
    return hostile;
}

void hostile_free(struct hostile *hostile)
{
    json_decref(hostile->root);
    free(hostile);
}

size_t hostile_count(const struct hostile *hostile)
{
    return hostile->count;
}

struct hostile_program hostile_at(const struct hostile *hostile, size_t index)
{
    ck_assert_uint_lt(index, hostile->count);
    return hostile->programs[index];
}

/* ---- params ----------------------------------------------------------------------------------- */

/* The source, with the text of what is shared in the place of the first line that asks for it. */
static char *read_program(const char *file)
{
    static const char *const shared[][2] = {{"\n#include \"probe.h\"\n", "probe.h"},
                                            {"\nfrom probe import ", "probe.py"}};
    char *source = read_source(file);
    for (size_t i = 0; i < AR_COUNT(shared); i++) {
        char *whole = NULL, *line = strstr(source, shared[i][0]);
        if (!line)
            continue;
        AR_AUTO_FREE char *before = AR_TAKE(source);
        AR_AUTO_FREE char *text = read_source(shared[i][1]);
        const char *rest = strchr(line + 1, '\n');
        *line = '\0';
        ck_assert_int_gt(asprintf(&whole, "%s\n%s%s", before, text, rest ? rest : ""), 0);
        source = whole;
    }
    return source;
}

json_t *hostile_params(const struct hostile *hostile, const struct hostile_program *program)
{
    AR_AUTO_FREE char *code = read_program(program->file);
    json_t *params = client_params(program->language, code, NULL);
    AR_AUTO_JSON json_t *limits = json_deep_copy(json_object_get(hostile->root, "limits"));
    const json_t *own = json_object_get(program->entry, "limits");
    ck_assert_ptr_nonnull(limits);
    if (own)
        ck_assert_int_eq(json_object_update(limits, (json_t *)(uintptr_t)own), 0);
    ck_assert_int_eq(json_object_set(json_object_get(params, "grant"), "limits", limits), 0);
    return params;
}

/* ---- judging ---------------------------------------------------------------------------------- */

void hostile_tell(struct text_list *lines, const char *text, ...)
{
    AR_AUTO_FREE char *line = NULL;
    va_list list;
    va_start(list, text);
    int n = vasprintf(&line, text, list);
    va_end(list);
    ck_assert_int_ge(n, 0);
    ck_assert_int_eq(text_list_add(lines, line), 0);
}

void hostile_expect_none(struct text_list *lines)
{
    if (lines->count > 0) {
        for (size_t i = 0; i < lines->count; i++)
            (void)fprintf(stderr, "  %s\n", lines->items[i]);
        ck_abort_msg("%zu things are not as they must be; the first: %s", lines->count,
                     lines->items[0]);
    }
    text_list_free(lines);
}

/* The bytes of a stream of the result, as they came. */
static struct bytes output_of(const json_t *result, const char *stream)
{
    const json_t *value = json_object_get(result, stream);
    const json_t *text = json_object_get(value, "text");
    struct bytes bytes = {0};
    if (text)
        ck_assert_int_eq(bytes_set(&bytes, json_string_value(text), json_string_length(text)), 0);
    else
        ck_assert_int_eq(
            text_base64_decode(word(value, "base64"), strlen(word(value, "base64")), &bytes), 0);
    return bytes;
}

static bool holds(const struct bytes *bytes, const char *text)
{
    return bytes->data && memmem(bytes->data, bytes->length, text, strlen(text));
}

static bool may_end_as(const struct hostile_program *program, const char *wanted)
{
    const json_t *allowed = json_object_get(program->entry, "status"), *status;
    bool right = !allowed && strcmp(wanted, "succeeded") == 0;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)allowed, i, status)
        right = right || strcmp(json_string_value(status), wanted) == 0;
    return right;
}

bool hostile_was_too_slow(const struct hostile_program *program, const json_t *result)
{
    return strcmp(word(result, "status"), "timed_out") == 0 && !may_end_as(program, "timed_out");
}

static void judge_status(const struct hostile_program *program, const json_t *result,
                         struct text_list *wrong)
{
    if (may_end_as(program, word(result, "status")))
        return;
    struct bytes err = output_of(result, "stderr");
    hostile_tell(wrong, "%s: ended as %s, %s; its stderr: %.*s", program->file,
                 word(result, "status"), word(result, "reason"), SHOWN_BYTES,
                 err.data ? err.data : "");
    bytes_free(&err);
}

static void judge_escapes(const struct hostile_program *program, const struct bytes *out,
                          struct text_list *wrong)
{
    static const char escaped[] = "ESCAPED";
    const char *at = out->data, *end = out->data + out->length;
    while (at && (at = memmem(at, (size_t)(end - at), escaped, strlen(escaped)))) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const int length = (int)((newline ? newline : end) - at);
        hostile_tell(wrong, "%s: %.*s", program->file, length < SHOWN_BYTES ? length : SHOWN_BYTES,
                     at);
        at += strlen(escaped);
    }
}

/* What it must have printed: its START line always, the rest if it ended by itself. */
static void judge_prints(const struct hostile_program *program, const json_t *result,
                         const struct bytes *out, struct text_list *wrong)
{
    const json_t *prints = json_object_get(program->entry, "prints"), *text;
    char start[64];
    size_t i;
    (void)snprintf(start, sizeof(start), "START %.*s\n", (int)strcspn(program->file, "."),
                   program->file);
    if (!holds(out, start))
        hostile_tell(wrong, "%s: did not start", program->file);
    if (strcmp(word(result, "reason"), "exit_zero") != 0)
        return;
    if (!prints && !holds(out, "CONTAINED"))
        hostile_tell(wrong, "%s: does not say CONTAINED", program->file);
    json_array_foreach((json_t *)(uintptr_t)prints, i, text)
        if (!holds(out, json_string_value(text)))
            hostile_tell(wrong, "%s: does not say %s", program->file, json_string_value(text));
}

static void judge_secrets(const struct hostile_program *program, const struct bytes *out,
                          struct text_list *wrong)
{
    char host[256] = "";
    AR_AUTO_FREE char *machine =
        access("/etc/machine-id", R_OK) == 0 ? daemon_read_file("/etc/machine-id") : NULL;
    (void)gethostname(host, sizeof(host) - 1);
    if (!json_is_true(json_object_get(program->entry, "hides_host")))
        return;
    if (machine)
        machine[strcspn(machine, "\n")] = '\0';
    if (strlen(host) > 1 && holds(out, host))
        hostile_tell(wrong, "%s: prints the host's name", program->file);
    if (machine && strlen(machine) > 1 && holds(out, machine))
        hostile_tell(wrong, "%s: prints the host's machine-id", program->file);
}

void hostile_judge(const struct hostile_program *program, const json_t *result, int64_t took_ms,
                   struct text_list *wrong)
{
    const json_int_t within = number(program->entry, "within_ms", took_ms);
    struct bytes out = output_of(result, "stdout"), err = output_of(result, "stderr");
    const json_int_t total = (json_int_t)out.length + (json_int_t)err.length;
    judge_status(program, result, wrong);
    judge_escapes(program, &out, wrong);
    judge_prints(program, result, &out, wrong);
    judge_secrets(program, &out, wrong);
    if (took_ms > within)
        hostile_tell(wrong, "%s: took %lld ms, more than %lld", program->file, (long long)took_ms,
                     (long long)within);
    if (total > number(program->entry, "output_under_bytes", total))
        hostile_tell(wrong, "%s: %lld bytes came out", program->file, (long long)total);
    bytes_free(&out);
    bytes_free(&err);
}
