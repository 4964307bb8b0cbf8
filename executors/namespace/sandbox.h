/*
 * sandbox.h - the launcher's side of a sandbox: start it, wait for it or kill it, read its end.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_SANDBOX_H
#define AUDITRUN_EXECUTORS_NAMESPACE_SANDBOX_H

#include "executors/namespace/inside.h"

struct sandbox {
    int pidfd;          /* owned; can be read when the first process, and so all others, ended */
    int64_t started_us; /* monotonic */
};

/* Forks the first process of a sandbox into new namespaces. A slot has one at a time. The order is
 * not needed any more when it returns. 0, or negative with *failure set. */
int sandbox_start(struct slot *slot, const struct inside_order *order, struct sandbox *sandbox,
                  struct failure *failure) AR_MUST_CHECK;

/* Kills everything in it; sandbox_finish() still has to be called. */
void sandbox_kill(const struct sandbox *sandbox);

/* Waits for its end, lets it go and fills the report; *failure says what is behind a
 * setup_failed. 0 or -errno. */
int sandbox_finish(const struct slot *slot, struct sandbox *sandbox, struct report *report,
                   struct failure *failure) AR_MUST_CHECK;

#endif
