/*
 * check_journal_repair.c - what an operator is told of a journal, and that a repair saves everything
 * that is whole, keeps the damaged file, and says what it left out.
 */
#include "daemon/journal_repair.h"
#include "daemon/journal_store.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_BYTES 65536
#define RUNS       5

static char folder[] = "/tmp/auditrun-repair-XXXXXX";

/* A journal as it is on the disk. Frame 0 is what every journal begins with. */
struct image {
    char bytes[FILE_BYTES];
    size_t length;
    size_t at[64], count;
};

static char *path_of(const char *name)
{
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
    return path;
}

static void setup(void)
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    static const char *const names[] = {"journal", "journal.new", "lock", "journal.damaged-1",
                                        "journal.damaged-2"};
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        AR_AUTO_FREE char *path = path_of(names[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

static void read_image(const char *name, struct image *image)
{
    AR_AUTO_FREE char *path = path_of(name);
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ssize_t n = read(fd, image->bytes, sizeof image->bytes);
    ck_assert_int_ge(n, 0);
    struct journal_walk walk = {.data = (const unsigned char *)image->bytes, .length = (size_t)n};
    image->length = (size_t)n;
    image->count = 0;
    while (journal_frame_next(&walk) == JOURNAL_PIECE_FRAME)
        image->at[image->count++] = walk.at;
}

static void write_image(const struct image *image)
{
    AR_AUTO_FREE char *path = path_of("journal");
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, image->bytes, image->length), (ssize_t)image->length);
}

static char *record_text(int number, char id[UUID7_TEXT_BYTES])
{
    struct record *record = record_new();
    (void)snprintf(id, UUID7_TEXT_BYTES, "01900000-0000-7000-8000-%012x", number);
    memcpy(record->run_id, id, UUID7_TEXT_BYTES);
    record->company = strdup("acme");
    record->actor = strdup("actor-1");
    record->purpose = strdup("case");
    record->client_name = strdup("local");
    record->language = strdup("bash");
    record->grant = strdup("{}");
    record->denials = strdup("[]");
    record->usage = strdup("{}");
    memset(record->code_sha256, 'a', DIGEST_HEX_BYTES - 1);
    record->received_at = record->finished_at = 1700000000000000;
    record->status = STATUS_INTERRUPTED;
    record->reason = REASON_HOST_RESTARTED;
    AR_AUTO_JSON json_t *value = record_to_journal_json(record);
    char *text = value ? json_canonical(value) : NULL;
    ck_assert_ptr_nonnull(text);
    record_free(record);
    return text;
}

/* Five intents as frames FIRST to FIRST + 4; before them what a daemon's start writes. */
enum { FIRST = 2 };

static void make_journal(struct image *image)
{
    struct journal_store *store = NULL;
    char message[JOURNAL_MESSAGE_BYTES];
    struct journal_note writer = {.type = JOURNAL_WRITER,
                                  .id = "01900000-0000-7000-8000-00000000beef"};
    ck_assert_int_eq(journal_store_open(folder, 0, &store, message), 0);
    ck_assert_int_eq(journal_store_put(store, &writer), 0);
    for (int i = 0; i < RUNS; i++) {
        struct journal_note note = {.type = JOURNAL_INTENT};
        AR_AUTO_FREE char *text = record_text(i + 1, note.id);
        note.text = text;
        note.length = strlen(text);
        ck_assert_int_eq(journal_store_put(store, &note), 0);
    }
    journal_store_close(store);
    read_image("journal", image);
    ck_assert_uint_eq(image->count, FIRST + RUNS + 1);
}

/* How many intents the daemon would find; -1: it would not start. */
static int count_open(void)
{
    struct journal_store *store = NULL;
    struct journal_figures figures;
    char message[JOURNAL_MESSAGE_BYTES] = "";
    if (journal_store_open(folder, 0, &store, message) != 0) {
        ck_assert_msg(strstr(message, "--repair-journal") && strstr(message, folder), "%s",
                      message);
        return -1;
    }
    journal_store_figures(store, &figures);
    journal_store_close(store);
    return (int)figures.intents;
}

/* What one of the two says; malloc'd. */
static char *say(int (*task)(const char *, FILE *), int expected)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(out);
    int rc = task(folder, out);
    (void)fclose(out);
    ck_assert_msg(rc == expected, "%d: %s", rc, text);
    return text;
}

static void expect_said(int (*task)(const char *, FILE *), int expected, const char *words)
{
    AR_AUTO_FREE char *text = say(task, expected);
    ck_assert_msg(strstr(text, words) != NULL, "not said: %s\n%s", words, text);
}

/* This journal stops the daemon; the repair leaves so many intents, says these words, and keeps it. */
static void expect_repair(const struct image *damaged, int intents, const char *words)
{
    static struct image kept;
    AR_AUTO_FREE char *aside = path_of("journal.damaged-1");
    write_image(damaged);
    ck_assert_int_eq(count_open(), -1);
    expect_said(journal_repair_check, 1, words);
    read_image("journal", &kept);
    ck_assert_uint_eq(kept.length, damaged->length); /* looking changes nothing */
    expect_said(journal_repair_mend, 0, words);
    read_image("journal.damaged-1", &kept);
    ck_assert_uint_eq(kept.length, damaged->length);
    ck_assert_mem_eq(kept.bytes, damaged->bytes, kept.length);
    expect_said(journal_repair_check, 0, "sound");
    expect_said(journal_repair_check, 0, "1 events"); /* the ledger will tell of the repair */
    ck_assert_int_eq(count_open(), intents);
    ck_assert_int_eq(unlink(aside), 0);
}

