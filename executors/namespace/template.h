/*
 * template.h - the root file system that every sandbox of a slot starts from, made once.
 *
 * After template_build() the process sees nothing of the host but this: read-only /usr and what hangs
 * on it, /etc, /dev, and the empty folders /work /tmp /code /run/secrets that a run mounts on. Its /proc is that of
 * a pid namespace without any process: the kernel wants to see one before it gives out a new one, which
 * every run mounts over it.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_TEMPLATE_H
#define AUDITRUN_EXECUTORS_NAMESPACE_TEMPLATE_H

#include "executors/namespace/modules.h"
#include "executors/namespace/step.h"
#include "protocol/text.h"

#define TEMPLATE_MODULES "/opt/auditrun" /* where code finds modules to import */

/* Builds it in the caller's own, new mount namespace and moves there. etc (may be NULL): names in the
 * host's /etc that are shown, too. reach (reach.h): with a network, the host's certificates
 * of authorities are shown. modules: shown at TEMPLATE_MODULES, if
 * there are any. stack: where a process that shares our memory may have its stack.
 * 0, or negative with *failure set (the caller can only end then). */
int template_build(const struct text_list *etc, unsigned reach, const struct modules *modules,
                   char *stack, struct failure *failure) AR_MUST_CHECK;

#endif
