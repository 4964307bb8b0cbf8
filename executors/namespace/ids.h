/*
 * ids.h - the user namespace of a slot and who it is on the host.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_IDS_H
#define AUDITRUN_EXECUTORS_NAMESPACE_IDS_H

#include "executors/namespace/step.h"

#include <sys/types.h>

#define IDS_INSIDE 1000 /* user and group id of the code, as it sees itself */

/* Enters a new user namespace in which IDS_INSIDE is the only id. Started by root, it stands for the
 * host's uid and gid own_id; by anybody else, for the caller's own. After it the process has every
 * capability in the new namespace and none outside. 0, or negative with *failure set. */
int ids_enter(bool root, uid_t own_id, struct failure *failure) AR_MUST_CHECK;

/* Becomes IDS_INSIDE, as root with no other group left. The kernel lets nobody look into the process
 * from then on, /proc/self included. 0 or -errno. */
int ids_become(bool root) AR_MUST_CHECK;

#endif
