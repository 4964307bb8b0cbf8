/*
 * methods.c - what a client may ask.
 *
 * Each handler first refuses (by the state of the daemon, then by the fields of its params), then
 * acts. `run` puts a run on the line and is answered at its end by reply.c; the others are answered
 * here.
 */
#include "daemon/methods.h"

#include "build_config.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/journal.h"
#include "daemon/latency.h"
#include "daemon/ledger.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/overview.h"
#include "daemon/policy.h"
#include "daemon/registry.h"
#include "daemon/run.h"
#include "daemon/signer.h"
#include "daemon/switches.h"

#include <string.h>

typedef void method_handler(struct session *session, const struct rpc_call *call);

static void answer_now(struct session *session, const struct rpc_call *call, json_t *result)
{
    size_t length = 0;
    if (call->id_text[0]) {
        char *line = result ? rpc_result_line(call->id_text, result, &length) : NULL;
        session_send(session, line, length);
    }
    json_decref(result);
}

static void refuse(struct session *session, const char *id_text, enum rpc_code code,
                   const struct fault *fault)
{
    struct rpc_error error = {.code = code};
    size_t length;
    if (!id_text[0])
        return;
    metrics_count_error(session_line(session), code);
    memcpy(error.id_text, id_text, strlen(id_text) + 1);
    if (fault)
        error.fault = *fault;
    char *line = rpc_refusal_line(&error, &length);
    session_send(session, line, length);
}

static void run_client_gone(struct pending *pending)
{
    struct run *run = (struct run *)((char *)pending - offsetof(struct run, pending));
    (void)run_stop(run, RUN_STOP_GONE);
}

static void serve_run(struct session *session, const struct rpc_call *call)
{
    struct request *request;
    struct fault fault = {0};
    int rc = request_parse(call->params, &request, &fault);
    if (rc != 0) {
        refuse(session, call->id_text, rc > 0 ? RPC_INVALID_PARAMS : RPC_INTERNAL_ERROR, &fault);
        return;
    }
    struct run *run = run_new(session_line(session), session_client(session), request);
    if (!run) {
        refuse(session, call->id_text, RPC_INTERNAL_ERROR, NULL);
        return;
    }
    if (session_owe(session, &run->pending, call->id_text, run_client_gone) == 0)
        run_start(run);
}

static struct run *find_run(struct session *session, const struct cancel_request *cancel)
{
    if (cancel->run_id[0])
        return run_find(session_line(session), cancel->run_id);
    struct pending *pending = session_find(session, cancel->id_text);
    return pending && pending->gone == run_client_gone
               ? (struct run *)((char *)pending - offsetof(struct run, pending))
               : NULL;
}

static bool is_own_run(const struct session *session, const struct run *run)
{
    const struct peer_client *client = session_client(session);
    return strcmp(run->client.name, client->name) == 0 && run->client.uid == client->uid;
}

static void serve_cancel(struct session *session, const struct rpc_call *call)
{
    struct cancel_request cancel;
    struct fault fault = {0};
    if (cancel_request_parse(call->params, &cancel, &fault) != 0) {
        refuse(session, call->id_text, RPC_INVALID_PARAMS, &fault);
        return;
    }
    struct run *run = find_run(session, &cancel);
    if (run && !is_own_run(session, run)) {
        refuse(session, call->id_text, RPC_NOT_FOUND, NULL);
        return;
    }
    bool cancelled = run && run_stop(run, RUN_STOP_CANCELLED);
    answer_now(session, call, json_pack("{s:b}", "cancelled", cancelled));
}

static void serve_executors(struct session *session, const struct rpc_call *call)
{
    struct fault fault = {0};
    const struct peer_client *client = session_client(session);
    struct registry *registry = session_line(session)->registry;
    struct executor *executor = NULL;
    if (request_parse_empty(call->params, &fault) != 0) {
        refuse(session, call->id_text, RPC_INVALID_PARAMS, &fault);
        return;
    }
    json_t *list = json_array();
    while (list && (executor = registry_next(registry, executor))) {
        const struct config_executor *config = executor_config(executor);
        if (!executor_envelope(executor) || !config->enabled ||
            !config_names_allow(&client->policy->executors, config->name))
            continue;
        if (json_array_append_new(list, policy_show(client->policy, executor_envelope(executor))) !=
            0) {
            json_decref(list);
            list = NULL;
        }
    }
    answer_now(session, call, list ? json_pack("{s:o}", "executors", list) : NULL);
}

