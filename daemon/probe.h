/*
 * probe.h - asks an executor program what it can enforce on this host (`PROGRAM capabilities`).
 */
#ifndef AUDITRUN_DAEMON_PROBE_H
#define AUDITRUN_DAEMON_PROBE_H

#include "protocol/envelope.h"

#include <sys/types.h>

struct event_base;
struct probe;

/* envelope: to be taken over by the callee, or NULL with why, a constant text. From the loop. */
typedef void probe_answer_fn(void *context, struct envelope *envelope, const char *why);

/* Starts it; it has 10 s. id_space: as in provider.h. NULL when it cannot be started. */
struct probe *probe_start(struct event_base *base, const char *program,
                          const struct text_list *arguments, int id_space,
                          probe_answer_fn *answered, void *context) AR_MUST_CHECK;
pid_t probe_pid(const struct probe *probe); /* 0: has ended */
void probe_free(struct probe *probe);

#endif
