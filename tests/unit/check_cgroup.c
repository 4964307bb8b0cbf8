/*
 * check_cgroup.c - control groups, on the real ones of this host.
 *
 * Each test makes a root of its own, and children that do in a leaf what code might do. Where no control
 * groups can be made at all, the tests say so and prove nothing; which version they ran on is printed.
 */
#include "daemon/cgroup.h"

#include "daemon/cgroup_file.h"
#include "tests/lib/delegation.h"
#include "tests/suite.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define MIB        (INT64_C(1) << 20)
#define WAIT_TRIES 2000
#define PAUSE_MS   5

/* ---- the root --------------------------------------------------------------------------------- */

static struct cgroup_root *root; /* of the test that runs */

static void open_root(void)
{
    ck_assert(delegation_enter());
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0); /* as the daemon is one */
    int rc = cgroup_root_open(&root);
    if (rc == 1)
        (void)fprintf(stderr, "check_cgroup: no control groups can be made here: NOT TESTED\n");
    else
        ck_assert_int_eq(rc, 0);
}

static void close_root(void)
{
    cgroup_root_free(root);
}

static bool offers(enum limit limit)
{
    return cgroup_root_offers(root)->has[limit];
}

static struct cgroup *new_leaf(int slot)
{
    struct cgroup *cgroup;
    ck_assert_int_eq(cgroup_new(root, slot, &cgroup), 0);
    return cgroup;
}

/* The folder of the daemon's group, whichever version; only with a root. */
static void own_folder(const char *controller, const char *below, char out[CGROUP_PATH_BYTES])
{
    char base[CGROUP_PATH_BYTES], name[64];
    bool second = strcmp(cgroup_root_word(root), "v2") == 0;
    ck_assert(cgroup_file_base(second ? NULL : controller, base));
    size_t cut = strlen(base) - strlen("/supervisor");
    if (second && strcmp(base + cut, "/supervisor") == 0)
        base[cut] = 0;
    (void)snprintf(name, sizeof name, CGROUP_PREFIX "%ld%s", (long)getpid(), below);
    ck_assert(cgroup_file_join(out, base, name));
}

/* ---- children --------------------------------------------------------------------------------- */

static void take_memory(int64_t bytes)
{
    char *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int64_t i = 0; memory != MAP_FAILED && i < bytes; i += 4096)
        *(volatile char *)(memory + i) = 1;
}

static void wait_for_ever(void)
{
    for (;;)
        (void)pause();
}

/* ms of processor time. */
static void burn(int64_t ms)
{
    struct timespec used;
    do
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms);
}

/* Starts so many processes that wait; how many it got. */
static int64_t start_waiting(int64_t count)
{
    int64_t got = 0;
    while (got < count) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0)
            wait_for_ever();
        got++;
    }
    return got;
}

static void act_memory(int64_t bytes)
{
    take_memory(bytes);
    _exit(0);
}

static void act_child_memory(int64_t bytes)
{
    pid_t pid = fork();
    if (pid == 0)
        act_memory(bytes);
    (void)waitpid(pid, NULL, 0);
    _exit(0);
}

static void act_burn(int64_t ms)
{
    burn(ms);
    _exit(0);
}

static void act_fork(int64_t count)
{
    _exit((int)start_waiting(count));
}

static void act_kill_self(int64_t unused)
{
    (void)unused;
    (void)kill(getpid(), SIGKILL);
}

static void act_wait(int64_t unused)
{
    (void)unused;
    wait_for_ever();
}

static void act_bomb(int64_t unused)
{
    (void)unused;
    for (;;)
        (void)fork();
}

/* A child in the leaf, which begins when the byte comes. */
static pid_t start_child(struct cgroup *cgroup, void (*act)(int64_t), int64_t argument, int *go)
{
    int ends[2];
    char unused;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[1]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || read(ends[0], &unused, 1) != 1)
            _exit(99);
        act(argument);
        _exit(98);
    }
    ck_assert_int_gt(pid, 0);
    (void)close(ends[0]);
    ck_assert_int_eq(cgroup_attach(cgroup, pid), 0);
    *go = ends[1];
    return pid;
}

