/*
 * check_leave_behind.c - nothing that one run leaves is there for the next one in the same slot.
 *
 * The daemon has one slot. Each program of tests/hostile/leave tries to leave something and lists what
 * can be seen of such things. What is seen before anything was left must be seen again afterwards, to
 * the letter: after a run that ended by itself, and after one that was ended by force. That a program
 * can see what it leaves is shown by a run that does both.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/host.h"
#include "tests/lib/hostile.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define LIMITS                                                                         \
    "'limits': {'wall_ms': 10000, 'processes': 32, 'open_files': 400, 'memory_bytes':" \
    " 134217728, 'output_bytes': 65536, 'scratch_bytes': 16777216}"

/* refused: nothing of the kind can be left, not even for the run itself. */
static const struct {
    const char *name;
    bool refused;
} programs[] = {
    {"files", false},     {"sysv", false},   {"posix", false},     {"abstract", false},
    {"in_flight", false}, {"keyring", true}, {"timers", false},    {"attributes", false},
    {"notify", true},     {"names", true},   {"processes", false}, {"network", true},
    {"locks", false},
};

struct leaving {
    struct daemon *daemon;
    struct client *client;
    struct text_list wrong;
};

/* ---- runs ------------------------------------------------------------------------------------- */

static char *read_program(const char *name)
{
    char path[512];
    const char *source = getenv("AUDITRUN_SOURCE");
    (void)snprintf(path, sizeof(path), "%s/tests/hostile/leave/%s.py", source ? source : ".", name);
    return daemon_read_file(path);
}

/* What the program prints when it takes these steps; malloc'd. */
static char *run(struct leaving *leaving, const char *name, const char *steps)
{
    AR_AUTO_FREE char *shared = read_program("leave"), *own = read_program(name);
    AR_AUTO_FREE char *code = NULL, *more = NULL;
    const bool by_force = strstr(steps, "flood") != NULL;
    ck_assert_int_gt(asprintf(&code, "%s%s\n\nmain()\n", shared, own), 0);
    ck_assert_int_gt(asprintf(&more, "{'args': [%s], 'grant': {" LIMITS "}}", steps), 0);
    AR_AUTO_JSON json_t *result =
        client_call(leaving->client, "run", client_params("python", code, more));
    const char *status = json_string_value(json_object_get(result, "status"));
    if (strcmp(status, by_force ? "limit_exceeded" : "succeeded") != 0)
        hostile_tell(&leaving->wrong, "%s, %s: ended as %s; %.300s", name, steps, status,
                     e2e_text(result, "stderr"));
    char *out = strdup(e2e_stdout(result));
    ck_assert_ptr_nonnull(out);
    return out;
}

/* ---- comparing -------------------------------------------------------------------------------- */

/* The first lines that differ. */
static void tell_difference(struct leaving *leaving, const char *name, const char *how,
                            const char *before, const char *after)
{
    while (*before) {
        size_t one = strcspn(before, "\n"), other = strcspn(after, "\n");
        if (one != other || memcmp(before, after, one) != 0)
            break;
        before += one + (before[one] == '\n');
        after += other + (after[other] == '\n');
    }
    hostile_tell(&leaving->wrong, "%s, %s: the next run sees \"%.*s\", not \"%.*s\"", name, how,
                 (int)strcspn(after, "\n"), after, (int)strcspn(before, "\n"), before);
}

static void judge_program(struct leaving *leaving, const char *name, bool refused)
{
    static const char *const endings[][2] = {{"'leave'", "ended by itself"},
                                             {"'leave', 'flood'", "ended by force"}};
    AR_AUTO_FREE char *before = run(leaving, name, "'look'");
    AR_AUTO_FREE char *within = run(leaving, name, "'leave', 'look'");
    const bool left = strncmp(within, "left\n", 5) == 0;
    if (left == refused)
        hostile_tell(&leaving->wrong, "%s: %.*s", name, (int)strcspn(within, "\n"), within);
    if (left && strcmp(within + 5, before) == 0)
        hostile_tell(&leaving->wrong, "%s does not see what it leaves", name);
    for (size_t i = 0; i < AR_COUNT(endings); i++) {
        AR_AUTO_FREE char *leaves = run(leaving, name, endings[i][0]);
        AR_AUTO_FREE char *after = run(leaving, name, "'look'");
        if (strncmp(leaves, within, strcspn(within, "\n")) != 0)
            hostile_tell(&leaving->wrong, "%s, %s: now %.*s", name, endings[i][1],
                         (int)strcspn(leaves, "\n"), leaves);
        if (strcmp(before, after) != 0)
            tell_difference(leaving, name, endings[i][1], before, after);
    }
}

/* ---- tests ------------------------------------------------------------------------------------ */

static struct leaving begin(void)
{
    struct leaving leaving = {.daemon = e2e_daemon("[executor namespace]\nslots = 1\n")};
    leaving.client = daemon_connect(leaving.daemon);
    return leaving;
}

static void end(struct leaving *leaving)
{
    host_judge_daemon(leaving->daemon, 1, &leaving->wrong);
    client_disconnect(leaving->client);
    daemon_free(leaving->daemon);
    hostile_expect_none(&leaving->wrong);
}

START_TEST(next_run_finds_nothing)
{
    struct leaving leaving = begin();
    struct text_list before = host_look();
    for (size_t i = 0; i < AR_COUNT(programs); i++)
        judge_program(&leaving, programs[i].name, programs[i].refused);
    host_compare(&before, &leaving.wrong);
    text_list_free(&before);
    end(&leaving);
}
END_TEST

static json_int_t usage_of(const json_t *result, const char *member)
{
    const json_t *value = json_object_get(json_object_get(result, "usage"), member);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static json_t *run_shell(struct leaving *leaving, const char *code)
{
    return client_call(leaving->client, "run",
                       client_params("bash", code, "{'grant': {" LIMITS "}}"));
}

/* The counters of the slot's control group begin anew with each run, and a limit that one run has
 * reached is not held against the next. */
START_TEST(usage_is_the_runs_own)
{
    static const char *const heavy[] = {
        "perl -e '$x = \"a\" x 60_000_000; for (1..20) { last unless defined fork }'",
        "perl -e '$x = \"a\" x 400_000_000'",
        "for i in {1..31}; do sleep 30 & done; exit 1",
        "head -c 12000000 /dev/zero >big; sleep 0.1",
        "yes",
    };
    struct leaving leaving = begin();
    for (size_t i = 0; i < AR_COUNT(heavy); i++) {
        json_decref(run_shell(&leaving, heavy[i]));
        AR_AUTO_JSON json_t *after = run_shell(&leaving, "echo small");
        client_expect(after, "succeeded", "exit_zero");
        ck_assert_str_eq(e2e_stdout(after), "small\n");
        if (usage_of(after, "memory_peak_bytes") > 16 << 20 ||
            usage_of(after, "processes_peak") > 4 || usage_of(after, "output_bytes") > 6 ||
            usage_of(after, "user_us") + usage_of(after, "system_us") > 500000)
            hostile_tell(&leaving.wrong, "after %.40s: %lld bytes, %lld processes, %lld bytes out",
                         heavy[i], (long long)usage_of(after, "memory_peak_bytes"),
                         (long long)usage_of(after, "processes_peak"),
                         (long long)usage_of(after, "output_bytes"));
    }
    end(&leaving);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("leave_behind");
    TCase *tcase = e2e_case(suite, "leave_behind");
    tcase_add_test(tcase, next_run_finds_nothing);
    tcase_add_test(tcase, usage_is_the_runs_own);
    return e2e_run(suite);
}
