/*
 * metrics_table.c - every metric of the daemon, in the order in which they are told.
 *
 * Labels are words of our vocabularies or names of the configuration, so the number of series is bounded
 * by what an operator has written, and nothing that a client sends makes another one. Series of a
 * vocabulary are all there from the start: a rate of something that happens for the first time is seen.
 */
#include "daemon/metrics_table.h"

#include "build_config.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/journal.h"
#include "daemon/latency.h"
#include "daemon/ledger.h"
#include "daemon/metrics.h"
#include "daemon/process.h"
#include "daemon/queue.h"
#include "daemon/registry.h"
#include "daemon/signer.h"
#include "daemon/switches.h"

#include <stdio.h>

#define PREFIX "auditrun_"

typedef void family_fn(struct exposition *exposition, struct line *line);

static void one(struct exposition *exposition, int64_t value)
{
    exposition_number(exposition, NULL, 0, value);
}

static void one_of(struct exposition *exposition, const char *label, const char *word,
                   int64_t value)
{
    const struct exposition_label labels[] = {{label, word}};
    exposition_number(exposition, labels, 1, value);
}

/* ---- runs --------------------------------------------------------------------------------------- */

static void put_runs(struct exposition *exposition, struct line *line)
{
    for (enum reason reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
        const struct exposition_label labels[] = {{"status", status_word(reason_status(reason))},
                                                  {"reason", reason_word(reason)}};
        exposition_number(exposition, labels, 2, line->metrics->runs[reason]);
    }
}

static void put_replays(struct exposition *exposition, struct line *line)
{
    one(exposition, line->metrics->replays);
}

static void put_run_seconds(struct exposition *exposition, struct line *line)
{
    exposition_histogram(exposition, NULL, 0, &line->metrics->run, true);
}

static void put_stages(struct exposition *exposition, struct line *line)
{
    for (enum metrics_stage stage = 0; stage < METRICS_STAGE_COUNT; stage++) {
        const struct exposition_label labels[] = {{"stage", metrics_stage_word(stage)}};
        exposition_histogram(exposition, labels, 1, &line->metrics->stages[stage], true);
    }
}

static void put_states(struct exposition *exposition, struct line *line)
{
    for (enum run_state state = RUN_RECEIVED; state < RUN_ANSWERED; state++)
        one_of(exposition, "state", run_state_word(state), (int64_t)line->in_state[state]);
}

static void put_waiting(struct exposition *exposition, struct line *line)
{
    struct queue_figures figures;
    queue_figures(line->queue, &figures);
    one(exposition, figures.waiting);
}

static void put_companies(struct exposition *exposition, struct line *line)
{
    struct queue_figures figures;
    queue_figures(line->queue, &figures);
    one(exposition, figures.companies);
}

static void put_audit_failures(struct exposition *exposition, struct line *line)
{
    one_of(exposition, "kept", "no", line->metrics->audit_failures[0]);
    one_of(exposition, "kept", "yes", line->metrics->audit_failures[1]);
}

/* ---- executors ---------------------------------------------------------------------------------- */

static void put_slot_count(struct exposition *exposition, const char *executor, const char *state,
                           int64_t count)
{
    const struct exposition_label labels[] = {{"executor", executor}, {"state", state}};
    exposition_number(exposition, labels, 2, count);
}

static void put_slots(struct exposition *exposition, struct line *line)
{
    struct executor *executor = NULL;
    while ((executor = registry_next(line->registry, executor))) {
        const char *name = executor_config(executor)->name;
        struct executor_slots slots;
        executor_slots(executor, &slots);
        put_slot_count(exposition, name, "idle", slots.idle);
        put_slot_count(exposition, name, "busy", slots.busy);
        put_slot_count(exposition, name, "starting", slots.starting);
        put_slot_count(exposition, name, "stopping", slots.stopping);
        put_slot_count(exposition, name, "empty", slots.empty);
    }
}

