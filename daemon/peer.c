/*
 * peer.c - who is on the other end of a connection.
 *
 * Everything comes from the socket. "Cannot tell" is an error, and the caller treats it as no.
 */
#include "daemon/peer.h"

#include "daemon/config.h"

#include <sys/socket.h>

#define PEER_MAX_GROUPS 65536 /* NGROUPS_MAX of Linux */

static bool has_id(const struct config_ids *ids, int64_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == id)
            return true;
    return false;
}

/* The peer's supplementary groups: malloc'd, or NULL with *count 0 when there are none. */
static int read_groups(int fd, gid_t **groups, size_t *count)
{
    socklen_t length = 0;
    *groups = NULL;
    *count = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) == 0)
        return 0;
    if (errno != ERANGE || length > PEER_MAX_GROUPS * sizeof(gid_t))
        return -errno;
    *groups = malloc(length);
    if (!*groups)
        return -ENOMEM;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, *groups, &length) != 0)
        return -errno;
    *count = length / sizeof(gid_t);
    return 0;
}

static bool matches(const struct config_client *client, const struct ucred *credentials,
                    const gid_t *groups, size_t count)
{
    if (has_id(&client->uids, credentials->uid) || has_id(&client->gids, credentials->gid))
        return true;
    for (size_t i = 0; i < count; i++)
        if (has_id(&client->gids, groups[i]))
            return true;
    return false;
}

int peer_identify(int fd, const struct config *config, struct peer_client *out)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    AR_AUTO_FREE gid_t *groups = NULL;
    size_t count;
    *out = (struct peer_client){0};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
        return -errno;
    int rc = read_groups(fd, &groups, &count);
    if (rc < 0)
        return rc;
    out->uid = credentials.uid;
    out->gid = credentials.gid;
    out->pid = credentials.pid;
    for (size_t i = 0; i < config->client_count && !out->policy; i++)
        if (matches(&config->clients[i], &credentials, groups, count))
            out->policy = &config->clients[i];
    out->name = out->policy ? out->policy->name : NULL;
    return 0;
}
