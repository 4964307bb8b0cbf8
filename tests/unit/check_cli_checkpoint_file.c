/*
 * check_cli_checkpoint_file.c - checkpoints out of logs and files: none is overlooked, and a file that
 * does not hold what was asked for is never taken for one that agrees.
 */
#include "cli/checkpoint_file.h"

#include "cli/exit_code.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static struct checkpoint_key *key;
static struct checkpoint made;
static char *line; /* the checkpoint as JSON */
static char path[] = "/tmp/auditrun-checkpoints-XXXXXX";

static void set_up(void)
{
    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(checkpoint_key_make(&key), 0);
    made = (struct checkpoint){.seq = 42, .made_at = 1769860800000000};
    memcpy(made.writer, "01937a5e-8c4f-7b21-9d3e-5f60718293a4", sizeof(made.writer));
    memcpy(made.row_hash, digest_zero, sizeof(made.row_hash));
    ck_assert_int_eq(checkpoint_sign(&made, key), 0);
    AR_AUTO_JSON json_t *value = checkpoint_to_json(&made);
    line = json_canonical(value);
    ck_assert_ptr_nonnull(line);
}

static void tear_down(void)
{
    checkpoint_key_free(key);
    free(line);
    (void)unlink(path);
}

/* Writes the text with the checkpoint in the place of each "@", and reads it: the exit code. */
static int read_text(const char *text, struct checkpoint_file *checkpoints)
{
    FILE *stream = fopen(path, "we");
    ck_assert_ptr_nonnull(stream);
    for (const char *c = text; *c; c++)
        if (*c == '@')
            (void)fputs(line, stream);
        else
            (void)fputc(*c, stream);
    ck_assert_int_eq(fclose(stream), 0);
    return checkpoint_file_read(path, checkpoints);
}

START_TEST(test_lines)
{
    static const struct {
        const char *text;
        size_t count;
        int code;
    } cases[] = {
        {"@\n", 1, EXIT_CODE_OK},
        {"@", 1, EXIT_CODE_OK},
        {"@\n@\n", 2, EXIT_CODE_OK},
        {"<6>checkpoint @\n", 1, EXIT_CODE_OK},
        {"Jan 31 12:00:00 host auditrund[7]: info: checkpoint @\nother: 42\n\n", 1, EXIT_CODE_OK},
        {"message {\"a\": 1} of somebody\n@\n", 1, EXIT_CODE_OK},
        {"", 0, EXIT_CODE_NO_INPUT},
        {"nothing\n", 0, EXIT_CODE_NO_INPUT},
        {"@\n{\"writer\": 1}\n", 1, EXIT_CODE_NO_INPUT},
        {"checkpoint @@\n", 0, EXIT_CODE_NO_INPUT},
        {"@\ncheckpoint {\"key_id\":\"00", 1, EXIT_CODE_NO_INPUT},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_CLEANUP(checkpoint_file_free) struct checkpoint_file checkpoints = {0};
        ck_assert_msg(read_text(cases[i].text, &checkpoints) == cases[i].code, "%s", cases[i].text);
        ck_assert_msg(checkpoints.count == cases[i].count, "%s", cases[i].text);
        for (size_t k = 0; k < checkpoints.count; k++)
            ck_assert_mem_eq(&checkpoints.items[k], &made, sizeof(made));
    }
}
END_TEST

/* Longer than any checkpoint: passed over as a whole, and what follows is read. */
START_TEST(test_long_lines)
{
    AR_CLEANUP(checkpoint_file_free) struct checkpoint_file checkpoints = {0};
    AR_AUTO_FREE char *noise = unit_repeat("", "x", 9000, "\n@\n");
    ck_assert_int_eq(read_text(noise, &checkpoints), EXIT_CODE_OK);
    ck_assert_uint_eq(checkpoints.count, 1);
}
END_TEST

START_TEST(test_keys)
{
    AR_CLEANUP(text_list_free) struct text_list ids = {0};
    AR_AUTO_FREE char *public_pem = checkpoint_key_pem(key, false);
    AR_AUTO_FREE char *private_pem = checkpoint_key_pem(key, true);
    const char *const good[] = {public_pem, private_pem};
    for (size_t i = 0; i < AR_COUNT(good); i++) {
        AR_CLEANUP(checkpoint_file_free) struct checkpoint_file none = {0};
        ck_assert_int_eq(read_text(good[i], &none), EXIT_CODE_NO_INPUT);
        ck_assert_int_eq(checkpoint_file_read_key(path, &ids), EXIT_CODE_OK);
        ck_assert_str_eq(ids.items[i], made.key_id);
    }
    AR_CLEANUP(checkpoint_file_free) struct checkpoint_file none = {0};
    ck_assert_int_eq(read_text("@\n", &none), EXIT_CODE_OK);
    ck_assert_int_eq(checkpoint_file_read_key(path, &ids), EXIT_CODE_NO_INPUT);
    ck_assert_int_ne(checkpoint_file_read_key("/nowhere/at/all", &ids), EXIT_CODE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_checkpoint_file");
    TCase *tcase = tcase_create("cli_checkpoint_file");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, test_lines);
    tcase_add_test(tcase, test_long_lines);
    tcase_add_test(tcase, test_keys);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
