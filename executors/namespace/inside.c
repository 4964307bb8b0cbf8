/*
 * inside.c - pid 1 of a sandbox: sets it up, starts the code, waits, kills the rest, tells the end.
 *
 * A flat list of steps. The code cannot signal, trace, limit or look into this process: it is the
 * first of its pid namespace, not dumpable, handles no signal, and the filter keeps others from
 * changing its limits. It dies with its launcher, and everything inside dies with it: by the death
 * signal, and, should that have come too early or been lost, by the launcher's pidfd, which it
 * watches. It holds no privilege while the code runs but that of reading every file of the scratch.
 */
#include "executors/namespace/inside.h"

#include "executors/namespace/board.h"
#include "executors/namespace/files.h"
#include "executors/namespace/mounts.h"
#include "executors/namespace/walls.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Descriptors of this process, at fixed numbers; all others are closed. */
enum { FD_OUTPUTS = 3, FD_LAUNCHER, FD_COUNTER, FD_NULL, FD_PROGRAM, FD_FIXED_COUNT };
#define FIRST_HIGH_FD 64

#define REAP_AT_ONCE     256 /* then the limits are looked at again */
#define MIN_CHECK_MS     2
#define MAX_CHECK_MS     1000
#define MASK(capability) (1ull << (capability))

struct inside {
    const struct inside_order *order;
    struct board *board;
    struct slot slot; /* a copy, with the descriptors as they are in this process */
    struct mounts_folders folders;
    int children;    /* signalfd of SIGCHLD */
    int processors;  /* that the code can use at a time */
    int64_t base_us; /* the counter when the code was started; -1: no limit on it */
};

/* ---- set-up ----------------------------------------------------------------------------------- */

static void exit_without_launcher(const struct inside *inside)
{
    struct pollfd launcher = {.fd = inside->slot.self, .events = POLLIN};
    if (poll(&launcher, 1, 0) != 0)
        _exit(1);
}

static int set_guard(struct inside *inside)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -errno;
    exit_without_launcher(inside); /* it may have ended before the call above */
    return 0;
}

/* Brings what is needed to the fixed numbers and closes the rest. */
static int arrange_descriptors(struct inside *inside)
{
    const struct inside_order *order = inside->order;
    const int wanted[FD_FIXED_COUNT] = {order->streams[0], order->streams[1], order->streams[2],
                                        order->streams[3], order->slot->self, order->slot->counter,
                                        order->slot->null, order->program};
    int high[FD_FIXED_COUNT];

    for (int i = 0; i < FD_FIXED_COUNT; i++) {
        high[i] = wanted[i] < 0 ? -1 : fcntl(wanted[i], F_DUPFD_CLOEXEC, FIRST_HIGH_FD);
        if (wanted[i] >= 0 && high[i] < 0)
            return -errno;
    }
    for (int i = 0; i < FD_FIXED_COUNT; i++) {
        if (high[i] < 0)
            (void)close(i);
        else if (dup3(high[i], i, i <= STDERR_FILENO ? 0 : O_CLOEXEC) < 0)
            return -errno;
    }
    if (syscall(SYS_close_range, FD_FIXED_COUNT, ~0U, 0) < 0)
        return -errno;
    inside->slot.self = FD_LAUNCHER;
    inside->slot.counter = high[FD_COUNTER] < 0 ? -1 : FD_COUNTER;
    inside->slot.null = FD_NULL;
    return 0;
}

static int watch_children(struct inside *inside)
{
    sigset_t set;
    cpu_set_t processors;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return -errno;
    inside->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    inside->processors =
        sched_getaffinity(0, sizeof(processors), &processors) < 0 ? 1 : CPU_COUNT(&processors);
    return inside->children < 0 ? -errno : 0;
}

static int make_scratch(struct inside *inside)
{
    const struct spec *spec = inside->order->spec;
    return mounts_make_scratch(walls_scratch_bytes(&spec->grant.limits), (int64_t)spec->code.length,
                               &inside->folders);
}

static int write_files(struct inside *inside)
{
    const struct inside_order *order = inside->order;
    int result = files_write(inside->folders.code, order->code_file, &order->spec->code);
    for (size_t i = 0; result == 0 && i < order->spec->file_count; i++)
        result = files_write(inside->folders.work, order->spec->files[i].path,
                             &order->spec->files[i].content);
    return result;
}

