/*
 * check_journal_file.c - what was synced is never lost, a torn tail is cut off before anything is
 * written behind it, and damage anywhere else is found and left alone.
 */
#include "daemon/journal_file.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_BYTES 8192

static char folder[] = "/tmp/auditrun-journal-XXXXXX";
static char file_path[64], lock_path[64], new_path[64];

struct seen {
    size_t count;
    char payloads[16][32];
    enum journal_type types[16];
};

/* The bytes of a journal, and where its frames begin; the last is a mark. */
struct image {
    char bytes[FILE_BYTES];
    size_t length;
    size_t at[16], count;
};

static int note(void *context, const struct journal_frame *frame)
{
    struct seen *seen = context;
    ck_assert_uint_lt(seen->count, 16);
    ck_assert_uint_lt(frame->length, 32);
    memcpy(seen->payloads[seen->count], frame->payload, frame->length);
    seen->payloads[seen->count][frame->length] = 0;
    seen->types[seen->count++] = frame->type;
    return 0;
}

static void setup(void)
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(file_path, sizeof file_path, "%s/journal", folder);
    (void)snprintf(lock_path, sizeof lock_path, "%s/lock", folder);
    (void)snprintf(new_path, sizeof new_path, "%s/journal.new", folder);
}

static void teardown(void)
{
    (void)unlink(file_path);
    (void)unlink(lock_path);
    (void)unlink(new_path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static int open_journal(struct seen *seen, struct journal_file **file, off_t *offset)
{
    *seen = (struct seen){0};
    return journal_file_open(folder, note, seen, file, offset);
}

static void append(struct journal_file *file, const char *payload)
{
    ck_assert_int_eq(journal_file_append(file, JOURNAL_INTENT, payload, strlen(payload)), 0);
}

static void read_image(struct image *image)
{
    struct journal_walk walk = {.data = (const unsigned char *)image->bytes};
    AR_AUTO_CLOSE int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, image->bytes, sizeof image->bytes);
    ck_assert_int_gt(n, 0);
    image->length = walk.length = (size_t)n;
    image->count = 0;
    while (journal_frame_next(&walk) == JOURNAL_PIECE_FRAME)
        image->at[image->count++] = walk.at;
}

static void write_image(const char *bytes, size_t length)
{
    AR_AUTO_CLOSE int fd = open(file_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
}

/* Three frames, synced together; the first of the image is the mark that every journal begins with. */
enum { FIRST = 1, SECOND, THIRD, LAST_MARK };

static void write_three(struct image *image)
{
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    append(file, "first");
    append(file, "");
    append(file, "the third one");
    ck_assert_int_eq(journal_file_sync(file), 0);
    journal_file_close(file);
    read_image(image);
    ck_assert_uint_eq(image->count, 5);
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

/* It cannot be opened, because of this place, and is as it was afterwards. */
static void expect_damage(const char *bytes, size_t length, size_t place)
{
    static struct image after;
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    write_image(bytes, length);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), -EUCLEAN);
    ck_assert_int_eq(offset, (off_t)place);
    read_image(&after);
    ck_assert_uint_eq(after.length, length);
    ck_assert_mem_eq(after.bytes, bytes, length);
}

START_TEST(test_round_trip)
{
    struct image image;
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    write_three(&image);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_str_eq(seen.payloads[0], "first");
    ck_assert_str_eq(seen.payloads[2], "the third one");
    ck_assert_int_eq(seen.types[1], JOURNAL_INTENT);
    ck_assert_uint_eq(journal_file_cut(file), 0);
    journal_file_close(file);
}
END_TEST

START_TEST(test_torn_tail_at_every_byte)
{
    struct image image;
    write_three(&image);
    for (size_t length = image.length; length >= image.at[FIRST]; length--) {
        struct journal_file *file;
        struct seen seen;
        off_t offset;
        size_t whole = (length >= image.at[SECOND]) + (length >= image.at[THIRD]) +
                       (length >= image.at[LAST_MARK]);
        write_image(image.bytes, length);
        ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
        ck_assert_uint_eq(seen.count, whole);
        /* What comes after the cut is there at the next start, and the start after that. */
        ck_assert_int_eq(journal_file_append(file, JOURNAL_KEPT, "new", 3), 0);
        journal_file_close(file);
        ck_assert_uint_eq(count_frames(), whole + 1);
        ck_assert_uint_eq(count_frames(), whole + 1);
    }
}
END_TEST

/* Every bit position of a byte, in every byte of every frame that the last mark covers. */
START_TEST(test_damage_in_the_middle)
{
    struct image image;
    write_three(&image);
    for (size_t frame = 0; frame < LAST_MARK; frame++) {
        for (size_t at = image.at[frame]; at < image.at[frame + 1]; at++) {
            image.bytes[at] ^= (char)(1 << (at % 8));
            expect_damage(image.bytes, image.length, image.at[frame]);
            image.bytes[at] ^= (char)(1 << (at % 8));
        }
    }
    write_image(image.bytes, image.length);
    ck_assert_uint_eq(count_frames(), 3);
}
END_TEST

START_TEST(test_zeros_and_rubbish_behind_the_end)
{
    struct image image;
    static const size_t sizes[] = {1, 19, 20, 31, 32, 33, 4096};
    static const char rubbish[] = "ARJ and then nothing that could be a frame";
    write_three(&image);
    for (size_t i = 0; i < AR_COUNT(sizes); i++) {
        write_image(image.bytes, image.length);
        ck_assert_int_eq(truncate(file_path, (off_t)(image.length + sizes[i])), 0);
        ck_assert_uint_eq(count_frames(), 3);
        memset(image.bytes + image.length, 0xa5, sizes[i]);
        write_image(image.bytes, image.length + sizes[i]);
        ck_assert_uint_eq(count_frames(), 3);
    }
    memcpy(image.bytes + image.length, rubbish + 4, sizeof rubbish - 4);
    write_image(image.bytes, image.length + sizeof rubbish - 4);
    ck_assert_uint_eq(count_frames(), 3);
}
END_TEST

START_TEST(test_frame_of_another_version)
{
    struct image image;
    write_three(&image);
    image.bytes[image.at[LAST_MARK] + 3] = 2;
    expect_damage(image.bytes, image.length, image.at[LAST_MARK]);
    expect_damage(image.bytes, image.at[LAST_MARK] + 4, image.at[LAST_MARK]);
}
END_TEST

/* Frames behind a torn one that are not where they were written: somebody went on after a scar. */
START_TEST(test_frames_behind_a_torn_one)
{
    struct image image;
    char bytes[FILE_BYTES];
    write_three(&image);
    size_t torn = image.at[THIRD] + 11, two = image.at[THIRD] - image.at[FIRST];
    memcpy(bytes, image.bytes, torn);
    memcpy(bytes + torn, image.bytes + image.at[FIRST], two);
    expect_damage(bytes, torn + two, image.at[THIRD]);
    /* And one that lies directly behind a whole one. */
    memcpy(bytes + image.at[THIRD], image.bytes + image.at[FIRST], two);
    expect_damage(bytes, image.at[THIRD] + two, image.at[THIRD]);
}
END_TEST

START_TEST(test_a_part_that_is_missing)
{
    struct image image;
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    char bytes[FILE_BYTES];
    write_three(&image);
    size_t rest = image.length - image.at[SECOND];
    memcpy(bytes, image.bytes, image.at[FIRST]);
    memcpy(bytes + image.at[FIRST], image.bytes + image.at[SECOND], rest);
    expect_damage(bytes, image.at[FIRST] + rest, image.at[FIRST]);
    expect_damage(image.bytes, 7,
                  0); /* not even the first frame, which was there before the name */
    ck_assert_int_eq(truncate(file_path, 0), 0);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), -ENODATA);
    ck_assert_int_eq(unlink(file_path), 0);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), -ENODATA);
    ck_assert_int_ne(access(file_path, F_OK), 0);
    ck_assert_int_eq(unlink(lock_path), 0); /* a folder of which nothing is known begins anew */
    ck_assert_uint_eq(count_frames(), 0);
}
END_TEST

