/*
 * fake_provider.c - an executor for tests that misbehaves on request.
 *
 * usage: fake_provider MODE capabilities | serve
 *
 * The mode is the fault that it has; "well" has none. Faults of the program as a whole (no envelope,
 * no `ready`) show at once; those of a run only when the code asks for them with the line `fault`, so
 * that the run after it can be a good one on the same executor. The code is done in the provider
 * itself, without any sandbox, line by line:
 *
 *   print TEXT   to stdout          spam N     N bytes to stdout      exit N    ends, the report says so
 *   error TEXT   to stderr          cat        stdin to stdout        signal N  the report says killed
 *   sleep MS     waits              eat N      touches N bytes        limit     the report says cpu_ms
 *   burn MS      spends processor time
 *   fork N       has N children at a time; when one is refused, exits 1 unless it says otherwise
 *   outlive      leaves a process in a session of its own that holds the output and never ends
 *   child        leaves a plain child that holds the output and never ends
 *   tell TEXT    to the provider's own diagnostics
 *   fault        the mode's fault, at this point
 */
#include "executors/common/serve.h"
#include "executors/common/spec_file.h"

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

struct fake {
    const char *mode;
    struct serve serve;
    struct serve_order order;
    struct report report;
    bool silent; /* no report for this run: it was told (or not) otherwise */
    bool crash_after;
};

static bool is_mode(const struct fake *fake, const char *mode)
{
    return strcmp(fake->mode, mode) == 0;
}

static void wait_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

static void wait_for_ever(void)
{
    for (;;)
        wait_ms(-1);
}

static void write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, data, length);
        if (n <= 0)
            return;
        data += n;
        length -= (size_t)n;
    }
}

static void say(const struct fake *fake, const char *text, size_t length)
{
    (void)!send(fake->serve.control, text, length, MSG_NOSIGNAL);
}

static void say_text(const struct fake *fake, const char *text)
{
    say(fake, text, strlen(text));
}

/* ---- what it lets the code do ----------------------------------------------------------------- */

static void spam(int fd, long long count)
{
    char block[65536];
    memset(block, 'x', sizeof block);
    while (count > 0) {
        size_t part = count < (long long)sizeof block ? (size_t)count : sizeof block;
        write_all(fd, block, part);
        count -= (long long)part;
    }
}

static void copy_input(const struct fake *fake)
{
    char block[65536];
    ssize_t n;
    while ((n = read(fake->order.descriptors[SERVE_STDIN], block, sizeof block)) > 0)
        write_all(fake->order.descriptors[SERVE_STDOUT], block, (size_t)n);
}

/* Touches the bytes in a child, as a code that is killed for it would be. */
static void eat(long long count)
{
    pid_t child = count > 0 ? fork() : -1;
    if (child != 0) {
        (void)waitpid(child, NULL, 0);
        return;
    }
    char *memory =
        mmap(NULL, (size_t)count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long long i = 0; memory != MAP_FAILED && i < count; i += 4096)
        memory[i] = 1;
    _exit(0);
}

static void burn(long long ms)
{
    struct timespec begin, now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

/* Were all of them to be had? They end with it. */
static bool have_children(long long count)
{
    pid_t pids[256];
    long long had = 0;
    while (had < count && had < (long long)AR_COUNT(pids) && (pids[had] = fork()) >= 0)
        if (pids[had++] == 0)
            wait_for_ever();
    for (long long i = 0; i < had; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    return had == count;
}

/* A process that holds the output pipes and nothing else of the provider. */
static void leave_child(const struct fake *fake, bool own_session)
{
    if (fork() != 0)
        return;
    if (own_session && (setsid() < 0 || fork() != 0))
        _exit(0);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)close(fake->serve.control);
    wait_for_ever();
}

/* ---- its faults in a run ---------------------------------------------------------------------- */

static void send_descriptors(const struct fake *fake)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * 8)];
    } control = {0};
    char text[] = "{\"ready\":false}";
    struct iovec part = {.iov_base = text, .iov_len = sizeof text - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * 8);
    for (size_t i = 0; i < 8; i++)
        memcpy(CMSG_DATA(header) + i * sizeof(int), &fake->serve.control, sizeof(int));
    (void)!sendmsg(fake->serve.control, &message, MSG_NOSIGNAL);
}

static void flood(const struct fake *fake, const char *text)
{
    for (;;)
        say_text(fake, text);
}

static void say_oversize(const struct fake *fake)
{
    size_t length = SPEC_MESSAGE_BYTES + 1;
    AR_AUTO_FREE char *text = malloc(length);
    if (!text)
        return;
    memset(text, ' ', length);
    say(fake, text, length);
}