/* mounts_enter_root() knows which of its steps failed, and says so on the board itself. */
static int enter_root(struct inside *inside)
{
    int result = mounts_enter_root(&inside->board->failure);
    if (result == 0 && !inside->order->compile)
        result = mounts_close_code();
    return result;
}

static int lower_capabilities(struct inside *inside)
{
    const uint64_t closing = inside->order->compile ? MASK(CAP_SYS_ADMIN) : 0;
    return walls_keep_capabilities(MASK(CAP_DAC_READ_SEARCH) | closing);
}

/* ---- the process of the code ------------------------------------------------------------------ */

struct start {
    const struct inside *inside;
    char **vector;
    char **env;
    bool compiling;
};

/* Runs in the code's process, which still shares our memory: numbers only, and no way back. */
static enum step become(const struct start *start)
{
    const struct inside *inside = start->inside;
    sigset_t none;

    sigemptyset(&none);
    if (setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return STEP_SPAWN;
    if (start->compiling &&
        (dup2(FD_NULL, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0))
        return STEP_DESCRIPTORS;
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return STEP_DESCRIPTORS;
    if ((errno = -walls_limit(&inside->order->spec->grant.limits)) != 0)
        return STEP_LIMITS;
    if ((errno = -walls_keep_capabilities(0)) != 0)
        return STEP_CAPABILITIES;
    if ((errno = -filter_install(&inside->slot.filter)) != 0)
        return STEP_SECCOMP;
    if (inside->order->program >= 0)
        (void)syscall(SYS_execveat, FD_PROGRAM, "", start->vector, start->env, AT_EMPTY_PATH);
    else
        (void)execve(start->vector[0], start->vector, start->env);
    return STEP_EXEC;
}

static int start_main(void *argument)
{
    const struct start *start = argument;
    enum step step = become(start);
    (void)step_fail(&start->inside->board->failure, step, errno);
    _exit(127);
}

/* Like vfork: this process stands still until the other one is the code, or has failed. */
static int spawn(struct inside *inside, struct start *start, pid_t *pid)
{
    char *top = inside->slot.stack + inside->slot.stack_bytes;
    *pid = clone(start_main, top, CLONE_VM | CLONE_VFORK | SIGCHLD, start);
    if (*pid < 0)
        return step_fail(&inside->board->failure, STEP_SPAWN, errno);
    return inside->board->failure.step == STEP_NONE ? 0 : -inside->board->failure.error;
}

/* ---- waiting ---------------------------------------------------------------------------------- */

/* Milliseconds until the limit on processor time can be reached; 0: it has been; -1: there is none. */
static int next_check(const struct inside *inside)
{
    const struct limits *limits = &inside->order->spec->grant.limits;
    if (inside->base_us < 0)
        return -1;
    int64_t used_us = slot_processor_us(&inside->slot) - inside->base_us;
    int64_t left_ms = limits->value[LIMIT_CPU_MS] - used_us / 1000;
    if (left_ms <= 0)
        return 0;
    left_ms /= inside->processors;
    if (left_ms < MIN_CHECK_MS)
        return MIN_CHECK_MS;
    return left_ms > MAX_CHECK_MS ? MAX_CHECK_MS : (int)left_ms;
}

/* Reaps what has ended, orphans too; true when the process itself was among it. */
static bool reap(const struct inside *inside, pid_t pid, siginfo_t *end)
{
    struct signalfd_siginfo unused;
    siginfo_t info;

    while (read(inside->children, &unused, sizeof(unused)) > 0)
        continue;
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
            return false;
        if (info.si_pid == pid) {
            *end = info;
            return true;
        }
    }
    return false;
}

/* Waits for the end of the process. 0 with *end, or 1: over the limit on processor time. */
static int await(const struct inside *inside, pid_t pid, siginfo_t *end)
{
    struct pollfd waits[] = {{.fd = inside->children, .events = POLLIN},
                             {.fd = inside->slot.self, .events = POLLIN}};
    for (;;) {
        if (reap(inside, pid, end))
            return next_check(inside) == 0;
        int timeout = next_check(inside);
        if (timeout == 0)
            return 1;
        (void)poll(waits, AR_COUNT(waits), timeout);
        if (waits[1].revents)
            _exit(1);
    }
}

/* Nothing that runs after this call was there before it. */
static void end_everything(void)
{
    (void)kill(-1, SIGKILL);
    while (waitid(P_ALL, 0, NULL, WEXITED) == 0 || errno == EINTR)
        continue;
}

static int exit_code(const siginfo_t *end)
{
    return end->si_code == CLD_EXITED ? end->si_status & 0xff : 128 + end->si_status;
}

static void note_end(struct board *board, const siginfo_t *end)
{
    if (end->si_code == CLD_EXITED) {
        board->outcome = OUTCOME_EXITED;
        board->exit_code = end->si_status & 0xff;
    } else {
        board->outcome = OUTCOME_SIGNALED;
        board->signal = end->si_status;
    }
}

static void note_processor_limit(struct board *board)
{
    board->outcome = OUTCOME_LIMIT;
    board->limit = LIMIT_CPU_MS;
}

/* ---- the run ---------------------------------------------------------------------------------- */

/* 0: the program is there. 1: the run has ended with this step, as noted. Negative: failed. */
static int compile(struct inside *inside)
{
    struct start start = {.inside = inside,
                          .vector = inside->order->compile,
                          .env = inside->order->base_env,
                          .compiling = true};
    siginfo_t end;
    pid_t pid;

    int result = spawn(inside, &start, &pid);
    if (result < 0)
        return result;
    int over = await(inside, pid, &end);
    end_everything();
    if (over)
        note_processor_limit(inside->board);
    else if (end.si_code != CLD_EXITED || end.si_status != 0) {
        inside->board->outcome = OUTCOME_COMPILE_FAILED;
        inside->board->exit_code = exit_code(&end);
    } else {
        result = mounts_close_code();
        return result < 0 ? result : walls_keep_capabilities(MASK(CAP_DAC_READ_SEARCH));
    }
    return 1;
}

static int run(struct inside *inside)
{
    struct start start = {
        .inside = inside, .vector = inside->order->run, .env = inside->order->env};
    siginfo_t end;
    pid_t pid;

    int result = spawn(inside, &start, &pid);
    if (result < 0)
        return result;
    /* The ends of its pipes are the code's alone. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        (void)dup2(FD_NULL, fd);
    if (await(inside, pid, &end))
        note_processor_limit(inside->board);
    else
        note_end(inside->board, &end);
    end_everything();
    return 0;
}

static int run_code(struct inside *inside)
{
    const struct limits *limits = &inside->order->spec->grant.limits;
    inside->base_us = -1;
    if (limits->has[LIMIT_CPU_MS]) {
        inside->base_us = slot_processor_us(&inside->slot);
        if (inside->base_us < 0)
            return -ENOSYS;
    }
    int result = inside->order->compile ? compile(inside) : 0;
    return result == 0 ? run(inside) : result < 0 ? result : 0;
}

static int note_usage(struct inside *inside)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return -errno;
    inside->board->user_us = (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
    inside->board->system_us = (int64_t)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec;
    inside->board->memory_peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    return 0;
}

static int collect_outputs(struct inside *inside)
{
    const struct text_list *paths = &inside->order->spec->outputs;
    if (paths->count == 0)
        return 0;
    return files_collect(inside->folders.work, paths, FD_OUTPUTS);
}

void inside_main(const struct inside_order *order)
{
    static const struct {
        enum step step;
        int (*run)(struct inside *);
    } steps[] = {
        {STEP_GUARD, set_guard},
        {STEP_DESCRIPTORS, arrange_descriptors},
        {STEP_GUARD, watch_children},
        {STEP_SCRATCH, make_scratch},
        {STEP_FILES, write_files},
        {STEP_ROOT, enter_root},
        {STEP_CAPABILITIES, lower_capabilities},
        {STEP_SPAWN, run_code},
        {STEP_LOST, note_usage},
        {STEP_OUTPUTS, collect_outputs},
    };
    struct inside inside = {.order = order, .board = order->slot->board, .slot = *order->slot};

    for (size_t i = 0; i < AR_COUNT(steps); i++) {
        int result = steps[i].run(&inside);
        if (result < 0) {
            if (inside.board->failure.step == STEP_NONE)
                (void)step_fail(&inside.board->failure, steps[i].step, -result);
            _exit(1);
        }
    }
    inside.board->done = true;
    _exit(0);
}
