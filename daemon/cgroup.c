/*
 * cgroup.c - a control group for each slot: limits, counters, killing.
 *
 * The version is chosen once, at the start: version 2 where the daemon's own group has memory or pids
 * in it, else version 1. The counters' files stay open as long as the leaf, and are read by pread():
 * they are read for every run. Limits are written only when they change.
 *
 * Whose fault a kill by the kernel was is told by two counters together: the leaf had reached its own
 * limit, and something in it was killed. When the machine (or a group above) runs out of memory, only
 * the second one moves.
 */
#include "daemon/cgroup.h"

#include "daemon/cgroup_trial.h"
#include "daemon/cgroup_v1.h"
#include "daemon/cgroup_v2.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NO_LIMIT INT64_MAX

struct cgroup_root {
    const struct cgroup_version *version;
    struct cgroup_tree tree;
    struct limits offers;
};

struct cgroup {
    const struct cgroup_root *root;
    const struct cgroup_version *version; /* of the root */
    int slot;
    int folder[CGROUP_CONTROLLERS]; /* open; as many as the tree has */
    int counter[CGROUP_COUNTERS]; /* open files; -1: not there, or the one of the counter before */
    int64_t begin[CGROUP_COUNTERS];        /* when the run began; -1: not known */
    int64_t memory_limit, processes_limit; /* as they are set now; -1: not known */
    bool peak_begins_anew;                 /* the kernel can do that */
    bool too_small;                        /* the run did not even fit before it began */
    bool stubborn;                         /* the last kill found somebody */
};

/* ---- the daemon's group ----------------------------------------------------------------------- */

static int choose_version(struct cgroup_root *root)
{
    const struct cgroup_version *const versions[] = {cgroup_v2_version(), cgroup_v1_version()};
    for (size_t i = 0; i < AR_COUNT(versions); i++) {
        root->tree = (struct cgroup_tree){0};
        root->version = versions[i];
        if (versions[i]->open(&root->tree) == 0)
            return 0;
    }
    root->version = NULL;
    return 1;
}

int cgroup_root_open(struct cgroup_root **out)
{
    struct cgroup_root *root = calloc(1, sizeof *root);
    if (!root)
        return -ENOMEM;
    int rc = choose_version(root);
    if (rc == 0)
        rc = cgroup_trial_run(root, &root->offers);
    if (rc != 0)
        cgroup_root_free(root);
    else
        *out = root;
    return rc < 0 && rc != -ENOMEM ? 1 : rc;
}

void cgroup_root_free(struct cgroup_root *root)
{
    if (!root)
        return;
    for (size_t i = 0; i < root->tree.count; i++)
        cgroup_file_remove(root->tree.path[i]); /* with leaves whose last process was ending */
    if (root->version)
        root->version->close(&root->tree);
    free(root);
}

const struct limits *cgroup_root_offers(const struct cgroup_root *root)
{
    static const struct limits none;
    return root ? &root->offers : &none;
}

const char *cgroup_root_word(const struct cgroup_root *root)
{
    return root ? root->version->word : "none";
}

/* ---- a leaf ----------------------------------------------------------------------------------- */

/* The folder of a controller; -1: it cannot be had here. */
static int folder_of(const struct cgroup *cgroup, enum cgroup_controller controller)
{
    int index = cgroup->root->tree.folder[controller];
    return index < 0 ? -1 : cgroup->folder[index];
}

static int write_word(const struct cgroup *cgroup, const struct cgroup_word *word)
{
    int folder = word->file ? folder_of(cgroup, word->controller) : -1;
    return folder < 0 ? -ENOENT : cgroup_file_write(folder, word->file, word->word);
}

static bool name_leaf(const struct cgroup *cgroup, size_t folder, char path[CGROUP_PATH_BYTES])
{
    char name[32];
    (void)snprintf(name, sizeof name, CGROUP_LEAF "%d", cgroup->slot);
    return cgroup_file_join(path, cgroup->root->tree.path[folder], name);
}

