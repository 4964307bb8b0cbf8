/*
 * unit.h - which systemd unit a peer belongs to, by its control group.
 *
 * The service manager puts the processes of each unit into a control group that has the unit's name, and
 * only who may write to the hierarchy can move a process. What a unit makes below its own group is its own
 * business and never looked at: a folder there may have any name.
 */
#ifndef AUDITRUN_DAEMON_UNIT_H
#define AUDITRUN_DAEMON_UNIT_H

#include "protocol/base.h"

#define UNIT_NAME_BYTES 256 /* with the NUL: the longest name that systemd takes is 255 bytes */

/* Is it the name of a unit that has processes of its own: NAME.service, NAME@INSTANCE.service,
 * NAME.scope? */
bool unit_is_name(const char *text);

/* From the text of /proc/PID/cgroup (cgroups(7)): the first part of the path that is no slice, in the
 * unified hierarchy or in that of systemd's own (version 1, name=systemd). 0; 1 when there is none or it
 * cannot be told: a path that leads outside ("..") or to a group that has gone ("(deleted)"), two
 * hierarchies that do not agree. */
int unit_from_groups(const char *text, char unit[UNIT_NAME_BYTES]) AR_MUST_CHECK;

/* The unit of the process that opened this connection. The kernel gives a descriptor for that very
 * process (SO_PEERPIDFD), and it still runs after its control group has been read: so what was read
 * was not another process with the same number. 0; 1 when it is in no unit, has gone, or cannot be seen
 * in our /proc; -errno, -ENOPROTOOPT where the kernel has no such descriptors (before Linux 6.5). */
int unit_of_peer(int fd, char unit[UNIT_NAME_BYTES]) AR_MUST_CHECK;

/* Can units be told on this host? 0 or -errno: why not. */
int unit_try(void) AR_MUST_CHECK;

#endif
