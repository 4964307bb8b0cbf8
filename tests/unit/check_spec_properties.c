/*
 * check_spec_properties.c - what holds for every spec, report and outputs document, tried on many at
 * random (AUDITRUN_SEED has the same ones again) and on all that differ from a good one by one byte.
 *
 * Each text that is parsed is exactly as long as its memory, so that a sanitizer or valgrind sees a
 * read beyond its end.
 */
#include "protocol/spec.h"
#include "tests/unit/unit.h"

#define ROUNDS      300
#define MAX_ITEMS   6
#define TEXT_BYTES  64
#define SOME_VALUES 24 /* of a byte, where all would take too long */

/* ---- random values ------------------------------------------------------------------------------ */

/* The form with the number in the place of #. Returns the length. */
static size_t put_number(char *out, size_t room, const char *form, size_t number)
{
    const char *place = strchr(form, '#');
    ck_assert_ptr_nonnull(place);
    int length = snprintf(out, room, "%.*s%zu%s", (int)(place - form), form, number, place + 1);
    ck_assert(length > 0 && (size_t)length < room);
    return (size_t)length;
}

/* Any UTF-8 without NUL, with what JSON has to escape among it; malloc'd. */
static char *random_text(struct unit_random *random)
{
    static const char *const pieces[] = {
        "a",        "\\",           "\"",           "\n", "\x01", "\x7f", "\xc2\x80",
        "\xc3\xa9", "\xe2\x82\xac", "\xef\xbf\xbf", "/",  " ",    "=",    "\xf0\x9f\x98\x80"};
    size_t count = unit_random_below(random, 12);
    char text[TEXT_BYTES] = "";
    for (size_t i = 0, length = 0; i < count; i++) {
        const char *piece = pieces[unit_random_below(random, AR_COUNT(pieces))];
        memcpy(text + length, piece, strlen(piece) + 1);
        length += strlen(piece);
    }
    return strdup(text);
}

static struct bytes random_bytes(struct unit_random *random)
{
    struct bytes bytes = {.length = unit_random_below(random, 200)};
    bytes.data = malloc(bytes.length + 1);
    ck_assert_ptr_nonnull(bytes.data);
    for (size_t i = 0; i < bytes.length; i++)
        bytes.data[i] = (char)unit_random_next(random);
    bytes.data[bytes.length] = '\0';
    return bytes;
}

/* A relative path that clashes with none of another number; malloc'd. */
static char *random_path(struct unit_random *random, size_t number)
{
    static const char *const forms[] = {"#", "#/x", "#/a b/.c", "#\xc3\xa9", "#/...", "-#"};
    char path[TEXT_BYTES];
    (void)put_number(path, sizeof(path), forms[unit_random_below(random, AR_COUNT(forms))], number);
    return strdup(path);
}

static void add_numbered(struct text_list *list, struct unit_random *random, const char *form)
{
    size_t count = unit_random_below(random, MAX_ITEMS);
    for (size_t i = 0; i < count; i++) {
        char text[TEXT_BYTES];
        (void)put_number(text, sizeof(text), form, i);
        ck_assert_int_eq(text_list_add(list, text), 0);
    }
}

static struct grant random_grant(struct unit_random *random)
{
    struct grant grant = {.network = (enum network_mode)unit_random_below(random, 3)};
    if (grant.network == NETWORK_ALLOWLIST) {
        ck_assert_int_eq(text_list_add(&grant.hosts, "last.test:65535"), 0);
        add_numbered(&grant.hosts, random, "h#.test:443");
    }
    add_numbered(&grant.data_api, random, "invoices.read#");
    add_numbered(&grant.secrets, random, "KEY_#");
    add_numbered(&grant.read, random, "/srv/#");
    add_numbered(&grant.write, random, "/out/#");
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        grant.limits.has[i] = unit_random_below(random, 2);
        if (grant.limits.has[i])
            grant.limits.value[i] = 1 + (int64_t)unit_random_below(random, 86400000);
    }
    return grant;
}

