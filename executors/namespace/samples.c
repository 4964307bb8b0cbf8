/*
 * samples.c - runs the sample of each language, several at a time.
 *
 * Compilers take hundreds of milliseconds, and there are ten seconds for everything, on a machine that
 * may have other work to do: languages that are not installed cost one look, those without a compiler
 * come first, so that they never wait for the slow ones, and all run side by side. Results lie on a page that the helpers share with the
 * caller; it says "too slow" of each language until somebody knows better, so that a helper may be
 * killed at any time. A slot may have a clock of its own: times that cross processes are durations.
 */
#include "executors/namespace/samples.h"

#include "executors/namespace/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define HELPERS  6    /* as many as there are languages with a compiler: these take all the time */
#define ONE_MS   7500 /* for one language */
#define GRACE_MS 200  /* for a helper to end by itself when the time is over */

struct result {
    enum language_problem problem;
    char version[SAMPLES_VERSION_BYTES + 1];
};

/* Shared with the helpers. */
struct shared {
    atomic_size_t next; /* in order */
    struct result results[ENVELOPE_MAX_LANGUAGES];
};

struct samples {
    const struct slot_options *options;
    const struct languages *languages;
    size_t order[ENVELOPE_MAX_LANGUAGES]; /* indexes of the languages to be tried */
    size_t count;
    struct shared *shared;
    int64_t deadline_ms; /* in a helper: by its own monotonic clock */
    int go[2];   /* sockets: the caller sends the time that there is, once for each helper */
    int over[2]; /* a pipe: helpers hold its other end until they end */
    pid_t helpers[HELPERS];
    size_t helper_count;
};

static void close_end(int *fd)
{
    base_close(fd);
    *fd = -1;
}

/* ---- a helper --------------------------------------------------------------------------------- */

/* The first line that the sample printed, as far as it is printable. */
static void read_version(int fd, char version[SAMPLES_VERSION_BYTES + 1])
{
    ssize_t got = read(fd, version, SAMPLES_VERSION_BYTES);
    size_t length = 0;
    while (got > 0 && length < (size_t)got && version[length] >= ' ' && version[length] <= '~')
        length++;
    version[length] = '\0';
}

/* What a sandbox is to run. */
struct trial {
    const struct samples *samples;
    const struct language *language;
    struct slot *slot;
    int out; /* where the sample writes to */
};

/* In the first process of the sandbox. */
static int take_sample(void *context, struct order *order, struct failure *failure)
{
    const struct trial *trial = context;
    const int null = trial->slot->null;
    const int streams[] = {null, trial->out, null, -1};
    struct spec *spec = calloc(1, sizeof(*spec));
    if (!spec)
        return step_fail(failure, STEP_SPEC, ENOMEM);
    memcpy(order->streams, streams, sizeof(streams));
    spec->grant.network = NETWORK_NONE;
    spec->language = strdup(trial->language->name);
    spec->code.data = strdup(trial->language->sample);
    if (!spec->language || !spec->code.data) {
        spec_free(spec);
        return step_fail(failure, STEP_SPEC, ENOMEM);
    }
    spec->code.length = strlen(trial->language->sample);
    return order_make(order, trial->slot, trial->samples->languages, spec, failure);
}

/* Runs a sample and waits for its end. 0 with the report, 1 when it took too long (the slot is used
 * up then), or negative with *failure set. */
static int try_sample(struct trial *trial, struct report *report, struct failure *failure)
{
    const struct inside_source source = {.take = take_sample, .context = trial};
    int64_t left_ms = trial->samples->deadline_ms - board_now_us() / 1000;
    if (left_ms <= 0)
        return 1;
    return sandbox_try(trial->slot, &source, left_ms < ONE_MS ? left_ms : ONE_MS, report, failure);
}

static enum language_problem judge(int result, const struct report *report,
                                   const struct failure *failure)
{
    if (result > 0)
        return LANGUAGE_TOO_SLOW;
    if (result < 0)
        return failure->step == STEP_EXEC ? LANGUAGE_DOES_NOT_START : LANGUAGE_SAMPLE_FAILED;
    if (report->outcome == OUTCOME_COMPILE_FAILED)
        return LANGUAGE_DOES_NOT_COMPILE;
    return report->outcome == OUTCOME_EXITED && report->exit_code == 0 ? LANGUAGE_OK
                                                                       : LANGUAGE_SAMPLE_FAILED;
}

/* 0; 1: it was too slow, and the slot is used up; -errno. */
static int try_language(const struct samples *samples, struct slot *slot, size_t index)
{
    struct trial trial = {
        .samples = samples, .language = &samples->languages->items[index], .slot = slot};
    struct result *found = &samples->shared->results[index];
    struct report report = {0};
    struct failure failure = {0};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    trial.out = ends[1];
    int result = try_sample(&trial, &report, &failure);
    (void)close(ends[1]);
    read_version(ends[0], found->version);
    (void)close(ends[0]);
    found->problem = judge(result, &report, &failure);
    return result > 0;
}

