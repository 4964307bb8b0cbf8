/*
 * cgroup.h - a control group for each slot: nothing of a run escapes it, and what the kernel counts and
 * bounds there is the host's own word on the run, whatever its provider says.
 *
 * One interface over both versions of control groups (cgroup_v1.c, cgroup_v2.c). A provider is put
 * into its slot's leaf before it is given a run, so everything that it starts is born there.
 * Controllers that are missing here cut down what is offered, and nothing else.
 */
#ifndef AUDITRUN_DAEMON_CGROUP_H
#define AUDITRUN_DAEMON_CGROUP_H

#include "protocol/grant.h"

#include <sys/types.h>

/* Processes in a leaf that are not the run's: the provider, and one that it needs to hold the run (the
 * first process of a sandbox, or the command of auditrun-executor-once). They come on top of a granted
 * number of processes, so that the code gets exactly what was granted, and are taken off a peak. A
 * provider that prepares its next sandbox ahead does so only when the last run has been cleared away. */
#define CGROUP_OWN_PROCESSES 2

struct cgroup_root;
struct cgroup;

/* Finds what there is, takes away what killed daemons left behind, makes this daemon's own group and
 * tries each limit in it on a child process (at most a few seconds; blocks; may move the daemon into
 * a group below its own). 0 with *out owned; 1 when there are no control groups to use here;
 * -ENOMEM. */
int cgroup_root_open(struct cgroup_root **out) AR_MUST_CHECK;
void cgroup_root_free(struct cgroup_root *root);
/* What they were seen to enforce on this host, of cpu_ms, memory_bytes and processes, with the most
 * that can be set. cpu_ms: the time is counted; it is the caller who stops the run. */
const struct limits *cgroup_root_offers(const struct cgroup_root *root);
/* "v1", "v2"; "none" for NULL. */
const char *cgroup_root_word(const struct cgroup_root *root);

/* A leaf for a slot. NULL root gives NULL, and every function below takes NULL for "none". 0 or
 * -errno. */
int cgroup_new(struct cgroup_root *root, int slot, struct cgroup **out) AR_MUST_CHECK;
/* Kills what is left and removes the leaf. */
void cgroup_free(struct cgroup *cgroup);
int cgroup_attach(struct cgroup *cgroup, pid_t pid) AR_MUST_CHECK; /* 0 or -errno */

/* Sets the limits for the next run and notes where the counters are. 0; -ENOMEM when what prepares the
 * run already takes more than it is granted (the findings say memory_exceeded then); -errno. */
int cgroup_begin(struct cgroup *cgroup, const struct limits *limits) AR_MUST_CHECK;

/* What the kernel counted since cgroup_begin(). */
struct cgroup_findings {
    bool memory_exceeded;    /* it killed, because this group had reached its limit */
    bool killed_for_host;    /* it killed, but for the memory of the machine or of a group above */
    bool processes_exceeded; /* it refused a process or thread, because of this group's limit */
    int64_t user_us, system_us; /* of all that ran here, the provider included; -1: not known */
    int64_t memory_peak_bytes;  /* -1: not known */
    int64_t processes_peak; /* of the run, as far as it can be told from earlier runs; else -1 */
};
void cgroup_findings(struct cgroup *cgroup, struct cgroup_findings *out);

/* Kills everything in the leaf but spare (0: nothing spared). Returns how many processes other than
 * spare were still there; one that has only to be reaped is not. One system call when there is
 * nothing. */
size_t cgroup_kill(struct cgroup *cgroup, pid_t spare);

#endif
