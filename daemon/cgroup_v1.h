/*
 * cgroup_v1.h - control groups, version 1.
 */
#ifndef AUDITRUN_DAEMON_CGROUP_V1_H
#define AUDITRUN_DAEMON_CGROUP_V1_H

#include "daemon/cgroup_version.h"

/* A constant; the layout of the tree is explained in cgroup_v1.c. */
const struct cgroup_version *cgroup_v1_version(void);

#endif
