/*
 * run_record.c - a run as the row that the ledger keeps of it.
 *
 * Everything here is a claim of the client (company, actor, purpose, language), a digest, a number or
 * a word from a closed vocabulary. Source, input, output, secrets and texts of providers have no way
 * into a record: this file never touches them.
 */
#include "daemon/run_record.h"

#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/registry.h"

#include <string.h>

static bool copy_text(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

/* The canonical text of a value, which is taken over. */
static bool copy_json(char **out, json_t *value)
{
    *out = value ? json_canonical(value) : NULL;
    json_decref(value);
    return *out;
}

static bool copy_claims(struct record *record, const struct run *run)
{
    const struct request *request = run->request;
    memcpy(record->run_id, run->id, sizeof record->run_id);
    memcpy(record->code_sha256, request->code_sha256, DIGEST_HEX_BYTES);
    memcpy(record->request_sha256, request->request_sha256, DIGEST_HEX_BYTES);
    record->code_bytes = (int64_t)request->code.length;
    record->client_uid = run->client.uid;
    record->client_gid = run->client.gid;
    record->client_pid = run->client.pid;
    record->received_at = run->received_us;
    record->started_at = run->started_us ? run->started_us : ROW_NULL;
    return copy_text(&record->company, request->company) &&
           copy_text(&record->actor, request->actor) &&
           copy_text(&record->purpose, request->purpose) &&
           copy_text(&record->client_name, run->client.name) &&
           copy_text(&record->language, request->language) &&
           copy_json(&record->grant, grant_to_json(&request->grant));
}

/* traceparent is version-traceid-parentid-flags (W3C Trace Context); the trace id is its second. */
static bool copy_trace(struct record *record, const struct run *run)
{
    const char *parent = run->request->trace_parent;
    if (!parent)
        return true;
    record->trace_id = strndup(parent + 3, 32);
    return record->trace_id;
}

static bool copy_provider(struct record *record, const struct run *run)
{
    memcpy(record->envelope_sha256, run->envelope_sha256, DIGEST_HEX_BYTES);
    if (!run->executor || !executor_envelope(run->executor))
        return true;
    return copy_text(&record->provider, executor_config(run->executor)->name) &&
           copy_text(&record->provider_version, executor_envelope(run->executor)->version);
}

/* A key belongs to a run that was dispatched; runs that ended before do not take it. */
static bool copy_key(struct record *record, const struct run *run)
{
    return !run->noted || copy_text(&record->idempotency_key, run->request->idempotency_key);
}

static struct record *make(const struct run *run)
{
    struct record *record = record_new();
    if (!record)
        return NULL;
    if (copy_claims(record, run) && copy_trace(record, run) && copy_provider(record, run) &&
        copy_key(record, run) && copy_json(&record->denials, denials_to_json(&run->denials)) &&
        copy_json(&record->usage, usage_to_json(&run->usage)))
        return record;
    record_free(record);
    return NULL;
}

struct record *run_record_make(const struct run *run)
{
    struct record *record = make(run);
    if (!record)
        return NULL;
    record->status = run->status;
    record->reason = run->reason;
    record->finished_at = run->finished_us;
    bool own_end = run->status == STATUS_SUCCEEDED || run->status == STATUS_FAILED;
    if (own_end && run->report.outcome != OUTCOME_SIGNALED)
        record->exit_code = run->report.exit_code;
    if (own_end && run->report.outcome == OUTCOME_SIGNALED)
        record->signal = run->report.signal;
    return record;
}

struct record *run_record_intent(const struct run *run)
{
    struct record *record = make(run);
    if (!record)
        return NULL;
    record->status = STATUS_INTERRUPTED;
    record->reason = REASON_HOST_RESTARTED;
    record->finished_at = clock_wall_us();
    return record;
}
