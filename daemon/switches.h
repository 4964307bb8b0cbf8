/*
 * switches.h - what operators have switched off while the daemon runs.
 *
 * A throw counts at once: nothing that was not dispatched before starts after it, also what waits in the
 * queue. It is kept in the journal, and so over restarts, until it is taken back; the ledger's chain has
 * each as an event. What the configuration switches off is off beside it.
 */
#ifndef AUDITRUN_DAEMON_SWITCHES_H
#define AUDITRUN_DAEMON_SWITCHES_H

#include "daemon/run.h"
#include "protocol/switch.h"

struct switches;

#define SWITCHES_MAX 256

/* Takes what the journal has kept of them. NULL when out of memory. */
struct switches *switches_new(struct line *line) AR_MUST_CHECK;
void switches_free(struct switches *switches);

/* Why a run may not start now: everything, its company, its language, or the executor that it was admitted
 * to is off; REASON_NONE: it may. By the configuration it was received under, by the one in force now, and by
 * operators. */
enum reason switches_forbid(const struct run *run);
/* Is this executor off for the run? */
bool switches_executor_is_off(const struct run *run, const char *name);
/* How many are off: by the configuration in force, and by operators. */
size_t switches_count(const struct switches *switches);

/* What a throw did. */
struct switches_outcome {
    bool changed;        /* it was not so before */
    bool durable;        /* kept over a restart; false: the journal could not take it */
    size_t stopped;      /* runs that were told to end */
    bool configured_off; /* the configuration in force has it off, whatever operators do */
};
typedef void switches_done_fn(void *context, const struct switches_outcome *outcome);

/* Switches off, or on again, in the name of a client; done is called when that is durable, maybe at once.
 * 0; 1 when there is no executor or language of that name, or too much is off already; -ENOMEM: then
 * nothing has changed. */
int switches_throw(struct switches *switches, const struct switch_order *order, bool off,
                   const struct peer_client *client, switches_done_fn *done,
                   void *context) AR_MUST_CHECK;

/* [{"scope", "name", "source", "why", "client", "uid", "since"}]; NULL when out of memory. */
json_t *switches_list(const struct switches *switches) AR_MUST_CHECK;

#endif
