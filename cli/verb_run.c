/*
 * verb_run.c - auditrun run: one request, sent and waited for.
 *
 * An interrupt (SIGINT, SIGTERM, SIGHUP) asks the daemon to cancel and goes on waiting, because a
 * cancelled run has a record too and its status is worth knowing; the second one quits. Signals come
 * over a descriptor that the client polls, so there are no handlers.
 */
#include "cli/answer.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/verb.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

static const char run_id_text[] = "1";
static const char cancel_id_text[] = "2";
#define RUN_ID_NUMBER 1

static const char help[] =
    "usage: auditrun run [OPTIONS] FILE|- [-- ARG...]\n"
    "\n"
    "Has the daemon run the code in FILE (or from standard input) in a sandbox, prints the code's\n"
    "own output, and exits with the code's own exit code.\n"
    "\n"
    "Who and why (all three are needed; every run is recorded with them)\n"
    "  --company C          whom it is for          or AUDITRUN_COMPANY\n"
    "  --actor A            who asks                or AUDITRUN_ACTOR\n"
    "  --purpose P          why                     or AUDITRUN_PURPOSE\n"
    "\n"
    "What is run\n"
    "  --language L         default: by the file's extension, or its first line (#!)\n"
    "  --executor E         by this executor; default: the daemon chooses\n"
    "  --arg A              an argument; may be repeated; also: everything behind --\n"
    "  --env NAME=VALUE     an environment variable; may be repeated\n"
    "  --stdin FILE|-       its standard input; default: empty\n"
    "  --file PATH=FILE     put FILE at PATH below its working directory; may be repeated\n"
    "  --output-file PATH[=FILE]  bring PATH back, to FILE (default: PATH); may be repeated\n"
    "  --key K              idempotency key: a repeat of the same request does not run again\n"
    "\n"
    "What it may do (left out: nothing; what no executor can enforce is denied)\n"
    "  --network MODE       none, allowlist or open (any public address)\n"
    "  --host HOST:PORT     allow this one; implies allowlist; may be repeated\n"
    "  --data-api METHOD    call this method of the data API; may be repeated\n"
    "  --secret NAME        have this secret; may be repeated\n"
    "  --secret-env NAME    the same, and have it as an environment variable too\n"
    "  --read PATH          read this path of the host; may be repeated\n"
    "  --write PATH         read and write this path of the host; may be repeated\n"
    "  --wall 5s            limits: time on the clock,\n"
    "  --cpu 2s             time on the processor,\n"
    "  --memory 128M        memory,\n"
    "  --processes N        processes,\n"
    "  --open-files N       open files of a process,\n"
    "  --scratch 16M        bytes in files,\n"
    "  --output-limit 1M    bytes of output; default of each: [limits] of the configuration\n"
    "\n"
    "How it is told\n"
    "  --quiet              only the code's own output, no verdict\n"
    "  --verbose            the verdict also when stderr is no terminal\n"
    "  --stream             print output while the code runs; with --json each piece as a line\n"
    "  --raw                leave control characters in the output also on a terminal\n"
    "  --wait 60s           wait so long for the answer; default: as long as it "
    "takes\n" CALL_OPTION_HELP "\n"
    "Exit code: the code's own, or 64 usage, 65 request refused, 66 file not readable, 69 daemon "
    "not\n"
    "reachable, 70 provider failed, 73 ended but not recorded, 74 output not writable, 75 refused\n"
    "(overloaded, draining), 76 nonsense from the daemon, 77 not allowed (capability_denied,\n"
    "unauthorized, disabled), 124 timed out, 125 limit exceeded, 126 not compiled, 128+N killed "
    "by\n"
    "signal N, 130 cancelled.\n"
    "\n"
    "Examples\n"
    "  export AUDITRUN_COMPANY=acme AUDITRUN_ACTOR=ana AUDITRUN_PURPOSE='monthly report'\n"
    "  auditrun run report.py\n"
    "  echo 'print(6 * 7)' | auditrun run --language python -\n"
    "  auditrun run --wall 2s --memory 64M --stdin data.csv sum.js -- --column 3\n"
    "  auditrun run --output-file out.json=result.json convert.rb\n"
    "  auditrun run --json report.py | jq .status\n";

/* A descriptor that tells of interrupts from now on; -1: none, they end the program. */
static int watch_interrupts(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return fd;
}

static void take_interrupt(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) < 0 && errno == EINTR)
        continue;
}

static int send_cancel(struct client *client)
{
    AR_AUTO_JSON json_t *params = json_object();
    if (json_object_set_new(params, "request_id", json_integer(RUN_ID_NUMBER)) != 0)
        return -ENOMEM;
    return client_send(client, cancel_id_text, RPC_METHOD_CANCEL, params,
                       client_deadline(CALL_ANSWER_MS));
}

/* Is it the answer to the run? An error without id is about the line that could not be read, and
 * the run is the first. */
static bool is_ours(const struct client_answer *answer)
{
    return strcmp(answer->id_text, run_id_text) == 0 ||
           (answer->error && strcmp(answer->id_text, "null") == 0);
}

/* The answer to the run: CLIENT_OK with *answer owned, or what client_receive() says. */
static int await(struct client *client, int signals, int64_t deadline, bool quiet,
                 struct client_answer *answer)
{
    bool cancelling = false;
    for (;;) {
        int rc = client_receive(client, deadline, answer);
        if (rc == CLIENT_OK && is_ours(answer))
            return CLIENT_OK;
        if (rc == CLIENT_OK) {
            client_answer_free(answer);
            continue;
        }
        if (rc != CLIENT_SIGNALED || cancelling)
            return rc;
        cancelling = true;
        take_interrupt(signals);
        if (!quiet)
            (void)message_error(0, "cancelling; interrupt again to quit without the answer");
        rc = send_cancel(client);
        if (rc != CLIENT_OK)
            return rc;
    }
}

static int call_run(const struct order *order, const json_t *params)
{
    AR_CLEANUP(client_cleanup) struct client *client = NULL;
    AR_AUTO_CLOSE int signals = -1;
    int code = call_connect(&order->call, &client);
    if (code != EXIT_CODE_OK)
        return code;
    signals = watch_interrupts();
    client_watch(client, signals);
    struct follow follow = {.order = order};
    client_listen(client, follow_take, &follow);
    int64_t deadline = client_deadline(order->wait_ms);
    struct client_answer answer = {0};
    int rc = client_send(client, run_id_text, RPC_METHOD_RUN, params, deadline);
    if (rc == CLIENT_OK)
        rc = await(client, signals, deadline, order->quiet, &answer);
    if (rc != CLIENT_OK)
        return call_failed(rc);
    code = answer.error ? call_error(answer.error, order->call.json, order_option)
                        : answer_print(&follow, answer.result);
    client_answer_free(&answer);
    return code;
}

static int act(const char *title, void *options, const struct options_rest *rest)
{
    struct order *order = options;
    AR_AUTO_JSON json_t *params = NULL;
    int code = order_complete(title, order, rest);
    if (code == EXIT_CODE_OK)
        code = order_params(order, &params);
    return code == EXIT_CODE_OK ? call_run(order, params) : code;
}

const struct verb verb_run = {
    .name = "run",
    .summary = "run code in a sandbox and show how it ended",
    .help = help,
    .rows = order_rows,
    .row_count = ORDER_ROW_COUNT,
    .defaults = &order_defaults,
    .options_size = sizeof(struct order),
    .takes_operands = true,
    .act = act,
};
