/*
 * executor.c - a registered provider program: its slots.
 *
 * Probing is probe.c's matter. A provider is thrown away after it was stopped and after `recycle` runs;
 * a slot whose provider has gone is empty and is filled again when somebody needs it. A provider takes
 * runs of one reach (provider.h): of each reach that was ever asked for one is kept ready.
 */
#include "daemon/executor.h"

#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/log.h"
#include "daemon/paths.h"
#include "daemon/probe.h"
#include "daemon/run.h"

#include <string.h>

#define REACHES (PROVIDER_REACHES_NETWORK + PROVIDER_REACHES_FILES + 1)

struct slot {
    struct executor *executor;
    int number;
    struct provider *provider; /* NULL: empty */
    unsigned reach;            /* of the provider, or of the next one */
    int64_t runs;
    const struct slot_events *events; /* of the run that has it; NULL: nobody */
    void *context;
    bool waits;  /* the run has not got its provider yet */
    bool refill; /* the run waits for the next provider: the present one is going */
};

struct executor {
    struct line *line;
    const struct config *whole;           /* held */
    const struct config_executor *config; /* its section of it */
    struct cgroup_root *cgroups;
    struct probe *probe;
    struct envelope envelope;
    bool proved;
    void (*answered)(void *context);
    void *answer_context;
    struct slot *slots;
    int64_t slot_count;
    int64_t places_taken;
    struct deadline tend; /* empties and refills slots outside of callbacks */
    int64_t failures;     /* starts that failed one after the other */
    int64_t all_failures; /* since the start of the daemon */
    bool wanted[REACHES]; /* runs of this reach have come */
    int64_t holders;      /* runs that were compared with it */
    void (*over)(void *context, struct executor *executor); /* retired: when nothing is left */
    void *over_context;
};

static void tend_later(struct executor *executor)
{
    /* A program that dies at its start is not started in a tight loop. */
    int64_t pause = executor->failures ? 100 * executor->failures : 0;
    deadline_start(&executor->tend, pause < 5000 ? pause : 5000);
}

static void count_failure(struct executor *executor)
{
    executor->failures++;
    executor->all_failures++;
}

/* ---- what providers tell ---------------------------------------------------------------------- */

static void provider_is_ready(void *context)
{
    struct slot *slot = context;
    slot->executor->failures = 0;
    slot->waits = false;
    if (slot->events)
        slot->events->ready(slot->context);
}

static void provider_is_listening(void *context, int listener)
{
    struct slot *slot = context;
    if (slot->events)
        slot->events->listening(slot->context, listener);
    else
        base_close(&listener);
}

static void provider_has_reported(void *context, const struct report *report)
{
    struct slot *slot = context;
    if (slot->events)
        slot->events->reported(slot->context, report);
}

static void provider_has_gone(void *context, enum reason failure)
{
    struct slot *slot = context;
    /* One that served another run before and goes now is no fault of the run that waits. */
    if (slot->waits && provider_is_between(slot->provider))
        slot->refill = true;
    const struct slot_events *events = slot->refill ? NULL : AR_TAKE(slot->events);
    if (failure) {
        count_failure(slot->executor);
        log_warning("executor %s: a provider has gone: %s", slot->executor->config->name,
                    reason_word(failure));
    }
    if (events)
        events->gone(slot->context, failure);
    tend_later(slot->executor);
}

static const struct provider_events provider_events = {provider_is_ready, provider_is_listening,
                                                       provider_has_reported, provider_has_gone};

static int fill(struct slot *slot)
{
    struct executor *executor = slot->executor;
    struct provider_start start = {.base = executor->line->base,
                                   .cgroups = executor->cgroups,
                                   .program = executor->config->program,
                                   .arguments = &executor->config->args,
                                   .slot = slot->number,
                                   .id_space = executor->line->id_space,
                                   .reach = slot->reach,
                                   .events = &provider_events,
                                   .context = slot};
    slot->runs = 0;
    return provider_start(&start, &slot->provider);
}

