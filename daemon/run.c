/*
 * run.c - the stage table, and the one function that moves a run along it.
 *
 * The table is the daemon's story: read it from top to bottom, then the files that it names. A run
 * in state N is handed to the stage of row N; when that stage is done, the run is in state N+1. The
 * move asserts that it goes forwards. Rows that are marked skipped are passed over once a run has
 * ended, so that a denied run walks the same way to the ledger as one that ran.
 *
 * Runs are owned by the line until they have been answered, and freed at the end of the loop's turn.
 */
#include "daemon/run.h"

#include "daemon/admission.h"
#include "daemon/claim.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/execution.h"
#include "daemon/executor.h"
#include "daemon/journal.h"
#include "daemon/latency.h"
#include "daemon/ledger.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/overview.h"
#include "daemon/queue.h"
#include "daemon/reply.h"
#include "daemon/secrets.h"
#include "daemon/verdict.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <string.h>
#include <sys/random.h>

static const struct stage {
    const char *word; /* of the state in which the run is handed over */
    void (*start)(struct run *run, run_done_fn *done);
    void (*poke)(struct run *run);      /* the stop flag was set while the stage has the run */
    bool skipped;                       /* when the run has ended */
    void (*meanwhile)(struct run *run); /* what can be done while the stage waits for the disk */
} stages[] = {
    [RUN_RECEIVED] = {"received", admission_stage, NULL, true, NULL},
    [RUN_ADMITTED] = {"admitted", queue_stage, queue_poke, true, NULL},
    [RUN_QUEUED] = {"queued", journal_stage, NULL, true, execution_prepare},
    [RUN_NOTED] = {"noted", claim_stage, claim_poke, true, NULL},
    [RUN_RUNNING] = {"running", execution_stage, execution_poke, true, NULL},
    [RUN_ENDED] = {"ended", verdict_stage, NULL, false, NULL},
    [RUN_DECIDED] = {"decided", ledger_stage, NULL, false, NULL},
    [RUN_RECORDED] = {"recorded", reply_stage, NULL, false, NULL},
    [RUN_ANSWERED] = {"answered", NULL, NULL, false, NULL},
};

static void run_done(struct run *run);

const char *run_state_word(enum run_state state)
{
    return stages[state].word;
}

static void run_free(struct run *run)
{
    execution_discard(run);
    /* The request knows how many outputs there are. */
    spec_outputs_free(run->outputs, run->outputs ? run->request->outputs.count : 0);
    request_free(run->request);
    secrets_free(run->secrets);
    json_decref(run->network_hosts);
    denials_free(&run->denials);
    record_free(run->record);
    record_free(run->replay);
    executor_unhold(run->executor);
    if (run->queue_timer)
        event_free(run->queue_timer);
    if (run->claim_timer)
        event_free(run->claim_timer);
    for (int i = 0; i < 2; i++)
        if (run->output[i])
            evbuffer_free(run->output[i]);
    config_release(run->config);
    free(run);
}

void run_line_bury(struct line *line)
{
    struct run *run;
    while ((run = TAILQ_FIRST(&line->dead))) {
        TAILQ_REMOVE(&line->dead, run, in_line);
        run_free(run);
    }
}

static void bury_dead(evutil_socket_t fd, short what, void *context)
{
    struct line *line = context;
    (void)fd;
    (void)what;
    run_line_bury(line);
    if (line->draining && TAILQ_EMPTY(&line->runs) && line->emptied)
        line->emptied(line->main);
}

int run_line_init(struct line *line, struct event_base *base, const struct config *config)
{
    *line = (struct line){.base = base,
                          .config = config_hold(config),
                          .id_space = -1,
                          .started_us = clock_monotonic_us()};
    id_clock_start(&line->id_clock, clock_wall_us(), clock_monotonic_us(), 0);
    TAILQ_INIT(&line->runs);
    TAILQ_INIT(&line->dead);
    line->bury = event_new(base, -1, 0, bury_dead, line);
    if (!line->bury)
        return -ENOMEM;
    line->metrics = metrics_new();
    line->overview = overview_new();
    return line->metrics && line->overview ? latency_new(base, &line->latency) : -ENOMEM;
}

void run_line_free(struct line *line)
{
    if (!line->bury)
        return;
    line->draining = false;
    run_line_bury(line);
    event_free(line->bury);
    line->bury = NULL;
    latency_free(AR_TAKE(line->latency));
    metrics_free(AR_TAKE(line->metrics));
    overview_free(AR_TAKE(line->overview));
    config_release(AR_TAKE(line->config));
}

static int64_t id_time_us(struct line *line)
{
    enum id_clock_change change;
    int64_t us = id_clock_now(&line->id_clock, clock_wall_us(), clock_monotonic_us(), &change);
    if (change == ID_CLOCK_DOUBTED)
        log_warning("the clock is far ahead of what it was: run ids do not follow it yet");
    else if (change == ID_CLOCK_BELIEVED)
        log_warning("the clock has stayed far ahead: run ids follow it now");
    return us;
}

