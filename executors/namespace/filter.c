/*
 * filter.c - the filter of system calls.
 *
 * The first program is an allow-list: a call that it does not name gets ENOSYS, as from a kernel
 * that does not have it, so that libraries fall back; one that only an attack or an administrator
 * would make gets EPERM. The second looks at arguments. Two rules there are not obvious:
 *   - nobody may change how another process (the sandbox's own first one) is scheduled or limited;
 *   - nobody may make a file that can be executed but not read, or switch counters off: the kernel
 *     stops counting the processor time of a process that runs one, and so the limit on it would
 *     not hold.
 * What would only reach the host's disk, by way of the read-only pieces, is answered as done: no
 * file of a sandbox outlives it. Arguments that the kernel cuts to 32 bits are compared under a mask
 * of 32 bits. What a run may reach (reach.h) opens a few things and closes others: with a network
 * there are TCP sockets, with host paths files outlive their sandbox, and sockets of the host's
 * services lie in its folders. docs/security-model.md has the tables of this file; a test compares them.
 */
#include "executors/namespace/filter.h"

#include "executors/namespace/trusted.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Newer than the headers of some hosts; the last clashes with those of the C library. */
#ifndef PR_SCHED_CORE
#    define PR_SCHED_CORE 62
#endif
#ifndef PR_SET_MEMORY_MERGE
#    define PR_SET_MEMORY_MERGE 67
#endif
#ifndef IPV6_FLOWLABEL_MGR
#    define IPV6_FLOWLABEL_MGR 32
#endif

#define LOW            0xffffffffULL
#define REFUSE(error)  SCMP_ACT_ERRNO(error)
#define MAX_NAME_BYTES 64

/* Names that this libseccomp or this architecture does not have are skipped. */
static const char allowed[] =
    /* files and folders */
    "access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 "
    "faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchown fchownat fcntl "
    "fdatasync fgetxattr flistxattr flock fstat fstatfs fsync ftruncate futimesat getcwd "
    "getdents getdents64 getxattr ioctl lchown lgetxattr link linkat listxattr llistxattr "
    "lseek lstat mkdir mkdirat mknod mknodat newfstatat open openat pread64 preadv preadv2 "
    "pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv rename renameat "
    "renameat2 rmdir sendfile splice stat statfs statx symlink symlinkat sync "
    "sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat utimes "
    "vmsplice write writev "
    /* memory */
    "brk get_mempolicy madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap "
    "mprotect mremap msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect "
    "map_shadow_stack mseal "
    /* processes and threads */
    "arch_prctl capget capset clone execve execveat exit exit_group fork futex futex_requeue "
    "futex_wait futex_waitv futex_wake get_robust_list getcpu getegid geteuid getgid "
    "getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit "
    "getrusage getsid gettid getuid ioprio_get ioprio_set landlock_add_rule "
    "landlock_create_ruleset landlock_restrict_self pidfd_open pidfd_send_signal prctl "
    "prlimit64 rseq sched_get_priority_max sched_get_priority_min sched_getaffinity "
    "sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity "
    "sched_setattr sched_setparam sched_setscheduler sched_yield seccomp set_robust_list "
    "set_thread_area get_thread_area set_tid_address setfsgid setfsuid setgid setgroups "
    "setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid "
    "sysinfo times uname vfork wait4 waitid getrandom "
    /* signals and time */
    "alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday kill nanosleep "
    "pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo "
    "rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo setitimer sigaltstack "
    "signalfd signalfd4 tgkill time timer_create timer_delete timer_getoverrun timer_gettime "
    "timer_settime timerfd_create timerfd_gettime timerfd_settime tkill "
    /* waiting, pipes, sockets, messages */
    "accept accept4 bind connect epoll_create epoll_create1 epoll_ctl epoll_pwait "
    "epoll_pwait2 epoll_wait eventfd eventfd2 getpeername getsockname getsockopt listen "
    "mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget "
    "msgrcv msgsnd pipe pipe2 poll ppoll pselect6 recvfrom recvmmsg recvmsg select semctl "
    "semget semop semtimedop sendmmsg sendmsg sendto setsockopt shmat shmctl shmdt shmget "
    "shutdown socket socketpair ";

