/*
 * execution.h - a run at a provider, under a clock that the host holds.
 */
#ifndef AUDITRUN_DAEMON_EXECUTION_H
#define AUDITRUN_DAEMON_EXECUTION_H

#include "daemon/run.h"

/* While a run waits for its intent to be durable: makes what will be handed over. What fails here fails
 * at the stage. */
void execution_prepare(struct run *run);
/* Of a run that was prepared and came to no stage; NULL-safe. */
void execution_discard(struct run *run);

/* Stage: running -> ended. Takes a slot, hands the run over, reads its output, collects what the
 * provider and the host found. Done when nothing of the run is left and its output has been read. */
void execution_stage(struct run *run, run_done_fn *done);
void execution_poke(struct run *run);

#endif
