/*
 * check_leaks.c - thousands of hostile runs, after which the host and the daemon are as they were.
 *
 * Runs that end well, that are ended by each limit, that are cancelled, whose client goes away, that
 * leave processes, files, sockets and IPC behind, and programs of tests/hostile among them, in an order
 * that a seed makes. What the daemon, its providers, the host and the kernel hold is counted when all
 * kinds have been, and again at the end. No run may be blamed on the provider.
 *
 * AUDITRUN_LEAK_RUNS (600; `make check-leaks` does 10000), AUDITRUN_LEAK_SEED (1).
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/host.h"
#include "tests/lib/hostile.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define SLOTS       4
#define IN_FLIGHT   6
#define WARM        200
#define DENIED      9000 /* rows after which caches (SQLite's above all) are as large as they get */
#define AT_ONCE     64
#define ANSWER_MS   60000
#define SETTLE_MS   30000
#define TIMEOUT_S   3600
#define MAY_GROW_KB 384 /* from then to the end; one leaked run is more than 1 KiB */
#define NOISE       100 /* objects of the kernel that others on this host make at the same time */
#define MAX_CODES   128

/* How a run is disturbed from outside. */
enum disturbance { LEFT_ALONE, CANCELLED, CLIENT_GONE };

struct kind {
    const char *language, *code, *more;
    enum disturbance disturbance;
};

#define LIMITED(limits) "{'grant': {'limits': {" limits "}}}"
#define SHORT           LIMITED("'wall_ms': 80")

static const struct kind kinds[] = {
    {"bash", "exit 0", NULL, LEFT_ALONE},
    {"bash", "exit 7", NULL, LEFT_ALONE},
    {"bash", "kill -9 $$", NULL, LEFT_ALONE},
    {"bash", "kill -STOP $$", SHORT, LEFT_ALONE},
    {"bash", "(setsid bash -c 'trap \"\" TERM HUP INT; sleep 30' &) ; exit 0", NULL, LEFT_ALONE},
    {"bash", "(setsid sleep 30 >/dev/null 2>&1 <&- &); exec sleep 30", SHORT, LEFT_ALONE},
    {"bash", "for i in {1..40}; do sleep 30 & done; exit 1",
     LIMITED("'processes': 8, 'wall_ms': 150"), LEFT_ALONE},
    {"bash", "f() { f | f & }; f; wait", LIMITED("'processes': 16, 'wall_ms': 200"), LEFT_ALONE},
    {"bash", "while :; do :; done", LIMITED("'cpu_ms': 60"), LEFT_ALONE},
    {"bash", "sleep 30", SHORT, LEFT_ALONE},
    {"bash", "exec 0<&- 1>&- 2>&-; sleep 30", SHORT, LEFT_ALONE},
    {"bash", "yes", LIMITED("'output_bytes': 10000"), LEFT_ALONE},
    {"bash", "yes >&2", LIMITED("'output_bytes': 10000"), LEFT_ALONE},
    {"bash", "sleep 30", NULL, CANCELLED},
    {"bash", "(setsid sleep 30 &); echo x; sleep 30", NULL, CANCELLED},
    {"bash", "sleep 30", NULL, CLIENT_GONE},
    {"bash", "while :; do echo x; done", LIMITED("'output_bytes': 60000000"), CLIENT_GONE},
    {"bash",
     "head -c 3000000 /dev/zero >/tmp/x; mkdir -p a/b; mkfifo f; ln -s / l; chmod 0 a; cp /tmp/x .",
     LIMITED("'scratch_bytes': 2000000"), LEFT_ALONE},
    {"bash", "mkfifo f; ln -s /etc/passwd l; mkdir d; echo x >o; truncate -s 1T s; chmod 0 o",
     "{'outputs': ['f', 'l', 'd', 'o', 's', 'none'], 'files': [{'path': 'in/x', 'text': 'y'}]}",
     LEFT_ALONE},
    {"perl", "shmget(0, 65536, 01600); msgget(0, 01600); semget(0, 3, 01600); fork; sleep 30",
     SHORT, LEFT_ALONE},
    {"perl", "my $x = 'a' x 200_000_000; print 1", LIMITED("'memory_bytes': 25165824"), LEFT_ALONE},
    {"perl",
     "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un(\"\\0left\")); "
     "listen(S, 5); for (1..5) { socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); fork } print $!",
     LIMITED("'processes': 40"), LEFT_ALONE},
    {"c", "#error none", NULL, LEFT_ALONE},
};

