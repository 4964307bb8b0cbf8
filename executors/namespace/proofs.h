/*
 * proofs.h - finds out what the runs of a slot may be let reach here: a network, host paths, both.
 *
 * Walls that are made once for a slot need a process for each kind of slot. They are forked early, while
 * the caller is still what it was started as, attack a sandbox of theirs, and end.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_PROOFS_H
#define AUDITRUN_EXECUTORS_NAMESPACE_PROOFS_H

#include "executors/namespace/slot.h"

#define PROOFS_COUNT 3

struct proofs {
    pid_t helpers[PROOFS_COUNT]; /* by reach, from 1; 0: there is none */
    int ends[PROOFS_COUNT];      /* their pidfds, owned */
};

/* Starts the helpers. To be called before slot_enter(). program: this executor's own binary, open. Those
 * that cannot be started prove nothing. */
void proofs_start(struct proofs *proofs, const struct slot_options *options, int program);

/* Waits for them, at most so long, and kills those that are late: what has been proved, REACH_*. What has
 * not is told in a line each on descriptor 2, unless it was not to be expected: only root has mounts to
 * try host paths with. Both together are proved when each is; else host paths are left out. */
unsigned proofs_end(struct proofs *proofs, int64_t wait_ms);

#endif
