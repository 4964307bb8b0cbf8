/*
 * overview.c - see overview.h.
 *
 * The ends are copies in a ring of fixed size: a run is gone when it has been answered.
 */
#include "daemon/overview.h"

#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/registry.h"

#include <string.h>

struct end {
    char run_id[UUID7_TEXT_BYTES];
    char company[REQUEST_ATTRIBUTE_BYTES + 1];
    enum status status;
    enum reason reason;
    int64_t wall_us;  /* < 0: it was not at a provider */
    int64_t ended_us; /* monotonic */
};

struct overview {
    struct end ends[OVERVIEW_MAX_RECENT];
    size_t next;  /* the place of the next one */
    size_t count; /* that are there */
};

struct overview *overview_new(void)
{
    return calloc(1, sizeof(struct overview));
}

void overview_free(struct overview *overview)
{
    free(overview);
}

void overview_note(struct overview *overview, const struct run *run)
{
    if (run->withdrawn)
        return;
    struct end *end = &overview->ends[overview->next];
    size_t length = strnlen(run->request->company, sizeof end->company - 1);
    *end = (struct end){.status = run->status,
                        .reason = run->reason,
                        .wall_us = run->usage.wall_us,
                        .ended_us = clock_monotonic_us()};
    memcpy(end->run_id, run->id, sizeof end->run_id);
    memcpy(end->company, run->request->company, length);
    overview->next = (overview->next + 1) % OVERVIEW_MAX_RECENT;
    overview->count += overview->count < OVERVIEW_MAX_RECENT;
}

static json_int_t ms_since(int64_t since_us, int64_t now_us)
{
    return (json_int_t)((now_us - since_us) / 1000);
}

static json_t *running_value(const struct run *run, int64_t now_us)
{
    const char *executor = run->executor ? executor_config(run->executor)->name : NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:I, s:I}", "run_id", run->id, "company",
                     run->request->company, "actor", run->request->actor, "language",
                     run->request->language, "executor", executor, "client", run->client.name,
                     "state", run_state_word(run->state), "age_ms", ms_since(run->since_us, now_us),
                     "in_state_ms", ms_since(run->moved_us, now_us));
}

static json_t *running_values(const struct line *line, const struct config_client *policy,
                              int64_t now_us, json_int_t *more)
{
    json_t *list = json_array();
    const struct run *run;
    bool failed = !list;
    *more = 0;
    TAILQ_FOREACH(run, &line->runs, in_line) {
        if (!config_names_allow(&policy->companies, run->request->company))
            continue;
        if (failed || json_array_size(list) == OVERVIEW_MAX_RUNNING)
            ++*more;
        else
            failed = json_array_append_new(list, running_value(run, now_us)) != 0;
    }
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *end_value(const struct end *end, int64_t now_us)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:I}", "run_id", end->run_id, "company",
                     end->company, "status", status_word(end->status), "reason",
                     reason_word(end->reason), "wall_us",
                     end->wall_us < 0 ? json_null() : json_integer((json_int_t)end->wall_us),
                     "ago_ms", ms_since(end->ended_us, now_us));
}

static json_t *recent_values(const struct overview *overview, const struct config_client *policy,
                             int64_t now_us)
{
    json_t *list = json_array();
    for (size_t i = 1; list && i <= overview->count; i++) {
        const struct end *end =
            &overview->ends[(overview->next + OVERVIEW_MAX_RECENT - i) % OVERVIEW_MAX_RECENT];
        if (!config_names_allow(&policy->companies, end->company))
            continue;
        if (json_array_append_new(list, end_value(end, now_us)) == 0)
            continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

json_t *overview_make(const struct line *line, const struct config_client *policy)
{
    int64_t now_us = clock_monotonic_us();
    json_int_t more;
    json_t *running = running_values(line, policy, now_us, &more);
    return json_pack("{s:o, s:I, s:o}", "running", running, "more", more, "recent",
                     recent_values(line->overview, policy, now_us));
}
