/*
 * slot.h - what a provider prepares once and every sandbox of it uses.
 *
 * slot_enter() turns the process into a launcher: it lives in the slot's own user, mount, uts, network
 * and time namespaces, sees nothing of the host, can gain no privilege, and cannot be looked into. It
 * holds every capability in the slot's user namespace, because it builds sandboxes there.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_SLOT_H
#define AUDITRUN_EXECUTORS_NAMESPACE_SLOT_H

#include "executors/namespace/board.h"
#include "executors/namespace/ids.h"
#include "executors/namespace/modules.h"
#include "executors/namespace/mounts.h"
#include "executors/namespace/reach.h"

#include <sys/types.h>

#define SLOT_OWN_PROCESSES 2 /* launcher and first process: they count against RLIMIT_NPROC */

struct slot_options {
    struct ids ids;                  /* who it is on the host */
    bool host_enforces[LIMIT_COUNT]; /* by control groups, for whatever runs in the slot */
    unsigned reach;                  /* what its runs may (reach.h) */
    bool timed;                      /* tell on descriptor 2 where the time of each run went */
    const struct text_list *etc;     /* names in the host's /etc that sandboxes see; NULL: none */
    const struct modules *modules;   /* that code may import */
};

/* Memory for a process that shares ours: its stack, above a page that nobody may touch. */
struct slot_stack {
    char *memory;
    size_t bytes;
};

struct slot {
    bool own_uid;    /* a uid of its own, or the caller's */
    bool own_clock;  /* the time namespace starts with the slot */
    bool own_groups; /* no group of the host is left in the credentials */
    bool host_enforces[LIMIT_COUNT];
    unsigned reach; /* REACH_*: its runs are granted just that */
    bool timed;
    int landlock;       /* the kernel's version of it; 0: none */
    int self;           /* pidfd of the launcher: can be read when it has ended */
    int counter;        /* processor time of the launcher and all it ever started; -1: none */
    int null;           /* /dev/null */
    int sockets;        /* the list of unix sockets in the slot's network namespace */
    bool has_modules;   /* they lie at TEMPLATE_MODULES */
    uint64_t token;     /* of our own system calls, see trusted.h */
    struct board board; /* of the sandbox of the moment */
    struct mounts_size scratch;    /* of the last run, which the next sandbox is built with */
    struct slot_stack first, code; /* of its first process, and of the code's until it executes */
};

/* 0, or negative with *failure set; the process can only end then. Resets signal dispositions.
 * Descriptor 3 must be taken, by something that no sandbox needs: the code may get one there. */
int slot_enter(struct slot *slot, const struct slot_options *options,
               struct failure *failure) AR_MUST_CHECK;

/* Frees what slot_enter() took, also after it failed; the namespaces are for the process's life. */
void slot_leave(struct slot *slot);

/* The highest address of a stack, where it begins, for a process that is about to be started. */
char *slot_stack_top(const struct slot_stack *stack);

/* Processor time so far, in microseconds, of the launcher and everything below it. -1: unknown. */
int64_t slot_processor_us(const struct slot *slot);

/* After the end of a run's last process: is anything of it left in the slot's network namespace?
 * (sockets.h) 0: there were no sockets; 1: there were, and the slot has served its last run; -ETIME:
 * they are still there. */
int slot_sweep_sockets(const struct slot *slot) AR_MUST_CHECK;

#endif
