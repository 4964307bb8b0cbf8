/*
 * slot.c - the set-up of a launcher, a flat list of steps in the order in which they must come.
 *
 * The counter of processor time is opened first, while root still may; files of /proc/self are
 * written before the process becomes one that nobody may look into; the template comes after the
 * ids, so that everything in it belongs to them.
 *
 * The network namespace is the slot's and not the run's: a new one costs more than all the others
 * together. It has no interface that is up and nobody who may change that, so that all a run could
 * leave in it are sockets; slot_sweep_sockets() looks for those. Runs that are granted a network have
 * one of their own all the same.
 */
#include "executors/namespace/slot.h"

#include "executors/namespace/filter.h"
#include "executors/namespace/landlock.h"
#include "executors/namespace/sockets.h"
#include "executors/namespace/template.h"
#include "executors/namespace/trusted.h"
#include "executors/namespace/walls.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#ifdef __has_feature
#    if __has_feature(address_sanitizer)
#        define WITH_ADDRESS_SANITIZER
#    endif
#endif
#ifdef __SANITIZE_ADDRESS__
#    define WITH_ADDRESS_SANITIZER
#endif
#ifdef WITH_ADDRESS_SANITIZER
#    include <sanitizer/asan_interface.h>
#endif

#define FIRST_STACK_BYTES ((size_t)262144)
#define CODE_STACK_BYTES  ((size_t)65536)
#define GUARD_BYTES       ((size_t)4096)
#define HOST_NAME         "sandbox"

static int open_self(struct slot *slot)
{
    slot->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (slot->self < 0)
        return -errno;
    slot->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return slot->null < 0 ? -errno : 0;
}

static int take_stack(struct slot_stack *stack, size_t bytes)
{
    char *memory = mmap(NULL, bytes + GUARD_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    *stack = (struct slot_stack){.memory = memory, .bytes = bytes + GUARD_BYTES};
    return mprotect(memory, GUARD_BYTES, PROT_NONE) < 0 ? -errno : 0;
}

static void free_stack(struct slot_stack *stack)
{
    if (stack->memory)
        (void)munmap(stack->memory, stack->bytes);
    *stack = (struct slot_stack){0};
}

/* Who used the stack before has left it by executing or ending, which the sanitizer is not told. */
static void forget_frames(const struct slot_stack *stack)
{
#ifdef WITH_ADDRESS_SANITIZER
    __asan_unpoison_memory_region(stack->memory, stack->bytes);
#else
    (void)stack;
#endif
}

char *slot_stack_top(const struct slot_stack *stack)
{
    forget_frames(stack);
    return stack->memory + stack->bytes;
}

static int take_memory(struct slot *slot)
{
    int result = take_stack(&slot->first, FIRST_STACK_BYTES);
    if (result == 0)
        result = take_stack(&slot->code, CODE_STACK_BYTES);
    return result == 0 ? open_self(slot) : result;
}

/* What was ignored by our parent would stay ignored in the code. */
static int reset_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP)
            (void)signal(number, SIG_DFL);
    return 0;
}

/* Our parent's session keyring is not for us. A kernel without keyrings, or one that lets nobody use
 * them here, has none to inherit. */
static void leave_keyring(void)
{
    (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
}

/* An inherited software counter: it counts for this process and for everything that it starts,
 * reaped or not. A kernel that refuses it leaves us without: cpu_ms is then not offered. It slows
 * down each start of a process, and is not needed where the host counts. */
static void open_counter(struct slot *slot)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .inherit = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    if (!slot->host_enforces[LIMIT_CPU_MS])
        slot->counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int64_t slot_processor_us(const struct slot *slot)
{
    uint64_t nanoseconds;
    if (slot->counter < 0 ||
        read(slot->counter, &nanoseconds, sizeof(nanoseconds)) != sizeof(nanoseconds))
        return -1;
    return (int64_t)(nanoseconds / 1000);
}

static int enter_namespaces(struct slot *slot)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET) < 0)
        return -errno;
    if (sethostname(HOST_NAME, strlen(HOST_NAME)) < 0 || setdomainname("", 0) < 0)
        return -errno;
    slot->sockets = sockets_open();
    return slot->sockets < 0 ? slot->sockets : 0;
}

