/*
 * check_frame.c - lines out of bytes: the same whatever the pieces, the maximum to the byte, and no
 * memory kept for a connection that is idle.
 */
#include "protocol/frame.h"
#include "tests/unit/unit.h"

/* As much of the bytes as there is room for; returns how many. */
static size_t feed_some(struct frame_reader *reader, const char *bytes, size_t length)
{
    char *space;
    size_t available;
    ck_assert_int_eq(frame_space(reader, &space, &available), 0);
    ck_assert_uint_gt(available, 0);
    size_t n = available < length ? available : length;
    memcpy(space, bytes, n);
    frame_commit(reader, n);
    return n;
}

static void feed(struct frame_reader *reader, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t n = feed_some(reader, bytes, length);
        bytes += n;
        length -= n;
    }
}

/* All lines that come of the bytes in pieces of at most that size, each behind '<' and before '>'. */
static char *read_all(const char *bytes, size_t length, size_t piece, size_t max,
                      enum frame_result *end)
{
    struct frame_reader reader;
    char *out = calloc(1, 4 * length + 3);
    size_t used = 0;
    ck_assert_ptr_nonnull(out);
    frame_init(&reader, max);
    *end = FRAME_MORE;
    for (size_t at = 0; at < length && *end == FRAME_MORE;) {
        char *line;
        size_t line_length;
        at += feed_some(&reader, bytes + at, length - at < piece ? length - at : piece);
        while ((*end = frame_next(&reader, &line, &line_length)) == FRAME_DONE) {
            ck_assert_int_eq(line[line_length], '\0');
            out[used++] = '<';
            memcpy(out + used, line, line_length);
            used += line_length;
            out[used++] = '>';
        }
    }
    frame_free(&reader);
    return out;
}

START_TEST(test_pieces)
{
    static const char bytes[] = "one\n\ntwo two\r\nthree\nrest";
    for (size_t piece = 1; piece < sizeof(bytes); piece++) {
        enum frame_result end;
        AR_AUTO_FREE char *lines = read_all(bytes, sizeof(bytes) - 1, piece, 100, &end);
        ck_assert_str_eq(lines, "<one><><two two\r><three>");
        ck_assert_int_eq(end, FRAME_MORE);
    }
}
END_TEST

START_TEST(test_nul_is_a_byte)
{
    struct frame_reader reader;
    char *line;
    size_t length;
    frame_init(&reader, 100);
    feed(&reader, "a\0b\nc", 5);
    ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_DONE);
    ck_assert_uint_eq(length, 3);
    ck_assert_mem_eq(line, "a\0b", 4);
    ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_MORE);
    frame_free(&reader);
}
END_TEST

START_TEST(test_maximum_to_the_byte)
{
    for (size_t max = 1; max < 70; max++) {
        for (size_t piece = 1; piece < 80; piece += 13) {
            enum frame_result end;
            AR_AUTO_FREE char *right = unit_repeat("", "x", max, "\n");
            AR_AUTO_FREE char *lines = read_all(right, max + 1, piece, max, &end);
            ck_assert_uint_eq(strlen(lines), max + 2);
            ck_assert_int_eq(end, FRAME_MORE);
            AR_AUTO_FREE char *wrong = unit_repeat("", "x", max + 1, "");
            AR_AUTO_FREE char *none = read_all(wrong, max + 1, piece, max, &end);
            ck_assert_str_eq(none, "");
            ck_assert_int_eq(end, FRAME_BAD);
        }
    }
}
END_TEST

START_TEST(test_too_long_behind_good_lines)
{
    struct frame_reader reader;
    char *line, *space;
    size_t length, available;
    frame_init(&reader, 8);
    feed(&reader, "ab\n", 3);
    ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_DONE);
    feed(&reader, "123456789", 9);
    ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_BAD);
    ck_assert_int_eq(frame_space(&reader, &space, &available), FRAME_BAD);
    frame_free(&reader);
}
END_TEST

START_TEST(test_gives_memory_back)
{
    struct frame_reader reader;
    AR_AUTO_FREE char *big = unit_repeat("", "x", 1u << 20, "\n");
    char *line;
    size_t length;
    frame_init(&reader, 2u << 20);
    ck_assert_ptr_null(reader.data);
    for (int i = 0; i < 3; i++) {
        feed(&reader, big, (1u << 20) + 1);
        ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_DONE);
        ck_assert_uint_eq(length, 1u << 20);
        ck_assert_uint_gt(reader.capacity, 1u << 20);
        ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_MORE);
        ck_assert_uint_le(reader.capacity, 4096);
    }
    frame_free(&reader);
    frame_free(&reader);
}
END_TEST

START_TEST(test_grows_no_further_than_the_maximum)
{
    struct frame_reader reader;
    char *line;
    size_t length;
    frame_init(&reader, 10000);
    for (size_t i = 0; i < 10000; i++)
        feed(&reader, "y", 1);
    ck_assert_uint_le(reader.capacity, 10001);
    ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_MORE);
    feed(&reader, "\n", 1);
    ck_assert_int_eq(frame_next(&reader, &line, &length), FRAME_DONE);
    ck_assert_uint_eq(length, 10000);
    frame_free(&reader);
}
END_TEST

/* Lines of random lengths in random pieces come out as they were. */
START_TEST(test_random_streams)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < 200; round++) {
        char bytes[3000], expected[9000];
        size_t length = 0, used = 0;
        for (size_t lines = 1 + unit_random_below(&random, 20); lines > 0; lines--) {
            size_t n = unit_random_below(&random, 120);
            expected[used++] = '<';
            memset(bytes + length, 'a' + (int)(lines % 26), n);
            memset(expected + used, 'a' + (int)(lines % 26), n);
            length += n;
            used += n;
            bytes[length++] = '\n';
            expected[used++] = '>';
        }
        expected[used] = '\0';
        enum frame_result end;
        AR_AUTO_FREE char *lines =
            read_all(bytes, length, 1 + unit_random_below(&random, 200), 119, &end);
        ck_assert_msg(strcmp(lines, expected) == 0, "seed %llu", (unsigned long long)random.seed);
    }
}
END_TEST

static const TTest **const tests[] = {&test_pieces,
                                      &test_nul_is_a_byte,
                                      &test_maximum_to_the_byte,
                                      &test_too_long_behind_good_lines,
                                      &test_gives_memory_back,
                                      &test_grows_no_further_than_the_maximum,
                                      &test_random_streams,
                                      NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"frame", tests}};
    return unit_main("frame", cases, AR_COUNT(cases));
}