/* What a spec is built from: as much of a request as it has. free_request() takes it back. */
static struct request random_request(struct unit_random *random)
{
    static const char *const languages[] = {"python", "c", "a-b_c.d9"};
    struct request request = {.language = strdup(languages[unit_random_below(random, 3)]),
                              .code = random_bytes(random),
                              .env_count = unit_random_below(random, MAX_ITEMS),
                              .file_count = unit_random_below(random, MAX_ITEMS),
                              .grant = random_grant(random)};
    size_t args = unit_random_below(random, MAX_ITEMS);
    size_t outputs = unit_random_below(random, MAX_ITEMS);
    request.env = calloc(MAX_ITEMS, sizeof(*request.env));
    request.files = calloc(MAX_ITEMS, sizeof(*request.files));
    ck_assert(request.env && request.files);
    for (size_t i = 0; i < args; i++) {
        AR_AUTO_FREE char *text = random_text(random);
        ck_assert_int_eq(text_list_add(&request.args, text), 0);
    }
    for (size_t i = 0; i < outputs; i++) {
        AR_AUTO_FREE char *path = random_path(random, i);
        ck_assert_int_eq(text_list_add(&request.outputs, path), 0);
    }
    for (size_t i = 0; i < request.env_count; i++) {
        char name[TEXT_BYTES];
        (void)snprintf(name, sizeof(name), "%s%zu", i % 2 ? "_" : "Name", i);
        request.env[i] = (struct request_variable){strdup(name), random_text(random)};
    }
    for (size_t i = 0; i < request.file_count; i++)
        request.files[i] = (struct request_file){random_path(random, i), random_bytes(random)};
    return request;
}

static void free_request(struct request *request)
{
    free(request->language);
    bytes_free(&request->code);
    text_list_free(&request->args);
    text_list_free(&request->outputs);
    for (size_t i = 0; i < request->env_count; i++) {
        free(request->env[i].name);
        free(request->env[i].value);
    }
    for (size_t i = 0; i < request->file_count; i++) {
        free(request->files[i].path);
        bytes_free(&request->files[i].content);
    }
    free(request->env);
    free(request->files);
    grant_free(&request->grant);
}

static void random_id(struct unit_random *random, char id[UUID7_TEXT_BYTES])
{
    (void)snprintf(id, UUID7_TEXT_BYTES, "%08x-%04x-7%03x-%c%03x-%012llx",
                   (unsigned)unit_random_next(random), (unsigned)unit_random_below(random, 65536),
                   (unsigned)unit_random_below(random, 4096), "89ab"[unit_random_below(random, 4)],
                   (unsigned)unit_random_below(random, 4096),
                   (unsigned long long)unit_random_next(random) >> 16);
}

static struct report random_report(struct unit_random *random)
{
    static const enum limit limits[] = {LIMIT_CPU_MS, LIMIT_MEMORY_BYTES, LIMIT_PROCESSES,
                                        LIMIT_SCRATCH_BYTES};
    struct report report = {.outcome = (enum outcome)unit_random_below(random, OUTCOME_COUNT),
                            .usage = USAGE_UNKNOWN};
    int64_t *const usage[] = {&report.usage.wall_us,        &report.usage.user_us,
                              &report.usage.system_us,      &report.usage.memory_peak_bytes,
                              &report.usage.processes_peak, &report.usage.output_bytes};
    for (size_t i = 0; i < AR_COUNT(usage); i++)
        if (unit_random_below(random, 2))
            *usage[i] = (int64_t)(unit_random_next(random) >> (11 + unit_random_below(random, 53)));
    if (report.outcome == OUTCOME_EXITED || report.outcome == OUTCOME_COMPILE_FAILED)
        report.exit_code = (int)unit_random_below(random, 256);
    if (report.outcome == OUTCOME_SIGNALED)
        report.signal = 1 + (int)unit_random_below(random, 64);
    if (report.outcome == OUTCOME_LIMIT)
        report.limit = limits[unit_random_below(random, AR_COUNT(limits))];
    return report;
}

/* ---- equality ----------------------------------------------------------------------------------- */

static bool same_bytes(const struct bytes *a, const struct bytes *b)
{
    return a->length == b->length && memcmp(a->data, b->data, a->length) == 0;
}

static bool same_list(const struct text_list *a, const struct text_list *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->items[i], b->items[i]) == 0;
    return same;
}

static bool same_grant(const struct grant *a, const struct grant *b)
{
    AR_AUTO_JSON json_t *first = grant_to_json(a);
    AR_AUTO_JSON json_t *second = grant_to_json(b);
    return json_equal(first, second);
}

