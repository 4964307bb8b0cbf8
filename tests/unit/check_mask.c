/*
 * check_mask.c - values do not come through: in each form, at any place, in any pieces, at a cut; and
 * everything else does, byte for byte.
 *
 * A reference that reads the whole text at once and compares at every place (no states, no pieces)
 * says what the result of random texts must be.
 */
#include "protocol/mask.h"

#include "protocol/mask_needle.h"
#include "protocol/mask_view.h"
#include "protocol/text.h"
#include "tests/unit/unit.h"

static const char pem[] = "-----BEGIN PRIVATE KEY-----\n"
                          "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"
                          "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n"
                          "-----END PRIVATE KEY-----\n";

/* ---- the reference ------------------------------------------------------------------------------ */

struct symbol {
    unsigned char byte;
    size_t start, end;
};

static void take_symbols(struct mask_view_reader *reader, bool last, struct symbol *out,
                         size_t *count)
{
    struct mask_view_unit unit;
    while (mask_view_take(reader, last, &unit))
        for (size_t i = 0; i < unit.count; i++)
            if (!mask_needle_is_line_end(unit.bytes[i]))
                out[(*count)++] = (struct symbol){unit.bytes[i], unit.start, unit.end};
}

/* Knows no limit of line ends in a row. */
static size_t read_view(enum mask_view view, const char *text, size_t length, struct symbol *out)
{
    struct mask_view_reader reader = {.view = view};
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        if (mask_needle_is_line_end((unsigned char)text[i]))
            continue;
        mask_view_put(&reader, (unsigned char)text[i], i);
        take_symbols(&reader, false, out, &count);
    }
    take_symbols(&reader, true, out, &count);
    return count;
}

static bool is_there(const struct mask_needle *needle, const struct symbol *symbols, size_t left)
{
    if (left < needle->length)
        return false;
    for (size_t i = 0; i < needle->length; i++)
        if (mask_needle_symbol(needle->alphabet, symbols[i].byte) != needle->text[i])
            return false;
    return true;
}

/* joined[i]: the bytes i - 1 and i are of one match; covered[i]: the byte i is of any. */
static char *reference(const struct mask *mask, const char *text, size_t length)
{
    struct symbol *symbols = calloc(length + 1, sizeof *symbols);
    bool *joined = calloc(length + 1, 1), *covered = calloc(length + 1, 1);
    char *out = calloc(1, 3 * length + 1), *to = out;
    ck_assert(symbols && joined && covered && out);
    for (int view = 0; view < MASK_VIEW_COUNT; view++) {
        size_t count = read_view((enum mask_view)view, text, length, symbols);
        for (size_t i = 0; i < count; i++)
            for (size_t n = 0; n < mask->count; n++) {
                if (!is_there(&mask->needles[n], symbols + i, count - i))
                    continue;
                size_t end = symbols[i + mask->needles[n].length - 1].end;
                for (size_t at = symbols[i].start; at < end; at++) {
                    covered[at] = true;
                    joined[at] |= at > symbols[i].start;
                }
            }
    }
    for (size_t i = 0; i < length; i++) {
        if (covered[i] && !joined[i])
            to = mempcpy(to, "***", 3);
        if (!covered[i])
            *to++ = text[i];
    }
    free(symbols);
    free(joined);
    free(covered);
    return out;
}

/* ---- helpers ------------------------------------------------------------------------------------ */

static void mask_cleanup(struct mask **mask)
{
    mask_free(*mask);
}

/* A mask of up to two values. */
static struct mask *mask_of(const char *value, const char *other)
{
    struct mask *mask = mask_new();
    ck_assert_ptr_nonnull(mask);
    if (value)
        ck_assert_int_eq(mask_add(mask, value, strlen(value)), 0);
    if (other)
        ck_assert_int_eq(mask_add(mask, other, strlen(other)), 0);
    return mask;
}

static void append(char *all, size_t *used, char *piece, size_t length)
{
    ck_assert((piece != NULL) == (length > 0));
    if (piece)
        memcpy(all + *used, piece, length);
    *used += length;
    free(piece);
}

/* What comes out when the text goes in in pieces of at most so many bytes (0: of random sizes). */
static char *run_pieces(const struct mask *mask, const char *text, size_t length, size_t most,
                        bool cut, struct unit_random *random)
{
    struct mask_stream *stream = mask_stream_new(mask);
    char *all = calloc(1, 3 * length + 4), *piece;
    size_t used = 0, got;
    ck_assert(stream && all);
    for (size_t at = 0; at < length;) {
        size_t n = most ? most : 1 + unit_random_below(random, 9);
        n = n < length - at ? n : length - at;
        ck_assert_int_eq(mask_stream_put(stream, text + at, n, &piece, &got), 0);
        append(all, &used, piece, got);
        at += n;
    }
    ck_assert_int_eq(mask_stream_end(stream, cut, &piece, &got), 0);
    append(all, &used, piece, got);
    mask_stream_free(stream);
    return all;
}

