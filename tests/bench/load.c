/*
 * load.c - closed-loop load for the daemon: so many connections, each with one request in flight.
 *
 * Each reply is looked at: it must carry the id of its request and the expected text, or the whole
 * measurement fails; a fast wrong answer is no result. In time mode the rate is that of the replies
 * inside the window, and what is still in flight at its end is waited for, so that the next
 * measurement meets a quiet daemon. With -p there is a pause before each request, outside of the clock,
 * in which the daemon can get ready for it.
 *
 * usage: load [-p PAUSE_MS] SOCKET PARAMS-FILE EXPECTED-TEXT CONNECTIONS (-n REQUESTS | -s SECONDS)
 * prints: p50_us p99_us replies_per_second
 */
#include "protocol/base.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define MAX_CONNECTIONS 8192
#define MAX_SAMPLES     8000000
#define PARAMS_BYTES    65536
#define REPLY_BYTES     32768
#define EVENTS          256
#define PATIENCE_MS     30000

struct connection {
    int fd;
    long id; /* of the request in flight, 0: none */
    double sent_us;
    size_t filled;
    char reply[REPLY_BYTES];
};

struct load {
    char params[PARAMS_BYTES];
    const char *expected;
    struct connection *connections;
    size_t connection_count;
    int poll;
    long max_requests; /* 0: until the time is over */
    double end_us;     /* 0: until the requests are done */
    struct timespec pause;
    long sent, received, counted;
    double started_us, last_us;
    double *samples;
};

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

/* ---- requests ----------------------------------------------------------------------------------- */

static bool wants_more(const struct load *load)
{
    if (load->max_requests)
        return load->sent < load->max_requests;
    return now_us() < load->end_us;
}

static void send_request(struct load *load, struct connection *connection)
{
    char line[PARAMS_BYTES + 128];
    if (load->pause.tv_sec || load->pause.tv_nsec)
        (void)nanosleep(&load->pause, NULL);
    connection->id = ++load->sent;
    int length = snprintf(line, sizeof line,
                          "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"run\",\"params\":%s}\n",
                          connection->id, load->params);
    connection->sent_us = now_us();
    for (ssize_t done = 0, n; done < length; done += n)
        if ((n = write(connection->fd, line + done, (size_t)(length - done))) < 0)
            give_up("cannot send");
}

static void check_reply(const struct load *load, const struct connection *connection)
{
    char id[32];
    (void)snprintf(id, sizeof id, "\"id\":%ld,", connection->id);
    errno = 0;
    if (!connection->id || !strstr(connection->reply, id))
        give_up("a reply to nothing that was asked");
    if (!strstr(connection->reply, load->expected)) {
        (void)fprintf(stderr, "load: not what was expected: %.2000s\n", connection->reply);
        exit(1);
    }
}

static void take_reply(struct load *load, struct connection *connection)
{
    double now = now_us();
    check_reply(load, connection);
    load->received++;
    if ((load->max_requests || now <= load->end_us) && load->counted < MAX_SAMPLES) {
        load->samples[load->counted++] = now - connection->sent_us;
        load->last_us = now;
    }
    connection->id = 0;
    connection->filled = 0;
    if (wants_more(load))
        send_request(load, connection);
}

/* One request is in flight, so one line comes, and nothing behind it. */
static void read_reply(struct load *load, struct connection *connection)
{
    ssize_t n = read(connection->fd, connection->reply + connection->filled,
                     REPLY_BYTES - 1 - connection->filled);
    if (n <= 0)
        give_up(n == 0 ? "the daemon hung up" : "cannot receive");
    connection->filled += (size_t)n;
    connection->reply[connection->filled] = '\0';
    errno = 0;
    if (connection->reply[connection->filled - 1] == '\n')
        take_reply(load, connection);
    else if (connection->filled == REPLY_BYTES - 1)
        give_up("a reply is too long");
}

static void run(struct load *load, double seconds)
{
    struct epoll_event events[EVENTS];
    load->started_us = now_us();
    load->end_us = seconds > 0 ? load->started_us + seconds * 1e6 : 0;
    for (size_t i = 0; i < load->connection_count && wants_more(load); i++)
        send_request(load, &load->connections[i]);
    while (load->received < load->sent) {
        int count = epoll_wait(load->poll, events, EVENTS, PATIENCE_MS);
        if (count == 0)
            give_up("no answer any more");
        for (int i = 0; i < count; i++)
            read_reply(load, events[i].data.ptr);
    }
}

/* ---- set-up and result -------------------------------------------------------------------------- */

static void connect_one(struct load *load, struct connection *connection, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (strlen(path) >= sizeof address.sun_path)
        give_up("the path of the socket is too long");
    memcpy(address.sun_path, path, strlen(path));
    connection->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 ||
        connect(connection->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        epoll_ctl(load->poll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
        give_up("cannot connect");
}

static void read_params(struct load *load, const char *path)
{
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(load->params, 1, PARAMS_BYTES - 1, file) : 0;
    if (length == 0)
        give_up("cannot read the params");
    (void)fclose(file);
    load->params[length] = '\0';
    load->params[strcspn(load->params, "\n")] = '\0';
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_result(struct load *load, double seconds)
{
    double elapsed_us = seconds > 0 ? seconds * 1e6 : load->last_us - load->started_us;
    if (load->counted == 0)
        give_up("no reply inside the window");
    qsort(load->samples, (size_t)load->counted, sizeof *load->samples, compare);
    (void)printf("%.0f %.0f %.1f\n", load->samples[load->counted / 2],
                 load->samples[load->counted * 99 / 100],
                 (double)load->counted / (elapsed_us / 1e6));
}

int main(int argc, char **argv)
{
    struct rlimit files = {MAX_CONNECTIONS + 64, MAX_CONNECTIONS + 64};
    static struct load load;
    if (argc > 2 && strcmp(argv[1], "-p") == 0) {
        long pause_ms = strtol(argv[2], NULL, 10);
        load.pause = (struct timespec){pause_ms / 1000, pause_ms % 1000 * 1000000};
        argc -= 2;
        argv += 2;
    }
    if (argc != 7 || (strcmp(argv[5], "-n") != 0 && strcmp(argv[5], "-s") != 0)) {
        (void)fprintf(stderr,
                      "usage: load [-p PAUSE_MS] SOCKET PARAMS-FILE EXPECTED-TEXT CONNECTIONS "
                      "(-n REQUESTS | -s SECONDS)\n");
        return 2;
    }
    double amount = strtod(argv[6], NULL), seconds = argv[5][1] == 's' ? amount : 0;
    unsigned long count = strtoul(argv[4], NULL, 10);
    if (count < 1 || count > MAX_CONNECTIONS || amount <= 0)
        give_up("a number is out of range");
    (void)setrlimit(RLIMIT_NOFILE, &files);
    load.connection_count = count;
    load.max_requests = seconds > 0 ? 0 : (long)amount;
    load.expected = argv[3];
    load.poll = epoll_create1(EPOLL_CLOEXEC);
    load.connections = calloc(count, sizeof *load.connections);
    load.samples = malloc(MAX_SAMPLES * sizeof *load.samples);
    if (load.poll < 0 || !load.connections || !load.samples)
        give_up("cannot start");
    read_params(&load, argv[2]);
    for (size_t i = 0; i < count; i++)
        connect_one(&load, &load.connections[i], argv[1]);
    run(&load, seconds);
    print_result(&load, seconds);
    free(load.connections);
    free(load.samples);
    return 0;
}