static void put_usable(struct exposition *exposition, struct line *line)
{
    struct executor *executor = NULL;
    while ((executor = registry_next(line->registry, executor)))
        one_of(exposition, "executor", executor_config(executor)->name,
               executor_envelope(executor) != NULL);
}

static void put_executor_failures(struct exposition *exposition, struct line *line)
{
    struct executor *executor = NULL;
    while ((executor = registry_next(line->registry, executor)))
        one_of(exposition, "executor", executor_config(executor)->name,
               executor_failures(executor));
}

/* ---- clients ------------------------------------------------------------------------------------ */

static void put_open_connections(struct exposition *exposition, struct line *line)
{
    one(exposition, line->metrics->open_connections);
}

static void put_connections(struct exposition *exposition, struct line *line)
{
    one(exposition, line->metrics->connections);
}

static void put_refusals(struct exposition *exposition, struct line *line)
{
    for (enum metrics_refusal refusal = 0; refusal < METRICS_REFUSAL_COUNT; refusal++)
        one_of(exposition, "why", metrics_refusal_word(refusal), line->metrics->refusals[refusal]);
}

static void put_requests(struct exposition *exposition, struct line *line)
{
    for (enum rpc_method method = 0; method < RPC_METHOD_COUNT; method++)
        one_of(exposition, "method", rpc_method_word(method), line->metrics->requests[method]);
}

static void put_errors(struct exposition *exposition, struct line *line)
{
    for (size_t i = 0; i < RPC_CODE_COUNT; i++) {
        char code[16];
        (void)snprintf(code, sizeof code, "%d", (int)rpc_code_at(i));
        one_of(exposition, "code", code, line->metrics->errors[i]);
    }
}

/* ---- ledger and journal ------------------------------------------------------------------------- */

static struct ledger_figures ledger_now(const struct line *line)
{
    struct ledger_figures figures;
    ledger_figures(line->ledger, &figures);
    return figures;
}

static void put_ledger_up(struct exposition *exposition, struct line *line)
{
    one(exposition, ledger_now(line).up);
}

static void put_backlog(struct exposition *exposition, struct line *line)
{
    one(exposition, (int64_t)ledger_now(line).backlog);
}

static void put_oldest(struct exposition *exposition, struct line *line)
{
    exposition_time(exposition, NULL, 0, ledger_now(line).oldest_us);
}

static void put_batches(struct exposition *exposition, struct line *line)
{
    one(exposition, ledger_now(line).batches);
}

static void put_rows(struct exposition *exposition, struct line *line)
{
    one(exposition, ledger_now(line).rows);
}

static void put_seq(struct exposition *exposition, struct line *line)
{
    one(exposition, ledger_now(line).seq);
}

static void put_batch_rows(struct exposition *exposition, struct line *line)
{
    exposition_histogram(exposition, NULL, 0, &line->metrics->batch_rows, false);
}

static void put_commits(struct exposition *exposition, struct line *line)
{
    exposition_histogram(exposition, NULL, 0, &line->metrics->commit_us, true);
}

/* Of a daemon that makes checkpoints and has made one. */
static void put_checkpoint(struct exposition *exposition, struct line *line)
{
    int64_t made_at = line->signer ? signer_made_at(line->signer) : 0;
    if (made_at)
        exposition_time(exposition, NULL, 0, clock_wall_us() - made_at);
}

static struct journal_figures journal_now(const struct line *line)
{
    struct journal_figures figures;
    journal_figures(line->journal, &figures);
    return figures;
}

static void put_journal_bytes(struct exposition *exposition, struct line *line)
{
    one(exposition, journal_now(line).bytes);
}

static void put_journal_max(struct exposition *exposition, struct line *line)
{
    one(exposition, journal_now(line).max_bytes);
}

static void put_intents(struct exposition *exposition, struct line *line)
{
    one(exposition, journal_now(line).intents);
}

static void put_kept(struct exposition *exposition, struct line *line)
{
    one(exposition, journal_now(line).kept + journal_now(line).events);
}