/* A power failure in a write of several pages can lose an earlier one and keep a later one. None of it
 * was acknowledged; but what was synced is not forgiven. */
START_TEST(test_a_hole_in_a_write_that_was_cut_off)
{
    static struct image image;
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    append(file, "synced");
    ck_assert_int_eq(journal_file_sync(file), 0);
    append(file, "lost");
    append(file, "on the disk");
    read_image(&image);
    journal_file_close(file);
    ck_assert_uint_eq(image.count, 4);
    memset(image.bytes + image.at[2], 0, image.at[3] - image.at[2]);
    write_image(image.bytes, image.length);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_str_eq(seen.payloads[0], "synced");
    ck_assert_uint_eq(journal_file_cut(file), image.length - image.at[2]);
    journal_file_close(file);
    memset(image.bytes + image.at[1], 0, image.at[2] - image.at[1]);
    expect_damage(image.bytes, image.length, image.at[1]);
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

static int append_and_fail(void *context, struct journal_file *file)
{
    int rc = append_one(context, file);
    return rc < 0 ? rc : -ENOSPC;
}

START_TEST(test_rewrite)
{
    struct image image;
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    char kept[] = "kept";
    write_three(&image);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_int_eq(journal_file_rewrite(file, append_and_fail, kept, 0), -ENOSPC);
    append(file, "still the old one");
    journal_file_close(file);
    ck_assert_uint_eq(count_frames(), 4);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_int_eq(journal_file_rewrite(file, append_one, kept, 100), 0);
    append(file, "behind it");
    journal_file_close(file);
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_str_eq(seen.payloads[0], "kept");
    ck_assert_str_eq(seen.payloads[1], "behind it");
    journal_file_close(file);
}
END_TEST

/* A crash before the name was taken leaves journal.new, whole or not; it counts for nothing. */
START_TEST(test_a_rewrite_that_was_cut_off)
{
    struct image image;
    struct journal_file *file;
    struct seen seen;
    off_t offset;
    write_three(&image);
    for (size_t length = 0; length <= image.length; length += image.length / 3) {
        ck_assert_int_eq(rename(file_path, new_path), 0);
        ck_assert_int_eq(truncate(new_path, (off_t)length), 0);
        write_image(image.bytes, image.length);
        ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
        ck_assert_uint_eq(seen.count, 3);
        ck_assert_int_eq(journal_file_rewrite(file, append_one, folder, 0), 0);
        journal_file_close(file);
        ck_assert_uint_eq(count_frames(), 1);
        write_image(image.bytes, image.length);
    }
}
END_TEST

/* Allocated, and not a byte longer for who reads it. */
START_TEST(test_reserve)
{
    struct journal_file *file;
    struct seen seen;
    struct stat status;
    off_t offset;
    ck_assert_int_eq(open_journal(&seen, &file, &offset), 0);
    ck_assert_int_eq(journal_file_reserve(file, 3 << 20), 0);
    ck_assert_int_eq(stat(file_path, &status), 0);
    ck_assert_int_ge(status.st_blocks, (3 << 20) / 512);
    if (journal_file_allocates(file))
        ck_assert_int_eq(status.st_size, journal_file_size(file));
    append(file, "in it");
    ck_assert_int_eq(journal_file_rewrite(file, append_one, folder, 2 << 20), 0);
    ck_assert_int_eq(stat(file_path, &status), 0);
    ck_assert_int_ge(status.st_blocks, (2 << 20) / 512);
    journal_file_close(file);
    ck_assert_int_eq(stat(file_path, &status), 0);
    ck_assert_int_lt(status.st_blocks, 64);
    ck_assert_uint_eq(count_frames(), 1);
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
        &test_frames_behind_a_torn_one,
        &test_a_part_that_is_missing,
        &test_a_hole_in_a_write_that_was_cut_off,
        &test_one_daemon_at_a_time,
        &test_rewrite,
        &test_a_rewrite_that_was_cut_off,
        &test_reserve,
    };
    Suite *suite = suite_create("journal_file");
    TCase *tcase = tcase_create("journal_file");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
