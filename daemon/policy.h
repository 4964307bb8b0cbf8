/*
 * policy.h - whether what is asked is within what the configuration lets a client ask.
 *
 * Pure. A grant is within the ceilings when every part of it is: a pattern of hosts or methods only when
 * all that it covers is covered.
 */
#ifndef AUDITRUN_DAEMON_POLICY_H
#define AUDITRUN_DAEMON_POLICY_H

#include "daemon/config.h"

/* As it was asked, before grant_fill(). With hosts that are not "*", an open network is over them. */
bool policy_allows_grant(const struct config_ceilings *ceilings, const struct grant *grant);

/* Lowers each of these limits to its ceiling. A limit without a value stays without. */
void policy_lower(const struct config_ceilings *ceilings, struct limits *limits);

#endif
