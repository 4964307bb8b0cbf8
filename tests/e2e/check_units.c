/*
 * check_units.c - clients by their systemd unit: by the control group of the process that opened the
 * connection, and of no other that has its number now.
 *
 * Needs root and a hierarchy like systemd's: its own of version 1, or the unified one. The groups of
 * these tests are called after this process, so they are nobody's.
 */
#include "tests/e2e/e2e.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define STRANGER    65533
#define OTHER       65532
#define GROUP_BYTES 256

/* ---- control groups --------------------------------------------------------------------------- */

/* Folders below the hierarchy, each after the one that it lies in. */
enum place { SLICE, MINE, DEEP, SECOND, INNER, GROUPS };

static struct {
    char name[64], second[64]; /* of the units */
    char paths[GROUPS][GROUP_BYTES];
    bool made[GROUPS];
} groups;

static const char *hierarchy(void)
{
    struct statfs status;
    if (statfs("/sys/fs/cgroup", &status) == 0 && (long)status.f_type == CGROUP2_SUPER_MAGIC)
        return "/sys/fs/cgroup";
    return "/sys/fs/cgroup/systemd";
}

/* False when this host lets us make none. */
static bool make_groups(void)
{
    const char *top = hierarchy();
    (void)snprintf(groups.name, sizeof(groups.name), "auditrun-test-%ld.service", (long)getpid());
    (void)snprintf(groups.second, sizeof(groups.second), "auditrun-test-%ld-second.service",
                   (long)getpid());
    const char *const below[GROUPS] = {"", groups.name, groups.name, groups.second, groups.second};
    const char *const deeper[GROUPS] = {"", "", "/below", "", groups.name};
    for (size_t i = 0; i < GROUPS; i++) {
        (void)snprintf(groups.paths[i], GROUP_BYTES, "%s/system.slice/%s%s%s", top, below[i],
                       i == INNER ? "/" : "", deeper[i]);
        groups.made[i] = mkdir(groups.paths[i], 0755) == 0;
        if (!groups.made[i] && (i != SLICE || errno != EEXIST))
            return false;
    }
    return true;
}

static bool are_removed(void *context)
{
    (void)context;
    for (size_t i = GROUPS; i-- > 0;) {
        if (groups.made[i] && rmdir(groups.paths[i]) != 0)
            return false;
        groups.made[i] = false;
    }
    return true;
}

static void enter(enum place place)
{
    char path[GROUP_BYTES + 16];
    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", groups.paths[place]);
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        _exit(5);
}

/* ---- visitors --------------------------------------------------------------------------------- */

/* A process that has opened a connection; it stays until its gate is closed. */
struct visitor {
    pid_t pid;
    int fd, gate;
};

struct visit {
    uid_t uid;
    enum place place; /* GROUPS: stays in ours */
    pid_t number;     /* the pid that it takes; 0: any */
    bool silent;      /* opens no connection */
};

