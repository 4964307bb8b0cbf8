/*
 * egress.c - the proxy of runs beside what loopback can do, and what it does to the loop.
 *
 * The proxy is in this process, in the daemon's own loop; origin and code are processes of their own, code
 * in a network namespace with nothing but a loopback. Direct: the same code reads the same bytes from
 * the same origin without the proxy. Needs root.
 *
 * usage: egress throughput MEBIBYTES ROUNDS
 *        prints: direct and proxied MiB/s (medians of rounds taken in turn), their ratio in percent, and
 *        milliseconds of processor time that the proxy took for a GiB
 *        egress crowd RUNS CONNECTIONS KIBIBYTES
 *        prints: MiB/s of all connections at once, and of a timer of 5 ms in the loop meanwhile how often it came, how late
 *        it was in the median, at the 99th percentile and at worst (microseconds), at worst by the loop's own
 *        doing (no later than the processor time that it took since the time before), and at worst at rest
 */
#include "daemon/egress.h"
#include "daemon/clock.h"
#include "daemon/loop.h"
#include "daemon/resolver.h"
#include "tests/lib/network.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BUFFER_BYTES (256 * 1024)
#define MAX_RUNS     1000
#define MAX_SOCKETS  8192
#define MAX_SAMPLES  (1 << 20)
#define TICK_US      5000
#define FIRST_PORT   3128
#define REST_TICKS   200

struct bench {
    struct loop *loop;
    struct resolver *resolver;
    struct config_network config;
    struct address_range allowed;
    struct grant grant;
    struct egress *runs[MAX_RUNS];
    size_t count;
    int network;
    struct sockaddr_in origin;
    int64_t each; /* bytes that the origin sends to each connection */
    pid_t origin_pid;
};

static char buffer[BUFFER_BYTES];
static int64_t samples[MAX_SAMPLES];

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "egress: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int require(int result, const char *what)
{
    if (result < 0) {
        errno = result < -1 ? -result : errno;
        give_up(what);
    }
    return result;
}

/* ---- the origin --------------------------------------------------------------------------------- */

/* Sends what still has to be sent; false when all has been. */
static bool serve(int fd, int64_t *left)
{
    while (*left > 0) {
        size_t most = *left < BUFFER_BYTES ? (size_t)*left : BUFFER_BYTES;
        ssize_t n = send(fd, buffer, most, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        *left -= n;
    }
    return false;
}

static _Noreturn void run_origin(int listener, int64_t each)
{
    static struct pollfd fds[MAX_SOCKETS];
    static int64_t left[MAX_SOCKETS];
    nfds_t count = 1;
    fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        if (poll(fds, count, -1) < 0)
            give_up("poll");
        for (nfds_t i = count; --i > 0;) {
            if (fds[i].revents == 0 || serve(fds[i].fd, &left[i]))
                continue;
            (void)close(fds[i].fd);
            fds[i] = fds[--count];
            left[i] = left[count];
        }
        if ((fds[0].revents & POLLIN) && count < MAX_SOCKETS) {
            int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            left[count] = each;
            fds[count++] = (struct pollfd){.fd = require(fd, "accept"), .events = POLLOUT};
        }
    }
}

static pid_t start_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return require(pid, "fork");
}

static void start_origin(struct bench *bench)
{
    bench->origin = network_address("127.1.0.1", 0);
    int listener = require(network_listen(-1, &bench->origin), "listen");
    bench->origin_pid = start_process();
    if (bench->origin_pid == 0)
        run_origin(listener, bench->each);
    (void)close(listener);
}

/* ---- code --------------------------------------------------------------------------------------- */

static void ask(int fd, const struct sockaddr_in *origin)
{
    char text[128];
    int length = snprintf(text, sizeof text, "CONNECT 127.1.0.1:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                          (unsigned)ntohs(origin->sin_port));
    if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length)
        give_up("ask");
}