int slot_sweep_sockets(const struct slot *slot)
{
    return sockets_sweep(slot->sockets);
}

/* Sandboxes see a machine that was started when their slot was. A kernel without time namespaces
 * shows them the host's uptime, which is a fact of the envelope. The launcher goes there itself:
 * nobody may share its memory and live in another time. */
static void enter_own_time(struct slot *slot)
{
    struct timespec monotonic, boottime;
    char text[96];

    if (unshare(CLONE_NEWTIME) < 0)
        return;
    AR_AUTO_CLOSE int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    AR_AUTO_CLOSE int own = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    if (offsets < 0 || own < 0 || clock_gettime(CLOCK_MONOTONIC, &monotonic) < 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boottime) < 0)
        return;
    int length = snprintf(text, sizeof(text), "monotonic -%lld 0\nboottime -%lld 0\n",
                          (long long)monotonic.tv_sec, (long long)boottime.tv_sec);
    slot->own_clock = write(offsets, text, (size_t)length) == length;
    slot->own_clock = setns(own, CLONE_NEWTIME) == 0 && slot->own_clock;
}

/* Nothing that a sandbox starts can ever have a capability of this set, or gain one by a file. */
static int drop_privileges(void)
{
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
         capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
            return -errno;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

/* Last: it refuses most of what was done before. */
static int enter_filter(struct slot *slot)
{
    struct filter filter = {0};
    int result = trusted_make(&slot->token);
    if (result == 0)
        result = filter_compile(slot->token, slot->reach, &filter);
    if (result == 0)
        result = filter_install(&filter);
    filter_free(&filter);
    return result;
}

int slot_enter(struct slot *slot, const struct slot_options *options, struct failure *failure)
{
    int result;

    *slot = (struct slot){.reach = options->reach,
                          .timed = options->timed,
                          .self = -1,
                          .counter = -1,
                          .null = -1,
                          .sockets = -1};
    memcpy(slot->host_enforces, options->host_enforces, sizeof(slot->host_enforces));
    (void)reset_signals();
    if ((result = take_memory(slot)) < 0)
        return step_fail(failure, STEP_MEMORY, -result);
    leave_keyring();
    open_counter(slot);
    slot->landlock = landlock_version();
    struct ids ids = options->ids;
    slot->has_modules = options->modules->count > 0;
    if ((result = ids_take(&ids, failure)) < 0)
        return result;
    slot->own_uid = ids.own;
    enter_own_time(slot);
    if ((result = ids_become(slot->own_uid)) < 0)
        return step_fail(failure, STEP_IDS, -result);
    slot->own_groups = getgroups(0, NULL) == 0;
    if ((result = enter_namespaces(slot)) < 0)
        return step_fail(failure, STEP_OTHER_NAMESPACES, -result);
    if ((result = template_build(options->etc, slot->reach, options->modules,
                                 slot_stack_top(&slot->first), failure)) < 0)
        return result;
    if ((result = walls_limit_slot()) < 0)
        return step_fail(failure, STEP_LIMITS, -result);
    if ((result = drop_privileges()) < 0)
        return step_fail(failure, STEP_PRIVILEGES, -result);
    if ((result = enter_filter(slot)) < 0)
        return step_fail(failure, STEP_FILTER, -result);
    return 0;
}

void slot_leave(struct slot *slot)
{
    base_close(&slot->self);
    base_close(&slot->counter);
    base_close(&slot->null);
    base_close(&slot->sockets);
    free_stack(&slot->first);
    free_stack(&slot->code);
    *slot = (struct slot){.self = -1, .counter = -1, .null = -1, .sockets = -1};
}
