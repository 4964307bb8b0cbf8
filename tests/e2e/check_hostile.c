/*
 * check_hostile.c - every hostile program of tests/hostile through the real daemon and its namespace
 * executor: contained, ended as told, and nothing of it left on the host.
 *
 * One case a category, one daemon a case, several programs at the same time. The daemon is started
 * with a secret in its environment, an open descriptor and a terminal, as a careless service manager
 * would; canaries lie around on the host.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/canaries.h"
#include "tests/lib/host.h"
#include "tests/lib/hostile.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SLOTS      4
#define IN_FLIGHT  3 /* the machine has to have some time for each; all of it for the next */
#define ALONE      "cpu"
#define MAX_RUNS   64
#define ANSWER_MS  90000
#define GLANCE_MS  20
#define UID_BASE   220000
#define PEER_NAME  "hostile-uid" /* what priv-host-uid.py calls itself */
#define CATEGORIES 11

static const char *const categories[CATEGORIES] = {"time",       "processes",   "memory",  "cpu",
                                                   "output",     "filesystem",  "network", "kernel",
                                                   "privileges", "information", NULL};

/* ---- a category ------------------------------------------------------------------------------- */

/* A run of a program. Its id is its place in the list, from 1. */
struct item {
    struct hostile_program program;
    bool follows; /* starts when the one before it has been answered */
    bool again;   /* was too slow beside the others: is tried a second time, alone */
    bool sent, answered;
    int64_t sent_ms;
};

struct session {
    struct hostile *hostile;
    struct daemon *daemon;
    struct client *client;
    struct item items[MAX_RUNS];
    size_t count, answered, in_flight, most, repeated;
    bool alone; /* one that is tried again is on its way */
    json_t *results[MAX_RUNS];
    long uids[2]; /* of the two peers on the host; 0: not seen */
    bool looks_for_peers;
    struct text_list wrong;
};

static void list_runs(struct session *session, const char *category)
{
    for (size_t i = 0; i < hostile_count(session->hostile); i++) {
        struct hostile_program program = hostile_at(session->hostile, i);
        if (strcmp(program.category, category) != 0)
            continue;
        session->looks_for_peers = session->looks_for_peers || program.distinct_host_uids;
        for (size_t run = 0; run < program.times * program.at_once; run++) {
            ck_assert_uint_lt(session->count, MAX_RUNS);
            session->items[session->count++] =
                (struct item){.program = program, .follows = run > 0 && program.at_once == 1};
        }
    }
    ck_assert_msg(session->count > 0, "no program is of the category %s", category);
}

static void send_run(struct session *session, size_t index)
{
    struct item *item = &session->items[index];
    item->sent = true;
    item->sent_ms = processes_now_ms();
    session->in_flight++;
    client_request(session->client, (json_int_t)index + 1, "run",
                   hostile_params(session->hostile, &item->program));
}

/* Is there a place for it, and for those that are to be at the same time? */
static bool may_be_sent(const struct session *session, const struct item *item)
{
    if (session->alone)
        return false;
    if (item->again)
        return session->in_flight == 0;
    return item->follows ? item[-1].answered
                         : session->in_flight + item->program.at_once <= session->most;
}

static void send_more(struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        const struct item *item = &session->items[i];
        if (item->sent)
            continue;
        if (!may_be_sent(session, item))
            return;
        session->alone = item->again;
        for (size_t k = item->again ? 1 : item->program.at_once; k > 0; k--)
            send_run(session, i + k - 1);
    }
}

static void note_peer(struct session *session, pid_t pid)
{
    const long uid = host_uid_of(pid);
    for (size_t i = 0; i < AR_COUNT(session->uids) && uid >= 0; i++) {
        if (session->uids[i] == uid)
            return;
        if (session->uids[i] == 0) {
            session->uids[i] = uid;
            return;
        }
    }
}

static void look_for_peers(struct session *session)
{
    struct processes below = daemon_processes(session->daemon);
    for (size_t i = 0; i < below.count; i++)
        if (host_has_name(below.items[i].pid, PEER_NAME))
            note_peer(session, below.items[i].pid);
    processes_free(&below);
}

static void take_answer(struct session *session, json_t *message)
{
    const size_t index = (size_t)json_integer_value(json_object_get(message, "id")) - 1;
    json_t *result = json_object_get(message, "result");
    ck_assert_uint_lt(index, session->count);
    struct item *item = &session->items[index];
    ck_assert(item->sent && !item->answered);
    ck_assert_msg(result != NULL, "%s: %s", item->program.file, client_last_line(session->client));
    session->in_flight--;
    session->alone = false;
    if (hostile_was_too_slow(&item->program, result) && !item->again) {
        item->again = true;
        item->sent = false;
        session->repeated++;
        return;
    }
    item->answered = true;
    session->answered++;
    session->results[index] = json_incref(result);
    hostile_judge(&item->program, result, processes_now_ms() - item->sent_ms, &session->wrong);
}

static void do_runs(struct session *session)
{
    int64_t deadline = processes_now_ms() + ANSWER_MS;
    while (session->answered < session->count) {
        send_more(session);
        AR_AUTO_JSON json_t *message =
            client_next_within(session->client, session->looks_for_peers ? GLANCE_MS : ANSWER_MS);
        if (message)
            take_answer(session, message);
        if (session->looks_for_peers)
            look_for_peers(session);
        ck_assert_msg(processes_now_ms() < deadline, "the daemon does not answer any more");
    }
}