/* Refused as not permitted, instead of not there. */
static const char refused[] =
    "acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module "
    "fanotify_init fanotify_mark finit_module fsconfig fsmount fsopen fspick init_module "
    "io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load "
    "kexec_load keyctl lookup_dcookie mbind migrate_pages modify_ldt "
    "move_pages name_to_handle_at open_by_handle_at open_tree perf_event_open "
    "pidfd_getfd pivot_root process_madvise process_mrelease process_vm_readv "
    "process_vm_writev ptrace quotactl quotactl_fd reboot request_key set_mempolicy "
    "setdomainname sethostname setns settimeofday swapoff swapon syslog umount2 unshare "
    "userfaultfd vhangup ";

/* What the launcher and the first process still do, with the token. */
static const struct {
    const char *name;
    int error; /* without it */
} trusted[] = {
    {"mount", EPERM}, {"mount_setattr", EPERM}, {"move_mount", EPERM}, {"openat2", ENOSYS}};

/* Extended attributes would be another way to take read permission away (access lists). */
static const char unsupported[] =
    "fremovexattr fsetxattr lremovexattr lsetxattr removexattr setxattr ";

#define COMPARED(argument, how, a, b)                                  \
    {                                                                  \
        .arg = (argument), .op = (how), .datum_a = (a), .datum_b = (b) \
    }
#define MASKED(argument, mask, value) COMPARED(argument, SCMP_CMP_MASKED_EQ, mask, value)
#define DIFFERS(argument, value)      COMPARED(argument, SCMP_CMP_NE, value, 0)
#define ABOVE(argument, value)        COMPARED(argument, SCMP_CMP_GT, value, 0)
#define EQUALS(argument, value)       COMPARED(argument, SCMP_CMP_EQ, value, 0)

/* Executable by its owner, but not readable. */
#define UNREADABLE(argument) MASKED(argument, S_IXUSR | S_IRUSR, S_IXUSR)
#define CREATES(argument)    MASKED(argument, O_CREAT, O_CREAT)
#define UNNAMED(argument)    MASKED(argument, (O_TMPFILE & ~O_DIRECTORY), (O_TMPFILE & ~O_DIRECTORY))

/* Which slots a condition is for. */
enum where { ALL, WITH_NETWORK, WITHOUT_NETWORK, WITH_FILES, WITHOUT_FILES };
static const struct {
    unsigned mask, reach;
    const char *word;
} wheres[] = {
    [ALL] = {0, 0, "all"},
    [WITH_NETWORK] = {REACH_NETWORK, REACH_NETWORK, "with a network"},
    [WITHOUT_NETWORK] = {REACH_NETWORK, 0, "without a network"},
    [WITH_FILES] = {REACH_FILES, REACH_FILES, "with host paths"},
    [WITHOUT_FILES] = {REACH_FILES, 0, "without host paths"},
};

struct condition {
    const char *name;
    int error; /* 0: pretend success */
    unsigned count;
    struct scmp_arg_cmp compare[2];
    const char *when; /* in words, for people */
    enum where where;
};

#define MAKES_UNREADABLE "it makes a file executable but not readable"
#define OF_ANOTHER       "it changes another process"
#define TAKES_HUGE_PAGES "it takes huge pages"
#define ON_THE_DISK      "always"

/* Where clone(2) has its flags. */
#ifdef __s390__
#    define CLONE_FLAGS 1
#else
#    define CLONE_FLAGS 0
#endif

/* A file that somebody else on the host may execute must not make him its owner. */
#define SETS_AN_ID "it sets a set-uid or set-gid bit"
#define SETS(argument, name)                                                         \
    {name, EPERM, 1, {MASKED(argument, S_ISUID, S_ISUID)}, SETS_AN_ID, WITH_FILES},  \
    {                                                                                \
        name, EPERM, 1, {MASKED(argument, S_ISGID, S_ISGID)}, SETS_AN_ID, WITH_FILES \
    }
#define SETS_NEW(argument, name, makes)                                                     \
    {name, EPERM, 2, {makes, MASKED(argument, S_ISUID, S_ISUID)}, SETS_AN_ID, WITH_FILES},  \
    {                                                                                       \
        name, EPERM, 2, {makes, MASKED(argument, S_ISGID, S_ISGID)}, SETS_AN_ID, WITH_FILES \
    }

/* Families of sockets. Internet sockets: the type without its flags is 1, the protocol 0 or TCP. */
#define OF_A_NETWORK "its family is another than AF_UNIX"
#define OF_OTHERS    "its family is another than AF_UNIX, AF_INET and AF_INET6"
#define OF_FAMILY(compare)                                            \
    {                                                                 \
        "socket", EAFNOSUPPORT, 1, {compare}, OF_OTHERS, WITH_NETWORK \
    }
