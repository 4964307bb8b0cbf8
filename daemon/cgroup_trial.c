/*
 * cgroup_trial.c - finds out what control groups enforce on this host, by doing it.
 *
 * A child of the daemon, in a leaf of its own, spends some processor time, starts more processes than
 * it may, and at last takes more memory than it may, for which the kernel has to kill it. What was
 * counted, refused and killed is what the daemon offers. The kernel's log names the child
 * auditrund-trial. It calls nothing that another thread of the daemon may hold a lock of.
 */
#include "daemon/cgroup_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define TRIAL_MS         5000 /* for all of it */
#define TRIAL_PAUSE_MS   2
#define TRIAL_PROCESSES  1
#define TRIAL_MEMORY     ((int64_t)8 << 20)
#define TRIAL_TAKEN      ((size_t)16 << 20)
#define TRIAL_CPU_US     5000
#define TRIAL_COUNTED_US 2500
#define PAGE_BYTES       4096

/* The most that is offered. */
#define MAX_CPU_MS       86400000
#define MAX_MEMORY_BYTES (INT64_C(1) << 40)
#define MAX_PROCESSES    32768

/* ---- the child -------------------------------------------------------------------------------- */

static void spend_time(void)
{
    struct timespec used;
    do
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < TRIAL_CPU_US * 1000L);
}

static void wait_to_be_killed(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    for (;;)
        (void)pause();
}

/* As many as the group holds, and one more. */
static void start_processes(void)
{
    pid_t pids[CGROUP_OWN_PROCESSES + TRIAL_PROCESSES], parent = getpid();
    size_t count = 0;
    while (count < AR_COUNT(pids) && (pids[count] = fork()) >= 0)
        if (pids[count++] == 0)
            wait_to_be_killed(parent);
    while (count-- > 0) {
        (void)kill(pids[count], SIGKILL);
        (void)waitpid(pids[count], NULL, 0);
    }
}

static void take_memory(void)
{
    char *memory =
        mmap(NULL, TRIAL_TAKEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; memory != MAP_FAILED && i < TRIAL_TAKEN; i += PAGE_BYTES)
        *(volatile char *)(memory + i) = 1;
}

__attribute__((noreturn)) static void be_child(int go, pid_t parent)
{
    char unused;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    (void)prctl(PR_SET_NAME, "auditrund-trial");
    if (read(go, &unused, 1) != 1)
        _exit(1);
    spend_time();
    start_processes();
    take_memory();
    _exit(0);
}

/* ---- the daemon ------------------------------------------------------------------------------- */

/* Waits for its end, within the time; reaps it. Was it killed? */
static bool await_kill(pid_t child)
{
    int status = 0;
    AR_AUTO_CLOSE int pidfd = pidfd_open(child, 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    bool in_time = pidfd >= 0 && poll(&end, 1, TRIAL_MS) == 1;
    if (!in_time)
        (void)kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
    return in_time && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* The child, waiting at the pipe's other end, which is in *go. Its pid or -errno. */
static pid_t start_child(int *go)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        (void)close(ends[1]);
        be_child(ends[0], parent);
    }
    *go = ends[1];
    (void)close(ends[0]);
    return child < 0 ? -errno : child;
}

static void offer(struct limits *offers, enum limit limit, bool held, int64_t most)
{
    offers->has[limit] = held;
    offers->value[limit] = held ? most : 0;
}

static int try_limits(struct cgroup *cgroup, struct limits *offers)
{
    const struct limits tried = {.has[LIMIT_MEMORY_BYTES] = true,
                                 .has[LIMIT_PROCESSES] = true,
                                 .value[LIMIT_MEMORY_BYTES] = TRIAL_MEMORY,
                                 .value[LIMIT_PROCESSES] = TRIAL_PROCESSES};
    struct cgroup_findings found;
    AR_AUTO_CLOSE int go = -1;
    pid_t child = start_child(&go);
    if (child < 0)
        return child;
    int rc = cgroup_attach(cgroup, child);
    if (rc == 0)
        rc = cgroup_begin(cgroup, &tried);
    if (rc < 0 || write(go, "", 1) != 1)
        (void)kill(child, SIGKILL);
    bool killed = await_kill(child);
    if (rc < 0)
        return rc;
    cgroup_findings(cgroup, &found);
    offer(offers, LIMIT_MEMORY_BYTES, killed && found.memory_exceeded, MAX_MEMORY_BYTES);
    offer(offers, LIMIT_PROCESSES, found.processes_exceeded, MAX_PROCESSES);
    offer(offers, LIMIT_CPU_MS, found.user_us + found.system_us >= TRIAL_COUNTED_US, MAX_CPU_MS);
    return 0;
}

int cgroup_trial_run(struct cgroup_root *root, struct limits *offers)
{
    struct cgroup *cgroup = NULL;
    int rc = cgroup_new(root, 0, &cgroup);
    if (rc == 0)
        rc = try_limits(cgroup, offers);
    for (int i = 0; i < TRIAL_MS / TRIAL_PAUSE_MS && cgroup_kill(cgroup, 0) > 0; i++)
        (void)poll(NULL, 0, TRIAL_PAUSE_MS);
    cgroup_free(cgroup);
    if (rc < 0)
        return rc;
    return offers->has[LIMIT_MEMORY_BYTES] || offers->has[LIMIT_PROCESSES] ||
                   offers->has[LIMIT_CPU_MS]
               ? 0
               : 1;
}
