/*
 * metrics.c - see metrics.h.
 */
#include "daemon/metrics.h"

#include "daemon/clock.h"

struct metrics *metrics_new(void)
{
    struct metrics *metrics = malloc(sizeof *metrics);
    if (!metrics)
        return NULL;
    *metrics = (struct metrics){.run.scale = &histogram_stages,
                                .commit_us.scale = &histogram_stages,
                                .batch_rows.scale = &histogram_rows,
                                .started_us = clock_wall_us()};
    for (size_t i = 0; i < METRICS_STAGE_COUNT; i++)
        metrics->stages[i].scale = &histogram_stages;
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    free(metrics);
}

const char *metrics_stage_word(enum metrics_stage stage)
{
    static const char *const words[METRICS_STAGE_COUNT] = {[METRICS_QUEUE] = "queue",
                                                           [METRICS_INTENT] = "intent",
                                                           [METRICS_CLAIM] = "claim",
                                                           [METRICS_SANDBOX] = "sandbox",
                                                           [METRICS_LEDGER] = "ledger"};
    return words[stage];
}

const char *metrics_refusal_word(enum metrics_refusal refusal)
{
    static const char *const words[METRICS_REFUSAL_COUNT] = {
        [METRICS_FORBIDDEN] = "forbidden", [METRICS_NO_MEMORY] = "no_memory"};
    return words[refusal];
}

void metrics_count_stage(struct line *line, const struct run *run, int64_t us)
{
    static const enum metrics_stage stages[RUN_STATE_COUNT] = {
        [RUN_RECEIVED] = METRICS_STAGE_COUNT, [RUN_ADMITTED] = METRICS_QUEUE,
        [RUN_QUEUED] = METRICS_INTENT,        [RUN_NOTED] = METRICS_CLAIM,
        [RUN_RUNNING] = METRICS_SANDBOX,      [RUN_ENDED] = METRICS_STAGE_COUNT,
        [RUN_DECIDED] = METRICS_LEDGER,       [RUN_RECORDED] = METRICS_STAGE_COUNT,
        [RUN_ANSWERED] = METRICS_STAGE_COUNT,
    };
    enum metrics_stage stage = stages[run->state];
    if (stage == METRICS_STAGE_COUNT || (stage == METRICS_LEDGER && run->withdrawn) ||
        (stage == METRICS_CLAIM && !run->request->idempotency_key))
        return;
    histogram_add(&line->metrics->stages[stage], us);
}

void metrics_count_run(struct line *line, const struct run *run)
{
    struct metrics *metrics = line->metrics;
    if (run->withdrawn) {
        metrics->replays++;
        return;
    }
    metrics->runs[run->reason]++;
    if (run->audit != RUN_AUDIT_COMMITTED)
        metrics->audit_failures[run->audit == RUN_AUDIT_KEPT]++;
    histogram_add(&metrics->run, clock_monotonic_us() - run->since_us);
}

void metrics_count_end(struct line *line, enum reason reason)
{
    line->metrics->runs[reason]++;
}

void metrics_count_request(struct line *line, enum rpc_method method)
{
    line->metrics->requests[method]++;
}

void metrics_count_error(struct line *line, enum rpc_code code)
{
    for (size_t i = 0; i < RPC_CODE_COUNT; i++)
        line->metrics->errors[i] += rpc_code_at(i) == code;
}

void metrics_count_connection(struct line *line, bool opened)
{
    line->metrics->connections += opened;
    line->metrics->open_connections += opened ? 1 : -1;
}

void metrics_count_refusal(struct line *line, enum metrics_refusal refusal)
{
    line->metrics->refusals[refusal]++;
}

void metrics_count_batch(struct line *line, size_t rows, int64_t us)
{
    histogram_add(&line->metrics->batch_rows, (int64_t)rows);
    histogram_add(&line->metrics->commit_us, us);
}

void metrics_count_reload(struct line *line, bool ok)
{
    line->metrics->reloads[ok]++;
}
