/*
 * floor_sandbox.c - the sandbox of the floor: every wall that a run of ours has, by the least code.
 *
 * Prepared once for all: the read-only template of the root, two compiled seccomp programs. A worker
 * has what a slot has: its leaf of the control groups of memory and processes with both limits set,
 * and its empty network namespace, in which all launches of that worker are born, one at a time.
 * Each launch pays for the rest: user namespace with its id map, pid, mount, ipc, uts and cgroup
 * namespace, root from the template and pivot_root, scratch tmpfs, its own /proc that shows processes
 * only, limits, no_new_privs, Landlock with a rule a folder, empty capability sets and bounding set,
 * both seccomp programs, exec, two pipes collected to their ends, wait with usage.
 */
#include "tests/bench/floor_sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define FIRST_HOST_ID 200000
#define SCRATCH       "size=16m,mode=1777"
#define PROC_OPTIONS  "subset=pid,hidepid=invisible"
#define MEMORY_LIMIT  "268435456"
#define PROCESS_LIMIT "64"
#define PER_LAUNCH \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define READ_AND_EXEC \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ALL_FILE_RIGHTS ((1ULL << 13) - 1) /* those of Landlock's first version */

#if defined(__x86_64__)
#    define FLOOR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#    define FLOOR_ARCH AUDIT_ARCH_AARCH64
#endif

/* As many comparisons as a real filter has; none of these may be used. */
static const int forbidden[] = {
    SYS_ptrace,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_clone3,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_process_vm_readv,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_fanotify_init,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fsconfig,
    SYS_mount_setattr,
    SYS_personality,
    SYS_vhangup,
    SYS_syslog,
    SYS_pidfd_getfd,
    SYS_sethostname,
    SYS_setdomainname,
};

/* The second program looks at arguments: these bits may not be in that argument of that call. */
static const struct {
    int call, argument;
    uint32_t bits;
} judged[] = {
    {SYS_clone, 0, 0x7e020000}, /* namespaces */
    {SYS_ioctl, 1, 0x80000000}, {SYS_fchmod, 1, 06000}, {SYS_fchmodat, 2, 06000},
    {SYS_mknodat, 2, 06000},    {SYS_openat, 3, 06000}, {SYS_mkdirat, 2, 06000},
    {SYS_prctl, 0, 0x40000000},
};

struct floor_sandbox {
    struct floor_sandbox_options options;
    char root[FLOOR_SANDBOX_PATH];
    struct sock_filter filter[AR_COUNT(forbidden) + 6];
    struct sock_fprog program;
    struct sock_filter arguments_filter[4 * AR_COUNT(judged) + 2];
    struct sock_fprog arguments_program;
    bool landlock;
};

double floor_sandbox_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

_Noreturn void floor_sandbox_give_up(const char *what)
{
    (void)fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void require(bool good, const char *what)
{
    if (!good)
        floor_sandbox_give_up(what);
}

static bool write_text(const char *path, const char *text)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* ---- once: filter, template, control group leaf ------------------------------------------------- */

static void compile_filter(struct floor_sandbox *sandbox)
{
    const unsigned count = AR_COUNT(forbidden);
    struct sock_filter *next = sandbox->filter;
    *next++ =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FLOOR_ARCH, 0,
                                           (uint8_t)(count + 2));
    *next++ =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < count; i++)
        *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)forbidden[i],
                                               (uint8_t)(count - i), 0);
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    sandbox->program.filter = sandbox->filter;
    sandbox->program.len = (unsigned short)(next - sandbox->filter);
}

/* A call that is not judged meets one comparison for each that is. */
static void compile_arguments_filter(struct floor_sandbox *sandbox)
{
    struct sock_filter *next = sandbox->arguments_filter;
    for (size_t i = 0; i < AR_COUNT(judged); i++) {
        const uint32_t at =
            (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)judged[i].argument);
        const uint8_t refuse = (uint8_t)(4 * (AR_COUNT(judged) - i - 1) + 1);
        *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, nr));
        *next++ =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)judged[i].call, 0, 2);
        *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        *next++ =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, judged[i].bits, refuse, 0);
    }
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    sandbox->arguments_program.filter = sandbox->arguments_filter;
    sandbox->arguments_program.len = (unsigned short)(next - sandbox->arguments_filter);
}

