/*
 * check_journal_damage.c - a journal that was cut off is gone on in; one that is damaged is never
 * started over in silence, and the operator's command saves what is whole.
 *
 * Each test takes the journal of a daemon that was killed while its ledger was away, with the records
 * of two runs in it, and counts the rows that come of it.
 */
#include "daemon/journal_frame.h"
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WAIT_MS    20000
#define MAX_FRAMES 64

static const char *const well[] = {"well", NULL};

struct bytes {
    char *data; /* owned */
    size_t length;
};

struct left {
    struct daemon *daemon;
    char *ledger, *away, *journal; /* paths */
    struct bytes bytes;            /* of the journal */
    size_t at[MAX_FRAMES + 1];     /* where its frames begin; the last is the end */
    enum journal_type types[MAX_FRAMES];
    size_t count;
};

/* ---- bytes ------------------------------------------------------------------------------------ */

static struct bytes read_bytes(const char *path)
{
    struct stat status;
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(fstat(fd, &status), 0);
    struct bytes bytes = {.data = malloc((size_t)status.st_size + 1),
                          .length = (size_t)status.st_size};
    ck_assert_ptr_nonnull(bytes.data);
    ck_assert_int_eq(read(fd, bytes.data, bytes.length), (ssize_t)bytes.length);
    return bytes;
}

static void write_bytes(const char *path, const char *data, size_t length)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, length), (ssize_t)length);
}

/* A copy with room behind it. */
static struct bytes copy_bytes(const struct bytes *bytes, size_t more)
{
    struct bytes copy = {.data = calloc(1, bytes->length + more), .length = bytes->length};
    ck_assert_ptr_nonnull(copy.data);
    memcpy(copy.data, bytes->data, bytes->length);
    return copy;
}

/* ---- a journal with two records ----------------------------------------------------------------- */

static void read_frames(struct left *left)
{
    struct journal_walk walk = {.data = (const unsigned char *)left->bytes.data,
                                .length = left->bytes.length};
    left->count = 0;
    while (journal_frame_next(&walk) == JOURNAL_PIECE_FRAME) {
        ck_assert_uint_lt(left->count, MAX_FRAMES);
        left->types[left->count] = walk.frame.type;
        left->at[left->count++] = walk.at;
    }
    ck_assert_uint_eq(walk.at, left->bytes.length);
    left->at[left->count] = left->bytes.length;
}

static void leave_records(struct left *left, int count)
{
    left->daemon = fake_daemon(well, 2, "[ledger]\ndeadline = 1s\nwhen_down = keep\n");
    left->ledger = daemon_path(left->daemon, "ledger.db");
    left->away = daemon_path(left->daemon, "ledger.away");
    left->journal = daemon_path(left->daemon, "journal/journal");
    struct client *client = daemon_connect(left->daemon);
    ck_assert_int_eq(rename(left->ledger, left->away), 0);
    for (int i = 0; i < count; i++) {
        AR_AUTO_JSON json_t *error =
            client_fail(client, "run", fake_params("well", "print x\nexit 9", NULL));
        client_expect_error(error, -32001, NULL, NULL);
        const json_t *data = json_object_get(error, "data");
        ck_assert_str_eq(json_string_value(json_object_get(data, "terminal_reason")),
                         "exit_nonzero");
        ck_assert(json_is_true(json_object_get(data, "kept")));
    }
    daemon_kill9(left->daemon);
    client_disconnect(client);
    left->bytes = read_bytes(left->journal);
    read_frames(left);
}

static void free_left(struct left *left)
{
    daemon_free(left->daemon);
    free(left->ledger);
    free(left->away);
    free(left->journal);
    free(left->bytes.data);
}

/* The nth frame (from 0) of a type. */
static size_t frame_of(const struct left *left, enum journal_type type, size_t nth)
{
    for (size_t i = 0; i < left->count; i++)
        if (left->types[i] == type && nth-- == 0)
            return i;
    ck_abort_msg("there is no such frame");
}

/* ---- what comes of a journal -------------------------------------------------------------------- */

static void fresh_ledger(const struct left *left)
{
    struct bytes ledger = read_bytes(left->away);
    write_bytes(left->ledger, ledger.data, ledger.length);
    free(ledger.data);
}

/* A start, a stop, a start: so many rows that tell the run's own end, so many interrupted. */
static void expect_rows(const struct left *left, size_t true_ends, size_t interrupted)
{
    size_t count = true_ends + interrupted;
    for (int i = 0; i < 2; i++) {
        daemon_start_again(left->daemon);
        struct rows rows = rows_wait(daemon_ledger(left->daemon), count, WAIT_MS);
        ck_assert_uint_eq(rows.count, count);
        ck_assert_uint_eq(rows_count(&rows, STATUS_NONE, REASON_HOST_RESTARTED), interrupted);
        ck_assert_uint_eq(rows_count(&rows, STATUS_NONE, REASON_EXIT_NONZERO), true_ends);
        rows_free(&rows);
        ck_assert_int_eq(daemon_terminate(left->daemon), 0);
    }
    rows_expect(daemon_ledger(left->daemon), count);
}

