/*
 * recovery.h - what a former daemon left in the journal becomes rows of the ledger, each exactly once.
 */
#ifndef AUDITRUN_DAEMON_RECOVERY_H
#define AUDITRUN_DAEMON_RECOVERY_H

#include "daemon/run.h"

struct recovery;

/* Starts with the first record that the journal has left; asks the ledger before it appends, and tries
 * again while the ledger is away. NULL when out of memory. */
struct recovery *recovery_start(struct line *line) AR_MUST_CHECK;
/* Before the ledger is: a question that is on its way may still be answered. */
void recovery_free(struct recovery *recovery);

#endif
