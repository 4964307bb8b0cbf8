/*
 * execution.h - a run at a provider, under a clock that the host holds.
 */
#ifndef AUDITRUN_DAEMON_EXECUTION_H
#define AUDITRUN_DAEMON_EXECUTION_H

#include "daemon/run.h"

/* Stage: running -> ended. Takes a slot, hands the run over, reads its output, collects what the
 * provider and the host found. Done when nothing of the run is left and its output has been read. */
void execution_stage(struct run *run, run_done_fn *done);
void execution_poke(struct run *run);

#endif