/* Waits for the word to go, and then claims that all went well. */
static void claim_success_when_told_to_go(struct fake *fake)
{
    sigset_t term;
    int number;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, NULL);
    (void)sigwait(&term, &number);
    fake->report = (struct report){.outcome = OUTCOME_EXITED, .usage = USAGE_UNKNOWN};
    AR_AUTO_FREE char *text = spec_report_message(&fake->report);
    if (text)
        say_text(fake, text);
    wait_for_ever();
}

/* Messages that break the contract, by mode. */
static const struct lie {
    const char *mode, *text;
} lies[] = {
    {"rubbish", "CANARY-RUBBISH is not a message"},
    {"unknown-message", "{\"hello\":\"CANARY-RUBBISH\"}"},
    {"unknown-outcome", "{\"report\":{\"outcome\":\"CANARY-RUBBISH\"}}"},
    {"unknown-member",
     "{\"report\":{\"outcome\":\"exited\",\"exit_code\":0,\"why\":\"CANARY-RUBBISH\"}}"},
    {"wrong-limit", "{\"report\":{\"outcome\":\"limit\",\"limit\":\"output_bytes\"}}"},
    {"wrong-code", "{\"report\":{\"outcome\":\"exited\",\"exit_code\":256}}"},
    {"no-code", "{\"report\":{\"outcome\":\"exited\"}}"},
    {"ready-in-run", "{\"ready\":true}"},
    {"setup-failed", "{\"report\":{\"outcome\":\"setup_failed\"}}"},
};

static bool tell_lie(struct fake *fake)
{
    for (size_t i = 0; i < AR_COUNT(lies); i++) {
        if (!is_mode(fake, lies[i].mode))
            continue;
        say_text(fake, lies[i].text);
        if (!is_mode(fake, "setup-failed")) /* the one that is allowed */
            wait_for_ever();
        fake->silent = true;
        return true;
    }
    return false;
}

/* A TCP socket that listens, in a network namespace of its own or in that of the daemon. */
static int make_listener(bool own)
{
    static const struct sockaddr_in anywhere = {.sin_family = AF_INET};
    if (own && unshare(CLONE_NEWNET) < 0)
        exit(3);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (const struct sockaddr *)&anywhere, sizeof anywhere) < 0 || listen(fd, 1) < 0)
        exit(3);
    return fd;
}

/* What must not be handed over as a listener, by mode. */
static bool hand_over_listener(struct fake *fake)
{
    if (strncmp(fake->mode, "listener-", 9) != 0)
        return false;
    if (is_mode(fake, "listener-bare"))
        say_text(fake, "{\"listener\":true}");
    else if (is_mode(fake, "listener-file"))
        (void)!serve_listener(&fake->serve, fake->order.descriptors[SERVE_STDOUT]);
    else
        (void)!serve_listener(&fake->serve, make_listener(!is_mode(fake, "listener-here")));
    if (is_mode(fake, "listener-twice"))
        (void)!serve_listener(&fake->serve, make_listener(false));
    if (!is_mode(fake, "listener-well"))
        wait_for_ever();
    return true;
}

static void commit_fault(struct fake *fake)
{
    if (tell_lie(fake) || hand_over_listener(fake))
        return;
    if (is_mode(fake, "hang"))
        wait_for_ever();
    if (is_mode(fake, "stubborn")) {
        (void)signal(SIGTERM, SIG_IGN);
        wait_for_ever();
    }
    if (is_mode(fake, "flood-ready"))
        flood(fake, "{\"ready\":true}");
    if (is_mode(fake, "flood-report"))
        flood(fake, "{\"report\":{\"outcome\":\"exited\",\"exit_code\":0}}");
    if (is_mode(fake, "oversize"))
        say_oversize(fake);
    if (is_mode(fake, "descriptors"))
        send_descriptors(fake);
    if (is_mode(fake, "empty"))
        say_text(fake, "");
    if (is_mode(fake, "crash-before"))
        abort();
    if (is_mode(fake, "exit-before"))
        exit(0);
    if (is_mode(fake, "close-control")) {
        (void)close(fake->serve.control);
        wait_for_ever();
    }
    if (is_mode(fake, "late-success"))
        claim_success_when_told_to_go(fake);
    if (is_mode(fake, "crash-after"))
        fake->crash_after = true;
}

/* ---- a run ------------------------------------------------------------------------------------ */

static long long number_of(const char *text)
{
    return text ? strtoll(text, NULL, 10) : 0;
}

/* False when the code ends here. */
static bool do_end(struct fake *fake, const char *word, const char *rest)
{
    struct report *report = &fake->report;
    if (strcmp(word, "exit") == 0) {
        report->exit_code = (int)number_of(rest);
    } else if (strcmp(word, "signal") == 0) {
        report->outcome = OUTCOME_SIGNALED;
        report->signal = (int)number_of(rest);
    } else if (strcmp(word, "limit") == 0) {
        report->outcome = OUTCOME_LIMIT;
        report->limit = LIMIT_CPU_MS;
    } else {
        return true;
    }
    return false;
}

