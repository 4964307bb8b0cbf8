/*
 * idrange.c - checks that a range of ids belongs to nobody.
 *
 * Whoever has an id in it could signal and look into a sandbox, and code in that sandbox could do so
 * to him. Users and groups are asked for in two ways, because a name service may refuse to list all
 * of its users: the list, and the first ids one by one. A user with subordinate ids can become each
 * of them.
 */
#include "executors/namespace/idrange.h"

#include "protocol/subids.h"

#include <grp.h>
#include <pwd.h>

#define OVERFLOW_ID      65534 /* "nobody", and whoever has no id in a user namespace */
#define ASKED_ONE_BY_ONE 16
#define OWNER_NAME       "auditrun"

static bool has(const struct idrange *range, uint32_t id)
{
    return id >= range->first && id - range->first < range->count;
}

bool idrange_is_right(const struct idrange *range, const char **problem)
{
    uint32_t last;
    *problem = NULL;
    if (range->count == 0)
        *problem = "the range of ids is empty";
    else if (!base_add(range->first, range->count - 1, &last) || last == UINT32_MAX)
        *problem = "the range of ids ends beyond the last id";
    else if (has(range, 0))
        *problem = "the range of ids contains root";
    else if (has(range, OVERFLOW_ID))
        *problem = "the range of ids contains 65534, which is nobody's and everybody's";
    return *problem == NULL;
}

static bool has_user(const struct idrange *range)
{
    const struct passwd *user;
    bool found = false;
    setpwent();
    while (!found && (user = getpwent()) != NULL)
        found = has(range, user->pw_uid);
    endpwent();
    for (uint32_t i = 0; !found && i < range->count && i < ASKED_ONE_BY_ONE; i++)
        found = getpwuid(range->first + i) != NULL;
    return found;
}

static bool has_group(const struct idrange *range)
{
    const struct group *group;
    bool found = false;
    setgrent();
    while (!found && (group = getgrent()) != NULL)
        found = has(range, group->gr_gid);
    endgrent();
    for (uint32_t i = 0; !found && i < range->count && i < ASKED_ONE_BY_ONE; i++)
        found = getgrgid(range->first + i) != NULL;
    return found;
}

/* A file that is not there gives nobody anything. */
static bool is_taken_in(const char *path, const struct idrange *range)
{
    const struct passwd *user = getpwnam(OWNER_NAME);
    const struct subids_owner owners[] = {{"root", 0}, {OWNER_NAME, user ? user->pw_uid : 0}};
    FILE *file = fopen(path, "re");
    if (!file)
        return errno != ENOENT;
    bool taken = subids_are_taken(file, range->first, range->count, owners, AR_COUNT(owners));
    (void)fclose(file);
    return taken;
}

bool idrange_is_free(const struct idrange *range, const char **problem)
{
    *problem = NULL;
    if (has_user(range))
        *problem = "the range of ids contains the id of a user";
    else if (has_group(range))
        *problem = "the range of ids contains the id of a group";
    else if (is_taken_in(SUBIDS_UIDS, range))
        *problem = "the range of ids overlaps one in " SUBIDS_UIDS " that is somebody else's";
    else if (is_taken_in(SUBIDS_GIDS, range))
        *problem = "the range of ids overlaps one in " SUBIDS_GIDS " that is somebody else's";
    return *problem == NULL;
}
