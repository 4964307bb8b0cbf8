/*
 * check_journal_store.c - an intent comes with room for all that its run still has to write: at the
 * size limit and on a full disk intents are refused, and what belongs to one that was taken is not.
 *
 * The full disks are real ones, small ones of their own (skipped, loudly, where none can be mounted).
 */
#include "daemon/journal_store.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define MANY 4096

static char folder[] = "/tmp/auditrun-store-XXXXXX";
static bool mounted;

static void setup(void)
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    mounted = false;
}

static char *path_of(const char *name)
{
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
    return path;
}

static void teardown(void)
{
    static const char *const names[] = {"journal", "journal.new", "lock", "filler"};
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        AR_AUTO_FREE char *path = path_of(names[i]);
        (void)unlink(path);
    }
    if (mounted)
        ck_assert_int_eq(umount(folder), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* False when none can be mounted here. */
static bool mount_disk(const char *kind, const char *options)
{
    mounted = mount(kind, folder, kind, 0, options) == 0;
    if (!mounted)
        (void)fprintf(stderr, "SKIPPED: no %s can be mounted here: %s\n", kind, strerror(errno));
    return mounted;
}

/* Fills the disk up to its last byte; empty() gives it back. */
static void fill(void)
{
    static const char block[4096];
    AR_AUTO_FREE char *path = path_of("filler");
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    size_t size = sizeof block;
    while (size > 0)
        if (write(fd, block, size) < 0)
            size /= 2;
    ck_assert_int_eq(errno, ENOSPC);
}

static void empty(void)
{
    AR_AUTO_FREE char *path = path_of("filler");
    ck_assert_int_eq(unlink(path), 0);
}

static struct journal_store *open_store(int64_t max_bytes)
{
    struct journal_store *store = NULL;
    char message[JOURNAL_MESSAGE_BYTES] = "";
    ck_assert_msg(journal_store_open(folder, max_bytes, &store, message) == 0, "%s", message);
    return store;
}

/* An id, by its number. */
static void number_id(int number, char id[UUID7_TEXT_BYTES])
{
    (void)snprintf(id, UUID7_TEXT_BYTES, "01900000-0000-7000-8000-%012x", number);
}

/* A record as a daemon could have made it; kept: as long as it can become beside its intent. */
static char *record_text(int number, bool kept)
{
    struct record *record = record_new();
    number_id(number, record->run_id);
    record->company = strdup("acme");
    record->actor = strdup("actor-1");
    record->purpose = strdup("a purpose of some length");
    record->client_name = strdup("local");
    record->language = strdup("bash");
    record->grant = strdup("{}");
    record->denials = strdup("[]");
    record->usage = strdup(kept ? "{\"cpu_ms\":9223372036854775807,\"memory_peak_bytes\":"
                                  "9223372036854775807,\"output_bytes\":9223372036854775807,"
                                  "\"processes_peak\":9223372036854775807,\"scratch_bytes\":"
                                  "9223372036854775807,\"wall_us\":9223372036854775807}"
                                : "{}");
    memset(record->code_sha256, 'a', DIGEST_HEX_BYTES - 1);
    record->received_at = record->finished_at = 1700000000000000;
    record->status = kept ? STATUS_FAILED : STATUS_INTERRUPTED;
    record->reason = kept ? REASON_EXIT_NONZERO : REASON_HOST_RESTARTED;
    if (kept) {
        record->exit_code = 255;
        record->started_at = record->recorded_at = 1700000000000000;
        record->seq = INT64_MAX / 4096;
        record->late = true;
        memset(record->prev_hash, 'b', DIGEST_HEX_BYTES - 1);
        memset(record->row_hash, 'c', DIGEST_HEX_BYTES - 1);
        number_id(1, record->writer);
    }
    AR_AUTO_JSON json_t *value = record_to_journal_json(record);
    char *text = value ? json_canonical(value) : NULL;
    ck_assert_ptr_nonnull(text);
    record_free(record);
    return text;
}

static int put(struct journal_store *store, enum journal_type type, int number, const char *text)
{
    struct journal_note note = {.type = type, .text = text, .length = text ? strlen(text) : 0};
    number_id(number, note.id);
    note.since_us = 1700000000000000;
    return journal_store_put(store, &note);
}

static int put_intent(struct journal_store *store, int number)
{
    AR_AUTO_FREE char *text = record_text(number, false);
    return put(store, JOURNAL_INTENT, number, text);
}

static int put_kept(struct journal_store *store, int number)
{
    AR_AUTO_FREE char *text = record_text(number, true);
    return put(store, JOURNAL_KEPT, number, text);
}

/* Intents until one is refused: how many were taken. */
static int put_intents(struct journal_store *store)
{
    int count = 0, rc = 0;
    while (rc == 0 && count < MANY) {
        rc = put_intent(store, count);
        count += rc == 0;
    }
    ck_assert_int_eq(rc, -ENOSPC);
    return count;
}

static struct journal_figures figures(const struct journal_store *store)
{
    struct journal_figures figures;
    journal_store_figures(store, &figures);
    return figures;
}

/* What a kept record adds stays below what is reserved for it. */
START_TEST(test_growth)
{
    AR_AUTO_FREE char *intent = record_text(1, false);
    AR_AUTO_FREE char *kept = record_text(1, true);
    ck_assert_uint_lt(strlen(kept), strlen(intent) + JOURNAL_GROWTH_BYTES / 2);
}
END_TEST

/* All that were taken can have their record kept, and be settled, whatever the disk says. */
static void expect_room_for_all(struct journal_store *store, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(put_kept(store, i), 0);
    ck_assert_int_eq(journal_store_sync(store), 0);
    ck_assert_int_eq(figures(store).kept, count);
    ck_assert_int_eq(figures(store).intents, 0);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(put(store, JOURNAL_SETTLED, i, NULL), 0);
    journal_store_tidy(store);
    ck_assert_uint_eq(journal_entries_count(&journal_store_state(store)->entries), 0);
}

START_TEST(test_the_size_limit)
{
    struct journal_store *store = open_store(1 << 20);
    int count = put_intents(store);
    ck_assert_int_gt(count, 100);
    ck_assert(figures(store).full);
    int refused = 0; /* of runs that never were dispatched: these have a room of their own */
    while (refused < MANY && put_kept(store, MANY + 1 + refused) == 0)
        refused++;
    ck_assert_int_gt(refused, 10);
    ck_assert_int_lt(refused, count);
    int events = 0; /* a few are small enough for what a record does not fit into */
    while (events < 100 && put(store, JOURNAL_EVENT, 3 * MANY + events, "{}") == 0)
        events++;
    ck_assert_int_lt(events, 100);
    for (int i = 0; i < events; i++)
        ck_assert_int_eq(put(store, JOURNAL_SETTLED, 3 * MANY + i, NULL), 0);
    for (int i = 0; i < refused; i++)
        ck_assert_int_eq(put(store, JOURNAL_SETTLED, MANY + 1 + i, NULL), 0);
    expect_room_for_all(store, count);
    ck_assert_int_le(figures(store).bytes, 1 << 20);
    ck_assert_int_ge(put_intents(store), count - 1); /* written anew, with nothing in it */
    ck_assert(figures(store).full);
    journal_store_close(store);
}
END_TEST

START_TEST(test_a_full_disk)
{
    static const char *const sizes[] = {"size=192k", "size=1m", "size=3m"};
    for (size_t i = 0; i < AR_COUNT(sizes); i++) {
        if (!mount_disk("tmpfs", sizes[i]))
            return;
        struct journal_store *store = open_store(1 << 30);
        ck_assert_int_eq(put_intent(store, 0), 0);
        fill();
        int count = put_intents(store); /* what was allocated ahead takes some */
        fill();
        ck_assert_int_eq(put_intent(store, count), -ENOSPC);
        expect_room_for_all(store, count);
        ck_assert_int_eq(put_kept(store, MANY + 1), 0); /* written anew in the room kept for that */
        empty();
        ck_assert_int_eq(put_intent(store, MANY + 2), 0);
        journal_store_close(store);
        AR_AUTO_FREE char *journal = path_of("journal");
        AR_AUTO_FREE char *lock = path_of("lock");
        (void)unlink(journal);
        (void)unlink(lock);
        ck_assert_int_eq(umount(folder), 0);
        mounted = false;
    }
}
END_TEST

/* The journal alone fills the disk: when it is settled, it has to come back by itself. */
START_TEST(test_a_disk_that_the_journal_fills)
{
    if (!mount_disk("tmpfs", "size=1m"))
        return;
    struct journal_store *store = open_store(1 << 30);
    for (int round = 0; round < 3; round++) {
        int count = put_intents(store);
        ck_assert_int_gt(count, 50);
        expect_room_for_all(store, count);
    }
    journal_store_close(store);
}
END_TEST

START_TEST(test_a_start_on_a_full_disk)
{
    if (!mount_disk("tmpfs", "size=256k"))
        return;
    struct journal_store *store = open_store(1 << 30);
    ck_assert_int_eq(put_intent(store, 1), 0);
    ck_assert_int_eq(put_kept(store, 2), 0);
    journal_store_close(store);
    fill();
    store = open_store(1 << 30);
    ck_assert_int_eq(figures(store).intents, 1);
    ck_assert_int_eq(figures(store).kept, 1);
    ck_assert_int_eq(put_intent(store, 3), -ENOSPC);
    empty();
    ck_assert_int_eq(put_intent(store, 3), 0);
    journal_store_close(store);
}
END_TEST

/* ramfs has no fallocate. */
START_TEST(test_a_disk_that_cannot_allocate)
{
    if (!mount_disk("ramfs", ""))
        return;
    struct journal_store *store = open_store(1 << 30);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(put_intent(store, i), 0);
    AR_AUTO_FREE char *path = path_of("journal");
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_gt(status.st_size, figures(store).bytes + 10 * 1000);
    ck_assert_int_eq(put_kept(store, 3), 0);
    AR_AUTO_FREE char *left = path_of("filler"); /* as a daemon that was killed leaves it */
    ck_assert_int_eq(link(path, left), 0);
    journal_store_close(store);
    ck_assert_int_eq(truncate(left, status.st_size), 0);
    ck_assert_int_eq(rename(left, path), 0);
    store = open_store(1 << 30);
    ck_assert_int_eq(figures(store).intents, 9);
    ck_assert_int_eq(figures(store).kept, 1);
    journal_store_close(store);
}
END_TEST

/* Only what is open comes over: through a rewrite in the middle, and a start. */
START_TEST(test_what_is_open)
{
    struct journal_note head = {.type = JOURNAL_HEAD};
    struct journal_note writer = {.type = JOURNAL_WRITER};
    char text[JOURNAL_HEAD_BYTES];
    struct journal_store *store = open_store(1 << 20);
    journal_state_head_text(77, digest_zero, text);
    number_id(9, writer.id);
    number_id(9, head.id);
    head.text = text;
    head.length = strlen(text);
    ck_assert_int_eq(journal_store_put(store, &writer), 0);
    ck_assert_int_eq(journal_store_put(store, &head), 0);
    ck_assert_int_eq(put(store, JOURNAL_EVENT, 10, "{\"kind\":\"started\"}"), 0);
    ck_assert_int_eq(put_intent(store, 11), 0);
    for (int i = 12; i < 2000; i++) { /* several times the size at which it is written anew */
        ck_assert_int_eq(put_intent(store, i), 0);
        ck_assert_int_eq(put(store, JOURNAL_SETTLED, i, NULL), 0);
        journal_store_tidy(store);
    }
    ck_assert_int_lt(figures(store).bytes, 300 << 10);
    journal_store_close(store);
    store = open_store(1 << 20);
    const struct journal_state *state = journal_store_state(store);
    ck_assert_int_eq(figures(store).intents, 1);
    ck_assert_int_eq(figures(store).events, 1);
    ck_assert_int_eq(state->head_seq, 77);
    ck_assert_str_eq(state->head_hash, digest_zero);
    ck_assert_str_eq(state->writer, writer.id);
    number_id(1999, head.id);
    ck_assert_str_eq(state->last_id, head.id);
    number_id(8, writer.id);
    ck_assert_int_eq(journal_store_put(store, &writer), 0); /* the head was the other's */
    ck_assert_int_eq(state->head_seq, 0);
    ck_assert_int_eq(journal_store_put(store, &head), 0); /* and this one comes too late */
    ck_assert_int_eq(state->head_seq, 0);
    ck_assert_int_eq(put(store, JOURNAL_SETTLED, 10, NULL), 0);
    ck_assert_int_eq(figures(store).events, 0);
    journal_store_close(store);
}
END_TEST

int main(void)
{
    static const TTest *const *tests[] = {
        &test_growth,
        &test_the_size_limit,
        &test_a_full_disk,
        &test_a_disk_that_the_journal_fills,
        &test_a_start_on_a_full_disk,
        &test_a_disk_that_cannot_allocate,
        &test_what_is_open,
    };
    Suite *suite = suite_create("journal_store");
    TCase *tcase = tcase_create("journal_store");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