/* Of what folder leave/ has, what is quick. */
static const char *const leaving[] = {"files",     "sysv",   "posix",  "abstract",
                                      "in_flight", "timers", "notify", "processes",
                                      "network",   "locks",  NULL};

/* ---- what is counted -------------------------------------------------------------------------- */

static const char *const objects[] = {"net_namespace", "pid_namespace", "user_namespace",
                                      "uts_namespace", "mnt_cache",     NULL};
static const char *const namespaces[] = {"net", "mnt", "pid", "ipc", "uts", "user", "cgroup", NULL};

struct counts {
    size_t descriptors, processes, namespaces[8], provider_descriptors;
    long resident_kb, provider_kb, objects[8];
};

struct leaks {
    struct hostile *hostile;
    struct daemon *daemon;
    struct client *client;
    char *codes[MAX_CODES]; /* of leaving */
    size_t code_count, runs, sent, answered, gone, filled, in_flight;
    uint64_t random;
    struct counts warm, now;
    struct text_list host, wrong;
};

/* How many objects of a kind the kernel has; 0: it does not say. */
static long objects_of(const char *kind)
{
    char line[512];
    long count = 0;
    FILE *file = fopen("/proc/slabinfo", "re");
    while (file && fgets(line, sizeof(line), file)) {
        size_t length = strlen(kind);
        if (strncmp(line, kind, length) == 0 && line[length] == ' ')
            count = strtol(line + length, NULL, 10);
    }
    if (file)
        (void)fclose(file);
    return count;
}

static struct counts count_all(const struct leaks *leaks)
{
    const pid_t own = daemon_pid(leaks->daemon);
    struct counts counts = {.descriptors = host_descriptors(own),
                            .resident_kb = host_resident_kb(own)};
    struct processes below = daemon_processes(leaks->daemon);
    counts.processes = below.count;
    for (size_t i = 0; i < below.count; i++) {
        const size_t descriptors = host_descriptors(below.items[i].pid);
        const long kb = host_resident_kb(below.items[i].pid);
        if (descriptors > counts.provider_descriptors)
            counts.provider_descriptors = descriptors;
        if (kb > counts.provider_kb)
            counts.provider_kb = kb;
    }
    processes_free(&below);
    for (size_t i = 0; namespaces[i]; i++)
        counts.namespaces[i] = host_namespaces(leaks->daemon, namespaces[i]);
    for (size_t i = 0; objects[i]; i++)
        counts.objects[i] = objects_of(objects[i]);
    return counts;
}

/* Adds a line when there is more of it than there may be. */
static void judge(struct text_list *wrong, const char *what, long now, long most)
{
    if (now > most)
        hostile_tell(wrong, "%s: %ld, more than %ld", what, now, most);
}

/* ---- runs ------------------------------------------------------------------------------------- */

static size_t random_below(struct leaks *leaks, size_t limit)
{
    leaks->random = leaks->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(leaks->random >> 33) % limit;
}

static void send_gone(struct leaks *leaks, const struct kind *kind)
{
    struct client *client = daemon_connect(leaks->daemon);
    client_request(client, 1, "run", client_params(kind->language, kind->code, kind->more));
    client_request(client, 2, "status", NULL); /* answered when the run has been taken */
    json_decref(client_result(client, 2));
    client_disconnect(client);
    leaks->gone++;
}

static void send_kind(struct leaks *leaks, json_int_t id, const struct kind *kind)
{
    if (kind->disturbance == CLIENT_GONE) {
        send_gone(leaks, kind);
        return;
    }
    client_request(leaks->client, id, "run", client_params(kind->language, kind->code, kind->more));
    leaks->in_flight++;
    if (kind->disturbance == CANCELLED) {
        AR_AUTO_JSON json_t *answer =
            client_call(leaks->client, "cancel", json_pack("{s:I}", "request_id", id));
        ck_assert(json_is_true(json_object_get(answer, "cancelled")));
    }
}

