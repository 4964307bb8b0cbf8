/*
 * registry.c - the executors of the configuration.
 *
 * Owns them and the daemon's control group, in which their slots lie.
 */
#include "daemon/registry.h"

#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/run.h"
#include "daemon/spawn.h"

#include <string.h>
#include <sys/wait.h>

struct registry {
    struct executor **executors;
    size_t count;
    size_t unanswered;
    struct cgroup_root *cgroups;
    void (*answered)(void *context);
    void *context;
};

static void executor_answered(void *context)
{
    struct registry *registry = context;
    if (--registry->unanswered == 0)
        registry->answered(registry->context);
}

void registry_probe(struct registry *registry, void (*answered)(void *context), void *context)
{
    registry->answered = answered;
    registry->context = context;
    registry->unanswered = registry->count + 1;
    for (size_t i = 0; i < registry->count; i++)
        executor_probe(registry->executors[i], executor_answered, registry);
    executor_answered(registry);
}

static int add_executors(struct registry *registry, struct line *line)
{
    int slot = 0;
    registry->executors = calloc(line->config->executor_count + 1, sizeof(struct executor *));
    if (!registry->executors)
        return -ENOMEM;
    for (size_t i = 0; i < line->config->executor_count; i++) {
        const struct config_executor *config = &line->config->executors[i];
        if (!config->enabled)
            continue;
        struct executor *executor = executor_new(line, config, registry->cgroups, slot);
        if (!executor)
            return -ENOMEM;
        slot += (int)config->slots;
        registry->executors[registry->count++] = executor;
    }
    return 0;
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
    int rc = cgroup_root_open(&registry->cgroups);
    tell_offers(registry->cgroups);
    if (rc < 0 || add_executors(registry, line) < 0) {
        registry_free(registry);
        return NULL;
    }
    return registry;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < registry->count; i++)
        executor_free(registry->executors[i]);
    free(registry->executors);
    cgroup_root_free(registry->cgroups);
    free(registry);
}

struct executor *registry_find(struct registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->count; i++)
        if (strcmp(executor_config(registry->executors[i])->name, name) == 0)
            return registry->executors[i];
    return NULL;
}

struct executor *registry_next(struct registry *registry, const struct executor *executor)
{
    size_t i = 0;
    while (executor && i < registry->count && registry->executors[i++] != executor)
        ;
    return i < registry->count ? registry->executors[i] : NULL;
}

static bool is_known(void *context, pid_t pid)
{
    const struct registry *registry = context;
    for (size_t i = 0; i < registry->count; i++)
        if (executor_owns(registry->executors[i], pid))
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
    json_t *list = json_array();
    for (size_t i = 0; list && i < registry->count; i++) {
        if (json_array_append_new(list, executor_status(registry->executors[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
