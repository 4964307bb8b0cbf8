/*
 * idspace.c - gives a daemon that is not root ids for its slots.
 *
 * Started with CAP_SETUID and CAP_SETGID (AmbientCapabilities= of the unit), the daemon makes one user
 * namespace in which the ids that /etc/subuid and /etc/subgid give to its user are 1, 2, 3 and so on,
 * keeps a descriptor of it, and drops every capability before it reads its configuration. Whoever made
 * a namespace may enter it, without any privilege: that is how a provider, which is the same user, gets
 * to the id of its slot (executors/namespace/ids.c). newuidmap could not do it, for it is set-uid and
 * the unit has NoNewPrivileges=yes. Nobody is root in there (user_namespaces(7)).
 *
 * The namespace is made by a child, because a process that enters one leaves its own; the maps are
 * written from outside, where the capabilities count.
 */
#include "daemon/idspace.h"

#include "protocol/subids.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FIRST_ID    1
#define MAX_IDS     (1U << 20) /* more than an executor can have slots */
#define MAX_RANGES  32
#define MAP_BYTES   2048 /* the kernel takes less than a page; MAX_RANGES lines have less than this */
#define FIRST_FD    16   /* above the numbers that a child's descriptors get (spawn.h) */
#define OVERFLOW_ID 65534

#define MASK(capability) (UINT32_C(1) << (capability))

struct capabilities {
    struct __user_cap_header_struct header;
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

/* ---- privileges ------------------------------------------------------------------------------- */

static int read_capabilities(struct capabilities *out)
{
    *out = (struct capabilities){.header = {.version = _LINUX_CAPABILITY_VERSION_3}};
    return syscall(SYS_capget, &out->header, out->data) == 0 ? 0 : -errno;
}

static bool may_map(void)
{
    const uint32_t needed = MASK(CAP_SETUID) | MASK(CAP_SETGID);
    struct capabilities now;
    return geteuid() != 0 && read_capabilities(&now) == 0 &&
           (now.data[0].effective & needed) == needed;
}

/* The bounding set takes CAP_SETPCAP to change. It counts for what is executed only, to which
 * no_new_privs gives nothing anyhow. */
static int drop_privileges(void)
{
    struct capabilities none = {.header = {.version = _LINUX_CAPABILITY_VERSION_3}}, left;
    for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_capset, &none.header, none.data) < 0)
        return -errno;
    int rc = read_capabilities(&left);
    for (size_t i = 0; rc == 0 && i < AR_COUNT(left.data); i++)
        if (left.data[i].permitted || left.data[i].effective || left.data[i].inheritable)
            rc = -EPERM;
    return rc;
}

/* ---- which ids -------------------------------------------------------------------------------- */

struct ranges {
    struct subids_range items[MAX_RANGES];
    size_t count;
    uint32_t ids;
};

static bool has(const struct subids_range *range, uint32_t id)
{
    return id >= range->first && id - range->first < range->count;
}

/* Keeps the first MAX_IDS. NULL, or what is wrong with them. */
static const char *bound(struct ranges *ranges)
{
    ranges->ids = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        struct subids_range *range = &ranges->items[i];
        if (has(range, 0) || has(range, OVERFLOW_ID) || has(range, geteuid()))
            return SUBIDS_UIDS " or " SUBIDS_GIDS " gives it an id of root, of nobody, or its own";
        if (range->count > MAX_IDS - ranges->ids)
            range->count = MAX_IDS - ranges->ids;
        ranges->ids += range->count;
        if (ranges->ids == MAX_IDS)
            ranges->count = i + 1;
    }
    return NULL;
}

static const char *find_ranges(const char *path, struct ranges *ranges)
{
    const struct passwd *user = getpwuid(geteuid());
    FILE *file = fopen(path, "re");
    ranges->count = 0;
    if (file) {
        ranges->count = subids_list(file, user ? user->pw_name : NULL, geteuid(), ranges->items,
                                    AR_COUNT(ranges->items));
        (void)fclose(file);
    }
    return ranges->count > 0 ? bound(ranges)
                             : SUBIDS_UIDS " and " SUBIDS_GIDS " give its user no ids";
}

/* ---- the namespace ---------------------------------------------------------------------------- */

/* Stays until the other end is closed. */
__attribute__((noreturn)) static void live_inside(int channel)
{
    char byte = 0;
    if (unshare(CLONE_NEWUSER) < 0 || send(channel, &byte, 1, MSG_NOSIGNAL) != 1)
        _exit(1);
    (void)recv(channel, &byte, 1, 0);
    _exit(0);
}

static int write_map(pid_t pid, const char *name, const struct ranges *ranges)
{
    char path[64], text[MAP_BYTES];
    size_t length = 0;
    uint32_t inside = FIRST_ID;
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    for (size_t i = 0; i < ranges->count && length < sizeof text; i++) {
        const struct subids_range *range = &ranges->items[i];
        length += (size_t)snprintf(text + length, sizeof text - length, "%u %u %u\n", inside,
                                   range->first, range->count);
        inside += range->count;
    }
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || length >= sizeof text)
        return fd < 0 ? -errno : -E2BIG;
    return write(fd, text, length) == (ssize_t)length ? 0 : -errno;
}

static const char *map_and_open(pid_t pid, const struct ranges *uids, const struct ranges *gids,
                                int *out)
{
    char path[64];
    if (write_map(pid, "uid_map", uids) < 0 || write_map(pid, "gid_map", gids) < 0)
        return "the kernel does not take the ids that " SUBIDS_UIDS " and " SUBIDS_GIDS " give";
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
    return *out < 0 ? "its user namespace cannot be opened" : NULL;
}

static const char *make_namespace(const struct ranges *uids, const struct ranges *gids, int *out)
{
    int ends[2];
    char byte;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return strerror(errno);
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        live_inside(ends[1]);
    }
    (void)close(ends[1]);
    const char *why = child < 0 ? strerror(errno) : "the kernel makes no user namespace for it";
    if (child > 0 && recv(ends[0], &byte, 1, 0) == 1)
        why = map_and_open(child, uids, gids, out);
    (void)close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return why;
}

static const char *make_space(struct idspace *space)
{
    struct ranges uids = {0}, gids = {0};
    const char *why = find_ranges(SUBIDS_UIDS, &uids);
    if (!why)
        why = find_ranges(SUBIDS_GIDS, &gids);
    if (!why)
        why = make_namespace(&uids, &gids, &space->fd);
    if (!why)
        space->count = uids.ids < gids.ids ? uids.ids : gids.ids;
    return why;
}

int idspace_take(struct idspace *space)
{
    *space = (struct idspace){.fd = -1};
    if (!may_map())
        return 0;
    space->asked = true;
    space->why = make_space(space);
    return drop_privileges();
}

void idspace_close(struct idspace *space)
{
    base_close(&space->fd);
    space->fd = -1;
}