#define OF_TYPE(family, mask, value)                                               \
    {                                                                              \
        "socket", ESOCKTNOSUPPORT, 2, {EQUALS(0, family), MASKED(1, mask, value)}, \
            "it is an internet socket, but not of a stream", WITH_NETWORK          \
    }
#define OF_PROTOCOL(family, compare)                                              \
    {                                                                             \
        "socket", EPROTONOSUPPORT, 2, {EQUALS(0, family), compare},               \
            "it is an internet socket of another protocol than TCP", WITH_NETWORK \
    }
#define INTERNET(family)                                                                        \
    OF_TYPE(family, 1, 0), OF_TYPE(family, 2, 2), OF_TYPE(family, 4, 4), OF_TYPE(family, 8, 8), \
        OF_PROTOCOL(family, EQUALS(2, 1)), OF_PROTOCOL(family, MASKED(2, ~1ULL, 2)),            \
        OF_PROTOCOL(family, MASKED(2, ~1ULL, 4)), OF_PROTOCOL(family, ABOVE(2, IPPROTO_TCP))

#define FLOW_LABELS MASKED(1, LOW, IPPROTO_IPV6), MASKED(2, LOW, IPV6_FLOWLABEL_MGR)
/* TLS and others in the kernel. */
#define UPPER_LAYER MASKED(1, LOW, IPPROTO_TCP), MASKED(2, LOW, TCP_ULP)

/* Of any socket: bridges and VLANs, for which the kernel loads modules before it asks who wants it. */
#define BRIDGES(first, others) MASKED(1, LOW & ~(uint64_t)(others), first)
#define ASKS_FOR_MODULES       "it is about bridges or VLANs"

