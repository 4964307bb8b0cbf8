/*
 * verb_ledger_retire.c - auditrun ledger retire: old partitions go, and leave a signed trace.
 *
 * Without --yes it only tells what would go. Each partition is a transaction of its own, so one that
 * fails leaves those before it retired and those after it untouched.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/input.h"
#include "cli/message.h"
#include "cli/store.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "sinks/retirement.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static const char help[] =
    "usage: auditrun ledger retire [OPTIONS] --before TIME [--key FILE --yes]\n"
    "\n"
    "Drops the partitions of a PostgreSQL ledger that end at that time or before, for good. Each "
    "one\n"
    "leaves an event that tells which rows went, with the hashes at both ends, and a signature "
    "over\n"
    "it: so verify still holds, and nobody without the key can do it unseen. The rows are checked\n"
    "first; a partition with a row that is not as it was written is not dropped.\n"
    "\n"
    "Without --yes nothing is dropped: it tells what would be. The user has to be a member of\n"
    "auditrun_owner. Export the rows before, if they may be asked for.\n"
    "\n"
    "  --before TIME        2026-01-31, 2026-01-31T12:00:00Z, or 365d (ago)\n"
    "  --key FILE           the private key (auditrun ledger keygen) to sign with\n"
    "  --yes                do it\n"
    "  --json               each partition as a line of JSON\n" STORE_OPTION_HELP "\n"
    "Exit code: 0; 2 the store refused or failed; 64 usage; 66 the key cannot be read; 78 bad\n"
    "configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger retire --before 730d\n"
    "  auditrun ledger retire --before 2024-01-01 --key /etc/auditrun/retire.key --yes\n";

struct given {
    struct store_options store; /* first */
    int64_t before;
    const char *key;
    bool yes;
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    {"before", OPTION_TIME, offsetof(struct given, before)},
    {"key", OPTION_TEXT, offsetof(struct given, key)},
    {"yes", OPTION_FLAG, offsetof(struct given, yes)},
};

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- the key ------------------------------------------------------------------------------------ */

static void wipe(struct bytes *bytes)
{
    if (bytes->data)
        explicit_bzero(bytes->data, bytes->length);
    bytes_free(bytes);
}

static int read_key(const char *path, struct checkpoint_key **out)
{
    AR_CLEANUP(wipe) struct bytes pem = {0};
    int code = input_read(path, &pem);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = checkpoint_key_read(pem.data, pem.length, out);
    if (rc < 0)
        return message_failure(rc, "cannot read the key");
    if (rc == 0 && checkpoint_key_can_sign(*out))
        return EXIT_CODE_OK;
    AR_AUTO_FREE char *escaped = terminal_escape(path, strlen(path));
    return message_error(EXIT_CODE_NO_INPUT, "%s: %s", escaped ? escaped : "",
                         rc == 0 ? "it is the public half, which cannot sign"
                                 : "it is no Ed25519 key in PEM: auditrun ledger keygen makes one");
}

/* ---- one partition ------------------------------------------------------------------------------ */

static int failed(const struct retirement *retirement, const char *what, int rc)
{
    return rc < 0 ? message_failure(rc, what) : store_says(what, retirement_message(retirement));
}

/* checkpoint NULL: it was only planned. */
static int tell(const json_t *plan, const struct checkpoint *checkpoint, bool json)
{
    AR_AUTO_JSON json_t *proof = checkpoint ? checkpoint_to_json(checkpoint) : json_null();
    if (json) {
        AR_AUTO_JSON json_t *value = json_pack("{s:b, s:O, s:O}", "retired", checkpoint != NULL,
                                               "plan", plan, "checkpoint", proof);
        return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print");
    }
    AR_AUTO_FREE char *text = checkpoint && proof ? json_canonical(proof) : NULL;
    (void)printf("%s %s: %" JSON_INTEGER_FORMAT " rows, from %s to %s\n",
                 json_string_value(json_object_get(plan, "partition")),
                 checkpoint ? "is retired" : "would go",
                 json_integer_value(json_object_get(plan, "rows")),
                 json_string_value(json_object_get(plan, "from")),
                 json_string_value(json_object_get(plan, "until")));
    if (text)
        (void)printf("checkpoint %s\n", text);
    return EXIT_CODE_OK;
}