static void report_start_failure(const struct executor *executor, int rc)
{
    log_error("executor %s: a provider cannot be started: %s", executor->config->name,
              strerror(-rc));
}

/* A run has the slot and waits for its next provider. */
static void refill(struct slot *slot)
{
    slot->refill = false;
    int rc = fill(slot);
    if (rc == 0)
        return;
    count_failure(slot->executor);
    report_start_failure(slot->executor, rc);
    const struct slot_events *events = AR_TAKE(slot->events);
    events->gone(slot->context, REASON_SPAWN_FAILED);
}

static bool is_usable(const struct slot *slot)
{
    return slot->provider && !slot->events && provider_state(slot->provider) <= PROVIDER_IDLE;
}

static bool is_empty(const struct slot *slot)
{
    return !slot->provider && !slot->events;
}

/* Is a provider of this reach ready, or about to be? */
static bool has_spare(const struct executor *executor, unsigned reach)
{
    for (int64_t i = 0; i < executor->slot_count; i++)
        if (is_usable(&executor->slots[i]) && executor->slots[i].reach == reach)
            return true;
    return false;
}

/* The first empty slot, and how many there are. */
static struct slot *find_empty(struct executor *executor, size_t *count)
{
    struct slot *found = NULL;
    *count = 0;
    for (int64_t i = executor->slot_count - 1; i >= 0; i--) {
        if (!is_empty(&executor->slots[i]))
            continue;
        found = &executor->slots[i];
        (*count)++;
    }
    return found;
}

/* Plain runs, which are most, always find an empty slot beside the spares of other reaches. */
static void make_spare(struct executor *executor, unsigned reach)
{
    size_t count;
    struct slot *slot = find_empty(executor, &count);
    if (!slot || (reach != 0 && count < 2) || has_spare(executor, reach))
        return;
    slot->reach = reach;
    int rc = fill(slot);
    if (rc < 0) {
        count_failure(executor);
        report_start_failure(executor, rc);
    }
}

/* Frees what has gone. */
static void tend_slots(struct executor *executor)
{
    for (int64_t i = 0; i < executor->slot_count; i++) {
        struct slot *slot = &executor->slots[i];
        if (slot->provider && provider_state(slot->provider) == PROVIDER_GONE)
            provider_free(AR_TAKE(slot->provider));
        if (!slot->provider && slot->refill)
            refill(slot);
    }
}

/* Nobody will ask for it again: what is not needed goes, and the rest when it has done its run. */
static void fade(struct executor *executor)
{
    bool empty = executor->holders == 0;
    for (int64_t i = 0; i < executor->slot_count; i++) {
        struct slot *slot = &executor->slots[i];
        if (is_usable(slot))
            provider_stop(slot->provider);
        empty = empty && is_empty(slot);
    }
    if (empty)
        executor->over(executor->over_context, executor);
}

/* Keeps providers ready ahead of demand. */
static void tend(void *context)
{
    struct executor *executor = context;
    tend_slots(executor);
    if (executor->over) {
        fade(executor);
        return;
    }
    for (unsigned reach = 0; !executor->line->draining && reach < REACHES; reach++)
        if (reach == 0 || executor->wanted[reach])
            make_spare(executor, reach);
}

/* ---- places and slots ------------------------------------------------------------------------- */

bool executor_has_place(const struct executor *executor)
{
    return executor->places_taken < executor->slot_count;
}

void executor_take_place(struct executor *executor)
{
    executor->places_taken++;
}

void executor_give_place(struct executor *executor)
{
    executor->places_taken--;
}

static struct slot *take(struct slot *slot, const struct slot_events *events, void *context)
{
    slot->events = events;
    slot->context = context;
    slot->waits = provider_state(slot->provider) != PROVIDER_IDLE;
    slot->runs++;
    tend_later(slot->executor);
    return slot;
}

/* How good a slot is for a run: idle before starting before empty before one whose provider is going
 * before one whose provider is of another reach, and has to go; 0: not at all. */