static void expect_two_rows(const struct left *left, const char *data, size_t length,
                            size_t interrupted)
{
    fresh_ledger(left);
    write_bytes(left->journal, data, length);
    expect_rows(left, 2 - interrupted, interrupted);
}

/* The daemon does not start on these bytes, says where, and leaves them as they are. */
static void expect_no_start(const struct left *left, const struct bytes *damaged, size_t place)
{
    char where[64];
    write_bytes(left->journal, damaged->data, damaged->length);
    ck_assert_int_eq(truncate(daemon_log(left->daemon), 0), 0);
    ck_assert_int_eq(daemon_start_in_vain(left->daemon), 1);
    AR_AUTO_FREE char *log = daemon_read_log(left->daemon);
    (void)snprintf(where, sizeof where, "journal/journal is damaged at byte %zu", place);
    ck_assert_msg(strstr(log, where) != NULL, "not said: %s\n%s", where, log);
    ck_assert_msg(strstr(log, "auditrund --repair-journal") != NULL, "%s", log);
    struct bytes now = read_bytes(left->journal);
    ck_assert_uint_eq(now.length, damaged->length);
    ck_assert_mem_eq(now.data, damaged->data, now.length);
    free(now.data);
}

/* Runs auditrund with an option; its exit status and what it said (malloc'd). */
static int run_option(const struct left *left, const char *option, char **said)
{
    AR_AUTO_FREE char *path = daemon_path(left->daemon, "said");
    AR_AUTO_FREE char *program = NULL;
    const char *build = getenv("AUDITRUN_BUILD");
    int status;
    ck_assert_int_gt(asprintf(&program, "%s/auditrund", build ? build : "build"), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
            _exit(126);
        execl(program, program, option, "--config", daemon_config(left->daemon), (char *)NULL);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    *said = daemon_read_file(path);
    return WEXITSTATUS(status);
}

/* The command saves what is whole, and the next start makes rows of it. */
static void expect_repair(const struct left *left, const struct bytes *damaged, size_t true_ends,
                          size_t interrupted)
{
    AR_AUTO_FREE char *aside = daemon_path(left->daemon, "journal/journal.damaged-1");
    AR_AUTO_FREE char *checked = NULL, *repaired = NULL, *again = NULL;
    ck_assert_int_eq(run_option(left, "--check-journal", &checked), 1);
    ck_assert_msg(strstr(checked, "\ndamaged\n") != NULL, "%s", checked);
    ck_assert_int_eq(run_option(left, "--repair-journal", &repaired), 0);
    ck_assert_msg(strstr(repaired, aside) != NULL, "%s", repaired);
    ck_assert_msg(strstr(repaired, "bytes were dropped") != NULL, "%s", repaired);
    struct bytes kept = read_bytes(aside);
    ck_assert_uint_eq(kept.length, damaged->length);
    ck_assert_mem_eq(kept.data, damaged->data, kept.length);
    free(kept.data);
    ck_assert_int_eq(run_option(left, "--check-journal", &again), 0);
    fresh_ledger(left);
    expect_rows(left, true_ends, interrupted);
    ck_assert_int_eq(unlink(aside), 0);
}

/* ---- the tests ---------------------------------------------------------------------------------- */

START_TEST(kept_records_survive_the_end_of_the_daemon)
{
    struct left left;
    leave_records(&left, 3);
    daemon_start_again(left.daemon); /* the ledger is still away */
    daemon_kill9(left.daemon);
    daemon_start_again(left.daemon);
    ck_assert_int_eq(rename(left.away, left.ledger), 0);
    struct rows rows = rows_wait(daemon_ledger(left.daemon), 3, WAIT_MS);
    for (size_t i = 0; i < rows.count; i++)
        ck_assert(rows.items[i]->late);
    rows_free(&rows);
    ck_assert_int_eq(daemon_terminate(left.daemon), 0);
    expect_rows(&left, 3, 0);
    free_left(&left);
}
END_TEST

/* The last frame is a kept record that was being written: its run is told by its intent. */
START_TEST(a_torn_tail_is_cut_off)
{
    struct left left;
    leave_records(&left, 2);
    size_t frame = frame_of(&left, JOURNAL_KEPT, 1);
    size_t at = left.at[frame], size = left.at[frame + 1] - at;
    const size_t cuts[] = {0,
                           1,
                           4,
                           8,
                           12,
                           16,
                           JOURNAL_HEADER_BYTES - 1,
                           JOURNAL_HEADER_BYTES,
                           JOURNAL_HEADER_BYTES + 1,
                           size / 2,
                           size - 1};
    for (size_t i = 0; i < AR_COUNT(cuts); i++)
        expect_two_rows(&left, left.bytes.data, at + cuts[i], 1);
    expect_two_rows(&left, left.bytes.data, at + size, 0);
    struct bytes longer = copy_bytes(&left.bytes, 4096);
    expect_two_rows(&left, longer.data, longer.length + 1, 0);
    expect_two_rows(&left, longer.data, longer.length + 4096, 0);
    memset(longer.data + longer.length, 0xa7, 4096);
    expect_two_rows(&left, longer.data, longer.length + 777, 0);
    free(longer.data);
    free_left(&left);
}
END_TEST

/* A bit in a length, a checksum, a payload... of a frame that was acknowledged. */
START_TEST(damage_in_the_middle_stops_the_start)
{
    static const size_t places[] = {0, 3, 4, 8, 12, 16, 24, JOURNAL_HEADER_BYTES + 9};
    struct left left;
    leave_records(&left, 2);
    size_t place = left.at[frame_of(&left, JOURNAL_INTENT, 1)];
    for (size_t i = 0; i < AR_COUNT(places); i++) {
        struct bytes damaged = copy_bytes(&left.bytes, 0);
        damaged.data[place + places[i]] ^= 1;
        expect_no_start(&left, &damaged, place);
        if (i == 3 || i == AR_COUNT(places) - 1)
            expect_repair(&left, &damaged, 2, 0); /* its record is kept behind it */
        free(damaged.data);
    }
    place = left.at[frame_of(&left, JOURNAL_KEPT, 0)];
    struct bytes damaged = copy_bytes(&left.bytes, 0);
    damaged.data[place + 40] ^= 1;
    expect_no_start(&left, &damaged, place);
    expect_repair(&left, &damaged, 1, 1); /* its intent is before it */
    free(damaged.data);
    free_left(&left);
}
END_TEST

START_TEST(a_journal_that_somebody_went_on_in)
{
    struct left left;
    leave_records(&left, 2);
    size_t first = frame_of(&left, JOURNAL_KEPT, 0), last = frame_of(&left, JOURNAL_KEPT, 1);
    size_t torn = left.at[last] + 17, size = left.at[first + 1] - left.at[first];
    struct bytes damaged = copy_bytes(&left.bytes, 2 * size);
    for (int i = 0; i < 2; i++)
        memcpy(damaged.data + torn + (size_t)i * size, left.bytes.data + left.at[first], size);
    damaged.length = torn + 2 * size;
    expect_no_start(&left, &damaged, left.at[last]);
    expect_repair(&left, &damaged, 1, 1);
    free(damaged.data);
    free_left(&left);
}
END_TEST

/* A part that is missing, a frame of another version, an empty file, none. */
START_TEST(a_journal_that_has_lost_something)
{
    struct left left;
    leave_records(&left, 2);
    size_t intent = frame_of(&left, JOURNAL_INTENT, 1);
    struct bytes damaged = copy_bytes(&left.bytes, 0);
    size_t at = left.at[intent], gap = left.at[intent + 1] - at;
    memmove(damaged.data + at, damaged.data + at + gap, damaged.length - at - gap);
    damaged.length -= gap;
    expect_no_start(&left, &damaged, at);
    expect_repair(&left, &damaged, 2, 0);
    free(damaged.data);

    damaged = copy_bytes(&left.bytes, 0);
    damaged.data[at + 3] = 2;
    expect_no_start(&left, &damaged, at);
    expect_repair(&left, &damaged, 2, 0);
    free(damaged.data);

    for (int i = 0; i < 2; i++) {
        AR_AUTO_FREE char *said = NULL;
        ck_assert_int_eq(truncate(left.journal, 0), 0);
        if (i == 1)
            ck_assert_int_eq(unlink(left.journal), 0);
        ck_assert_int_eq(daemon_start_in_vain(left.daemon), 1);
        AR_AUTO_FREE char *log = daemon_read_log(left.daemon);
        ck_assert_msg(strstr(log, "journal/journal is lost") != NULL, "%s", log);
        ck_assert_int_eq(run_option(&left, "--repair-journal", &said), 0);
        fresh_ledger(&left);
        expect_rows(&left, 0, 0);
    }
    free_left(&left);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {
        &kept_records_survive_the_end_of_the_daemon, &a_torn_tail_is_cut_off,
        &damage_in_the_middle_stops_the_start,       &a_journal_that_somebody_went_on_in,
        &a_journal_that_has_lost_something,          NULL,
    };
    return e2e_main("journal damage", tests);
}
