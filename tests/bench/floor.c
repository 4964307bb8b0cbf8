/*
 * floor.c - how fast can a process be launched on this machine at all? The anchor of make bench.
 *
 * Times two things by the same clock: a command as it is (posix_spawn; for peers such as bubblewrap),
 * and, with -t, the floor: a sandbox with every wall that an auditrun slot has, built by the least
 * code that can build it, with nothing around it: no request, no decision, no record. A worker
 * prepares once what a slot prepares once (an empty network namespace, a control group leaf, the
 * template of the root) and pays for each launch: user, pid, mount, ipc and uts namespace, id map,
 * root, scratch, /proc, limits, Landlock, capabilities, seccomp, exec, the collected output, the end.
 *
 * usage: floor [-n LAUNCHES] [-c WORKERS] [-t FOLDER] -- PROGRAM [ARGUMENT...]
 *        -t FOLDER: in the sandbox, which shows FOLDER at /program
 * prints: p50_us p99_us launches_per_second      (LAUNCHES is for each worker; needs root with -t)
 */
#include "protocol/base.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_WORKERS   64
#define MAX_LAUNCHES  100000
#define WARM_UP       5
#define FIRST_HOST_ID 200000
#define PATH_BYTES    256
#define SCRATCH       "size=16m,mode=1777"
#define PER_LAUNCH    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)
#define MEMORY_LIMIT  "268435456"
#define PROCESS_LIMIT "64"
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

/* Shared by all workers. */
struct result {
    double ended_us[MAX_WORKERS];
    double samples[]; /* launches of worker 0, of worker 1, ... */
};

struct floor {
    int launches, workers;
    const char *folder; /* NULL: no sandbox */
    char **command;
    char root[PATH_BYTES];
    struct sock_filter filter[AR_COUNT(forbidden) + 6];
    struct sock_fprog program;
    bool landlock;
    struct result *result;
};

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void require(bool good, const char *what)
{
    if (!good)
        give_up(what);
}

static bool write_text(const char *path, const char *text)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* ---- once: filter, template, control group leaf ------------------------------------------------- */

static void compile_filter(struct floor *floor)
{
    const unsigned count = AR_COUNT(forbidden);
    struct sock_filter *next = floor->filter;
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
    floor->program.filter = floor->filter;
    floor->program.len = (unsigned short)(next - floor->filter);
}

static const char *below(const struct floor *floor, const char *name, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%.200s%s", floor->root, name);
    return path;
}