static bool same_spec(const char *run_id, const struct request *request, const struct spec *spec)
{
    bool same =
        strcmp(run_id, spec->run_id) == 0 && strcmp(request->language, spec->language) == 0 &&
        same_bytes(&request->code, &spec->code) && same_list(&request->args, &spec->args) &&
        same_list(&request->outputs, &spec->outputs) && same_grant(&request->grant, &spec->grant) &&
        request->env_count == spec->env_count && request->file_count == spec->file_count;
    for (size_t i = 0; same && i < spec->env_count; i++)
        same = strcmp(request->env[i].name, spec->env[i].name) == 0 &&
               strcmp(request->env[i].value, spec->env[i].value) == 0;
    for (size_t i = 0; same && i < spec->file_count; i++)
        same = strcmp(request->files[i].path, spec->files[i].path) == 0 &&
               same_bytes(&request->files[i].content, &spec->files[i].content);
    return same;
}

static bool same_report(const struct report *a, const struct report *b)
{
    return a->outcome == b->outcome && a->exit_code == b->exit_code && a->signal == b->signal &&
           a->limit == b->limit && memcmp(&a->usage, &b->usage, sizeof(a->usage)) == 0;
}

/* ---- one reader each: 0 or 1, and what is taken can be said again ---------------------------------- */

/* A copy without a byte to spare. */
static char *exactly(const char *text, size_t length)
{
    char *copy = malloc(length ? length : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, length);
    return copy;
}

static int read_spec(const char *text, size_t length)
{
    struct spec *spec = NULL;
    struct fault fault = {0};
    AR_AUTO_FREE char *copy = exactly(text, length);
    int outcome = spec_parse(copy, length, &spec, &fault);
    ck_assert_int_ge(outcome, 0);
    ck_assert_int_le(outcome, 1);
    ck_assert((spec != NULL) == (outcome == 0));
    if (outcome == 1)
        ck_assert_int_ne(fault.problem, PROBLEM_NONE);
    spec_free(spec);
    return outcome;
}

static int read_daemon(const char *text, size_t length)
{
    enum spec_message kind = SPEC_READY;
    struct spec_run order = {0};
    AR_AUTO_FREE char *copy = exactly(text, length);
    int outcome = spec_parse_daemon_message(copy, length, &kind, &order);
    if (outcome == 0)
        ck_assert(kind == SPEC_CLEAR ||
                  (kind == SPEC_RUN && order.spec_bytes > 0 && order.spec_bytes <= SPEC_MAX_BYTES));
    else
        ck_assert_int_eq(outcome, 1);
    return outcome;
}

static int read_provider(const char *text, size_t length)
{
    enum spec_message kind = SPEC_RUN;
    struct report report, again;
    AR_AUTO_FREE char *copy = exactly(text, length);
    int outcome = spec_parse_provider_message(copy, length, &kind, &report);
    if (outcome != 0) {
        ck_assert_int_eq(outcome, 1);
        return outcome;
    }
    ck_assert(kind == SPEC_READY || kind == SPEC_READY_AHEAD || kind == SPEC_REPORT);
    if (kind == SPEC_REPORT) {
        AR_AUTO_FREE char *said = spec_report_message(&report);
        ck_assert_int_eq(spec_parse_provider_message(said, strlen(said), &kind, &again), 0);
        ck_assert(same_report(&report, &again));
    }
    return 0;
}

