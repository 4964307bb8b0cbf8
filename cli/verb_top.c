/*
 * verb_top.c - auditrun top: what runs now, drawn again and again.
 *
 * On a terminal it takes the screen; elsewhere each picture is printed below the last one, and one is
 * all that is asked for. The connection stays open from picture to picture.
 */
#include "cli/activity.h"
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/health.h"
#include "cli/message.h"
#include "cli/screen.h"
#include "cli/verb.h"

#include <string.h>

#define RECENT          20
#define INTERVAL_MS     1000
#define MIN_INTERVAL_MS 100
#define HEAD_ROWS       7 /* the head, two titles, blank lines and "more" */

static const char help[] =
    "usage: auditrun top [OPTIONS]\n"
    "\n"
    "Shows how busy the daemon is, which runs it has not answered yet (for whom, where, in which\n"
    "state, for how long), and how the last ones ended; of the companies that you may speak for.\n"
    "On a terminal it is drawn again every second until you press q; elsewhere it is printed "
    "once.\n"
    "\n"
    "  --interval 1s        draw again after so long; at least 100ms\n"
    "  --count N            so many times; default: on a terminal for ever, else "
    "once\n" CALL_OPTION_HELP
    "                       (here {\"status\", \"top\"}, one line a picture)\n"
    "\n"
    "Exit code: 0; 64, 69 (not reachable, or gone), 76, 77 as for auditrun run.\n"
    "\n"
    "Examples\n"
    "  auditrun top\n"
    "  auditrun top --interval 5s --count 12 --json >minute.jsonl\n";

struct top_options {
    struct call_options call;
    int64_t interval_ms;
    int64_t count; /* OPTIONS_UNSET: see above */
};

static const struct option_row rows[] = {
    CALL_OPTION_ROWS,
    {"interval", OPTION_DURATION, offsetof(struct top_options, interval_ms)},
    {"count", OPTION_COUNT, offsetof(struct top_options, count)},
};

struct top {
    const struct top_options *options;
    struct client *client;
    struct screen screen;
    bool live; /* on a terminal, as pictures */
    bool over; /* an interrupt came while it waited for an answer */
    json_t *status, *activity;
};

static void forget(struct top *top)
{
    json_decref(AR_TAKE(top->status));
    json_decref(AR_TAKE(top->activity));
}

/* ---- asking ------------------------------------------------------------------------------------- */

/* While the daemon is asked a window that changes its size is no interrupt. */
static int receive(struct top *top, int64_t deadline, struct client_answer *answer)
{
    for (;;) {
        int rc = client_receive(top->client, deadline, answer);
        if (rc != CLIENT_SIGNALED)
            return rc;
        if (screen_wait(&top->screen, 0) == SCREEN_QUIT) {
            top->over = true;
            return rc;
        }
    }
}

/* EXIT_CODE_OK with *result owned (NULL: over); or the exit code after the complaint, for which the
 * screen was given back. */
static int ask(struct top *top, enum rpc_method method, json_t **result)
{
    int64_t deadline = client_deadline(CALL_ANSWER_MS);
    struct client_answer answer = {0};
    AR_AUTO_JSON json_t *none = json_object();
    int rc = client_send(top->client, "1", method, none, deadline);
    if (rc == CLIENT_OK)
        rc = receive(top, deadline, &answer);
    if (top->over)
        return EXIT_CODE_OK;
    int code = EXIT_CODE_OK;
    if (rc != CLIENT_OK || answer.error) {
        screen_close(&top->screen);
        code = rc != CLIENT_OK ? call_failed(rc)
                               : call_error(answer.error, top->options->call.json, NULL);
    }
    *result = AR_TAKE(answer.result);
    client_answer_free(&answer);
    return code;
}

/* ---- showing ------------------------------------------------------------------------------------ */

static int print_json(const struct top *top)
{
    AR_AUTO_JSON json_t *both =
        json_pack("{s:O, s:O}", "status", top->status, "top", top->activity);
    return both ? call_print_json(both) : message_failure(-ENOMEM, "cannot print the answer");
}