/* All terms of a condition must hold. */
static const struct condition conditions[] = {
    {"chmod", EPERM, 1, {UNREADABLE(1)}, MAKES_UNREADABLE, ALL},
    {"fchmod", EPERM, 1, {UNREADABLE(1)}, MAKES_UNREADABLE, ALL},
    {"fchmodat", EPERM, 1, {UNREADABLE(2)}, MAKES_UNREADABLE, ALL},
    {"creat", EPERM, 1, {UNREADABLE(1)}, MAKES_UNREADABLE, ALL},
    {"mknod", EPERM, 1, {UNREADABLE(1)}, MAKES_UNREADABLE, ALL},
    {"mknodat", EPERM, 1, {UNREADABLE(2)}, MAKES_UNREADABLE, ALL},
    {"open", EPERM, 2, {CREATES(1), UNREADABLE(2)}, MAKES_UNREADABLE, ALL},
    {"open", EPERM, 2, {UNNAMED(1), UNREADABLE(2)}, MAKES_UNREADABLE, ALL},
    {"openat", EPERM, 2, {CREATES(2), UNREADABLE(3)}, MAKES_UNREADABLE, ALL},
    {"openat", EPERM, 2, {UNNAMED(2), UNREADABLE(3)}, MAKES_UNREADABLE, ALL},
    {"umask", EPERM, 1, {MASKED(0, S_IRUSR, S_IRUSR)}, "it keeps an owner from reading", ALL},

    SETS(1, "chmod"),
    SETS(1, "fchmod"),
    SETS(2, "fchmodat"),
    SETS(1, "creat"),
    SETS(1, "mknod"),
    SETS(2, "mknodat"),
    SETS_NEW(2, "open", CREATES(1)),
    SETS_NEW(2, "open", UNNAMED(1)),
    SETS_NEW(3, "openat", CREATES(2)),
    SETS_NEW(3, "openat", UNNAMED(2)),

    {"prlimit64", EPERM, 2, {DIFFERS(0, 0), DIFFERS(2, 0)}, OF_ANOTHER, ALL},
    {"prlimit64", 0, 2, {MASKED(1, LOW, RLIMIT_CORE), DIFFERS(2, 0)}, "it sets the core size", ALL},
    {"setrlimit", 0, 1, {MASKED(0, LOW, RLIMIT_CORE)}, "it sets the core size", ALL},
    {"setpriority", EPERM, 1, {DIFFERS(1, 0)}, OF_ANOTHER, ALL},
    {"setpriority",
     EPERM,
     1,
     {MASKED(0, LOW, PRIO_USER)},
     "it changes all processes of a user",
     ALL},
    {"ioprio_set", EPERM, 1, {DIFFERS(1, 0)}, OF_ANOTHER, ALL},
    {"ioprio_set", EPERM, 1, {MASKED(0, LOW, 3)}, "it changes all processes of a user", ALL},
    {"sched_setattr", EPERM, 1, {DIFFERS(0, 0)}, OF_ANOTHER, ALL},
    {"sched_setparam", EPERM, 1, {DIFFERS(0, 0)}, OF_ANOTHER, ALL},
    {"sched_setscheduler", EPERM, 1, {DIFFERS(0, 0)}, OF_ANOTHER, ALL},
    {"sched_setaffinity", EPERM, 1, {MASKED(0, LOW, 1)}, "it changes the first process", ALL},

    {"prctl", EPERM, 1, {MASKED(0, LOW, PR_TASK_PERF_EVENTS_DISABLE)}, "it stops counters", ALL},
    {"prctl", EPERM, 1, {MASKED(0, LOW, PR_SET_MM)}, "it rewrites the map of the memory", ALL},
    {"prctl", EPERM, 1, {MASKED(0, LOW, PR_SCHED_CORE)}, "it takes a core for itself", ALL},
    {"prctl", EPERM, 1, {MASKED(0, LOW, PR_SET_MEMORY_MERGE)}, "it shares equal pages", ALL},
    {"madvise", EINVAL, 1, {MASKED(2, LOW, MADV_MERGEABLE)}, "it shares equal pages", ALL},

    /* The host's huge pages are in no account, and few. */
    {"mmap", ENOMEM, 1, {MASKED(3, MAP_HUGETLB, MAP_HUGETLB)}, TAKES_HUGE_PAGES, ALL},
    {"memfd_create", ENOSYS, 1, {MASKED(1, MFD_HUGETLB, MFD_HUGETLB)}, TAKES_HUGE_PAGES, ALL},
    {"shmget", EPERM, 1, {MASKED(2, SHM_HUGETLB, SHM_HUGETLB)}, TAKES_HUGE_PAGES, ALL},

    {"sync", 0, 0, {{0}}, ON_THE_DISK, ALL},
    {"syncfs", 0, 0, {{0}}, ON_THE_DISK, ALL},
    {"fsync", 0, 0, {{0}}, ON_THE_DISK, WITHOUT_FILES},
    {"fdatasync", 0, 0, {{0}}, ON_THE_DISK, WITHOUT_FILES},
    {"sync_file_range", 0, 0, {{0}}, ON_THE_DISK, WITHOUT_FILES},
    {"msync", 0, 1, {MASKED(2, MS_SYNC, MS_SYNC)}, "it waits for the disk", WITHOUT_FILES},
    {"fadvise64", 0, 1, {MASKED(3, LOW, POSIX_FADV_DONTNEED)}, "it empties the cache", ALL},
    {"fcntl", EINVAL, 1, {MASKED(1, LOW, F_NOTIFY)}, "it watches a folder", ALL},

    {"ioctl", EPERM, 1, {MASKED(1, LOW, TIOCSTI)}, "it types into a terminal", ALL},
    {"ioctl", EPERM, 1, {MASKED(1, LOW, TIOCLINUX)}, "it types into a terminal", ALL},

    {"ioctl", ENOTTY, 1, {BRIDGES(0x8940, 1)}, ASKS_FOR_MODULES, ALL},
    {"ioctl", ENOTTY, 1, {BRIDGES(0x8982, 1)}, ASKS_FOR_MODULES, ALL},
    {"ioctl", ENOTTY, 1, {BRIDGES(0x89a0, 3)}, ASKS_FOR_MODULES, ALL},

    /* There is no network; and what a run did with the stack of it would be counted for the next. */
    {"socket", EAFNOSUPPORT, 1, {DIFFERS(0, AF_UNIX)}, OF_A_NETWORK, WITHOUT_NETWORK},
    /* There is one, of the run's own, and nothing in it but a listener of TCP. */
    OF_FAMILY(EQUALS(0, 0)),
    OF_FAMILY(MASKED(0, ~1ULL, 4)), /* 4, 5 */
    OF_FAMILY(MASKED(0, ~1ULL, 6)), /* 6, 7 */
    OF_FAMILY(MASKED(0, ~1ULL, 8)), /* 8, 9 */
    OF_FAMILY(EQUALS(0, 3)),
    OF_FAMILY(ABOVE(0, AF_INET6)),
    INTERNET(AF_INET),
    INTERNET(AF_INET6),
    {"setsockopt", EPERM, 2, {FLOW_LABELS}, "it manages flow labels", WITH_NETWORK},
    {"setsockopt", ENOENT, 2, {UPPER_LAYER}, "it puts another protocol over TCP", WITH_NETWORK},
    /* A socket that has no peer yet could be connected to one of the host's, in a folder. */
    {"socket", EACCES, 1, {EQUALS(0, AF_UNIX)}, "its family is AF_UNIX", WITH_FILES},
    {"socketpair", EAFNOSUPPORT, 1, {DIFFERS(0, AF_UNIX)}, OF_A_NETWORK, ALL},
    {"socketpair", EACCES, 1, {MASKED(1, 0xe, SOCK_DGRAM)}, "it is of datagrams", WITH_FILES},
};