int run_make_id(struct line *line, char id[UUID7_TEXT_BYTES])
{
    uint8_t random[10];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    uuid7_next(&line->ids, (uint64_t)id_time_us(line) / 1000, random, id);
    return 0;
}

struct run *run_new(struct line *line, const struct peer_client *client, struct request *request)
{
    struct run *run = calloc(1, sizeof *run);
    if (!run || run_make_id(line, run->id) < 0) {
        free(run);
        request_free(request);
        return NULL;
    }
    run->line = line;
    run->config = config_hold(line->config);
    run->client = *client;
    run->request = request;
    run->usage = USAGE_UNKNOWN;
    run->received_us = clock_wall_us();
    run->since_us = run->moved_us = clock_monotonic_us();
    TAILQ_INSERT_TAIL(&line->runs, run, in_line);
    line->in_state[RUN_RECEIVED]++;
    line->total++;
    latency_watch(line->latency, true);
    return run;
}

static void leave_line(struct run *run)
{
    run->line->in_state[run->state]--;
    TAILQ_REMOVE(&run->line->runs, run, in_line);
    TAILQ_INSERT_TAIL(&run->line->dead, run, in_line);
    latency_watch(run->line->latency, !TAILQ_EMPTY(&run->line->runs));
    event_active(run->line->bury, EV_TIMEOUT, 1);
}

enum reason run_stop_reason(enum run_stop cause)
{
    static const enum reason reasons[] = {
        [RUN_STOP_NONE] = REASON_NONE,
        [RUN_STOP_WALL] = REASON_WALL_CLOCK,
        [RUN_STOP_OUTPUT] = REASON_OUTPUT,
        [RUN_STOP_CPU] = REASON_CPU,
        [RUN_STOP_CANCELLED] = REASON_CLIENT_CANCELLED,
        [RUN_STOP_GONE] = REASON_CLIENT_GONE,
        [RUN_STOP_SHUTDOWN] = REASON_SHUTDOWN,
    };
    return reasons[cause];
}

static void enter_state(struct run *run, enum run_state state)
{
    int64_t now_us = clock_monotonic_us();
    metrics_count_stage(run->line, run, now_us - run->moved_us);
    run->moved_us = now_us;
    run->line->in_state[run->state]--;
    run->line->in_state[state]++;
    run->state = state;
}

/* The one function that moves a run: to the next state whose stage is not skipped. */
static void run_move(struct run *run, enum run_state to)
{
    if (run->at_stage || to <= run->state)
        log_fatal("a run moves while a stage has it, or backwards");
    if (run->has_place && to >= RUN_ENDED)
        queue_release(run);
    if (run->stop && !run_has_ended(run) && to < RUN_ENDED)
        run_end(run, run_stop_reason(run->stop));
    while (stages[to].skipped && run_has_ended(run))
        to++;
    enter_state(run, to);
    if (!stages[to].start) {
        leave_line(run);
        return;
    }
    run->at_stage = true;
    stages[to].start(run, run_done);
    if (stages[to].meanwhile && run->at_stage && run->state == to)
        stages[to].meanwhile(run);
}

static void run_done(struct run *run)
{
    if (!run->at_stage)
        log_fatal("a stage is done with a run twice");
    run->at_stage = false;
    run_move(run, run->state + 1);
}

void run_start(struct run *run)
{
    run->at_stage = true;
    stages[RUN_RECEIVED].start(run, run_done);
}

bool run_stop(struct run *run, enum run_stop cause)
{
    if (run->stop || run_has_ended(run) || run->reported || run->state >= RUN_ENDED)
        return false;
    run->stop = cause;
    if (run->at_stage && stages[run->state].poke)
        stages[run->state].poke(run);
    return true;
}

void run_choose(struct run *run, struct executor *executor)
{
    executor_hold(executor);
    executor_unhold(run->executor);
    run->executor = executor;
}

void run_end(struct run *run, enum reason reason)
{
    if (run_has_ended(run))
        log_fatal("a run ends twice");
    run->reason = reason;
    run->status = reason_status(reason);
}

bool run_has_ended(const struct run *run)
{
    return run->status != STATUS_NONE || run->withdrawn;
}

struct run *run_find(struct line *line, const char *id)
{
    struct run *run;
    TAILQ_FOREACH(run, &line->runs, in_line)
        if (strcmp(run->id, id) == 0)
            return run;
    return NULL;
}

size_t run_count(const struct line *line, enum run_state from, enum run_state to)
{
    size_t count = 0;
    for (enum run_state state = from; state < to; state++)
        count += line->in_state[state];
    return count;
}
