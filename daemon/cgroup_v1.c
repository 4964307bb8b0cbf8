/*
 * cgroup_v1.c - control groups, version 1: a hierarchy for each controller.
 *
 * Used where version 2 has neither memory nor pids, also beside an empty version 2. The kernel's
 * Documentation/admin-guide/cgroup-v1/ describes the files. Two of its gaps are closed by cgroup.c:
 * there is no way to kill a group at once (it is frozen and killed one by one), and the counter of
 * kills does not say for whose memory (the leaf's own limit must have been reached, too).
 */
#include "daemon/cgroup_v1.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const controller_names[CGROUP_CONTROLLERS] = {"memory", "pids", "cpuacct",
                                                                 "freezer"};

/* Makes the daemon's own group in one hierarchy. */
static bool open_controller(const char *controller, const char *name, char path[CGROUP_PATH_BYTES])
{
    char base[CGROUP_PATH_BYTES];
    if (!cgroup_file_base(controller, base))
        return false;
    cgroup_file_sweep(base);
    return cgroup_file_join(path, base, name) && (mkdir(path, 0755) == 0 || errno == EEXIST);
}

/* Controllers may share a hierarchy, as cpu and cpuacct often do. */
static int find_folder(const struct cgroup_tree *tree, const char *path)
{
    size_t i = 0;
    while (i < tree->count && strcmp(tree->path[i], path) != 0)
        i++;
    return (int)i;
}

static int open_tree(struct cgroup_tree *tree)
{
    char name[32], path[CGROUP_PATH_BYTES];
    (void)snprintf(name, sizeof name, CGROUP_PREFIX "%ld", (long)getpid());
    for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLERS; i++) {
        tree->folder[i] = -1;
        if (!open_controller(controller_names[i], name, path))
            continue;
        tree->folder[i] = find_folder(tree, path);
        if ((size_t)tree->folder[i] == tree->count)
            memcpy(tree->path[tree->count++], path, sizeof path);
    }
    return tree->count > 0 ? 0 : 1;
}

static void close_tree(struct cgroup_tree *tree)
{
    (void)tree;
}

const struct cgroup_version *cgroup_v1_version(void)
{
    static const struct cgroup_version version = {
        .word = "v1",
        .open = open_tree,
        .close = close_tree,
        .counters =
            {
                [CGROUP_OOM_KILLS] = {CGROUP_MEMORY, "memory.oom_control", "oom_kill "},
                [CGROUP_MEMORY_HITS] = {CGROUP_MEMORY, "memory.failcnt", ""},
                [CGROUP_MEMORY_PEAK] = {CGROUP_MEMORY, "memory.max_usage_in_bytes", ""},
                [CGROUP_PROCESSES_NOW] = {CGROUP_PIDS, "pids.current", ""},
                [CGROUP_PROCESSES_REFUSED] = {CGROUP_PIDS, "pids.events", "max "},
                [CGROUP_PROCESSES_PEAK] = {CGROUP_PIDS, "pids.peak", ""},
                [CGROUP_CPU_TOTAL] = {CGROUP_CPU, "cpuacct.usage", ""},
                [CGROUP_CPU_USER] = {CGROUP_CPU, "cpuacct.stat", "user "},
                [CGROUP_CPU_SYSTEM] = {CGROUP_CPU, NULL, "system "},
            },
        .cpu_units = 1000,
        .memory_limit = "memory.limit_in_bytes",
        .processes_limit = "pids.max",
        .memory_unlimited = "-1",
        /* Memory that is swapped out would not count. */
        .first = {{CGROUP_MEMORY, "memory.swappiness", "0"}},
        .freeze = {CGROUP_FREEZER, "freezer.state", "FROZEN"},
        .thaw = {CGROUP_FREEZER, "freezer.state", "THAWED"},
    };
    return &version;
}