static void expect_with(struct mask *mask, const char *text, bool cut, const char *wanted)
{
    size_t length = strlen(text);
    for (size_t most = 1; most <= length + 1; most = most < 8 ? most + 1 : 2 * most) {
        AR_AUTO_FREE char *got = run_pieces(mask, text, length, most, cut, NULL);
        ck_assert_msg(strcmp(got, wanted) == 0, "pieces of %zu: \"%s\" gives \"%s\", not \"%s\"",
                      most, text, got, wanted);
    }
}

/* Of a value, or two. */
static void expect(const char *value, const char *other, const char *text, const char *wanted)
{
    AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of(value, other);
    expect_with(mask, text, false, wanted);
}

/* ---- forms -------------------------------------------------------------------------------------- */

START_TEST(test_plain)
{
    expect("s3cr3t-tok", NULL, "", "");
    expect("s3cr3t-tok", NULL, "nothing to see\n", "nothing to see\n");
    expect("s3cr3t-tok", NULL, "s3cr3t-tok", "***");
    expect("s3cr3t-tok", NULL, "a s3cr3t-tok b", "a *** b");
    expect("s3cr3t-tok", NULL, "s3cr3t-toks3cr3t-tok\n", "******\n");
    expect("s3cr3t-tok", NULL, "s3cr3t-to", "s3cr3t-to");
    expect("s3cr3t-tok", NULL, "s3cr3t-ts3cr3t-tok", "s3cr3t-t***");
    expect("s3cr3t-tok\n", NULL, "[s3cr3t-tok]", "[***]");
    expect("s3cr3t-tok\r\n", NULL, "[s3cr3t-tok]\n", "[***]\n");
    expect("aabaa", NULL, "aabaabaa.", "***.");
}
END_TEST

START_TEST(test_short)
{
    expect("ab", NULL, "ab ab", "ab ab");
    expect("abc\n", NULL, "abc", "abc");
    expect("a\nb\nc", NULL, "abc", "abc");
    expect("abcd", NULL, "abcd", "***");
}
END_TEST

START_TEST(test_lines)
{
    AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of(pem, NULL);
    AR_AUTO_FREE char *crlf = calloc(1, 2 * sizeof pem);
    char *to = crlf;
    for (const char *from = pem; *from; from++) {
        if (*from == '\n')
            *to++ = '\r';
        *to++ = *from;
    }
    expect_with(mask, pem, false, "***\n");
    expect_with(mask, crlf, false, "***\r\n");
    expect("one\ntwo", NULL, "o\r\nn\r\ne\r\nt\nwo", "***");
    expect("one\ntwo", NULL, "one%0D%0Atwo one\\ntwo one\\r\\ntwo", "*** *** ***");
    expect("one\ntwo", NULL, "one\n\n\n\n\n\n\n\ntwo", "***");
    expect("one\ntwo", NULL, "one\n\n\n\n\n\n\n\n\ntwo", "one\n\n\n\n\n\n\n\n\ntwo");
    expect("one\n\n\n\n\n\n\n\n\n\ntwo", NULL, "one\n\n\n\n\n\n\n\n\n\ntwo", "***");
}
END_TEST

/* Whatever stands before and after; wrapped or not. */
START_TEST(test_base64)
{
    static const char *const values[] = {"abcd", "s3cr3t-tok", "\xff\xfe\xfb\xef\xbe\xff\xff?",
                                         pem};
    for (size_t v = 0; v < AR_COUNT(values); v++) {
        AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of(values[v], NULL);
        for (size_t before = 0; before < 6; before++) {
            char text[512];
            int length = snprintf(text, sizeof text, "%.*s%sxy", (int)before, "12345", values[v]);
            AR_AUTO_FREE char *encoded = text_base64_encode(text, (size_t)length);
            AR_AUTO_FREE char *got = run_pieces(mask, encoded, strlen(encoded), 7, false, NULL);
            ck_assert_ptr_nonnull(strstr(got, "***"));
            ck_assert_uint_lt(strlen(got), 8 + 3 + 8);
            char wrapped[1024] = "", *to = wrapped;
            for (size_t i = 0; encoded[i]; i++) {
                *to++ = encoded[i] == '+' ? '-' : encoded[i] == '/' ? '_' : encoded[i];
                if (i % 76 == 75)
                    *to++ = '\n';
            }
            AR_AUTO_FREE char *again = run_pieces(mask, wrapped, strlen(wrapped), 5, false, NULL);
            ck_assert_ptr_nonnull(strstr(again, "***"));
            ck_assert_uint_lt(strlen(again), 8 + 3 + 10);
        }
    }
}
END_TEST