static void connect_as(const struct daemon *daemon, const struct visit *visit, int fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = daemon_socket(daemon);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (setgroups(0, NULL) != 0 || setgid(visit->uid) != 0 || setuid(visit->uid) != 0)
        _exit(2);
    if (!visit->silent && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        _exit(3);
}

/* A fork that may ask for its number. */
static pid_t fork_as(pid_t number)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    args.set_tid = number ? (uintptr_t)&number : 0;
    args.set_tid_size = number ? 1 : 0;
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Returns when it is connected. pid is -1 when the number is somebody else's. */
static struct visitor visit(const struct daemon *daemon, const struct visit *how)
{
    struct visitor visitor;
    int gate[2], ready[2];
    char byte = 0;
    visitor.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(pipe(gate) == 0 && pipe(ready) == 0);
    visitor.pid = fork_as(how->number);
    if (visitor.pid == 0) {
        (void)close(gate[1]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (how->place != GROUPS)
            enter(how->place);
        connect_as(daemon, how, visitor.fd);
        (void)close(visitor.fd);
        if (write(ready[1], "", 1) != 1)
            _exit(4);
        _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
    }
    ck_assert(visitor.pid > 0 || errno == EEXIST);
    (void)close(gate[0]);
    (void)close(ready[1]);
    if (visitor.pid > 0)
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    visitor.gate = gate[1];
    return visitor;
}

/* It ends, and is reaped. Its connection stays with us. */
static void leave(struct visitor *visitor)
{
    int status = 0;
    (void)close(visitor->gate);
    if (visitor->pid > 0) {
        ck_assert_int_eq(waitpid(visitor->pid, &status, 0), visitor->pid);
        ck_assert_int_eq(status, 0);
    }
}

static void expect_forbidden(int fd)
{
    struct client *client = client_adopt(fd);
    AR_AUTO_JSON json_t *answer = client_next(client);
    ck_assert(json_is_null(json_object_get(answer, "id")));
    client_expect_error(json_object_get(answer, "error"), -32002, NULL, NULL);
    client_expect_end(client);
    client_disconnect(client);
}

static void visit_in_vain(const struct daemon *daemon, uid_t uid, enum place place)
{
    struct visitor visitor = visit(daemon, &(struct visit){.uid = uid, .place = place});
    expect_forbidden(visitor.fd);
    leave(&visitor);
}

/* It has a run, which is recorded under this client. */
static void visit_for_a_run(const struct daemon *daemon, uid_t uid, enum place place,
                            const char *name)
{
    struct visitor visitor = visit(daemon, &(struct visit){.uid = uid, .place = place});
    struct client *client = client_adopt(visitor.fd);
    AR_AUTO_JSON json_t *result =
        client_call(client, "run", client_params("fake", "print 1", NULL));
    client_expect(result, "succeeded", "exit_zero");
    client_disconnect(client);
    struct rows rows = rows_read(daemon_ledger(daemon));
    ck_assert_str_eq(rows.items[0]->client_name, name);
    ck_assert_int_eq(rows.items[0]->client_uid, uid);
    ck_assert_int_eq(rows.items[0]->client_pid, visitor.pid);
    rows_free(&rows);
    leave(&visitor);
}

static struct daemon *unit_daemon(const char *format, ...) AR_PRINTF(1, 2);

static struct daemon *unit_daemon(const char *format, ...)
{
    AR_AUTO_FREE char *config = NULL;
    va_list arguments;
    va_start(arguments, format);
    ck_assert_int_gt(vasprintf(&config, format, arguments), 0);
    va_end(arguments);
    return e2e_fake_daemon(config);
}

static size_t count_reloads(const struct daemon *daemon)
{
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    size_t count = 0;
    for (const char *p = log; (p = strstr(p, "reloaded: ")); p++)
        count++;
    return count;
}

struct awaited {
    const struct daemon *daemon;
    size_t reloads;
};

static bool has_reloaded(void *context)
{
    const struct awaited *awaited = context;
    return count_reloads(awaited->daemon) > awaited->reloads;
}

#define BILLING "[client billing]\nunit = %s\ncompanies = %s\n"

static void reload(struct daemon *daemon, const char *unit, const char *companies)
{
    struct awaited awaited = {daemon, count_reloads(daemon)};
    AR_AUTO_FREE char *more = NULL;
    ck_assert_int_gt(asprintf(&more, BILLING, unit, companies), 0);
    AR_AUTO_FREE char *config = e2e_fake(more);
    daemon_configure(daemon, config);
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGHUP), 0);
    ck_assert(processes_wait(has_reloaded, &awaited, 20000));
}

/* ---- tests ------------------------------------------------------------------------------------ */

START_TEST(test_client_by_its_unit)
{
    struct daemon *daemon =
        unit_daemon("[client billing]\nunit = no-such.service %s\ncompanies = acme\n", groups.name);
    visit_for_a_run(daemon, STRANGER, MINE, "billing");
    visit_for_a_run(daemon, OTHER, DEEP, "billing");
    visit_in_vain(daemon, STRANGER, GROUPS);
    visit_in_vain(daemon, STRANGER, SECOND);
    /* A group of that name below another unit is that unit's own invention. */
    visit_in_vain(daemon, STRANGER, INNER);
    rows_expect(daemon_ledger(daemon), 2);
    daemon_free(daemon);
}
END_TEST

