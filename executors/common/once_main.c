/*
 * once_main.c - auditrun-executor-once: lets a plain command be an executor.
 *
 * It speaks the control socket and starts the command afresh for every run: spec on descriptor 0,
 * report on 1, the code's stdin, stdout and stderr on 3, 4 and 5, the outputs file on 6, and from 7 on
 * whatever else the grant brings, in the order of protocol/spec.h. What the
 * command leaves behind is killed before the report goes out: the adapter is the parent that orphans
 * get. It adds no isolation; what the command advertises is what the command enforces.
 */
#include "build_config.h"
#include "executors/common/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NAME           "auditrun-executor-once"
#define FIRST_HIGH_FD  128 /* above all of them */
#define FD_COUNT       7   /* that the command has for every run: 0 to 6 */
#define MAX_FD_COUNT   (FD_COUNT + SPEC_MAX_DESCRIPTORS - SPEC_DESCRIPTORS)
#define FAILED_TO_EXEC 127

static const char usage_text[] =
    "Usage: " NAME " COMMAND [ARG]... capabilities | serve\n"
    "Makes an executor of a command that serves one run and ends.\n"
    "\n"
    "  capabilities   runs `COMMAND [ARG]... capabilities`, which prints the envelope\n"
    "  serve          for each run, `COMMAND [ARG]... run`: spec on descriptor 0, report on 1,\n"
    "                 the code's streams on 3, 4 and 5, the outputs file on 6, from 7 on\n"
    "                 the data port, the file of secrets and the mounts of host paths\n";

static int refuse(const char *what)
{
    (void)fprintf(stderr, NAME ": %s\n", what);
    return 2;
}

/* ---- the command ------------------------------------------------------------------------------ */

/* In the child: puts the descriptors of the run to their numbers and becomes the command. */
__attribute__((noreturn)) static void become(char **command, const struct serve_order *order,
                                             int report)
{
    const size_t more = spec_run_descriptors(&order->run) - SPEC_DESCRIPTORS;
    int wanted[MAX_FD_COUNT] = {order->descriptors[SERVE_SPEC],
                                report,
                                STDERR_FILENO,
                                order->descriptors[SERVE_STDIN],
                                order->descriptors[SERVE_STDOUT],
                                order->descriptors[SERVE_STDERR],
                                order->descriptors[SERVE_OUTPUTS]};
    const size_t count = FD_COUNT + more;
    int high[MAX_FD_COUNT];
    sigset_t none;

    memcpy(&wanted[FD_COUNT], &order->descriptors[SPEC_DESCRIPTORS], more * sizeof(int));
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || lseek(wanted[0], 0, SEEK_SET) != 0)
        _exit(FAILED_TO_EXEC);
    for (size_t i = 0; i < count; i++)
        if ((high[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, FIRST_HIGH_FD)) < 0)
            _exit(FAILED_TO_EXEC);
    for (size_t i = 0; i < count; i++)
        if (dup2(high[i], (int)i) < 0)
            _exit(FAILED_TO_EXEC);
    (void)syscall(SYS_close_range, (unsigned)count, ~0U, 0);
    (void)execvp(command[0], command);
    _exit(FAILED_TO_EXEC);
}

/* Kills the children that there are at this moment, by the kernel's own list of them. */
static void kill_children(void)
{
    char path[64], *end;
    AR_AUTO_FREE char *list = NULL;
    size_t room = 0;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (getline(&list, &room, file) > 0) {
        long pid = strtol(list, &end, 10);
        for (; pid > 0; pid = strtol(end, &end, 10))
            (void)kill((pid_t)pid, SIGKILL);
    }
    (void)fclose(file);
}

/* Kills and reaps until nobody is left: the orphans of one round are our children in the next. */
static void end_everything(pid_t leader)
{
    (void)kill(-leader, SIGKILL);
    do
        kill_children();
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

/* Reads the report of a command that has ended. False when it is none. */
static bool read_report(int fd, struct report *report)
{
    enum spec_message kind;
    static const char prefix[] = "{\"report\": ";
    AR_AUTO_FREE char *text = malloc(SPEC_MESSAGE_BYTES);
    if (!text)
        return false;
    size_t length = sizeof(prefix) - 1;
    memcpy(text, prefix, length);
    ssize_t got;
    while (length < SPEC_MESSAGE_BYTES - 1 &&
           (got = read(fd, text + length, SPEC_MESSAGE_BYTES - 1 - length)) > 0)
        length += (size_t)got;
    text[length++] = '}';
    return spec_parse_provider_message(text, length, &kind, report) == 0 && kind == SPEC_REPORT;
}

/* ---- serving ---------------------------------------------------------------------------------- */

/* Starts the command and waits for its end. SERVE_EVENT with its report, SERVE_GONE, or negative;
 * -EPROTO when there is no report. */
static int do_run(const struct serve *serve, char **command, struct serve_order *order,
                  struct report *report)
{
    int ends[2], status = 0;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    AR_AUTO_CLOSE int from = ends[0];
    /* The command writes to an ordinary pipe; only our end does not wait. */
    (void)fcntl(ends[1], F_SETFL, 0);
    pid_t pid = fork();
    if (pid == 0)
        become(command, order, ends[1]);
    (void)close(ends[1]);
    serve_order_close(order);
    if (pid < 0)
        return -errno;
    AR_AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int event = pidfd < 0 ? -errno : serve_wait(serve, pidfd);
    if (event == SERVE_EVENT && waitpid(pid, &status, 0) != pid)
        event = -errno;
    end_everything(pid);
    if (event != SERVE_EVENT)
        return event;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !read_report(from, report))
        return -EPROTO;
    return SERVE_EVENT;
}

static int serve_runs(const struct serve *serve, char **command)
{
    struct serve_order order;
    struct report report;
    for (;;) {
        int result = serve_ready(serve, false);
        if (result == 0)
            result = serve_receive(serve, &order);
        if (result == SERVE_EVENT)
            result = do_run(serve, command, &order, &report);
        if (result == SERVE_EVENT)
            result = serve_report(serve, &report);
        if (result != SERVE_EVENT)
            return result;
    }
}

static int serve(char **command)
{
    struct serve serve;
    int result = serve_open(&serve);
    if (result == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        result = -errno;
    if (result == 0)
        result = serve_runs(&serve, command);
    serve_close(&serve);
    if (result == -EPROTO)
        return refuse("the command ended without a report, or the order of a run was none");
    if (result < 0 && result != -EPIPE)
        return refuse(strerror(-result));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage_text, stdout) < 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts(NAME " " AR_VERSION) < 0;
    if (argc < 3)
        return refuse("a command and a verb are needed (--help shows the usage)");

    /* The verb takes the place of the last word: the rest is the command, ours follow. */
    char **command = argv + 1, *verb = argv[argc - 1];
    char run[] = "run";
    if (strcmp(verb, "capabilities") == 0) {
        (void)execvp(command[0], command);
        return refuse("the command cannot be started");
    }
    if (strcmp(verb, "serve") != 0)
        return refuse("the verb is capabilities or serve");
    argv[argc - 1] = run;
    (void)unsetenv("AUDITRUN_ID_SPACE"); /* descriptor 4 is another one in the command */
    return serve(command);
}
