/*
 * network.h - the network of one run: a namespace of its own with nothing but its loopback, and on it
 * the listener that the daemon serves (docs/executors.md).
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_NETWORK_H
#define AUDITRUN_EXECUTORS_NAMESPACE_NETWORK_H

#include "protocol/base.h"

/* Brings the loopback of the caller's network namespace up. 0 or -errno. */
int network_raise(void) AR_MUST_CHECK;

/* A TCP socket that listens on 127.0.0.1, port REACH_PORT, and does not wait. Owned, or -errno. */
int network_listen(void) AR_MUST_CHECK;

/* What tells programs of the proxy: NAME=VALUE, ended by NULL. */
extern const char *const network_variables[];

#endif
