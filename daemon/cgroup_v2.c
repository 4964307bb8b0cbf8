/*
 * cgroup_v2.c - control groups, version 2: one hierarchy, used by delegation.
 *
 * The group in which the daemon is started is taken to be its own (a unit with Delegate=yes, or a group
 * that somebody made for it). Controllers can be handed down only by a group without processes of its
 * own, so the daemon moves into a leaf `supervisor` beside its slots' group. It moves nobody else: in a
 * group where others live too, version 2 cannot be used, and nothing is changed.
 * (Documentation/admin-guide/cgroup-v2.rst of the kernel; systemd's docs/CGROUP_DELEGATION.md.)
 */
#include "daemon/cgroup_v2.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SUPERVISOR "supervisor"
/* What the daemon claims of the memory that the unit is promised (MemoryMin=), ahead of its runs. */
#define SUPERVISOR_BYTES (32 << 20)

static const struct {
    enum cgroup_controller controller;
    const char *name, *enable, *disable;
} wanted[] = {{CGROUP_MEMORY, "memory", "+memory", "-memory"},
              {CGROUP_PIDS, "pids", "+pids", "-pids"}};

static int write_below(const char *path, const char *name, const char *text)
{
    char file[CGROUP_PATH_BYTES];
    return cgroup_file_join(file, path, name) ? cgroup_file_write(AT_FDCWD, file, text)
                                              : -ENAMETOOLONG;
}

static void read_below(const char *path, const char *name, char text[CGROUP_TEXT_BYTES])
{
    char file[CGROUP_PATH_BYTES];
    text[0] = 0;
    if (cgroup_file_join(file, path, name))
        cgroup_file_read(AT_FDCWD, file, text);
}

/* How many of the wanted controllers does a list in a group's folder have? */
static size_t count_wanted(const char *path, const char *name)
{
    char list[CGROUP_TEXT_BYTES];
    size_t count = 0;
    read_below(path, name, list);
    for (size_t i = 0; i < AR_COUNT(wanted); i++)
        count += cgroup_file_has_item(list, wanted[i].name);
    return count;
}

static bool hands_all_down(const char *path)
{
    return count_wanted(path, "cgroup.subtree_control") == count_wanted(path, "cgroup.controllers");
}

/* Hands the controllers that a group has down to its children, as far as can be. One that cannot be is
 * the end of it: pids alone would go down over processes of the group, and spoil it for the rest. */
static void hand_down(const char *path)
{
    char available[CGROUP_TEXT_BYTES];
    read_below(path, "cgroup.controllers", available);
    for (size_t i = 0; i < AR_COUNT(wanted); i++)
        if (cgroup_file_has_item(available, wanted[i].name) &&
            write_below(path, "cgroup.subtree_control", wanted[i].enable) < 0)
            return;
}

static int enter(const char *path)
{
    char pid[24];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    return write_below(path, "cgroup.procs", pid);
}

/* Goes back to where it was found, if nobody else needs what was handed down. */
static void leave_supervisor(struct cgroup_tree *tree)
{
    char supervisor[CGROUP_PATH_BYTES];
    if (!tree->moved || !cgroup_file_join(supervisor, tree->base, SUPERVISOR))
        return;
    for (size_t i = 0; i < AR_COUNT(wanted); i++)
        (void)write_below(tree->base, "cgroup.subtree_control", wanted[i].disable);
    if (enter(tree->base) == 0)
        (void)rmdir(supervisor);
    tree->moved = false;
}

static bool enter_supervisor(struct cgroup_tree *tree)
{
    char supervisor[CGROUP_PATH_BYTES];
    if (!cgroup_file_join(supervisor, tree->base, SUPERVISOR) ||
        (mkdir(supervisor, 0755) != 0 && errno != EEXIST))
        return false;
    if (enter(supervisor) == 0) {
        tree->moved = true;
        return true;
    }
    (void)rmdir(supervisor);
    return false;
}

/* A daemon that is started in the place of another one may be in its leaf already. */
static bool find_base(struct cgroup_tree *tree)
{
    static const char tail[] = "/" SUPERVISOR;
    if (!cgroup_file_base(NULL, tree->base))
        return false;
    size_t length = strlen(tree->base), cut = sizeof tail - 1;
    if (length > cut && strcmp(tree->base + length - cut, tail) == 0) {
        tree->base[length - cut] = 0;
        tree->moved = true;
    }
    return true;
}

