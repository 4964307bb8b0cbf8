/*
 * executor.h - a registered provider program: its probed envelope and its slots.
 *
 * A slot is a number, a provider that stands in it, and the run that has it. Slots are filled on
 * demand, and one is kept ready ahead of demand. A run that was admitted to the queue's places always
 * finds a slot: the queue counts places by executor_has_place().
 */
#ifndef AUDITRUN_DAEMON_EXECUTOR_H
#define AUDITRUN_DAEMON_EXECUTOR_H

#include "daemon/provider.h"
#include "protocol/envelope.h"

struct config;
struct config_executor;
struct executor;
struct line;
struct slot;

/* What the run that has a slot is told, from the loop. */
struct slot_events {
    void (*ready)(
        void *context); /* the provider can be given the run; maybe at once after acquire */
    void (*listening)(void *context, int listener); /* as provider_events */
    void (*reported)(void *context, const struct report *report);
    void (*gone)(void *context, enum reason failure); /* the slot is lost to this run */
};

/* The executor of a section of that configuration, which it holds. Its slots are numbered from first_slot:
 * a number names a control group and a uid, so no two slots of the daemon may have the same. NULL when
 * out of memory. */
struct executor *executor_new(struct line *line, const struct config *whole,
                              const struct config_executor *config, struct cgroup_root *cgroups,
                              int first_slot) AR_MUST_CHECK;
/* Asks the program for its capabilities (10 s at most); answered(context) when it is known whether
 * there is an envelope. */
void executor_probe(struct executor *executor, void (*answered)(void *context), void *context);
/* Another one has taken its place: its idle providers go at once, the others after their runs, and when
 * nobody holds it any more and nothing of it is left, over(context, executor) is called, from the loop;
 * then it can be freed. */
void executor_retire(struct executor *executor,
                     void (*over)(void *context, struct executor *executor), void *context);
/* Kills its providers, waits for them, frees. No run may have a slot. */
void executor_free(struct executor *executor);

/* A run that was compared with it needs it to its end. NULL is nothing. */
void executor_hold(struct executor *executor);
void executor_unhold(struct executor *executor);

const struct config_executor *executor_config(const struct executor *executor);
int executor_first_slot(const struct executor *executor);
/* The effective envelope, or NULL when the program could not prove any. */
const struct envelope *executor_envelope(const struct executor *executor);

bool executor_has_place(const struct executor *executor);
void executor_take_place(struct executor *executor);
void executor_give_place(struct executor *executor);

/* A slot for a run, starting a provider if none is idle. NULL with *rc -errno when none can be
 * started. */
struct slot *executor_acquire(struct executor *executor, unsigned reach,
                              const struct slot_events *events, void *context,
                              int *rc) AR_MUST_CHECK;
struct provider *executor_slot_provider(struct slot *slot);
/* The run is done with it: a provider that is well goes on, a stopping one is replaced on demand. */
void executor_release(struct slot *slot);

/* Is it the process of one of the executor's providers? */
bool executor_owns(const struct executor *executor, pid_t pid);
/* What its slots are at present; together they are all of them. */
struct executor_slots {
    int64_t idle, busy; /* with a provider that is ready, with a run */
    int64_t starting, stopping, empty;
};
void executor_slots(const struct executor *executor, struct executor_slots *out);
/* Providers that could not be started, or have gone when they should not, since the daemon's start. */
int64_t executor_failures(const struct executor *executor);
/* {"name", "state", "slots_idle", "slots_busy"}; NULL when out of memory. */
json_t *executor_status(const struct executor *executor) AR_MUST_CHECK;

#endif
