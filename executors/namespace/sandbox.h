/*
 * sandbox.h - the launcher's side of a sandbox: start it, wait for it or kill it, read its end.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_SANDBOX_H
#define AUDITRUN_EXECUTORS_NAMESPACE_SANDBOX_H

#include "executors/namespace/inside.h"

/* Stays where it is from sandbox_start() to sandbox_finish(). */
struct sandbox {
    int pidfd; /* owned; can be read when the first process, and so all others, ended */
    struct inside_start start;
};

/* Starts the first process of a sandbox in new namespaces; it shares our memory. A slot has one at a
 * time, and until sandbox_finish() the launcher only waits: the process uses the slot, the source and
 * the allocator. 0, or negative with *failure set. */
int sandbox_start(struct sandbox *sandbox, struct slot *slot, const struct inside_source *source,
                  struct failure *failure) AR_MUST_CHECK;

/* Kills everything in it; sandbox_finish() still has to be called. If it had no run yet, what the process
 * had at hand in our memory may be in pieces: the slot starts no other. */
void sandbox_kill(const struct sandbox *sandbox);

/* Waits for its end and lets it go. 0 with the report filled, and *failure saying what is behind a
 * setup_failed; 1 when it has ended without a run; negative with *failure set when it could not be
 * built. */
int sandbox_finish(struct sandbox *sandbox, struct report *report,
                   struct failure *failure) AR_MUST_CHECK;

/* All of that for one run that is known, in at most wait_ms. 0 with the report; 1 when it took too long;
 * negative with *failure set. */
int sandbox_try(struct slot *slot, const struct inside_source *source, int64_t wait_ms,
                struct report *report, struct failure *failure) AR_MUST_CHECK;

#endif
