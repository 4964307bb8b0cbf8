/*
 * Hostile probe kern-bpf-perf (kernel).
 * Makes BPF maps and programs, and opens performance events.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

static long map(void)
{
    union bpf_attr a;
    memset(&a, 0, sizeof a);
    a.map_type = BPF_MAP_TYPE_ARRAY;
    a.key_size = 4;
    a.value_size = 4;
    a.max_entries = 1;
    return syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a);
}
static long prog(void)
{
    static const struct bpf_insn code[] = {{0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
    union bpf_attr a;
    memset(&a, 0, sizeof a);
    a.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    a.insns = (unsigned long)code;
    a.insn_cnt = 2;
    a.license = (unsigned long)"GPL";
    return syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a);
}
static long next(void)
{
    union bpf_attr a;
    memset(&a, 0, sizeof a);
    return syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &a, sizeof a);
}
static long perf(unsigned type, unsigned long config, pid_t pid, int cpu)
{
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.size = sizeof a;
    a.type = type;
    a.config = config;
    a.disabled = 1;
    a.exclude_kernel = 1;
    a.exclude_hv = 1;
    return syscall(SYS_perf_event_open, &a, pid, cpu, -1, 0);
}
static long perf_self(void)
{
    return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1);
}
static long perf_hardware(void)
{
    return perf(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, -1);
}
static long perf_all(void)
{
    return perf(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0);
}

int main(void)
{
    say("START", "kern-bpf-perf");
    try_one("bpf map", map, 0);
    try_one("bpf program", prog, 0);
    try_one("bpf list of programs", next, 1);
    try_one("perf event of its own", perf_self, 0);
    try_one("perf hardware event", perf_hardware, 0);
    try_one("perf event of a whole processor", perf_all, 0);
    return 0;
}
