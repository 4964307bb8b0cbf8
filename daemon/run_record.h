/*
 * run_record.h - a run as the row that the ledger keeps of it.
 */
#ifndef AUDITRUN_DAEMON_RUN_RECORD_H
#define AUDITRUN_DAEMON_RUN_RECORD_H

#include "daemon/run.h"

/* The record of a run that has ended; owned by the caller, NULL when out of memory. */
struct record *run_record_make(const struct run *run) AR_MUST_CHECK;

/* The record that is true if nothing more is ever heard of the run: interrupted, host_restarted. It is
 * the intent that the journal makes durable. */
struct record *run_record_intent(const struct run *run) AR_MUST_CHECK;

#endif
