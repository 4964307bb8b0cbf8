/*
 * provider.c - one process of an executor's program.
 *
 * Two things tell of a provider's end, in either order: the pidfd (the process can be reaped) and the
 * control group (nothing that it started is left). The pid and the pidfd are forgotten in the
 * statement that reaps. Its diagnostics on descriptor 2 are untrusted: read, counted, dropped.
 */
#include "daemon/provider.h"

#include "daemon/deadline.h"
#include "daemon/log.h"
#include "daemon/spawn.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PROVIDER_START_MS 10000 /* until the first `ready` */
#define PROVIDER_AGAIN_MS 2000  /* from a report to the next one, or to its exit */
#define PROVIDER_TERM_MS  1000  /* from SIGTERM to SIGKILL */
#define PROVIDER_SWEEP_MS 5     /* between looks at a control group that is not empty yet */

struct provider {
    const struct provider_events *events;
    void *context;
    enum provider_state state;
    bool between; /* has reported and not said `ready` since: it may also exit */
    bool ahead;   /* it wants to be told that its last run is cleared away: */
    bool cleared; /* it was, or has had no run yet */
    enum reason failure;
    pid_t pid;
    int pidfd;   /* -1: reaped */
    int control; /* -1: closed */
    int diagnostics;
    uint64_t diagnostic_bytes;
    struct event *ended, *readable, *diagnosed;
    struct deadline deadline; /* starting, or stopping */
    struct deadline sweep;
    struct cgroup *cgroup;
    bool may_listen; /* the run has a network, and no listener yet */
};

static void stop_for(struct provider *provider, enum reason failure)
{
    if (provider->state >= PROVIDER_STOPPING)
        return;
    provider->state = PROVIDER_STOPPING;
    provider->failure = failure;
    spawn_signal(provider->pidfd, SIGTERM);
    deadline_start(&provider->deadline, PROVIDER_TERM_MS);
}

/* What it means that it goes of its own accord now. */
static enum reason exit_reason(const struct provider *provider)
{
    if (provider->state != PROVIDER_STARTING)
        return REASON_CRASHED;
    return provider->between ? REASON_NONE : REASON_SPAWN_FAILED;
}

static void kill_all(struct provider *provider)
{
    spawn_signal(provider->pidfd, SIGKILL);
    (void)cgroup_kill(provider->cgroup, 0);
}

static void deadline_passed(void *context)
{
    struct provider *provider = context;
    if (provider->state == PROVIDER_STARTING)
        stop_for(provider, REASON_SPAWN_FAILED);
    else
        kill_all(provider);
}

/* The process is reaped: gone as soon as its control group is empty. */
static void sweep(void *context)
{
    struct provider *provider = context;
    if (cgroup_kill(provider->cgroup, 0) > 0) {
        deadline_start(&provider->sweep, PROVIDER_SWEEP_MS);
        return;
    }
    provider->state = PROVIDER_GONE;
    provider->events->gone(provider->context, provider->failure);
}

static void read_messages(struct provider *provider);

static void process_ended(evutil_socket_t fd, short what, void *context)
{
    struct provider *provider = context;
    int code, status;
    (void)what;
    int rc = spawn_reap(fd, &code, &status);
    if (rc > 0)
        return;
    if (rc < 0)
        log_fatal("a provider cannot be reaped");
    (void)event_del(provider->ended);
    base_close(&provider->pidfd);
    provider->pidfd = -1;
    read_messages(provider); /* what it said before it went */
    (void)event_del(provider->readable);
    base_close(&provider->control);
    provider->control = -1;
    deadline_stop(&provider->deadline);
    if (provider->state < PROVIDER_STOPPING)
        provider->failure = exit_reason(provider);
    provider->state = PROVIDER_STOPPING;
    deadline_start(&provider->sweep, 0);
}

static void take_ready(struct provider *provider, bool ahead)
{
    if (provider->state != PROVIDER_STARTING) {
        stop_for(provider, REASON_PROTOCOL_VIOLATION);
        return;
    }
    deadline_stop(&provider->deadline);
    provider->state = PROVIDER_IDLE;
    provider->between = false;
    provider->ahead = ahead;
    provider->events->ready(provider->context);
}

static void take_report(struct provider *provider, const struct report *report)
{
    if (provider->state != PROVIDER_BUSY) {
        stop_for(provider, REASON_PROTOCOL_VIOLATION);
        return;
    }
    /* From here it is like one that starts: it owes a `ready`, within a deadline. */
    provider->state = PROVIDER_STARTING;
    provider->between = true;
    deadline_start(&provider->deadline, PROVIDER_AGAIN_MS);
    provider->events->reported(provider->context, report);
}

/* Keeps the first descriptor of a message and drops the others. */
static void take_descriptors(struct msghdr *message, int *first)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (*first < 0)
                *first = fd;
            else
                (void)close(fd);
        }
    }
}