static void put_full(struct exposition *exposition, struct line *line)
{
    one(exposition, journal_now(line).full);
}

/* ---- the daemon itself -------------------------------------------------------------------------- */

static void put_latency(struct exposition *exposition, struct line *line)
{
    exposition_histogram(exposition, NULL, 0, latency_histogram(line->latency), true);
}

static void put_build(struct exposition *exposition, struct line *line)
{
    (void)line;
    one_of(exposition, "version", AR_VERSION, 1);
}

static void put_writer(struct exposition *exposition, struct line *line)
{
    one_of(exposition, "writer", ledger_writer(line->ledger), 1);
}

static void put_draining(struct exposition *exposition, struct line *line)
{
    one(exposition, line->draining);
}

static void put_reloads(struct exposition *exposition, struct line *line)
{
    one_of(exposition, "result", "failed", line->metrics->reloads[0]);
    one_of(exposition, "result", "ok", line->metrics->reloads[1]);
}

static void put_switches(struct exposition *exposition, struct line *line)
{
    one(exposition, (int64_t)switches_count(line->switches));
}

static void put_started(struct exposition *exposition, struct line *line)
{
    exposition_time(exposition, NULL, 0, line->metrics->started_us);
}

static void put_cpu(struct exposition *exposition, struct line *line)
{
    (void)line;
    exposition_time(exposition, NULL, 0, process_cpu_us());
}

static void put_resident(struct exposition *exposition, struct line *line)
{
    (void)line;
    one(exposition, process_resident_bytes());
}

static void put_descriptors(struct exposition *exposition, struct line *line)
{
    (void)line;
    one(exposition, process_open_descriptors());
}

static void put_max_descriptors(struct exposition *exposition, struct line *line)
{
    (void)line;
    one(exposition, process_max_descriptors());
}

/* ---- the table ---------------------------------------------------------------------------------- */

