/*
 * switches.c - what operators have switched off while the daemon runs.
 *
 * Switching off takes effect before it is durable, so that nothing starts while the disk is slow. One that
 * could not be kept is off all the same, until the daemon ends, and the operator is told.
 */
#include "daemon/switches.h"

#include "daemon/chronicle.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/journal.h"
#include "daemon/log.h"
#include "daemon/queue.h"
#include "daemon/registry.h"
#include "protocol/row.h"

#include <string.h>

struct kept {
    TAILQ_ENTRY(kept) link;
    char id[UUID7_TEXT_BYTES]; /* in the journal */
    struct switch_off off;
};
TAILQ_HEAD(kept_list, kept);

struct switches {
    struct line *line;
    struct kept_list list; /* the oldest first */
    size_t count;
};

/* A throw that waits for the journal. */
struct waiting {
    struct switches_outcome outcome;
    switches_done_fn *done;
    void *context;
};

/* ---- asking ----------------------------------------------------------------------------------- */

static struct kept *find(const struct switches *switches, enum switch_scope scope, const char *name)
{
    struct kept *kept;
    TAILQ_FOREACH(kept, &switches->list, link)
        if (kept->off.key.scope == scope && strcmp(kept->off.key.name, name) == 0)
            return kept;
    return NULL;
}

static bool is_configured_off(const struct config *config, enum switch_scope scope,
                              const char *name)
{
    const struct config_company *company;
    switch (scope) {
    case SWITCH_ALL:
        return !config->enabled;
    case SWITCH_COMPANY:
        company = config_company(config, name);
        return company && !company->enabled;
    case SWITCH_LANGUAGE:
        return !config_language_enabled(config, name);
    default:
        for (size_t i = 0; i < config->executor_count; i++)
            if (strcmp(config->executors[i].name, name) == 0)
                return !config->executors[i].enabled;
        return false;
    }
}

static bool is_off(const struct run *run, enum switch_scope scope, const char *name)
{
    return is_configured_off(run->config, scope, name) ||
           is_configured_off(run->line->config, scope, name) ||
           find(run->line->switches, scope, name) != NULL;
}

bool switches_executor_is_off(const struct run *run, const char *name)
{
    return is_off(run, SWITCH_EXECUTOR, name);
}

enum reason switches_forbid(const struct run *run)
{
    if (is_off(run, SWITCH_ALL, ""))
        return REASON_GLOBALLY;
    if (is_off(run, SWITCH_COMPANY, run->request->company))
        return REASON_COMPANY;
    if (is_off(run, SWITCH_LANGUAGE, run->request->language))
        return REASON_LANGUAGE;
    if (run->executor && is_off(run, SWITCH_EXECUTOR, executor_config(run->executor)->name))
        return REASON_EXECUTOR;
    return REASON_NONE;
}

size_t switches_count(const struct switches *switches)
{
    const struct config *config = switches->line->config;
    size_t off = switches->count + !config->enabled;
    for (size_t i = 0; i < config->company_count; i++)
        off += !config->companies[i].enabled;
    for (size_t i = 0; i < config->executor_count; i++)
        off += !config->executors[i].enabled;
    for (size_t i = 0; i < config->language_count; i++)
        off += !config->languages[i].enabled;
    return off;
}

/* ---- throwing --------------------------------------------------------------------------------- */

static bool any_executor_speaks(struct registry *registry, const char *language)
{
    struct executor *executor = NULL;
    while ((executor = registry_next(registry, executor))) {
        const struct envelope *envelope = executor_envelope(executor);
        for (size_t i = 0; envelope && i < envelope->language_count; i++)
            if (strcmp(envelope->languages[i].name, language) == 0)
                return true;
    }
    return false;
}

/* A name with a slip in it must not look as if something were off now. Companies are not known. */
static bool is_known(const struct line *line, const struct switch_key *key)
{
    const struct config *config = line->config;
    if (key->scope == SWITCH_LANGUAGE) {
        for (size_t i = 0; i < config->language_count; i++)
            if (strcmp(config->languages[i].name, key->name) == 0)
                return true;
        return any_executor_speaks(line->registry, key->name);
    }
    for (size_t i = 0; key->scope == SWITCH_EXECUTOR && i < config->executor_count; i++)
        if (strcmp(config->executors[i].name, key->name) == 0)
            return true;
    return key->scope != SWITCH_EXECUTOR;
}