START_TEST(test_percent)
{
    expect("p+a/b=c d", NULL, "p%2Ba%2fb%3Dc%20d", "***");
    expect("p+a/b=c d", NULL, "p%2Ba%2fb%3Dc+d!", "***!");
    expect("p+a/b=c d", NULL, "p+a/b=c%20d", "***");
    expect("p+a/b=c d", NULL, "%70%2b%61%2f%62%3d%63%20%64", "***");
    expect("p+a/b=c d", NULL, "%%70+a/b=c d%", "%***%");
    expect("p+a/b=c d", NULL, "%7%70+a/b=c d%7", "%7***%7");
    expect("p+a/b=c d", NULL, "p%2\nBa/b=c d", "***");
    expect("100%", NULL, "%31%30%30%", "***");
    expect("\xff\xfe\xfb\xef", NULL, "%2f%2F779%2D", "%2f%2F779%2D");
    expect("\xff\xfe\xfb\xef", NULL, "%2F%2F777w==", "***w==");
    expect("\xff\xff\xff", NULL, "%ff%ff%ff", "%ff%ff%ff");
    expect("\xff\xff\xff\xff", NULL, "%ff%FF%fF%Ff %2F%2f%2F%2F%2Fw%3D%3D", "*** ***w%3D%3D");
}
END_TEST

START_TEST(test_json)
{
    expect("a\"b\\c/d", NULL, "{\"k\":\"a\\\"b\\\\c\\/d\"}", "{\"k\":\"***\"}");
    expect("a\"b\\c/d", NULL, "a\\u0022b\\u005cc/d a\"b\\c/d", "*** ***");
    expect("a\"b\\c/d", NULL, "\\u0061\\\"b\\\\c/\\u0064", "***");
    expect("caf\xc3\xa9!", NULL, "caf\\u00e9! caf\\u00E9!", "*** ***");
    expect("key\xf0\x9f\x98\x80", NULL, "key\\ud83d\\ude00.", "***.");
    expect("key\xf0\x9f\x98\x80", NULL, "key\\ud83d.", "key\\ud83d.");
    expect("key\xf0\x9f\x98\x80", NULL, "key\\ud83dkey\\ud83d\\uDE00", "key\\ud83d***");
    expect("n4mes", NULL, "\\n4mes \\\\n4mes", "\\*** \\\\***");
    expect("a\\\\b", NULL, "a\\\\b a\\\\\\\\b", "*** ***");
}
END_TEST

/* ---- several values ----------------------------------------------------------------------------- */

START_TEST(test_several)
{
    expect("token", "token-long", "token token-long token-lon tokentoken-long",
           "*** *** ***-lon ******");
    expect("ends-with-this", "with-this", "x ends-with-this with-this", "x *** ***");
    expect("abcdef", "defghi", "abcdefghi", "***");
    expect("abcdef", "ghijkl", "abcdefghijkl", "******");
    expect("same-value", "same-value", "same-value", "***");
}
END_TEST

START_TEST(test_cut)
{
    AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of("s3cr3t-tok", "qu\"ote");
    expect_with(mask, "out: s3cr3t-to", true, "out: ***");
    expect_with(mask, "out: s3cr3t-tok", true, "out: ***");
    expect_with(mask, "out: s", true, "out: ***");
    expect_with(mask, "out: s3cr3t-\r\n", true, "out: ***");
    expect_with(mask, "out: %733cr", true, "out: ***");
    expect_with(mask, "out: qu\\", true, "out: ***");
    expect_with(mask, "out: qu\\\"o", true, "out: ***");
    expect_with(mask, "s3cr3t-toks3cr", true, "******");
    expect_with(mask, "out: no", true, "out: no");
    expect_with(mask, "out: s3cr3t-to", false, "out: s3cr3t-to");
    expect_with(mask, "out: qu\\", false, "out: qu\\");
}
END_TEST

/* What cannot become a value any more is not held back. */
START_TEST(test_held_back)
{
    AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of("s3cr3t-tok", NULL);
    struct mask_stream *stream = mask_stream_new(mask);
    char *out;
    size_t length;
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(mask_stream_put(stream, "Name? s3cr", 10, &out, &length), 0);
    ck_assert_uint_eq(length, 6);
    free(out);
    ck_assert_int_eq(mask_stream_put(stream, "et!", 3, &out, &length), 0);
    ck_assert_uint_eq(length, 7);
    ck_assert_mem_eq(out, "s3cret!", 7);
    free(out);
    ck_assert_int_eq(mask_stream_put(stream, "", 0, &out, &length), 0);
    ck_assert_ptr_null(out);
    mask_stream_free(stream);
    mask_stream_free(NULL);
    mask_free(NULL);
}
END_TEST

