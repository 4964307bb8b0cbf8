/*
 * probe.c - finds out what can be enforced on this host, and writes the envelope from that.
 *
 * Everything that is advertised has just happened: the walls were attacked from inside, each limit
 * was run into, each language ran its sample, all in sandboxes made exactly as those of a run. What
 * did not hold is left out of the envelope; walls that do not hold end the executor.
 */
#include "executors/namespace/probe.h"

#include "build_config.h"
#include "executors/namespace/attack.h"
#include "executors/namespace/samples.h"
#include "executors/namespace/sandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>

#define NAME              "namespace"
#define ALL_MS            8500 /* from the start: the contract gives ten seconds, also on a busy machine */
#define ONE_MS            4000
#define MAX_OPEN_FILES    65536
#define MAX_PROCESSES     4096
#define MAX_CPU_MS        86400000
#define MAX_SCRATCH_BYTES (1ll << 30)

/* What the limits are tried with. */
#define TRY_PROCESSES     6
#define TRY_OPEN_FILES    24
#define TRY_SCRATCH_BYTES (1 << 20)
#define TRY_CPU_MS        60
#define CPU_OVERSHOOT_US  250000

struct probe {
    struct slot slot;
    const struct languages *languages;
    struct samples *samples;
    int program;         /* this executor's own binary */
    int timer;           /* says how much time there is: unlike a clock, in every namespace */
    json_t *limits;      /* owned */
    json_t *offered;     /* languages, owned */
    json_t *unavailable; /* likewise */
};

/* ---- the time --------------------------------------------------------------------------------- */

static int start_timer(struct probe *probe)
{
    const struct itimerspec time = {
        .it_value = {.tv_sec = ALL_MS / 1000, .tv_nsec = ALL_MS % 1000 * 1000000L}};
    probe->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return probe->timer < 0 || timerfd_settime(probe->timer, 0, &time, NULL) < 0 ? -errno : 0;
}

static int64_t time_left_ms(const struct probe *probe)
{
    struct itimerspec left;
    if (timerfd_gettime(probe->timer, &left) < 0)
        return 0;
    return left.it_value.tv_sec * INT64_C(1000) + left.it_value.tv_nsec / 1000000;
}

/* ---- one sandbox ------------------------------------------------------------------------------ */

/* What a sandbox of ours is to run: an attack of this very program. */
struct trial {
    struct probe *probe;
    const char *attack;
    enum limit limit; /* that it is attacked under, with this much granted; 0: none */
    long granted;
};

/* An argument vector on the heap, as an order owns it. */
static char **make_words(const char *const *words, size_t count)
{
    char **vector = calloc(count + 1, sizeof(*vector));
    for (size_t i = 0; vector && i < count; i++)
        if (!(vector[i] = strdup(words[i]))) {
            languages_free_vector(vector);
            return NULL;
        }
    return vector;
}

static int make_attack(const struct trial *trial, struct order *order, struct failure *failure)
{
    char amount[24];
    const char *const words[] = {NAME, "attack", trial->attack, amount};

    (void)snprintf(amount, sizeof(amount), "%ld", trial->granted);
    order->code_file = "attack";
    order->program = trial->probe->program;
    order->run = make_words(words, AR_COUNT(words));
    order->env = make_words(words, 0);
    if (!order->run || !order->env)
        return step_fail(failure, STEP_SPEC, ENOMEM);
    if (trial->granted > 0) {
        order->spec->grant.limits.has[trial->limit] = true;
        order->spec->grant.limits.value[trial->limit] = trial->granted;
    }
    return 0;
}

/* In the first process of the sandbox. */
static int take_trial(void *context, struct order *order, struct failure *failure)
{
    const struct trial *trial = context;
    const int null = trial->probe->slot.null;
    const int streams[] = {null, null, null, -1};
    order->spec = calloc(1, sizeof(*order->spec));
    if (!order->spec)
        return step_fail(failure, STEP_SPEC, ENOMEM);
    memcpy(order->streams, streams, sizeof(streams));
    order->spec->grant.network = NETWORK_NONE;
    return make_attack(trial, order, failure);
}

/* Runs a trial and waits for its end. 0 with the report, 1 when it took too long, or negative with
 * *failure set. */
