/*
 * sandbox.c - starts and ends sandboxes, from outside.
 *
 * The first process is started straight into its namespaces, in the launcher's memory (as vfork does,
 * but without standing still): copying the tables of even a small memory would cost more than all the
 * namespaces together. When it has been reaped the kernel has killed and reaped everything in its pid
 * namespace, and no mount, socket or queue of it is left: there is nothing to tidy up by name.
 */
#include "executors/namespace/sandbox.h"

#include "executors/namespace/trusted.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

int sandbox_start(struct sandbox *sandbox, struct slot *slot, const struct inside_source *source,
                  struct failure *failure)
{
    *sandbox = (struct sandbox){.pidfd = -1, .start = {.slot = slot, .source = *source}};
    order_init(&sandbox->start.order);
    slot->board = (struct board){0};
    board_mark(&slot->board, MARK_BEGIN);
    const int network = slot->reach & REACH_NETWORK ? CLONE_NEWNET : 0;
    pid_t pid = trusted_clone(slot->token, inside_main, slot_stack_top(&slot->first),
                              NAMESPACES | network | CLONE_PIDFD | SIGCHLD, &sandbox->start,
                              &sandbox->pidfd);
    return pid < 0 ? step_fail(failure, STEP_CLONE, -pid) : 0;
}

void sandbox_kill(const struct sandbox *sandbox)
{
    (void)syscall(SYS_pidfd_send_signal, sandbox->pidfd, SIGKILL, NULL, 0);
}

static void fill_usage(const struct board *board, struct usage *usage)
{
    usage->wall_us = board->at_us[MARK_REAPED] - board->at_us[MARK_TAKEN];
    usage->user_us = board->user_us;
    usage->system_us = board->system_us;
    usage->memory_peak_bytes = board->memory_peak_bytes;
}

static void fill_report(const struct board *board, struct report *report, struct failure *failure)
{
    *failure = board->failure;
    if (failure->step == STEP_FILES && (failure->error == ENOSPC || failure->error == EDQUOT)) {
        report->outcome = OUTCOME_LIMIT; /* the request's own files do not fit */
        report->limit = LIMIT_SCRATCH_BYTES;
        return;
    }
    if (failure->step == STEP_NONE && !board->done)
        *failure = (struct failure){.step = STEP_LOST};
    if (failure->step != STEP_NONE)
        return;
    report->outcome = board->outcome;
    report->exit_code = board->exit_code;
    report->signal = board->signal;
    report->limit = board->limit;
    fill_usage(board, &report->usage);
}

int sandbox_finish(struct sandbox *sandbox, struct report *report, struct failure *failure)
{
    struct board *board = &sandbox->start.slot->board;
    *report = (struct report){.outcome = OUTCOME_SETUP_FAILED, .usage = USAGE_UNKNOWN};
    int result;
    do
        result = waitid(P_PIDFD, (id_t)sandbox->pidfd, NULL, WEXITED) < 0 ? -errno : 0;
    while (result == -EINTR);
    base_close(&sandbox->pidfd);
    sandbox->pidfd = -1;
    if (result < 0)
        return result;
    board_mark(board, MARK_REAPED);
    if (board->taken) /* else it may have been stopped while it made the order */
        order_free(&sandbox->start.order);
    if (!board->taken) {
        *failure = board->failure;
        return failure->step == STEP_NONE ? 1 : -EIO;
    }
    fill_report(board, report, failure);
    return 0;
}

int sandbox_try(struct slot *slot, const struct inside_source *source, int64_t wait_ms,
                struct report *report, struct failure *failure)
{
    struct sandbox sandbox;
    int result = sandbox_start(&sandbox, slot, source, failure);
    if (result < 0)
        return result;
    struct pollfd end = {.fd = sandbox.pidfd, .events = POLLIN};
    bool late = poll(&end, 1, (int)wait_ms) == 0;
    if (late)
        sandbox_kill(&sandbox);
    result = sandbox_finish(&sandbox, report, failure);
    if (late || result < 0)
        return late ? 1 : result;
    return failure->step == STEP_NONE ? 0 : -EIO;
}