static int write_picture(const struct top *top, const struct terminal *terminal)
{
    size_t running = SIZE_MAX, recent = RECENT;
    if (top->live) {
        size_t rows_left = screen_rows() > HEAD_ROWS ? screen_rows() - HEAD_ROWS : 0;
        size_t there = json_array_size(json_object_get(top->activity, "recent"));
        recent = rows_left / 2 < RECENT ? rows_left / 2 : RECENT;
        running = rows_left - (there < recent ? there : recent);
    }
    health_show_short(terminal, top->status);
    (void)fputc('\n', terminal->stream);
    return activity_show(terminal, top->activity, running, recent);
}

/* The picture is made whole before any of it is drawn. */
static int draw(struct top *top)
{
    AR_AUTO_FREE char *text = NULL;
    size_t length = 0;
    struct terminal terminal;
    terminal_open(&terminal, stdout);
    terminal.stream = open_memstream(&text, &length);
    int rc = terminal.stream ? write_picture(top, &terminal) : -ENOMEM;
    if (terminal.stream && fclose(terminal.stream) != 0)
        rc = -ENOMEM;
    if (rc == 0 && top->live)
        rc = screen_draw(text, length);
    else if (rc == 0 && (fputs(text, stdout) < 0 || fflush(stdout) != 0))
        rc = -errno;
    if (rc == 0)
        return EXIT_CODE_OK;
    screen_close(&top->screen);
    return message_failure(rc, "cannot show what runs");
}

static int show(struct top *top)
{
    if (top->options->call.json)
        return print_json(top);
    return draw(top);
}

/* ---- again and again ---------------------------------------------------------------------------- */

static int look(struct top *top)
{
    forget(top);
    int code = ask(top, RPC_METHOD_STATUS, &top->status);
    if (code == EXIT_CODE_OK && !top->over)
        code = ask(top, RPC_METHOD_TOP, &top->activity);
    return code == EXIT_CODE_OK && !top->over ? show(top) : code;
}

/* True when it is time for the next picture, false when that was the last one. */
static bool pause_until_next(struct top *top)
{
    int64_t until = client_deadline(top->options->interval_ms);
    for (;;) {
        int64_t left = until - client_deadline(0);
        switch (screen_wait(&top->screen, left > 0 ? left : 0)) {
        case SCREEN_TIME:
            return true;
        case SCREEN_QUIT:
            return false;
        case SCREEN_DRAW:
            if (top->live && draw(top) != EXIT_CODE_OK)
                return false;
            break;
        }
    }
}

static int watch(struct top *top)
{
    int64_t most = top->options->count;
    if (most == OPTIONS_UNSET)
        most = top->live ? INT64_MAX : 1;
    for (int64_t n = 1; n <= most; n++) {
        int code = look(top);
        if (code != EXIT_CODE_OK || top->over)
            return code;
        if (n < most && !pause_until_next(top))
            return EXIT_CODE_OK;
        if (n < most && !top->live && !top->options->call.json)
            (void)fputc('\n', stdout);
    }
    return EXIT_CODE_OK;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    const struct top_options *options = target;
    struct top top = {.options = options};
    struct terminal terminal;
    (void)rest;
    if (options->interval_ms < MIN_INTERVAL_MS)
        return message_usage(title, "--interval is at least 100ms");
    int code = call_connect(&options->call, &top.client);
    if (code != EXIT_CODE_OK)
        return code;
    terminal_open(&terminal, stdout);
    top.live = terminal.is_terminal && !options->call.json;
    int rc = screen_open(&top.screen, top.live);
    client_watch(top.client, screen_signals(&top.screen));
    code = rc < 0 ? message_failure(rc, "cannot take the terminal") : watch(&top);
    screen_close(&top.screen);
    forget(&top);
    client_close(top.client);
    return code;
}

static const struct top_options defaults = {.interval_ms = INTERVAL_MS, .count = OPTIONS_UNSET};

const struct verb verb_top = {
    .name = "top",
    .summary = "show what runs, again and again",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
