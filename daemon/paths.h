/*
 * paths.h - the host paths of a grant, opened so that nothing that is swapped afterwards matters.
 *
 * Each is resolved below the root that the configuration allows, without following any link, and
 * cloned from the descriptor that was found: a detached mount of that folder or file alone (nothing
 * that is mounted below it), read-only unless it is granted for writing, never with set-uid, devices
 * or execution; where the file system can, its owner is the run's own user.
 */
#ifndef AUDITRUN_DAEMON_PATHS_H
#define AUDITRUN_DAEMON_PATHS_H

#include "daemon/config.h"

/* Can this daemon make such mounts? Tried with the first root of the configuration. */
bool paths_work(const struct config *config);

/* Can these paths be opened? Those that cannot (not there, a link on the way, neither folder nor
 * regular file) are added to *missing. 0, 1 when there are such, -errno. */
int paths_check(const struct text_list *paths, const struct text_list *roots,
                struct text_list *missing) AR_MUST_CHECK;

/* Mounts for the paths, in their order, into fds (as many), owned by the caller. owner: the uid on the
 * host that the run's files shall belong to, or -1. 0, 1 when one cannot be opened (any more),
 * -errno; then all are closed. */
int paths_open(const struct text_list *paths, const struct text_list *roots, bool writable,
               int64_t owner, int *fds) AR_MUST_CHECK;

#endif
