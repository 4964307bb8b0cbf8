/*
 * verb_ledger_export.c - auditrun ledger export: the ledger as a file that others can read, and that
 * auditrun ledger import takes in.
 *
 * A file that is gone on with is under a lock, and a torn last line of it is cut off before anything
 * is written.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/export.h"
#include "cli/message.h"
#include "cli/store.h"
#include "cli/verb.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>

static const char help[] =
    "usage: auditrun ledger export [OPTIONS]\n"
    "\n"
    "Writes the ledger in the order of its chains, as it is at one moment. JSON lines have one "
    "object\n"
    "each, whose only member says what it is: run, event, checkpoint, key (of idempotency), head.\n"
    "With filters (but for --writer alone) there are only runs; so there are with csv.\n"
    "\n"
    "  --format FORMAT      json (lines, the default), or csv with a line of titles\n"
    "  --output FILE        to a new file, instead of standard output\n"
    "  --resume FILE        goes on behind the last row of a file that an export has begun, also "
    "one\n"
    "                       that was finished: for what came since. A torn last line is cut off.\n"
    "                       Begins the file when it is not there. Give the filters of the first "
    "time\n"
    "  --after WRITER:SEQ   only rows of this chain behind this place; may be "
    "repeated\n" RUN_FILTER_HELP "  --limit N            only the newest N runs\n"
    "  --json               with --output or --resume: what was written as one line of "
    "JSON\n" STORE_OPTION_HELP "\n"
    "Idempotency keys have no order in time: they are written whole each time, and import passes "
    "over\n"
    "those that it has.\n"
    "\n"
    "Exit code: 0; 2 the store failed; 64 usage; 66 the file to go on with is not of an export;\n"
    "74 the output cannot be written; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger export --output ledger.jsonl\n"
    "  auditrun ledger export --resume /archive/ledger.jsonl\n"
    "  auditrun ledger export --format csv --company acme --since 2026-01-01 --output acme.csv\n"
    "  auditrun ledger export | auditrun ledger import --ledger postgres:dbname=audit -\n";

struct given {
    struct store_options store; /* first */
    struct run_filter runs;
    const char *format, *output, *resume;
    struct text_list after;
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    RUN_FILTER_ROWS(struct given, runs),
    {"format", OPTION_TEXT, offsetof(struct given, format)},
    {"output", OPTION_TEXT, offsetof(struct given, output)},
    {"resume", OPTION_TEXT, offsetof(struct given, resume)},
    {"after", OPTION_LIST, offsetof(struct given, after)},
};

/* ---- where to ----------------------------------------------------------------------------------- */

static int complain(const char *path, const char *what)
{
    AR_AUTO_FREE char *escaped = terminal_escape(path, strlen(path));
    return message_error(EXIT_CODE_OUTPUT, "cannot write %s: %s", escaped ? escaped : "", what);
}

/* Takes over fd. */
static int take_stream(const char *path, int fd, FILE **out)
{
    *out = fdopen(fd, "w");
    if (*out)
        return EXIT_CODE_OK;
    int error = errno;
    (void)close(fd);
    return complain(path, strerror(error));
}

static int open_new(const char *path, FILE **out)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        return take_stream(path, fd, out);
    return complain(path, errno == EEXIST ? "it is there already; --resume goes on with it"
                                          : strerror(errno));
}

static int open_again(const char *path, struct export *export)
{
    AR_AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int64_t end = 0;
    if (fd < 0)
        return complain(path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return complain(path, "another export is at it");
    int code = export_places_read(path, export->csv, &export->from, &end);
    if (code != EXIT_CODE_OK)
        return code;
    if (ftruncate(fd, end) != 0 || lseek(fd, end, SEEK_SET) < 0)
        return complain(path, strerror(errno));
    export->titles = end == 0;
    return take_stream(path, base_take_fd(&fd), &export->out);
}

static int open_output(const struct given *given, struct export *export)
{
    export->out = stdout;
    export->titles = true;
    if (given->resume)
        return open_again(given->resume, export);
    return given->output ? open_new(given->output, &export->out) : EXIT_CODE_OK;
}

/* What was written is on the disk. */
static int close_output(const char *path, struct export *export, int code)
{
    FILE *out = AR_TAKE(export->out);
    if (out == stdout)
        return code; /* the caller flushes it */
    int failed = ferror(out) || fflush(out) != 0 ? EIO : 0;
    if (!failed && fsync(fileno(out)) != 0 && errno != EINVAL && errno != EROFS)
        failed = errno;
    if (fclose(out) != 0)
        failed = errno;
    return failed && code == EXIT_CODE_OK ? complain(path, strerror(failed)) : code;
}

/* ---- the verb ----------------------------------------------------------------------------------- */

static int tell(const struct export *export, bool json)
{
    if (json) {
        AR_AUTO_JSON json_t *value =
            json_pack("{s:I, s:I, s:I, s:I}", "runs", (json_int_t) export->runs, "events",
                      (json_int_t) export->events, "checkpoints", (json_int_t) export->checkpoints,
                      "keys", (json_int_t) export->keys);
        return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print");
    }
    (void)printf("%" PRId64 " runs, %" PRId64 " events, %" PRId64 " checkpoints, %" PRId64
                 " keys written\n",
                 export->runs, export->events, export->checkpoints, export->keys);
    return EXIT_CODE_OK;
}

static int run(const char *title, const struct given *given, struct export *export)
{
    const char *path = given->resume ? given->resume : given->output;
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    AR_AUTO_FREE char *url = NULL;
    int code = export_places_parse(title, &given->after, &export->from);
    if (code == EXIT_CODE_OK)
        code = store_url(&given->store, &url);
    if (code == EXIT_CODE_OK)
        code = store_open(&given->store, &reader);
    if (code == EXIT_CODE_OK)
        code = open_output(given, export);
    if (code != EXIT_CODE_OK)
        return code;
    export->url = url;
    export->reader = reader;
    code = close_output(path, export, export_write(export));
    return path && code == EXIT_CODE_OK ? tell(export, given->store.json) : code;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    struct given *given = target;
    bool csv = given->format && strcmp(given->format, "csv") == 0;
    (void)rest;
    if (given->format && !csv && strcmp(given->format, "json") != 0)
        return message_usage(title, "--format takes json or csv");
    if (given->output && given->resume)
        return message_usage(title, "--output makes a new file, --resume goes on with one");
    if (given->resume && given->after.count > 0)
        return message_usage(title, "--resume finds the places in the file: no --after");
    if (given->runs.limit > 0 && (given->resume || given->after.count > 0))
        return message_usage(title, "--limit is for the newest runs: no --resume, no --after");
    int code = run_filter_check(title, &given->runs);
    if (code != EXIT_CODE_OK)
        return code;
    struct export export = {.filter = given->runs, .csv = csv};
    code = run(title, given, &export);
    export_places_free(&export.from);
    return code;
}

static const struct given defaults = {.runs = RUN_FILTER_NONE};

const struct verb verb_ledger_export = {
    .group = "ledger",
    .name = "export",
    .summary = "write the ledger as JSON lines or CSV",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
