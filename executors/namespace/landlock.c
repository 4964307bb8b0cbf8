/*
 * landlock.c - rules for the code's files, by the version of the kernel.
 *
 * All rights that the kernel knows are handled, so that what no rule allows is refused. No rule
 * allows TCP, but for connecting to one port where there is a network; the scopes keep abstract sockets and signals inside. Numbers are written out where the
 * headers of the C library may be older than the kernel.
 */
#include "executors/namespace/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>

#define NEWEST_VERSION 7

#define FS_READ \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_FIRST     ((1ull << 13) - 1) /* version 1: EXECUTE to MAKE_SYM */
#define FS_REFER     (1ull << 13)       /* 2 */
#define FS_TRUNCATE  (1ull << 14)       /* 3 */
#define FS_IOCTL_DEV (1ull << 15)       /* 5 */
#define NET_TCP      3ull               /* 4: bind and connect */
#define NET_CONNECT  2ull
#define RULE_PORT    2
#define SCOPES       3ull /* 6: abstract unix sockets, signals */

/* What makes sense on a file that is no folder. */
#define FS_OF_FILES                                                                              \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
     FS_TRUNCATE | FS_IOCTL_DEV)
/* What there is no use for in a folder of the host. */
#define FS_NOT_DATA                                                                              \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | FS_IOCTL_DEV)

/* struct landlock_ruleset_attr of version 6. */
struct ruleset {
    uint64_t fs, net, scoped;
};

/* struct landlock_net_port_attr */
struct port_rule {
    uint64_t rights, port;
};

static uint64_t all_of_files(int version)
{
    uint64_t rights = FS_FIRST;
    if (version >= 2)
        rights |= FS_REFER;
    if (version >= 3)
        rights |= FS_TRUNCATE;
    if (version >= 5)
        rights |= FS_IOCTL_DEV;
    return rights;
}

int landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return 0;
    return version < NEWEST_VERSION ? (int)version : NEWEST_VERSION;
}

static int allow(int ruleset, int folder, uint64_t rights)
{
    const struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = folder};
    return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
               ? -errno
               : 0;
}

static int allow_path(int ruleset, const char *path, uint64_t rights)
{
    AR_AUTO_CLOSE int folder = open(path, O_PATH | O_CLOEXEC);
    return folder < 0 ? -errno : allow(ruleset, folder, rights);
}

int landlock_allow(int ruleset, int version, int folder)
{
    return allow(ruleset, folder, all_of_files(version));
}

int landlock_allow_data(int ruleset, int version, int tree, bool folder)
{
    const uint64_t rights = all_of_files(version) & ~FS_NOT_DATA;
    return allow(ruleset, tree, folder ? rights : rights & FS_OF_FILES);
}

int landlock_allow_connect(int ruleset, int version, uint16_t port)
{
    const struct port_rule rule = {.rights = NET_CONNECT, .port = port};
    if (version < 4)
        return 0;
    return syscall(SYS_landlock_add_rule, ruleset, RULE_PORT, &rule, 0) < 0 ? -errno : 0;
}

int landlock_allow_program(int ruleset, int program)
{
    return allow(ruleset, program, LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE);
}

int landlock_make(int version, const int *writable, size_t count)
{
    const struct ruleset attr = {.fs = all_of_files(version),
                                 .net = version >= 4 ? NET_TCP : 0,
                                 .scoped = version >= 6 ? SCOPES : 0};
    const size_t bytes = version >= 6 ? sizeof(attr) : version >= 4 ? 16 : 8;
    AR_AUTO_CLOSE int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, bytes, 0);
    if (ruleset < 0)
        return -errno;
    int result = allow_path(ruleset, "/", FS_READ);
    if (result == 0)
        result = allow_path(ruleset, "/dev",
                            (LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV) &
                                all_of_files(version));
    for (size_t i = 0; result == 0 && i < count; i++)
        result = landlock_allow(ruleset, version, writable[i]);
    return result < 0 ? result : base_take_fd(&ruleset);
}

int landlock_enter(int ruleset)
{
    return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