/* Who has the user but not the unit goes on to the next section, and the other way round. */
START_TEST(test_unit_and_user)
{
    struct daemon *daemon = unit_daemon("[client billing]\nunit = %s\nuid = %d\ncompanies = acme\n"
                                        "[client second]\nunit = %s\ngid = %d\ncompanies = acme\n"
                                        "[client user]\nuid = %d\ncompanies = acme\n",
                                        groups.name, STRANGER, groups.second, OTHER, STRANGER);
    visit_for_a_run(daemon, STRANGER, MINE, "billing");
    visit_for_a_run(daemon, OTHER, INNER, "second");
    visit_for_a_run(daemon, STRANGER, SECOND, "user");
    visit_for_a_run(daemon, STRANGER, GROUPS, "user");
    visit_in_vain(daemon, OTHER, MINE);
    visit_in_vain(daemon, OTHER, GROUPS);
    daemon_free(daemon);
}
END_TEST

static void hold(const struct daemon *daemon)
{
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGSTOP), 0);
}

static void go_on(const struct daemon *daemon)
{
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGCONT), 0);
}

/* One of the unit opens a connection, hands it on and ends before the daemon looks: it cannot be told
 * any more. */
START_TEST(test_peer_who_has_gone)
{
    struct daemon *daemon = unit_daemon(BILLING, groups.name, "acme");
    hold(daemon);
    struct visitor visitor = visit(daemon, &(struct visit){.uid = STRANGER, .place = MINE});
    leave(&visitor);
    go_on(daemon);
    expect_forbidden(visitor.fd);
    /* The same with one that nobody has reaped yet. */
    hold(daemon);
    siginfo_t info;
    visitor = visit(daemon, &(struct visit){.uid = STRANGER, .place = MINE});
    (void)close(visitor.gate);
    ck_assert_int_eq(waitid(P_PID, (id_t)visitor.pid, &info, WEXITED | WNOWAIT), 0);
    go_on(daemon);
    expect_forbidden(visitor.fd);
    ck_assert_int_eq(waitpid(visitor.pid, NULL, 0), visitor.pid);
    rows_expect(daemon_ledger(daemon), 0);
    daemon_free(daemon);
}
END_TEST

/* A process of the unit that has this number. False when it is somebody else's by now. */
static bool take_number(const struct daemon *daemon, pid_t number, struct visitor *heir)
{
    *heir = visit(
        daemon, &(struct visit){.uid = STRANGER, .place = MINE, .number = number, .silent = true});
    (void)close(heir->fd);
    return heir->pid == number;
}

/* A stranger opens a connection and ends, and a process of the unit gets his number before the daemon
 * looks. */
START_TEST(test_number_that_is_used_again)
{
    struct daemon *daemon = unit_daemon(BILLING, groups.name, "acme");
    bool taken = false;
    for (int attempt = 0; !taken; attempt++) {
        struct visitor heir;
        ck_assert_int_lt(attempt, 20);
        hold(daemon);
        struct visitor stranger = visit(daemon, &(struct visit){.uid = STRANGER, .place = GROUPS});
        leave(&stranger);
        taken = take_number(daemon, stranger.pid, &heir);
        go_on(daemon);
        expect_forbidden(stranger.fd);
        leave(&heir);
    }
    rows_expect(daemon_ledger(daemon), 0);
    daemon_free(daemon);
}
END_TEST

/* Is the daemon about to open this path? It stands at a system call. */
static bool opens(const struct daemon *daemon, const char *path)
{
    struct __ptrace_syscall_info info = {0};
    char name[64] = "";
    pid_t pid = daemon_pid(daemon);
    ck_assert_int_gt(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info), 0);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr != SYS_openat)
        return false;
    struct iovec here = {name, strlen(path) + 1};
    struct iovec there = {(void *)(uintptr_t)info.entry.args[1], strlen(path) + 1};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) > 0 && strcmp(name, path) == 0;
}