static struct limits make_limits(int64_t memory, int64_t processes)
{
    struct limits limits = {.has[LIMIT_MEMORY_BYTES] = memory > 0,
                            .has[LIMIT_PROCESSES] = processes > 0,
                            .value[LIMIT_MEMORY_BYTES] = memory,
                            .value[LIMIT_PROCESSES] = processes};
    return limits;
}

static void kill_all(struct cgroup *cgroup)
{
    int tries = 0;
    while (cgroup_kill(cgroup, 0) > 0) {
        ck_assert_int_lt(tries++, WAIT_TRIES);
        (void)waitpid(-1, NULL, WNOHANG);
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

/* A run of the child under the limits: its status, and the findings. */
static int run_child(struct cgroup *cgroup, const struct limits *limits, void (*act)(int64_t),
                     int64_t argument, struct cgroup_findings *found)
{
    int go, status;
    pid_t pid = start_child(cgroup, act, argument, &go);
    ck_assert_int_eq(cgroup_begin(cgroup, limits), 0);
    ck_assert_int_eq(write(go, "", 1), 1);
    (void)close(go);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    cgroup_findings(cgroup, found);
    kill_all(cgroup);
    while (waitpid(-1, NULL, 0) > 0) /* until then they count */
        continue;
    return status;
}

static bool was_killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* ---- offers ----------------------------------------------------------------------------------- */

START_TEST(what_is_offered_was_tried)
{
    const struct limits *limits = cgroup_root_offers(root);
    (void)fprintf(stderr, "check_cgroup: %s, memory %d, processes %d, cpu %d\n",
                  cgroup_root_word(root), limits->has[LIMIT_MEMORY_BYTES],
                  limits->has[LIMIT_PROCESSES], limits->has[LIMIT_CPU_MS]);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        bool expected = i == LIMIT_MEMORY_BYTES || i == LIMIT_PROCESSES || i == LIMIT_CPU_MS;
        ck_assert(expected || !limits->has[i]);
        ck_assert_int_eq(limits->value[i] > 0, limits->has[i]);
    }
    const char *version = getenv("AUDITRUN_EXPECT_CGROUP"); /* where all of it has to be there */
    if (version) {
        ck_assert_str_eq(cgroup_root_word(root), version);
        ck_assert(offers(LIMIT_MEMORY_BYTES) && offers(LIMIT_PROCESSES) && offers(LIMIT_CPU_MS));
    }
}
END_TEST

START_TEST(nothing_is_made_of_nothing)
{
    struct cgroup *cgroup;
    struct cgroup_findings found;
    const struct limits limits = make_limits(MIB, 1);
    ck_assert_int_eq(cgroup_new(NULL, 0, &cgroup), 0);
    ck_assert_ptr_null(cgroup);
    ck_assert_int_eq(cgroup_attach(NULL, getpid()), 0);
    ck_assert_int_eq(cgroup_begin(NULL, &limits), 0);
    cgroup_findings(NULL, &found);
    ck_assert(!found.memory_exceeded && !found.killed_for_host && !found.processes_exceeded);
    ck_assert(found.user_us == -1 && found.system_us == -1 && found.memory_peak_bytes == -1 &&
              found.processes_peak == -1);
    ck_assert_uint_eq(cgroup_kill(NULL, 0), 0);
    cgroup_free(NULL);
    cgroup_root_free(NULL);
    ck_assert(!cgroup_root_offers(NULL)->has[LIMIT_MEMORY_BYTES]);
    ck_assert_str_eq(cgroup_root_word(NULL), "none");
}
END_TEST

/* ---- memory ----------------------------------------------------------------------------------- */

static void expect_peak(const struct cgroup_findings *found, int64_t least, int64_t most)
{
    if (found->memory_peak_bytes < 0)
        return; /* a kernel that keeps one peak for ever, and it was higher before */
    ck_assert_int_ge(found->memory_peak_bytes, least);
    ck_assert_int_le(found->memory_peak_bytes, most);
}

static void expect_no_fault(const struct cgroup_findings *found)
{
    ck_assert(!found->memory_exceeded);
    ck_assert(!found->killed_for_host);
    ck_assert(!found->processes_exceeded);
}

START_TEST(a_kill_for_memory_is_told_from_others)
{
    const struct limits limits = make_limits(32 * MIB, 16);
    struct cgroup_findings found;
    if (!offers(LIMIT_MEMORY_BYTES))
        return;
    struct cgroup *cgroup = new_leaf(1);
    ck_assert(was_killed(run_child(cgroup, &limits, act_memory, 64 * MIB, &found)));
    ck_assert(found.memory_exceeded && !found.killed_for_host);
    expect_peak(&found, 30 * MIB, 32 * MIB);
    ck_assert(was_killed(run_child(cgroup, &limits, act_kill_self, 0, &found)));
    expect_no_fault(&found);
    int status = run_child(cgroup, &limits, act_memory, 8 * MIB, &found);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_no_fault(&found);
    expect_peak(&found, 8 * MIB, 32 * MIB);
    (void)run_child(cgroup, &limits, act_child_memory, 64 * MIB, &found);
    ck_assert(found.memory_exceeded);
    cgroup_free(cgroup);
}
END_TEST

START_TEST(a_limit_can_be_raised_lowered_and_left_out)
{
    struct cgroup_findings found;
    if (!offers(LIMIT_MEMORY_BYTES))
        return;
    struct cgroup *cgroup = new_leaf(1);
    const int64_t sizes[] = {16 * MIB, 96 * MIB, 16 * MIB, 0, 16 * MIB};
    for (size_t i = 0; i < AR_COUNT(sizes); i++) {
        const struct limits limits = make_limits(sizes[i], 0);
        int status = run_child(cgroup, &limits, act_memory, 48 * MIB, &found);
        ck_assert_int_eq(was_killed(status), sizes[i] == 16 * MIB);
        ck_assert_int_eq(found.memory_exceeded, sizes[i] == 16 * MIB);
    }
    cgroup_free(cgroup);
}
END_TEST

/* The group above has the limit: to the leaf that is as if the machine had no memory left. */
START_TEST(a_kill_for_somebody_else_is_not_the_limit)
{
    const struct limits limits = make_limits(128 * MIB, 16);
    struct cgroup_findings found;
    char folder[CGROUP_PATH_BYTES];
    if (!offers(LIMIT_MEMORY_BYTES))
        return;
    struct cgroup *cgroup = new_leaf(1);
    bool second = strcmp(cgroup_root_word(root), "v2") == 0;
    own_folder("memory", second ? "/memory.max" : "/memory.limit_in_bytes", folder);
    ck_assert_int_eq(cgroup_file_write_number(AT_FDCWD, folder, 32 * MIB), 0);
    ck_assert(was_killed(run_child(cgroup, &limits, act_memory, 64 * MIB, &found)));
    ck_assert(found.killed_for_host);
    ck_assert(!found.memory_exceeded);
    cgroup_free(cgroup);
}
END_TEST

START_TEST(a_run_that_does_not_fit_does_not_begin)
{
    const struct limits limits = make_limits(MIB, 16), more = make_limits(64 * MIB, 16);
    struct cgroup_findings found;
    int status;
    if (!offers(LIMIT_MEMORY_BYTES))
        return;
    struct cgroup *cgroup = new_leaf(1);
    /* What a provider holds itself. */
    int memory = memfd_create("held", MFD_CLOEXEC);
    ck_assert_int_ge(memory, 0);
    pid_t pid = fork();
    if (pid == 0) {
        static const char block[65536] = "x";
        if (cgroup_attach(cgroup, getpid()) != 0)
            _exit(1);
        for (int i = 0; i < 128; i++)
            if (write(memory, block, sizeof block) != (ssize_t)sizeof block)
                _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(cgroup_begin(cgroup, &limits), -ENOMEM);
    cgroup_findings(cgroup, &found);
    ck_assert(found.memory_exceeded);
    ck_assert_int_eq(cgroup_begin(cgroup, &more), 0);
    cgroup_findings(cgroup, &found);
    expect_no_fault(&found);
    (void)close(memory);
    cgroup_free(cgroup);
}
END_TEST

/* ---- processes -------------------------------------------------------------------------------- */

START_TEST(processes_are_counted_to_the_one)
{
    struct cgroup_findings found;
    if (!offers(LIMIT_PROCESSES))
        return;
    struct cgroup *cgroup = new_leaf(1);
    for (int64_t granted = 1; granted <= 9; granted += 4) {
        const struct limits limits = make_limits(0, granted);
        /* The child itself is one of those in the leaf. */
        int64_t others = granted + CGROUP_OWN_PROCESSES - 1;
        int status = run_child(cgroup, &limits, act_fork, others, &found);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == others);
        ck_assert(!found.processes_exceeded);
        if (found.processes_peak >= 0)
            ck_assert_int_eq(found.processes_peak, granted);
        status = run_child(cgroup, &limits, act_fork, others + 1, &found);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == others);
        ck_assert(found.processes_exceeded);
        ck_assert(!found.memory_exceeded);
    }
    cgroup_free(cgroup);
}
END_TEST

