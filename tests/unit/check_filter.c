/*
 * check_filter.c - the filter of system calls, call by call, in a child that is behind it.
 *
 * This is the filter of slots that reach nothing; check_filter_reach.c has the others.
 */
#include "executors/namespace/filter.h"
#include "executors/namespace/trusted.h"
#include "tests/lib/filtered.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Numbers that are newer than the headers of some hosts. */
#define NR_MEMFD_SECRET   447
#define NR_CACHESTAT      451
#define NR_FCHMODAT2      452
#define NR_STATMOUNT      457
#define NR_LSM_SELF_ATTR  459
#define NR_SETXATTRAT     463
#define NR_OPEN_TREE_ATTR 467
#define NR_FILE_SETATTR   469

static const struct filtered_call calls[] = {
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
    {SYS_socket, {FILTERED_GARBAGE | AF_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
    {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, -1},
    {SYS_ioctl, {-1, TIOCSTI, 0}, EPERM},
    {SYS_ioctl, {-1, FILTERED_GARBAGE | TIOCSTI, 0}, EPERM},
    {SYS_ioctl, {-1, TIOCLINUX, 0}, EPERM},
    {SYS_ioctl, {-1, FIONREAD, 0}, EBADF},
    {SYS_prlimit64, {1, RLIMIT_CPU, 1, 0}, EPERM},
    {SYS_prlimit64, {FILTERED_GARBAGE | 1, RLIMIT_CPU, 1, 0}, EPERM},
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
    /* files */
    {NR_FCHMODAT2, {-1, 0, 0111, 0}, ENOSYS},
    {NR_SETXATTRAT, {0}, ENOSYS},
    {NR_FILE_SETATTR, {0}, ENOSYS},
    {SYS_inotify_init1, {0}, ENOSYS},
    {SYS_inotify_add_watch, {-1, 0, 0}, ENOSYS},
    {SYS_name_to_handle_at, {-1, 0}, EPERM},
    {SYS_fcntl, {0, F_NOTIFY, 0}, EINVAL},
    {SYS_fcntl, {0, FILTERED_GARBAGE | F_NOTIFY, 0}, EINVAL},
    {SYS_fsync, {-1}, -1},
    {SYS_fdatasync, {-1}, -1},
    {SYS_syncfs, {-1}, -1},
    {SYS_sync_file_range, {-1}, -1},
    {SYS_msync, {1, 1, MS_SYNC}, -1},
    {SYS_msync, {1, 1, MS_ASYNC}, EINVAL},
    {SYS_fadvise64, {-1, 0, 0, POSIX_FADV_DONTNEED}, -1},
    {SYS_fadvise64, {-1, 0, 0, POSIX_FADV_WILLNEED}, EBADF},
    {SYS_quotactl, {-1, 0}, EPERM},
    /* mounts and namespaces; CLONE_NEWTIME is a signal number to clone */
    {SYS_unshare, {CLONE_NEWTIME}, EPERM},
    {SYS_clone, {FILTERED_GARBAGE | CLONE_NEWUSER | SIGCHLD}, EPERM},
    {SYS_clone, {CLONE_NEWUTS | SIGCHLD}, EPERM},
    {SYS_clone, {CLONE_NEWCGROUP | SIGCHLD}, EPERM},
    {SYS_clone, {CLONE_NEWIPC | SIGCHLD}, EPERM},
    {SYS_fsconfig, {-1}, EPERM},
    {SYS_fsmount, {-1}, EPERM},
    {SYS_fspick, {-1}, EPERM},
    {SYS_move_mount, {-1}, EPERM},
    {SYS_mount_setattr, {-1}, EPERM},
    {NR_STATMOUNT, {0}, ENOSYS},
    {NR_OPEN_TREE_ATTR, {-1}, ENOSYS},
    /* other processes */
    {SYS_process_vm_writev, {0}, EPERM},
    {SYS_process_madvise, {-1}, EPERM},
    {SYS_kcmp, {0}, EPERM},
    {SYS_ptrace, {-1}, EPERM},
    {SYS_sched_setaffinity, {1, 0, 0}, EPERM},
    {SYS_sched_setaffinity, {FILTERED_GARBAGE | 1, 0, 0}, EPERM},
    {SYS_sched_setaffinity, {0, 0, 0}, EINVAL},
    {SYS_sched_setattr, {1, 0, 0}, EPERM},
    {SYS_ioprio_set, {1, 1, 0}, EPERM},
    {SYS_ioprio_set, {3, 0, 0}, EPERM},
    /* the kernel */
    {SYS_init_module, {0}, EPERM},
    {SYS_finit_module, {-1}, EPERM},
    {SYS_delete_module, {0}, EPERM},
    {SYS_kexec_load, {-1, -1, 0, -1}, EPERM},
    {SYS_swapon, {0}, EPERM},
    {SYS_acct, {1}, EPERM},
    {SYS_adjtimex, {0}, EPERM},
    {SYS_settimeofday, {1, 1}, EPERM},
    {SYS_request_key, {0}, EPERM},
    {SYS_io_uring_enter, {-1}, EPERM},
    {SYS_io_uring_register, {-1}, EPERM},
    {NR_LSM_SELF_ATTR, {0}, ENOSYS},
    /* memory */
    {NR_MEMFD_SECRET, {-1}, ENOSYS},
    {NR_CACHESTAT, {-1}, ENOSYS},
    {SYS_mmap, {0, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1}, ENOMEM},
    {SYS_mmap, {0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1}, EINVAL},
    {SYS_memfd_create, {0, MFD_HUGETLB}, ENOSYS},
    {SYS_memfd_create, {0, FILTERED_GARBAGE | MFD_HUGETLB}, ENOSYS},
    {SYS_memfd_create, {0, 0}, EFAULT},
    {SYS_shmget, {0, 1, 04000}, EPERM},
    {SYS_madvise, {1, 1, MADV_MERGEABLE}, EINVAL},
    {SYS_madvise, {0, 0, MADV_DONTNEED}, -1},
    {SYS_mbind, {0}, EPERM},
    {SYS_move_pages, {0}, EPERM},
    {SYS_userfaultfd, {0}, EPERM},
    {SYS_prctl, {35, 0, 0, 0, 0}, EPERM},                    /* PR_SET_MM */
    {SYS_prctl, {FILTERED_GARBAGE | 35, 0, 0, 0, 0}, EPERM}, /* the same */
    {SYS_prctl, {62, 1, 0, 0, 0}, EPERM},                    /* PR_SCHED_CORE */
    {SYS_prctl, {67, 1, 0, 0, 0}, EPERM},                    /* PR_SET_MEMORY_MERGE */
    {SYS_prctl, {PR_SET_DUMPABLE, 1, 0, 0, 0}, -1},
    /* no family but one */
    {SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 6}, EAFNOSUPPORT},
    {SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 17}, EAFNOSUPPORT},
    {SYS_socket, {AF_INET6, SOCK_DGRAM, 0}, EAFNOSUPPORT},
    {SYS_socket, {FILTERED_GARBAGE | AF_UNIX, SOCK_STREAM, 0}, EAFNOSUPPORT},
    {SYS_socketpair, {AF_INET, SOCK_STREAM, 0, 0}, EAFNOSUPPORT},
    {SYS_socket, {AF_UNIX, SOCK_SEQPACKET, 0}, -1},
    /* types of ioctl, on a pipe: what passes gets the kernel's answer */
    {SYS_ioctl, {-1, TCGETS, 0}, EBADF},
    {SYS_ioctl, {-1, FIONBIO, 0}, EBADF},
    {SYS_ioctl, {-1, 0x8912, 0}, EBADF},  /* SIOCGIFCONF */
    {SYS_ioctl, {-1, 0x8941, 0}, ENOTTY}, /* SIOCSIFBR */
    {SYS_ioctl, {-1, 0x8982, 0}, ENOTTY}, /* SIOCGIFVLAN */
    {SYS_ioctl, {-1, 0x89a3, 0}, ENOTTY}, /* SIOCBRDELIF */
    {SYS_ioctl, {-1, 0x89a4, 0}, EBADF},
    {SYS_ioctl, {-1, 0x80111500, 0}, ENOTTY}, /* FS_IOC_GETFSUUID */
    {SYS_ioctl, {-1, 0xb701, 0}, ENOTTY},     /* NS_GET_USERNS */
    {SYS_ioctl, {-1, 0x40086602, 0}, ENOTTY}, /* FS_IOC_SETFLAGS */
    {SYS_ioctl, {-1, 0x8400941f, 0}, ENOTTY}, /* BTRFS_IOC_FS_INFO */
    {SYS_ioctl, {-1, 0xff0b, 0}, ENOTTY},     /* of a pidfd */
    {SYS_ioctl, {-1, 0, 0}, ENOTTY},
};

