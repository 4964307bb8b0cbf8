/*
 * hold.c - connections that the daemon has to keep something for, while it is looked at.
 *
 * Each connection has been served once (a `status`), so that it is an idle one as they are in life.
 * Then it stays as it is, or holds the first bytes of a request whose line does not end (all of them
 * read by the daemon before this program says so), or has a run in flight.
 *
 * usage: hold SOCKET CONNECTIONS idle | line BYTES | run PARAMS-FILE
 * prints `holding` when all is there, and ends when its standard input does
 */
#include "protocol/base.h"

#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define MAX_CONNECTIONS 8192
#define PARAMS_BYTES    65536
#define CHUNK_BYTES     65536
#define TAKEN_TRIES     10000 /* a millisecond each */

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "hold: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static void send_all(int fd, const char *text, size_t length)
{
    for (ssize_t sent; length > 0; text += sent, length -= (size_t)sent)
        if ((sent = send(fd, text, length, MSG_NOSIGNAL)) < 0)
            give_up("cannot send");
}

static int connect_served(const char *path)
{
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char reply[CHUNK_BYTES];
    ssize_t got;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path)
        give_up("the path of the socket is too long");
    memcpy(address.sun_path, path, strlen(path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        give_up("cannot connect");
    send_all(fd, request, sizeof request - 1);
    do
        got = recv(fd, reply, sizeof reply, 0);
    while (got > 0 && reply[got - 1] != '\n');
    if (got <= 0)
        give_up("the daemon hung up");
    return fd;
}

/* Until the daemon has read all that was sent. */
static void await_taken(int fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int left = 1;
    for (int i = 0; i < TAKEN_TRIES && left > 0; i++) {
        if (ioctl(fd, SIOCOUTQ, &left) < 0)
            give_up("cannot see what is left to be read");
        if (left > 0)
            (void)nanosleep(&pause, NULL);
    }
    errno = 0;
    if (left > 0)
        give_up("the daemon does not read");
}

static void hold_line(int fd, size_t bytes)
{
    static const char head[] =
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"run\",\"params\":{\"code\":\"";
    char chunk[CHUNK_BYTES];
    memset(chunk, 'x', sizeof chunk);
    send_all(fd, head, sizeof head - 1);
    for (size_t part; bytes > 0; bytes -= part) {
        part = bytes < sizeof chunk ? bytes : sizeof chunk;
        send_all(fd, chunk, part);
    }
    await_taken(fd);
}

static void hold_run(int fd, const char *params)
{
    char line[PARAMS_BYTES + 64];
    int length =
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"run\",\"params\":%s}\n", params);
    send_all(fd, line, (size_t)length);
}

static void read_params(const char *path, char params[PARAMS_BYTES])
{
    FILE *file = fopen(path, "re");
    if (!file || !fgets(params, PARAMS_BYTES, file))
        give_up("cannot read the params");
    (void)fclose(file);
    params[strcspn(params, "\n")] = '\0';
}

int main(int argc, char **argv)
{
    struct rlimit files = {MAX_CONNECTIONS + 64, MAX_CONNECTIONS + 64};
    char params[PARAMS_BYTES], byte;
    unsigned long count = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    const char *what = argc > 3 ? argv[3] : "";
    bool is_line = argc == 5 && strcmp(what, "line") == 0;
    bool is_run = argc == 5 && strcmp(what, "run") == 0;
    if (count < 1 || count > MAX_CONNECTIONS ||
        (strcmp(what, "idle") != 0 && !is_line && !is_run)) {
        (void)fprintf(stderr,
                      "usage: hold SOCKET CONNECTIONS idle | line BYTES | run PARAMS-FILE\n");
        return 2;
    }
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (is_run)
        read_params(argv[4], params);
    for (unsigned long i = 0; i < count; i++) { /* the kernel closes them */
        int fd = connect_served(argv[1]);
        if (is_line)
            hold_line(fd, strtoul(argv[4], NULL, 10));
        else if (is_run)
            hold_run(fd, params);
    }
    (void)puts("holding");
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    return 0;
}
