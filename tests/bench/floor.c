/*
 * floor.c - how fast can a process be launched on this machine at all? The anchor of make bench.
 *
 * Times two things by the same clock: a command as it is (posix_spawn, {} stands for a word that no
 * other launch has; for peers such as bubblewrap), and, with -t, the floor: a sandbox with every wall
 * that a run of ours has, built by the least code that can build it, with nothing around it: no
 * request, no decision, no record. floor_sandbox.c says what is prepared once and what each launch
 * pays for. With -a all but exec and what follows is built before the clock starts.
 *
 * usage: floor [-n LAUNCHES] [-c WORKERS] [-p PAUSE_MS] [-t FOLDER [-u] [-a]] -- PROGRAM [ARGUMENT...]
 *        -t FOLDER: in the sandbox, which shows FOLDER at /program; -u: and the host's /usr
 * prints: p50_us p99_us launches_per_second cpu_us faults
 *         LAUNCHES is for each worker; the last two are of one launch, with all that was waited for;
 *         -t needs root
 */
#include "tests/bench/floor_sandbox.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define MAX_WORKERS   64
#define MAX_LAUNCHES  100000
#define WARM_UP       5 /* one of what is slow, and asked for seldom */
#define FEW           20
#define MAX_ARGUMENTS 64
#define WORD_BYTES    32

/* Shared by all workers. */
struct result {
    double ended_us[MAX_WORKERS];
    struct used {
        double us;   /* of the processors */
        long faults; /* of pages */
    } used[MAX_WORKERS];
    double samples[]; /* launches of worker 0, of worker 1, ... */
};

struct floor {
    int launches, workers;
    struct timespec pause; /* between launches, outside of the clock */
    struct floor_sandbox_options options;
    struct floor_sandbox *sandbox; /* NULL: none */
    struct result *result;
};

static void require(bool good, const char *what)
{
    if (!good)
        floor_sandbox_give_up(what);
}

/* posix_spawn is vfork and exec: the cheapest start of a program that there is. */
static int launch_command(const struct floor *floor, int number)
{
    char word[WORD_BYTES], *command[MAX_ARGUMENTS + 1] = {0};
    pid_t pid;
    (void)snprintf(word, sizeof word, "floor-%d-%d", getpid(), number);
    for (int i = 0; i < MAX_ARGUMENTS && floor->options.command[i]; i++)
        command[i] =
            strcmp(floor->options.command[i], "{}") == 0 ? word : floor->options.command[i];
    if (!command[0])
        floor_sandbox_give_up("the command");
    errno = posix_spawn(&pid, command[0], NULL, NULL, command, environ);
    require(errno == 0, floor->options.command[0]);
    return floor_sandbox_wait(pid);
}

/* ---- workers ------------------------------------------------------------------------------------ */

/* Microseconds that it took. */
static double launch(const struct floor *floor, int worker, int number)
{
    double started = floor_sandbox_now_us();
    int status = floor->sandbox ? floor_sandbox_launch(floor->sandbox, worker, &started)
                                : launch_command(floor, number);
    double took = floor_sandbox_now_us() - started;
    if (status != 0) {
        (void)fprintf(stderr, "floor: %s ended with status %#x\n", floor->options.command[0],
                      (unsigned)status);
        _exit(1);
    }
    return took;
}

static void prepare_worker(const struct floor *floor)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    require(null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0, "null");
    if (floor->sandbox)
        floor_sandbox_enter_worker();
}

/* Of this process and of the children that it has waited for. */
static struct used used_by_now(void)
{
    static const __rusage_who_t whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    struct used used = {0};
    struct rusage usage;
    for (size_t i = 0; i < AR_COUNT(whose); i++) {
        require(getrusage(whose[i], &usage) == 0, "usage");
        used.us += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        used.faults += usage.ru_minflt + usage.ru_majflt;
    }
    return used;
}

