/*
 * cgroup_trial.h - finds out what control groups enforce on this host, by doing it.
 */
#ifndef AUDITRUN_DAEMON_CGROUP_TRIAL_H
#define AUDITRUN_DAEMON_CGROUP_TRIAL_H

#include "daemon/cgroup.h"

/* Runs into each limit in a leaf of the root (slot 0) with a child process: *offers has those that
 * held. 0; 1: none did; -errno when it could not be tried. */
int cgroup_trial_run(struct cgroup_root *root, struct limits *offers) AR_MUST_CHECK;

#endif