/* Lets the daemon go on until it is about to open this path, and stops it there. */
static void stop_at(const struct daemon *daemon, const char *path)
{
    do {
        int status;
        ck_assert_int_eq(ptrace(PTRACE_SYSCALL, daemon_pid(daemon), NULL, NULL), 0);
        ck_assert_int_eq(waitpid(daemon_pid(daemon), &status, __WALL), daemon_pid(daemon));
        ck_assert(WIFSTOPPED(status));
    } while (!opens(daemon, path));
}

/* The same at the worst moment: the daemon has his number, and is about to look what it stands for. */
START_TEST(test_number_that_is_used_again_meanwhile)
{
    struct daemon *daemon = unit_daemon(BILLING, groups.name, "acme");
    pid_t pid = daemon_pid(daemon);
    bool taken = false;
    for (int attempt = 0; !taken; attempt++) {
        struct visitor heir;
        char path[64];
        int status;
        ck_assert_int_lt(attempt, 20);
        ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD), 0);
        ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(pid, &status, __WALL), pid);
        struct visitor stranger = visit(daemon, &(struct visit){.uid = STRANGER, .place = GROUPS});
        (void)snprintf(path, sizeof(path), "/proc/%ld/cgroup", (long)stranger.pid);
        stop_at(daemon, path);
        leave(&stranger);
        taken = take_number(daemon, stranger.pid, &heir);
        ck_assert_int_eq(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
        expect_forbidden(stranger.fd);
        leave(&heir);
    }
    rows_expect(daemon_ledger(daemon), 0);
    daemon_free(daemon);
}
END_TEST

/* Who is connected is looked at again, by its own unit. */
START_TEST(test_reload)
{
    struct daemon *daemon = unit_daemon(BILLING, groups.name, "acme");
    struct visitor visitor = visit(daemon, &(struct visit){.uid = STRANGER, .place = MINE});
    struct client *client = client_adopt(visitor.fd);
    json_decref(client_call(client, "status", NULL));
    reload(daemon, groups.name, "globex");
    AR_AUTO_JSON json_t *result =
        client_call(client, "run", client_params("fake", "print 1", NULL));
    client_expect(result, "unauthorized", "company_not_allowed");
    reload(daemon, groups.second, "acme");
    AR_AUTO_JSON json_t *answer = client_next(client);
    client_expect_error(json_object_get(answer, "error"), -32002, NULL, NULL);
    client_expect_end(client);
    client_disconnect(client);
    leave(&visitor);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

/* From now on this kernel is one of before Linux 6.5, for us and all that we start. */
static void take_peer_descriptors_away(void)
{
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = AR_COUNT(instructions), .filter = instructions};
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* It says so once at the start, and nobody is such a client. */
START_TEST(test_kernel_that_does_not_tell)
{
    take_peer_descriptors_away();
    struct daemon *daemon = unit_daemon("[client billing]\nunit = %s\ncompanies = acme\n"
                                        "[client user]\nuid = %d\ncompanies = acme\n",
                                        groups.name, OTHER);
    visit_in_vain(daemon, STRANGER, MINE);
    visit_for_a_run(daemon, OTHER, MINE, "user");
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    const char *said = strstr(log, "[client billing] has a unit and matches nobody");
    ck_assert_ptr_nonnull(said);
    ck_assert_ptr_nonnull(strstr(said, "Linux 6.5"));
    ck_assert_ptr_null(strstr(said + 1, "[client billing]"));
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_client_by_its_unit,
                                          &test_unit_and_user,
                                          &test_peer_who_has_gone,
                                          &test_number_that_is_used_again,
                                          &test_number_that_is_used_again_meanwhile,
                                          &test_reload,
                                          &test_kernel_that_does_not_tell,
                                          NULL};
    int result = 77; /* this host cannot: run-checks counts it as skipped */
    if (getuid() == 0 && make_groups())
        result = e2e_main("units", tests);
    return processes_wait(are_removed, NULL, 10000) ? result : EXIT_FAILURE;
}