/* A `record` that waits for the ledger's answer. */
struct lookup {
    struct pending pending;
    const struct config *config; /* that the client's policy is of; held */
    struct line *line;
    struct peer_client client;
};

static void answer_lookup(void *context, enum sink_answer answer, const struct record *record)
{
    struct lookup *lookup = context;
    struct pending *pending = &lookup->pending;
    size_t length = 0;
    char *line = NULL;
    if (answer == SINK_FOUND &&
        config_names_allow(&lookup->client.policy->companies, record->company)) {
        AR_AUTO_JSON json_t *result = json_pack("{s:o}", "record", record_to_json(record));
        if (result)
            line = rpc_result_line(pending->id_text, result, &length);
    } else {
        enum rpc_code code = answer == SINK_FAILED ? RPC_INTERNAL_ERROR : RPC_NOT_FOUND;
        metrics_count_error(lookup->line, code);
        line = rpc_error_line(pending->id_text, code, NULL, &length);
    }
    session_answer(pending, line, length);
    config_release(lookup->config);
    free(lookup);
}

static void serve_record(struct session *session, const struct rpc_call *call)
{
    struct record_request wanted;
    struct fault fault = {0};
    const struct peer_client *client = session_client(session);
    if (record_request_parse(call->params, &wanted, &fault) != 0) {
        refuse(session, call->id_text, RPC_INVALID_PARAMS, &fault);
        return;
    }
    if (wanted.company && !config_names_allow(&client->policy->companies, wanted.company)) {
        refuse(session, call->id_text, RPC_FORBIDDEN, NULL);
        return;
    }
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup) {
        refuse(session, call->id_text, RPC_INTERNAL_ERROR, NULL);
        return;
    }
    lookup->line = session_line(session);
    lookup->client = *client;
    lookup->config = config_hold(session_line(session)->config);
    if (session_owe(session, &lookup->pending, call->id_text, NULL) != 0) {
        config_release(lookup->config);
        free(lookup);
        refuse(session, "null", RPC_INVALID_REQUEST, NULL);
        return;
    }
    struct sink_key key = {wanted.run_id, wanted.company, wanted.idempotency_key, NULL};
    ledger_find(session_line(session)->ledger, &key, answer_lookup, lookup);
}

static void serve_status(struct session *session, const struct rpc_call *call)
{
    struct fault fault = {0};
    struct line *line = session_line(session);
    if (request_parse_empty(call->params, &fault) != 0) {
        refuse(session, call->id_text, RPC_INVALID_PARAMS, &fault);
        return;
    }
    int64_t queued = (int64_t)run_count(line, RUN_RECEIVED, RUN_QUEUED);
    int64_t running = (int64_t)run_count(line, RUN_QUEUED, RUN_ANSWERED);
    json_t *result = json_pack(
        "{s:s, s:i, s:s, s:I, s:b, s:{s:I, s:I, s:I}, s:o, s:o, s:o, s:o, s:o, s:I}", "version",
        AR_VERSION, "protocol", RPC_PROTOCOL, "writer", ledger_writer(line->ledger), "uptime_ms",
        (json_int_t)((clock_monotonic_us() - line->started_us) / 1000), "draining", line->draining,
        "runs", "queued", (json_int_t)queued, "running", (json_int_t)running, "total",
        (json_int_t)line->total, "ledger", ledger_status(line->ledger), "checkpoint",
        line->signer ? signer_status(line->signer) : json_null(), "journal",
        journal_status(line->journal), "executors", registry_status(line->registry), "loop",
        latency_status(line->latency), "switches_off", (json_int_t)switches_count(line->switches));
    answer_now(session, call, result);
}

/* A throw that waits for the journal. */
static void answer_throw(void *context, const struct switches_outcome *outcome)
{
    struct pending *pending = context;
    size_t length = 0;
    AR_AUTO_JSON json_t *result = json_pack(
        "{s:b, s:b, s:I, s:b}", "changed", outcome->changed, "durable", outcome->durable, "stopped",
        (json_int_t)outcome->stopped, "configured_off", outcome->configured_off);
    char *line = result ? rpc_result_line(pending->id_text, result, &length) : NULL;
    session_answer(pending, line, length);
    free(pending);
}

