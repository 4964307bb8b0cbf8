/*
 * ids.h - the user namespace of a slot and who it is on the host.
 *
 * Started by root, a slot has an id of a configured range. Started by anybody else it has one of the
 * subordinate ids that /etc/subuid and /etc/subgid give to that user: out of the id space that the daemon
 * hands over, if it does (docs/executors.md), else written into the map by the set-uid helpers newuidmap
 * and newgidmap. Where there are none it is the caller himself.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_IDS_H
#define AUDITRUN_EXECUTORS_NAMESPACE_IDS_H

#include "executors/namespace/idrange.h"
#include "executors/namespace/step.h"

#include <sys/types.h>

#define IDS_INSIDE 1000 /* user and group id of the code, as it sees itself */

/* Who a slot is on the host. */
struct ids {
    bool own;       /* ids that nobody else has; false: those of the caller */
    bool by_helper; /* written into the map by newuidmap and newgidmap */
    int space;      /* a user namespace in which uid and gid are meant; -1: the host's */
    uid_t uid;
    gid_t gid;
};

/* Finds the ids of the slot with this number. The range counts only for root, space (-1: none; *ids
 * borrows it) only for anybody else. 0 with *ids; 1 with *problem, a phrase, where the number is beyond
 * what there is; -errno. May ask the name services, except as root. */
int ids_choose(const struct idrange *range, int space, uint32_t number, struct ids *ids,
               const char **problem) AR_MUST_CHECK;

/* Enters a new user namespace in which IDS_INSIDE is the only id and stands for these. Where a helper
 * refuses, the ids become the caller's, and *ids says so. After it the process has every capability
 * in the new namespace and none outside, and this process's descriptor of the space is closed. 0, or negative with *failure set. */
int ids_take(struct ids *ids, struct failure *failure) AR_MUST_CHECK;

/* Becomes IDS_INSIDE, with ids of its own also without any other group. The kernel lets nobody look
 * into the process from then on, /proc/self included. 0 or -errno. */
int ids_become(bool own) AR_MUST_CHECK;

#endif
