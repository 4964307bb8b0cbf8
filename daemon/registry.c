/*
 * registry.c - the executors of the configuration.
 *
 * Owns them and the daemon's control group, in which their slots lie.
 */
#include "daemon/registry.h"

#include "daemon/chronicle.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/run.h"
#include "daemon/spawn.h"

#include <string.h>
#include <sys/wait.h>

/* Those in force, those that are being probed, those that have been replaced. */
enum stand { IN_FORCE, COMING, RETIRED, STANDS };

struct registry {
    struct line *line;
    struct executors {
        struct executor **items;
        size_t count;
    } lists[STANDS];
    size_t unanswered;
    struct cgroup_root *cgroups;
    void (*answered)(void *context);
    void *context;
};

static void free_list(struct executors *list)
{
    for (size_t i = 0; i < list->count; i++)
        executor_free(list->items[i]);
    free(list->items);
    *list = (struct executors){0};
}

static bool overlaps(const struct executors *list, int first, int64_t count, int *after)
{
    for (size_t i = 0; i < list->count; i++) {
        const int other = executor_first_slot(list->items[i]);
        const int64_t slots = executor_config(list->items[i])->slots;
        *after = other + (int)slots;
        if (first < *after && other < first + count)
            return true;
    }
    return false;
}

/* The lowest numbers that no slot has, also none whose run has still to end. */
static int find_slots(const struct registry *registry, int64_t count)
{
    int first = 0, after = 0;
    bool taken = true;
    while (taken) {
        taken = false;
        for (int i = 0; i < STANDS && !taken; i++)
            taken = overlaps(&registry->lists[i], first, count, &after);
        if (taken)
            first = after;
    }
    return first;
}

static int add_executors(struct registry *registry, const struct config *config)
{
    struct executors *list = &registry->lists[COMING];
    list->items = calloc(config->executor_count + 1, sizeof(struct executor *));
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < config->executor_count; i++) {
        const struct config_executor *section = &config->executors[i];
        if (!section->enabled)
            continue;
        struct executor *executor = executor_new(registry->line, config, section, registry->cgroups,
                                                 find_slots(registry, section->slots));
        if (!executor)
            return -ENOMEM;
        list->items[list->count++] = executor;
    }
    return 0;
}

static void executor_answered(void *context)
{
    struct registry *registry = context;
    if (--registry->unanswered == 0)
        registry->answered(registry->context);
}

int registry_probe(struct registry *registry, const struct config *config,
                   void (*answered)(void *context), void *context)
{
    struct executors *coming = &registry->lists[COMING];
    free_list(coming);
    if (add_executors(registry, config) < 0) {
        free_list(coming);
        return -ENOMEM;
    }
    registry->answered = answered;
    registry->context = context;
    registry->unanswered = coming->count + 1;
    for (size_t i = 0; i < coming->count; i++)
        executor_probe(coming->items[i], executor_answered, registry);
    executor_answered(registry);
    return 0;
}

/* ---- the change ------------------------------------------------------------------------------- */

static void is_over(void *context, struct executor *executor)
{
    struct executors *retired = &((struct registry *)context)->lists[RETIRED];
    size_t at = 0;
    while (retired->items[at] != executor)
        at++;
    retired->items[at] = retired->items[--retired->count];
    executor_free(executor);
}

/* What runs are compared with from now on, if it is not what they were compared with before. */
static void note_envelope(struct registry *registry, const struct executor *executor)
{
    const struct envelope *envelope = executor_envelope(executor);
    const struct executor *before = registry_find(registry, executor_config(executor)->name);
    const struct envelope *known = before ? executor_envelope(before) : NULL;
    if (envelope && (!known || strcmp(known->sha256, envelope->sha256) != 0))
        chronicle_executor(registry->line, envelope);
}

void registry_take(struct registry *registry)
{
    struct executors *all = registry->lists;
    struct executor **items = reallocarray(
        all[RETIRED].items, all[RETIRED].count + all[IN_FORCE].count + 1, sizeof *items);
    if (!items)
        log_fatal("no memory for the executors that are replaced");
    all[RETIRED].items = items;
    for (size_t i = 0; i < all[COMING].count; i++)
        note_envelope(registry, all[COMING].items[i]);
    for (size_t i = 0; i < all[IN_FORCE].count; i++) {
        items[all[RETIRED].count++] = all[IN_FORCE].items[i];
        executor_retire(all[IN_FORCE].items[i], is_over, registry);
    }
    free(all[IN_FORCE].items);
    all[IN_FORCE] = all[COMING];
    all[COMING] = (struct executors){0};
}

static void tell_offers(const struct cgroup_root *cgroups)
{
    static const enum limit limits[] = {LIMIT_CPU_MS, LIMIT_MEMORY_BYTES, LIMIT_PROCESSES};
    const struct limits *offers = cgroup_root_offers(cgroups);
    log_info("control groups: %s", cgroup_root_word(cgroups));
    for (size_t i = 0; i < AR_COUNT(limits); i++)
        if (!offers->has[limits[i]])
            log_warning("control groups do not hold %s here: it is limited only by executors that "
                        "can do it themselves",
                        limit_word(limits[i]));
}

struct registry *registry_new(struct line *line)
{
    struct registry *registry = calloc(1, sizeof *registry);
    if (!registry)
        return NULL;
    registry->line = line;
    int rc = cgroup_root_open(&registry->cgroups);
    tell_offers(registry->cgroups);
    if (rc < 0) {
        registry_free(registry);
        return NULL;
    }
    return registry;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    for (int i = 0; i < STANDS; i++)
        free_list(&registry->lists[i]);
    cgroup_root_free(registry->cgroups);
    free(registry);
}

struct executor *registry_find(struct registry *registry, const char *name)
{
    const struct executors *list = &registry->lists[IN_FORCE];
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(executor_config(list->items[i])->name, name) == 0)
            return list->items[i];
    return NULL;
}

struct executor *registry_next(struct registry *registry, const struct executor *executor)
{
    const struct executors *list = &registry->lists[IN_FORCE];
    size_t i = 0;
    while (executor && i < list->count && list->items[i++] != executor)
        ;
    return i < list->count ? list->items[i] : NULL;
}

static bool is_known(void *context, pid_t pid)
{
    const struct registry *registry = context;
    for (int stand = 0; stand < STANDS; stand++)
        for (size_t i = 0; i < registry->lists[stand].count; i++)
            if (executor_owns(registry->lists[stand].items[i], pid))
                return true;
    return false;
}

/* Has any child of the daemon ended that was not reaped yet? */
static bool has_dead_child(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

size_t registry_sweep(struct registry *registry)
{
    /* With control groups an orphan is in its slot's leaf and killed there, at its own run's end: here
     * it has only to be reaped. */
    if (registry->cgroups && !has_dead_child())
        return 0;
    size_t left = spawn_sweep_orphans(is_known, registry, !registry->cgroups);
    return registry->cgroups ? 0 : left;
}

json_t *registry_status(struct registry *registry)
{
    const struct executors *in_force = &registry->lists[IN_FORCE];
    json_t *list = json_array();
    for (size_t i = 0; list && i < in_force->count; i++) {
        if (json_array_append_new(list, executor_status(in_force->items[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
