/*
 * reply.c - what the caller is told.
 *
 * The only file that builds results of `run`, and it does so only for runs whose record has been
 * decided on: a terminal status leaves the daemon after its record, or inside an audit failure.
 */
#include "daemon/reply.h"

#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/overview.h"
#include "daemon/registry.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>

/* ---- bytes of the code as JSON ---------------------------------------------------------------- */

/* {"text"} or, when it is not UTF-8, {"base64"}. */
static json_t *bytes_value(const char *data, size_t length)
{
    if (text_is_utf8(data, length))
        return json_pack("{s:s%}", "text", data, length);
    AR_AUTO_FREE char *encoded = text_base64_encode(data, length);
    return encoded ? json_pack("{s:s}", "base64", encoded) : NULL;
}

static json_t *stream_value(const struct run *run, int which)
{
    struct evbuffer *buffer = run->output[which];
    size_t length = buffer ? evbuffer_get_length(buffer) : 0;
    const char *data = length ? (const char *)evbuffer_pullup(buffer, -1) : "";
    json_t *value = data ? bytes_value(data, length) : NULL;
    if (value &&
        json_object_set_new(value, "truncated", json_boolean(run->truncated[which])) != 0) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static json_t *output_value(const struct output_file *file)
{
    json_t *value = file->problem
                        ? json_pack("{s:s}", "problem", output_problem_word(file->problem))
                        : bytes_value(file->content.data, file->content.length);
    if (value && json_object_set_new(value, "path", json_string(file->path)) != 0) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static json_t *outputs_value(const struct run *run)
{
    json_t *list = json_array();
    for (size_t i = 0; list && run->outputs && i < run->request->outputs.count; i++) {
        if (json_array_append_new(list, output_value(&run->outputs[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* ---- results ---------------------------------------------------------------------------------- */

static json_t *provider_value(const struct run *run)
{
    if (!run->executor || !executor_envelope(run->executor))
        return json_null();
    return json_pack("{s:s, s:s}", "name", executor_config(run->executor)->name, "version",
                     executor_envelope(run->executor)->version);
}

static json_t *number_or_null(bool there, int number)
{
    return there ? json_integer(number) : json_null();
}

/* With the hosts of the grant that were used, which no record has. */
static json_t *usage_value(const struct run *run)
{
    json_t *usage = usage_to_json(&run->usage);
    json_t *network = json_object_get(usage, "network");
    if (!network || !run->network_hosts ||
        json_object_set(network, "hosts", run->network_hosts) == 0)
        return usage;
    json_decref(usage);
    return NULL;
}

static json_t *result_value(const struct run *run)
{
    bool own_end = run->status == STATUS_SUCCEEDED || run->status == STATUS_FAILED;
    bool signaled = own_end && run->report.outcome == OUTCOME_SIGNALED;
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:{s:s, s:I, s:s}}",
        "run_id", run->id, "status", status_word(run->status), "reason", reason_word(run->reason),
        "exit_code", number_or_null(own_end && !signaled, run->report.exit_code), "signal",
        number_or_null(signaled, run->report.signal), "stdout", stream_value(run, 0), "stderr",
        stream_value(run, 1), "outputs", outputs_value(run), "usage", usage_value(run),
        "code_sha256", run->request->code_sha256, "provider", provider_value(run), "grant",
        grant_to_json(&run->request->grant), "denials", denials_to_json(&run->denials), "record",
        "writer", run->place.writer, "seq", (json_int_t)run->place.seq, "hash", run->place.hash);
}

static json_t *text_as_value(const char *text)
{
    return text ? json_loads(text, 0, NULL) : json_null();
}

static json_t *integer_or_null(int64_t value)
{
    return value == ROW_NULL ? json_null() : json_integer(value);
}

/* What the ledger knows of the run that has the key: everything but its output. */
static json_t *replay_value(const struct record *record)
{
    json_t *provider = record->provider ? json_pack("{s:s, s:s}", "name", record->provider,
                                                    "version", record->provider_version)
                                        : json_null();
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:[], s:o, s:s, s:o, s:o, s:o, s:{s:s, "
                     "s:I, s:s}, s:b}",
                     "run_id", record->run_id, "status", status_word(record->status), "reason",
                     reason_word(record->reason), "exit_code", integer_or_null(record->exit_code),
                     "signal", integer_or_null(record->signal), "stdout",
                     json_pack("{s:s, s:b}", "text", "", "truncated", 1), "stderr",
                     json_pack("{s:s, s:b}", "text", "", "truncated", 1), "outputs", "usage",
                     text_as_value(record->usage), "code_sha256", record->code_sha256, "provider",
                     provider, "grant", text_as_value(record->grant), "denials",
                     text_as_value(record->denials), "record", "writer", record->writer, "seq",
                     (json_int_t)record->seq, "hash", record->row_hash, "replayed", 1);
}

static json_t *failure_value(const struct run *run)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:b}", "run_id", run->id, "terminal_status",
                     status_word(run->status), "terminal_reason", reason_word(run->reason), "usage",
                     usage_to_json(&run->usage), "kept", run->audit == RUN_AUDIT_KEPT);
}

static char *answer_line(const struct run *run, size_t *length)
{
    const char *id_text = run->pending.id_text;
    if (run->withdrawn && !run->replay) {
        struct rpc_error error = {.code = RPC_INVALID_PARAMS};
        metrics_count_error(run->line, error.code);
        static const struct fault reused = {PROBLEM_KEY_REUSED, "/idempotency_key"};
        error.fault = reused;
        memcpy(error.id_text, id_text, sizeof error.id_text);
        return rpc_refusal_line(&error, length);
    }
    if (!run->withdrawn && run->audit != RUN_AUDIT_COMMITTED) {
        AR_AUTO_JSON json_t *data = failure_value(run);
        metrics_count_error(run->line, RPC_AUDIT_FAILURE);
        return data ? rpc_error_line(id_text, RPC_AUDIT_FAILURE, data, length) : NULL;
    }
    AR_AUTO_JSON json_t *result = run->replay ? replay_value(run->replay) : result_value(run);
    return result ? rpc_result_line(id_text, result, length) : NULL;
}

/* One line a run, of numbers, words of ours and names of the configuration. */
static void log_end(const struct run *run)
{
    static const char *const audits[] = {[RUN_AUDIT_COMMITTED] = "recorded",
                                         [RUN_AUDIT_KEPT] = "kept",
                                         [RUN_AUDIT_AT_RISK] = "not_recorded"};
    char wall[24], seq[24], trace[33] = "";
    struct log_field fields[LOG_MAX_FIELDS] = {{"run_id", run->id, true},
                                               {"client", run->client.name, false}};
    size_t count = 2;
    if (run->request->trace_parent) /* checked: its second part is 32 hexadecimal digits */
        memcpy(trace, run->request->trace_parent + 3, 32);
    if (!run->withdrawn) {
        (void)snprintf(wall, sizeof wall, "%lld", (long long)run->usage.wall_us);
        (void)snprintf(seq, sizeof seq, "%lld", (long long)run->place.seq);
        fields[count++] = (struct log_field){"status", status_word(run->status), false};
        fields[count++] = (struct log_field){"reason", reason_word(run->reason), false};
        if (run->executor)
            fields[count++] =
                (struct log_field){"executor", executor_config(run->executor)->name, false};
        fields[count++] = (struct log_field){"wall_us", wall, false};
        fields[count++] = (struct log_field){"record", audits[run->audit], false};
        fields[count++] = (struct log_field){"seq", seq, false};
    }
    if (trace[0])
        fields[count++] = (struct log_field){"trace_id", trace, false};
    log_write_fields(LOG_LEVEL_INFO, fields, count, "run %s%s", run->id,
                     run->withdrawn ? " withdrawn: its idempotency key is taken" : "");
}

void reply_stage(struct run *run, run_done_fn *done)
{
    log_end(run);
    metrics_count_run(run->line, run);
    overview_note(run->line->overview, run);
    if (run->pending.session) {
        size_t length = 0;
        char *line = run->pending.id_text[0] ? answer_line(run, &length) : NULL;
        session_answer(&run->pending, line, length);
    }
    done(run);
}

/* ---- while it runs ---------------------------------------------------------------------------- */

void reply_stream(struct run *run, int which, int n)
{
    static const char *const names[] = {"stdout", "stderr"};
    struct session *session = run->pending.session;
    size_t length = evbuffer_get_length(run->output[which]);
    size_t line_length;
    if (!run->request->stream || !session || !run->pending.id_text[0] || n <= 0 ||
        length < (size_t)n || !session_has_room(session))
        return;
    size_t offset = length - (size_t)n;
    const char *data = (const char *)evbuffer_pullup(run->output[which], -1);
    AR_AUTO_JSON json_t *params = data ? bytes_value(data + offset, (size_t)n) : NULL;
    json_t *id = json_loads(run->pending.id_text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!params || json_object_set_new(params, "request_id", id) != 0 ||
        json_object_set_new(params, "run_id", json_string(run->id)) != 0 ||
        json_object_set_new(params, "stream", json_string(names[which])) != 0 ||
        json_object_set_new(params, "offset", json_integer((json_int_t)offset)) != 0)
        return;
    char *line = rpc_notification_line("output", params, &line_length);
    if (line)
        session_send(session, line, line_length);
}
