/*
 * dataport.h - the deployment's own API, for one run.
 *
 * The code speaks JSON-RPC lines over a connected socket. A call is forwarded to the service of the
 * configuration only if the grant covers its method, with the company, actor, purpose and run id that
 * the daemon knows; everything else is answered here. A service that hangs, dies or answers rubbish
 * fails the call.
 */
#ifndef AUDITRUN_DAEMON_DATAPORT_H
#define AUDITRUN_DAEMON_DATAPORT_H

#include "daemon/config.h"
#include "protocol/spec.h"

struct dataport;
struct event_base;

/* For whom; all borrowed, and outlives it. */
struct dataport_start {
    struct event_base *base;
    const struct config_data_port *config;
    const struct text_list *methods; /* granted: exact names, or with a trailing ".*" */
    const char *company, *actor, *purpose, *run_id;
};

/* 0 with *out owned (dataport_free) and *code_end a descriptor that the caller owns: the code's end;
 * or -errno. Nothing is connected before the first call. */
int dataport_open(const struct dataport_start *start, struct dataport **out,
                  int *code_end) AR_MUST_CHECK;

/* Totals so far. */
void dataport_usage(const struct dataport *dataport, struct usage_data_api *out);

/* Ends it; calls that are on their way get no answer. NULL is fine. */
void dataport_free(struct dataport *dataport);

#endif