static bool do_line(struct fake *fake, const char *word, const char *rest)
{
    const int *fds = fake->order.descriptors;
    if (strcmp(word, "print") == 0 && rest)
        write_all(fds[SERVE_STDOUT], rest, strlen(rest));
    else if (strcmp(word, "error") == 0 && rest)
        write_all(fds[SERVE_STDERR], rest, strlen(rest));
    else if (strcmp(word, "tell") == 0 && rest)
        write_all(STDERR_FILENO, rest, strlen(rest));
    else if (strcmp(word, "spam") == 0)
        spam(fds[SERVE_STDOUT], number_of(rest));
    else if (strcmp(word, "cat") == 0)
        copy_input(fake);
    else if (strcmp(word, "sleep") == 0)
        wait_ms((int)number_of(rest));
    else if (strcmp(word, "eat") == 0)
        eat(number_of(rest));
    else if (strcmp(word, "burn") == 0)
        burn(number_of(rest));
    else if (strcmp(word, "fork") == 0)
        fake->report.exit_code = !have_children(number_of(rest));
    else if (strcmp(word, "outlive") == 0 || strcmp(word, "child") == 0)
        leave_child(fake, word[0] == 'o');
    else if (strcmp(word, "fault") == 0)
        commit_fault(fake);
    else
        return do_end(fake, word, rest);
    return true;
}

static void do_code(struct fake *fake, char *code)
{
    char *save = NULL;
    bool goes_on = true;
    for (char *line = strtok_r(code, "\n", &save); line && goes_on && !fake->silent;
         line = strtok_r(NULL, "\n", &save)) {
        char *rest = strchr(line, ' ');
        if (rest)
            *rest++ = 0;
        goes_on = do_line(fake, line, rest);
    }
}

static void send_report(struct fake *fake)
{
    AR_AUTO_FREE char *text = spec_report_message(&fake->report);
    if (!text || fake->silent)
        return;
    say_text(fake, text);
    if (fake->crash_after)
        abort();
    if (is_mode(fake, "twice"))
        say_text(fake, text);
    if (is_mode(fake, "once"))
        _exit(0); /* a leak checker would need a child here, which the daemon kills */
    if (is_mode(fake, "no-ready"))
        wait_for_ever();
}

static bool do_run(struct fake *fake)
{
    struct spec *spec = NULL;
    if (spec_file_read(fake->order.descriptors[SERVE_SPEC], fake->order.run.spec_bytes, &spec) != 0)
        return false;
    fake->report = (struct report){.outcome = OUTCOME_EXITED, .usage = USAGE_UNKNOWN};
    fake->silent = false;
    do_code(fake, spec->code.data);
    spec_free(spec);
    serve_order_close(&fake->order);
    send_report(fake);
    return true;
}

/* ---- the verbs -------------------------------------------------------------------------------- */

static int serve(struct fake *fake)
{
    sigset_t none;
    if (is_mode(fake, "exit-at-once"))
        return 3;
    if (is_mode(fake, "hang-before-ready"))
        wait_for_ever();
    if (serve_open(&fake->serve) != 0)
        return 1;
    sigemptyset(&none); /* SIGTERM ends it, unless a fault says otherwise */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (is_mode(fake, "report-before-ready"))
        say_text(fake, "{\"report\":{\"outcome\":\"exited\",\"exit_code\":0}}");
    for (;;) {
        if (serve_ready(&fake->serve, false) != 0 ||
            serve_receive(&fake->serve, &fake->order) != 0 || !do_run(fake))
            return 0;
    }
}

static int capabilities(const struct fake *fake)
{
    const char *limits = is_mode(fake, "no-limits") ? "" : "\"cpu_ms\":3600000";
    const char *network = strncmp(fake->mode, "listener-", 9) == 0 ? ",\"allowlist\"" : "";
    if (is_mode(fake, "no-envelope"))
        limits = "CANARY-RUBBISH";
    (void)printf("{\"contract\":1,\"name\":\"fake\",\"version\":\"1\",\"languages\":[{\"name\":"
                 "\"fake\",\"version\":\"1\"}],\"network\":[\"none\"%s],\"data_api\":false,"
                 "\"secrets\":false,\"filesystem\":{\"read\":false,\"write\":false},"
                 "\"limits\":{%s}}\n",
                 network, limits);
    return is_mode(fake, "bad-exit") ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct fake fake = {.mode = argc > 1 ? argv[1] : ""};
    if (argc == 3 && strcmp(argv[2], "capabilities") == 0)
        return capabilities(&fake);
    if (argc == 3 && strcmp(argv[2], "serve") == 0)
        return serve(&fake);
    (void)fprintf(stderr, "usage: fake_provider MODE capabilities | serve\n");
    return 2;
}
