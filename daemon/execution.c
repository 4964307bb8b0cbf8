/*
 * execution.c - a run at a provider.
 *
 * The wall clock starts when the run gets its slot and covers all that it can wait for: the provider's
 * start, compile, code, whoever holds the output pipes. Processor time, where the host counts it, is
 * looked at when the limit could first have been reached, and again until it has. An execution is over when two things have
 * happened, in either order: the provider has reported (or is gone with everything that it started),
 * and both pipes are at their end. After the report whatever still holds the pipes is killed, and they
 * get a moment of grace for what is in them.
 *
 * Whoever stops the run (clock, output cap, cancel) sets run->stop and the provider is told to go; the
 * verdict is made of what is collected here, in verdict.c.
 */
#include "daemon/execution.h"

#include "daemon/clock.h"
#include "daemon/deadline.h"
#include "daemon/descriptors.h"
#include "daemon/fault.h"
#include "daemon/granted.h"
#include "daemon/log.h"
#include "daemon/output.h"
#include "daemon/registry.h"

#include <sched.h>
#include <string.h>

#define EXECUTION_DRAIN_MS 500 /* for pipes, after the report */
#define EXECUTION_SWEEP_MS 5   /* between looks at what is left */
/* What the provider may use for a run beside the code: an executor that stops at the limit itself comes
 * first, and nobody is stopped for the making of the sandbox. */
#define EXECUTION_OWN_CPU_MS 50
#define EXECUTION_MIN_CPU_MS 5 /* between looks at the processor time */
#define EXECUTION_MAX_CPU_MS 1000

struct execution {
    struct run *run;
    run_done_fn *done;
    struct slot *slot; /* NULL: none any more */
    bool handed_over;
    bool over; /* reported or gone */
    struct descriptors descriptors;
    struct spec_run order; /* spec_bytes 0: the descriptors are not open yet */
    struct granted granted;
    struct output *output; /* NULL: not yet */
    int64_t started_us;    /* monotonic */
    struct deadline wall, cpu, drain, finish;
};

static bool is_quiet(const struct execution *execution)
{
    return !execution->output || output_has_ended(execution->output);
}

static void check_finish(struct execution *execution)
{
    if (execution->over && is_quiet(execution) && !deadline_is_running(&execution->finish))
        deadline_start(&execution->finish, 0);
}

static void output_ended(void *context)
{
    check_finish(context);
}

static void drained_long_enough(void *context)
{
    struct execution *execution = context;
    if (execution->output)
        output_finish(execution->output);
    check_finish(execution);
}

/* ---- the way to the provider ------------------------------------------------------------------ */

static int open_descriptors(struct execution *execution)
{
    const struct run *run = execution->run;
    if (execution->order.spec_bytes > 0)
        return 0; /* prepared */
    return descriptors_open(&execution->descriptors, run->id, run->request, &execution->order);
}

/* Who the run's processes are on the host, where that matters. */
static int64_t owner_of_files(const struct execution *execution)
{
    const struct grant *grant = &execution->run->request->grant;
    return granted_reach(grant) & PROVIDER_REACHES_FILES
               ? provider_uid(executor_slot_provider(execution->slot))
               : -1;
}

/* 0; 1: a path is not there any more; -errno. */
static int hand_over(struct execution *execution)
{
    struct run *run = execution->run;
    int rc = open_descriptors(execution);
    if (rc == 0)
        rc = output_start(run, execution->descriptors.output, output_ended, execution,
                          &execution->output);
    if (rc == 0)
        rc = granted_open(&execution->granted, run, owner_of_files(execution), &execution->order,
                          execution->descriptors.provider);
    if (rc == 0)
        rc = provider_run(executor_slot_provider(execution->slot), &run->request->grant,
                          &execution->order, execution->descriptors.provider);
    descriptors_close_provider(&execution->descriptors);
    execution->handed_over = true;
    run->started_us = clock_wall_us();
    return rc;
}

/* ---- processor time --------------------------------------------------------------------------- */

