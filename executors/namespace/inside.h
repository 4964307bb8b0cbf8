/*
 * inside.h - the first process of a sandbox: ours, between the launcher and the code.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_INSIDE_H
#define AUDITRUN_EXECUTORS_NAMESPACE_INSIDE_H

#include "executors/namespace/order.h"

/* Where a sandbox that is built gets its run from. */
struct inside_source {
    /* Waits for a run, in the first process. 0 with the order made; 1: there will be none;
     * negative with *failure set: there is one, and it cannot be done. */
    int (*take)(void *context, struct order *order, struct failure *failure);
    /* Hands over the socket that listens in the run's network, before the code starts; borrowed. 0 or
     * negative. May be NULL in a slot that reaches no network. */
    int (*listening)(void *context, int listener);
    void *context;
};

/* What the first process is started with. It lies in the launcher's memory until it has ended. */
struct inside_start {
    struct slot *slot;
    struct inside_source source;
    struct order order; /* filled by the first process, freed by the launcher */
};

/* Is pid 1 of a new pid namespace: builds the sandbox, takes a run, runs the code, ends everything,
 * leaves the result on the slot's board and exits. Runs in the launcher's memory, on a stack of its
 * own. argument: a struct inside_start. Never returns; int is what clone(2) asks for. */
int inside_main(void *argument);

#endif
