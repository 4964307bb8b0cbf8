/*
 * sockets.h - what a run may leave in a network namespace: unix sockets without a process.
 *
 * Sockets that were sent over each other belong to nobody, and live, with all descriptors that were sent
 * over them, until the kernel looks for such.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_SOCKETS_H
#define AUDITRUN_EXECUTORS_NAMESPACE_SOCKETS_H

#include "protocol/base.h"

/* The list of unix sockets in the caller's network namespace: an owned descriptor, or -errno. */
int sockets_open(void) AR_MUST_CHECK;

/* Makes the kernel look for sockets that nobody holds, in the caller's namespace, until the list is
 * empty. 0: there were none; 1: there were, and they are gone; -ETIME: they are still there. */
int sockets_sweep(int list) AR_MUST_CHECK;

#endif