/* All connections at once, to their ends. Exits with 0 when at least so much came over each. */
static _Noreturn void run_code(const struct bench *bench, size_t runs, size_t connections)
{
    static struct pollfd fds[MAX_SOCKETS];
    static int64_t heard[MAX_SOCKETS];
    size_t count = 0, open;
    for (size_t i = 0; i < (runs ? runs * connections : 1); i++) {
        struct sockaddr_in proxy =
            network_address("127.0.0.1", (uint16_t)(FIRST_PORT + (runs ? i % runs : 0)));
        int fd = network_connect(runs ? bench->network : -1, runs ? &proxy : &bench->origin);
        fds[count++] = (struct pollfd){.fd = require(fd, "connect"), .events = POLLIN};
        if (runs)
            ask(fd, &bench->origin);
    }
    for (open = count; open > 0;) {
        if (poll(fds, count, -1) < 0)
            give_up("poll");
        for (size_t i = 0; i < count; i++) {
            if (fds[i].fd < 0 || fds[i].revents == 0)
                continue;
            ssize_t n = recv(fds[i].fd, buffer, sizeof buffer, MSG_DONTWAIT);
            heard[i] += n > 0 ? n : 0;
            if (n > 0 || (n < 0 && errno == EAGAIN))
                continue;
            if (heard[i] < bench->each)
                give_up("a connection ended early");
            fds[i].fd = -1;
            open--;
        }
    }
    exit(0);
}

/* ---- the proxy ---------------------------------------------------------------------------------- */

static void ignore(void *context)
{
    (void)context;
}

static void child_ended(evutil_socket_t fd, short what, void *context)
{
    struct bench *bench = context;
    (void)fd;
    (void)what;
    loop_stop(bench->loop);
}

static void start_run(struct bench *bench)
{
    const struct egress_start start = {loop_base(bench->loop), bench->resolver, &bench->config,
                                       &bench->grant};
    struct sockaddr_in address =
        network_address("127.0.0.1", (uint16_t)(FIRST_PORT + bench->count));
    int listener = require(network_listen(bench->network, &address), "listen in the namespace");
    struct egress **egress = &bench->runs[bench->count++];
    require(egress_new(&start, egress), "egress_new");
    if (require(egress_listen(*egress, listener), "egress_listen") != 0)
        give_up("the listener is refused");
}

static void set_up(struct bench *bench, size_t runs)
{
    static const struct loop_signals signals = {ignore, ignore, NULL};
    const struct rlimit files = {.rlim_cur = 16384, .rlim_max = 16384};
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        give_up("setrlimit");
    bench->network = require(network_new(), "a network namespace (needs root)");
    start_origin(bench);
    if (!address_range_parse("127.1.0.0/16", &bench->allowed))
        give_up("a range");
    bench->grant.network = NETWORK_OPEN;
    bench->config = (struct config_network){.open = true,
                                            .allowed = {&bench->allowed, 1},
                                            .max_connections = 64,
                                            .max_bytes = INT64_MAX,
                                            .connect_timeout_ms = 60000,
                                            .idle_timeout_ms = 60000};
    require(loop_open(&signals, NULL, &bench->loop), "loop_open");
    require(resolver_new(loop_base(bench->loop), &bench->config, &bench->resolver), "resolver");
    for (size_t i = 0; i < runs; i++)
        start_run(bench);
}

static void tear_down(struct bench *bench)
{
    (void)kill(bench->origin_pid, SIGKILL);
    (void)waitpid(bench->origin_pid, NULL, 0);
    for (size_t i = 0; i < bench->count; i++)
        egress_free(bench->runs[i]);
    resolver_free(bench->resolver);
    loop_free(bench->loop);
    (void)close(bench->network);
}

/* Code runs in a process, and the loop meanwhile. Microseconds until it has ended. */
static int64_t measure(struct bench *bench, size_t runs, size_t connections)
{
    int status;
    struct event *ended = evsignal_new(loop_base(bench->loop), SIGCHLD, child_ended, bench);
    if (!ended || event_add(ended, NULL) != 0)
        give_up("a signal's event");
    int64_t from_us = clock_monotonic_us();
    pid_t pid = start_process();
    if (pid == 0)
        run_code(bench, runs, connections);
    require(loop_run(bench->loop), "loop_run");
    if (waitpid(pid, &status, 0) != pid || status != 0)
        give_up("code did not get what it should");
    event_free(ended);
    return clock_monotonic_us() - from_us;
}

