/*
 * template.h - the root file system that every sandbox of a slot starts from, made once.
 *
 * After template_build() the process sees nothing of the host but this:
 *   /                 an empty small file system, the slot's own
 *   /root             the template: read-only /usr and what hangs on it, /etc, /dev, and the empty
 *                     folders /proc /work /tmp /code that a run mounts on
 *   /scratch          an empty folder that a run mounts its scratch file system on
 *   /proc             the host's, which the kernel wants to see before it gives out a new one
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_TEMPLATE_H
#define AUDITRUN_EXECUTORS_NAMESPACE_TEMPLATE_H

#include "executors/namespace/step.h"

#define TEMPLATE_ROOT    "/root"
#define TEMPLATE_SCRATCH "/scratch"

/* Builds it in the caller's own, new mount namespace and moves there. 0, or negative with *failure
 * set (the caller can only end then). */
int template_build(struct failure *failure) AR_MUST_CHECK;

#endif
