/*
 * slot.h - what a provider prepares once and every sandbox of it uses.
 *
 * slot_enter() turns the process into a launcher: it lives in the slot's own user, mount, uts and
 * time namespaces, sees nothing of the host, can gain no privilege, and cannot be looked into. It
 * holds every capability in the slot's user namespace, because it builds sandboxes there.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_SLOT_H
#define AUDITRUN_EXECUTORS_NAMESPACE_SLOT_H

#include "executors/namespace/filter.h"

#include <sys/types.h>

#define SLOT_OWN_PROCESSES 2 /* launcher and first process: they count against RLIMIT_NPROC */

struct slot_options {
    uint32_t number;
    uint32_t uid_base; /* as root the slot is uid and gid uid_base + number on the host */
};

struct board;

struct slot {
    bool own_uid;         /* a uid of its own, or the caller's */
    bool own_clock;       /* the time namespace starts with the slot */
    bool own_groups;      /* no group of the host is left in the credentials */
    int self;             /* pidfd of the launcher: can be read when it has ended */
    int counter;          /* processor time of the launcher and all it ever started; -1: none */
    int null;             /* /dev/null */
    struct filter filter; /* compiled */
    struct board *board;  /* shared with the sandbox of the moment, see board.h */
    char *stack;          /* for the clone of the code's process */
    size_t stack_bytes;
};

/* 0, or negative with *failure set; the process can only end then. Resets signal dispositions. */
int slot_enter(struct slot *slot, const struct slot_options *options,
               struct failure *failure) AR_MUST_CHECK;

/* Frees what slot_enter() took, also after it failed; the namespaces are for the process's life. */
void slot_leave(struct slot *slot);

/* Processor time so far, in microseconds, of the launcher and everything below it. -1: unknown. */
int64_t slot_processor_us(const struct slot *slot);

#endif
