/*
 * provider.h - one process of an executor's program: started, ready, given a run, reporting, gone.
 *
 * States: starting -> idle <-> busy -> ... -> stopping -> gone. A provider speaks the executor
 * contract (docs/executors.md) over a control socket; everything that it says is untrusted. It is gone
 * when its process is reaped and its control group is empty; only then is the slot free.
 */
#ifndef AUDITRUN_DAEMON_PROVIDER_H
#define AUDITRUN_DAEMON_PROVIDER_H

#include "daemon/cgroup.h"
#include "protocol/spec.h"

#include <sys/types.h>

struct event_base;
struct provider;

/* A provider is prepared for one kind of run: an executor may need other walls for those that reach
 * out. It is told in AUDITRUN_REACH, as words. */
enum { PROVIDER_REACHES_NETWORK = 1, PROVIDER_REACHES_FILES = 2 };

enum provider_state {
    PROVIDER_STARTING,
    PROVIDER_IDLE,
    PROVIDER_BUSY,
    PROVIDER_STOPPING, /* was told to go, or has said something that it must not */
    PROVIDER_GONE      /* reaped; nothing of it is left; free it */
};

/* What its owner is told, from the loop; never from within a call to the provider. */
struct provider_events {
    /* It can take a run (first time, or again after a report). */
    void (*ready)(void *context);
    /* It hands over a socket that listens in the run's network: listener is the owner's from here. */
    void (*listening)(void *context, int listener);
    /* The run that it was given has ended; the report is checked. Before `ready` or `gone`. */
    void (*reported)(void *context, const struct report *report);
    /* Nothing of it is left. failure: REASON_CRASHED, REASON_PROTOCOL_VIOLATION, REASON_SPAWN_FAILED,
     * or REASON_NONE when it was told to go. */
    void (*gone)(void *context, enum reason failure);
};

struct provider_start {
    struct event_base *base;
    struct cgroup_root *cgroups; /* NULL: none */
    const char *program;
    const struct text_list *arguments; /* before "serve" */
    int slot;
    int id_space;   /* the namespace with the ids of slots, borrowed (daemon/idspace.h); -1: none */
    unsigned reach; /* PROVIDER_REACHES_*: what its runs may reach, told to it at its start */
    const struct provider_events *events;
    void *context;
};

/* Starts the program. 0 with *out owned, or -errno. */
int provider_start(const struct provider_start *start, struct provider **out) AR_MUST_CHECK;

/* Hands a run to an idle provider: the spec and the other descriptors (SPEC_DESCRIPTORS, in their
 * order, which stay the caller's). 0, or -errno: then it must be stopped. */
int provider_run(struct provider *provider, const struct grant *grant, const struct spec_run *run,
                 const int *descriptors) AR_MUST_CHECK;

/* SIGTERM now, and SIGKILL for all that is left of it in a second. */
void provider_stop(struct provider *provider);

enum provider_state provider_state(const struct provider *provider);
/* Has reported a run and not said that it can take another one (it need not: it may exit). Whoever
 * waits for it then has no part in how it goes. */
bool provider_is_between(const struct provider *provider);
pid_t provider_pid(const struct provider *provider);
/* Who its process is on the host at present; -1: unknown. */
int64_t provider_uid(const struct provider *provider);
/* The host's own counters for the run that it has or had last. */
void provider_findings(struct provider *provider, struct cgroup_findings *out);
/* After a report: kills what is left of the run beside the provider itself; how many were there. When
 * it is none, a provider that prepares ahead is told so, and what it starts then is its own. */
size_t provider_clear(struct provider *provider);

/* Kills what is still there, waits for it, frees. */
void provider_free(struct provider *provider);

#endif