static int rank(const struct slot *slot, unsigned reach)
{
    if (slot->events)
        return 0;
    if (!slot->provider)
        return 3;
    if (!is_usable(slot))
        return 2;
    if (slot->reach != reach)
        return 1;
    return provider_state(slot->provider) == PROVIDER_IDLE ? 5 : 4;
}

static struct slot *find_slot(struct executor *executor, unsigned reach)
{
    struct slot *best = NULL;
    for (int64_t i = 0; i < executor->slot_count; i++) {
        struct slot *slot = &executor->slots[i];
        if (rank(slot, reach) > (best ? rank(best, reach) : 0))
            best = slot;
    }
    return best;
}

struct slot *executor_acquire(struct executor *executor, unsigned reach,
                              const struct slot_events *events, void *context, int *rc)
{
    struct slot *slot = find_slot(executor, reach);
    executor->wanted[reach] = true;
    *rc = slot ? 0 : -EAGAIN;
    if (!slot)
        return NULL;
    if (slot->provider && is_usable(slot) && slot->reach != reach)
        provider_stop(slot->provider);
    slot->reach = reach;
    if (!slot->provider)
        *rc = fill(slot);
    else if (provider_state(slot->provider) > PROVIDER_IDLE)
        slot->refill = true;
    return *rc < 0 ? NULL : take(slot, events, context);
}

struct provider *executor_slot_provider(struct slot *slot)
{
    return slot->provider;
}

void executor_release(struct slot *slot)
{
    struct executor *executor = slot->executor;
    slot->events = NULL;
    slot->waits = slot->refill = false;
    if (slot->provider && slot->runs >= executor->config->recycle)
        provider_stop(slot->provider);
    tend_later(executor);
}

bool executor_owns(const struct executor *executor, pid_t pid)
{
    if (executor->probe && probe_pid(executor->probe) == pid)
        return true;
    for (int64_t i = 0; i < executor->slot_count; i++)
        if (executor->slots[i].provider && provider_pid(executor->slots[i].provider) == pid)
            return true;
    return false;
}

/* ---- the envelope ----------------------------------------------------------------------------- */

/* May any company be given host paths of this kind? */
static bool has_roots(const struct config *config, bool writable)
{
    for (size_t i = 0; i < config->company_count; i++) {
        const struct config_company *company = &config->companies[i];
        if ((writable ? company->write : company->read).count > 0)
            return true;
    }
    return false;
}

/* What the configuration does not have, or does not allow, no executor can give. */
static void cut_down(struct envelope *envelope, const struct config *config)
{
    bool paths = (envelope->filesystem_read || envelope->filesystem_write) && paths_work(config);
    envelope->network[NETWORK_ALLOWLIST] &= config->network.allowlist;
    envelope->network[NETWORK_OPEN] &= config->network.open;
    envelope->data_api &= config->data_port.socket != NULL;
    envelope->secrets &= config->secrets.directory || config->secrets.credentials;
    envelope->filesystem_read &= paths && has_roots(config, false);
    envelope->filesystem_write &= paths && has_roots(config, true);
}

/* Adds what the host enforces for every executor. A limit that the executor enforces itself stays its
 * own, save those that only the host can be trusted with. */
static int make_effective(struct executor *executor)
{
    struct limits *limits = &executor->envelope.limits;
    const struct limits *host = cgroup_root_offers(executor->cgroups);
    const struct config *config = executor->whole;
    free(executor->envelope.name);
    executor->envelope.name = strdup(executor->config->name);
    if (!executor->envelope.name)
        return -ENOMEM;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (!limits->has[i] && host->has[i]) {
            limits->has[i] = true;
            limits->value[i] = host->value[i];
        }
    }
    cut_down(&executor->envelope, config);
    limits->has[LIMIT_WALL_MS] = limits->has[LIMIT_OUTPUT_BYTES] = true;
    limits->value[LIMIT_WALL_MS] = config->max_wall_ms;
    limits->value[LIMIT_OUTPUT_BYTES] = config->max_output_bytes;
    return envelope_seal(&executor->envelope);
}

