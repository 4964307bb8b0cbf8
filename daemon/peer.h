/*
 * peer.h - who is on the other end of a connection, and which client of the configuration that is.
 *
 * Credentials are those that the kernel noted when the socket was connected (SO_PEERCRED,
 * SO_PEERGROUPS; unix(7), socket(7)); nothing is looked up by pid, so a peer that has gone, or whose
 * pid is used again, is never taken for somebody else. A connection that was handed on counts as the
 * one that opened it.
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

/* Reads the credentials of a connected Unix socket and finds the first [client] that matches by uid,
 * gid or supplementary gid. 0 (policy may be NULL: forbidden) or -errno: cannot tell, which means
 * no. */
int peer_identify(int fd, const struct config *config, struct peer_client *out) AR_MUST_CHECK;

#endif