static int compare(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static double rate(int64_t bytes, int64_t us)
{
    return (double)bytes / (1 << 20) / ((double)us / 1e6);
}

static int64_t processor_us(void)
{
    return clock_read_us(CLOCK_PROCESS_CPUTIME_ID);
}

static void throughput(struct bench *bench, int64_t mebibytes, size_t rounds)
{
    int64_t direct[99] = {0}, proxied[99] = {0}, spent_us = 0;
    rounds = rounds < AR_COUNT(direct) ? rounds : AR_COUNT(direct);
    bench->each = mebibytes << 20;
    set_up(bench, 1);
    for (size_t i = 0; i < rounds; i++) {
        direct[i] = measure(bench, 0, 0);
        spent_us -= processor_us();
        proxied[i] = measure(bench, 1, 1);
        spent_us += processor_us();
    }
    qsort(direct, rounds, sizeof *direct, compare);
    qsort(proxied, rounds, sizeof *proxied, compare);
    double one = rate(bench->each, direct[rounds / 2]);
    double other = rate(bench->each, proxied[rounds / 2]);
    printf("%.0f %.0f %.0f %.0f\n", one, other, 100 * other / one,
           (double)spent_us / 1e3 / (double)rounds / ((double)mebibytes / 1024));
}

/* ---- how late the loop is ----------------------------------------------------------------------- */

struct pulse {
    struct event *event;
    struct bench *bench;
    int64_t due_us, spent_us, worst_own_us;
    size_t count, stop_at; /* 0: never */
};

static void beat(evutil_socket_t fd, short what, void *context)
{
    struct pulse *pulse = context;
    const struct timeval next = {.tv_usec = TICK_US};
    int64_t now_us = clock_monotonic_us(), late_us = now_us - pulse->due_us;
    int64_t spent_us = processor_us(), own_us = spent_us - pulse->spent_us;
    (void)fd;
    (void)what;
    if (pulse->count < MAX_SAMPLES)
        samples[pulse->count++] = late_us > 0 ? late_us : 0;
    own_us = own_us < late_us ? own_us : late_us;
    pulse->worst_own_us = own_us > pulse->worst_own_us ? own_us : pulse->worst_own_us;
    pulse->due_us = now_us + TICK_US;
    pulse->spent_us = spent_us;
    if (event_add(pulse->event, &next) != 0)
        give_up("a timer");
    if (pulse->count == pulse->stop_at)
        loop_stop(pulse->bench->loop);
}

static void start_pulse(struct pulse *pulse, struct bench *bench, size_t stop_at)
{
    const struct timeval next = {.tv_usec = TICK_US};
    *pulse = (struct pulse){.bench = bench, .stop_at = stop_at, .spent_us = processor_us()};
    pulse->event = evtimer_new(loop_base(bench->loop), beat, pulse);
    pulse->due_us = clock_monotonic_us() + TICK_US;
    if (!pulse->event || event_add(pulse->event, &next) != 0)
        give_up("a timer");
}

static int64_t rest(struct bench *bench)
{
    struct pulse pulse;
    start_pulse(&pulse, bench, REST_TICKS);
    require(loop_run(bench->loop), "loop_run");
    event_free(pulse.event);
    qsort(samples, pulse.count, sizeof *samples, compare);
    return samples[pulse.count - 1];
}

static void crowd(struct bench *bench, size_t runs, size_t connections, int64_t kibibytes)
{
    struct pulse pulse;
    bench->each = kibibytes << 10;
    set_up(bench, runs);
    int64_t at_rest = rest(bench);
    start_pulse(&pulse, bench, 0);
    int64_t us = measure(bench, runs, connections);
    event_free(pulse.event);
    qsort(samples, pulse.count, sizeof *samples, compare);
    printf("%.0f %zu %lld %lld %lld %lld %lld\n",
           rate(bench->each * (int64_t)(runs * connections), us), pulse.count,
           (long long)samples[pulse.count / 2], (long long)samples[pulse.count * 99 / 100],
           (long long)samples[pulse.count - 1], (long long)pulse.worst_own_us, (long long)at_rest);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    long numbers[3] = {0};
    for (int i = 2; i < argc && i < 5; i++)
        numbers[i - 2] = strtol(argv[i], NULL, 10);
    bool sound = numbers[0] > 0 && numbers[1] > 0;
    if (argc == 4 && strcmp(argv[1], "throughput") == 0 && sound) {
        throughput(&bench, numbers[0], (size_t)numbers[1]);
    } else if (argc == 5 && strcmp(argv[1], "crowd") == 0 && sound && numbers[0] <= MAX_RUNS &&
               numbers[2] > 0 && numbers[0] * numbers[1] < MAX_SOCKETS) {
        crowd(&bench, (size_t)numbers[0], (size_t)numbers[1], numbers[2]);
    } else {
        (void)fputs(
            "usage: egress throughput MEBIBYTES ROUNDS | crowd RUNS CONNECTIONS KIBIBYTES\n",
            stderr);
        return 2;
    }
    tear_down(&bench);
    return 0;
}