static void forget(struct switches *switches, struct kept *kept)
{
    TAILQ_REMOVE(&switches->list, kept, link);
    switches->count--;
    free(kept);
}

/* Runs that are dispatched and fall under the key are told to end: how many. */
static size_t stop_runs(struct line *line)
{
    struct run *run, *next;
    size_t stopped = 0;
    for (run = TAILQ_FIRST(&line->runs); run; run = next) {
        next = TAILQ_NEXT(run, in_line);
        if (run->state >= RUN_QUEUED && run->state < RUN_ENDED && switches_forbid(run))
            stopped += run_stop(run, RUN_STOP_SHUTDOWN);
    }
    return stopped;
}

static void is_durable(void *context, int rc)
{
    struct waiting *waiting = context;
    if (rc < 0)
        log_error("a switch cannot be kept in the journal, it counts until the daemon ends: %s",
                  strerror(-rc));
    waiting->outcome.durable = rc == 0;
    waiting->done(waiting->context, &waiting->outcome);
    free(waiting);
}

static struct kept *make(struct switches *switches, const struct switch_order *order,
                         const struct peer_client *client)
{
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept || run_make_id(switches->line, kept->id) < 0) {
        free(kept);
        return NULL;
    }
    kept->off.key = order->key;
    memcpy(kept->off.why, order->why, sizeof kept->off.why);
    memcpy(kept->off.client, client->name, strnlen(client->name, sizeof kept->off.client - 1));
    kept->off.uid = client->uid;
    kept->off.since_us = clock_wall_us();
    return kept;
}

/* In memory: what is off now is in *kept, or NULL when nothing has to be kept. */
static int turn_off(struct switches *switches, const struct switch_order *order,
                    const struct peer_client *client, struct kept **out, char **text)
{
    if (switches->count >= SWITCHES_MAX)
        return 1;
    struct kept *kept = make(switches, order, client);
    *text = kept ? switch_off_text(&kept->off) : NULL;
    if (!*text) {
        free(kept);
        return -ENOMEM;
    }
    TAILQ_INSERT_TAIL(&switches->list, kept, link);
    switches->count++;
    *out = kept;
    return 0;
}

static void tell(const struct switches *switches, const struct switch_order *order, bool off,
                 const struct peer_client *client, size_t stopped)
{
    log_warning("switched %s: %s, by client %s uid %ld pid %ld, %zu runs cancelled",
                off ? "off" : "on", switch_scope_word(order->key.scope), client->name,
                (long)client->uid, (long)client->pid, stopped);
    chronicle_switched(switches->line, order, off, client, stopped);
}

/* What follows from something being off now. */
static void enforce(struct switches *switches, const struct switch_order *order,
                    struct switches_outcome *outcome)
{
    queue_withdraw(switches->line->queue);
    if (order->now)
        outcome->stopped = stop_runs(switches->line);
}

int switches_throw(struct switches *switches, const struct switch_order *order, bool off,
                   const struct peer_client *client, switches_done_fn *done, void *context)
{
    struct line *line = switches->line;
    struct kept *kept = find(switches, order->key.scope, order->key.name);
    const bool changed = off != (kept != NULL);
    AR_AUTO_FREE char *text = NULL;
    if (!kept && !is_known(line, &order->key))
        return 1;
    struct waiting *waiting = calloc(1, sizeof *waiting);
    int rc = waiting ? 0 : -ENOMEM;
    if (rc == 0 && changed && off)
        rc = turn_off(switches, order, client, &kept, &text);
    if (rc != 0) {
        free(waiting);
        return rc;
    }
    *waiting = (struct waiting){.done = done, .context = context};
    waiting->outcome.changed = changed;
    waiting->outcome.configured_off =
        is_configured_off(line->config, order->key.scope, order->key.name);
    if (off)
        enforce(switches, order, &waiting->outcome);
    if (changed || waiting->outcome.stopped > 0)
        tell(switches, order, off, client, waiting->outcome.stopped);
    if (!changed) {
        is_durable(waiting, 0);
    } else if (off) {
        journal_keep_text(line->journal, JOURNAL_SWITCH, kept->id, text, is_durable, waiting);
    } else {
        char id[UUID7_TEXT_BYTES];
        memcpy(id, kept->id, sizeof id);
        forget(switches, kept);
        journal_settle_durably(line->journal, id, is_durable, waiting);
    }
    return 0;
}

