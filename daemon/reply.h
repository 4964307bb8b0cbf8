/*
 * reply.h - what the caller is told, after the record is committed.
 */
#ifndef AUDITRUN_DAEMON_REPLY_H
#define AUDITRUN_DAEMON_REPLY_H

#include "daemon/run.h"

/* Stage: recorded -> answered. The terminal result; or, when the record is not committed, the audit
 * failure with the true terminal status; or the recorded outcome of the run that has the idempotency
 * key. */
void reply_stage(struct run *run, run_done_fn *done);

/* For a run that asked for it: a notification with the last n bytes of an output stream (0: stdout, 1:
 * stderr). A client that does not keep up misses notifications, which their offsets show, and finds
 * everything in the result. */
void reply_stream(struct run *run, int which, int n);

#endif