static int try(struct trial *trial, struct report *report, struct failure *failure)
{
    const struct inside_source source = {.take = take_trial, .context = trial};
    int64_t left_ms = time_left_ms(trial->probe);
    if (left_ms <= 0)
        return 1;
    return sandbox_try(&trial->probe->slot, &source, left_ms < ONE_MS ? left_ms : ONE_MS, report,
                       failure);
}

static int try_attack(struct probe *probe, const char *name, enum limit limit, long granted,
                      struct report *report, struct failure *failure)
{
    struct trial trial = {.probe = probe, .attack = name, .limit = limit, .granted = granted};
    return try(&trial, report, failure);
}

static int try_walls(struct probe *probe)
{
    struct report report = {0};
    struct failure failure = {0};
    int result = try_attack(probe, "walls", LIMIT_COUNT, 0, &report, &failure);
    if (result < 0) {
        step_tell(&failure);
        return result;
    }
    if (result == 0 && report.outcome == OUTCOME_EXITED && report.exit_code == 0)
        return 0;
    (void)fprintf(stderr, "auditrun-executor-namespace: a sandbox does not hold here: %s\n",
                  attack_word(report.exit_code));
    return -EPERM;
}

/* ---- limits ----------------------------------------------------------------------------------- */

static int64_t resource_max(__rlimit_resource_t resource, int64_t most)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return 0;
    return limit.rlim_max < (rlim_t)most ? (int64_t)limit.rlim_max : most;
}

static int64_t scratch_max(void)
{
    struct sysinfo info;
    if (sysinfo(&info) < 0)
        return 0;
    int64_t half = (int64_t)info.totalram * info.mem_unit / 2;
    return half < MAX_SCRATCH_BYTES ? half : MAX_SCRATCH_BYTES;
}

/* Is the limit on processor time kept, also by code that hides from the usual accounts? */
static bool processor_holds(const struct probe *probe, const struct report *report,
                            int64_t before_us)
{
    int64_t used_us = slot_processor_us(&probe->slot) - before_us;
    return before_us >= 0 && report->outcome == OUTCOME_LIMIT && report->limit == LIMIT_CPU_MS &&
           used_us < TRY_CPU_MS * 1000 + CPU_OVERSHOOT_US;
}

static int try_limits(struct probe *probe)
{
    const struct {
        enum limit limit;
        const char *attack;
        long granted;
        int64_t most;
    } table[] = {
        {LIMIT_CPU_MS, "processor", TRY_CPU_MS, MAX_CPU_MS},
        {LIMIT_PROCESSES, "processes", TRY_PROCESSES,
         resource_max(RLIMIT_NPROC, MAX_PROCESSES + SLOT_OWN_PROCESSES) - SLOT_OWN_PROCESSES},
        {LIMIT_OPEN_FILES, "open_files", TRY_OPEN_FILES,
         resource_max(RLIMIT_NOFILE, MAX_OPEN_FILES)},
        {LIMIT_SCRATCH_BYTES, "scratch", TRY_SCRATCH_BYTES, scratch_max()},
    };
    for (size_t i = 0; i < AR_COUNT(table); i++) {
        struct report report = {0};
        struct failure failure = {0};
        int64_t before_us = slot_processor_us(&probe->slot);
        if (table[i].limit == LIMIT_CPU_MS && before_us < 0)
            continue;
        int result =
            try_attack(probe, table[i].attack, table[i].limit, table[i].granted, &report, &failure);
        bool held =
            result == 0 && (table[i].limit == LIMIT_CPU_MS
                                ? processor_holds(probe, &report, before_us)
                                : report.outcome == OUTCOME_EXITED && report.exit_code == 0);
        if (held && table[i].most > 0 &&
            json_object_set_new(probe->limits, limit_word(table[i].limit),
                                json_integer(table[i].most)) < 0)
            return -ENOMEM;
        if (!held)
            (void)fprintf(stderr,
                          "auditrun-executor-namespace: not offered: limits.%s, it does "
                          "not hold here\n",
                          limit_word(table[i].limit));
    }
    return 0;
}

/* ---- languages -------------------------------------------------------------------------------- */

