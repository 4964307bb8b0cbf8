/*
 * check_cli_table.c - tables fit the terminal, keep their columns, and escape what is in them.
 */
#include "cli/table.h"
#include "tests/suite.h"

#include <check.h>
#include <string.h>

static const struct table_column columns[] = {
    {"ID", false, 0, 0},
    {"NAME", false, 4, 1},
    {"N", true, 0, 3},
    {"TEXT", false, 5, 2},
};

static size_t total(const size_t *widths)
{
    size_t sum = 0, count = 0;
    for (size_t i = 0; i < AR_COUNT(columns); i++) {
        sum += widths[i];
        count += widths[i] > 0;
    }
    return sum + (count ? (count - 1) * TABLE_GAP : 0);
}

START_TEST(without_a_limit_everything_is_there)
{
    size_t widths[] = {36, 20, 5, 100};
    table_layout(columns, AR_COUNT(columns), 0, widths);
    ck_assert_uint_eq(total(widths), 36 + 20 + 5 + 100 + 6);
}
END_TEST

START_TEST(the_widest_shrinks_first)
{
    size_t widths[] = {10, 10, 5, 40};
    table_layout(columns, AR_COUNT(columns), 60, widths);
    ck_assert_uint_eq(total(widths), 60);
    ck_assert_uint_eq(widths[0], 10);
    ck_assert_uint_eq(widths[1], 10);
    ck_assert_uint_eq(widths[3], 29);
}
END_TEST

START_TEST(columns_go_by_rank)
{
    size_t widths[] = {20, 10, 5, 40};
    table_layout(columns, AR_COUNT(columns), 36, widths);
    ck_assert_uint_eq(widths[2], 0);
    ck_assert_uint_eq(widths[0], 20);
    ck_assert_uint_le(total(widths), 36);
    ck_assert_uint_gt(widths[1], 0);
    ck_assert_uint_gt(widths[3], 0);
}
END_TEST

START_TEST(a_column_without_rank_stays)
{
    size_t widths[] = {36, 10, 5, 40};
    table_layout(columns, AR_COUNT(columns), 20, widths);
    ck_assert_uint_eq(widths[0], 36);
    ck_assert_uint_eq(widths[1] + widths[2] + widths[3], 0);
}
END_TEST

START_TEST(what_fits_is_never_cut)
{
    for (size_t limit = 1; limit < 120; limit++) {
        size_t widths[] = {12, 9, 3, 30};
        table_layout(columns, AR_COUNT(columns), limit, widths);
        ck_assert_msg(total(widths) <= limit || total(widths) == 12, "%zu", limit);
        if (limit >= 12 + 9 + 3 + 30 + 6)
            ck_assert_uint_eq(widths[3], 30);
    }
}
END_TEST

/* The lines of a table of rows times the same row, at this width. */
static char *printed(size_t width, size_t rows, const struct table_cell *cells)
{
    char *text = NULL;
    size_t length = 0;
    struct table *table = NULL;
    FILE *stream = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(stream);
    struct terminal terminal = {.stream = stream, .width = width, .is_terminal = width > 0};
    ck_assert_int_eq(table_new(columns, AR_COUNT(columns), &terminal, &table), 0);
    for (size_t i = 0; i < rows; i++)
        ck_assert_int_eq(table_add(table, cells), 0);
    table_flush(table);
    table_free(table);
    ck_assert_int_eq(fclose(stream), 0);
    return text;
}

START_TEST(rows_stand_in_their_columns)
{
    const struct table_cell cells[] = {{"r1", TERMINAL_PLAIN},
                                       {"anna", TERMINAL_GOOD},
                                       {"7", TERMINAL_PLAIN},
                                       {NULL, TERMINAL_PLAIN}};
    AR_AUTO_FREE char *text = printed(0, 1, cells);
    ck_assert_str_eq(text, "ID  NAME  N  TEXT\nr1  anna  7  \n");
}
END_TEST

START_TEST(cells_are_escaped_and_cut)
{
    const struct table_cell cells[] = {{"r1", TERMINAL_PLAIN},
                                       {"\033[2J", TERMINAL_PLAIN},
                                       {"7", TERMINAL_PLAIN},
                                       {"a long text that is cut", TERMINAL_PLAIN}};
    AR_AUTO_FREE char *text = printed(24, 1, cells);
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_nonnull(strstr(text, "\\x1b[2J"));
    ck_assert_ptr_nonnull(strstr(text, "~"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        ck_assert_uint_le(strcspn(line, "\n"), 24);
}
END_TEST

START_TEST(a_long_table_has_one_head)
{
    const struct table_cell cells[] = {{"r1", TERMINAL_PLAIN},
                                       {"x", TERMINAL_PLAIN},
                                       {"7", TERMINAL_PLAIN},
                                       {"y", TERMINAL_PLAIN}};
    size_t lines = 0;
    AR_AUTO_FREE char *text = printed(0, TABLE_BATCH * 2 + 1, cells);
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    ck_assert_uint_eq(lines, TABLE_BATCH * 2 + 2);
    ck_assert_ptr_null(strstr(text + 1, "ID"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_table");
    TCase *layout = tcase_create("layout");
    tcase_add_test(layout, without_a_limit_everything_is_there);
    tcase_add_test(layout, the_widest_shrinks_first);
    tcase_add_test(layout, columns_go_by_rank);
    tcase_add_test(layout, a_column_without_rank_stays);
    tcase_add_test(layout, what_fits_is_never_cut);
    suite_add_tcase(suite, layout);
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, rows_stand_in_their_columns);
    tcase_add_test(rows, cells_are_escaped_and_cut);
    tcase_add_test(rows, a_long_table_has_one_head);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
