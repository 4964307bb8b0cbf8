/*
 * verdict.h - how a run ended: one place, one documented order.
 */
#ifndef AUDITRUN_DAEMON_VERDICT_H
#define AUDITRUN_DAEMON_VERDICT_H

#include "daemon/run.h"

/* Stage: ended -> decided. Gives the run its terminal status and its record. */
void verdict_stage(struct run *run, run_done_fn *done);

#endif