/* No process but our own makes a namespace, and none at all a user namespace. */
static const int namespaces[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                 CLONE_NEWIPC, CLONE_NEWPID,    CLONE_NEWNET};

/* Requests of ioctl(2) have a type in bits 8 to 15. Those of terminals (and of every descriptor) and
 * of sockets are let through: the others ask drivers, file systems and namespaces of the host. */
#define TYPE_SHIFT 8
#define TYPE_MASK  0xffu
static const uint8_t ioctl_types[] = {0x54, 0x89};

static int add_rule(scmp_filter_ctx context, uint32_t action, const char *name, unsigned count,
                    const struct scmp_arg_cmp *compare)
{
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR)
        return 0;
    int result = seccomp_rule_add_array(context, action, number, count, compare);
    /* A call that this architecture does not have needs no rule. */
    return result == -EDOM ? 0 : result;
}

/* Adds the names of a list that are parted by blanks. */
static int add_names(scmp_filter_ctx context, uint32_t action, const char *names)
{
    char name[MAX_NAME_BYTES];
    int result = 0;
    for (size_t length; result == 0 && *names; names += length + (names[length] == ' ')) {
        length = strcspn(names, " ");
        if (length >= sizeof(name))
            return -ENAMETOOLONG;
        memcpy(name, names, length);
        name[length] = '\0';
        result = add_rule(context, action, name, 0, NULL);
    }
    return result;
}

static int add_trusted(scmp_filter_ctx context, uint64_t token)
{
    const struct scmp_arg_cmp ours = EQUALS(TRUSTED_ARGUMENT, token);
    const struct scmp_arg_cmp other = DIFFERS(TRUSTED_ARGUMENT, token);
    int result = 0;
    for (size_t i = 0; result == 0 && i < AR_COUNT(trusted); i++) {
        result = add_rule(context, SCMP_ACT_ALLOW, trusted[i].name, 1, &ours);
        /* The list as a whole answers ENOSYS, which libseccomp does not take a second time. */
        if (result == 0 && trusted[i].error != ENOSYS)
            result =
                add_rule(context, REFUSE((uint32_t)trusted[i].error), trusted[i].name, 1, &other);
    }
    return result;
}

static int add_calls(scmp_filter_ctx context, uint64_t token, unsigned reach)
{
    const struct scmp_arg_cmp plain = EQUALS(0, 0);
    const struct scmp_arg_cmp query = MASKED(0, LOW, LOW);
    (void)reach; /* the list is the same for all */
    int result = add_names(context, SCMP_ACT_ALLOW, allowed);
    if (result == 0)
        result = add_names(context, REFUSE(EPERM), refused);
    if (result == 0)
        result = add_names(context, REFUSE(EOPNOTSUPP), unsupported);
    if (result == 0)
        result = add_trusted(context, token);
    if (result == 0)
        result = add_rule(context, SCMP_ACT_ALLOW, "personality", 1, &plain);
    return result == 0 ? add_rule(context, SCMP_ACT_ALLOW, "personality", 1, &query) : result;
}

static int add_namespaces(scmp_filter_ctx context, uint64_t token)
{
    const struct scmp_arg_cmp user = MASKED(CLONE_FLAGS, CLONE_NEWUSER, CLONE_NEWUSER);
    int result = add_rule(context, REFUSE(EPERM), "clone", 1, &user);
    for (size_t i = 0; result == 0 && i < AR_COUNT(namespaces); i++) {
        const uint64_t flag = (uint64_t)(uint32_t)namespaces[i];
        const struct scmp_arg_cmp compare[] = {MASKED(CLONE_FLAGS, flag, flag),
                                               DIFFERS(TRUSTED_CLONE_ARGUMENT, token)};
        result = add_rule(context, REFUSE(EPERM), "clone", AR_COUNT(compare), compare);
    }
    return result;
}

