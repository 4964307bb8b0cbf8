/*
 * idspace.h - a user namespace with all ids that may be given to slots, made by a daemon that is not root.
 */
#ifndef AUDITRUN_DAEMON_IDSPACE_H
#define AUDITRUN_DAEMON_IDSPACE_H

#include "protocol/base.h"

struct idspace {
    bool asked;      /* the daemon was started with what it takes */
    int fd;          /* the namespace, close-on-exec, above all numbers of spawn.h; -1: none */
    uint32_t count;  /* ids in it: 1 to count, of users and of groups */
    const char *why; /* asked, and there is none: a phrase, for the operator */
};

/* For the very start of the process, before it opens anything or starts a thread. As root, or without
 * CAP_SETUID and CAP_SETGID, nothing happens. Else it makes the namespace, as far as that can be, and then
 * gives up every capability for good and sets no_new_privs. 0, or -errno: the capabilities are still
 * there, and the process must end. */
int idspace_take(struct idspace *space) AR_MUST_CHECK;
void idspace_close(struct idspace *space);

#endif
