/*
 * serve.c - the provider's side of the control socket.
 *
 * The daemon is trusted to start the provider, but its messages are read like any input: bounded,
 * with exactly the descriptors that an order has; whatever else came along is closed.
 */
#include "executors/common/serve.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

/* More than an order has, so that a surplus is seen instead of cut off. */
#define MAX_RECEIVED (SPEC_MAX_DESCRIPTORS + 4)
/* More than any message of the daemon has. */
#define MAX_MESSAGE_BYTES 1024

int serve_open(struct serve *serve)
{
    int type;
    socklen_t length = sizeof(type);
    sigset_t ending;

    *serve = (struct serve){.control = SERVE_CONTROL, .signals = -1};
    if (getsockopt(SERVE_CONTROL, SOL_SOCKET, SO_TYPE, &type, &length) < 0)
        return -errno;
    if (type != SOCK_SEQPACKET)
        return -EPROTOTYPE;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &ending, NULL) < 0)
        return -errno;
    serve->signals = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    return serve->signals < 0 ? -errno : 0;
}

void serve_close(struct serve *serve)
{
    base_close(&serve->signals);
    serve->signals = -1;
}

static int send_text(const struct serve *serve, const char *text)
{
    ssize_t sent;
    if (!text)
        return -ENOMEM;
    do
        sent = send(serve->control, text, strlen(text), MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int serve_ready(const struct serve *serve, bool ahead)
{
    AR_AUTO_FREE char *text = spec_ready_message(ahead);
    return send_text(serve, text);
}

int serve_report(const struct serve *serve, const struct report *report)
{
    AR_AUTO_FREE char *text = spec_report_message(report);
    return send_text(serve, text);
}

int serve_listener(const struct serve *serve, int listener)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    AR_AUTO_FREE char *text = spec_listener_message();
    if (!text)
        return -ENOMEM;
    struct iovec part = {.iov_base = text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &listener, sizeof(int));
    return sendmsg(serve->control, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int wait_for(const struct serve *serve, int fd, short control_events)
{
    struct pollfd waits[] = {
        {.fd = serve->control, .events = control_events},
        {.fd = serve->signals, .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };
    while (poll(waits, AR_COUNT(waits), -1) < 0)
        if (errno != EINTR)
            return -errno;
    /* What was waited for comes first: a run that has ended is reported, if anybody listens. */
    if (waits[2].revents)
        return SERVE_EVENT;
    return SERVE_GONE;
}

int serve_wait(const struct serve *serve, int fd)
{
    return wait_for(serve, fd, POLLIN | POLLRDHUP);
}

int serve_watch(const struct serve *serve, int fd)
{
    return wait_for(serve, fd, POLLRDHUP);
}

/* Waits for a message on the control socket itself. */
static int wait_for_message(const struct serve *serve)
{
    struct pollfd waits[] = {
        {.fd = serve->control, .events = POLLIN},
        {.fd = serve->signals, .events = POLLIN},
    };
    while (poll(waits, AR_COUNT(waits), -1) < 0)
        if (errno != EINTR)
            return -errno;
    return waits[1].revents ? SERVE_GONE : SERVE_EVENT;
}

static void close_all(int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        base_close(&descriptors[i]);
        descriptors[i] = -1;
    }
}

/* The descriptors that came with a message, however many; false when some were cut off. */
static bool take_descriptors(struct msghdr *message, int received[MAX_RECEIVED], size_t *taken)
{
    size_t count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here && count < MAX_RECEIVED; i++)
            memcpy(&received[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
    *taken = count;
    return !(message->msg_flags & (MSG_CTRUNC | MSG_TRUNC));
}

static size_t wanted_descriptors(enum spec_message kind, const struct spec_run *run)
{
    return kind == SPEC_RUN ? spec_run_descriptors(run) : 0;
}

/* One message of this kind, with all and only the descriptors that it has. */
static int receive(const struct serve *serve, enum spec_message wanted, struct serve_order *order)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(MAX_RECEIVED * sizeof(int))];
    } control;
    char text[MAX_MESSAGE_BYTES];
    struct iovec part = {.iov_base = text, .iov_len = sizeof(text)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    enum spec_message kind;
    ssize_t length;

    int received[MAX_RECEIVED];
    size_t count = 0;
    *order = (struct serve_order){0};
    int waited = wait_for_message(serve);
    if (waited != SERVE_EVENT)
        return waited;
    do
        length = recvmsg(serve->control, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return errno == ECONNRESET ? SERVE_GONE : -errno;
    if (length == 0)
        return SERVE_GONE;
    int parsed = take_descriptors(&message, received, &count)
                     ? spec_parse_daemon_message(text, (size_t)length, &kind, &order->run)
                     : 1;
    if (parsed == 0 && kind == wanted && count == wanted_descriptors(kind, &order->run)) {
        memcpy(order->descriptors, received, count * sizeof(int));
        return SERVE_EVENT;
    }
    close_all(received, count);
    return parsed < 0 ? parsed : -EPROTO;
}

int serve_receive(const struct serve *serve, struct serve_order *order)
{
    return receive(serve, SPEC_RUN, order);
}

int serve_await_clear(const struct serve *serve)
{
    struct serve_order none;
    return receive(serve, SPEC_CLEAR, &none);
}

void serve_order_close(struct serve_order *order)
{
    close_all(order->descriptors, spec_run_descriptors(&order->run));
}
