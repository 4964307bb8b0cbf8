/*
 * daemon.c - see daemon.h.
 *
 * The test is a subreaper while it has a daemon: whatever gets away from a daemon that has ended
 * comes to the test, where it is seen. What was below the daemon is noted right before each end.
 */
#include "tests/lib/daemon.h"

#include "sinks/schema.h"
#include "tests/lib/config.h"
#include "tests/lib/delegation.h"
#include "tests/lib/keeper.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define PATH_BYTES  256
#define URL_BYTES   512
#define POLL_MS     5
#define MAX_SOCKETS 4

struct daemon {
    pid_t pid;
    struct keeper *keeper;
    char folder[64];
    char socket[PATH_BYTES], log[PATH_BYTES], config[PATH_BYTES], journal[PATH_BYTES];
    char ledger[URL_BYTES];
    const char *const *environment;
    const int *sockets;
    size_t socket_count;
    char fault[64];          /* NAME=VALUE of this launch, "": none */
    bool killed;             /* by us: its control groups are there until the next start */
    struct processes below;  /* right before its last end */
    struct processes before; /* our own children before its last start */
};

/* ---- files ------------------------------------------------------------------------------------ */

char *daemon_read_file(const char *path)
{
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(fstat(fd, &status), 0);
    char *text = calloc(1, (size_t)status.st_size + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_ge(read(fd, text, (size_t)status.st_size), 0);
    return text;
}

void daemon_write_file(const char *path, const char *text, mode_t mode)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

char *daemon_path(const struct daemon *daemon, const char *name)
{
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/%s", daemon->folder, name), 0);
    return path;
}

static void name_file(const struct daemon *daemon, char out[PATH_BYTES], const char *name)
{
    (void)snprintf(out, PATH_BYTES, "%s/%s", daemon->folder, name);
}

/* ---- making one ------------------------------------------------------------------------------- */

static void make_folder(struct daemon *daemon)
{
    (void)snprintf(daemon->folder, sizeof(daemon->folder), "/tmp/auditrun-e2e-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(daemon->folder));
    ck_assert_int_eq(chmod(daemon->folder, 0755), 0);
    daemon->keeper = keeper_start(daemon->folder);
    name_file(daemon, daemon->socket, "auditrun.sock");
    name_file(daemon, daemon->log, "daemon.log");
    name_file(daemon, daemon->config, "auditrun.conf");
    name_file(daemon, daemon->journal, "journal");
    ck_assert_int_eq(mkdir(daemon->journal, 0700), 0);
}

static const char *variable(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value ? value : fallback;
}

/* The defaults of all tests. */
void daemon_configure(struct daemon *daemon, const char *config)
{
    AR_AUTO_FREE char *defaults = NULL;
    const char *build = variable("AUDITRUN_BUILD", "build");
    const char *source = variable("AUDITRUN_SOURCE", ".");
    int n = asprintf(&defaults,
                     "[daemon]\ndrain_timeout = 10s\n"
                     "[socket]\npath = %s\nmode = 0666\n"
                     "[ledger]\nurl = %s\n"
                     "[journal]\ndirectory = %s\n"
                     "[executor namespace]\nprogram = %s/auditrun-executor-namespace\n"
                     "args = --languages %s/tests/languages.d --lib %s/executors/lib\nslots = 2\n"
                     "[client local]\nuid = %ld\ncompanies = *\n",
                     daemon->socket, daemon->ledger, daemon->journal, build, source, source,
                     (long)getuid());
    ck_assert_int_gt(n, 0);
    AR_AUTO_FREE char *whole = config_join(defaults, config ? config : "");
    daemon_write_file(daemon->config, whole, 0644);
}

static void make_ledger(struct daemon *daemon)
{
    char message[SCHEMA_MESSAGE_BYTES] = "";
    int applied;
    int rc = schema_init(daemon->ledger, &applied, message);
    ck_assert_msg(rc == 0, "the ledger cannot be made ready (%d): %s", rc, message);
}

struct daemon *daemon_prepare(const struct daemon_options *options)
{
    struct daemon *daemon = calloc(1, sizeof(*daemon));
    ck_assert_ptr_nonnull(daemon);
    make_folder(daemon);
    if (options->ledger_url)
        (void)snprintf(daemon->ledger, URL_BYTES, "%s", options->ledger_url);
    else
        (void)snprintf(daemon->ledger, URL_BYTES, "sqlite:%s/ledger.db", daemon->folder);
    daemon->environment = options->environment;
    daemon->sockets = options->sockets;
    daemon->socket_count = options->socket_count;
    daemon_configure(daemon, options->config);
    if (!options->without_ledger)
        make_ledger(daemon);
    return daemon;
}

struct daemon *daemon_new(const struct daemon_options *options)
{
    struct daemon *daemon = daemon_prepare(options);
    daemon_start_again(daemon);
    return daemon;
}

/* ---- starting --------------------------------------------------------------------------------- */

/* sd_listen_fds(3): from 3 on, for this process. */
static bool give_sockets(const struct daemon *daemon)
{
    char pid[24], count[24];
    int high[MAX_SOCKETS];
    if (daemon->socket_count == 0)
        return true;
    for (size_t i = 0; i < daemon->socket_count; i++)
        if (i == AR_COUNT(high) ||
            (high[i] = fcntl(daemon->sockets[i], F_DUPFD_CLOEXEC, 3 + MAX_SOCKETS)) < 0)
            return false;
    for (size_t i = 0; i < daemon->socket_count; i++)
        if (dup2(high[i], 3 + (int)i) < 0)
            return false;
    (void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    (void)snprintf(count, sizeof(count), "%zu", daemon->socket_count);
    return setenv("LISTEN_PID", pid, 1) == 0 && setenv("LISTEN_FDS", count, 1) == 0 &&
           setenv("LISTEN_FDNAMES", "clients", 1) == 0;
}

static void become_daemon(const struct daemon *daemon, pid_t parent)
{
    char program[PATH_BYTES];
    (void)snprintf(program, sizeof(program), "%s/%s", variable("AUDITRUN_BUILD", "build"),
                   daemon->fault[0] ? "tests/tools/auditrund-faults" : "auditrund");
    int log = open(daemon->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(126);
    for (size_t i = 0; daemon->environment && daemon->environment[i]; i++)
        (void)putenv((char *)(uintptr_t)daemon->environment[i]);
    if (daemon->fault[0])
        (void)putenv((char *)(uintptr_t)daemon->fault);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || !delegation_enter() ||
        !give_sockets(daemon))
        _exit(126);
    execl(program, program, "--config", daemon->config, (char *)NULL);
    _exit(127);
}

static void launch(struct daemon *daemon)
{
    pid_t parent = getpid();
    ck_assert_int_eq(daemon->pid, 0);
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    processes_free(&daemon->before);
    daemon->before = processes_children(parent);
    daemon->killed = false;
    daemon->pid = fork();
    if (daemon->pid == 0)
        become_daemon(daemon, parent);
    ck_assert_int_gt(daemon->pid, 0);
    keeper_watch(daemon->keeper, daemon->pid);
}

void daemon_launch(struct daemon *daemon)
{
    daemon->fault[0] = 0;
    launch(daemon);
}

void daemon_launch_fault(struct daemon *daemon, const char *fault)
{
    int n = snprintf(daemon->fault, sizeof(daemon->fault), "AUDITRUND_FAULT=%s", fault);
    ck_assert(n > 0 && (size_t)n < sizeof(daemon->fault));
    launch(daemon);
}

static bool has_ended(struct daemon *daemon, int *status)
{
    if (waitpid(daemon->pid, status, WNOHANG) != daemon->pid)
        return false;
    daemon->pid = 0;
    return true;
}

/* One try: connects, asks for `status`, waits for the answer. */
static bool answers(const struct daemon *daemon)
{
    static const char question[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"status\"}\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[16];
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, daemon->socket, strlen(daemon->socket) + 1);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) < 0)
        return false;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 5000) == 1 && read(fd, answer, sizeof(answer)) > 0;
}

