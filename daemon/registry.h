/*
 * registry.h - the executors of the configuration, in its order.
 *
 * A reload proves new ones beside those in force, which go on meanwhile; then the new ones take their
 * place, and the old ones go when their last run has ended.
 */
#ifndef AUDITRUN_DAEMON_REGISTRY_H
#define AUDITRUN_DAEMON_REGISTRY_H

#include "daemon/executor.h"

struct registry;

/* Without executors at first. NULL when out of memory. */
struct registry *registry_new(struct line *line) AR_MUST_CHECK;
/* Makes the executors of that configuration and probes them all, side by side; answered(context) when
 * the last has answered, maybe at once. What was being probed before is dropped. 0 or -ENOMEM (then
 * nothing is being probed). */
int registry_probe(struct registry *registry, const struct config *config,
                   void (*answered)(void *context), void *context) AR_MUST_CHECK;
/* Those that have answered are in force from now on; those that were retire. */
void registry_take(struct registry *registry);
void registry_free(struct registry *registry);

/* The executor of that name, or NULL. */
struct executor *registry_find(struct registry *registry, const char *name);
/* The next one; NULL begins, and ends. */
struct executor *registry_next(struct registry *registry, const struct executor *executor);

/* Reaps (and, without control groups, kills) what left a provider by double forking; how many are
 * still there. */
size_t registry_sweep(struct registry *registry);
/* [{"name", "state", ...}]; NULL when out of memory. */
json_t *registry_status(struct registry *registry) AR_MUST_CHECK;

#endif
