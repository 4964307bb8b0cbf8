/*
 * egress_account.c - bounds and counters of one run's proxy.
 *
 * An address of the host itself may well be public; what listens there means the host's own peers, not
 * its runs. The kernel tells: a datagram socket that is connected to an own address has the same
 * address at its own end. Nothing is sent for that.
 */
#include "daemon/egress_account.h"

#include <sys/socket.h>

int egress_account_init(struct egress_account *account, const struct egress_start *start)
{
    *account = (struct egress_account){.left = start->config->max_bytes};
    account->uses = calloc(start->grant->hosts.count + 1, sizeof *account->uses);
    return account->uses ? 0 : -ENOMEM;
}

void egress_account_free(struct egress_account *account)
{
    free(account->uses);
    *account = (struct egress_account){0};
}

struct egress_use *egress_account_match(struct egress_account *account, const struct grant *grant,
                                        const struct target *target)
{
    if (grant->network == NETWORK_OPEN)
        return &account->uses[0];
    for (size_t i = 0; grant->network == NETWORK_ALLOWLIST && i < grant->hosts.count; i++)
        if (target_matches(target, grant->hosts.items[i]))
            return &account->uses[i];
    return NULL;
}

void egress_account_refused(struct egress_account *account)
{
    account->totals.refusals++;
}

void egress_account_connected(struct egress_account *account, struct egress_use *use)
{
    account->totals.connections++;
    use->connections++;
}

void egress_account_in(struct egress_account *account, struct egress_use *use, size_t bytes)
{
    account->totals.bytes_in += (int64_t)bytes;
    use->bytes_in += (int64_t)bytes;
    account->left -= (int64_t)bytes;
}

void egress_account_out(struct egress_account *account, struct egress_use *use, size_t bytes)
{
    account->totals.bytes_out += (int64_t)bytes;
    use->bytes_out += (int64_t)bytes;
    account->left -= (int64_t)bytes;
}

/* When it cannot be found out, it is: nothing is connected to then. */
static bool is_own(const struct address *address)
{
    struct sockaddr_storage there, here;
    struct address own;
    socklen_t length = address_to_sockaddr(address, 9, &there), size = sizeof here;
    AR_AUTO_CLOSE int fd = socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;
    if (connect(fd, (const struct sockaddr *)&there, length) != 0)
        return false; /* no way leads there, so it is not here */
    if (getsockname(fd, (struct sockaddr *)&here, &size) != 0 ||
        !address_from_sockaddr((const struct sockaddr *)&here, &own))
        return true;
    const struct address_range one = {.base = own, .prefix = own.is_v6 ? 128 : 32};
    return address_in_range(address, &one);
}

bool egress_account_permits(const struct config_network *config, const struct address *address)
{
    const struct config_ranges *allowed = &config->allowed;
    for (size_t i = 0; i < allowed->count; i++)
        if (address_in_range(address, &allowed->items[i]))
            return true;
    return address_is_allowed(address, NULL, 0) && !is_own(address);
}