static bool has_ioctl_type(unsigned mask, unsigned value)
{
    for (size_t i = 0; i < AR_COUNT(ioctl_types); i++)
        if ((ioctl_types[i] & mask) == value)
            return true;
    return false;
}

/* Refuses all types with these upper bits that are not in the list. A rule can only say that some
 * bits are so, hence halves of halves, until one has none of the list in it. */
static int add_ioctl_types(scmp_filter_ctx context, unsigned mask, unsigned value)
{
    const struct scmp_arg_cmp compare =
        MASKED(1, (uint64_t)mask << TYPE_SHIFT, (uint64_t)value << TYPE_SHIFT);
    if (!has_ioctl_type(mask, value))
        return add_rule(context, REFUSE(ENOTTY), "ioctl", 1, &compare);
    if (mask == TYPE_MASK)
        return 0;
    const unsigned longer = (mask >> 1 | 0x80u) & TYPE_MASK, bit = longer & ~mask;
    int result = add_ioctl_types(context, longer, value);
    return result == 0 ? add_ioctl_types(context, longer, value | bit) : result;
}

static bool is_for(const struct condition *condition, unsigned reach)
{
    return (reach & wheres[condition->where].mask) == wheres[condition->where].reach;
}

static int add_conditions(scmp_filter_ctx context, uint64_t token, unsigned reach)
{
    int result = add_namespaces(context, token);
    if (result == 0)
        result = add_ioctl_types(context, 0, 0);
    for (size_t i = 0; result == 0 && i < AR_COUNT(conditions); i++)
        if (is_for(&conditions[i], reach))
            result = add_rule(context, REFUSE((uint32_t)conditions[i].error), conditions[i].name,
                              conditions[i].count, conditions[i].compare);
    return result;
}

/* The program that libseccomp makes of a context, through a memory file. */
static int export_program(scmp_filter_ctx context, struct sock_fprog *out)
{
    struct stat status;
    AR_AUTO_CLOSE int fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int result = seccomp_export_bpf(context, fd);
    if (result < 0)
        return result;
    if (fstat(fd, &status) < 0)
        return -errno;
    size_t length = (size_t)status.st_size;
    if (length == 0 || length / sizeof(struct sock_filter) > BPF_MAXINSNS)
        return -E2BIG;
    AR_AUTO_FREE struct sock_filter *program = malloc(length);
    if (!program)
        return -ENOMEM;
    if (pread(fd, program, length, 0) != (ssize_t)length)
        return -EIO;
    *out = (struct sock_fprog){.len = (unsigned short)(length / sizeof(*program)),
                               .filter = AR_TAKE(program)};
    return 0;
}

static int compile(uint32_t otherwise, int (*add)(scmp_filter_ctx, uint64_t, unsigned),
                   uint64_t token, unsigned reach, struct sock_fprog *out)
{
    scmp_filter_ctx context = seccomp_init(otherwise);
    if (!context)
        return -ENOMEM;
    int result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (result == 0)
        result = add(context, token, reach);
    if (result == 0)
        result = export_program(context, out);
    seccomp_release(context);
    return result;
}

int filter_compile(uint64_t token, unsigned reach, struct filter *out)
{
    *out = (struct filter){0};
    int result = compile(REFUSE(ENOSYS), add_calls, token, reach, &out->calls);
    if (result == 0)
        result = compile(SCMP_ACT_ALLOW, add_conditions, token, reach, &out->conditions);
    if (result < 0)
        filter_free(out);
    return result;
}

void filter_free(struct filter *filter)
{
    free(filter->calls.filter);
    free(filter->conditions.filter);
    *filter = (struct filter){0};
}

int filter_install(const struct filter *filter)
{
    /* The conditions first: the list does not keep anybody from adding a filter. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter->conditions) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter->calls) < 0)
        return -errno;
    return 0;
}

/* ---- for the documentation -------------------------------------------------------------------- */

const char *filter_names(enum filter_answer answer)
{
    return answer == FILTER_ALLOWED ? allowed : answer == FILTER_REFUSED ? refused : unsupported;
}

const char *filter_trusted(size_t index, int *error)
{
    if (index >= AR_COUNT(trusted))
        return NULL;
    *error = trusted[index].error;
    return trusted[index].name;
}

const char *filter_condition(size_t index, const char **when, int *error, const char **where)
{
    if (index >= AR_COUNT(conditions))
        return NULL;
    *when = conditions[index].when;
    *error = conditions[index].error;
    *where = wheres[conditions[index].where].word;
    return conditions[index].name;
}