static void send_leaving(struct leaks *leaks, json_int_t id)
{
    const char *more = random_below(leaks, 2)
                           ? "{'args': ['leave'], 'grant': {'limits': {'open_files': 400}}}"
                           : "{'args': ['leave', 'flood'], 'grant': {'limits': "
                             "{'open_files': 400, 'output_bytes': 10000}}}";
    client_request(
        leaks->client, id, "run",
        client_params("python", leaks->codes[random_below(leaks, leaks->code_count)], more));
    leaks->in_flight++;
}

/* One of tests/hostile that needs neither a compiler nor seconds; false: it was not that. */
static bool send_hostile(struct leaks *leaks, json_int_t id)
{
    const struct hostile_program program =
        hostile_at(leaks->hostile, random_below(leaks, hostile_count(leaks->hostile)));
    if (strcmp(program.language, "c") == 0 || json_object_get(program.entry, "status") ||
        program.at_once > 1 || strncmp(program.file, "priv-suid", 9) == 0)
        return false;
    client_request(leaks->client, id, "run", hostile_params(leaks->hostile, &program));
    leaks->in_flight++;
    return true;
}

static void send_one(struct leaks *leaks)
{
    const json_int_t id = (json_int_t)++leaks->sent;
    const size_t choice = random_below(leaks, 100);
    if (leaks->sent <= AR_COUNT(kinds))
        send_kind(leaks, id, &kinds[leaks->sent - 1]);
    else if (choice < 8)
        send_leaving(leaks, id);
    else if (choice >= 20 || !send_hostile(leaks, id))
        send_kind(leaks, id, &kinds[random_below(leaks, AR_COUNT(kinds))]);
}

static void take_one(struct leaks *leaks)
{
    AR_AUTO_JSON json_t *message = client_next_within(leaks->client, ANSWER_MS);
    ck_assert_ptr_nonnull(message);
    const char *status =
        json_string_value(json_object_get(json_object_get(message, "result"), "status"));
    ck_assert_msg(status && strcmp(status, "provider_failed") != 0 &&
                      strcmp(status, "capability_denied") != 0,
                  "%.1000s", client_last_line(leaks->client));
    leaks->in_flight--;
    leaks->answered++;
}

static void do_runs(struct leaks *leaks, size_t until)
{
    while (leaks->sent < until || leaks->in_flight > 0) {
        while (leaks->sent < until && leaks->in_flight < IN_FLIGHT)
            send_one(leaks);
        if (leaks->in_flight > 0)
            take_one(leaks);
    }
}

/* Rows that cost nothing else. */
static void fill_caches(struct leaks *leaks)
{
    for (size_t sent = 0, answered = 0; answered < DENIED; answered++) {
        for (; sent < DENIED && sent < answered + AT_ONCE; sent++)
            client_request(leaks->client, (json_int_t)sent + 1, "run",
                           client_params("none", "", NULL));
        AR_AUTO_JSON json_t *message = client_next_within(leaks->client, ANSWER_MS);
        ck_assert_ptr_nonnull(message);
        client_expect(json_object_get(message, "result"), "capability_denied", "not_enforceable");
    }
}

/* ---- comparing -------------------------------------------------------------------------------- */

static bool is_at_rest(void *context)
{
    struct leaks *leaks = context;
    struct text_list wrong = {0};
    host_judge_daemon(leaks->daemon, SLOTS, &wrong);
    const bool rests = wrong.count == 0;
    text_list_free(&wrong);
    return rests && e2e_status(leaks->client, "runs", "running") == 0;
}

/* A run in each slot at the same time, so that no slot is without a provider afterwards. */
static void fill_slots(struct leaks *leaks)
{
    for (json_int_t id = 1; id <= SLOTS; id++)
        client_request(leaks->client, -id, "run", client_params("bash", "sleep 0.3", NULL));
    for (json_int_t id = 1; id <= SLOTS; id++) {
        AR_AUTO_JSON json_t *result = client_result(leaks->client, -id);
        client_expect(result, "succeeded", "exit_zero");
    }
    leaks->filled += SLOTS;
    ck_assert_msg(processes_wait(is_at_rest, leaks, SETTLE_MS), "the daemon does not come to rest");
}

