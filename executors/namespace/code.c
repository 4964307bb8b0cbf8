/*
 * code.c - a process becomes the code.
 *
 * Until it executes the program it shares the memory of the first process and the launcher, as after
 * vfork(2): it only makes system calls, keeps numbers on a stack of its own, and has no way back.
 * Nothing that it still needs is descriptor 3 (slot.h), where its data port goes.
 */
#include "executors/namespace/code.h"

#include "executors/namespace/landlock.h"
#include "executors/namespace/trusted.h"
#include "executors/namespace/walls.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

static int take_streams(const struct code *code)
{
    const struct order *order = code->order;
    const int *streams = order->streams;
    const int in = code->compiling ? code->slot->null : streams[0];
    const int out = code->compiling ? streams[2] : streams[1];
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(streams[2], STDERR_FILENO) < 0)
        return -errno;
    const bool port = order->data_port >= 0 && !code->compiling;
    if (port && dup2(order->data_port, CODE_DATA_PORT) < 0)
        return -errno;
    const unsigned first = port ? CODE_DATA_PORT + 1 : STDERR_FILENO + 1;
    return syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

static enum step become(const struct code *code)
{
    const struct order *order = code->order;
    char **vector = code->compiling ? order->compile : order->run;
    char **env = code->compiling ? order->base_env : order->env;
    sigset_t none;

    sigemptyset(&none);
    if (setpgid(0, 0) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return STEP_SPAWN;
    if ((errno = -take_streams(code)) != 0)
        return STEP_DESCRIPTORS;
    if ((errno = -walls_limit(code->slot, &order->spec->grant.limits)) != 0)
        return STEP_LIMITS;
    if ((errno = -walls_keep_capabilities(0)) != 0)
        return STEP_CAPABILITIES;
    if (code->ruleset >= 0 && (errno = -landlock_enter(code->ruleset)) != 0)
        return STEP_LANDLOCK;
    if (order->program >= 0)
        (void)syscall(SYS_execveat, order->program, "", vector, env, AT_EMPTY_PATH);
    else
        (void)execve(vector[0], vector, env);
    return STEP_EXEC;
}

static int code_main(void *argument)
{
    const struct code *code = argument;
    enum step step = become(code);
    (void)step_fail(&code->slot->board.failure, step, errno);
    _exit(127);
}

int code_start(const struct code *code, pid_t *pid)
{
    struct failure *failure = &code->slot->board.failure;
    *pid = trusted_clone(code->slot->token, code_main, slot_stack_top(&code->slot->code),
                         CLONE_VFORK | SIGCHLD, (void *)(uintptr_t)code, NULL);
    if (*pid < 0)
        return step_fail(failure, STEP_SPAWN, -*pid);
    return failure->step == STEP_NONE ? 0 : -failure->error;
}

void code_let_go_of_streams(const struct order *order)
{
    for (int i = 0; i < 3; i++)
        (void)close(order->streams[i]);
    if (order->data_port >= 0)
        (void)close(order->data_port);
}
