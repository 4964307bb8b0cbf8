/*
 * check_cli_terminal.c - foreign text is made harmless, and widths are those of what is shown.
 */
#include "cli/show.h"
#include "cli/terminal.h"
#include "tests/suite.h"

#include <check.h>
#include <locale.h>
#include <pty.h>
#include <string.h>

START_TEST(control_characters_are_made_visible)
{
    static const struct {
        const char *in;
        size_t length;
        const char *out;
    } cases[] = {
        {"plain", 5, "plain"},
        {"\033[31mred\007", 9, "\\x1b[31mred\\x07"},
        {"a\nb\tc\r", 6, "a\\x0ab\\x09c\\x0d"},
        {"nul\0end", 7, "nul\\x00end"},
        {"\x7f", 1, "\\x7f"},
        {"\xc2\x9b"
         "31m",
         5, "\\u{9b}31m"}, /* C1: CSI in one character */
        {"a\xe2\x80\xae"
         "b",
         5, "a\\u{202e}b"},                    /* right-to-left override */
        {"\xe2\x80\x8b", 3, "\\u{200b}"},      /* zero width space */
        {"\xf3\xa0\x81\x81", 4, "\\u{e0041}"}, /* tag character */
        {"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x99\x82", 9, "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x99\x82"},
        {"\xff\xfe", 2, "\\xff\\xfe"},
        {"\xc0\xaf", 2, "\\xc0\\xaf"},                   /* overlong */
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},          /* surrogate */
        {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
        {"\xe2\x82", 2, "\\xe2\\x82"},                   /* cut short */
        {"back\\slash", 10, "back\\slash"},
        {"", 0, ""},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_FREE char *out = terminal_escape(cases[i].in, cases[i].length);
        ck_assert_ptr_nonnull(out);
        ck_assert_str_eq(out, cases[i].out);
    }
}
END_TEST

static bool is_harmless(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            return false;
    return true;
}

/* Whatever goes in, nothing that drives a terminal comes out, and there was room for it. */
START_TEST(every_pair_of_bytes_comes_out_harmless)
{
    for (int first = 0; first < 256; first++) {
        bool harmless = true;
        for (int second = 0; second < 256; second++) {
            const char pair[2] = {(char)first, (char)second};
            AR_AUTO_FREE char *out = terminal_escape(pair, sizeof(pair));
            harmless = harmless && out && is_harmless(out);
        }
        ck_assert_msg(harmless, "first byte 0x%02x", (unsigned)first);
    }
}
END_TEST

START_TEST(columns_are_those_on_the_screen)
{
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    ck_assert_uint_eq(terminal_columns(""), 0);
    ck_assert_uint_eq(terminal_columns("abc"), 3);
    ck_assert_uint_eq(terminal_columns("\xc3\xa9"), 1);
    ck_assert_uint_eq(terminal_columns("\xe4\xb8\xad\xe6\x96\x87"), 4);
    ck_assert_uint_eq(terminal_columns("e\xcc\x81"), 1);
    ck_assert_uint_eq(terminal_fit("\xe4\xb8\xad\xe6\x96\x87", 3), 3);
    ck_assert_uint_eq(terminal_fit("\xc3\xa9\xc3\xa9\xc3\xa9", 2), 4);
    ck_assert_uint_eq(terminal_fit("abc", 10), 3);
}
END_TEST

/* What terminal_write() makes of data on a pseudo terminal. */
static size_t written_to_terminal(const char *data, size_t length, bool raw, char *out, size_t room)
{
    int master = -1, slave = -1;
    ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
    FILE *stream = fdopen(slave, "w");
    ck_assert_ptr_nonnull(stream);
    struct terminal terminal;
    terminal_open(&terminal, stream);
    ck_assert(terminal.is_terminal);
    ck_assert_int_eq(terminal_write(&terminal, data, length, raw), 0);
    ssize_t got = read(master, out, room);
    ck_assert_int_ge(got, 0);
    (void)fclose(stream);
    (void)close(master);
    return (size_t)got;
}

START_TEST(output_is_escaped_on_a_terminal_only)
{
    static const char data[] = "a\033[2J\tb\n";
    char out[64];
    size_t length = written_to_terminal(data, sizeof(data) - 1, false, out, sizeof(out));
    ck_assert_ptr_null(memchr(out, '\033', length));
    ck_assert_ptr_nonnull(memmem(out, length, "\\x1b[2J", 7));
    length = written_to_terminal(data, sizeof(data) - 1, true, out, sizeof(out));
    ck_assert_ptr_nonnull(memchr(out, '\033', length));

    AR_AUTO_FREE char *kept = NULL;
    size_t kept_length = 0;
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    struct terminal terminal;
    terminal_open(&terminal, file);
    ck_assert(!terminal.is_terminal);
    ck_assert_int_eq(terminal_write(&terminal, data, sizeof(data) - 1, false), 0);
    rewind(file);
    ssize_t got = getdelim(&kept, &kept_length, '\n', file);
    ck_assert_int_eq(got, (ssize_t)sizeof(data) - 1);
    ck_assert_mem_eq(kept, data, sizeof(data) - 1);
    (void)fclose(file);
}
END_TEST