/* One message, and the first descriptor that came with it (owned) or -1. >0 size, 0 end, -errno. */
static ssize_t receive(struct provider *provider, char *text, size_t room, int *descriptor)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * 4)];
    } control;
    struct iovec part = {.iov_base = text, .iov_len = room};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(provider->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    take_descriptors(&message, descriptor);
    return message.msg_flags & MSG_TRUNC ? (ssize_t)room + 1 : n;
}

/* A listener comes once, in a run that has a network. */
static void take_listener(struct provider *provider, int *listener)
{
    if (provider->state != PROVIDER_BUSY || !provider->may_listen || *listener < 0) {
        stop_for(provider, REASON_PROTOCOL_VIOLATION);
        return;
    }
    provider->may_listen = false;
    provider->events->listening(provider->context, base_take_fd(listener));
}

/* Takes one message. False when there is none (any more). */
static bool read_message(struct provider *provider)
{
    char text[SPEC_MESSAGE_BYTES];
    enum spec_message kind;
    struct report report;
    AR_AUTO_CLOSE int descriptor = -1;
    ssize_t n = receive(provider, text, sizeof text, &descriptor);
    if (n == -EAGAIN || n == -EINTR)
        return false;
    if (n <= 0) { /* it has closed its end: it is going, or must */
        (void)event_del(provider->readable);
        stop_for(provider, exit_reason(provider));
        return false;
    }
    if ((size_t)n > sizeof text ||
        spec_parse_provider_message(text, (size_t)n, &kind, &report) != 0) {
        stop_for(provider, REASON_PROTOCOL_VIOLATION);
        return false;
    }
    if (kind == SPEC_REPORT)
        take_report(provider, &report);
    else if (kind == SPEC_LISTENER)
        take_listener(provider, &descriptor);
    else
        take_ready(provider, kind == SPEC_READY_AHEAD);
    return true;
}

static void read_messages(struct provider *provider)
{
    /* A few in a turn: one that floods us must not hold the loop. */
    for (int i = 0; i < 4 && provider->control >= 0 && provider->state < PROVIDER_STOPPING; i++)
        if (!read_message(provider))
            return;
}

static void control_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct provider *provider = context;
    if (provider->state >= PROVIDER_STOPPING)
        (void)event_del(provider->readable);
    else
        read_messages(provider);
}