/* ---- processor time --------------------------------------------------------------------------- */

START_TEST(processor_time_is_counted_for_each_run)
{
    struct cgroup_findings found;
    if (!offers(LIMIT_CPU_MS))
        return;
    struct cgroup *cgroup = new_leaf(1);
    const struct limits limits = make_limits(0, 0);
    const int64_t times_ms[] = {60, 5, 100};
    for (size_t i = 0; i < AR_COUNT(times_ms); i++) {
        (void)run_child(cgroup, &limits, act_burn, times_ms[i], &found);
        ck_assert_int_ge(found.user_us, 0);
        ck_assert_int_ge(found.system_us, 0);
        int64_t total_ms = (found.user_us + found.system_us) / 1000;
        /* Some kernels count in ticks. */
        ck_assert_int_ge(total_ms, times_ms[i] - times_ms[i] / 10 - 4);
        ck_assert_int_le(total_ms, times_ms[i] + 100);
    }
    cgroup_free(cgroup);
}
END_TEST

/* ---- killing ---------------------------------------------------------------------------------- */

START_TEST(all_but_one_are_killed)
{
    int go[3], status;
    pid_t pids[3];
    if (!root)
        return;
    struct cgroup *cgroup = new_leaf(1);
    ck_assert_uint_eq(cgroup_kill(cgroup, 0), 0);
    for (size_t i = 0; i < AR_COUNT(pids); i++)
        pids[i] = start_child(cgroup, act_wait, 0, &go[i]);
    ck_assert_uint_eq(cgroup_kill(cgroup, pids[1]), 2);
    ck_assert_int_eq(waitpid(pids[0], &status, 0), pids[0]);
    ck_assert(was_killed(status));
    ck_assert_int_eq(waitpid(pids[2], &status, 0), pids[2]);
    ck_assert(was_killed(status));
    ck_assert_uint_eq(cgroup_kill(cgroup, pids[1]), 0);
    ck_assert_int_eq(waitpid(pids[1], &status, WNOHANG), 0);
    for (size_t i = 0; i < AR_COUNT(pids); i++)
        (void)close(go[i]);
    kill_all(cgroup);
    cgroup_free(cgroup);
}
END_TEST