START_TEST(calls_give_what_they_must)
{
    filtered_expect(0, calls, AR_COUNT(calls));
}
END_TEST

/* The list has each type of ioctl that is let through, and no other. */
START_TEST(types_of_ioctl)
{
    struct filter filter;
    ck_assert_int_eq(filter_compile(FILTERED_TOKEN, 0, &filter), 0);
    for (unsigned type = 0; type < 256; type++) {
        struct seccomp_data data = {
            .nr = SYS_ioctl, .arch = FILTERED_NATIVE, .args = {0, type << 8 | 0x01}};
        bool passes = type == 0x54 || type == 0x89;
        ck_assert_uint_eq(filtered_decide(&filter.conditions, &data),
                          passes ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOTTY);
        data.args[1] |= 0xc0100000ull << 8 | FILTERED_GARBAGE;
        ck_assert_uint_eq(filtered_decide(&filter.conditions, &data),
                          passes ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOTTY);
    }
    filter_free(&filter);
}
END_TEST

/* ---- calls that kill ---------------------------------------------------------------------------- */

#ifdef __x86_64__
static long call_by_x32(long number)
{
    return syscall(number | 0x40000000);
}

static long call_by_interrupt(long number)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "memory");
    return result;
}

/* Numbers of i386 and x86-64 differ; whichever it is, it kills. */
static const struct {
    long (*call)(long number);
    long number;
} entries[] = {
    {call_by_x32, SYS_getpid}, {call_by_x32, SYS_mount}, {call_by_x32, 520},
    {call_by_x32, 547},        {call_by_interrupt, 20},  {call_by_interrupt, 1},
    {call_by_interrupt, 120},  {call_by_interrupt, 310}, {call_by_interrupt, SYS_getpid},
};