static void drop_diagnostics(evutil_socket_t fd, short what, void *context)
{
    struct provider *provider = context;
    char waste[4096];
    (void)what;
    ssize_t n = read(fd, waste, sizeof waste);
    if (n > 0)
        provider->diagnostic_bytes += (uint64_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        (void)event_del(provider->diagnosed);
}

/* Which limits the host enforces, so that the provider need not do it a second time. */
static void name_host_limits(const struct provider_start *start, char *text, size_t room)
{
    const struct limits *offers = cgroup_root_offers(start->cgroups);
    size_t length = (size_t)snprintf(text, room, "AUDITRUN_HOST_LIMITS=");
    for (int i = 0; i < LIMIT_COUNT && length < room; i++)
        if (offers->has[i])
            length += (size_t)snprintf(text + length, room - length, "%s ", limit_word(i));
}

/* What its runs may reach, as words. */
static void name_reach(unsigned reach, char *text, size_t room)
{
    (void)snprintf(text, room, "AUDITRUN_REACH=%s%s",
                   reach & PROVIDER_REACHES_NETWORK ? "network " : "",
                   reach & PROVIDER_REACHES_FILES ? "files " : "");
}

static int start_process(struct provider *provider, const struct provider_start *start, int control,
                         int diagnostics)
{
    char path[] = SPAWN_PATH, space[] = SPAWN_ID_SPACE;
    char slot[32], limits[160], reach[48];
    char *environment[] = {path, slot, limits, reach, start->id_space >= 0 ? space : NULL, NULL};
    AR_AUTO_FREE char **arguments = spawn_arguments(start->program, start->arguments, "serve");
    if (!arguments)
        return -ENOMEM;
    (void)snprintf(slot, sizeof slot, "AUDITRUN_SLOT=%d", start->slot);
    name_host_limits(start, limits, sizeof limits);
    name_reach(start->reach, reach, sizeof reach);
    struct spawn spawn = {.program = start->program,
                          .arguments = arguments,
                          .environment = environment,
                          .descriptors = {-1, -1, diagnostics, control, start->id_space}};
    int rc = spawn_start(&spawn, &provider->pid, &provider->pidfd);
    return rc == 0 ? cgroup_attach(provider->cgroup, provider->pid) : rc;
}

static int open_channels(struct provider *provider, int *control, int *diagnostics)
{
    int pair[2], ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    provider->control = pair[0];
    *control = pair[1];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    provider->diagnostics = ends[0];
    *diagnostics = ends[1];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : -errno;
}

static int make_events(struct provider *provider, struct event_base *base)
{
    provider->ended =
        event_new(base, provider->pidfd, EV_READ | EV_PERSIST, process_ended, provider);
    provider->readable =
        event_new(base, provider->control, EV_READ | EV_PERSIST, control_readable, provider);
    provider->diagnosed =
        event_new(base, provider->diagnostics, EV_READ | EV_PERSIST, drop_diagnostics, provider);
    if (!provider->ended || !provider->readable || !provider->diagnosed ||
        event_add(provider->ended, NULL) != 0 || event_add(provider->readable, NULL) != 0 ||
        event_add(provider->diagnosed, NULL) != 0)
        return -ENOMEM;
    return 0;
}

static int start_all(struct provider *provider, const struct provider_start *start)
{
    AR_AUTO_CLOSE int control = -1;
    AR_AUTO_CLOSE int diagnostics = -1;
    int rc = deadline_init(&provider->deadline, start->base, deadline_passed, provider);
    if (rc == 0)
        rc = deadline_init(&provider->sweep, start->base, sweep, provider);
    if (rc == 0)
        rc = cgroup_new(start->cgroups, start->slot, &provider->cgroup);
    if (rc == 0)
        rc = open_channels(provider, &control, &diagnostics);
    if (rc == 0)
        rc = start_process(provider, start, control, diagnostics);
    if (rc == 0)
        rc = make_events(provider, start->base);
    if (rc == 0)
        deadline_start(&provider->deadline, PROVIDER_START_MS);
    return rc;
}

int provider_start(const struct provider_start *start, struct provider **out)
{
    struct provider *provider = calloc(1, sizeof *provider);
    if (!provider)
        return -ENOMEM;
    *provider = (struct provider){.events = start->events,
                                  .context = start->context,
                                  .pidfd = -1,
                                  .control = -1,
                                  .diagnostics = -1};
    int rc = start_all(provider, start);
    if (rc < 0)
        provider_free(provider);
    else
        *out = provider;
    return rc;
}

int provider_run(struct provider *provider, const struct grant *grant, const struct spec_run *run,
                 const int *descriptors)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * SPEC_MAX_DESCRIPTORS)];
    } control = {0};
    const size_t bytes = sizeof(int) * spec_run_descriptors(run);
    AR_AUTO_FREE char *text = spec_run_message(run);
    if (!text)
        return -ENOMEM;
    if (provider->state != PROVIDER_IDLE)
        return -EBUSY;
    int rc = cgroup_begin(provider->cgroup, &grant->limits);
    if (rc < 0)
        return rc;
    struct iovec part = {.iov_base = text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), descriptors, bytes);
    message.msg_controllen = CMSG_SPACE(bytes);
    if (sendmsg(provider->control, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return -errno;
    provider->state = PROVIDER_BUSY;
    provider->may_listen = grant->network != NETWORK_NONE;
    provider->cleared = false;
    return 0;
}

void provider_stop(struct provider *provider)
{
    stop_for(provider, REASON_NONE);
}

enum provider_state provider_state(const struct provider *provider)
{
    return provider->state;
}

pid_t provider_pid(const struct provider *provider)
{
    return provider->pidfd >= 0 ? provider->pid : 0;
}

int64_t provider_uid(const struct provider *provider)
{
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/status", provider_pid(provider));
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0)
        return -1;
    text[length] = '\0';
    const char *line = strstr(text, "\nUid:\t"); /* proc(5): the name before it has no line end */
    return line ? strtoll(line + strlen("\nUid:\t"), NULL, 10) : -1;
}

bool provider_is_between(const struct provider *provider)
{
    return provider->between;
}

void provider_findings(struct provider *provider, struct cgroup_findings *out)
{
    cgroup_findings(provider->cgroup, out);
}

static void send_clear(struct provider *provider)
{
    AR_AUTO_FREE char *text = spec_clear_message();
    if (text && send(provider->control, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        deadline_start(&provider->deadline, PROVIDER_AGAIN_MS);
    else
        stop_for(provider, REASON_CRASHED);
}

size_t provider_clear(struct provider *provider)
{
    if (provider->cleared)
        return 0;
    size_t left = cgroup_kill(provider->cgroup, provider_pid(provider));
    provider->cleared = left == 0;
    if (provider->cleared && provider->ahead && provider->between &&
        provider->state == PROVIDER_STARTING)
        send_clear(provider);
    return left;
}

/* For one that is freed while its process still runs: a failed start, or the daemon's own end. */
static void reap_now(struct provider *provider)
{
    siginfo_t info;
    if (provider->pidfd < 0)
        return;
    kill_all(provider);
    (void)waitid((idtype_t)P_PIDFD, (id_t)provider->pidfd, &info, WEXITED);
    base_close(&provider->pidfd);
    provider->pidfd = -1;
}

void provider_free(struct provider *provider)
{
    if (!provider)
        return;
    reap_now(provider);
    struct event *events[] = {provider->ended, provider->readable, provider->diagnosed};
    for (size_t i = 0; i < AR_COUNT(events); i++)
        if (events[i])
            event_free(events[i]);
    deadline_free(&provider->deadline);
    deadline_free(&provider->sweep);
    base_close(&provider->control);
    base_close(&provider->diagnostics);
    cgroup_free(provider->cgroup);
    free(provider);
}