static const char *below(const struct floor_sandbox *sandbox, const char *name,
                         char path[FLOOR_SANDBOX_PATH])
{
    (void)snprintf(path, FLOOR_SANDBOX_PATH, "%.200s%s", sandbox->root, name);
    return path;
}

static void bind_device(const struct floor_sandbox *sandbox, const char *device)
{
    char path[FLOOR_SANDBOX_PATH];
    int fd = open(below(sandbox, device, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    require(fd >= 0 && close(fd) == 0, path);
    require(mount(device, path, NULL, MS_BIND, NULL) == 0, device);
}

/* /usr, and the links into it that a merged host has. */
static void show_usr(const struct floor_sandbox *sandbox, unsigned long closed)
{
    static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
    char path[FLOOR_SANDBOX_PATH], name[16], target[16];
    require(mkdir(below(sandbox, "/usr", path), 0755) == 0, path);
    require(mount("/usr", path, NULL, MS_BIND, NULL) == 0, "/usr");
    require(mount(NULL, path, NULL, closed, NULL) == 0, "read-only /usr");
    for (size_t i = 0; i < AR_COUNT(links); i++) {
        (void)snprintf(name, sizeof name, "/%s", links[i]);
        (void)snprintf(target, sizeof target, "usr/%s", links[i]);
        require(symlink(target, below(sandbox, name, path)) == 0, path);
    }
}

/* The root of every sandbox, in a mount namespace of the workers' own. */
static void build_template(struct floor_sandbox *sandbox)
{
    static const char *const folders[] = {"/program", "/proc", "/tmp", "/dev"};
    const unsigned long closed = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV;
    char path[FLOOR_SANDBOX_PATH];
    require(unshare(CLONE_NEWNS) == 0, "unshare (is this root?)");
    require(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
    require(mount("floor", sandbox->root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") == 0, "tmpfs");
    for (size_t i = 0; i < AR_COUNT(folders); i++)
        require(mkdir(below(sandbox, folders[i], path), 0755) == 0, path);
    (void)below(sandbox, "/program", path);
    require(mount(sandbox->options.folder, path, NULL, MS_BIND, NULL) == 0,
            sandbox->options.folder);
    require(mount(NULL, path, NULL, closed, NULL) == 0, "read-only program");
    if (sandbox->options.shows_usr)
        show_usr(sandbox, closed);
    bind_device(sandbox, "/dev/null");
    bind_device(sandbox, "/dev/zero");
    bind_device(sandbox, "/dev/urandom");
    require(mount(NULL, sandbox->root, NULL, closed, NULL) == 0, "read-only root");
}

/* Two hierarchies of version 1, or twice the one of version 2. */
static const struct group {
    const char *folder, *limit, *value;
} groups[][2] = {{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", MEMORY_LIMIT},
                  {"/sys/fs/cgroup/pids", "pids.max", PROCESS_LIMIT}},
                 {{"/sys/fs/cgroup", "memory.max", MEMORY_LIMIT},
                  {"/sys/fs/cgroup", "pids.max", PROCESS_LIMIT}}};

static const struct group *group_of(size_t which)
{
    return &groups[access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0][which];
}

static const char *leaf_path(const struct group *group, pid_t worker, char path[FLOOR_SANDBOX_PATH])
{
    (void)snprintf(path, FLOOR_SANDBOX_PATH, "%s/auditrun-floor.%d", group->folder, worker);
    return path;
}

/* The worker moves into a leaf, so that all that it launches is born there. */
static void enter_leaf(void)
{
    char path[FLOOR_SANDBOX_PATH], file[FLOOR_SANDBOX_PATH + 32];
    (void)write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory +pids");
    for (size_t i = 0; i < AR_COUNT(groups[0]); i++) {
        const struct group *group = group_of(i);
        require(mkdir(leaf_path(group, getpid(), path), 0755) == 0 || errno == EEXIST,
                "no control group of memory and processes");
        (void)snprintf(file, sizeof file, "%s/%s", path, group->limit);
        require(write_text(file, group->value), file);
        (void)snprintf(file, sizeof file, "%s/cgroup.procs", path);
        require(write_text(file, "0"), file);
    }
}

void floor_sandbox_forget_worker(pid_t worker)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    char path[FLOOR_SANDBOX_PATH];
    for (size_t i = 0; i < AR_COUNT(groups[0]); i++)
        for (int tries = 0; rmdir(leaf_path(group_of(i), worker, path)) != 0 && errno == EBUSY;
             tries++)
            if (tries == 1000 || nanosleep(&pause, NULL) != 0)
                break;
}

void floor_sandbox_enter_worker(void)
{
    enter_leaf();
    require(unshare(CLONE_NEWNET) == 0, "network namespace");
}

struct floor_sandbox *floor_sandbox_new(const struct floor_sandbox_options *options)
{
    struct floor_sandbox *sandbox = calloc(1, sizeof *sandbox);
    require(sandbox != NULL, "memory");
    sandbox->options = *options;
    sandbox->landlock =
        syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
    if (!sandbox->landlock)
        (void)fprintf(stderr, "floor: this kernel has no Landlock: the floor goes without\n");
    memcpy(sandbox->root, "/tmp/auditrun-floor.XXXXXX", sizeof "/tmp/auditrun-floor.XXXXXX");
    require(mkdtemp(sandbox->root) != NULL, "temporary folder");
    compile_filter(sandbox);
    compile_arguments_filter(sandbox);
    build_template(sandbox);
    return sandbox;
}

void floor_sandbox_free(struct floor_sandbox *sandbox)
{
    if (!sandbox)
        return;
    (void)umount2(sandbox->root, MNT_DETACH);
    (void)rmdir(sandbox->root);
    free(sandbox);
}

/* ---- each launch: the inside -------------------------------------------------------------------- */

static void enter_root(const struct floor_sandbox *sandbox)
{
    char path[FLOOR_SANDBOX_PATH];
    const unsigned long plain = MS_NOSUID | MS_NODEV;
    require(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
    require(mount(sandbox->root, sandbox->root, NULL, MS_BIND | MS_REC, NULL) == 0, "template");
    require(mount("scratch", below(sandbox, "/tmp", path), "tmpfs", plain, SCRATCH) == 0,
            "scratch");
    require(mount("proc", below(sandbox, "/proc", path), "proc", plain | MS_NOEXEC, PROC_OPTIONS) ==
                0,
            "proc");
    require(chdir(sandbox->root) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
                umount2(".", MNT_DETACH) == 0 && chdir("/tmp") == 0,
            "pivot_root");
}

static void set_limits(void)
{
    static const struct {
        __rlimit_resource_t resource;
        rlim_t value;
    } limits[] = {{RLIMIT_NOFILE, 64},
                  {RLIMIT_CORE, 1},
                  {RLIMIT_CPU, 10},
                  {RLIMIT_FSIZE, 64 << 20},
                  {RLIMIT_MEMLOCK, 65536}};
    for (size_t i = 0; i < AR_COUNT(limits); i++) {
        const struct rlimit limit = {limits[i].value, limits[i].value};
        require(setrlimit(limits[i].resource, &limit) == 0, "limits");
    }
}

static void add_path(int rules, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights,
                                              .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    require(rule.parent_fd >= 0 &&
                syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 &&
                close(rule.parent_fd) == 0,
            "Landlock rule");
}

static void enter_landlock(const struct floor_sandbox *sandbox)
{
    struct landlock_ruleset_attr attributes = {.handled_access_fs = ALL_FILE_RIGHTS};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes,
                             sizeof attributes.handled_access_fs, 0);
    require(rules >= 0, "Landlock");
    add_path(rules, "/program", READ_AND_EXEC);
    add_path(rules, "/proc", READ_AND_EXEC);
    add_path(rules, "/dev", READ_AND_EXEC);
    add_path(rules, "/tmp", ALL_FILE_RIGHTS);
    if (sandbox->options.shows_usr)
        add_path(rules, "/usr", READ_AND_EXEC);
    require(syscall(SYS_landlock_restrict_self, rules, 0) == 0 && close(rules) == 0, "Landlock");
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
        require(prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0 || errno == EINVAL,
                "bounding set");
    require(syscall(SYS_capset, &header, none) == 0, "capabilities");
}

static void install(const struct sock_fprog *program)
{
    require(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) == 0, "seccomp");
}

static _Noreturn void be_inside(const struct floor_sandbox *sandbox, int go, int ready,
                                const int output[2])
{
    static char path[] = "PATH=/usr/bin:/bin";
    char *const environment[] = {path, NULL};
    char byte;
    require(read(go, &byte, 1) == 1, "start");
    require(dup2(output[0], STDOUT_FILENO) >= 0 && dup2(output[1], STDERR_FILENO) >= 0, "output");
    require(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0, "ids");
    enter_root(sandbox);
    set_limits();
    require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    if (sandbox->landlock)
        enter_landlock(sandbox);
    drop_capabilities();
    install(&sandbox->arguments_program);
    install(&sandbox->program);
    if (sandbox->options.ahead)
        require(write(ready, "", 1) == 1 && read(go, &byte, 1) == 1, "go");
    (void)execve(sandbox->options.command[0], sandbox->options.command, environment);
    floor_sandbox_give_up(sandbox->options.command[0]);
}

/* ---- each launch: the outside ------------------------------------------------------------------- */

static void map_ids(pid_t pid, int worker)
{
    static const char *const files[] = {"uid_map", "gid_map"};
    char path[64], map[64];
    (void)snprintf(map, sizeof map, "0 %d 1", FIRST_HOST_ID + worker);
    for (size_t i = 0; i < AR_COUNT(files); i++) {
        (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
        require(write_text(path, map), path);
    }
}

/* Until both streams are at their end and the process is gone. */
static void collect(int out, int error, int pidfd)
{
    struct pollfd waits[] = {{.fd = out, .events = POLLIN},
                             {.fd = error, .events = POLLIN},
                             {.fd = pidfd, .events = POLLIN}};
    char buffer[4096];
    for (int left = 3; left > 0;) {
        require(poll(waits, 3, -1) > 0, "poll");
        for (int i = 0; i < 3; i++) {
            if (!waits[i].revents || (i < 2 && read(waits[i].fd, buffer, sizeof buffer) > 0))
                continue;
            (void)close(waits[i].fd);
            waits[i].fd = -1;
            left--;
        }
    }
}

int floor_sandbox_wait(pid_t pid)
{
    int status;
    struct rusage usage;
    require(wait4(pid, &status, 0, &usage) == pid, "wait");
    return status;
}

int floor_sandbox_launch(const struct floor_sandbox *sandbox, int worker, double *started)
{
    int go[2], ready[2], out[2], error[2], pidfd = -1;
    char byte;
    struct clone_args arguments = {.flags = PER_LAUNCH | CLONE_PIDFD,
                                   .pidfd = (uint64_t)(uintptr_t)&pidfd,
                                   .exit_signal = SIGCHLD};
    require(pipe2(go, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC) == 0,
            "pipe");
    require(!sandbox->options.ahead || pipe2(ready, O_CLOEXEC) == 0, "pipe");
    long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
    require(pid >= 0, "clone3");
    if (pid == 0)
        be_inside(sandbox, go[0], sandbox->options.ahead ? ready[1] : -1,
                  (const int[]){out[1], error[1]});
    map_ids((pid_t)pid, worker);
    require(write(go[1], "", 1) == 1, "start");
    if (sandbox->options.ahead) {
        require(read(ready[0], &byte, 1) == 1, "ready");
        (void)close(ready[0]);
        (void)close(ready[1]);
        *started = floor_sandbox_now_us();
        require(write(go[1], "", 1) == 1, "go");
    }
    (void)close(go[0]);
    (void)close(go[1]);
    (void)close(out[1]);
    (void)close(error[1]);
    collect(out[0], error[0], pidfd);
    return floor_sandbox_wait((pid_t)pid);
}