/* The topmost group of all is the only one that may have processes beside groups. */
static bool is_topmost(const char *path)
{
    char file[CGROUP_PATH_BYTES];
    return cgroup_file_join(file, path, "cgroup.type") && access(file, F_OK) != 0;
}

/* What the unit is promised is the daemon's first of all. */
static void claim_memory(const struct cgroup_tree *tree)
{
    char supervisor[CGROUP_PATH_BYTES], bytes[24];
    (void)snprintf(bytes, sizeof bytes, "%d", SUPERVISOR_BYTES);
    if (tree->moved && cgroup_file_join(supervisor, tree->base, SUPERVISOR))
        (void)write_below(supervisor, "memory.min", bytes);
}

static bool prepare_base(struct cgroup_tree *tree)
{
    if (count_wanted(tree->base, "cgroup.controllers") == 0)
        return false;
    if (!hands_all_down(tree->base)) {
        if (!tree->moved && !is_topmost(tree->base) && !enter_supervisor(tree))
            return false;
        hand_down(tree->base);
    }
    if (!hands_all_down(tree->base)) { /* others live there, too */
        leave_supervisor(tree);
        return false;
    }
    claim_memory(tree);
    return true;
}

static int open_tree(struct cgroup_tree *tree)
{
    char name[32], enabled[CGROUP_TEXT_BYTES];
    char *path = tree->path[0];
    if (!find_base(tree) || !prepare_base(tree))
        return 1;
    cgroup_file_sweep(tree->base);
    (void)snprintf(name, sizeof name, CGROUP_PREFIX "%ld", (long)getpid());
    if (!cgroup_file_join(path, tree->base, name) || (mkdir(path, 0755) != 0 && errno != EEXIST)) {
        leave_supervisor(tree);
        return 1;
    }
    tree->count = 1;
    hand_down(path);
    read_below(path, "cgroup.subtree_control", enabled);
    tree->folder[CGROUP_CPU] = tree->folder[CGROUP_FREEZER] = 0; /* they are in every group */
    for (size_t i = 0; i < AR_COUNT(wanted); i++)
        tree->folder[wanted[i].controller] = cgroup_file_has_item(enabled, wanted[i].name) ? 0 : -1;
    return 0;
}

const struct cgroup_version *cgroup_v2_version(void)
{
    static const struct cgroup_version version = {
        .word = "v2",
        .open = open_tree,
        .close = leave_supervisor,
        .counters =
            {
                [CGROUP_OOM_KILLS] = {CGROUP_MEMORY, "memory.events.local", "oom_kill "},
                [CGROUP_MEMORY_HITS] = {CGROUP_MEMORY, NULL, "oom "},
                [CGROUP_MEMORY_PEAK] = {CGROUP_MEMORY, "memory.peak", ""},
                [CGROUP_PROCESSES_NOW] = {CGROUP_PIDS, "pids.current", ""},
                [CGROUP_PROCESSES_REFUSED] = {CGROUP_PIDS, "pids.events", "max "},
                [CGROUP_PROCESSES_PEAK] = {CGROUP_PIDS, "pids.peak", ""},
                [CGROUP_CPU_TOTAL] = {CGROUP_CPU, "cpu.stat", "usage_usec "},
                [CGROUP_CPU_USER] = {CGROUP_CPU, NULL, "user_usec "},
                [CGROUP_CPU_SYSTEM] = {CGROUP_CPU, NULL, "system_usec "},
            },
        .cpu_units = 1,
        .memory_limit = "memory.max",
        .memory_now = "memory.current",
        .memory_reclaim = "memory.reclaim",
        .processes_limit = "pids.max",
        .memory_unlimited = "max",
        /* Memory that is swapped out would not count; and a run of which a part was killed is over. */
        .first = {{CGROUP_MEMORY, "memory.swap.max", "0"},
                  {CGROUP_MEMORY, "memory.oom.group", "1"}},
        .freeze = {CGROUP_FREEZER, "cgroup.freeze", "1"},
        .thaw = {CGROUP_FREEZER, "cgroup.freeze", "0"},
        .kill = {CGROUP_FREEZER, "cgroup.kill", "1"},
    };
    return &version;
}