/* ---- listing ---------------------------------------------------------------------------------- */

static int add_configured(json_t *list, enum switch_scope scope, const char *name)
{
    return json_array_append_new(list, json_pack("{s:s, s:s?, s:s, s:n, s:n, s:n, s:n}", "scope",
                                                 switch_scope_word(scope), "name", name, "source",
                                                 "configuration", "why", "client", "uid", "since"));
}

static int add_all_configured(json_t *list, const struct config *config)
{
    int rc = config->enabled ? 0 : add_configured(list, SWITCH_ALL, NULL);
    for (size_t i = 0; i < config->company_count; i++)
        if (!config->companies[i].enabled)
            rc |= add_configured(list, SWITCH_COMPANY, config->companies[i].name);
    for (size_t i = 0; i < config->executor_count; i++)
        if (!config->executors[i].enabled)
            rc |= add_configured(list, SWITCH_EXECUTOR, config->executors[i].name);
    for (size_t i = 0; i < config->language_count; i++)
        if (!config->languages[i].enabled)
            rc |= add_configured(list, SWITCH_LANGUAGE, config->languages[i].name);
    return rc;
}

static int add_kept(json_t *list, const struct switch_off *off)
{
    char since[ROW_TIME_BYTES];
    row_time_text(off->since_us, since);
    return json_array_append_new(list, json_pack("{s:s, s:o, s:s, s:s, s:s, s:I, s:s}", "scope",
                                                 switch_scope_word(off->key.scope), "name",
                                                 switch_key_name(&off->key), "source", "operator",
                                                 "why", off->why, "client", off->client, "uid",
                                                 (json_int_t)off->uid, "since", since));
}

json_t *switches_list(const struct switches *switches)
{
    const struct kept *kept;
    json_t *list = json_array();
    int rc = list ? add_all_configured(list, switches->line->config) : -1;
    if (rc == 0)
        TAILQ_FOREACH(kept, &switches->list, link)
            rc |= add_kept(list, &kept->off);
    if (rc == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* ---- beginning and end ------------------------------------------------------------------------ */

/* One that cannot be read is said to be so, and stays in the journal. */
static int take_left(struct switches *switches)
{
    char id[UUID7_TEXT_BYTES], *left;
    while (journal_next_left_text(switches->line->journal, JOURNAL_SWITCH, id, &left)) {
        AR_AUTO_FREE char *text = left;
        struct kept *kept = calloc(1, sizeof *kept);
        int rc = kept ? switch_off_parse(text, &kept->off) : -ENOMEM;
        if (rc != 0)
            free(kept);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            log_error("switch %s in the journal cannot be read", id);
            continue;
        }
        memcpy(kept->id, id, sizeof kept->id);
        TAILQ_INSERT_TAIL(&switches->list, kept, link);
        switches->count++;
        log_warning("%s is switched off since before this start",
                    switch_scope_word(kept->off.key.scope));
    }
    return 0;
}

struct switches *switches_new(struct line *line)
{
    struct switches *switches = calloc(1, sizeof *switches);
    if (!switches)
        return NULL;
    switches->line = line;
    TAILQ_INIT(&switches->list);
    if (take_left(switches) == 0)
        return switches;
    switches_free(switches);
    return NULL;
}

void switches_free(struct switches *switches)
{
    while (switches && !TAILQ_EMPTY(&switches->list))
        forget(switches, TAILQ_FIRST(&switches->list));
    free(switches);
}
