/*
 * peer.c - who is on the other end of a connection.
 *
 * Everything comes from the socket. "Cannot tell" is an error, and the caller treats it as no.
 */
#include "daemon/peer.h"

#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/unit.h"

#include <string.h>
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

/* What is known of the peer. Its unit costs a look into /proc, so that waits until a client asks. */
struct facts {
    int fd;
    struct ucred credentials;
    const gid_t *groups;
    size_t group_count;
    bool looked;
    char unit[UNIT_NAME_BYTES]; /* "": none, or it cannot be told */
};

static bool has_its_ids(const struct config_client *client, const struct facts *facts)
{
    if (client->uids.count == 0 && client->gids.count == 0)
        return true;
    if (has_id(&client->uids, facts->credentials.uid) ||
        has_id(&client->gids, facts->credentials.gid))
        return true;
    for (size_t i = 0; i < facts->group_count; i++)
        if (has_id(&client->gids, facts->groups[i]))
            return true;
    return false;
}

static bool has_its_unit(const struct config_client *client, struct facts *facts)
{
    if (client->units.count == 0)
        return true;
    if (!facts->looked && unit_of_peer(facts->fd, facts->unit) != 0)
        facts->unit[0] = '\0';
    facts->looked = true;
    return facts->unit[0] && text_list_has(&client->units, facts->unit);
}

/* Every kind that the section has must match. One that has none matches nobody (config.c). */
static bool matches(const struct config_client *client, struct facts *facts)
{
    return has_its_ids(client, facts) && has_its_unit(client, facts);
}

int peer_identify(int fd, const struct config *config, struct peer_client *out)
{
    struct facts facts = {.fd = fd};
    socklen_t length = sizeof facts.credentials;
    *out = (struct peer_client){0};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &facts.credentials, &length) != 0)
        return -errno;
    AR_AUTO_FREE gid_t *groups = NULL;
    int rc = read_groups(fd, &groups, &facts.group_count);
    if (rc < 0)
        return rc;
    facts.groups = groups;
    out->uid = facts.credentials.uid;
    out->gid = facts.credentials.gid;
    out->pid = facts.credentials.pid;
    for (size_t i = 0; i < config->client_count && !out->policy; i++)
        if (matches(&config->clients[i], &facts))
            out->policy = &config->clients[i];
    out->name = out->policy ? out->policy->name : NULL;
    return 0;
}

void peer_check_host(const struct config *config)
{
    int rc = 0;
    for (size_t i = 0; i < config->client_count; i++) {
        const struct config_client *client = &config->clients[i];
        if (client->units.count > 0 && (rc = unit_try()) < 0) {
            errno = -rc;
            log_warning("[client %s] has a unit and matches nobody: this kernel does not tell of "
                        "peers by descriptors (%m); that needs Linux 6.5, or name a uid instead",
                        client->name);
        }
    }
}