static void show_log(const struct daemon *daemon)
{
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    size_t length = strlen(log);
    (void)fprintf(stderr, "%s\n", length > 4000 ? log + length - 4000 : log);
}

void daemon_await(struct daemon *daemon)
{
    int64_t deadline = processes_now_ms() + DAEMON_START_MS;
    int status;
    while (!answers(daemon)) {
        bool ended = has_ended(daemon, &status);
        if (ended || processes_now_ms() > deadline)
            show_log(daemon);
        ck_assert_msg(!ended, "the daemon ended at its start");
        ck_assert_msg(processes_now_ms() < deadline, "the daemon does not answer");
        (void)poll(NULL, 0, POLL_MS);
    }
}

void daemon_start_again(struct daemon *daemon)
{
    daemon_launch(daemon);
    daemon_await(daemon);
}

int daemon_start_in_vain(struct daemon *daemon)
{
    daemon_launch(daemon);
    return daemon_wait(daemon);
}

/* ---- ending ----------------------------------------------------------------------------------- */

struct ending {
    struct daemon *daemon;
    int status;
};

static bool ending_is_over(void *context)
{
    struct ending *ending = context;
    return has_ended(ending->daemon, &ending->status);
}

int daemon_wait(struct daemon *daemon)
{
    struct ending ending = {.daemon = daemon};
    if (!processes_wait(ending_is_over, &ending, DAEMON_END_MS)) {
        show_log(daemon);
        ck_abort_msg("the daemon does not end");
    }
    return WIFEXITED(ending.status) ? WEXITSTATUS(ending.status) : 128 + WTERMSIG(ending.status);
}

