/*
 * cgroup.h - a control group for each slot: nothing of a run escapes it, and memory and the number of
 * processes are bounded by the kernel.
 *
 * Works where the daemon may make control groups in the v1 hierarchies of memory and pids. A provider
 * is put into its leaf before it is given a run, so everything that it starts is born there.
 */
#ifndef AUDITRUN_DAEMON_CGROUP_H
#define AUDITRUN_DAEMON_CGROUP_H

#include "protocol/grant.h"

#include <sys/types.h>

struct cgroup_root;
struct cgroup;

/* Finds the hierarchies, takes away what killed daemons left behind, makes this daemon's own group.
 * 0 with *out owned; 1 when there are no control groups to use here; -ENOMEM. */
int cgroup_root_open(struct cgroup_root **out) AR_MUST_CHECK;
void cgroup_root_free(struct cgroup_root *root);
/* What they enforce on this host: memory_bytes and processes, with the most that can be set. */
const struct limits *cgroup_root_offers(const struct cgroup_root *root);

/* A leaf for a slot. NULL root gives NULL, and every function below takes NULL for "none". 0 or
 * -errno. */
int cgroup_new(struct cgroup_root *root, int slot, struct cgroup **out) AR_MUST_CHECK;
/* Kills what is left and removes the leaf. */
void cgroup_free(struct cgroup *cgroup);
int cgroup_attach(struct cgroup *cgroup, pid_t pid) AR_MUST_CHECK; /* 0 or -errno */

/* Sets the limits for the next run and forgets the counters of the last. 0 or -errno. */
int cgroup_begin(struct cgroup *cgroup, const struct limits *limits) AR_MUST_CHECK;

struct cgroup_findings {
    bool memory_exceeded;      /* the kernel killed for this group's memory since cgroup_begin() */
    int64_t memory_peak_bytes; /* -1: not known */
};
void cgroup_findings(struct cgroup *cgroup, struct cgroup_findings *out);

/* Kills everything in the leaf but spare (0: nothing spared). Returns how many processes other than
 * spare were still there. */
size_t cgroup_kill(struct cgroup *cgroup, pid_t spare);

#endif
