/*
 * inside.c - pid 1 of a sandbox: builds it, takes a run, does it, kills the rest, tells the end.
 *
 * A flat list of steps. What does not depend on the run is done ahead, while nobody waits; then the
 * process itself receives the order, so that nobody else has to be woken. It shares the launcher's
 * memory, who waits meanwhile; descriptors and all else are its own.
 *
 * The code cannot signal, trace, limit or look into this process: it is the first of its pid namespace,
 * not dumpable, handles no signal, and the filter keeps others from changing its limits. It dies with
 * its launcher, and everything inside dies with it: by the death signal, and, should that have come too
 * early or been lost, by the launcher's pidfd, which it watches. It holds no privilege while the code
 * runs but that of reading every file of the scratch.
 */
#include "executors/namespace/inside.h"

#include "executors/namespace/code.h"
#include "executors/namespace/files.h"
#include "executors/namespace/landlock.h"
#include "executors/namespace/mounts.h"
#include "executors/namespace/network.h"
#include "executors/namespace/places.h"
#include "executors/namespace/sockets.h"
#include "executors/namespace/walls.h"

#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define REAP_AT_ONCE     256 /* then the limits are looked at again */
#define MIN_CHECK_MS     2
#define MAX_CHECK_MS     1000
#define MASK(capability) (1ull << (capability))

struct inside {
    struct inside_start *start;
    struct slot *slot;
    struct board *board;
    struct mounts_folders folders;
    int ruleset;     /* of Landlock; -1: none */
    int children;    /* signalfd of SIGCHLD */
    int sockets;     /* the list of those in the run's own network; -1: it has none */
    int processors;  /* that the code can use at a time */
    int64_t base_us; /* the counter when the code was started; -1: no limit on it here */
};

/* ---- ahead ------------------------------------------------------------------------------------ */

static void exit_without_launcher(const struct inside *inside)
{
    struct pollfd launcher = {.fd = inside->slot->self, .events = POLLIN};
    if (poll(&launcher, 1, 0) != 0)
        _exit(1);
}

