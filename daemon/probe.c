/*
 * probe.c - asks an executor program what it can enforce on this host.
 *
 * The answer is untrusted text, bounded and checked. It counts only when the program has exited with 0
 * and its output has come to its end, in either order, within the time.
 */
#include "daemon/probe.h"

#include "daemon/deadline.h"
#include "daemon/spawn.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define PROBE_MS 10000

struct probe {
    probe_answer_fn *answered;
    void *context;
    pid_t pid;
    int pidfd;
    int output;
    struct event *ended, *readable;
    struct deadline deadline;
    bool exited_well, drained, failed;
    char text[ENVELOPE_MAX_BYTES];
    size_t length;
    const char *why;
};

static void finish(struct probe *probe)
{
    struct envelope envelope;
    struct fault fault = {0};
    probe_answer_fn *answered = AR_TAKE(probe->answered);
    deadline_stop(&probe->deadline);
    (void)event_del(probe->readable);
    if (!answered)
        return;
    if (!probe->failed && envelope_parse(probe->text, probe->length, &envelope, &fault) != 0) {
        probe->failed = true;
        probe->why = "its answer is no envelope";
    }
    answered(probe->context, probe->failed ? NULL : &envelope, probe->why);
}

static void fail(struct probe *probe, const char *why)
{
    probe->failed = true;
    if (!probe->why)
        probe->why = why;
}

static void finish_if_over(struct probe *probe)
{
    if (probe->pidfd < 0 && (probe->drained || probe->failed))
        finish(probe);
}

static void process_ended(evutil_socket_t fd, short what, void *context)
{
    struct probe *probe = context;
    int code, status;
    (void)what;
    int rc = spawn_reap(fd, &code, &status);
    if (rc > 0)
        return;
    (void)event_del(probe->ended);
    base_close(&probe->pidfd);
    probe->pidfd = -1;
    if (rc < 0 || code != CLD_EXITED || status != 0)
        fail(probe, "it did not exit with 0");
    finish_if_over(probe);
}

static void output_readable(evutil_socket_t fd, short what, void *context)
{
    struct probe *probe = context;
    (void)what;
    size_t room = sizeof probe->text - probe->length;
    ssize_t n = room ? read(fd, probe->text + probe->length, room) : -1;
    if (room && n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        probe->length += (size_t)n;
        return;
    }
    if (n < 0)
        fail(probe, "its answer is too long");
    probe->drained = true;
    (void)event_del(probe->readable);
    if (probe->failed)
        spawn_signal(probe->pidfd, SIGKILL);
    finish_if_over(probe);
}

static void too_late(void *context)
{
    struct probe *probe = context;
    fail(probe, "it did not answer in time");
    spawn_signal(probe->pidfd, SIGKILL);
    finish_if_over(probe);
}

static int start_process(struct probe *probe, const char *program,
                         const struct text_list *arguments, int id_space, int output)
{
    char path[] = SPAWN_PATH, space[] = SPAWN_ID_SPACE;
    char *environment[] = {path, id_space >= 0 ? space : NULL, NULL};
    AR_AUTO_FREE char **argv = spawn_arguments(program, arguments, "capabilities");
    if (!argv)
        return -ENOMEM;
    struct spawn spawn = {.program = program,
                          .arguments = argv,
                          .environment = environment,
                          .descriptors = {-1, output, -1, -1, id_space}};
    return spawn_start(&spawn, &probe->pid, &probe->pidfd);
}

static int start_all(struct probe *probe, struct event_base *base, const char *program,
                     const struct text_list *arguments, int id_space)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    probe->output = ends[0];
    AR_AUTO_CLOSE int output = ends[1];
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
        return -errno;
    int rc = deadline_init(&probe->deadline, base, too_late, probe);
    if (rc == 0)
        rc = start_process(probe, program, arguments, id_space, output);
    if (rc < 0)
        return rc;
    probe->ended = event_new(base, probe->pidfd, EV_READ | EV_PERSIST, process_ended, probe);
    probe->readable = event_new(base, probe->output, EV_READ | EV_PERSIST, output_readable, probe);
    if (!probe->ended || !probe->readable || event_add(probe->ended, NULL) != 0 ||
        event_add(probe->readable, NULL) != 0)
        return -ENOMEM;
    deadline_start(&probe->deadline, PROBE_MS);
    return 0;
}

struct probe *probe_start(struct event_base *base, const char *program,
                          const struct text_list *arguments, int id_space,
                          probe_answer_fn *answered, void *context)
{
    struct probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return NULL;
    probe->answered = answered;
    probe->context = context;
    probe->pidfd = probe->output = -1;
    if (start_all(probe, base, program, arguments, id_space) < 0) {
        probe_free(probe);
        return NULL;
    }
    return probe;
}

pid_t probe_pid(const struct probe *probe)
{
    return probe->pidfd >= 0 ? probe->pid : 0;
}

void probe_free(struct probe *probe)
{
    siginfo_t info;
    if (!probe)
        return;
    if (probe->pidfd >= 0) {
        spawn_signal(probe->pidfd, SIGKILL);
        (void)waitid((idtype_t)P_PIDFD, (id_t)probe->pidfd, &info, WEXITED);
        base_close(&probe->pidfd);
    }
    if (probe->ended)
        event_free(probe->ended);
    if (probe->readable)
        event_free(probe->readable);
    deadline_free(&probe->deadline);
    base_close(&probe->output);
    free(probe);
}
