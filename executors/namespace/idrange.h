/*
 * idrange.h - the range of host ids that a launcher started by root takes from, one for each slot.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_IDRANGE_H
#define AUDITRUN_EXECUTORS_NAMESPACE_IDRANGE_H

#include "protocol/base.h"

/* User ids and group ids alike. */
struct idrange {
    uint32_t first;
    uint32_t count;
};

/* Can these be ids of nobody? False with *problem, a phrase, where one of them cannot exist, is root
 * or is the id that the kernel shows for ids that it cannot show. Looks at nothing. */
bool idrange_is_right(const struct idrange *range, const char **problem) AR_MUST_CHECK;

/* Has nobody any of them, as far as this host tells: no user, no group, no subordinate ids but those
 * of root and of a user named auditrun, for whom they are reserved? Asks the name services, which
 * may load libraries and take a while. False with *problem. */
bool idrange_is_free(const struct idrange *range, const char **problem) AR_MUST_CHECK;

#endif
