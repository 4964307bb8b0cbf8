/*
 * subids.h - the subordinate ids that /etc/subuid and /etc/subgid give to a user (subuid(5)).
 *
 * Daemon and executors read the same files, and count the ids of a user in the same order: through all
 * of the user's lines, from the first one on. Whoever asks opens the file; these only read lines.
 */
#ifndef AUDITRUN_PROTOCOL_SUBIDS_H
#define AUDITRUN_PROTOCOL_SUBIDS_H

#include "protocol/base.h"

#include <stdio.h>
#include <sys/types.h>

#define SUBIDS_UIDS "/etc/subuid"
#define SUBIDS_GIDS "/etc/subgid"

/* The id with this number, from 0, among all that the file gives to the user, who is named there by
 * name (NULL: has none) or by number. 0 with *id set, 1 when the file gives none at all, 2 when it
 * gives fewer. A line that is not as subuid(5) says is passed over. */
int subids_find(FILE *file, const char *name, uid_t uid, uint32_t number,
                uint32_t *id) AR_MUST_CHECK;

/* All that the file gives to the user, in its order: at most max ranges, the others are left out. Returns
 * how many. */
struct subids_range {
    uint32_t first;
    uint32_t count;
};
size_t subids_list(FILE *file, const char *name, uid_t uid, struct subids_range *ranges,
                   size_t max) AR_MUST_CHECK;

/* Does the file give any of the count ids from first on to somebody else than these names and the
 * users with these numbers? */
struct subids_owner {
    const char *name;
    uid_t uid;
};
bool subids_are_taken(FILE *file, uint32_t first, uint32_t count, const struct subids_owner *owners,
                      size_t owner_count) AR_MUST_CHECK;

#endif