/* May this client throw switches, and see them? */
static bool permit_switches(struct session *session, const struct rpc_call *call)
{
    const struct peer_client *client = session_client(session);
    if (client->policy->switches)
        return true;
    log_warning("client %s uid %ld pid %ld has no switches: forbidden", client->name,
                (long)client->uid, (long)client->pid);
    refuse(session, call->id_text, RPC_FORBIDDEN, NULL);
    return false;
}

static void throw_switch(struct session *session, const struct rpc_call *call,
                         const struct switch_order *order, bool off)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending || session_owe(session, pending, call->id_text, NULL) != 0) {
        refuse(session, "null", pending ? RPC_INVALID_REQUEST : RPC_INTERNAL_ERROR, NULL);
        free(pending);
        return;
    }
    int rc = switches_throw(session_line(session)->switches, order, off, session_client(session),
                            answer_throw, pending);
    if (rc == 0)
        return;
    size_t length;
    char *line = rpc_error_line(pending->id_text, rc > 0 ? RPC_NOT_FOUND : RPC_INTERNAL_ERROR, NULL,
                                &length);
    session_answer(pending, line, length);
    free(pending);
}

static void serve_throw(struct session *session, const struct rpc_call *call, bool off)
{
    struct switch_order order;
    struct fault fault = {0};
    if (switch_order_parse(call->params, off, &order, &fault) != 0)
        refuse(session, call->id_text, RPC_INVALID_PARAMS, &fault);
    else if (permit_switches(session, call))
        throw_switch(session, call, &order, off);
}

static void serve_disable(struct session *session, const struct rpc_call *call)
{
    serve_throw(session, call, true);
}

static void serve_enable(struct session *session, const struct rpc_call *call)
{
    serve_throw(session, call, false);
}

static void serve_switches(struct session *session, const struct rpc_call *call)
{
    struct fault fault = {0};
    if (request_parse_empty(call->params, &fault) != 0) {
        refuse(session, call->id_text, RPC_INVALID_PARAMS, &fault);
    } else if (permit_switches(session, call)) {
        json_t *list = switches_list(session_line(session)->switches);
        answer_now(session, call, list ? json_pack("{s:o}", "switches", list) : NULL);
    }
}

static void serve_top(struct session *session, const struct rpc_call *call)
{
    struct fault fault = {0};
    if (request_parse_empty(call->params, &fault) != 0)
        refuse(session, call->id_text, RPC_INVALID_PARAMS, &fault);
    else
        answer_now(session, call,
                   overview_make(session_line(session), session_client(session)->policy));
}

static const struct method {
    method_handler *serve;
    bool when_draining;
} methods[RPC_METHOD_COUNT] = {
    [RPC_METHOD_RUN] = {serve_run, true}, /* admission answers and records that it drains */
    [RPC_METHOD_CANCEL] = {serve_cancel, true},
    [RPC_METHOD_EXECUTORS] = {serve_executors, true},
    [RPC_METHOD_RECORD] = {serve_record, false},
    [RPC_METHOD_STATUS] = {serve_status, true},
    [RPC_METHOD_DISABLE] = {serve_disable, false},
    [RPC_METHOD_ENABLE] = {serve_enable, false},
    [RPC_METHOD_SWITCHES] = {serve_switches, true},
    [RPC_METHOD_TOP] = {serve_top, true},
};

void methods_serve(struct session *session, const char *line, size_t length)
{
    struct rpc_call call;
    struct rpc_error error;
    size_t answer_length;
    int rc = rpc_parse(line, length, &call, &error);
    if (rc < 0) {
        refuse(session, "null", RPC_INTERNAL_ERROR, NULL);
        return;
    }
    if (rc == RPC_REFUSED) {
        if (!error.id_text[0])
            return;
        metrics_count_error(session_line(session), error.code);
        char *answer = rpc_refusal_line(&error, &answer_length);
        session_send(session, answer, answer_length);
        return;
    }
    metrics_count_request(session_line(session), call.method);
    if (session_find(session, call.id_text))
        refuse(session, "null", RPC_INVALID_REQUEST, NULL);
    else if (session_line(session)->draining && !methods[call.method].when_draining)
        refuse(session, call.id_text, RPC_FORBIDDEN, NULL);
    else
        methods[call.method].serve(session, &call);
    rpc_call_free(&call);
}

void methods_refuse_line(struct session *session)
{
    refuse(session, "null", RPC_INVALID_REQUEST, NULL);
}