static bool is_as_warm(void *context)
{
    struct leaks *leaks = context;
    struct text_list *wrong = &leaks->wrong;
    const struct counts *warm = &leaks->warm;
    text_list_free(wrong);
    fill_slots(leaks);
    leaks->now = count_all(leaks);
    const struct counts *now = &leaks->now;
    judge(wrong, "descriptors of the daemon", (long)now->descriptors, (long)warm->descriptors);
    judge(wrong, "processes below it", (long)now->processes, 2 * SLOTS);
    judge(wrong, "kB of the daemon", now->resident_kb,
          warm->resident_kb + MAY_GROW_KB + E2E_SANITIZER_KB);
    judge(wrong, "descriptors of a provider", (long)now->provider_descriptors,
          (long)warm->provider_descriptors);
    judge(wrong, "kB of a provider", now->provider_kb,
          warm->provider_kb + MAY_GROW_KB + E2E_SANITIZER_KB);
    for (size_t i = 0; namespaces[i]; i++)
        judge(wrong, namespaces[i], (long)now->namespaces[i], 2 * SLOTS);
    for (size_t i = 0; objects[i]; i++)
        judge(wrong, objects[i], now->objects[i], warm->objects[i] + NOISE);
    return wrong->count == 0;
}

/* ---- the test --------------------------------------------------------------------------------- */

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

static void read_codes(struct leaks *leaks)
{
    char path[512];
    const char *source = getenv("AUDITRUN_SOURCE");
    const char *top = source ? source : ".";
    (void)snprintf(path, sizeof(path), "%s/tests/hostile/leave/leave.py", top);
    AR_AUTO_FREE char *shared = daemon_read_file(path);
    for (size_t i = 0; leaving[i]; i++) {
        (void)snprintf(path, sizeof(path), "%s/tests/hostile/leave/%s.py", top, leaving[i]);
        AR_AUTO_FREE char *own = daemon_read_file(path);
        ck_assert_int_gt(
            asprintf(&leaks->codes[leaks->code_count++], "%s%s\n\nmain()\n", shared, own), 0);
    }
}

static void tell(const struct leaks *leaks)
{
    (void)printf("%zu runs, %zu of clients that went: daemon %ld kB and %zu descriptors, then %ld "
                 "kB and %zu\n",
                 leaks->sent, leaks->gone, leaks->warm.resident_kb, leaks->warm.descriptors,
                 leaks->now.resident_kb, leaks->now.descriptors);
}

START_TEST(nothing_is_left_of_thousands_of_runs)
{
    struct leaks leaks = {.hostile = hostile_load(),
                          .runs = setting("AUDITRUN_LEAK_RUNS", 600),
                          .random = setting("AUDITRUN_LEAK_SEED", 1)};
    read_codes(&leaks);
    leaks.host = host_look();
    leaks.daemon = e2e_daemon("[executor namespace]\nslots = 4\n");
    leaks.client = daemon_connect(leaks.daemon);
    fill_caches(&leaks);
    do_runs(&leaks, WARM);
    fill_slots(&leaks);
    leaks.warm = count_all(&leaks);
    do_runs(&leaks, leaks.runs > WARM ? leaks.runs : 2 * WARM);
    (void)!processes_wait(is_as_warm, &leaks, SETTLE_MS);
    tell(&leaks);
    host_compare(&leaks.host, &leaks.wrong);
    rows_expect(daemon_ledger(leaks.daemon), DENIED + leaks.sent + leaks.filled);
    client_disconnect(leaks.client);
    daemon_free(leaks.daemon);
    for (size_t i = 0; i < leaks.code_count; i++)
        free(leaks.codes[i]);
    text_list_free(&leaks.host);
    hostile_free(leaks.hostile);
    hostile_expect_none(&leaks.wrong);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("leaks");
    TCase *tcase = e2e_case(suite, "leaks");
    tcase_set_timeout(tcase, TIMEOUT_S);
    tcase_add_test(tcase, nothing_is_left_of_thousands_of_runs);
    return e2e_run(suite);
}