static int read_outputs(const char *text, size_t length)
{
    static char *items[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b/c"};
    static const struct text_list asked = {items, 2};
    struct output_file *files = NULL;
    struct fault fault = {0};
    AR_AUTO_FREE char *copy = exactly(text, length);
    int outcome = spec_outputs_parse(copy, length, &asked, &files, &fault);
    ck_assert((files != NULL) == (outcome == 0));
    if (outcome == 0)
        for (size_t i = 0; i < asked.count; i++)
            ck_assert_str_eq(files[i].path, asked.items[i]);
    else
        ck_assert(outcome == 1 && fault.problem != PROBLEM_NONE);
    spec_outputs_free(files, asked.count);
    return outcome;
}

/* No beginning of the text is taken, nor is it with anything but blanks behind it; whatever one byte is
 * changed into gives 0 or 1. step: distance of the values that are tried. */
static void expect_no_harm(int (*read)(const char *, size_t), const char *text, unsigned step)
{
    size_t length = strlen(text);
    ck_assert_int_eq(read(text, length), 0);
    for (size_t cut = 0; cut < length; cut++)
        ck_assert_msg(read(text, cut) == 1, "cut at %zu: %s", cut, text);
    AR_AUTO_FREE char *changed = exactly(text, length + 1);
    for (unsigned value = 0; value < 256; value++) {
        changed[length] = (char)value;
        bool blank = strchr(" \t\r\n", (int)value) && value;
        ck_assert_msg(read(changed, length + 1) == (blank ? 0 : 1), "%u behind it", value);
    }
    for (size_t at = 0; at < length; at++) {
        for (unsigned value = (unsigned)at % step; value < 256; value += step) {
            changed[at] = (char)value;
            (void)read(changed, length);
        }
        changed[at] = text[at];
    }
}

/* ---- round trips -------------------------------------------------------------------------------- */

START_TEST(test_specs_survive)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < ROUNDS; round++) {
        char id[UUID7_TEXT_BYTES];
        struct request request = random_request(&random);
        struct spec *spec = NULL;
        struct fault fault = {0};
        size_t length = 0;
        random_id(&random, id);
        AR_AUTO_FREE char *text = spec_build(id, &request, &request.grant, &length);
        ck_assert_ptr_nonnull(text);
        ck_assert_uint_eq(strlen(text), length);
        ck_assert_msg(spec_parse(text, length, &spec, &fault) == 0, "seed %llu: %s at %s in %s",
                      (unsigned long long)random.seed, problem_word(fault.problem), fault.path,
                      text);
        ck_assert_msg(same_spec(id, &request, spec), "seed %llu: %s",
                      (unsigned long long)random.seed, text);
        spec_free(spec);
        free_request(&request);
    }
}
END_TEST

START_TEST(test_reports_survive)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < ROUNDS * 10; round++) {
        struct report report = random_report(&random), again;
        enum spec_message kind;
        struct spec_run order;
        AR_AUTO_FREE char *text = spec_report_message(&report);
        ck_assert_msg(spec_parse_provider_message(text, strlen(text), &kind, &again) == 0, "%s",
                      text);
        ck_assert_int_eq(kind, SPEC_REPORT);
        ck_assert_msg(same_report(&report, &again), "%s", text);
        /* What one side says the other would never say. */
        ck_assert_int_eq(spec_parse_daemon_message(text, strlen(text), &kind, &order), 1);
    }
}
END_TEST

START_TEST(test_orders_survive)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < ROUNDS * 10; round++) {
        const struct spec_run order = {.spec_bytes = 1 + unit_random_below(&random, SPEC_MAX_BYTES),
                                       .data_port = unit_random_below(&random, 2),
                                       .secrets = unit_random_below(&random, 2),
                                       .paths = unit_random_below(&random, SPEC_MAX_PATHS + 1)};
        struct spec_run read;
        struct report report;
        enum spec_message kind;
        AR_AUTO_FREE char *text = spec_run_message(&order);
        ck_assert_int_eq(spec_parse_daemon_message(text, strlen(text), &kind, &read), 0);
        ck_assert_int_eq(kind, SPEC_RUN);
        ck_assert_uint_eq(read.spec_bytes, order.spec_bytes);
        ck_assert_uint_eq(read.paths, order.paths);
        ck_assert_int_eq(read.data_port, order.data_port);
        ck_assert_int_eq(read.secrets, order.secrets);
        ck_assert_uint_le(spec_run_descriptors(&read), SPEC_MAX_DESCRIPTORS);
        ck_assert_int_eq(spec_parse_provider_message(text, strlen(text), &kind, &report), 1);
    }
}
END_TEST