/* A leaf that could not be removed in time keeps the limits of its last run. */
static void lift_limits(const struct cgroup *cgroup)
{
    int memory = folder_of(cgroup, CGROUP_MEMORY), pids = folder_of(cgroup, CGROUP_PIDS);
    if (memory >= 0)
        (void)cgroup_file_write(memory, cgroup->version->memory_limit,
                                cgroup->version->memory_unlimited);
    if (pids >= 0)
        (void)cgroup_file_write(pids, cgroup->version->processes_limit, "max");
}

static int make_folders(struct cgroup *cgroup)
{
    char path[CGROUP_PATH_BYTES];
    bool old = false;
    for (size_t i = 0; i < cgroup->root->tree.count; i++) {
        if (!name_leaf(cgroup, i, path))
            return -ENAMETOOLONG;
        bool there = mkdir(path, 0755) != 0;
        if (there && errno != EEXIST)
            return -errno;
        old = old || there;
        cgroup->folder[i] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (cgroup->folder[i] < 0)
            return -errno;
    }
    if (old)
        lift_limits(cgroup);
    for (size_t i = 0; i < CGROUP_FIRST_WORDS; i++)
        (void)write_word(cgroup, &cgroup->version->first[i]); /* not every kernel has them */
    return 0;
}

/* Kernels differ in which they have: one that is not there is not known. */
static void open_counters(struct cgroup *cgroup)
{
    for (enum cgroup_counter i = 0; i < CGROUP_COUNTERS; i++) {
        const char *file = cgroup->version->counters[i].file;
        int folder = folder_of(cgroup, cgroup->version->counters[i].controller);
        if (!file || folder < 0)
            continue;
        if (i == CGROUP_MEMORY_PEAK)
            cgroup->counter[i] = openat(folder, file, O_RDWR | O_CLOEXEC);
        if (cgroup->counter[i] < 0)
            cgroup->counter[i] = openat(folder, file, O_RDONLY | O_CLOEXEC);
    }
}

int cgroup_new(struct cgroup_root *root, int slot, struct cgroup **out)
{
    *out = NULL;
    if (!root)
        return 0;
    struct cgroup *cgroup = calloc(1, sizeof *cgroup);
    if (!cgroup)
        return -ENOMEM;
    *cgroup = (struct cgroup){.root = root,
                              .version = root->version,
                              .slot = slot,
                              .memory_limit = -1,
                              .processes_limit = -1,
                              .peak_begins_anew = true};
    memset(cgroup->folder, -1, sizeof cgroup->folder);
    memset(cgroup->counter, -1, sizeof cgroup->counter);
    int rc = make_folders(cgroup);
    if (rc < 0) {
        cgroup_free(cgroup);
        return rc;
    }
    open_counters(cgroup);
    *out = cgroup;
    return 0;
}

void cgroup_free(struct cgroup *cgroup)
{
    char path[CGROUP_PATH_BYTES];
    if (!cgroup)
        return;
    (void)cgroup_kill(cgroup, 0);
    for (size_t i = 0; i < CGROUP_COUNTERS; i++)
        base_close(&cgroup->counter[i]);
    for (size_t i = 0; i < cgroup->root->tree.count; i++) {
        base_close(&cgroup->folder[i]);
        if (name_leaf(cgroup, i, path))
            (void)rmdir(path);
    }
    free(cgroup);
}

int cgroup_attach(struct cgroup *cgroup, pid_t pid)
{
    int rc = 0;
    for (size_t i = 0; cgroup && rc == 0 && i < cgroup->root->tree.count; i++)
        rc = cgroup_file_write_number(cgroup->folder[i], "cgroup.procs", pid);
    return rc;
}

/* ---- counters --------------------------------------------------------------------------------- */

/* Each one costs a call for every run: the number of the moment is for killing alone, and a peak that
 * has just begun anew need not be read. */
