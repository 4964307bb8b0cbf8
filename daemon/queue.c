/*
 * queue.c - how many runs are dispatched at once, and who waits for how long.
 *
 * A run that has its turn holds a place until it has ended. Those that wait stand in a line for each
 * company, first come first served, each with a timer of its own; the company with the fewest running comes
 * first, and equals take turns, so that one that sends ten thousand runs makes another wait for those that
 * are running, and not for the ten thousand.
 * All numbers are bounded by the configuration, in all and for a company; over them is an answer
 * (refused, overloaded), which is recorded like any other end. A client has a bound of its own for its
 * runs at a time. It is counted by its name, so that a reload does not begin from nothing.
 */
#include "daemon/queue.h"

#include "daemon/config.h"
#include "daemon/executor.h"
#include "daemon/ledger.h"
#include "daemon/log.h"
#include "daemon/switches.h"

#include <event2/event.h>
#include <string.h>

/* A company that has runs here; it goes with the last of them. */
struct queue_company {
    TAILQ_ENTRY(queue_company) link;
    char *name;
    struct run_list waiting;
    int64_t waiting_count, running;
};
TAILQ_HEAD(queue_companies, queue_company);

/* A client that has runs here; it goes with the last of them. */
struct queue_client {
    LIST_ENTRY(queue_client) link;
    char *name;
    int64_t runs; /* that wait or have a place */
    int64_t running, max_running;
};
LIST_HEAD(queue_clients, queue_client);

struct queue {
    struct line *line;
    struct queue_clients clients;
    struct queue_companies companies; /* whose turn comes next first */
    int64_t waiting_count, running;
    run_done_fn *done;
};

struct queue *queue_new(struct line *line)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue) {
        queue->line = line;
        TAILQ_INIT(&queue->companies);
        LIST_INIT(&queue->clients);
    }
    return queue;
}

static void drop_client(struct queue_client *client)
{
    LIST_REMOVE(client, link);
    free(client->name);
    free(client);
}

static void drop_company(struct queue *queue, struct queue_company *company)
{
    TAILQ_REMOVE(&queue->companies, company, link);
    free(company->name);
    free(company);
}

void queue_free(struct queue *queue)
{
    struct queue_company *company;
    struct queue_client *client;
    while (queue && (company = TAILQ_FIRST(&queue->companies)))
        drop_company(queue, company);
    while (queue && (client = LIST_FIRST(&queue->clients)))
        drop_client(client);
    free(queue);
}

/* ---- companies and clients -------------------------------------------------------------------- */

static struct queue_company *find_company(const struct queue *queue, const char *name)
{
    struct queue_company *company;
    TAILQ_FOREACH(company, &queue->companies, link)
        if (strcmp(company->name, name) == 0)
            return company;
    return NULL;
}

/* That of the run, made when it is the first; NULL: out of memory. */
static struct queue_company *join_company(struct queue *queue, const struct run *run)
{
    struct queue_company *company = find_company(queue, run->request->company);
    if (company || !(company = calloc(1, sizeof *company)))
        return company;
    company->name = strdup(run->request->company);
    if (!company->name) {
        free(company);
        return NULL;
    }
    TAILQ_INIT(&company->waiting);
    TAILQ_INSERT_TAIL(&queue->companies, company, link);
    return company;
}

static void leave_company(struct queue *queue, struct queue_company *company)
{
    if (company->waiting_count == 0 && company->running == 0)
        drop_company(queue, company);
}

static struct queue_client *find_client(const struct queue *queue, const char *name)
{
    struct queue_client *client;
    LIST_FOREACH(client, &queue->clients, link)
        if (strcmp(client->name, name) == 0)
            return client;
    return NULL;
}

/* As join_company(). */
static struct queue_client *join_client(struct queue *queue, const struct run *run)
{
    struct queue_client *client = find_client(queue, run->client.name);
    if (!client && (client = calloc(1, sizeof *client))) {
        client->name = strdup(run->client.name);
        if (!client->name) {
            free(client);
            return NULL;
        }
        LIST_INSERT_HEAD(&queue->clients, client, link);
    }
    if (!client)
        return NULL;
    client->runs++;
    client->max_running = run->client.policy->max_running;
    return client;
}

static void leave_client(struct queue_client *client)
{
    if (--client->runs == 0)
        drop_client(client);
}

/* 0, or -ENOMEM with nothing left behind. */
static int join(struct queue *queue, struct run *run)
{
    run->queue_company = join_company(queue, run);
    if (!run->queue_company)
        return -ENOMEM;
    run->queue_client = join_client(queue, run);
    if (run->queue_client)
        return 0;
    leave_company(queue, run->queue_company);
    return -ENOMEM;
}

