/*
 * check_journal_file.c - what was synced is never lost, a torn tail is cut off before anything is
 * written behind it, and damage anywhere else is found and left alone.
 */
#include "daemon/journal_file.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

static char folder[] = "/tmp/auditrun-journal-XXXXXX";
static char file_path[64];

struct seen {
    size_t count;
    char payloads[16][32];
    enum journal_type types[16];
};

static int note(void *context, enum journal_type type, const char *payload, size_t length)
{
    struct seen *seen = context;
    ck_assert_uint_lt(seen->count, 16);
    ck_assert_uint_lt(length, 32);
    memcpy(seen->payloads[seen->count], payload, length);
    seen->payloads[seen->count][length] = 0;
    seen->types[seen->count++] = type;
    return 0;
}

static void setup(void)
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(file_path, sizeof file_path, "%s/journal", folder);
}

static void teardown(void)
{
    char path[80];
    static const char *const names[] = {"journal", "journal.new", "lock"};
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

static int open_journal(struct seen *seen, struct journal_file **file, off_t *offset)
{
    *seen = (struct seen){0};
    return journal_file_open(folder, note, seen, file, offset);
}

/* Three frames; the offsets of their ends. */
static void write_three(off_t ends[3])
{
    static const char *const payloads[] = {"first", "", "the third one"};
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(
            journal_file_append(file, JOURNAL_INTENT, payloads[i], strlen(payloads[i])), 0);
        ends[i] = journal_file_size(file);
    }
    ck_assert_int_eq(journal_file_sync(file), 0);
    journal_file_close(file);
}

static size_t count_frames(void)
{
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    journal_file_close(file);
    return seen.count;
}

START_TEST(test_round_trip)
{
    off_t ends[3];
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    write_three(ends);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_str_eq(seen.payloads[0], "first");
    ck_assert_str_eq(seen.payloads[2], "the third one");
    ck_assert_int_eq(seen.types[1], JOURNAL_INTENT);
    journal_file_close(file);
}
END_TEST

START_TEST(test_torn_tail_at_every_byte)
{
    off_t ends[3];
    write_three(ends);
    for (off_t length = ends[2]; length >= 0; length--) {
        struct journal_file *file;
        struct seen seen;
        off_t offset;
        size_t whole = (length >= ends[0]) + (length >= ends[1]) + (length >= ends[2]);
        ck_assert_int_eq(truncate(file_path, length), 0);
        ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
        ck_assert_uint_eq(seen.count, whole);
        /* What comes after the cut is there at the next start, and the start after that. */
        ck_assert_int_eq(journal_file_append(file, JOURNAL_KEPT, "new", 3), 0);
        journal_file_close(file);
        ck_assert_uint_eq(count_frames(), whole + 1);
        ck_assert_uint_eq(count_frames(), whole + 1);
        ck_assert_int_eq(unlink(file_path), 0);
        write_three(ends);
    }
}
END_TEST

static void flip(off_t at)
{
    unsigned char byte;
    int fd = open(file_path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

START_TEST(test_damage_in_the_middle)
{
    off_t ends[3];
    struct stat before, after;
    write_three(ends);
    for (off_t at = ends[0]; at < ends[1]; at++) { /* every byte of the second frame */
        struct journal_file *file;
        struct seen seen;
        off_t offset;
        flip(at);
        ck_assert_int_eq(stat(file_path, &before), 0);
        ck_assert_int_eq(open_journal(&seen, &file, &offset), -EUCLEAN);
        ck_assert_int_eq(offset, ends[0]);
        ck_assert_int_eq(stat(file_path, &after), 0);
        ck_assert_int_eq(before.st_size, after.st_size);
        flip(at);
    }
    ck_assert_uint_eq(count_frames(), 3);
}
END_TEST

START_TEST(test_zeros_and_rubbish_behind_the_end)
{
    off_t ends[3];
    static const size_t sizes[] = {1, 19, 20, 21, 4096};
    static const char rubbish[] = "ARJ and then nothing that could be a frame";
    for (size_t i = 0; i < AR_COUNT(sizes); i++) {
        write_three(ends);
        ck_assert_int_eq(truncate(file_path, ends[2] + (off_t)sizes[i]), 0);
        ck_assert_uint_eq(count_frames(), 3);
        ck_assert_int_eq(unlink(file_path), 0);
    }
    write_three(ends);
    int fd = open(file_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ck_assert_int_eq(write(fd, rubbish + 4, sizeof rubbish - 4), sizeof rubbish - 4);
    (void)close(fd);
    ck_assert_uint_eq(count_frames(), 3);
}
END_TEST

START_TEST(test_frame_of_another_version)
{
    off_t ends[3];
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    write_three(ends);
    int fd = open(file_path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, "\2", 1, ends[1] + 3), 1); /* the version byte of the last frame */
    (void)close(fd);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), -EUCLEAN);
    ck_assert_int_eq(offset, ends[1]);
}
END_TEST

START_TEST(test_one_daemon_at_a_time)
{
    struct journal_file *first, *second;
    struct seen seen;
    off_t offset;
    ck_assert_int_eq(open_journal(&seen, &first, &offset), 0);
    ck_assert_int_eq(open_journal(&seen, &second, &offset), -EWOULDBLOCK);
    journal_file_close(first);
    ck_assert_int_eq(open_journal(&seen, &second, &offset), 0);
    journal_file_close(second);
}
END_TEST

static int append_one(void *context, struct journal_file *file)
{
    return journal_file_append(file, JOURNAL_KEPT, context, strlen(context));
}

static int append_nothing(void *context, struct journal_file *file)
{
    (void)context;
    (void)file;
    return -ENOSPC;
}

START_TEST(test_rewrite)
{
    off_t ends[3];
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    char kept[] = "kept";
    write_three(ends);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_int_eq(journal_file_rewrite(file, append_nothing, NULL), -ENOSPC);
    ck_assert_int_eq(journal_file_append(file, JOURNAL_INTENT, "still the old one", 17), 0);
    journal_file_close(file);
    ck_assert_uint_eq(count_frames(), 4);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_int_eq(journal_file_rewrite(file, append_one, kept), 0);
    ck_assert_int_eq(journal_file_append(file, JOURNAL_INTENT, "behind it", 9), 0);
    journal_file_close(file);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_str_eq(seen.payloads[0], "kept");
    ck_assert_str_eq(seen.payloads[1], "behind it");
    journal_file_close(file);
}
END_TEST

int main(void)
{
    static const TTest *const *tests[] = {
        &test_round_trip,
        &test_torn_tail_at_every_byte,
        &test_damage_in_the_middle,
        &test_zeros_and_rubbish_behind_the_end,
        &test_frame_of_another_version,
        &test_one_daemon_at_a_time,
        &test_rewrite,
    };
    Suite *suite = suite_create("journal_file");
    TCase *tcase = tcase_create("journal_file");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
