/*
 * reach.h - what the runs of a slot may reach beyond their sandbox.
 *
 * The daemon says it to a provider at its start (AUDITRUN_REACH) and gives it only runs that are granted
 * exactly that: walls that are made once for a slot can then be as narrow as its runs need.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_REACH_H
#define AUDITRUN_EXECUTORS_NAMESPACE_REACH_H

#include "protocol/base.h"

enum {
    REACH_NETWORK = 1, /* each run has a network of its own, with the daemon's listener */
    REACH_FILES = 2    /* the one run has paths of the host */
};

/* The port of that listener, on 127.0.0.1. */
#define REACH_PORT 3128

#endif