static void note_processes(struct daemon *daemon)
{
    processes_free(&daemon->below);
    daemon->below = processes_below(daemon->pid);
}

bool daemon_has_ended(struct daemon *daemon, int *status)
{
    int raw;
    struct processes below = processes_below(daemon->pid);
    if (!has_ended(daemon, &raw)) { /* so what was seen was below it while it lived */
        processes_free(&daemon->below);
        daemon->below = below;
        return false;
    }
    processes_free(&below);
    *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    daemon->killed = *status == 128 + SIGKILL;
    return true;
}

void daemon_await_fault(struct daemon *daemon)
{
    int64_t deadline = processes_now_ms() + DAEMON_END_MS;
    int status = 0;
    while (!daemon_has_ended(daemon, &status)) {
        if (processes_now_ms() > deadline)
            show_log(daemon);
        ck_assert_msg(processes_now_ms() < deadline, "the daemon does not pass %s", daemon->fault);
        (void)poll(NULL, 0, POLL_MS);
    }
    if (status != 128 + SIGKILL)
        show_log(daemon);
    ck_assert_int_eq(status, 128 + SIGKILL);
}

void daemon_kill9(struct daemon *daemon)
{
    note_processes(daemon);
    daemon->killed = true;
    ck_assert_int_eq(kill(daemon->pid, SIGKILL), 0);
    ck_assert_int_eq(daemon_wait(daemon), 128 + SIGKILL);
}

int daemon_terminate(struct daemon *daemon)
{
    note_processes(daemon);
    ck_assert_int_eq(kill(daemon->pid, SIGTERM), 0);
    return daemon_wait(daemon);
}

/* Reaps what came to us from the daemon; true when none of it, and nothing else of it, lives. */
static bool nothing_lives(void *context)
{
    struct daemon *daemon = context;
    for (size_t i = 0; i < daemon->below.count; i++)
        if (!processes_has(&daemon->before, daemon->below.items[i].pid))
            (void)waitpid(daemon->below.items[i].pid, NULL, WNOHANG);
    return processes_alive(&daemon->below) == 0;
}

/* Children of ours that we did not start, without those of other daemons of this test. */
static size_t count_strays(const struct daemon *daemon)
{
    struct processes children = processes_children(getpid());
    size_t strays = 0;
    for (size_t i = 0; i < children.count; i++) {
        AR_AUTO_FREE char *program = keeper_program_of(children.items[i].pid);
        strays += !processes_has(&daemon->before, children.items[i].pid) && program &&
                  strncmp(program, "auditrun-executor", strlen("auditrun-executor")) == 0;
    }
    processes_free(&children);
    return strays;
}

static bool has_mount(const struct daemon *daemon)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file))
        found = found || strstr(line, daemon->folder);
    (void)fclose(file);
    return found;
}

void daemon_expect_nothing(struct daemon *daemon, int64_t ms)
{
    if (!processes_wait(nothing_lives, daemon, ms))
        ck_abort_msg("%zu processes of the daemon live on", processes_alive(&daemon->below));
    ck_assert_msg(count_strays(daemon) == 0, "a provider has got away from the daemon");
    ck_assert_msg(!has_mount(daemon), "a mount is left");
}

void daemon_free(struct daemon *daemon)
{
    if (!daemon)
        return;
    if (daemon->pid) {
        int status = daemon_terminate(daemon);
        if (status != 0)
            show_log(daemon);
        ck_assert_msg(status == 0, "the daemon ended with status %d", status);
        ck_assert_msg(access(daemon->socket, F_OK) != 0, "the daemon left its socket behind");
    }
    daemon_expect_nothing(daemon, daemon->killed ? 2000 : 0);
    if (!daemon->killed)
        ck_assert_msg(keeper_group_count(daemon->keeper) == 0, "a control group is left");
    keeper_end(daemon->keeper);
    processes_free(&daemon->below);
    processes_free(&daemon->before);
    free(daemon);
}

/* ---- about it --------------------------------------------------------------------------------- */

pid_t daemon_pid(const struct daemon *daemon)
{
    return daemon->pid;
}

const char *daemon_folder(const struct daemon *daemon)
{
    return daemon->folder;
}

const char *daemon_socket(const struct daemon *daemon)
{
    return daemon->socket;
}

const char *daemon_ledger(const struct daemon *daemon)
{
    return daemon->ledger;
}

const char *daemon_log(const struct daemon *daemon)
{
    return daemon->log;
}

const char *daemon_config(const struct daemon *daemon)
{
    return daemon->config;
}

const char *daemon_journal(const struct daemon *daemon)
{
    return daemon->journal;
}

char *daemon_read_log(const struct daemon *daemon)
{
    return daemon_read_file(daemon->log);
}

struct client *daemon_connect(const struct daemon *daemon)
{
    return client_connect(daemon->socket);
}

struct processes daemon_processes(const struct daemon *daemon)
{
    return processes_below(daemon->pid);
}
