/*
 * peer.h - who is on the other end of a connection, and which client of the configuration that is.
 *
 * Credentials are those that the kernel noted when the socket was connected (SO_PEERCRED,
 * SO_PEERGROUPS; unix(7), socket(7)). The systemd unit is found by a descriptor of the peer (unit.h),
 * and only where a client asks for one. Nothing is looked up by a number that could be somebody
 * else's by now, so a peer that has gone, or whose pid is used again, is never taken for another.
 * A connection that was handed on counts as the one that opened it.
 */
#ifndef AUDITRUN_DAEMON_PEER_H
#define AUDITRUN_DAEMON_PEER_H

#include "protocol/base.h"

struct config;
struct config_client;

struct peer_client {
    const struct config_client *policy; /* NULL: matches nothing */
    const char *name;                   /* of the policy */
    int64_t uid, gid, pid;
};

/* Reads the credentials of a connected Unix socket and finds the first [client] that matches: by uid, gid
 * or supplementary gid if it has any of them, and by unit if it has that. It may be asked again of an open
 * connection, for another configuration; a peer that has ended since is then in no unit. 0 (policy may be
 * NULL: forbidden) or -errno: cannot tell, which means no. */
int peer_identify(int fd, const struct config *config, struct peer_client *out) AR_MUST_CHECK;

/* Says in the log which clients can match nobody, as this kernel cannot tell units. For the start and for
 * each configuration that is taken in. */
void peer_check_host(const struct config *config);

#endif