static void bind_device(const struct floor *floor, const char *device)
{
    char path[PATH_BYTES];
    int fd = open(below(floor, device, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    require(fd >= 0 && close(fd) == 0, path);
    require(mount(device, path, NULL, MS_BIND, NULL) == 0, device);
}

/* The root of every sandbox, in a mount namespace of the workers' own. */
static void build_template(struct floor *floor)
{
    static const char *const folders[] = {"/program", "/proc", "/tmp", "/dev"};
    const unsigned long closed = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV;
    char path[PATH_BYTES];
    require(unshare(CLONE_NEWNS) == 0, "unshare (is this root?)");
    require(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
    require(mount("floor", floor->root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") == 0, "tmpfs");
    for (size_t i = 0; i < AR_COUNT(folders); i++)
        require(mkdir(below(floor, folders[i], path), 0755) == 0, path);
    (void)below(floor, "/program", path);
    require(mount(floor->folder, path, NULL, MS_BIND, NULL) == 0, floor->folder);
    require(mount(NULL, path, NULL, closed, NULL) == 0, "read-only program");
    bind_device(floor, "/dev/null");
    bind_device(floor, "/dev/zero");
    bind_device(floor, "/dev/urandom");
    require(mount(NULL, floor->root, NULL, closed, NULL) == 0, "read-only root");
}

static const struct {
    const char *folder, *limit, *value;
} hierarchies[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", MEMORY_LIMIT},
                   {"/sys/fs/cgroup/pids", "pids.max", PROCESS_LIMIT}};

static const char *leaf_path(size_t hierarchy, pid_t worker, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%s/auditrun-floor.%d", hierarchies[hierarchy].folder, worker);
    return path;
}

/* The worker moves into a leaf, so that all that it launches is born there. */
static void enter_leaf(void)
{
    char path[PATH_BYTES], file[PATH_BYTES + 32];
    for (size_t i = 0; i < AR_COUNT(hierarchies); i++) {
        if (mkdir(leaf_path(i, getpid(), path), 0755) != 0)
            give_up("no control group (a v1 hierarchy of memory and of pids)");
        (void)snprintf(file, sizeof file, "%s/%s", path, hierarchies[i].limit);
        require(write_text(file, hierarchies[i].value), file);
        (void)snprintf(file, sizeof file, "%s/cgroup.procs", path);
        require(write_text(file, "0"), file);
    }
}

static void remove_leaf(pid_t worker)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    char path[PATH_BYTES];
    for (size_t i = 0; i < AR_COUNT(hierarchies); i++)
        for (int tries = 0; rmdir(leaf_path(i, worker, path)) != 0 && errno == EBUSY; tries++)
            if (tries == 1000 || nanosleep(&pause, NULL) != 0)
                break;
}

/* ---- each launch: the inside -------------------------------------------------------------------- */

static void enter_root(const struct floor *floor)
{
    char path[PATH_BYTES];
    const unsigned long plain = MS_NOSUID | MS_NODEV;
    require(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
    require(mount(floor->root, floor->root, NULL, MS_BIND | MS_REC, NULL) == 0, "template");
    require(mount("scratch", below(floor, "/tmp", path), "tmpfs", plain, SCRATCH) == 0, "scratch");
    require(mount("proc", below(floor, "/proc", path), "proc", plain | MS_NOEXEC, NULL) == 0,
            "proc");
    require(chdir(floor->root) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
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

static void enter_landlock(void)
{
    struct landlock_ruleset_attr attributes = {.handled_access_fs = ALL_FILE_RIGHTS};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes,
                             sizeof attributes.handled_access_fs, 0);
    require(rules >= 0, "Landlock");
    add_path(rules, "/program", READ_AND_EXEC);
    add_path(rules, "/proc", READ_AND_EXEC);
    add_path(rules, "/dev", READ_AND_EXEC);
    add_path(rules, "/tmp", ALL_FILE_RIGHTS);
    require(syscall(SYS_landlock_restrict_self, rules, 0) == 0 && close(rules) == 0, "Landlock");
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL)
            give_up("bounding set");
    require(syscall(SYS_capset, &header, none) == 0, "capabilities");
}

static _Noreturn void be_inside(const struct floor *floor, int go, const int output[2])
{
    static char path[] = "PATH=/usr/bin:/bin";
    char *const environment[] = {path, NULL};
    char byte;
    require(read(go, &byte, 1) == 1, "start");
    require(dup2(output[0], STDOUT_FILENO) >= 0 && dup2(output[1], STDERR_FILENO) >= 0, "output");
    require(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0, "ids");
    enter_root(floor);
    set_limits();
    require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    if (floor->landlock)
        enter_landlock();
    drop_capabilities();
    require(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &floor->program) == 0, "seccomp");
    (void)execve(floor->command[0], floor->command, environment);
    give_up(floor->command[0]);
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

static int wait_for(pid_t pid)
{
    int status;
    struct rusage usage;
    require(wait4(pid, &status, 0, &usage) == pid, "wait");
    return status;
}

static int launch_sandbox(const struct floor *floor, int worker)
{
    int go[2], out[2], error[2], pidfd = -1;
    struct clone_args arguments = {.flags = PER_LAUNCH | CLONE_PIDFD,
                                   .pidfd = (uint64_t)(uintptr_t)&pidfd,
                                   .exit_signal = SIGCHLD};
    require(pipe2(go, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC) == 0,
            "pipe");
    long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
    require(pid >= 0, "clone3");
    if (pid == 0)
        be_inside(floor, go[0], (const int[]){out[1], error[1]});
    map_ids((pid_t)pid, worker);
    require(write(go[1], "", 1) == 1, "start");
    (void)close(go[0]);
    (void)close(go[1]);
    (void)close(out[1]);
    (void)close(error[1]);
    collect(out[0], error[0], pidfd);
    return wait_for((pid_t)pid);
}

/* posix_spawn is vfork and exec: the cheapest start of a program that there is. */
static int launch_command(const struct floor *floor)
{
    pid_t pid;
    errno = posix_spawn(&pid, floor->command[0], NULL, NULL, floor->command, environ);
    require(errno == 0, floor->command[0]);
    return wait_for(pid);
}

/* ---- workers ------------------------------------------------------------------------------------ */

static void launch(const struct floor *floor, int worker)
{
    int status = floor->folder ? launch_sandbox(floor, worker) : launch_command(floor);
    if (status != 0) {
        (void)fprintf(stderr, "floor: %s ended with status %#x\n", floor->command[0],
                      (unsigned)status);
        _exit(1);
    }
}

static void prepare_worker(const struct floor *floor)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    require(null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0, "null");
    if (!floor->folder)
        return;
    enter_leaf();
    require(unshare(CLONE_NEWNET) == 0, "network namespace");
}

/* Warms up, says that it is ready, waits for the others, measures. */
static _Noreturn void work(const struct floor *floor, int worker, int ready, int go)
{
    double *samples = floor->result->samples + (size_t)worker * (size_t)floor->launches;
    char byte;
    prepare_worker(floor);
    for (int i = 0; i < WARM_UP; i++)
        launch(floor, worker);
    require(write(ready, "", 1) == 1 && read(go, &byte, 1) == 0, "start");
    for (int i = 0; i < floor->launches; i++) {
        double started = now_us();
        launch(floor, worker);
        samples[i] = now_us() - started;
    }
    floor->result->ended_us[worker] = now_us();
    _exit(0);
}

/* All workers at once. The time from the common start to the end of the last; 0: one failed. */
static double run_workers(const struct floor *floor)
{
    pid_t pids[MAX_WORKERS];
    int ready[2], go[2];
    char byte;
    bool good = true;
    double ended = 0;
    require(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0, "pipe");
    for (int i = 0; i < floor->workers; i++) {
        pids[i] = fork();
        require(pids[i] >= 0, "fork");
        if (pids[i] == 0) {
            (void)close(ready[0]);
            (void)close(go[1]);
            work(floor, i, ready[1], go[0]);
        }
    }
    (void)close(ready[1]);
    for (int i = 0; good && i < floor->workers; i++)
        good = read(ready[0], &byte, 1) == 1;
    double started = now_us();
    (void)close(go[1]);
    for (int i = 0; i < floor->workers; i++) {
        good = wait_for(pids[i]) == 0 && good;
        if (floor->folder)
            remove_leaf(pids[i]);
        if (floor->result->ended_us[i] > ended)
            ended = floor->result->ended_us[i];
    }
    return good ? ended - started : 0;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static bool parse(struct floor *floor, int argc, char **argv)
{
    int option;
    *floor = (struct floor){.launches = 100, .workers = 1, .root = "/tmp/auditrun-floor.XXXXXX"};
    while ((option = getopt(argc, argv, "+n:c:t:")) != -1) {
        if (option == 'n')
            floor->launches = (int)strtol(optarg, NULL, 10);
        else if (option == 'c')
            floor->workers = (int)strtol(optarg, NULL, 10);
        else if (option == 't')
            floor->folder = optarg;
        else
            return false;
    }
    floor->command = argv + optind;
    return optind < argc && floor->launches > 0 && floor->launches <= MAX_LAUNCHES &&
           floor->workers > 0 && floor->workers <= MAX_WORKERS;
}

static void prepare(struct floor *floor)
{
    if (!floor->folder)
        return;
    floor->landlock =
        syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
    if (!floor->landlock)
        (void)fprintf(stderr, "floor: this kernel has no Landlock: the floor goes without\n");
    require(mkdtemp(floor->root) != NULL, "temporary folder");
    compile_filter(floor);
    build_template(floor);
}

int main(int argc, char **argv)
{
    static struct floor floor;
    if (!parse(&floor, argc, argv)) {
        (void)fprintf(stderr, "usage: floor [-n LAUNCHES] [-c WORKERS] [-t FOLDER] -- PROGRAM "
                              "[ARGUMENT...]\n");
        return 2;
    }
    size_t count = (size_t)floor.launches * (size_t)floor.workers;
    floor.result = mmap(NULL, sizeof *floor.result + count * sizeof(double), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(floor.result != MAP_FAILED, "memory");
    prepare(&floor);
    double elapsed_us = run_workers(&floor);
    if (floor.folder) {
        (void)umount2(floor.root, MNT_DETACH);
        (void)rmdir(floor.root);
    }
    if (elapsed_us <= 0)
        return 1;
    qsort(floor.result->samples, count, sizeof(double), compare);
    (void)printf("%.0f %.0f %.1f\n", floor.result->samples[count / 2],
                 floor.result->samples[count * 99 / 100], (double)count / (elapsed_us / 1e6));
    return 0;
}
