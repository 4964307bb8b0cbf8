/*
 * steps.c - where the time of a sandbox goes, step by step, as its executor tells it.
 *
 * Plays the daemon to one provider: sends it runs one after the other and takes the lines
 * `step NAME MICROSECONDS` that it prints on descriptor 2 when AUDITRUN_STEPS is in its environment.
 * An executor that tells no steps is measured from outside only: from the order to the report, and
 * from there until it is ready again. A provider that prepares ahead is told that it may (`clear`) as
 * soon as it has reported, and the next order comes when it is ready: its sandbox is then built.
 *
 * usage: steps PARAMS-FILE RUNS PROGRAM [ARGUMENT...]        (without the verb)
 * prints: a line a step in the order of their coming: its p50 in microseconds and its name
 */
#include "protocol/base.h"
#include "protocol/json.h"
#include "tests/lib/executor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_RUNS   100000
#define MAX_STEPS  64
#define NAME_BYTES 96
#define PIPE_BYTES 1048576
#define WARM_UP    5

enum { TO_REPORT, TO_READY, OWN_STEPS };

struct step {
    char name[NAME_BYTES];
    double *samples;
    size_t count;
};

struct steps {
    struct step steps[MAX_STEPS];
    size_t count, runs;
    int told; /* what the provider says on descriptor 2 */
    char text[65536];
    size_t filled;
};

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "steps: %s\n", what);
    exit(1);
}

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- samples ------------------------------------------------------------------------------------ */

static struct step *find_step(struct steps *steps, const char *name, size_t length)
{
    for (size_t i = 0; i < steps->count; i++)
        if (strlen(steps->steps[i].name) == length &&
            strncmp(steps->steps[i].name, name, length) == 0)
            return &steps->steps[i];
    if (steps->count == MAX_STEPS || length >= NAME_BYTES)
        give_up("too many steps, or too long a name");
    struct step *step = &steps->steps[steps->count++];
    memcpy(step->name, name, length);
    step->samples = calloc(steps->runs, sizeof *step->samples);
    if (!step->samples)
        give_up("no memory");
    return step;
}

/* A step that comes more than once in a run counts each time; what is too much is dropped. */
static void add_sample(const struct steps *steps, struct step *step, double us)
{
    if (step->count < steps->runs)
        step->samples[step->count++] = us;
}

static void take_line(struct steps *steps, char *line)
{
    char *last = strrchr(line, ' '), *end;
    if (strncmp(line, "step ", 5) != 0 || last <= line + 5) {
        (void)fprintf(stderr, "steps: the provider says: %s\n", line);
        return;
    }
    double us = strtod(last + 1, &end);
    if (end != last + 1 && *end == '\0')
        add_sample(steps, find_step(steps, line + 5, (size_t)(last - line - 5)), us);
}

/* What has been told so far; all of it counts or is dropped. */
static void take_told(struct steps *steps, bool counts)
{
    ssize_t got;
    while ((got = read(steps->told, steps->text + steps->filled,
                       sizeof steps->text - 1 - steps->filled)) > 0) {
        steps->filled += (size_t)got;
        steps->text[steps->filled] = '\0';
        char *line = steps->text, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            if (counts)
                take_line(steps, line);
        }
        steps->filled = strlen(line);
        memmove(steps->text, line, steps->filled);
    }
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_medians(struct steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        struct step *step = &steps->steps[i];
        qsort(step->samples, step->count, sizeof *step->samples, compare);
        (void)printf("%.0f %s\n", step->count ? step->samples[step->count / 2] : 0, step->name);
        free(step->samples);
    }
}

/* ---- runs --------------------------------------------------------------------------------------- */

static struct request *read_request(const char *path)
{
    struct request *request = NULL;
    struct fault fault = {0};
    json_t *params = json_load_file(path, 0, NULL);
    if (!params || request_parse(params, &request, &fault) != 0)
        give_up("the params are not those of a run");
    json_decref(params);
    return request;
}

/* Starts the provider with our end of a pipe as its descriptor 2. */
static void start(struct steps *steps, struct executor *executor, const char *const *words)
{
    int ends[2], own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    if (own < 0 || pipe2(ends, O_CLOEXEC) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
        give_up("no pipe");
    (void)close(ends[1]);
    steps->told = ends[0];
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)setenv("AUDITRUN_STEPS", "1", 1);
    bool good = executor_start(executor, words, "0");
    (void)dup2(own, STDERR_FILENO);
    (void)close(own);
    if (good)
        return;
    take_told(steps, true);
    give_up("the provider is not ready");
}

static void measure(struct steps *steps, struct executor *executor, const struct request *request,
                    bool counts)
{
    struct executor_result result;
    struct executor_run run;
    double started = now_us();
    bool good = executor_send(executor, request, &result, &run) && executor_finish(executor, &run);
    double reported = now_us();
    executor_run_close(&run);
    if (!good || !result.reported || result.report.outcome != OUTCOME_EXITED ||
        result.report.exit_code != 0 || !executor_await_ready(executor)) {
        take_told(steps, true);
        give_up("a run did not succeed");
    }
    if (counts) {
        add_sample(steps, &steps->steps[TO_REPORT], reported - started);
        add_sample(steps, &steps->steps[TO_READY], now_us() - reported);
    }
    executor_result_free(&result);
    take_told(steps, counts);
}

int main(int argc, char **argv)
{
    static const char *const own[OWN_STEPS] = {
        [TO_REPORT] = "from order to report", [TO_READY] = "from report to ready"};
    static struct steps steps;
    struct executor executor;
    steps.runs = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (steps.runs < 1 || steps.runs > MAX_RUNS || argc - 3 > EXECUTOR_MAX_WORDS) {
        (void)fprintf(stderr, "usage: steps PARAMS-FILE RUNS PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    struct request *request = read_request(argv[1]);
    for (int i = 0; i < OWN_STEPS; i++)
        (void)find_step(&steps, own[i], strlen(own[i]));
    start(&steps, &executor, (const char *const *)argv + 3);
    for (size_t i = 0; i < WARM_UP + steps.runs; i++)
        measure(&steps, &executor, request, i >= WARM_UP);
    (void)executor_stop(&executor);
    take_told(&steps, true);
    print_medians(&steps);
    (void)close(steps.told);
    request_free(request);
    return 0;
}