START_TEST(other_entries_kill)
{
    int status = 0;
    struct filter filter;
    pid_t pid = fork();
    if (pid == 0) {
        if (filter_compile(FILTERED_TOKEN, 0, &filter) < 0 ||
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(&filter) < 0)
            _exit(1);
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler */
        (void)entries[_i].call(entries[_i].number);
        _exit(2);
    }
    ck_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
    /* A kernel without the 32-bit entry faults where others would kill. */
    bool faults =
        entries[_i].call == call_by_interrupt && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
    ck_assert_msg(faults || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS), "status %x",
                  (unsigned)status);
}
END_TEST
#endif

/* Whatever the number: kills, in both programs, by each architecture but the native one. */
START_TEST(other_architectures_kill)
{
    static const uint32_t others[] = {0, AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64,
                                      FILTERED_FOREIGN};
    struct filter filter;
    ck_assert_int_eq(filter_compile(FILTERED_TOKEN, 0, &filter), 0);
    for (size_t i = 0; i < AR_COUNT(others); i++) {
        for (int number = -1; number < 600; number++) {
            const struct seccomp_data data = {.nr = number, .arch = others[i]};
            ck_assert_uint_eq(filtered_decide(&filter.calls, &data), SECCOMP_RET_KILL_PROCESS);
            ck_assert_uint_eq(filtered_decide(&filter.conditions, &data), SECCOMP_RET_KILL_PROCESS);
        }
    }
    filter_free(&filter);
}
END_TEST

/* ---- lists and token ---------------------------------------------------------------------------- */

/* The next name of a list that is parted by blanks; "" at its end. */
static const char *next_name(const char **list, char name[64])
{
    *list += strspn(*list, " \n");
    size_t length = strcspn(*list, " \n");
    ck_assert_uint_lt(length, 64);
    memcpy(name, *list, length);
    name[length] = '\0';
    *list += length;
    return name;
}

/* Each name does what its list says, and what is in no list is not there. */
START_TEST(lists_are_what_the_program_does)
{
    static const uint32_t answers[] = {[FILTER_ALLOWED] = SECCOMP_RET_ALLOW,
                                       [FILTER_REFUSED] = SECCOMP_RET_ERRNO | EPERM,
                                       [FILTER_UNSUPPORTED] = SECCOMP_RET_ERRNO | EOPNOTSUPP};
    uint32_t expected[1024];
    char name[64];
    struct filter filter;

    ck_assert_int_eq(filter_compile(FILTERED_TOKEN, 0, &filter), 0);
    for (size_t i = 0; i < AR_COUNT(expected); i++)
        expected[i] = SECCOMP_RET_ERRNO | ENOSYS;
    expected[SYS_personality] = SECCOMP_RET_ALLOW; /* with 0, which is what is asked here */
    for (size_t answer = 0; answer < AR_COUNT(answers); answer++) {
        const char *list = filter_names((enum filter_answer)answer);
        while (*next_name(&list, name)) {
            int number = seccomp_syscall_resolve_name(name);
            if (number < 0)
                continue; /* of another architecture, or newer than this libseccomp */
            ck_assert_msg(expected[number] == (SECCOMP_RET_ERRNO | ENOSYS), "%s is there twice",
                          name);
            expected[number] = answers[answer];
        }
    }
    int error;
    for (size_t i = 0; filter_trusted(i, &error) != NULL; i++)
        expected[seccomp_syscall_resolve_name(filter_trusted(i, &error))] =
            SECCOMP_RET_ERRNO | (uint32_t)error;
    for (size_t i = 0; i < AR_COUNT(expected); i++) {
        const struct seccomp_data data = {.nr = (int)i, .arch = FILTERED_NATIVE};
        ck_assert_msg(filtered_decide(&filter.calls, &data) == expected[i], "call %zu", i);
    }
    filter_free(&filter);
}
END_TEST

