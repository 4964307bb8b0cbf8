/*
 * claim.h - a repeat with the same company and idempotency key returns the recorded outcome and never
 * runs twice, whichever daemon on the ledger gets it.
 */
#ifndef AUDITRUN_DAEMON_CLAIM_H
#define AUDITRUN_DAEMON_CLAIM_H

#include "daemon/run.h"

/* Stage: noted -> running. A run without a key passes. With one it takes the key in the ledger, or,
 * when another run has it, is withdrawn (run->withdrawn, run->replay). The key is taken by runs that
 * are dispatched, and by no others. */
void claim_stage(struct run *run, run_done_fn *done);
void claim_poke(struct run *run);

#endif
