/*
 * cgroup_v2.h - control groups, version 2.
 */
#ifndef AUDITRUN_DAEMON_CGROUP_V2_H
#define AUDITRUN_DAEMON_CGROUP_V2_H

#include "daemon/cgroup_version.h"

/* A constant; the layout of the tree is explained in cgroup_v2.c. */
const struct cgroup_version *cgroup_v2_version(void);

#endif
