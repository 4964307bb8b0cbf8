/*
 * egress_account.h - what one run may reach through its proxy, and what it has used of it.
 *
 * Bounds and counters in one place, shared by the connections of the run: each byte and each refusal
 * passes here. Nothing of what code sends is kept; hosts are counted by the entries of the grant.
 */
#ifndef AUDITRUN_DAEMON_EGRESS_ACCOUNT_H
#define AUDITRUN_DAEMON_EGRESS_ACCOUNT_H

#include "daemon/egress.h"
#include "protocol/target.h"

/* Of one entry of the grant. */
struct egress_use {
    int64_t connections, bytes_in, bytes_out;
};

struct egress_account {
    struct usage_network totals;
    int64_t left;            /* bytes that may still go, both ways together */
    struct egress_use *uses; /* one for each entry; with "open" one, for everything */
};

/* 0 or -ENOMEM. */
int egress_account_init(struct egress_account *account,
                        const struct egress_start *start) AR_MUST_CHECK;
void egress_account_free(struct egress_account *account);

/* The use to count a target on, or NULL: it is not granted. By name or address as it was asked for, and
 * before anything is looked up. */
struct egress_use *egress_account_match(struct egress_account *account, const struct grant *grant,
                                        const struct target *target);

void egress_account_refused(struct egress_account *account);
void egress_account_connected(struct egress_account *account, struct egress_use *use);
/* Bytes that came from the network, or went to it: never more than are left. */
void egress_account_in(struct egress_account *account, struct egress_use *use, size_t bytes);
void egress_account_out(struct egress_account *account, struct egress_use *use, size_t bytes);

/* May this address be connected to? It is public and none of this host's own, or the configuration
 * says so. */
bool egress_account_permits(const struct config_network *config, const struct address *address);

#endif
