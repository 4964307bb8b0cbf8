/*
 * queue.c - how many runs are dispatched at once, and who waits for how long.
 *
 * A run that has its turn holds a place until it has ended. Those that wait stand in a line, first
 * come first served, each with a timer of its own. Both numbers are bounded by the configuration;
 * over them is an answer (refused, overloaded), which is recorded like any other end.
 */
#include "daemon/queue.h"

#include "daemon/config.h"
#include "daemon/executor.h"
#include "daemon/ledger.h"
#include "daemon/log.h"

#include <event2/event.h>

struct queue {
    struct line *line;
    struct run_list waiting;
    int64_t waiting_count;
    int64_t running;
    run_done_fn *done;
};

struct queue *queue_new(struct line *line)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue) {
        queue->line = line;
        TAILQ_INIT(&queue->waiting);
    }
    return queue;
}

void queue_free(struct queue *queue)
{
    free(queue);
}

static void stop_waiting(struct queue *queue, struct run *run)
{
    TAILQ_REMOVE(&queue->waiting, run, in_queue);
    queue->waiting_count--;
    (void)evtimer_del(run->queue_timer);
}

/* Code may only start while its record has somewhere to go. */
static bool ledger_allows(const struct queue *queue)
{
    return queue->line->config->when_down == CONFIG_KEEP || !ledger_is_down(queue->line->ledger);
}

static bool has_place_for(const struct queue *queue, const struct run *run)
{
    return queue->running < queue->line->config->max_running && executor_has_place(run->executor);
}

static void take_place(struct queue *queue, struct run *run)
{
    if (!ledger_allows(queue)) {
        run_end(run, REASON_OVERLOADED);
    } else {
        run->has_place = true;
        queue->running++;
        executor_take_place(run->executor);
    }
    queue->done(run);
}

static void waited_too_long(evutil_socket_t fd, short what, void *context)
{
    struct run *run = context;
    struct queue *queue = run->line->queue;
    (void)fd;
    (void)what;
    stop_waiting(queue, run);
    run_end(run, REASON_OVERLOADED);
    queue->done(run);
}

/* 0, 1 when there is no room, -ENOMEM. */
static int start_waiting(struct queue *queue, struct run *run)
{
    const struct config *config = queue->line->config;
    struct timeval in = {.tv_sec = config->queue_deadline_ms / 1000,
                         .tv_usec = config->queue_deadline_ms % 1000 * 1000};
    if (queue->waiting_count >= config->max_queued)
        return 1;
    run->queue_timer = evtimer_new(queue->line->base, waited_too_long, run);
    if (!run->queue_timer || evtimer_add(run->queue_timer, &in) != 0)
        return -ENOMEM;
    TAILQ_INSERT_TAIL(&queue->waiting, run, in_queue);
    queue->waiting_count++;
    return 0;
}

/* The first that waits and has a place now: a busy executor holds up only its own runs. */
static struct run *next_run(const struct queue *queue)
{
    struct run *run;
    TAILQ_FOREACH(run, &queue->waiting, in_queue)
        if (has_place_for(queue, run))
            return run;
    return NULL;
}

void queue_stage(struct run *run, run_done_fn *done)
{
    struct queue *queue = run->line->queue;
    queue->done = done;
    if (has_place_for(queue, run) && !next_run(queue)) {
        take_place(queue, run);
    } else if (start_waiting(queue, run) != 0) {
        run_end(run, REASON_OVERLOADED);
        done(run);
    }
}

void queue_poke(struct run *run)
{
    struct queue *queue = run->line->queue;
    stop_waiting(queue, run);
    queue->done(run);
}

void queue_release(struct run *run)
{
    struct queue *queue = run->line->queue;
    run->has_place = false;
    queue->running--;
    executor_give_place(run->executor);
    struct run *next;
    while ((next = next_run(queue))) {
        stop_waiting(queue, next);
        take_place(queue, next);
    }
}