/* The token opens the calls that are made with it, and these only; each bit of it counts. */
START_TEST(token_opens_what_it_is_for)
{
    struct filter filter;
    int error;
    const char *name;
    ck_assert_int_eq(filter_compile(FILTERED_TOKEN, 0, &filter), 0);
    for (size_t i = 0; (name = filter_trusted(i, &error)) != NULL; i++) {
        struct seccomp_data data = {.nr = seccomp_syscall_resolve_name(name),
                                    .arch = FILTERED_NATIVE};
        data.args[TRUSTED_ARGUMENT] = FILTERED_TOKEN;
        ck_assert_uint_eq(filtered_decide(&filter.calls, &data), SECCOMP_RET_ALLOW);
        for (unsigned bit = 0; bit < 64; bit++) {
            data.args[TRUSTED_ARGUMENT] = FILTERED_TOKEN ^ UINT64_C(1) << bit;
            ck_assert_uint_eq(filtered_decide(&filter.calls, &data),
                              SECCOMP_RET_ERRNO | (uint32_t)error);
        }
    }
    for (int number = 0; number < 600; number++) {
        struct seccomp_data data = {.nr = number, .arch = FILTERED_NATIVE};
        uint32_t without = filtered_decide(&filter.calls, &data);
        data.args[TRUSTED_ARGUMENT] = FILTERED_TOKEN;
        bool opens = false;
        for (size_t i = 0; (name = filter_trusted(i, &error)) != NULL; i++)
            opens = opens || seccomp_syscall_resolve_name(name) == number;
        ck_assert_uint_eq(filtered_decide(&filter.calls, &data),
                          opens ? SECCOMP_RET_ALLOW : without);
    }
    filter_free(&filter);
}
END_TEST

/* The child of our own clone gets namespaces, but a user namespace never. */
START_TEST(namespaces_need_the_token)
{
    static const uint32_t flags[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                     CLONE_NEWPID, CLONE_NEWNET,    CLONE_NEWUSER};
    struct filter filter;
    ck_assert_int_eq(filter_compile(FILTERED_TOKEN, 0, &filter), 0);
    for (size_t i = 0; i < AR_COUNT(flags); i++) {
        struct seccomp_data data = {
            .nr = SYS_clone, .arch = FILTERED_NATIVE, .args = {SIGCHLD | flags[i]}};
        ck_assert_uint_eq(filtered_decide(&filter.conditions, &data), SECCOMP_RET_ERRNO | EPERM);
        data.args[TRUSTED_CLONE_ARGUMENT] = FILTERED_TOKEN;
        ck_assert_uint_eq(filtered_decide(&filter.conditions, &data),
                          flags[i] == CLONE_NEWUSER ? SECCOMP_RET_ERRNO | EPERM
                                                    : SECCOMP_RET_ALLOW);
        data.args[TRUSTED_CLONE_ARGUMENT] = FILTERED_TOKEN ^ UINT64_C(1) << 63;
        ck_assert_uint_eq(filtered_decide(&filter.conditions, &data), SECCOMP_RET_ERRNO | EPERM);
        data.args[0] = SIGCHLD;
        ck_assert_uint_eq(filtered_decide(&filter.conditions, &data), SECCOMP_RET_ALLOW);
    }
    filter_free(&filter);
}
END_TEST

static const TTest **const made[] = {&calls_give_what_they_must, NULL};
static const TTest **const programs[] = {&types_of_ioctl,
                                         &other_architectures_kill,
                                         &lists_are_what_the_program_does,
                                         &token_opens_what_it_is_for,
                                         &namespaces_need_the_token,
                                         NULL};

int main(void)
{
    if (!filtered_is_possible()) {
        (void)puts("1..0 # SKIP there is no seccomp(2) here");
        return 77;
    }
    Suite *suite = suite_create("filter");
    static const struct unit_case cases[] = {{"calls", made}, {"programs", programs}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        TCase *tcase = tcase_create(cases[i].name);
        for (const TTest **const *test = cases[i].tests; *test; test++)
            tcase_add_test(tcase, **test);
        suite_add_tcase(suite, tcase);
    }
#ifdef __x86_64__
    TCase *kills = tcase_create("kills");
    tcase_add_loop_test(kills, other_entries_kill, 0, AR_COUNT(entries));
    suite_add_tcase(suite, kills);
#endif
    return suite_run(suite);
}