/* ---- after it --------------------------------------------------------------------------------- */

static void judge_peers(struct session *session)
{
    if (session->looks_for_peers && geteuid() == 0 &&
        (session->uids[0] <= 0 || session->uids[1] <= 0))
        hostile_tell(&session->wrong,
                     "two runs at the same time are the users %ld and %ld of the host",
                     session->uids[0], session->uids[1]);
}

static void expect_rows(struct session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        rows_expect_result(daemon_ledger(session->daemon), session->results[i]);
        json_decref(session->results[i]);
    }
    /* And those that were tried again, and the trivial run. */
    rows_expect(daemon_ledger(session->daemon), session->count + session->repeated + 1);
}

static void judge_daemon(struct session *session)
{
    AR_AUTO_JSON json_t *result =
        client_call(session->client, "run", client_params("bash", "echo hello", NULL));
    const char *status = json_string_value(json_object_get(result, "status"));
    if (!status || strcmp(status, "succeeded") != 0 || strcmp(e2e_stdout(result), "hello\n") != 0)
        hostile_tell(&session->wrong, "a trivial run ends as %s", status ? status : "nothing");
}

/* ---- the daemon ------------------------------------------------------------------------------- */

/* Each language is tried at the start, which takes its time: only those that are needed are there. */
static void offer_language(const char *folder, const char *language)
{
    char from[512], to[512];
    const char *source = getenv("AUDITRUN_SOURCE");
    (void)snprintf(from, sizeof(from), "%s/etc/languages.d/%s.conf", source ? source : ".",
                   language);
    (void)snprintf(to, sizeof(to), "%s/%s.conf", folder, language);
    AR_AUTO_FREE char *text = daemon_read_file(from);
    daemon_write_file(to, text, 0644);
}

static void configure(struct session *session)
{
    AR_AUTO_FREE char *languages = daemon_path(session->daemon, "languages.d");
    AR_AUTO_FREE char *config = NULL;
    ck_assert_int_eq(mkdir(languages, 0755), 0);
    offer_language(languages, "bash");
    for (size_t i = 0; i < session->count; i++)
        offer_language(languages, session->items[i].program.language);
    ck_assert_int_gt(asprintf(&config,
                              "[executor namespace]\nslots = %d\n"
                              "args = --uid-base %d --languages %s\n",
                              SLOTS, UID_BASE, languages),
                     0);
    daemon_configure(session->daemon, config);
}

static void start_daemon(struct session *session, struct canaries *canaries)
{
    session->daemon =
        daemon_prepare(&(struct daemon_options){.environment = canaries_environment(canaries)});
    configure(session);
    canaries_lend(canaries);
    daemon_start_again(session->daemon);
    canaries_take_back(canaries);
    session->client = daemon_connect(session->daemon);
}

START_TEST(programs_are_contained)
{
    struct session session = {.hostile = hostile_load(),
                              .most = strcmp(categories[_i], ALONE) == 0 ? 1 : IN_FLIGHT};
    struct canaries *canaries = canaries_start(UID_BASE);
    struct text_list before = host_look();
    list_runs(&session, categories[_i]);
    start_daemon(&session, canaries);
    do_runs(&session);
    host_judge_daemon(session.daemon, SLOTS, &session.wrong);
    host_compare(&before, &session.wrong);
    canaries_judge(canaries, &session.wrong);
    judge_peers(&session);
    judge_daemon(&session);
    expect_rows(&session);
    client_disconnect(session.client);
    daemon_free(session.daemon);
    canaries_end(canaries);
    hostile_free(session.hostile);
    text_list_free(&before);
    hostile_expect_none(&session.wrong);
}
END_TEST

/* No program is left out by a new category. */
START_TEST(every_category_is_tested)
{
    struct hostile *hostile = hostile_load();
    for (size_t i = 0; i < hostile_count(hostile); i++) {
        size_t found = 0;
        for (size_t k = 0; categories[k]; k++)
            found += strcmp(categories[k], hostile_at(hostile, i).category) == 0;
        ck_assert_msg(found == 1, "%s is not tested", hostile_at(hostile, i).category);
    }
    hostile_free(hostile);
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

/* A session with a terminal of its own, which daemons inherit. A process that leads a group can have
 * none, so it is done in a child. */
static void take_terminal(void)
{
    int master, terminal, status;
    if (setsid() < 0) {
        pid_t child = fork();
        if (child > 0) {
            while (waitpid(child, &status, 0) < 0 && errno == EINTR)
                continue;
            exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
        }
        if (child < 0 || setsid() < 0)
            exit(EXIT_FAILURE);
    }
    if (openpty(&master, &terminal, NULL, NULL, NULL) < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0 ||
        fcntl(master, F_SETFD, FD_CLOEXEC) < 0 || close(terminal) < 0)
        exit(EXIT_FAILURE);
}

int main(void)
{
    Suite *suite = suite_create("hostile");
    take_terminal();
    tcase_add_test(e2e_case(suite, "list"), every_category_is_tested);
    for (int i = 0; categories[i]; i++)
        tcase_add_loop_test(e2e_case(suite, categories[i]), programs_are_contained, i, i + 1);
    return e2e_run(suite);
}