static bool has_color(void)
{
    int master = -1, slave = -1;
    ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
    FILE *stream = fdopen(slave, "w");
    ck_assert_ptr_nonnull(stream);
    struct terminal terminal;
    terminal_open(&terminal, stream);
    bool color = *terminal_begin(&terminal, TERMINAL_BAD) != '\0';
    ck_assert_int_eq(color, *terminal_end(&terminal, TERMINAL_BAD) != '\0');
    ck_assert_str_eq(terminal_begin(&terminal, TERMINAL_PLAIN), "");
    (void)fclose(stream);
    (void)close(master);
    return color;
}

START_TEST(colors_only_where_they_are_wanted)
{
    struct terminal terminal;
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(setenv("TERM", "xterm", 1), 0);
    ck_assert_int_eq(unsetenv("NO_COLOR"), 0);
    ck_assert(has_color());
    terminal_open(&terminal, file);
    ck_assert_str_eq(terminal_begin(&terminal, TERMINAL_BAD), "");
    ck_assert_uint_eq(terminal.width, 0);
    (void)fclose(file);
    ck_assert_int_eq(setenv("NO_COLOR", "1", 1), 0);
    ck_assert(!has_color());
    ck_assert_int_eq(setenv("NO_COLOR", "", 1), 0);
    ck_assert(has_color());
    ck_assert_int_eq(setenv("TERM", "dumb", 1), 0);
    ck_assert(!has_color());
}
END_TEST

START_TEST(numbers_are_for_people)
{
    char text[SHOW_TEXT_BYTES];
    ck_assert_str_eq(show_duration(0, text), "0 us");
    ck_assert_str_eq(show_duration(999, text), "999 us");
    ck_assert_str_eq(show_duration(1500, text), "1.5 ms");
    ck_assert_str_eq(show_duration(45000, text), "45 ms");
    ck_assert_str_eq(show_duration(1250000, text), "1.25 s");
    ck_assert_str_eq(show_duration(INT64_C(200000000), text), "3 min 20 s");
    ck_assert_str_eq(show_duration(INT64_C(119999999), text), "120 s");
    ck_assert_str_eq(show_duration(INT64_C(3600000000), text), "60 min");
    ck_assert_str_eq(show_duration(INT64_C(86400000000), text), "24 h");
    ck_assert_str_eq(show_duration(-1, text), "?");
    ck_assert_str_eq(show_bytes(0, text), "0 B");
    ck_assert_str_eq(show_bytes(1023, text), "1023 B");
    ck_assert_str_eq(show_bytes(134217728, text), "128 MiB");
    ck_assert_str_eq(show_bytes(1610612736, text), "1.5 GiB");
    ck_assert_str_eq(show_bytes(-1, text), "?");
    ck_assert_str_eq(show_time(ROW_NULL, text), "-");
    ck_assert_str_eq(show_time(INT64_C(1769860800123456), text), "2026-01-31 12:00:00.123");
}
END_TEST

START_TEST(values_are_in_few_words)
{
    static const struct {
        const char *name, *json, *text;
    } cases[] = {
        {"limits.memory_bytes", "65536", "64 KiB"},
        {"limits.wall_ms", "5000", "5 s"},
        {"processes", "16", "16"},
        {"network", "\"allowlist\"", "allowlist"},
        {"secrets", "[\"A\", \"B\"]", "A, B"},
        {"secrets", "[]", "nothing"},
        {"x", "null", "nothing"},
        {"x", "true", "yes"},
        {"x", "\"\\u001b[2J\"", "\\x1b[2J"},
        {"x", "[\"\\u009b\"]", "\\u{9b}"},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_JSON json_t *value = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        AR_AUTO_FREE char *text = show_value(cases[i].name, value);
        ck_assert_ptr_nonnull(value);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_terminal");
    TCase *escape = tcase_create("escape");
    tcase_add_test(escape, control_characters_are_made_visible);
    tcase_add_test(escape, every_pair_of_bytes_comes_out_harmless);
    tcase_add_test(escape, columns_are_those_on_the_screen);
    tcase_add_test(escape, output_is_escaped_on_a_terminal_only);
    suite_add_tcase(suite, escape);
    TCase *show = tcase_create("show");
    tcase_add_test(show, colors_only_where_they_are_wanted);
    tcase_add_test(show, numbers_are_for_people);
    tcase_add_test(show, values_are_in_few_words);
    suite_add_tcase(suite, show);
    return suite_run(suite);
}
