/*
 * admission.h - the one check that every run passes: client policy, switches, then what is asked
 * against the executor's effective envelope.
 */
#ifndef AUDITRUN_DAEMON_ADMISSION_H
#define AUDITRUN_DAEMON_ADMISSION_H

#include "daemon/run.h"

/* Stage: received -> admitted. Ends the run (unauthorized, disabled, refused, capability_denied) or
 * chooses its executor and fills its effective grant in. */
void admission_stage(struct run *run, run_done_fn *done);

#endif
