/*
 * walls.c - resource limits and capabilities of the code.
 *
 * The core size is 1 and not 0: only 1 keeps the kernel from handing the memory of a crashed
 * program to a collector on the host.
 */
#include "executors/namespace/walls.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define DEFAULT_OPEN_FILES 1024
#define DEFAULT_PROCESSES  1024
#define SPARE_PROCESSES    16
#define LOCKED_BYTES       65536
#define QUEUE_BYTES        262144
#define QUEUED_SIGNALS     1024
#define STACK_BYTES        (8u << 20)
#define FILE_SLACK_BYTES \
    65536 /* a file system that is full is told before a file that is too big */

static int64_t limit_or(const struct limits *limits, enum limit limit, int64_t otherwise)
{
    return limits->has[limit] ? limits->value[limit] : otherwise;
}

int64_t walls_scratch_bytes(const struct limits *limits)
{
    return limit_or(limits, LIMIT_SCRATCH_BYTES, WALLS_SCRATCH_BYTES);
}

struct resource {
    __rlimit_resource_t resource;
    rlim_t value;
};

static int set_limit(__rlimit_resource_t resource, rlim_t value)
{
    const struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
    return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* The kernel's own limit of processor time is for each process; it is the second wall behind the
 * counter of the whole run, a second or two further out. */
static int limit_processor_time(const struct limits *limits)
{
    if (!limits->has[LIMIT_CPU_MS])
        return 0;
    return set_limit(RLIMIT_CPU, (rlim_t)(limits->value[LIMIT_CPU_MS] / 1000 + 2));
}

static int set_limits(const struct resource *table, size_t count)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++)
        result = set_limit(table[i].resource, table[i].value);
    return result;
}

int walls_limit_slot(void)
{
    static const struct resource table[] = {
        {RLIMIT_CORE, 1},
        {RLIMIT_MEMLOCK, LOCKED_BYTES},
        {RLIMIT_MSGQUEUE, QUEUE_BYTES},
        {RLIMIT_SIGPENDING, QUEUED_SIGNALS},
        {RLIMIT_NICE, 0},
        {RLIMIT_RTPRIO, 0},
        {RLIMIT_STACK, STACK_BYTES},
    };
    return set_limits(table, AR_COUNT(table));
}

int walls_limit(const struct slot *slot, const struct limits *limits)
{
    /* Where the host counts processes, its limit must be met first: that one is told. */
    const int64_t processes = limit_or(limits, LIMIT_PROCESSES, DEFAULT_PROCESSES) +
                              SLOT_OWN_PROCESSES +
                              (slot->host_enforces[LIMIT_PROCESSES] ? SPARE_PROCESSES : 0);
    const struct resource table[] = {
        {RLIMIT_NPROC, (rlim_t)processes},
        {RLIMIT_NOFILE, (rlim_t)limit_or(limits, LIMIT_OPEN_FILES, DEFAULT_OPEN_FILES)},
        {RLIMIT_FSIZE, (rlim_t)(walls_scratch_bytes(limits) + FILE_SLACK_BYTES)},
    };
    int result = limit_processor_time(limits);
    return result == 0 ? set_limits(table, AR_COUNT(table)) : result;
}

int walls_keep_capabilities(uint64_t mask)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    for (int i = 0; i < 2; i++)
        data[i] = (struct __user_cap_data_struct){.effective = (uint32_t)(mask >> (32 * i)),
                                                  .permitted = (uint32_t)(mask >> (32 * i))};
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