/* The session is the run's own; making one takes the kernel long, and so it is made ahead. */
static int set_guard(struct inside *inside)
{
    if (setsid() < 0)
        return -errno;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -errno;
    exit_without_launcher(inside); /* it may have ended before the call above */
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

/* mounts_build() knows which of its steps failed, and says so on the board itself. */
static int build_root(struct inside *inside)
{
    return mounts_build(inside->slot->token, &inside->slot->scratch, &inside->folders,
                        &inside->board->failure);
}

static bool reaches(const struct inside *inside, unsigned reach)
{
    return (inside->slot->reach & reach) != 0;
}

static int raise_network(struct inside *inside)
{
    if (!reaches(inside, REACH_NETWORK))
        return 0;
    int result = network_raise();
    if (result == 0)
        inside->sockets = sockets_open();
    return result < 0 ? result : inside->sockets < 0 ? inside->sockets : 0;
}

static int make_ruleset(struct inside *inside)
{
    const int writable[] = {inside->folders.work, inside->folders.tmp};
    if (inside->slot->landlock == 0)
        return 0;
    inside->ruleset = landlock_make(inside->slot->landlock, writable, AR_COUNT(writable));
    board_mark(inside->board, MARK_BUILT);
    if (inside->ruleset < 0 || !reaches(inside, REACH_NETWORK))
        return inside->ruleset < 0 ? inside->ruleset : 0;
    return landlock_allow_connect(inside->ruleset, inside->slot->landlock, REACH_PORT);
}

/* ---- the run comes ---------------------------------------------------------------------------- */

static int take_order(struct inside *inside)
{
    const struct inside_source *source = &inside->start->source;
    int result = source->take(source->context, &inside->start->order, &inside->board->failure);
    if (result > 0)
        _exit(0);
    inside->board->taken = true;
    inside->board->has_port = inside->start->order.data_port >= 0;
    board_mark(inside->board, MARK_TAKEN);
    return result;
}

static int size_scratch(struct inside *inside)
{
    const struct spec *spec = inside->start->order.spec;
    return mounts_size_scratch(inside->slot->token, &inside->slot->scratch,
                               walls_scratch_bytes(&spec->grant.limits),
                               (int64_t)spec->code.length);
}

static int write_files(struct inside *inside)
{
    const struct order *order = &inside->start->order;
    const struct spec *spec = order->spec;
    int result =
        files_write(inside->slot->token, inside->folders.code, order->code_file, &spec->code);
    for (size_t i = 0; result == 0 && i < spec->file_count; i++)
        result = files_write(inside->slot->token, inside->folders.work, spec->files[i].path,
                             &spec->files[i].content);
    return result;
}

static int show_secrets(struct inside *inside)
{
    struct order *order = &inside->start->order;
    if (!order->vault.text)
        return 0;
    int result = vault_show(inside->slot->token, &order->vault);
    vault_wipe(&order->vault);
    return result;
}

/* places_show() says on the board itself what was wrong. */
static int show_places(struct inside *inside)
{
    const struct order *order = &inside->start->order;
    const struct places places = {.grant = &order->spec->grant,
                                  .trees = order->trees,
                                  .ruleset = inside->ruleset,
                                  .landlock = inside->slot->landlock};
    if (order->tree_count == 0)
        return 0;
    int result = places_show(inside->slot->token, &places, &inside->board->failure);
    for (size_t i = 0; i < order->tree_count; i++)
        (void)close(order->trees[i]);
    return result;
}

/* The compiler may write where the program will lie; a program of ours lies outside of the root. */
static int open_code(struct inside *inside)
{
    const struct order *order = &inside->start->order;
    int result = 0;
    if (inside->ruleset >= 0 && order->program >= 0)
        result = landlock_allow_program(inside->ruleset, order->program);
    if (result < 0 || !order->compile)
        return result;
    if (inside->ruleset >= 0)
        result = landlock_allow(inside->ruleset, inside->slot->landlock, inside->folders.code);
    return result < 0 ? result : mounts_set_code(inside->slot->token, true);
}

static int lower_capabilities(struct inside *inside)
{
    const uint64_t closing = inside->start->order.compile ? MASK(CAP_SYS_ADMIN) : 0;
    int result = walls_keep_capabilities(MASK(CAP_DAC_READ_SEARCH) | closing);
    board_mark(inside->board, MARK_FILLED);
    return result;
}

/* From here on the daemon has the only descriptor of it. */
static int hand_over_listener(struct inside *inside)
{
    const struct inside_source *source = &inside->start->source;
    if (!reaches(inside, REACH_NETWORK))
        return 0;
    AR_AUTO_CLOSE int listener = network_listen();
    return listener < 0 ? listener : source->listening(source->context, listener);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static const struct limits *limits_of(const struct inside *inside)
{
    return &inside->start->order.spec->grant.limits;
}

/* Milliseconds until the limit on processor time can be reached; 0: it has been; -1: there is none. */
static int next_check(const struct inside *inside)
{
    if (inside->base_us < 0)
        return -1;
    int64_t used_us = slot_processor_us(inside->slot) - inside->base_us;
    int64_t left_ms = limits_of(inside)->value[LIMIT_CPU_MS] - used_us / 1000;
    if (left_ms <= 0)
        return 0;
    left_ms /= inside->processors;
    if (left_ms < MIN_CHECK_MS)
        return MIN_CHECK_MS;
    return left_ms > MAX_CHECK_MS ? MAX_CHECK_MS : (int)left_ms;
}

/* Reaps what has ended, orphans too; true when the process itself was among it. *more: there may be
 * others, of which no signal will tell again. */
static bool reap(const struct inside *inside, pid_t pid, siginfo_t *end, bool *more)
{
    struct signalfd_siginfo unused;
    siginfo_t info;

    *more = false;
    if (read(inside->children, &unused, sizeof(unused)) < 0 && errno != EAGAIN)
        return false;
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
            return false;
        if (info.si_pid == pid) {
            *end = info;
            return true;
        }
    }
    *more = true;
    return false;
}

/* Waits for the end of the process. 0 with *end, or 1: over the limit on processor time. */
static int await(const struct inside *inside, pid_t pid, siginfo_t *end)
{
    struct pollfd waits[] = {{.fd = inside->children, .events = POLLIN},
                             {.fd = inside->slot->self, .events = POLLIN}};
    bool more = false;
    for (;;) {
        int timeout = next_check(inside);
        if (timeout == 0)
            return 1;
        (void)poll(waits, AR_COUNT(waits), more ? 0 : timeout);
        if (waits[1].revents)
            _exit(1);
        if ((more || waits[0].revents) && reap(inside, pid, end, &more))
            return next_check(inside) == 0;
    }
}

/* Nothing that runs after this call was there before it. */
static void end_everything(void)
{
    (void)kill(-1, SIGKILL);
    while (waitid(P_ALL, 0, NULL, WEXITED) == 0 || errno == EINTR)
        continue;
}

/* ---- the run ---------------------------------------------------------------------------------- */

static int start_code(struct inside *inside, bool compiling, pid_t *pid)
{
    const struct code code = {.slot = inside->slot,
                              .order = &inside->start->order,
                              .ruleset = inside->ruleset,
                              .compiling = compiling};
    int result = code_start(&code, pid);
    if (inside->board->at_us[MARK_STARTED] == 0)
        board_mark(inside->board, MARK_STARTED);
    return result;
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

static void note_limit(struct board *board, enum limit limit)
{
    board->outcome = OUTCOME_LIMIT;
    board->limit = limit;
}

/* 0: the program is there. 1: the run has ended with this step, as noted. Negative: failed. */
static int compile(struct inside *inside)
{
    siginfo_t end;
    pid_t pid;

    int result = start_code(inside, true, &pid);
    if (result < 0)
        return result;
    int over = await(inside, pid, &end);
    end_everything();
    if (over)
        note_limit(inside->board, LIMIT_CPU_MS);
    else if (end.si_code != CLD_EXITED || end.si_status != 0) {
        inside->board->outcome = OUTCOME_COMPILE_FAILED;
        inside->board->exit_code = exit_code(&end);
    } else {
        result = mounts_set_code(inside->slot->token, false);
        return result < 0 ? result : walls_keep_capabilities(MASK(CAP_DAC_READ_SEARCH));
    }
    return 1;
}

static int run(struct inside *inside)
{
    siginfo_t end;
    pid_t pid;

    int result = start_code(inside, false, &pid);
    if (result < 0)
        return result;
    code_let_go_of_streams(&inside->start->order);
    order_wipe(&inside->start->order); /* it has its variables in a memory of its own */
    if (await(inside, pid, &end))
        note_limit(inside->board, LIMIT_CPU_MS);
    else
        note_end(inside->board, &end);
    end_everything();
    return 0;
}

static int run_code(struct inside *inside)
{
    inside->base_us = -1;
    if (limits_of(inside)->has[LIMIT_CPU_MS] && inside->slot->counter >= 0) {
        inside->base_us = slot_processor_us(inside->slot);
        if (inside->base_us < 0)
            return -ENOSYS;
    }
    int result = inside->start->order.compile ? compile(inside) : 0;
    if (result == 0)
        result = run(inside);
    board_mark(inside->board, MARK_ENDED);
    return result < 0 ? result : 0;
}

/* ---- the end ---------------------------------------------------------------------------------- */

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

/* A run that failed with its scratch full failed for that. One that coped has not. */
static int look_at_scratch(struct inside *inside)
{
    struct board *board = inside->board;
    bool failed = board->outcome == OUTCOME_SIGNALED || board->outcome == OUTCOME_COMPILE_FAILED ||
                  (board->outcome == OUTCOME_EXITED && board->exit_code != 0);
    if (failed && mounts_scratch_is_full(&inside->folders))
        note_limit(board, LIMIT_SCRATCH_BYTES);
    return 0;
}

static int collect_outputs(struct inside *inside)
{
    const struct order *order = &inside->start->order;
    int result = 0;
    if (order->spec->outputs.count > 0)
        result = files_collect(inside->slot->token, inside->folders.work, &order->spec->outputs,
                               order->streams[3]);
    board_mark(inside->board, MARK_TOLD);
    return result;
}

/* Sockets that outlived the run would keep its network. */
static int sweep_network(struct inside *inside)
{
    if (inside->sockets < 0)
        return 0;
    int result = sockets_sweep(inside->sockets);
    /* What is on its way to the daemon over the data port goes when the daemon closes that. */
    return result < 0 && !(result == -ETIME && inside->board->has_port) ? result : 0;
}

int inside_main(void *argument)
{
    static const struct {
        enum step step;
        int (*run)(struct inside *);
    } steps[] = {
        {STEP_GUARD, set_guard},
        {STEP_GUARD, watch_children},
        {STEP_ROOT, build_root},
        {STEP_NETWORK, raise_network},
        {STEP_LANDLOCK, make_ruleset},
        {STEP_SPEC, take_order},
        {STEP_SCRATCH, size_scratch},
        {STEP_FILES, write_files},
        {STEP_SECRETS, show_secrets},
        {STEP_PATHS, show_places},
        {STEP_ROOT, open_code},
        {STEP_CAPABILITIES, lower_capabilities},
        {STEP_NETWORK, hand_over_listener},
        {STEP_SPAWN, run_code},
        {STEP_LOST, note_usage},
        {STEP_SCRATCH, look_at_scratch},
        {STEP_OUTPUTS, collect_outputs},
        {STEP_SOCKETS, sweep_network},
    };
    struct inside_start *start = argument;
    struct inside inside = {.start = start,
                            .slot = start->slot,
                            .board = &start->slot->board,
                            .ruleset = -1,
                            .sockets = -1};

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
