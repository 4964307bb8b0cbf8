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
#include "executors/namespace/proofs.h"
#include "executors/namespace/samples.h"
#include "executors/namespace/trial.h"

#include <fcntl.h>
#include <stdio.h>
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
    struct proofs proofs;
    unsigned reach; /* that has been proved */
    bool data_api, secrets;
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

static struct trial trial_of(struct probe *probe)
{
    return (struct trial){.slot = &probe->slot, .program = probe->program, .secrets = -1};
}

static int64_t wait_ms(const struct probe *probe)
{
    const int64_t left_ms = time_left_ms(probe);
    return left_ms < ONE_MS ? left_ms : ONE_MS;
}

static int try_attack(struct probe *probe, const char *name, enum limit limit, long granted,
                      struct report *report, struct failure *failure)
{
    struct trial trial = trial_of(probe);
    trial.attack = name;
    trial.limit = limit;
    trial.amount = granted;
    return trial_run(&trial, wait_ms(probe), report, failure);
}

static int try_walls(struct probe *probe)
{
    struct trial trial = trial_of(probe);
    struct failure failure;
    const char *why = trial_walls(&trial, wait_ms(probe), &failure);
    if (!why)
        return 0;
    if (failure.step != STEP_NONE)
        step_tell(&failure);
    else
        (void)fprintf(stderr, "auditrun-executor-namespace: a sandbox does not hold here: %s\n",
                      why);
    return -EPERM;
}

/* ---- what a grant can give -------------------------------------------------------------------- */

static bool held(const char *what, const char *why)
{
    if (why)
        (void)fprintf(stderr, "auditrun-executor-namespace: not offered: %s: %s\n", what, why);
    return !why;
}

static bool try_data_port(struct probe *probe)
{
    struct trial trial = trial_of(probe);
    struct failure failure;
    trial.given = ATTACK_PORT;
    return held("data_api", trial_walls(&trial, wait_ms(probe), &failure));
}

/* They are there, then they are wiped, and the next sandbox has none. */
static bool try_secrets(struct probe *probe)
{
    struct trial trial = trial_of(probe), next = trial_of(probe);
    struct failure failure;
    AR_AUTO_CLOSE int file = trial_secrets();
    if (file < 0)
        return held("secrets", "there are no memory files");
    trial.given = ATTACK_SECRETS;
    trial.secrets = file;
    const char *why = trial_walls(&trial, wait_ms(probe), &failure);
    if (!why && !trial_is_wiped(file))
        why = "they are not wiped";
    return held("secrets", why ? why : trial_walls(&next, wait_ms(probe), &failure));
}

static int try_gifts(struct probe *probe)
{
    probe->data_api = try_data_port(probe);
    probe->secrets = try_secrets(probe);
    return 0;
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

/* One listener is all that both other modes need here. */
static json_t *modes(const struct probe *probe)
{
    if (!(probe->reach & REACH_NETWORK))
        return json_pack("[s]", network_mode_word(NETWORK_NONE));
    return json_pack("[s, s, s]", network_mode_word(NETWORK_NONE),
                     network_mode_word(NETWORK_ALLOWLIST), network_mode_word(NETWORK_OPEN));
}

static int print(const struct probe *probe)
{
    const int files = (probe->reach & REACH_FILES) != 0;
    AR_AUTO_JSON json_t *envelope =
        json_pack("{s:i, s:s, s:s, s:O, s:o, s:b, s:b, s:{s:b, s:b}, s:O, s:o}", "contract",
                  ENVELOPE_CONTRACT, "name", NAME, "version", AR_VERSION, "languages",
                  probe->offered, "network", modes(probe), "data_api", probe->data_api, "secrets",
                  probe->secrets, "filesystem", "read", files, "write", files, "limits",
                  probe->limits, "isolation", isolation(&probe->slot));
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
        result = try_gifts(probe);
    if (result == 0)
        result = try_limits(probe);
    probe->reach = proofs_end(&probe->proofs, time_left_ms(probe));
    if (result == 0)
        result = try_languages(probe);
    return result == 0 ? print(probe) : result;
}

static int enter_and_find_out(struct probe *probe, const struct slot_options *options)
{
    struct failure failure = {0};
    proofs_start(&probe->proofs, options, probe->program);
    int result = samples_start(options, probe->languages, &probe->samples);
    if (result < 0) {
        (void)fputs("auditrun-executor-namespace: cannot start the trial of languages\n", stderr);
        (void)proofs_end(&probe->proofs, 0);
        return result;
    }
    result = slot_enter(&probe->slot, options, &failure);
    if (result < 0) {
        step_tell(&failure);
        (void)proofs_end(&probe->proofs, 0);
    } else {
        result = find_out(probe);
    }
    slot_leave(&probe->slot);
    samples_end(probe->samples);
    return result;
}

int probe_print(const struct slot_options *options, const struct languages *languages)
{
    /* Number 3 is where a data port goes. */
    (void)fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
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