static bool is_needed(const struct cgroup *cgroup, enum cgroup_counter counter, bool beginning)
{
    return counter != CGROUP_PROCESSES_NOW &&
           (counter != CGROUP_MEMORY_PEAK || !beginning || !cgroup->peak_begins_anew);
}

static void read_counters(const struct cgroup *cgroup, bool beginning, int64_t out[CGROUP_COUNTERS])
{
    char text[CGROUP_TEXT_BYTES] = "";
    for (enum cgroup_counter i = 0; i < CGROUP_COUNTERS; i++) {
        if (cgroup->version->counters[i].file) { /* not that of the counter before */
            bool there = cgroup->counter[i] >= 0 && is_needed(cgroup, i, beginning);
            ssize_t n = there ? pread(cgroup->counter[i], text, sizeof text - 1, 0) : -1;
            text[n > 0 ? n : 0] = 0;
        }
        out[i] = cgroup_file_number(text, cgroup->version->counters[i].key);
    }
}

/* How far a counter has come since the run began; -1: not known. */
static int64_t since(const struct cgroup *cgroup, const int64_t now[CGROUP_COUNTERS],
                     enum cgroup_counter counter)
{
    int64_t begin = cgroup->begin[counter];
    return begin < 0 || now[counter] < begin ? -1 : now[counter] - begin;
}

/* ---- a run ------------------------------------------------------------------------------------ */

/* Version 2 kills to come below a new limit. What it can do without, it gives back when it is asked to;
 * if what is left does not fit, the provider would be the one. */
static bool is_too_small(int folder, const char *now, const char *reclaim, int64_t limit)
{
    int64_t over = cgroup_file_read_number(folder, now) - limit;
    if (over <= 0)
        return false;
    (void)cgroup_file_write_number(folder, reclaim, over); /* since Linux 5.19 */
    return cgroup_file_read_number(folder, now) > limit;
}

static int limit_memory(struct cgroup *cgroup, int64_t limit)
{
    int folder = folder_of(cgroup, CGROUP_MEMORY);
    cgroup->too_small = false;
    if (folder < 0 || cgroup->memory_limit == limit)
        return 0;
    const struct cgroup_version *version = cgroup->version;
    cgroup->too_small = version->memory_reclaim &&
                        is_too_small(folder, version->memory_now, version->memory_reclaim, limit);
    if (cgroup->too_small)
        return -ENOMEM;
    int rc = limit == NO_LIMIT
                 ? cgroup_file_write(folder, version->memory_limit, version->memory_unlimited)
                 : cgroup_file_write_number(folder, version->memory_limit, limit);
    cgroup->memory_limit = rc == 0 ? limit : -1;
    cgroup->too_small = rc == -EBUSY; /* version 1 refuses it */
    return cgroup->too_small ? -ENOMEM : rc;
}

static int limit_processes(struct cgroup *cgroup, int64_t limit)
{
    int folder = folder_of(cgroup, CGROUP_PIDS);
    if (folder < 0 || cgroup->processes_limit == limit)
        return 0;
    const char *file = cgroup->version->processes_limit;
    int rc = limit == NO_LIMIT ? cgroup_file_write(folder, file, "max")
                               : cgroup_file_write_number(folder, file, limit);
    cgroup->processes_limit = rc == 0 ? limit : -1;
    return rc;
}

static int64_t granted(const struct limits *limits, enum limit limit, int64_t own)
{
    return limits->has[limit] ? limits->value[limit] + own : NO_LIMIT;
}

int cgroup_begin(struct cgroup *cgroup, const struct limits *limits)
{
    static const char anything[] = "0";
    if (!cgroup)
        return 0;
    int rc = limit_memory(cgroup, granted(limits, LIMIT_MEMORY_BYTES, 0));
    if (rc == 0)
        rc = limit_processes(cgroup, granted(limits, LIMIT_PROCESSES, CGROUP_OWN_PROCESSES));
    if (cgroup->peak_begins_anew)
        cgroup->peak_begins_anew = pwrite(cgroup->counter[CGROUP_MEMORY_PEAK], anything, 1, 0) == 1;
    read_counters(cgroup, true, cgroup->begin);
    return rc;
}