static const struct family {
    const char *name; /* without the suffix of its type */
    enum exposition_type type;
    const char *help;
    family_fn *put;
} families[] = {
    {PREFIX "runs", EXPOSITION_COUNTER, "Runs that have ended, by status and reason.", put_runs},
    {PREFIX "replays", EXPOSITION_COUNTER,
     "Requests that were answered for the run that has their idempotency key.", put_replays},
    {PREFIX "run_seconds", EXPOSITION_HISTOGRAM, "From the request to the answer of a run.",
     put_run_seconds},
    {PREFIX "run_stage_seconds", EXPOSITION_HISTOGRAM, "How long runs were in parts of their way.",
     put_stages},
    {PREFIX "runs_in_state", EXPOSITION_GAUGE, "Runs that have not been answered, by state.",
     put_states},
    {PREFIX "queue_waiting", EXPOSITION_GAUGE, "Runs that wait for their turn.", put_waiting},
    {PREFIX "queue_companies", EXPOSITION_GAUGE, "Companies that have runs waiting or running.",
     put_companies},
    {PREFIX "audit_failures", EXPOSITION_COUNTER,
     "Runs answered without a committed record, by whether it was safe in the journal.",
     put_audit_failures},
    {PREFIX "slots", EXPOSITION_GAUGE, "Slots of each executor, by state.", put_slots},
    {PREFIX "executor_usable", EXPOSITION_GAUGE, "Whether the executor has proved an envelope.",
     put_usable},
    {PREFIX "executor_failures", EXPOSITION_COUNTER,
     "Providers that could not be started or have gone when they should not.",
     put_executor_failures},
    {PREFIX "connections", EXPOSITION_GAUGE, "Connections of clients that are open.",
     put_open_connections},
    {PREFIX "connections_accepted", EXPOSITION_COUNTER, "Connections that were served.",
     put_connections},
    {PREFIX "connections_refused", EXPOSITION_COUNTER, "Connections that were not served.",
     put_refusals},
    {PREFIX "requests", EXPOSITION_COUNTER, "Requests, by method.", put_requests},
    {PREFIX "rpc_errors", EXPOSITION_COUNTER, "Answers that are errors, by code.", put_errors},
    {PREFIX "ledger_up", EXPOSITION_GAUGE, "Whether the ledger takes rows.", put_ledger_up},
    {PREFIX "ledger_backlog_rows", EXPOSITION_GAUGE, "Rows that are not in the ledger yet.",
     put_backlog},
    {PREFIX "ledger_oldest_seconds", EXPOSITION_GAUGE,
     "How long the oldest row that is not in the ledger has been waiting.", put_oldest},
    {PREFIX "ledger_batches", EXPOSITION_COUNTER, "Transactions that were committed.", put_batches},
    {PREFIX "ledger_rows", EXPOSITION_COUNTER, "Rows that were committed.", put_rows},
    {PREFIX "ledger_batch_rows", EXPOSITION_HISTOGRAM, "Rows of a transaction.", put_batch_rows},
    {PREFIX "ledger_commit_seconds", EXPOSITION_HISTOGRAM,
     "From sending a transaction to knowing that it is committed.", put_commits},
    {PREFIX "ledger_seq", EXPOSITION_GAUGE, "The newest place in the chain of this writer.",
     put_seq},
    {PREFIX "checkpoint_age_seconds", EXPOSITION_GAUGE,
     "Since the newest signed checkpoint in the ledger was made.", put_checkpoint},
    {PREFIX "journal_bytes", EXPOSITION_GAUGE, "Size of the journal.", put_journal_bytes},
    {PREFIX "journal_max_bytes", EXPOSITION_GAUGE, "Size over which no run is dispatched.",
     put_journal_max},
    {PREFIX "journal_open_intents", EXPOSITION_GAUGE,
     "Runs that are noted in the journal and not in the ledger.", put_intents},
    {PREFIX "journal_kept", EXPOSITION_GAUGE,
     "Rows that the journal keeps until the ledger takes them.", put_kept},
    {PREFIX "journal_full", EXPOSITION_GAUGE,
     "Whether the last run was refused because the journal is full.", put_full},
    {PREFIX "loop_latency_seconds", EXPOSITION_HISTOGRAM,
     "How late a pulse of the event loop came while there were runs.", put_latency},
    {PREFIX "switches_off", EXPOSITION_GAUGE,
     "Switches that are off, by the configuration or by operators.", put_switches},
    {PREFIX "config_reloads", EXPOSITION_COUNTER, "Reloads of the configuration, by result.",
     put_reloads},
    {PREFIX "draining", EXPOSITION_GAUGE, "Whether the daemon is ending.", put_draining},
    {PREFIX "build", EXPOSITION_INFO, "The version of the daemon.", put_build},
    {PREFIX "writer", EXPOSITION_INFO, "The identity of the daemon in the ledger.", put_writer},
    {"process_start_time_seconds", EXPOSITION_GAUGE, "When the daemon was started.", put_started},
    {"process_cpu_seconds", EXPOSITION_COUNTER, "Processor time of the daemon itself.", put_cpu},
    {"process_resident_memory_bytes", EXPOSITION_GAUGE, "Memory of the daemon itself.",
     put_resident},
    {"process_open_fds", EXPOSITION_GAUGE, "Descriptors that the daemon has open.",
     put_descriptors},
    {"process_max_fds", EXPOSITION_GAUGE, "Descriptors that it may have open.",
     put_max_descriptors},
};

void metrics_table_write(struct line *line, struct exposition *exposition)
{
    for (size_t i = 0; i < AR_COUNT(families); i++) {
        const struct family *family = &families[i];
        exposition_family(exposition, family->name, family->type, family->help);
        family->put(exposition, line);
    }
}

char *metrics_table_name(size_t i, enum exposition_type *type)
{
    char *name;
    if (i >= AR_COUNT(families) ||
        asprintf(&name, "%s%s", families[i].name, exposition_suffix(families[i].type)) < 0)
        return NULL;
    *type = families[i].type;
    return name;
}
