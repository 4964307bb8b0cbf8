/*
 * sandbox.c - starts and ends sandboxes, from outside.
 *
 * The first process is forked from the launcher, a small process, straight into its namespaces. When
 * it has been reaped the kernel has killed and reaped everything in its pid namespace, and no mount,
 * socket or queue of it is left: there is nothing to tidy up by name.
 */
#include "executors/namespace/sandbox.h"

#include "executors/namespace/board.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define NAMESPACES \
    (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int sandbox_start(struct slot *slot, const struct inside_order *order, struct sandbox *sandbox,
                  struct failure *failure)
{
    int pidfd = -1;
    struct clone_args arguments = {.flags = NAMESPACES | CLONE_PIDFD,
                                   .pidfd = (uint64_t)(uintptr_t)&pidfd,
                                   .exit_signal = SIGCHLD};

    *slot->board = (struct board){0};
    sandbox->started_us = now_us();
    long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (pid == 0)
        inside_main(order);
    if (pid < 0)
        return step_fail(failure, STEP_CLONE, errno);
    sandbox->pidfd = pidfd;
    return 0;
}

void sandbox_kill(const struct sandbox *sandbox)
{
    (void)syscall(SYS_pidfd_send_signal, sandbox->pidfd, SIGKILL, NULL, 0);
}

static void fill_usage(const struct board *board, struct usage *usage)
{
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

int sandbox_finish(const struct slot *slot, struct sandbox *sandbox, struct report *report,
                   struct failure *failure)
{
    *report = (struct report){.outcome = OUTCOME_SETUP_FAILED, .usage = USAGE_UNKNOWN};
    int result;
    do
        result = waitid(P_PIDFD, (id_t)sandbox->pidfd, NULL, WEXITED) < 0 ? -errno : 0;
    while (result == -EINTR);
    base_close(&sandbox->pidfd);
    sandbox->pidfd = -1;
    if (result < 0)
        return result;
    report->usage.wall_us = now_us() - sandbox->started_us;
    fill_report(slot->board, report, failure);
    return 0;
}
