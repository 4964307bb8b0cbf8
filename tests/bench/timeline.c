/*
 * timeline.c - where the time of an audited run goes, as the daemon's own records tell it.
 *
 * One client, one run after the other. When a run has been answered, its record is asked for, outside
 * of the clock: its four times and the client's two are of the same clock, and cut the run into five
 * stretches. The record's own time is that of its sealing, before the ledger has it; so the last
 * stretch holds the commit and the reply.
 *
 * usage: timeline SOCKET PARAMS-FILE RUNS
 * prints: a line a stretch: its p50 in microseconds and its name; the first line is that of the whole
 */
#include "protocol/base.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define MAX_RUNS     100000
#define PARAMS_BYTES 65536
#define WARM_UP      5

enum { WHOLE, DOOR, START, SANDBOX, SEAL, COMMIT, STRETCHES };

static const char *const names[STRETCHES] = {
    [WHOLE] = "from request to reply",
    [DOOR] = "request: socket, framing",
    [START] = "parse, admission, durable intent, hand-over",
    [SANDBOX] = "provider and sandbox, output, sweep",
    [SEAL] = "verdict, record",
    [COMMIT] = "commit of the ledger, reply",
};

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "timeline: %s%s%s\n", what, errno ? ": " : "",
                  errno ? strerror(errno) : "");
    exit(1);
}

static double wall_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static FILE *connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path)
        give_up("the path of the socket is too long");
    memcpy(address.sun_path, path, strlen(path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        give_up("cannot connect");
    FILE *stream = fdopen(fd, "r+");
    if (!stream)
        give_up("no memory");
    return stream;
}

/* Sends one request and gives its result, owned; *sent and *answered are set unless NULL. */
static json_t *call(FILE *stream, const char *method, const char *params, double *sent,
                    double *answered)
{
    char *line = NULL;
    size_t room = 0;
    json_t *result;
    if (sent)
        *sent = wall_us();
    if (fprintf(stream, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", method,
                params) < 0 ||
        fflush(stream) != 0 || getline(&line, &room, stream) <= 0)
        give_up("the daemon hung up");
    if (answered)
        *answered = wall_us();
    json_t *answer = json_loads(line, 0, NULL);
    errno = 0;
    if (!answer || !(result = json_object_get(answer, "result")))
        give_up(line);
    (void)json_incref(result);
    json_decref(answer);
    free(line);
    return result;
}

/* A time of a record, in microseconds since the epoch. */
static double time_of(const json_t *record, const char *column)
{
    struct tm broken = {0};
    const char *text = json_string_value(json_object_get(record, column));
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &broken) : NULL;
    errno = 0;
    if (!end)
        give_up("a record without a time");
    double fraction = *end == '.' ? strtod(end, NULL) : 0;
    return (double)timegm(&broken) * 1e6 + fraction * 1e6;
}

static void measure(FILE *stream, const char *params, double cuts[STRETCHES])
{
    double sent, answered;
    char which[128];
    json_t *run = call(stream, "run", params, &sent, &answered);
    const char *status = json_string_value(json_object_get(run, "status"));
    errno = 0;
    if (!status || strcmp(status, "succeeded") != 0)
        give_up("a run did not succeed");
    (void)snprintf(which, sizeof which, "{\"run_id\":\"%.40s\"}",
                   json_string_value(json_object_get(run, "run_id")));
    json_t *result = call(stream, "record", which, NULL, NULL);
    const json_t *record = json_object_get(result, "record");
    const double received = time_of(record, "received_at"), started = time_of(record, "started_at"),
                 finished = time_of(record, "finished_at"), sealed = time_of(record, "recorded_at");
    cuts[WHOLE] = answered - sent;
    cuts[DOOR] = received - sent;
    cuts[START] = started - received;
    cuts[SANDBOX] = finished - started;
    cuts[SEAL] = sealed - finished;
    cuts[COMMIT] = answered - sealed;
    json_decref(result);
    json_decref(run);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_medians(double (*cuts)[STRETCHES], size_t runs)
{
    double *column = calloc(runs, sizeof *column);
    if (!column)
        give_up("no memory");
    for (int stretch = 0; stretch < STRETCHES; stretch++) {
        for (size_t i = 0; i < runs; i++)
            column[i] = cuts[i][stretch];
        qsort(column, runs, sizeof *column, compare);
        (void)printf("%.0f %s\n", column[runs / 2], names[stretch]);
    }
    free(column);
}

int main(int argc, char **argv)
{
    char params[PARAMS_BYTES];
    unsigned long runs = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (runs < 1 || runs > MAX_RUNS) {
        (void)fprintf(stderr, "usage: timeline SOCKET PARAMS-FILE RUNS\n");
        return 2;
    }
    FILE *file = fopen(argv[2], "re");
    if (!file || !fgets(params, sizeof params, file))
        give_up("cannot read the params");
    (void)fclose(file);
    params[strcspn(params, "\n")] = '\0';
    FILE *stream = connect_to(argv[1]);
    double(*cuts)[STRETCHES] = calloc(runs, sizeof *cuts);
    if (!cuts)
        give_up("no memory");
    for (int i = 0; i < WARM_UP; i++)
        measure(stream, params, cuts[0]);
    for (size_t i = 0; i < runs; i++)
        measure(stream, params, cuts[i]);
    print_medians(cuts, runs);
    free(cuts);
    (void)fclose(stream);
    return 0;
}