static int note_language(struct probe *probe, size_t index)
{
    const char *name = probe->languages->items[index].name, *version;
    enum language_problem problem = samples_result(probe->samples, index, &version);
    if (problem == LANGUAGE_OK)
        return json_array_append_new(probe->offered,
                                     json_pack("{s:s, s:s}", "name", name, "version", version));
    return json_array_append_new(
        probe->unavailable,
        json_pack("{s:s, s:s}", "name", name, "problem", language_problem_word(problem)));
}

static int try_languages(struct probe *probe)
{
    int result = samples_run(probe->samples, time_left_ms(probe));
    if (result < 0) {
        (void)fputs("auditrun-executor-namespace: the languages cannot be tried\n", stderr);
        return result;
    }
    for (size_t i = 0; i < probe->languages->count; i++)
        if (note_language(probe, i) < 0)
            return -ENOMEM;
    return 0;
}

/* ---- the envelope ----------------------------------------------------------------------------- */

/* Facts for people. */
static json_t *isolation(const struct slot *slot)
{
    struct utsname name;
    char landlock[32] = "none";
    if (uname(&name) < 0)
        return NULL;
    if (slot->landlock > 0)
        (void)snprintf(landlock, sizeof(landlock), "version %d", slot->landlock);
    return json_pack("{s:b, s:s, s:b, s:b, s:s, s:s, s:s, s:s}", "user_namespace", 1, "host_uid",
                     slot->own_uid ? "own for each slot" : "the daemon's", "host_groups",
                     !slot->own_groups, "own_clock", slot->own_clock, "landlock", landlock,
                     "seccomp", "allow-list", "root", "the host's /usr, read-only", "kernel",
                     name.release);
}

static int print(const struct probe *probe)
{
    AR_AUTO_JSON json_t *envelope = json_pack(
        "{s:i, s:s, s:s, s:O, s:[s], s:b, s:b, s:{s:b, s:b}, s:O, s:o}", "contract",
        ENVELOPE_CONTRACT, "name", NAME, "version", AR_VERSION, "languages", probe->offered,
        "network", network_mode_word(NETWORK_NONE), "data_api", 0, "secrets", 0, "filesystem",
        "read", 0, "write", 0, "limits", probe->limits, "isolation", isolation(&probe->slot));
    if (json_array_size(probe->unavailable) > 0 &&
        json_object_set(envelope, "unavailable", probe->unavailable) < 0)
        return -ENOMEM;
    AR_AUTO_FREE char *text = envelope ? json_dumps(envelope, JSON_COMPACT) : NULL;
    if (!text)
        return -ENOMEM;
    return puts(text) < 0 || fflush(stdout) != 0 ? -EIO : 0;
}

static int find_out(struct probe *probe)
{
    int result = try_walls(probe);
    if (result == 0)
        result = try_limits(probe);
    if (result == 0)
        result = try_languages(probe);
    return result == 0 ? print(probe) : result;
}

static int enter_and_find_out(struct probe *probe, const struct slot_options *options)
{
    struct failure failure = {0};
    int result = samples_start(options, probe->languages, &probe->samples);
    if (result < 0) {
        (void)fputs("auditrun-executor-namespace: cannot start the trial of languages\n", stderr);
        return result;
    }
    result = slot_enter(&probe->slot, options, &failure);
    if (result < 0)
        step_tell(&failure);
    else
        result = find_out(probe);
    slot_leave(&probe->slot);
    samples_end(probe->samples);
    return result;
}

int probe_print(const struct slot_options *options, const struct languages *languages)
{
    struct probe probe = {.languages = languages,
                          .program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                          .timer = -1,
                          .limits = json_object(),
                          .offered = json_array(),
                          .unavailable = json_array()};
    int result = -ENOMEM;
    if (probe.program < 0 || start_timer(&probe) < 0)
        (void)fputs("auditrun-executor-namespace: cannot open its own program, or a timer\n",
                    stderr);
    else if (probe.limits && probe.offered && probe.unavailable)
        result = enter_and_find_out(&probe, options);
    json_decref(probe.limits);
    json_decref(probe.offered);
    json_decref(probe.unavailable);
    base_close(&probe.timer);
    base_close(&probe.program);
    return result;
}
