/*
 * check_filter_reach.c - the filter of system calls of slots that reach a network, host paths, or both:
 * what differs from check_filter.c.
 */
#include "executors/namespace/filter.h"
#include "tests/lib/filtered.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const struct filtered_call network_calls[] = {
    {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, -1},
    {SYS_socket, {AF_UNIX, SOCK_DGRAM, 0}, -1},
    {SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0}, -1},
    {SYS_socket, {AF_INET, SOCK_STREAM, 6}, -1},
    {SYS_socket, {AF_INET6, SOCK_STREAM, 0}, -1},
    {SYS_socket, {AF_INET6, FILTERED_GARBAGE | SOCK_STREAM, 6}, -1},
    {SYS_socket, {AF_INET, SOCK_DGRAM, 0}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 6}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_RAW, 0}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_INET6, SOCK_RAW, 6}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_SEQPACKET, 0}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_INET, 0, 0}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_INET, 15, 0}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_STREAM, 1}, EPROTONOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_STREAM, 5}, EPROTONOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_STREAM, 132}, EPROTONOSUPPORT},
    {SYS_socket, {AF_INET6, SOCK_STREAM, 262}, EPROTONOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_STREAM, -1}, EPROTONOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_STREAM, FILTERED_GARBAGE}, EPROTONOSUPPORT},
    {SYS_socket, {FILTERED_GARBAGE | AF_INET, SOCK_DGRAM, 0}, EAFNOSUPPORT},
    {SYS_socketpair, {AF_INET, SOCK_STREAM, 0, 0}, EAFNOSUPPORT},
    {SYS_setsockopt, {-1, 41, 32, 0, 0}, EPERM},                    /* flow labels */
    {SYS_setsockopt, {-1, 6, 31, 0, 0}, ENOENT},                    /* an upper layer */
    {SYS_setsockopt, {-1, FILTERED_GARBAGE | 6, 31, 0, 0}, ENOENT}, /* the same */
    {SYS_setsockopt, {-1, 6, 1, 0, 0}, EBADF},                      /* TCP_NODELAY */
    {SYS_fsync, {-1}, -1},
};

static const struct filtered_call file_calls[] = {
    {SYS_fsync, {-1}, EBADF},
    {SYS_fdatasync, {-1}, EBADF},
    {SYS_sync_file_range, {-1}, EBADF},
    {SYS_msync, {1, 1, MS_SYNC}, EINVAL},
    {SYS_sync, {0}, -1},
    {SYS_syncfs, {-1}, -1},
    {SYS_fchmod, {-1, 0755}, EBADF},
    {SYS_fchmod, {-1, 04755}, EPERM},
    {SYS_fchmod, {-1, 02755}, EPERM},
    {SYS_fchmod, {-1, FILTERED_GARBAGE | 04000}, EPERM},
    {SYS_fchmodat, {-1, (long)(intptr_t) "x", 04755}, EPERM},
    {SYS_fchmodat, {-1, (long)(intptr_t) "x", 02700}, EPERM},
    {SYS_fchmodat, {-1, (long)(intptr_t) "x", 01777}, EBADF},
    {SYS_openat, {-1, (long)(intptr_t) "x", O_CREAT | O_WRONLY, 04755}, EPERM},
    {SYS_openat, {-1, (long)(intptr_t) "x", O_CREAT | O_WRONLY, 02755}, EPERM},
    {SYS_openat, {-1, (long)(intptr_t) ".", O_TMPFILE | O_WRONLY, 04700}, EPERM},
    {SYS_openat, {-1, (long)(intptr_t) ".", O_TMPFILE | O_WRONLY, 02700}, EPERM},
    {SYS_openat, {-1, (long)(intptr_t) "x", O_RDONLY, 06755}, EBADF},
    {SYS_mknodat, {-1, (long)(intptr_t) "x", S_IFREG | 04755}, EPERM},
    {SYS_mknodat, {-1, (long)(intptr_t) "x", S_IFIFO | 02755}, EPERM},
    {SYS_mknodat, {-1, (long)(intptr_t) "x", S_IFIFO | 0600}, EBADF},
    {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, EACCES},
    {SYS_socket, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0}, EACCES},
    {SYS_socket, {AF_UNIX, SOCK_SEQPACKET, 0}, EACCES},
    {SYS_socket, {AF_INET, SOCK_STREAM, 0}, EAFNOSUPPORT},
    {SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, 0}, EFAULT},
    {SYS_socketpair, {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0}, EFAULT},
    {SYS_socketpair, {AF_UNIX, SOCK_DGRAM, 0, 0}, EACCES},
    {SYS_socketpair, {AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0, 0}, EACCES},
    {SYS_socketpair, {AF_UNIX, FILTERED_GARBAGE | SOCK_DGRAM, 0, 0}, EACCES},
};