/* Milliseconds of it until the limit is reached, 0: it has been; -1: nothing to look at. */
static int64_t left_cpu_ms(const struct execution *execution,
                           const struct cgroup_findings *findings)
{
    const struct limits *limits = &execution->run->request->grant.limits;
    if (!limits->has[LIMIT_CPU_MS] || findings->user_us < 0)
        return -1;
    int64_t used_ms = (findings->user_us + findings->system_us) / 1000;
    int64_t left_ms = limits->value[LIMIT_CPU_MS] + EXECUTION_OWN_CPU_MS - used_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* It cannot be used up faster than by all processors at once. */
static int64_t next_look_ms(int64_t left_ms)
{
    cpu_set_t set;
    int64_t ms = left_ms / (sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1);
    if (ms < EXECUTION_MIN_CPU_MS)
        return EXECUTION_MIN_CPU_MS;
    return ms > EXECUTION_MAX_CPU_MS ? EXECUTION_MAX_CPU_MS : ms;
}

static void look_at_cpu(void *context)
{
    struct execution *execution = context;
    struct cgroup_findings findings;
    if (execution->over || !execution->slot)
        return;
    provider_findings(executor_slot_provider(execution->slot), &findings);
    int64_t left_ms = left_cpu_ms(execution, &findings);
    if (left_ms == 0)
        (void)run_stop(execution->run, RUN_STOP_CPU);
    else if (left_ms > 0)
        deadline_start(&execution->cpu, next_look_ms(left_ms));
}

static void start_cpu_clock(struct execution *execution)
{
    const struct limits *limits = &execution->run->request->grant.limits;
    if (limits->has[LIMIT_CPU_MS])
        deadline_start(&execution->cpu, next_look_ms(limits->value[LIMIT_CPU_MS]));
}

/* ---- the hand-over ---------------------------------------------------------------------------- */

/* The provider cannot be given the run, and is not trusted with another one. */
static void fail_hand_over(struct execution *execution, int rc)
{
    log_run(LOG_LEVEL_ERROR, execution->run->id, "run %s: cannot be handed to its provider: %s",
            execution->run->id, rc > 0 ? "a host path has gone" : strerror(-rc));
    execution->run->failure = rc > 0 ? REASON_SETUP_FAILED : REASON_SPAWN_FAILED;
    provider_stop(executor_slot_provider(execution->slot));
}

static void slot_ready(void *context)
{
    struct execution *execution = context;
    if (execution->handed_over)
        return; /* ready for another run, after the report */
    int rc = hand_over(execution);
    if (rc != 0)
        fail_hand_over(execution, rc);
    else
        start_cpu_clock(execution);
    if (rc == 0)
        fault_point("provider_started");
}

/* ---- what the provider and the host found ----------------------------------------------------- */

/* What the host knows itself comes before what the provider has reported. */
static void take_known(int64_t *out, int64_t found)
{
    if (found >= 0)
        *out = found;
}

static void collect_findings(struct execution *execution)
{
    struct run *run = execution->run;
    struct cgroup_findings findings;
    if (!execution->handed_over)
        return;
    provider_findings(executor_slot_provider(execution->slot), &findings);
    run->memory_exceeded = findings.memory_exceeded;
    run->killed_for_host = findings.killed_for_host;
    run->processes_exceeded = findings.processes_exceeded;
    run->cpu_exceeded = left_cpu_ms(execution, &findings) == 0;
    take_known(&run->usage.user_us, findings.user_us);
    take_known(&run->usage.system_us, findings.system_us);
    take_known(&run->usage.memory_peak_bytes, findings.memory_peak_bytes);
    take_known(&run->usage.processes_peak, findings.processes_peak);
}

/* Nothing of the run may be left when its record is written. */
static bool is_clear(const struct execution *execution)
{
    bool clear = registry_sweep(execution->run->line->registry) == 0;
    if (execution->slot && execution->handed_over)
        clear = provider_clear(executor_slot_provider(execution->slot)) == 0 && clear;
    return clear;
}

static void set_over(struct execution *execution)
{
    execution->over = true;
    deadline_stop(&execution->wall);
    deadline_stop(&execution->cpu);
    deadline_start(&execution->drain, EXECUTION_DRAIN_MS);
    granted_end(&execution->granted);
    if (!is_quiet(execution))
        (void)is_clear(execution); /* whoever still holds a pipe goes now; what is in it stays */
    check_finish(execution);
}

/* What it listens on is the way into the run's network, or it has no business with us. */
static void slot_listening(void *context, int listener)
{
    struct execution *execution = context;
    int rc = granted_listen(&execution->granted, listener);
    if (rc == 0)
        return;
    log_run(LOG_LEVEL_ERROR, execution->run->id,
            "run %s: no proxy can be served on what its provider listens on: %s",
            execution->run->id, rc < 0 ? strerror(-rc) : "it must not be used");
    execution->run->failure = rc < 0 ? REASON_SPAWN_FAILED : REASON_PROTOCOL_VIOLATION;
    provider_stop(executor_slot_provider(execution->slot));
}

/* Reads the files that came back; what is no such document is the provider's fault. */
static int read_outputs(struct execution *execution)
{
    struct run *run = execution->run;
    if (run->request->outputs.count == 0)
        return 0;
    int rc =
        descriptors_read_outputs(&execution->descriptors, &run->request->outputs, &run->outputs);
    return rc == 0 ? output_mask_files(run) : rc;
}

static void slot_reported(void *context, const struct report *report)
{
    struct execution *execution = context;
    struct run *run = execution->run;
    if (run->stop)
        return; /* it is being stopped for a cause of the host's: that is how it ends */
    fault_point("report_read");
    run->reported = true;
    run->report = *report;
    run->usage = report->usage;
    collect_findings(execution);
    if (read_outputs(execution) != 0) {
        run->reported = false;
        run->failure = REASON_PROTOCOL_VIOLATION;
    }
    set_over(execution);
}

static void slot_gone(void *context, enum reason failure)
{
    struct execution *execution = context;
    struct run *run = execution->run;
    collect_findings(execution);
    execution->slot = NULL;
    if (!run->reported && !run->failure)
        run->failure = failure ? failure : REASON_LOST;
    if (!execution->over)
        set_over(execution);
}

static const struct slot_events slot_events = {slot_ready, slot_listening, slot_reported,
                                               slot_gone};

/* ---- the end ---------------------------------------------------------------------------------- */

static void execution_free(struct execution *execution)
{
    granted_end(&execution->granted);
    output_free(execution->output);
    descriptors_free(&execution->descriptors);
    deadline_free(&execution->wall);
    deadline_free(&execution->cpu);
    deadline_free(&execution->drain);
    deadline_free(&execution->finish);
    free(execution);
}

static void finish(void *context)
{
    struct execution *execution = context;
    struct run *run = execution->run;
    run_done_fn *done = execution->done;
    if (!is_clear(execution)) {
        deadline_start(&execution->finish, EXECUTION_SWEEP_MS);
        return;
    }
    if (execution->slot)
        executor_release(execution->slot);
    run->usage.wall_us = clock_monotonic_us() - execution->started_us;
    run->usage.output_bytes = execution->output ? output_bytes(execution->output) : 0;
    run->execution = NULL;
    execution_free(execution);
    done(run);
}

static void wall_passed(void *context)
{
    struct execution *execution = context;
    (void)run_stop(execution->run, RUN_STOP_WALL);
}

void execution_poke(struct run *run)
{
    struct execution *execution = run->execution;
    if (execution->over || !execution->slot)
        return;
    deadline_stop(&execution->wall);
    deadline_stop(&execution->cpu);
    if (execution->handed_over) {
        provider_stop(executor_slot_provider(execution->slot));
        return;
    }
    executor_release(execution->slot); /* it goes on starting, for somebody else */
    execution->slot = NULL;
    set_over(execution);
}

static int make_deadlines(struct execution *execution)
{
    struct event_base *base = execution->run->line->base;
    int rc = deadline_init(&execution->wall, base, wall_passed, execution);
    if (rc == 0)
        rc = deadline_init(&execution->cpu, base, look_at_cpu, execution);
    if (rc == 0)
        rc = deadline_init(&execution->drain, base, drained_long_enough, execution);
    if (rc == 0)
        rc = deadline_init(&execution->finish, base, finish, execution);
    return rc;
}

static void start(struct execution *execution)
{
    struct run *run = execution->run;
    int rc;
    execution->started_us = clock_monotonic_us();
    deadline_start(&execution->wall, run->request->grant.limits.value[LIMIT_WALL_MS]);
    execution->slot = executor_acquire(run->executor, granted_reach(&run->request->grant),
                                       &slot_events, execution, &rc);
    if (!execution->slot) {
        log_run(LOG_LEVEL_ERROR, run->id, "run %s: no provider can be started: %s", run->id,
                strerror(-rc));
        run->failure = REASON_SPAWN_FAILED;
        set_over(execution);
    } else if (provider_state(executor_slot_provider(execution->slot)) == PROVIDER_IDLE) {
        slot_ready(execution);
    }
}

static struct execution *make(struct run *run)
{
    struct execution *execution = calloc(1, sizeof *execution);
    if (!execution)
        return NULL;
    execution->run = run;
    descriptors_init(&execution->descriptors);
    if (make_deadlines(execution) == 0)
        return execution;
    execution_free(execution);
    return NULL;
}

void execution_prepare(struct run *run)
{
    run->execution = make(run);
    if (!run->execution || open_descriptors(run->execution) == 0)
        return;
    execution_free(AR_TAKE(run->execution)); /* tried again, and told, when it is needed */
}

void execution_discard(struct run *run)
{
    if (run->execution)
        execution_free(AR_TAKE(run->execution));
}

void execution_stage(struct run *run, run_done_fn *done)
{
    if (!run->execution)
        run->execution = make(run);
    if (!run->execution) {
        run->failure = REASON_SPAWN_FAILED;
        done(run);
        return;
    }
    run->execution->done = done;
    start(run->execution);
}