/* A peak that the kernel keeps for the leaf's whole life is the run's if it has risen in it. */
static int64_t peak_since(const struct cgroup *cgroup, const int64_t now[CGROUP_COUNTERS],
                          enum cgroup_counter counter)
{
    return since(cgroup, now, counter) > 0 ? now[counter] : -1;
}

/* The kernel counts the total exactly; how it is divided, it often knows from a few samples only. */
static void divide_time(const struct cgroup *cgroup, const int64_t now[CGROUP_COUNTERS],
                        struct cgroup_findings *out)
{
    int64_t total = since(cgroup, now, CGROUP_CPU_TOTAL);
    int64_t user = since(cgroup, now, CGROUP_CPU_USER);
    int64_t system = since(cgroup, now, CGROUP_CPU_SYSTEM);
    if (total < 0)
        return;
    total /= cgroup->version->cpu_units;
    out->system_us = 0;
    if (user >= 0 && system > 0)
        out->system_us = (int64_t)((double)total * (double)system / (double)(user + system));
    out->user_us = total - out->system_us;
}

void cgroup_findings(struct cgroup *cgroup, struct cgroup_findings *out)
{
    int64_t now[CGROUP_COUNTERS];
    *out = (struct cgroup_findings){
        .user_us = -1, .system_us = -1, .memory_peak_bytes = -1, .processes_peak = -1};
    if (!cgroup)
        return;
    read_counters(cgroup, false, now);
    bool killed = since(cgroup, now, CGROUP_OOM_KILLS) > 0;
    bool hit = since(cgroup, now, CGROUP_MEMORY_HITS) > 0;
    out->memory_exceeded = cgroup->too_small || (killed && hit);
    out->killed_for_host = killed && !hit;
    out->processes_exceeded = since(cgroup, now, CGROUP_PROCESSES_REFUSED) > 0;
    out->memory_peak_bytes = cgroup->peak_begins_anew ? now[CGROUP_MEMORY_PEAK]
                                                      : peak_since(cgroup, now, CGROUP_MEMORY_PEAK);
    int64_t processes = peak_since(cgroup, now, CGROUP_PROCESSES_PEAK);
    if (processes >= 0)
        out->processes_peak =
            processes > CGROUP_OWN_PROCESSES ? processes - CGROUP_OWN_PROCESSES : 1;
    divide_time(cgroup, now, out);
}

/* ---- killing ---------------------------------------------------------------------------------- */

struct killing {
    pid_t spare;
    size_t found;
};

static void kill_other(void *context, pid_t pid)
{
    struct killing *killing = context;
    if (pid == killing->spare)
        return;
    killing->found++;
    (void)kill(pid, SIGKILL);
}

/* Is there nobody but the one to be spared? One call; false when that is not known. */
static bool is_empty(const struct cgroup *cgroup, pid_t spare)
{
    char text[32];
    int fd = cgroup->counter[CGROUP_PROCESSES_NOW];
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    if (n <= 0)
        return false;
    text[n] = 0;
    return cgroup_file_number(text, "") <= (spare ? 1 : 0);
}

size_t cgroup_kill(struct cgroup *cgroup, pid_t spare)
{
    struct killing killing = {.spare = spare};
    if (!cgroup || cgroup->folder[0] < 0)
        return 0;
    if (is_empty(cgroup, spare)) {
        cgroup->stubborn = false;
        return 0;
    }
    if (!spare)
        (void)write_word(cgroup, &cgroup->version->kill);
    /* Whoever forks faster than it is killed is stopped first. */
    bool frozen = cgroup->stubborn && write_word(cgroup, &cgroup->version->freeze) == 0;
    cgroup_file_each_process(cgroup->folder[0], kill_other, &killing);
    if (frozen)
        (void)write_word(cgroup, &cgroup->version->thaw);
    cgroup->stubborn = killing.found > 0;
    return killing.found;
}
