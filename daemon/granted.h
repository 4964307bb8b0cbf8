/*
 * granted.h - what a run is given beside its limits: data port, secrets, host paths, network.
 */
#ifndef AUDITRUN_DAEMON_GRANTED_H
#define AUDITRUN_DAEMON_GRANTED_H

#include "daemon/run.h"

/* What the grant gives besides, while the run is at its provider. */
struct granted {
    struct run *run;
    struct dataport *dataport;
    struct egress *egress;
};

/* What reach a provider must have for this grant (provider.h). */
unsigned granted_reach(const struct grant *grant);

/* Makes all of it and adds the descriptors for the provider behind the first SPEC_DESCRIPTORS, owned by
 * the caller; order says which there are. owner: the uid of the run's processes on the host, or -1. 0;
 * 1 when a path is not there any more; -errno. */
int granted_open(struct granted *granted, struct run *run, int64_t owner, struct spec_run *order,
                 int descriptors[SPEC_MAX_DESCRIPTORS]) AR_MUST_CHECK;

/* Takes over the socket that listens in the run's network. 0, 1: it must not be used; -errno. */
int granted_listen(struct granted *granted, int listener) AR_MUST_CHECK;

/* The run is over: notes in it what was used, and ends everything. More than once is fine. */
void granted_end(struct granted *granted);

#endif
