/*
 * slot.c - the set-up of a launcher, a flat list of steps in the order in which they must come.
 *
 * The counter of processor time is opened first, while root still may; files of /proc/self are
 * written before the process becomes one that nobody may look into; the template comes after the
 * ids, so that everything in it belongs to them.
 */
#include "executors/namespace/slot.h"

#include "executors/namespace/board.h"
#include "executors/namespace/ids.h"
#include "executors/namespace/template.h"

#include <fcntl.h>
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

#define STACK_BYTES ((size_t)65536)
#define HOST_NAME   "sandbox"

static int open_self(struct slot *slot)
{
    slot->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (slot->self < 0)
        return -errno;
    slot->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return slot->null < 0 ? -errno : 0;
}

static void *map_memory(size_t bytes, int flags)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int take_memory(struct slot *slot)
{
    slot->stack_bytes = STACK_BYTES;
    slot->stack = map_memory(STACK_BYTES, MAP_PRIVATE | MAP_STACK);
    slot->board = map_memory(sizeof(*slot->board), MAP_SHARED);
    if (!slot->stack || !slot->board)
        return -ENOMEM;
    return open_self(slot);
}

/* What was ignored by our parent would stay ignored in the code. */
static int reset_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP)
            (void)signal(number, SIG_DFL);
    return 0;
}

/* An inherited software counter: it counts for this process and for everything that it starts,
 * reaped or not. A kernel that refuses it leaves us without: cpu_ms is then not offered. */
static void open_counter(struct slot *slot)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .inherit = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
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

static int enter_namespaces(void)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0)
        return -errno;
    return sethostname(HOST_NAME, strlen(HOST_NAME)) < 0 || setdomainname("", 0) < 0 ? -errno : 0;
}

/* Sandboxes see a machine that was started when their slot was. A kernel without time namespaces
 * shows them the host's uptime, which is a fact of the envelope. */
static void enter_own_time(struct slot *slot)
{
    struct timespec monotonic, boottime;
    char text[96];

    if (unshare(CLONE_NEWTIME) < 0)
        return;
    AR_AUTO_CLOSE int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || clock_gettime(CLOCK_MONOTONIC, &monotonic) < 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boottime) < 0)
        return;
    int length = snprintf(text, sizeof(text), "monotonic -%lld 0\nboottime -%lld 0\n",
                          (long long)monotonic.tv_sec, (long long)boottime.tv_sec);
    slot->own_clock = write(fd, text, (size_t)length) == length;
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

static int enter_user_namespace(struct slot *slot, const struct slot_options *options,
                                struct failure *failure)
{
    uint32_t own_id;
    slot->own_uid = geteuid() == 0;
    if (!base_add(options->uid_base, options->number, &own_id) || own_id == UINT32_MAX ||
        own_id == 0)
        return step_fail(failure, STEP_ID_MAP, ERANGE);
    return ids_enter(slot->own_uid, own_id, failure);
}

int slot_enter(struct slot *slot, const struct slot_options *options, struct failure *failure)
{
    int result;

    *slot = (struct slot){.self = -1, .counter = -1, .null = -1};
    (void)reset_signals();
    if ((result = take_memory(slot)) < 0)
        return step_fail(failure, STEP_MEMORY, -result);
    open_counter(slot);
    if ((result = filter_compile(&slot->filter)) < 0)
        return step_fail(failure, STEP_FILTER, -result);
    if ((result = enter_user_namespace(slot, options, failure)) < 0)
        return result;
    enter_own_time(slot);
    if ((result = ids_become(slot->own_uid)) < 0)
        return step_fail(failure, STEP_IDS, -result);
    slot->own_groups = getgroups(0, NULL) == 0;
    if ((result = enter_namespaces()) < 0)
        return step_fail(failure, STEP_OTHER_NAMESPACES, -result);
    if ((result = template_build(failure)) < 0)
        return result;
    if ((result = drop_privileges()) < 0)
        return step_fail(failure, STEP_PRIVILEGES, -result);
    return 0;
}

void slot_leave(struct slot *slot)
{
    filter_free(&slot->filter);
    base_close(&slot->self);
    base_close(&slot->counter);
    base_close(&slot->null);
    if (slot->stack)
        (void)munmap(slot->stack, slot->stack_bytes);
    if (slot->board)
        (void)munmap(slot->board, sizeof(*slot->board));
    *slot = (struct slot){.self = -1, .counter = -1, .null = -1};
}