static int carry_out(struct retirement *retirement, const json_t *plan,
                     const struct checkpoint_key *key, struct checkpoint *checkpoint)
{
    char writer[UUID7_TEXT_BYTES], event_id[UUID7_TEXT_BYTES];
    struct uuid7_generator ids = {0};
    uint8_t random[2][10];
    int64_t now = now_us();
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return message_failure(-errno, "cannot make an id");
    uuid7_next(&ids, (uint64_t)now / 1000, random[0], writer);
    uuid7_next(&ids, (uint64_t)now / 1000, random[1], event_id);
    int rc = retirement_carry_out(retirement, plan, writer, event_id, now, key, checkpoint);
    return rc == 0 ? EXIT_CODE_OK : failed(retirement, "cannot retire the partition", rc);
}

/* key NULL: only planned. */
static int retire(struct retirement *retirement, const char *partition,
                  const struct checkpoint_key *key, bool json)
{
    AR_AUTO_JSON json_t *plan = NULL;
    struct checkpoint checkpoint;
    int rc = retirement_plan(retirement, partition, &plan);
    if (rc != 0)
        return failed(retirement, "cannot plan for a partition", rc);
    int code = key ? carry_out(retirement, plan, key, &checkpoint) : EXIT_CODE_OK;
    return code == EXIT_CODE_OK ? tell(plan, key ? &checkpoint : NULL, json) : code;
}

/* ---- the verb ----------------------------------------------------------------------------------- */

static int open_store(const struct store_options *options, struct retirement **out)
{
    char message[RETIREMENT_MESSAGE_BYTES];
    AR_AUTO_FREE char *url = NULL;
    int code = store_url(options, &url);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = retirement_open(url, out, message);
    if (rc < 0)
        return message_failure(rc, "cannot open the ledger");
    if (rc == 2)
        return message_error(EXIT_CODE_USAGE, "only a PostgreSQL ledger has partitions to retire");
    return rc == 0 ? EXIT_CODE_OK : store_says("cannot open the ledger", message);
}

static int retire_all(struct retirement *retirement, const struct given *given,
                      const struct checkpoint_key *key)
{
    AR_CLEANUP(text_list_free) struct text_list partitions = {0};
    int rc = retirement_list(retirement, given->before, &partitions);
    int code = rc == 0 ? EXIT_CODE_OK : failed(retirement, "cannot list the partitions", rc);
    for (size_t i = 0; i < partitions.count && code == EXIT_CODE_OK; i++)
        code = retire(retirement, partitions.items[i], key, given->store.json);
    if (code != EXIT_CODE_OK || given->store.json)
        return code;
    if (partitions.count == 0)
        (void)puts("no partition ends by then");
    else if (!key)
        (void)puts("Nothing was dropped: --key FILE --yes does it, for good.");
    return code;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    AR_CLEANUP(retirement_cleanup) struct retirement *retirement = NULL;
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = NULL;
    const struct given *given = target;
    (void)rest;
    if (given->before == ROW_NULL)
        return message_usage(title, "before when? Name --before TIME");
    if (given->yes && !given->key)
        return message_usage(title, "what goes is signed for: name --key FILE");
    int code = given->key ? read_key(given->key, &key) : EXIT_CODE_OK;
    if (code == EXIT_CODE_OK)
        code = open_store(&given->store, &retirement);
    return code == EXIT_CODE_OK ? retire_all(retirement, given, given->yes ? key : NULL) : code;
}

static const struct given defaults = {.before = ROW_NULL};

const struct verb verb_ledger_retire = {
    .group = "ledger",
    .name = "retire",
    .summary = "let old partitions go, with a trace",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};
