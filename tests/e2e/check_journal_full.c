/*
 * check_journal_full.c - the journal's disk is full, or its size limit is reached.
 *
 * Then no code runs that could not be recorded: runs are refused, and recorded where the ledger takes
 * them. Runs that were dispatched before have their record kept all the same, with the ledger away and
 * not a byte free. When there is room again, service goes on by itself.
 *
 * The disk is a small one of its own, in a mount namespace of the test, and filled to its last byte.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define WAIT_MS 20000

static const char *const well[] = {"well", NULL};

struct disk {
    struct daemon *daemon;
    char *filler, *ledger, *away; /* paths */
};

/* Fills the disk up to its last byte. */
static void fill(const struct disk *disk)
{
    static const char block[4096];
    size_t size = sizeof block;
    AR_AUTO_CLOSE int fd = open(disk->filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    while (size > 0)
        if (write(fd, block, size) < 0)
            size /= 2;
    ck_assert_int_eq(errno, ENOSPC);
}

static void make_room(const struct disk *disk)
{
    ck_assert_int_eq(unlink(disk->filler), 0);
}

static void prepare(struct disk *disk, const char *more)
{
    AR_AUTO_FREE char *config = fake_config(well, 48, more);
    struct daemon_options options = {.config = config};
    disk->daemon = daemon_prepare(&options);
    disk->filler = daemon_path(disk->daemon, "journal/filler");
    disk->ledger = daemon_path(disk->daemon, "ledger.db");
    disk->away = daemon_path(disk->daemon, "ledger.away");
}

/* False when nothing can be mounted here. The mount goes with the test, however that ends. */
static bool mount_disk(const struct disk *disk)
{
    bool mounted = unshare(CLONE_NEWNS) == 0 &&
                   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                   mount("tmpfs", daemon_journal(disk->daemon), "tmpfs", 0, "size=512k") == 0;
    if (!mounted)
        (void)fprintf(stderr, "SKIPPED: no file system can be mounted here: %s\n", strerror(errno));
    return mounted;
}

static void finish(struct disk *disk)
{
    if (daemon_pid(disk->daemon))
        ck_assert_int_eq(daemon_terminate(disk->daemon), 0);
    (void)umount(daemon_journal(disk->daemon));
    daemon_free(disk->daemon);
    free(disk->filler);
    free(disk->ledger);
    free(disk->away);
}

/* More runs at once than there is room for (64K are kept for a rewrite): those that are refused did not run, those that ran
 * have all. (One after the other would go on: a journal in which nothing is open lives in its room.) */
static void expect_refusals(const struct disk *disk, struct client *client)
{
    enum { AT_ONCE = 64 };
    size_t refused = 0;
    for (json_int_t id = 100; id < 100 + AT_ONCE; id++)
        client_request(client, id, "run", fake_params("well", "print dispatched\nsleep 100", NULL));
    for (json_int_t id = 100; id < 100 + AT_ONCE; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        bool is_refused =
            strcmp(json_string_value(json_object_get(result, "status")), "refused") == 0;
        client_expect(result, is_refused ? "refused" : "succeeded",
                      is_refused ? "overloaded" : "exit_zero");
        ck_assert_str_eq(e2e_stdout(result), is_refused ? "" : "dispatched");
        refused += is_refused;
        if (is_refused)
            rows_expect_result(daemon_ledger(disk->daemon), result);
    }
    ck_assert_uint_gt(refused, 0);
}

static void expect_service(const struct disk *disk, struct client *client)
{
    fake_expect(disk->daemon, client, "well", "print x", NULL, "succeeded", "exit_zero");
}

/* The run's own end, in an audit failure; and whether the record is safe. */
static void expect_failure(const json_t *error, const char *reason, bool kept)
{
    client_expect_error(error, -32001, NULL, NULL);
    const json_t *data = json_object_get(error, "data");
    AR_AUTO_FREE char *text = json_dumps(error, JSON_COMPACT);
    ck_assert_str_eq(json_string_value(json_object_get(data, "terminal_reason")), reason);
    ck_assert_msg(json_is_true(json_object_get(data, "kept")) == kept, "%s", text);
}

START_TEST(no_run_is_dispatched)
{
    struct disk disk;
    prepare(&disk, NULL);
    if (mount_disk(&disk)) {
        daemon_start_again(disk.daemon);
        struct client *client = daemon_connect(disk.daemon);
        expect_service(&disk, client);
        for (int i = 0; i < 2; i++) {
            fill(&disk);
            expect_refusals(&disk, client);
            make_room(&disk);
            expect_service(&disk, client);
        }
        fill(&disk); /* and a daemon that is started there does the same */
        expect_refusals(&disk, client);
        client_disconnect(client);
        ck_assert_int_eq(daemon_terminate(disk.daemon), 0);
        fill(&disk);
        daemon_start_again(disk.daemon);
        client = daemon_connect(disk.daemon);
        expect_refusals(&disk, client);
        make_room(&disk);
        expect_service(&disk, client);
        client_disconnect(client);
    }
    finish(&disk);
}
END_TEST

/* Eight runs are running; then there is no byte left, and no ledger. */
static void let_eight_end(const struct disk *disk, struct client *client)
{
    for (json_int_t id = 1; id <= 8; id++)
        client_request(client, id, "run",
                       fake_params("well", "print up\nsleep 500\nexit 9", "{'stream': true}"));
    for (int i = 0; i < 8; i++) {
        AR_AUTO_JSON json_t *message = client_next(client);
        ck_assert_str_eq(json_string_value(json_object_get(message, "method")), "output");
    }
    fill(disk);
    ck_assert_int_eq(rename(disk->ledger, disk->away), 0);
    for (json_int_t id = 1; id <= 8; id++) {
        AR_AUTO_JSON json_t *answer = client_answer(client, id);
        expect_failure(json_object_get(answer, "error"), "exit_nonzero", true);
    }
}

/* Until not even the record of a refusal finds room, which the caller is told. Runs that ran always have
 * theirs. How many records were kept. */
static size_t use_up_the_room(struct client *client)
{
    for (size_t kept = 0; kept < 1000; kept++) {
        AR_AUTO_JSON json_t *error =
            client_fail(client, "run", fake_params("well", "exit 9", NULL));
        const json_t *data = json_object_get(error, "data");
        const char *reason = json_string_value(json_object_get(data, "terminal_reason"));
        if (strcmp(reason, "exit_nonzero") == 0)
            expect_failure(error, "exit_nonzero", true);
        else if (!json_is_true(json_object_get(data, "kept")))
            return kept;
        else
            expect_failure(error, "overloaded", true);
    }
    ck_abort_msg("there is always room");
}

START_TEST(what_was_dispatched_is_kept)
{
    struct disk disk;
    prepare(&disk, "[ledger]\ndeadline = 300ms\nwhen_down = keep\n");
    if (mount_disk(&disk)) {
        daemon_start_again(disk.daemon);
        struct client *client = daemon_connect(disk.daemon);
        expect_service(&disk, client);
        let_eight_end(&disk, client);
        size_t kept = 8 + use_up_the_room(client);
        daemon_kill9(disk.daemon);
        client_disconnect(client);

        ck_assert_int_eq(rename(disk.away, disk.ledger), 0);
        daemon_start_again(disk.daemon); /* with the disk still full */
        struct rows rows = rows_wait(daemon_ledger(disk.daemon), 1 + kept, WAIT_MS);
        ck_assert_uint_ge(rows_count(&rows, STATUS_FAILED, REASON_EXIT_NONZERO), 8);
        rows_free(&rows);
        client = daemon_connect(disk.daemon);
        make_room(&disk);
        expect_service(&disk, client);
        rows_expect(daemon_ledger(disk.daemon), 2 + kept);
        client_disconnect(client);
    }
    finish(&disk);
}
END_TEST

/* At the limit the daemon does as on a full disk, until the ledger has taken what waits. */
START_TEST(the_size_limit)
{
    struct disk disk;
    prepare(&disk, "[ledger]\ndeadline = 300ms\nwhen_down = keep\n[journal]\nmax_size = 1M\n");
    daemon_start_again(disk.daemon);
    struct client *client = daemon_connect(disk.daemon);
    ck_assert_int_eq(rename(disk.ledger, disk.away), 0);
    size_t runs = 0;
    for (bool limit = false; !limit; runs++) {
        ck_assert_uint_lt(runs, 4000);
        AR_AUTO_JSON json_t *error =
            client_fail(client, "run", fake_params("well", "exit 9", NULL));
        const json_t *data = json_object_get(error, "data");
        limit = strcmp(json_string_value(json_object_get(data, "terminal_reason")),
                       "exit_nonzero") != 0;
        expect_failure(error, limit ? "overloaded" : "exit_nonzero", true);
    }
    AR_AUTO_FREE char *journal = daemon_path(disk.daemon, "journal/journal");
    struct stat status;
    ck_assert_int_eq(stat(journal, &status), 0);
    ck_assert_int_le(status.st_size, 1 << 20);
    ck_assert_uint_gt(runs, 200);
    ck_assert_int_eq(rename(disk.away, disk.ledger), 0);
    struct rows rows = rows_wait(daemon_ledger(disk.daemon), runs, WAIT_MS);
    ck_assert_uint_eq(rows_count(&rows, STATUS_FAILED, REASON_EXIT_NONZERO), runs - 1);
    rows_free(&rows);
    expect_service(&disk, client);
    rows_expect(daemon_ledger(disk.daemon), runs + 1);
    ck_assert_int_eq(stat(journal, &status), 0);
    ck_assert_int_lt(status.st_size, 1 << 19); /* written anew */
    client_disconnect(client);
    finish(&disk);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {
        &no_run_is_dispatched,
        &what_was_dispatched_is_kept,
        &the_size_limit,
        NULL,
    };
    return e2e_main("journal full", tests);
}
