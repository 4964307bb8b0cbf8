/*
 * trial.h - a sandbox made exactly as those of a run, in which this very program attacks it.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_TRIAL_H
#define AUDITRUN_EXECUTORS_NAMESPACE_TRIAL_H

#include "executors/namespace/slot.h"

struct trial {
    struct slot *slot;
    int program;        /* this executor's own binary, open */
    const char *attack; /* its name, see attack.h */
    long amount;        /* its argument */
    enum limit limit;   /* that is granted, with that amount; LIMIT_COUNT: none */
    unsigned given;     /* ATTACK_PORT, ATTACK_SECRETS; the slot's reach goes without saying */
    int secrets;        /* with ATTACK_SECRETS: trial_secrets() */
    const int *trees;   /* with REACH_FILES: detached mounts for ATTACK_READ and ATTACK_WRITE */
};

/* Runs it and waits for its end, at most wait_ms. 0 with the report, 1 when it took too long, or
 * negative with *failure set. */
int trial_run(struct trial *trial, int64_t wait_ms, struct report *report,
              struct failure *failure) AR_MUST_CHECK;

/* The attack on the walls. NULL: they held; else what did not, for people, with *failure set when it is
 * a step of the set-up. */
const char *trial_walls(struct trial *trial, int64_t wait_ms, struct failure *failure);

/* A memory file with the secret that the attack looks for: owned, or -errno. */
int trial_secrets(void) AR_MUST_CHECK;
/* Is nothing of it left? */
bool trial_is_wiped(int secrets);

#endif
