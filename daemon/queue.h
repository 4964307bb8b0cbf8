/*
 * queue.h - how many runs are dispatched at once, and who waits for how long.
 */
#ifndef AUDITRUN_DAEMON_QUEUE_H
#define AUDITRUN_DAEMON_QUEUE_H

#include "daemon/run.h"

struct queue;

/* NULL when out of memory. */
struct queue *queue_new(struct line *line) AR_MUST_CHECK;
void queue_free(struct queue *queue);

/* Stage: admitted -> queued. Ends the run (refused, overloaded) when the queue is full, when it
 * waited longer than the queue's deadline, or while the ledger is known to be down and the
 * configuration says refuse. */
void queue_stage(struct run *run, run_done_fn *done);
void queue_poke(struct run *run);

struct queue_figures {
    int64_t waiting;   /* runs that wait for their turn */
    int64_t companies; /* that have runs waiting or running */
};
void queue_figures(const struct queue *queue, struct queue_figures *out);

/* The run has left its provider: its place goes to the next. */
void queue_release(struct run *run);

/* Something has been switched off: runs that wait and fall under it end (disabled). */
void queue_withdraw(struct queue *queue);
/* There may be room for more: the configuration has changed. */
void queue_resume(struct queue *queue);

#endif