START_TEST(test_nothing_to_mask)
{
    AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of(NULL, NULL);
    expect_with(mask, "all of %41 \\u0041 it\n", false, "all of %41 \\u0041 it\n");
    expect_with(mask, "all of %41 \\u0041 it\n", true, "all of %41 \\u0041 it\n");
}
END_TEST

/* ---- properties --------------------------------------------------------------------------------- */

/* A text of pieces that values are made of too, so that parts of them are everywhere. */
static size_t make_text(struct unit_random *random, char *text, size_t words)
{
    static const char *const parts[] = {"a",    "b",    "ab",     "aab",     "%61", "%6",
                                        "%",    "\\",   "\\u00",  "\\u0061", "61",  "\n",
                                        "\r\n", "YWFi", "+",      " ",       "%2B", "YmFh",
                                        "\\n",  "hYW",  "FhYmFi", "\\\\",    "Yi",  "baab"};
    size_t length = 0;
    for (size_t i = 0; i < words; i++) {
        const char *part = parts[unit_random_below(random, AR_COUNT(parts))];
        memcpy(text + length, part, strlen(part));
        length += strlen(part);
    }
    text[length] = '\0';
    return length;
}

START_TEST(test_random)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < 3000; round++) {
        char value[64], other[64], text[1024];
        (void)make_text(&random, value, 2 + unit_random_below(&random, 5));
        (void)make_text(&random, other, 2 + unit_random_below(&random, 5));
        size_t length = make_text(&random, text, unit_random_below(&random, 60));
        if (strstr(text, "\n\n\n\n") || strstr(text, "\n\r\n\r\n"))
            continue;
        AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of(value, other);
        AR_AUTO_FREE char *wanted = reference(mask, text, length);
        AR_AUTO_FREE char *whole = run_pieces(mask, text, length, length + 1, false, NULL);
        AR_AUTO_FREE char *pieces = run_pieces(mask, text, length, 0, false, &random);
        AR_AUTO_FREE char *cut = run_pieces(mask, text, length, length + 1, true, NULL);
        AR_AUTO_FREE char *cut_pieces = run_pieces(mask, text, length, 0, true, &random);
        ck_assert_msg(strcmp(whole, wanted) == 0, "seed %lu round %d: \"%s\" \"%s\" in \"%s\"",
                      (unsigned long)random.seed, round, value, other, text);
        ck_assert_msg(strcmp(pieces, wanted) == 0, "seed %lu round %d: pieces of \"%s\"",
                      (unsigned long)random.seed, round, text);
        ck_assert_str_eq(cut, cut_pieces);
    }
}
END_TEST

/* Long ones, which do not fit in one block, among much that is not one. */
START_TEST(test_long)
{
    struct unit_random random = unit_random_new();
    size_t length = 60000;
    AR_AUTO_FREE char *value = calloc(1, length + 1);
    AR_AUTO_FREE char *text = calloc(1, 3 * length + 1);
    ck_assert(value && text);
    for (size_t i = 0; i < length; i++)
        value[i] = (char)('a' + unit_random_below(&random, 26));
    (void)snprintf(text, 3 * length, "%.*s|%s|%.*s", 59999, value, value, 100, value);
    AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of(value, NULL);
    AR_AUTO_FREE char *got = run_pieces(mask, text, strlen(text), 4097, false, NULL);
    ck_assert_uint_eq(strlen(got), 59999 + 1 + 3 + 1 + 100);
    ck_assert_mem_eq(got, value, 59999);
    ck_assert_mem_eq(got + 59999, "|***|", 5);
    ck_assert_mem_eq(got + 60004, value, 100);
}
END_TEST

/* One letter only: each byte ends a match, and begins one. */
START_TEST(test_one_letter)
{
    AR_AUTO_FREE char *value = unit_repeat("", "a", 20000, "");
    AR_AUTO_FREE char *text = unit_repeat("b", "a", 200000, "b");
    AR_CLEANUP(mask_cleanup) struct mask *mask = mask_of(value, "aaaa");
    AR_AUTO_FREE char *got = run_pieces(mask, text, strlen(text), 1000, false, NULL);
    ck_assert_str_eq(got, "b***b");
}
END_TEST

static const TTest **const forms[] = {&test_plain,   &test_short, &test_lines, &test_base64,
                                      &test_percent, &test_json,  NULL};
static const TTest **const values[] = {&test_several, &test_cut, &test_held_back,
                                       &test_nothing_to_mask, NULL};
static const TTest **const properties[] = {&test_random, &test_long, &test_one_letter, NULL};

int main(void)
{
    static const struct unit_case cases[] = {
        {"forms", forms}, {"values", values}, {"properties", properties}};
    return unit_main("mask", cases, AR_COUNT(cases));
}