/* Changing the ids took the first one away. */
static bool end_with(pid_t caller)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == caller;
}

__attribute__((noreturn)) static void help(struct samples *samples, pid_t caller)
{
    struct slot slot;
    struct failure failure = {0};
    int64_t left_ms;

    close_end(&samples->go[1]);
    close_end(&samples->over[0]);
    if (!end_with(caller) || slot_enter(&slot, samples->options, &failure) < 0 || !end_with(caller))
        _exit(1);
    if (recv(samples->go[0], &left_ms, sizeof(left_ms), 0) != sizeof(left_ms))
        _exit(0); /* the caller does not need us */
    samples->deadline_ms = board_now_us() / 1000 + left_ms;
    for (;;) {
        size_t next = atomic_fetch_add(&samples->shared->next, 1);
        if (next >= samples->count)
            _exit(0);
        int result = try_language(samples, &slot, samples->order[next]);
        if (result != 0)
            _exit(result < 0);
    }
}

/* ---- the caller ------------------------------------------------------------------------------- */

static bool is_there(const struct text_list *command)
{
    return command->count == 0 || command->items[0][0] != '/' ||
           access(command->items[0], F_OK) == 0;
}

/* Appends the languages that have a compiler, or those that have none. */
static void make_order(struct samples *samples, bool compiled)
{
    for (size_t i = 0; i < samples->languages->count; i++) {
        const struct language *language = &samples->languages->items[i];
        struct result *result = &samples->shared->results[i];
        if ((language->compile.count > 0) != compiled)
            continue;
        result->problem = LANGUAGE_NOT_INSTALLED;
        if (is_there(&language->compile) && is_there(&language->run)) {
            result->problem = LANGUAGE_TOO_SLOW;
            samples->order[samples->count++] = i;
        }
    }
}

static int fork_helpers(struct samples *samples)
{
    const pid_t caller = getpid();
    while (samples->helper_count < HELPERS && samples->helper_count < samples->count) {
        pid_t pid = fork();
        if (pid == 0)
            help(samples, caller);
        if (pid < 0)
            return -errno;
        samples->helpers[samples->helper_count++] = pid;
    }
    close_end(&samples->go[0]);
    close_end(&samples->over[1]);
    return 0;
}

static int prepare(struct samples *samples)
{
    void *memory = mmap(NULL, sizeof(*samples->shared), PROT_READ | PROT_WRITE,
                        MAP_ANONYMOUS | MAP_SHARED, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    samples->shared = memory;
    make_order(samples, false);
    make_order(samples, true);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, samples->go) < 0 ||
        pipe2(samples->over, O_CLOEXEC) < 0)
        return -errno;
    return fork_helpers(samples);
}

int samples_start(const struct slot_options *options, const struct languages *languages,
                  struct samples **out)
{
    struct samples *samples = calloc(1, sizeof(*samples));
    if (!samples)
        return -ENOMEM;
    *samples = (struct samples){
        .options = options, .languages = languages, .go = {-1, -1}, .over = {-1, -1}};
    int result = prepare(samples);
    if (result < 0) {
        samples_end(samples);
        return result;
    }
    *out = samples;
    return 0;
}

/* Waits for the end of the helpers; kills those that are too late. 0, or -EIO when one has failed. */
static int reap(struct samples *samples, int64_t wait_ms)
{
    struct pollfd over = {.fd = samples->over[0], .events = POLLIN};
    int result = 0, status;
    bool late = poll(&over, 1, wait_ms > 0 ? (int)wait_ms : 0) == 0;
    for (; samples->helper_count > 0; samples->helper_count--) {
        pid_t pid = samples->helpers[samples->helper_count - 1];
        if (late)
            (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        if (!late && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
            result = -EIO;
    }
    return result;
}

int samples_run(struct samples *samples, int64_t left_ms)
{
    for (size_t i = 0; i < samples->helper_count; i++)
        if (send(samples->go[1], &left_ms, sizeof(left_ms), MSG_NOSIGNAL) < 0)
            return -errno;
    return reap(samples, left_ms + GRACE_MS);
}

enum language_problem samples_result(const struct samples *samples, size_t index,
                                     const char **version)
{
    const struct result *result = &samples->shared->results[index];
    *version = result->version;
    return result->problem;
}

void samples_end(struct samples *samples)
{
    if (!samples)
        return;
    close_end(&samples->go[0]);
    close_end(&samples->go[1]);
    close_end(&samples->over[1]);
    (void)reap(samples, GRACE_MS);
    close_end(&samples->over[0]);
    if (samples->shared)
        (void)munmap(samples->shared, sizeof(*samples->shared));
    free(samples);
}
