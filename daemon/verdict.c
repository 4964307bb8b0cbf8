/*
 * verdict.c - how a run ended.
 *
 * The order, first match wins, never changed afterwards:
 *   1. what a stage decided before the run was at a provider (denied, refused, cancelled in the
 *      queue ...);
 *   2. what the host stopped it for (wall clock, output cap, processor time, cancel, client gone,
 *      shutdown): the first cause, unless the provider's report had been there before;
 *   3. what the host's own counters say: memory (the kernel killed for it), processor time (more than
 *      was granted, found at the end), processes (the kernel refused one; a run that coped with that and
 *      exited 0 has succeeded), or a kill for the memory of the whole machine, which is no fault of
 *      the run: it is lost;
 *   4. the provider's report;
 *   5. how the provider failed.
 * An exit code of 137 or 255 is only ever an exit code: kills and faults come by other ways.
 */
#include "daemon/verdict.h"

#include "daemon/clock.h"
#include "daemon/log.h"
#include "daemon/run_record.h"

static enum reason limit_reason(enum limit limit)
{
    switch (limit) {
    case LIMIT_CPU_MS:
        return REASON_CPU;
    case LIMIT_MEMORY_BYTES:
        return REASON_MEMORY;
    case LIMIT_PROCESSES:
        return REASON_PROCESSES;
    case LIMIT_SCRATCH_BYTES:
        return REASON_SCRATCH;
    default:
        return REASON_PROTOCOL_VIOLATION;
    }
}

static enum reason report_reason(const struct report *report)
{
    switch (report->outcome) {
    case OUTCOME_EXITED:
        return report->exit_code == 0 ? REASON_EXIT_ZERO : REASON_EXIT_NONZERO;
    case OUTCOME_SIGNALED:
        return REASON_KILLED_BY_SIGNAL;
    case OUTCOME_COMPILE_FAILED:
        return REASON_COMPILE_FAILED;
    case OUTCOME_LIMIT:
        return limit_reason(report->limit);
    default:
        return REASON_SETUP_FAILED;
    }
}

static bool exited_with_zero(const struct run *run)
{
    return run->reported && report_reason(&run->report) == REASON_EXIT_ZERO;
}

/* What the host itself has counted, or REASON_NONE. */
static enum reason host_reason(const struct run *run)
{
    if (run->memory_exceeded)
        return REASON_MEMORY;
    if (run->cpu_exceeded)
        return REASON_CPU;
    if (exited_with_zero(run))
        return REASON_NONE;
    if (run->killed_for_host)
        return REASON_LOST;
    return run->processes_exceeded ? REASON_PROCESSES : REASON_NONE;
}

static enum reason decide(const struct run *run)
{
    enum reason found = host_reason(run);
    if (run->stop)
        return run_stop_reason(run->stop);
    if (found)
        return found;
    if (run->reported)
        return report_reason(&run->report);
    return run->failure ? run->failure : REASON_LOST;
}

void verdict_stage(struct run *run, run_done_fn *done)
{
    run->finished_us = clock_wall_us();
    if (run->withdrawn) {
        done(run);
        return;
    }
    if (!run_has_ended(run))
        run_end(run, decide(run));
    run->record = run_record_make(run);
    if (!run->record)
        log_fatal("no memory for the record of a run");
    done(run);
}
