/*
 * paths.h - the host paths of a grant, opened so that nothing that is swapped afterwards matters.
 *
 * Each is resolved below the root that the configuration allows, without following any link, and
 * cloned from the descriptor that was found: a detached mount of that folder or file alone (nothing
 * that is mounted below it), read-only unless it is granted for writing, never with set-uid, devices
 * or execution. In it only the run's own user is anybody: what belongs to others can be read as far as
 * everybody may, and neither written to, nor connected to, be it a file, a pipe or a socket (the kernel
 * refuses to write to what belongs to an id that the mount does not know). To a folder that is granted
 * for writing the run is its owner, who must not be root: what code leaves there must not be root's.
 *
 * File systems that cannot map ids in a mount (mount_setattr(2)) cannot be given. All of this waits for
 * the file system: roots belong on local ones.
 */
#ifndef AUDITRUN_DAEMON_PATHS_H
#define AUDITRUN_DAEMON_PATHS_H

#include "daemon/config.h"

/* Can this daemon make such mounts? Tried with the roots of the configuration, until one works. */
bool paths_work(const struct config *config);

/* Can these paths be opened? Those that cannot (not there, a link on the way, neither folder nor
 * regular file, or root's where they are to be written) are added to *missing. 0, 1 when there are
 * such, -errno. */
int paths_check(const struct text_list *paths, const struct text_list *roots, bool writable,
                struct text_list *missing) AR_MUST_CHECK;

/* Mounts for the paths, in their order, into fds (as many), owned by the caller. user: of the run's
 * processes on the host, uid and gid. 0, 1 when one cannot be opened (any more),
 * -errno; then all are closed, and -1. */
int paths_open(const struct text_list *paths, const struct text_list *roots, bool writable,
               int64_t user, int *fds) AR_MUST_CHECK;

#endif