static void probe_answered(void *context, struct envelope *envelope, const char *why)
{
    struct executor *executor = context;
    if (envelope) {
        executor->envelope = *envelope;
        executor->proved = make_effective(executor) == 0;
    }
    if (executor->proved) {
        log_info("executor %s: %zu languages, envelope %.12s", executor->config->name,
                 executor->envelope.language_count, executor->envelope.sha256);
        tend_later(executor);
    } else {
        log_error("executor %s proves nothing and gets no runs: %s; run \"%s ... capabilities\" to "
                  "see why",
                  executor->config->name, why, executor->config->program);
    }
    executor->answered(executor->answer_context);
}

void executor_probe(struct executor *executor, void (*answered)(void *context), void *context)
{
    executor->answered = answered;
    executor->answer_context = context;
    executor->probe =
        probe_start(executor->line->base, executor->config->program, &executor->config->args,
                    executor->line->id_space, probe_answered, executor);
    if (!executor->probe)
        probe_answered(executor, NULL, "it cannot be started");
}

struct executor *executor_new(struct line *line, const struct config *whole,
                              const struct config_executor *config, struct cgroup_root *cgroups,
                              int first_slot)
{
    struct executor *executor = calloc(1, sizeof *executor);
    if (!executor)
        return NULL;
    *executor = (struct executor){.line = line,
                                  .whole = config_hold(whole),
                                  .config = config,
                                  .cgroups = cgroups,
                                  .slot_count = config->slots};
    executor->slots = calloc((size_t)config->slots, sizeof *executor->slots);
    if (!executor->slots || deadline_init(&executor->tend, line->base, tend, executor) < 0) {
        executor_free(executor);
        return NULL;
    }
    for (int64_t i = 0; i < config->slots; i++)
        executor->slots[i] = (struct slot){.executor = executor, .number = first_slot + (int)i};
    return executor;
}

void executor_retire(struct executor *executor,
                     void (*over)(void *context, struct executor *executor), void *context)
{
    executor->over = over;
    executor->over_context = context;
    tend_later(executor);
}

void executor_hold(struct executor *executor)
{
    if (executor)
        executor->holders++;
}

void executor_unhold(struct executor *executor)
{
    if (executor && --executor->holders == 0 && executor->over)
        tend_later(executor);
}

void executor_free(struct executor *executor)
{
    if (!executor)
        return;
    probe_free(executor->probe);
    deadline_free(&executor->tend);
    for (int64_t i = 0; executor->slots && i < executor->slot_count; i++)
        provider_free(executor->slots[i].provider);
    free(executor->slots);
    envelope_free(&executor->envelope);
    config_release(executor->whole);
    free(executor);
}

const struct config_executor *executor_config(const struct executor *executor)
{
    return executor->config;
}

int executor_first_slot(const struct executor *executor)
{
    return executor->slots[0].number;
}

const struct envelope *executor_envelope(const struct executor *executor)
{
    return executor->proved ? &executor->envelope : NULL;
}

static int64_t *count_of(const struct slot *slot, struct executor_slots *slots)
{
    if (slot->events)
        return &slots->busy;
    if (is_empty(slot))
        return &slots->empty;
    if (!is_usable(slot))
        return &slots->stopping;
    return provider_state(slot->provider) == PROVIDER_IDLE ? &slots->idle : &slots->starting;
}

void executor_slots(const struct executor *executor, struct executor_slots *out)
{
    *out = (struct executor_slots){0};
    for (int64_t i = 0; i < executor->slot_count; i++)
        ++*count_of(&executor->slots[i], out);
}

int64_t executor_failures(const struct executor *executor)
{
    return executor->all_failures;
}

json_t *executor_status(const struct executor *executor)
{
    struct executor_slots slots;
    executor_slots(executor, &slots);
    return json_pack("{s:s, s:s, s:I, s:I}", "name", executor->config->name, "state",
                     executor->proved ? "ready" : "unusable", "slots_idle", (json_int_t)slots.idle,
                     "slots_busy", (json_int_t)slots.busy);
}