static void cut_out(struct image *image, size_t from, size_t to)
{
    memmove(image->bytes + from, image->bytes + to, image->length - to);
    image->length -= to - from;
}

START_TEST(test_sound)
{
    struct image image;
    expect_said(journal_repair_check, 0, "there is none yet");
    make_journal(&image);
    expect_said(journal_repair_check, 0, "open: 5 intents, 0 kept records, 0 events");
    expect_said(journal_repair_check, 0, "writer 01900000-0000-7000-8000-00000000beef");
    expect_said(journal_repair_mend, 0, "nothing to repair");
    image.length -= 3; /* of the mark at the end */
    write_image(&image);
    expect_said(journal_repair_check, 0, "29 bytes of a write that was cut off");
    expect_said(journal_repair_mend, 0, "nothing to repair");
    ck_assert_int_eq(count_open(), RUNS);
}
END_TEST

START_TEST(test_flipped_bits)
{
    static struct image image, damaged;
    static const size_t places[] = {0, 3, 4, 8, 10, 12, 16, 24, 40};
    char words[64];
    make_journal(&image);
    for (size_t i = 0; i < AR_COUNT(places); i++) {
        size_t at = image.at[FIRST + 1], size = image.at[FIRST + 2] - at;
        damaged = image;
        damaged.bytes[at + places[i]] ^= 1;
        (void)snprintf(words, sizeof words, "byte %zu: %zu bytes", at, size);
        expect_repair(&damaged, RUNS - 1, words);
    }
    damaged = image; /* two places, with one between them */
    damaged.bytes[image.at[FIRST] + 50] ^= 4;
    damaged.bytes[image.at[FIRST + 2] + 60] ^= 8;
    (void)snprintf(words, sizeof words, "byte %zu:", image.at[FIRST + 2]);
    expect_repair(&damaged, RUNS - 2, words);
}
END_TEST

START_TEST(test_frames_behind_a_scar)
{
    static struct image image, damaged;
    make_journal(&image);
    damaged = image; /* the fourth is torn, the fifth was written behind the scar */
    cut_out(&damaged, image.at[FIRST + 3] + 30, image.at[FIRST + 4]);
    expect_repair(&damaged, RUNS - 1, "30 bytes: damaged");
    damaged =
        image; /* two in one place: the last two frames once more in the place of the fourth */
    size_t two = image.at[FIRST + 5] - image.at[FIRST + 3];
    damaged.length = image.at[FIRST + 3] + 30;
    memcpy(damaged.bytes + damaged.length, image.bytes + image.at[FIRST + 3], two);
    damaged.length += two;
    expect_repair(&damaged, RUNS, "a whole frame in a place that is not its own");
}
END_TEST

START_TEST(test_missing_parts)
{
    static struct image image, damaged;
    make_journal(&image);
    damaged = image;
    cut_out(&damaged, image.at[FIRST + 1], image.at[FIRST + 3]);
    expect_repair(&damaged, RUNS - 2, "a place that is not its own");
    damaged.length = 0;
    expect_repair(&damaged, 0, "lost: it is empty");
    AR_AUTO_FREE char *path = path_of("journal");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(count_open(), -1);
    expect_said(journal_repair_check, 1, "lost: it is gone");
    expect_said(journal_repair_mend, 0, "repaired");
    ck_assert_int_eq(count_open(), 0);
}
END_TEST

START_TEST(test_another_version)
{
    static struct image image, damaged;
    make_journal(&image);
    damaged = image;
    damaged.bytes[image.at[FIRST + 4] + 3] = 2;
    expect_repair(&damaged, RUNS - 1, "of another version of auditrund");
}
END_TEST

/* A frame that is whole, and no daemon writes: it would stop every start. */
START_TEST(test_nonsense)
{
    static struct image image, damaged;
    static const char nonsense[] = "{\"run_id\": 7}";
    unsigned char header[JOURNAL_HEADER_BYTES];
    make_journal(&image);
    damaged = image;
    struct journal_frame frame = {JOURNAL_KEPT, nonsense, strlen(nonsense), image.length, 0};
    ck_assert_int_eq(journal_frame_build(&frame, header), 0);
    memcpy(damaged.bytes + image.length, header, sizeof header);
    memcpy(damaged.bytes + image.length + sizeof header, nonsense, frame.length);
    damaged.length += sizeof header + frame.length;
    expect_repair(&damaged, RUNS, "a frame that says nothing known");
}
END_TEST

/* Each damaged journal is kept; nobody looks while a daemon has it. */
START_TEST(test_names_and_lock)
{
    static struct image image, first;
    struct journal_store *store = NULL;
    char message[JOURNAL_MESSAGE_BYTES];
    make_journal(&image);
    image.bytes[image.at[FIRST] + 50] ^= 4;
    for (int i = 0; i < 2; i++) {
        write_image(&image);
        free(say(journal_repair_mend, 0));
        image.bytes[image.at[FIRST] + 51] ^= 4;
    }
    read_image("journal.damaged-1", &first);
    read_image("journal.damaged-2", &image);
    ck_assert_mem_ne(first.bytes, image.bytes, first.length);
    ck_assert_int_eq(journal_store_open(folder, 0, &store, message), 0);
    expect_said(journal_repair_check, 1, "a daemon uses it");
    expect_said(journal_repair_mend, 1, "a daemon uses it");
    journal_store_close(store);
}
END_TEST

int main(void)
{
    static const TTest *const *tests[] = {
        &test_sound,           &test_flipped_bits, &test_frames_behind_a_scar, &test_missing_parts,
        &test_another_version, &test_nonsense,     &test_names_and_lock,
    };
    Suite *suite = suite_create("journal_repair");
    TCase *tcase = tcase_create("journal_repair");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