START_TEST(who_forks_for_ever_is_killed)
{
    const struct limits limits = make_limits(0, 64);
    int go;
    if (!offers(LIMIT_PROCESSES))
        return;
    for (int i = 0; i < 5; i++) {
        struct cgroup *cgroup = new_leaf(1);
        (void)start_child(cgroup, act_bomb, 0, &go);
        ck_assert_int_eq(cgroup_begin(cgroup, &limits), 0);
        ck_assert_int_eq(write(go, "", 1), 1);
        (void)close(go);
        kill_all(cgroup);
        while (waitpid(-1, NULL, 0) > 0)
            continue;
        cgroup_free(cgroup);
    }
}
END_TEST

/* ---- what is left ----------------------------------------------------------------------------- */

START_TEST(groups_go_with_their_owners)
{
    char leaf[CGROUP_PATH_BYTES], own[CGROUP_PATH_BYTES];
    if (!root)
        return;
    const char *controllers[] = {"memory", "pids", "cpuacct"};
    struct cgroup *cgroup = new_leaf(7);
    own_folder(controllers[1], "/slot.7", leaf);
    ck_assert_int_eq(access(leaf, F_OK), 0);
    cgroup_free(cgroup);
    ck_assert_int_ne(access(leaf, F_OK), 0);
    own_folder(controllers[1], "", own);
    ck_assert_int_eq(access(own, F_OK), 0);
    cgroup_root_free(root);
    root = NULL;
    ck_assert_int_ne(access(own, F_OK), 0);
}
END_TEST