/* Warms up, says that it is ready, waits for the others, measures. */
static _Noreturn void work(const struct floor *floor, int worker, int ready, int go)
{
    double *samples = floor->result->samples + (size_t)worker * (size_t)floor->launches;
    char byte;
    prepare_worker(floor);
    for (int i = 0; i < (floor->launches < FEW ? 1 : WARM_UP); i++)
        (void)launch(floor, worker, i);
    require(write(ready, "", 1) == 1 && read(go, &byte, 1) == 0, "start");
    struct used before = used_by_now();
    for (int i = 0; i < floor->launches; i++) {
        (void)nanosleep(&floor->pause, NULL);
        samples[i] = launch(floor, worker, WARM_UP + i);
    }
    floor->result->ended_us[worker] = floor_sandbox_now_us();
    struct used after = used_by_now();
    floor->result->used[worker] = (struct used){after.us - before.us, after.faults - before.faults};
    _exit(0);
}

/* All workers at once. The time from the common start to the end of the last; 0: one failed. */
static double run_workers(const struct floor *floor)
{
    pid_t pids[MAX_WORKERS];
    int ready[2], go[2];
    char byte;
    bool good = true;
    double ended = 0;
    require(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0, "pipe");
    for (int i = 0; i < floor->workers; i++) {
        pids[i] = fork();
        require(pids[i] >= 0, "fork");
        if (pids[i] == 0) {
            (void)close(ready[0]);
            (void)close(go[1]);
            work(floor, i, ready[1], go[0]);
        }
    }
    (void)close(ready[1]);
    for (int i = 0; good && i < floor->workers; i++)
        good = read(ready[0], &byte, 1) == 1;
    double started = floor_sandbox_now_us();
    (void)close(go[1]);
    for (int i = 0; i < floor->workers; i++) {
        good = floor_sandbox_wait(pids[i]) == 0 && good;
        if (floor->sandbox)
            floor_sandbox_forget_worker(pids[i]);
        if (floor->result->ended_us[i] > ended)
            ended = floor->result->ended_us[i];
    }
    return good ? ended - started : 0;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static bool parse(struct floor *floor, int argc, char **argv)
{
    int option;
    long pause_ms;
    *floor = (struct floor){.launches = 100, .workers = 1};
    while ((option = getopt(argc, argv, "+n:c:p:t:ua")) != -1) {
        if (option == 'n')
            floor->launches = (int)strtol(optarg, NULL, 10);
        else if (option == 'c')
            floor->workers = (int)strtol(optarg, NULL, 10);
        else if (option == 't')
            floor->options.folder = optarg;
        else if (option == 'p' && (pause_ms = strtol(optarg, NULL, 10)) >= 0)
            floor->pause = (struct timespec){pause_ms / 1000, pause_ms % 1000 * 1000000};
        else if (option == 'u')
            floor->options.shows_usr = true;
        else if (option == 'a')
            floor->options.ahead = true;
        else
            return false;
    }
    floor->options.command = argv + optind;
    return optind < argc && floor->launches > 0 && floor->launches <= MAX_LAUNCHES &&
           floor->workers > 0 && floor->workers <= MAX_WORKERS;
}

int main(int argc, char **argv)
{
    static struct floor floor;
    if (!parse(&floor, argc, argv)) {
        (void)fprintf(stderr, "usage: floor [-n LAUNCHES] [-c WORKERS] [-p PAUSE_MS] "
                              "[-t FOLDER [-u] [-a]] -- PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    size_t count = (size_t)floor.launches * (size_t)floor.workers;
    floor.result = mmap(NULL, sizeof *floor.result + count * sizeof(double), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(floor.result != MAP_FAILED, "memory");
    if (floor.options.folder)
        floor.sandbox = floor_sandbox_new(&floor.options);
    double elapsed_us = run_workers(&floor);
    floor_sandbox_free(floor.sandbox);
    if (elapsed_us <= 0)
        return 1;
    qsort(floor.result->samples, count, sizeof(double), compare);
    struct used used = {0};
    for (int i = 0; i < floor.workers; i++) {
        used.us += floor.result->used[i].us;
        used.faults += floor.result->used[i].faults;
    }
    (void)printf("%.0f %.0f %.1f %.0f %.0f\n", floor.result->samples[count / 2],
                 floor.result->samples[count * 99 / 100], (double)count / (elapsed_us / 1e6),
                 used.us / (double)count, (double)used.faults / (double)count);
    return 0;
}