START_TEST(test_outputs_survive)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < ROUNDS; round++) {
        struct output_file files[MAX_ITEMS] = {{0}}, *again = NULL;
        struct text_list asked = {0};
        struct fault fault = {0};
        size_t length = 0, count = unit_random_below(&random, MAX_ITEMS);
        for (size_t i = 0; i < count; i++) {
            files[i].path = random_path(&random, i);
            ck_assert_int_eq(text_list_add(&asked, files[i].path), 0);
            files[i].problem =
                (enum output_problem)unit_random_below(&random, OUTPUT_PROBLEM_COUNT);
            if (files[i].problem == OUTPUT_OK)
                files[i].content = random_bytes(&random);
        }
        AR_AUTO_FREE char *text = spec_outputs_build(files, count, &length);
        ck_assert_msg(spec_outputs_parse(text, length, &asked, &again, &fault) == 0, "%s", text);
        for (size_t i = 0; i < count; i++) {
            ck_assert_str_eq(again[i].path, files[i].path);
            ck_assert_int_eq(again[i].problem, files[i].problem);
            ck_assert_uint_eq(again[i].content.length, files[i].content.length);
            if (files[i].problem == OUTPUT_OK)
                ck_assert(same_bytes(&again[i].content, &files[i].content));
            free(files[i].path);
            bytes_free(&files[i].content);
        }
        spec_outputs_free(again, count);
        text_list_free(&asked);
    }
}
END_TEST

/* ---- one byte ------------------------------------------------------------------------------------ */

/* With at least one of everything. */
static char *whole_spec(void)
{
    struct request *request = NULL;
    struct fault fault = {0};
    size_t length;
    AR_AUTO_JSON json_t *params = unit_json(
        "{'company':'a','actor':'a','purpose':'p','language':'c','code':'\\u00e9','args':['x\\n'],"
        "'env':{'A':'1'},'files':[{'path':'d/f','text':'t'}],'outputs':['o'],'grant':{'network':"
        "{'mode':'allowlist','hosts':['*.t:1']},'data_api':['a.b'],'secrets':['K'],'filesystem':"
        "{'read':['/r'],'write':['/w']},'limits':{'wall_ms':5,'cpu_ms':10}}}");
    ck_assert_int_eq(request_parse(params, &request, &fault), 0);
    char *text =
        spec_build("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", request, &request->grant, &length);
    request_free(request);
    return text;
}

START_TEST(test_no_byte_of_a_spec_harms)
{
    AR_AUTO_FREE char *text = whole_spec();
    expect_no_harm(read_spec, text, 256 / SOME_VALUES);
}
END_TEST

START_TEST(test_no_byte_of_a_message_harms)
{
    struct usage provider_usage = USAGE_UNKNOWN;
    provider_usage.wall_us = provider_usage.user_us = provider_usage.output_bytes = 1;
    const struct report exited = {.outcome = OUTCOME_EXITED, .usage = provider_usage};
    const struct report over = {
        .outcome = OUTCOME_LIMIT, .limit = LIMIT_MEMORY_BYTES, .usage = USAGE_UNKNOWN};
    AR_AUTO_FREE char *ready = spec_ready_message(false);
    AR_AUTO_FREE char *ahead = spec_ready_message(true);
    AR_AUTO_FREE char *clear = spec_clear_message();
    AR_AUTO_FREE char *run = spec_run_message(&(struct spec_run){.spec_bytes = SPEC_MAX_BYTES});
    AR_AUTO_FREE char *report = spec_report_message(&exited);
    AR_AUTO_FREE char *limit = spec_report_message(&over);
    expect_no_harm(read_provider, ready, 1);
    expect_no_harm(read_provider, ahead, 1);
    expect_no_harm(read_provider, report, 1);
    expect_no_harm(read_provider, limit, 1);
    expect_no_harm(read_daemon, clear, 1);
    expect_no_harm(read_daemon, run, 1);
}
END_TEST

START_TEST(test_no_byte_of_outputs_harms)
{
    expect_no_harm(read_outputs,
                   "{\"outputs\":[{\"path\":\"a\",\"base64\":\"AAECAw==\"},"
                   "{\"path\":\"b/c\",\"problem\":\"missing\"}]}",
                   1);
}
END_TEST

static const TTest **const survive[] = {&test_specs_survive, &test_reports_survive,
                                        &test_orders_survive, &test_outputs_survive, NULL};
static const TTest **const bytes[] = {&test_no_byte_of_a_spec_harms,
                                      &test_no_byte_of_a_message_harms,
                                      &test_no_byte_of_outputs_harms, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"survive", survive}, {"bytes", bytes}};
    return unit_main("spec_properties", cases, AR_COUNT(cases));
}
