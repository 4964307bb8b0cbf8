/*
 * policy.h - whether what is asked is within what the configuration lets a client ask, and what it is
 * shown of what there is.
 *
 * Pure. A grant is within the ceilings when every part of it is: a pattern of hosts or methods only when
 * all that it covers is covered.
 */
#ifndef AUDITRUN_DAEMON_POLICY_H
#define AUDITRUN_DAEMON_POLICY_H

#include "daemon/config.h"
#include "protocol/envelope.h"

/* As it was asked, before grant_fill(). With hosts that are not "*", an open network is over them. */
bool policy_allows_grant(const struct config_ceilings *ceilings, const struct grant *grant);

/* Lowers each of these limits to its ceiling. A limit without a value stays without. */
void policy_lower(const struct config_ceilings *ceilings, struct limits *limits);

/* An envelope as this client has it: what it may not ask for is not offered. Owned; NULL when out of memory. */
json_t *policy_show(const struct config_client *client,
                    const struct envelope *envelope) AR_MUST_CHECK;

#endif