/* It neither waits nor has a place any more. */
static void part(struct queue *queue, struct run *run)
{
    leave_company(queue, run->queue_company);
    leave_client(run->queue_client);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static void stop_waiting(struct queue *queue, struct run *run)
{
    struct queue_company *company = run->queue_company;
    TAILQ_REMOVE(&company->waiting, run, in_queue);
    company->waiting_count--;
    queue->waiting_count--;
    (void)evtimer_del(run->queue_timer);
}

/* It waits no more, and has no place either. */
static void leave(struct queue *queue, struct run *run)
{
    stop_waiting(queue, run);
    part(queue, run);
    queue->done(run);
}

/* Code may only start while its record has somewhere to go. */
static bool ledger_allows(const struct queue *queue)
{
    return queue->line->config->when_down == CONFIG_KEEP || !ledger_is_down(queue->line->ledger);
}

static bool has_place_for(const struct queue *queue, const struct run *run)
{
    const struct config *config = queue->line->config;
    return queue->running < config->max_running &&
           run->queue_company->running < config->max_running_company &&
           run->queue_client->running < run->queue_client->max_running &&
           executor_has_place(run->executor);
}

/* The company's turn is over. */
static void take_place(struct queue *queue, struct run *run)
{
    struct queue_company *company = run->queue_company;
    enum reason off = switches_forbid(run);
    if (off || !ledger_allows(queue)) {
        run_end(run, off ? off : REASON_OVERLOADED);
        part(queue, run);
    } else {
        run->has_place = true;
        queue->running++;
        company->running++;
        run->queue_client->running++;
        executor_take_place(run->executor);
        TAILQ_REMOVE(&queue->companies, company, link);
        TAILQ_INSERT_TAIL(&queue->companies, company, link);
    }
    queue->done(run);
}

static void waited_too_long(evutil_socket_t fd, short what, void *context)
{
    struct run *run = context;
    struct queue *queue = run->line->queue;
    (void)fd;
    (void)what;
    run_end(run, REASON_OVERLOADED);
    leave(queue, run);
}

/* 0, 1 when there is no room, -ENOMEM. */
static int start_waiting(struct queue *queue, struct run *run)
{
    const struct config *config = queue->line->config;
    struct timeval in = {.tv_sec = config->queue_deadline_ms / 1000,
                         .tv_usec = config->queue_deadline_ms % 1000 * 1000};
    if (queue->waiting_count >= config->max_queued ||
        run->queue_company->waiting_count >= config->max_queued_company)
        return 1;
    run->queue_timer = evtimer_new(queue->line->base, waited_too_long, run);
    if (!run->queue_timer || evtimer_add(run->queue_timer, &in) != 0)
        return -ENOMEM;
    TAILQ_INSERT_TAIL(&run->queue_company->waiting, run, in_queue);
    run->queue_company->waiting_count++;
    queue->waiting_count++;
    return 0;
}

/* The first of a company that has a place now: a busy executor holds up only its own runs, and so does
 * a client that has all its places. */
static struct run *first_with_place(const struct queue *queue, const struct queue_company *company)
{
    struct run *run;
    TAILQ_FOREACH(run, &company->waiting, in_queue)
        if (has_place_for(queue, run))
            return run;
    return NULL;
}

/* Of the company that has the fewest running, and among equals of the one whose turn it is: who comes
 * with a single run waits for no more than those that are running. */
static struct run *next_run(const struct queue *queue)
{
    const struct queue_company *company;
    struct run *next = NULL;
    TAILQ_FOREACH(company, &queue->companies, link) {
        if (next && company->running >= next->queue_company->running)
            continue;
        struct run *run = first_with_place(queue, company);
        if (run)
            next = run;
    }
    return next;
}

void queue_stage(struct run *run, run_done_fn *done)
{
    struct queue *queue = run->line->queue;
    queue->done = done;
    if (join(queue, run) < 0) {
        run_end(run, REASON_OVERLOADED);
        done(run);
    } else if (has_place_for(queue, run) && !next_run(queue)) {
        take_place(queue, run);
    } else if (start_waiting(queue, run) != 0) {
        run_end(run, REASON_OVERLOADED);
        part(queue, run);
        done(run);
    }
}

void queue_poke(struct run *run)
{
    leave(run->line->queue, run);
}

static struct run *next_forbidden(const struct queue *queue)
{
    struct queue_company *company;
    struct run *run;
    TAILQ_FOREACH(company, &queue->companies, link)
        TAILQ_FOREACH(run, &company->waiting, in_queue)
            if (switches_forbid(run))
                return run;
    return NULL;
}

void queue_withdraw(struct queue *queue)
{
    struct run *run;
    while ((run = next_forbidden(queue))) {
        run_end(run, switches_forbid(run));
        leave(queue, run);
    }
}

static void start_next(struct queue *queue)
{
    struct run *next;
    while ((next = next_run(queue))) {
        stop_waiting(queue, next);
        take_place(queue, next);
    }
}

void queue_release(struct run *run)
{
    struct queue *queue = run->line->queue;
    run->has_place = false;
    queue->running--;
    run->queue_company->running--;
    run->queue_client->running--;
    part(queue, run);
    executor_give_place(run->executor);
    start_next(queue);
}

void queue_resume(struct queue *queue)
{
    struct queue_client *client;
    LIST_FOREACH(client, &queue->clients, link) {
        const struct config_client *policy = config_client(queue->line->config, client->name);
        if (policy) /* one that is no client any more keeps its bound for the runs that it has */
            client->max_running = policy->max_running;
    }
    start_next(queue);
}

void queue_figures(const struct queue *queue, struct queue_figures *out)
{
    const struct queue_company *company;
    *out = (struct queue_figures){.waiting = queue->waiting_count};
    TAILQ_FOREACH(company, &queue->companies, link)
        out->companies++;
}
