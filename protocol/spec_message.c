/*
 * spec_message.c - the control messages between daemon and provider (declared in spec.h).
 *
 * A message is taken only if it is exactly one that the contract knows. What a provider reports
 * must be whole: an exit code without an exit, or an exit without its code, is no report.
 */
#include "protocol/spec.h"

#include <string.h>

#define SIGNAL_MAX 64
#define USAGE_MAX  ((INT64_C(1) << 53) - 1)

static const char *const outcome_words[OUTCOME_COUNT] = {
    [OUTCOME_EXITED] = "exited",
    [OUTCOME_SIGNALED] = "signaled",
    [OUTCOME_LIMIT] = "limit",
    [OUTCOME_COMPILE_FAILED] = "compile_failed",
    [OUTCOME_SETUP_FAILED] = "setup_failed",
};

/* The members of usage that a provider may report, and where they are. */
static const struct {
    const char *name;
    size_t offset;
} usage_members[] = {
    {"wall_us", offsetof(struct usage, wall_us)},
    {"user_us", offsetof(struct usage, user_us)},
    {"system_us", offsetof(struct usage, system_us)},
    {"memory_peak_bytes", offsetof(struct usage, memory_peak_bytes)},
    {"processes_peak", offsetof(struct usage, processes_peak)},
    {"output_bytes", offsetof(struct usage, output_bytes)},
};

const char *outcome_word(enum outcome outcome)
{
    return outcome_words[outcome];
}

bool outcome_from_word(const char *word, enum outcome *out)
{
    for (size_t i = 0; i < OUTCOME_COUNT; i++) {
        if (strcmp(outcome_words[i], word) == 0) {
            *out = (enum outcome)i;
            return true;
        }
    }
    return false;
}

/* ---- usage -------------------------------------------------------------------------------------- */

static json_t *network_to_json(const struct usage_network *usage)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "connections", (json_int_t)usage->connections,
                     "refusals", (json_int_t)usage->refusals, "bytes_in",
                     (json_int_t)usage->bytes_in, "bytes_out", (json_int_t)usage->bytes_out);
}

static json_t *data_api_to_json(const struct usage_data_api *usage)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "calls", (json_int_t)usage->calls, "denials",
                     (json_int_t)usage->denials, "bytes_in", (json_int_t)usage->bytes_in,
                     "bytes_out", (json_int_t)usage->bytes_out);
}

json_t *usage_to_json(const struct usage *usage)
{
    AR_AUTO_JSON json_t *object = json_object();
    if (!object)
        return NULL;
    for (size_t i = 0; i < AR_COUNT(usage_members); i++) {
        int64_t value;
        memcpy(&value, (const char *)usage + usage_members[i].offset, sizeof(value));
        if (value >= 0 && json_object_set_new(object, usage_members[i].name, json_integer(value)))
            return NULL;
    }
    if (usage->network.connections >= 0 &&
        json_object_set_new(object, "network", network_to_json(&usage->network)))
        return NULL;
    if (usage->data_api.calls >= 0 &&
        json_object_set_new(object, "data_api", data_api_to_json(&usage->data_api)))
        return NULL;
    return AR_TAKE(object);
}

static int read_usage(const json_t *report, struct usage *out, struct fault *fault)
{
    struct json_member members[AR_COUNT(usage_members)];
    struct json_place here = {.member = "usage"};
    const json_t *usage = json_object_get(report, "usage");
    *out = USAGE_UNKNOWN;
    if (!usage)
        return 0;
    for (size_t i = 0; i < AR_COUNT(usage_members); i++)
        members[i] = (struct json_member){usage_members[i].name, false};
    if (json_check_object(usage, members, AR_COUNT(members), &here, fault))
        return 1;
    for (size_t i = 0; i < AR_COUNT(usage_members); i++) {
        int64_t value = -1;
        if (json_read_integer(usage, usage_members[i].name, &here, 0, USAGE_MAX, &value, fault))
            return 1;
        memcpy((char *)out + usage_members[i].offset, &value, sizeof(value));
    }
    return 0;
}

/* ---- report ------------------------------------------------------------------------------------- */

/* A member that is there exactly when the outcome has one; null counts as not there. */
static bool is_present(const json_t *report, const char *member)
{
    const json_t *value = json_object_get(report, member);
    return value && !json_is_null(value);
}

