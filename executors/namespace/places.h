/*
 * places.h - paths of the host in a sandbox: detached mounts of the daemon, put where the code looks for
 * them.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_PLACES_H
#define AUDITRUN_EXECUTORS_NAMESPACE_PLACES_H

#include "executors/namespace/step.h"
#include "protocol/grant.h"

/* Where they go and what they may. */
struct places {
    const struct grant *grant;
    const int
        *trees;  /* a detached mount for each path of grant->read, then of grant->write; borrowed */
    int ruleset; /* of Landlock, which is told of the written ones; -1: none */
    int landlock; /* its version */
};

/* Puts each mount at its path in the caller's root, which is open for writing meanwhile: mountpoints are
 * made where there is none. Whatever the mounts were, they are then without set-uid, devices and
 * execution, and those of grant->read read-only. token: trusted.h. 0, or negative with *failure set:
 * STEP_PLACES for a path that is one of the sandbox's own. */
int places_show(uint64_t token, const struct places *places, struct failure *failure) AR_MUST_CHECK;

#endif
