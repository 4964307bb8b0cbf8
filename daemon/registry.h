/*
 * registry.h - the executors of the configuration, in its order.
 */
#ifndef AUDITRUN_DAEMON_REGISTRY_H
#define AUDITRUN_DAEMON_REGISTRY_H

#include "daemon/executor.h"

struct registry;

/* Takes the executors from line->config. NULL when out of memory. */
struct registry *registry_new(struct line *line) AR_MUST_CHECK;
/* Probes them all, side by side; answered(context) when the last has answered. */
void registry_probe(struct registry *registry, void (*answered)(void *context), void *context);
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
