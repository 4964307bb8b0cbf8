/*
 * check_filter.c - the filter of system calls, call by call, in a child that is behind it.
 *
 * The calls are made with arguments that cannot do harm if the filter were not there.
 */
#include "executors/namespace/filter.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GARBAGE 0x7f00000000L

/* One call and what it must give: an errno, or -1 for success. */
struct call {
    long number;
    long arguments[5];
    int expected;
};

static const struct call calls[] = {
    {SYS_unshare, {CLONE_NEWUSER}, EPERM},
    {SYS_unshare, {0}, EPERM},
    {SYS_setns, {-1, 0}, EPERM},
    {SYS_clone, {CLONE_NEWUSER | SIGCHLD}, EPERM},
    {SYS_clone, {CLONE_NEWNET | SIGCHLD}, EPERM},
    {SYS_clone, {CLONE_NEWNS | SIGCHLD}, EPERM},
    {SYS_clone, {CLONE_NEWPID | CLONE_NEWIPC | SIGCHLD}, EPERM},
    {SYS_clone3, {0, 0}, ENOSYS},
    {SYS_openat2, {-1, 0, 0, 0}, ENOSYS},
    {SYS_mount, {0}, EPERM},
    {SYS_umount2, {0}, EPERM},
    {SYS_pivot_root, {0}, EPERM},
    {SYS_chroot, {0}, EPERM},
    {SYS_open_tree, {-1, 0, 0}, EPERM},
    {SYS_fsopen, {0}, EPERM},
    {SYS_ptrace, {0}, EPERM},
    {SYS_process_vm_readv, {0}, EPERM},
    {SYS_pidfd_getfd, {-1, 0, 0}, EPERM},
    {SYS_bpf, {-1}, EPERM},
    {SYS_perf_event_open, {0}, EPERM},
    {SYS_io_uring_setup, {0}, EPERM},
    {SYS_userfaultfd, {-1}, EPERM},
    {SYS_keyctl, {-1}, EPERM},
    {SYS_add_key, {0}, EPERM},
    {SYS_open_by_handle_at, {-1, 0, 0}, EPERM},
    {SYS_fanotify_init, {-1}, EPERM},
    {SYS_syslog, {-1}, EPERM},
    {SYS_reboot, {0}, EPERM},
    {SYS_clock_settime, {-1, 0}, EPERM},
    {SYS_setxattr, {0}, EOPNOTSUPP},
    {1000, {0}, ENOSYS},
    {SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, EAFNOSUPPORT},
    {SYS_socket, {AF_PACKET, SOCK_RAW, 0}, EAFNOSUPPORT},
    {SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
    {SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
    {SYS_socket, {AF_X25, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
    {SYS_socket, {GARBAGE | AF_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
    {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, -1},
    {SYS_socket, {AF_INET6, SOCK_STREAM, 0}, -1},
    {SYS_ioctl, {-1, TIOCSTI, 0}, EPERM},
    {SYS_ioctl, {-1, GARBAGE | TIOCSTI, 0}, EPERM},
    {SYS_ioctl, {-1, TIOCLINUX, 0}, EPERM},
    {SYS_ioctl, {-1, FIONREAD, 0}, EBADF},
    {SYS_prlimit64, {1, RLIMIT_CPU, 1, 0}, EPERM},
    {SYS_prlimit64, {GARBAGE | 1, RLIMIT_CPU, 1, 0}, EPERM},
    {SYS_prlimit64, {0, RLIMIT_CORE, 1, 0}, -1},
    {SYS_prlimit64, {0, RLIMIT_CPU, 0, 0}, -1},
    {SYS_setpriority, {PRIO_PROCESS, 1, 19}, EPERM},
    {SYS_setpriority, {PRIO_USER, 0, 19}, EPERM},
    {SYS_sched_setscheduler, {1, 0, 0}, EPERM},
    {SYS_fchmodat, {-1, 0, 0111}, EPERM},
    {SYS_fchmodat, {-1, 0, 0300}, EPERM},
    {SYS_fchmodat, {-1, (long)(intptr_t) "x", 0500}, EBADF},
    {SYS_fchmodat, {-1, (long)(intptr_t) "x", 0}, EBADF},
    {SYS_openat, {-1, (long)(intptr_t) "x", O_CREAT | O_WRONLY, 0111}, EPERM},
    {SYS_openat, {-1, (long)(intptr_t) ".", O_TMPFILE | O_WRONLY, 0100}, EPERM},
    {SYS_openat, {-1, (long)(intptr_t) "x", O_CREAT | O_WRONLY, 0755}, EBADF},
    {SYS_openat, {-1, (long)(intptr_t) "x", O_RDONLY, 0111}, EBADF},
    {SYS_mknodat, {-1, (long)(intptr_t) "x", 0111}, EPERM},
    {SYS_umask, {0777}, EPERM},
    {SYS_umask, {077}, -1},
    {SYS_prctl, {PR_TASK_PERF_EVENTS_DISABLE}, EPERM},
    {SYS_prctl, {PR_GET_DUMPABLE}, -1},
    {SYS_personality, {0xffffffff}, -1},
    {SYS_personality, {0}, -1},
    {SYS_personality, {0x0040000}, ENOSYS},
    {SYS_getpid, {0}, -1},
};

/* In the child: 0, or the number of the call, from 1, that did not give what it must. */
static int try_calls(void)
{
    struct filter filter;
    if (filter_compile(&filter) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        filter_install(&filter) < 0)
        return 255;
    for (size_t i = 0; i < AR_COUNT(calls); i++) {
        const long *a = calls[i].arguments;
        errno = 0;
        long result = syscall(calls[i].number, a[0], a[1], a[2], a[3], a[4]);
        int got = result < 0 ? errno : -1;
        if (got != calls[i].expected)
            return (int)i + 1;
    }
    return 0;
}

START_TEST(calls_give_what_they_must)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_calls());
    ck_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "call %d of the list", WEXITSTATUS(status));
}
END_TEST

#ifdef __x86_64__
START_TEST(x32_calls_kill)
{
    int status = 0;
    struct filter filter;
    pid_t pid = fork();
    if (pid == 0) {
        if (filter_compile(&filter) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            filter_install(&filter) < 0)
            _exit(1);
        (void)syscall(SYS_getpid | 0x40000000);
        _exit(2);
    }
    ck_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status %x", (unsigned)status);
}
END_TEST
#endif

int main(void)
{
    static const TTest **const tests[] = {&calls_give_what_they_must,
#ifdef __x86_64__
                                          &x32_calls_kill,
#endif
                                          NULL};
    static const struct unit_case cases[] = {{"filter", tests}};
    return unit_main("filter", cases, AR_COUNT(cases));
}