static int read_number(const json_t *report, const char *member, bool wanted, int min, int max,
                       int *out, struct fault *fault)
{
    int64_t value = 0;
    if (is_present(report, member) != wanted)
        return json_fault(fault, NULL, member, wanted ? PROBLEM_MISSING : PROBLEM_CONFLICT);
    if (wanted && json_read_integer(report, member, NULL, min, max, &value, fault))
        return 1;
    *out = (int)value;
    return 0;
}

/* The limits that a provider can tell; wall clock and output are the daemon's own to find. */
static bool is_reportable(enum limit limit)
{
    return limit == LIMIT_CPU_MS || limit == LIMIT_MEMORY_BYTES || limit == LIMIT_PROCESSES ||
           limit == LIMIT_SCRATCH_BYTES;
}

static int read_limit(const json_t *report, bool wanted, enum limit *out, struct fault *fault)
{
    const char *word = NULL;
    if (is_present(report, "limit") != wanted)
        return json_fault(fault, NULL, "limit", wanted ? PROBLEM_MISSING : PROBLEM_CONFLICT);
    if (!wanted)
        return 0;
    if (json_read_line(report, "limit", NULL, 1, 32, &word, fault))
        return 1;
    if (!limit_from_word(word, out) || !is_reportable(*out))
        return json_fault(fault, NULL, "limit", PROBLEM_NOT_ALLOWED_WORD);
    return 0;
}

static int read_report(const json_t *value, struct report *out, struct fault *fault)
{
    static const struct json_member members[] = {{"outcome", true},
                                                 {"exit_code", false},
                                                 {"signal", false},
                                                 {"limit", false},
                                                 {"usage", false}};
    const char *word = NULL;
    *out = (struct report){0};
    if (json_check_object(value, members, AR_COUNT(members), NULL, fault) ||
        json_read_line(value, "outcome", NULL, 1, 32, &word, fault))
        return 1;
    if (!outcome_from_word(word, &out->outcome))
        return json_fault(fault, NULL, "outcome", PROBLEM_NOT_ALLOWED_WORD);
    bool has_code = out->outcome == OUTCOME_EXITED || out->outcome == OUTCOME_COMPILE_FAILED;
    if (read_number(value, "exit_code", has_code, 0, 255, &out->exit_code, fault) ||
        read_number(value, "signal", out->outcome == OUTCOME_SIGNALED, 1, SIGNAL_MAX, &out->signal,
                    fault) ||
        read_limit(value, out->outcome == OUTCOME_LIMIT, &out->limit, fault))
        return 1;
    return read_usage(value, &out->usage, fault);
}

/* ---- messages in -------------------------------------------------------------------------------- */

/* The one member of a message: 0 with *name and *value (borrowed from document), 1, or -ENOMEM. */
static int parse_message(const char *text, size_t length, struct json_document *document,
                         const char **name, const json_t **value)
{
    *document = (struct json_document){0};
    if (length > SPEC_MESSAGE_BYTES)
        return 1;
    int outcome = json_parse(text, length, document);
    if (outcome != JSON_OK)
        return outcome < 0 ? outcome : 1;
    void *first = json_object_iter(document->root);
    if (json_object_size(document->root) != 1)
        return 1;
    *name = json_object_iter_key(first);
    *value = json_object_iter_value(first);
    return 0;
}

int spec_parse_provider_message(const char *text, size_t length, enum spec_message *kind,
                                struct report *report)
{
    AR_CLEANUP(json_document_free) struct json_document document;
    struct fault fault = {0};
    const char *name;
    const json_t *value;
    int error = parse_message(text, length, &document, &name, &value);
    if (error)
        return error;
    if (strcmp(name, "ready") == 0) {
        bool ahead = json_is_string(value) && strcmp(json_string_value(value), "ahead") == 0;
        *kind = ahead ? SPEC_READY_AHEAD : SPEC_READY;
        return ahead || json_is_true(value) ? 0 : 1;
    }
    if (strcmp(name, "listener") == 0) {
        *kind = SPEC_LISTENER;
        return json_is_true(value) ? 0 : 1;
    }
    *kind = SPEC_REPORT;
    return strcmp(name, "report") == 0 ? read_report(value, report, &fault) : 1;
}

