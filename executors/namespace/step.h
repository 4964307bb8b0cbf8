/*
 * step.h - what can fail while a slot or a sandbox is set up: one word list for all of it.
 *
 * A failure travels as a number (out of a sandbox through its board) and becomes words only where
 * it is told: our own ones, never anything that came with a run.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_STEP_H
#define AUDITRUN_EXECUTORS_NAMESPACE_STEP_H

#include "protocol/base.h"

enum step {
    STEP_NONE,
    /* once for a slot */
    STEP_MEMORY,
    STEP_ID_SPACE,
    STEP_USER_NAMESPACE,
    STEP_ID_MAP,
    STEP_IDS,
    STEP_OTHER_NAMESPACES,
    STEP_TEMPLATE,
    STEP_HOST_PIECES,
    STEP_DEVICES,
    STEP_ETC,
    STEP_SLOT_ROOT,
    STEP_PRIVILEGES,
    STEP_FILTER,
    /* once for a run */
    STEP_SPEC,
    STEP_LANGUAGE,
    STEP_GRANT,
    STEP_VARIABLE,
    STEP_CLONE,
    STEP_GUARD,
    STEP_DESCRIPTORS,
    STEP_SCRATCH,
    STEP_FILES,
    STEP_SECRETS,
    STEP_PATHS,
    STEP_PLACES,
    STEP_NETWORK,
    STEP_ROOT,
    STEP_PROC,
    STEP_LANDLOCK,
    STEP_SPAWN,
    STEP_LIMITS,
    STEP_CAPABILITIES,
    STEP_EXEC,
    STEP_OUTPUTS,
    STEP_SOCKETS,
    STEP_LOST,
    STEP_COUNT
};

/* What failed: error is an errno value, 0 when there is none to tell. */
struct failure {
    enum step step;
    int error;
};

/* What a step sets up, for "cannot set up %s"; "" for STEP_NONE. */
const char *step_word(enum step step);

/* Fills *failure and returns -error (or -EIO for error 0), so that a caller can pass it up. */
int step_fail(struct failure *failure, enum step step, int error);

/* One line on descriptor 2: what could not be set up, and why. */
void step_tell(const struct failure *failure);

#endif