static const struct filtered_call both_calls[] = {
    {SYS_socket, {AF_INET, SOCK_STREAM, 0}, -1},
    {SYS_socket, {AF_INET6, SOCK_STREAM, 6}, -1},
    {SYS_socket, {AF_INET, SOCK_DGRAM, 0}, ESOCKTNOSUPPORT},
    {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, EACCES},
    {SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, EAFNOSUPPORT},
    {SYS_socketpair, {AF_UNIX, SOCK_DGRAM, 0, 0}, EACCES},
    {SYS_setsockopt, {-1, 6, 31, 0, 0}, ENOENT},
    {SYS_fsync, {-1}, EBADF},
    {SYS_fchmod, {-1, 04755}, EPERM},
};

/* All of them, by what the slot reaches. */
static const struct {
    unsigned reach;
    const struct filtered_call *calls;
    size_t count;
} tables[] = {
    {REACH_NETWORK, network_calls, AR_COUNT(network_calls)},
    {REACH_FILES, file_calls, AR_COUNT(file_calls)},
    {REACH_NETWORK | REACH_FILES, both_calls, AR_COUNT(both_calls)},
};

START_TEST(calls_give_what_they_must)
{
    filtered_expect(tables[_i].reach, tables[_i].calls, tables[_i].count);
}
END_TEST

/* Each family, type and protocol, in slots with a network: TCP and unix sockets, and nothing else. */
START_TEST(sockets_of_a_network)
{
    static const unsigned reaches[] = {REACH_NETWORK, REACH_NETWORK | REACH_FILES};
    static const unsigned protocols[] = {0, IPPROTO_TCP, 1, 2, 3, 4, 5, 7, 8, 17, 58, 132, 262};
    const unsigned reach = reaches[_i];
    struct filter filter;
    ck_assert_int_eq(filter_compile(FILTERED_TOKEN, reach, &filter), 0);
    for (unsigned family = 0; family < 64; family++)
        for (unsigned type = 0; type < 16; type++)
            for (size_t i = 0; i < AR_COUNT(protocols); i++) {
                const bool internet = family == AF_INET || family == AF_INET6;
                const bool right = internet ? type == SOCK_STREAM && (i == 0 || i == 1)
                                            : family == AF_UNIX && !(reach & REACH_FILES);
                const struct seccomp_data data = {
                    .nr = SYS_socket,
                    .arch = FILTERED_NATIVE,
                    .args = {family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocols[i]}};
                if ((filtered_decide(&filter.conditions, &data) == SECCOMP_RET_ALLOW) != right)
                    ck_abort_msg("%u %u %u", family, type, protocols[i]);
            }
    filter_free(&filter);
}
END_TEST

int main(void)
{
    if (!filtered_is_possible()) {
        (void)puts("1..0 # SKIP there is no seccomp(2) here");
        return 77;
    }
    Suite *suite = suite_create("filter_reach");
    TCase *tcase = tcase_create("filter_reach");
    tcase_add_loop_test(tcase, calls_give_what_they_must, 0, AR_COUNT(tables));
    tcase_add_loop_test(tcase, sockets_of_a_network, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