/* A daemon that was killed: its group has the number of a process that is no more. */
START_TEST(what_a_killed_daemon_left_is_swept)
{
    char own[CGROUP_PATH_BYTES], old[CGROUP_PATH_BYTES], leaf[CGROUP_PATH_BYTES + 16];
    char procs[CGROUP_PATH_BYTES + 32];
    int status, go;
    if (!root)
        return;
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(dead, NULL, 0), dead);
    own_folder("pids", "", own);
    *strrchr(own, '/') = 0;
    ck_assert_int_lt(snprintf(old, sizeof old, "%.400s/" CGROUP_PREFIX "%ld", own, (long)dead),
                     (int)sizeof old);
    (void)snprintf(leaf, sizeof leaf, "%s/slot.3", old);
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", leaf);
    ck_assert_int_eq(mkdir(old, 0755), 0);
    ck_assert_int_eq(mkdir(leaf, 0755), 0);
    pid_t left = start_child(NULL, act_wait, 0, &go);
    ck_assert_int_eq(cgroup_file_write_number(AT_FDCWD, procs, left), 0);
    cgroup_file_sweep(own);
    ck_assert_int_ne(access(old, F_OK), 0);
    ck_assert_int_eq(waitpid(left, &status, 0), left);
    ck_assert(was_killed(status));
    own_folder("pids", "", own);
    ck_assert_int_eq(access(own, F_OK), 0); /* ours, of a process that lives */
    (void)close(go);
}
END_TEST

/* ---- texts ------------------------------------------------------------------------------------ */

START_TEST(texts_of_the_kernel_are_read)
{
    static const char events[] = "low 0\nhigh 1\nmax 22\noom 3\noom_kill 4\noom_group_kill 5\n";
    static const char control[] = "oom_kill_disable 0\nunder_oom 1\noom_kill 7\n";
    ck_assert_int_eq(cgroup_file_number(events, "oom "), 3);
    ck_assert_int_eq(cgroup_file_number(events, "oom_kill "), 4);
    ck_assert_int_eq(cgroup_file_number(control, "oom_kill "), 7);
    ck_assert_int_eq(cgroup_file_number("max 12\n", "max "), 12);
    ck_assert_int_eq(cgroup_file_number("9223372036854771712\n", ""), 9223372036854771712);
    ck_assert_int_eq(cgroup_file_number("", ""), -1);
    ck_assert_int_eq(cgroup_file_number(events, "none "), -1);
    ck_assert(cgroup_file_has_item("cpu,cpuacct", "cpuacct"));
    ck_assert(cgroup_file_has_item("cpuset cpu io memory pids\n", "memory"));
    ck_assert(cgroup_file_has_item("memory pids\n", "pids"));
    ck_assert(!cgroup_file_has_item("cpu,cpuacct", "acct"));
    ck_assert(!cgroup_file_has_item("cpuset,xcpu", "cpu"));
    ck_assert(!cgroup_file_has_item("", "cpu"));
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &what_is_offered_was_tried,
        &nothing_is_made_of_nothing,
        &a_kill_for_memory_is_told_from_others,
        &a_limit_can_be_raised_lowered_and_left_out,
        &a_kill_for_somebody_else_is_not_the_limit,
        &a_run_that_does_not_fit_does_not_begin,
        &processes_are_counted_to_the_one,
        &processor_time_is_counted_for_each_run,
        &all_but_one_are_killed,
        &who_forks_for_ever_is_killed,
        &groups_go_with_their_owners,
        &what_a_killed_daemon_left_is_swept,
        &texts_of_the_kernel_are_read,
    };
    Suite *suite = suite_create("cgroup");
    TCase *tcase = tcase_create("cgroup");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, open_root, close_root);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