static int read_run(const json_t *value, struct spec_run *run)
{
    static const struct json_member members[] = {
        {"spec_bytes", true}, {"data_port", false}, {"secrets", false}, {"paths", false}};
    struct fault fault = {0};
    int64_t bytes = 0, paths = 0;
    *run = (struct spec_run){0};
    if (json_check_object(value, members, AR_COUNT(members), NULL, &fault) ||
        json_read_integer(value, "spec_bytes", NULL, 1, SPEC_MAX_BYTES, &bytes, &fault) ||
        json_read_bool(value, "data_port", NULL, &run->data_port, &fault) ||
        json_read_bool(value, "secrets", NULL, &run->secrets, &fault) ||
        json_read_integer(value, "paths", NULL, 0, SPEC_MAX_PATHS, &paths, &fault))
        return 1;
    run->spec_bytes = (size_t)bytes;
    run->paths = (size_t)paths;
    return 0;
}

int spec_parse_daemon_message(const char *text, size_t length, enum spec_message *kind,
                              struct spec_run *run)
{
    AR_CLEANUP(json_document_free) struct json_document document;
    const char *name;
    const json_t *value;
    int error = parse_message(text, length, &document, &name, &value);
    if (error)
        return error;
    if (strcmp(name, "clear") == 0) {
        *kind = SPEC_CLEAR;
        return json_is_true(value) ? 0 : 1;
    }
    *kind = SPEC_RUN;
    return strcmp(name, "run") == 0 ? read_run(value, run) : 1;
}

/* ---- what comes with a run ---------------------------------------------------------------------- */

size_t spec_run_secrets_place(const struct spec_run *run)
{
    return SPEC_DESCRIPTORS + (run->data_port ? 1 : 0);
}

size_t spec_run_paths_place(const struct spec_run *run)
{
    return spec_run_secrets_place(run) + (run->secrets ? 1 : 0);
}

size_t spec_run_descriptors(const struct spec_run *run)
{
    return spec_run_paths_place(run) + run->paths;
}

/* ---- messages out ------------------------------------------------------------------------------- */

char *spec_ready_message(bool ahead)
{
    return strdup(ahead ? "{\"ready\":\"ahead\"}" : "{\"ready\":true}");
}

char *spec_clear_message(void)
{
    return strdup("{\"clear\":true}");
}

char *spec_listener_message(void)
{
    return strdup("{\"listener\":true}");
}

char *spec_run_message(const struct spec_run *run)
{
    json_t *body = json_pack("{s:I}", "spec_bytes", (json_int_t)run->spec_bytes);
    AR_AUTO_JSON json_t *message = json_pack("{s:o}", "run", body);
    if (!message)
        return NULL;
    if ((run->data_port && json_object_set_new(body, "data_port", json_true())) ||
        (run->secrets && json_object_set_new(body, "secrets", json_true())) ||
        (run->paths > 0 &&
         json_object_set_new(body, "paths", json_integer((json_int_t)run->paths))))
        return NULL;
    return json_dumps(message, JSON_COMPACT);
}

/* Adds what the outcome has besides its word; 0 or -1. */
static int add_detail(json_t *body, const struct report *report)
{
    switch (report->outcome) {
    case OUTCOME_EXITED:
    case OUTCOME_COMPILE_FAILED:
        return json_object_set_new(body, "exit_code", json_integer(report->exit_code));
    case OUTCOME_SIGNALED:
        return json_object_set_new(body, "signal", json_integer(report->signal));
    case OUTCOME_LIMIT:
        return json_object_set_new(body, "limit", json_string(limit_word(report->limit)));
    case OUTCOME_SETUP_FAILED:
    case OUTCOME_COUNT:
        break;
    }
    return 0;
}

char *spec_report_message(const struct report *report)
{
    AR_AUTO_JSON json_t *message = json_object();
    json_t *body = json_object();
    if (json_object_set_new(message, "report", body) ||
        json_object_set_new(body, "outcome", json_string(outcome_word(report->outcome))) ||
        add_detail(body, report) ||
        json_object_set_new(body, "usage", usage_to_json(&report->usage)))
        return NULL;
    return json_dumps(message, JSON_COMPACT);
}
