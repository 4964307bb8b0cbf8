/*
 * check_secret_file.c - what is written is read, in place; anything else is no file of secrets.
 */
#include "protocol/secret_file.h"

#include "tests/unit/unit.h"

START_TEST(test_round_trip)
{
    static const char longest[] =
        "N234567890123456789012345678901234567890123456789012345678901234";
    static const char value[] = "line\nA 5\n\0and more";
    AR_AUTO_FREE char *big = calloc(1, SECRET_MAX_BYTES);
    AR_AUTO_FREE char *file = calloc(1, SECRET_MAX_BYTES + 1024);
    const struct secret_entry in[] = {
        {"A", value, sizeof value}, {"_b", "x", 1}, {"N2", big, SECRET_MAX_BYTES}};
    char head[SECRET_HEAD_BYTES], *to = file;
    ck_assert(big && file);
    for (size_t i = 0; i < AR_COUNT(in); i++) {
        secret_file_head(i == 1 ? longest : in[i].name, in[i].length, head);
        to = mempcpy(mempcpy(to, head, strlen(head)), in[i].value, in[i].length);
    }
    const char *at = file;
    for (size_t i = 0; i < AR_COUNT(in); i++) {
        struct secret_entry out;
        ck_assert_int_eq(secret_file_next(&at, to, &out), 0);
        ck_assert_str_eq(out.name, i == 1 ? longest : in[i].name);
        ck_assert_uint_eq(out.length, in[i].length);
        ck_assert_mem_eq(out.value, in[i].value, in[i].length);
        ck_assert(out.value > file && out.value < to);
    }
    struct secret_entry none;
    ck_assert_int_eq(secret_file_next(&at, to, &none), 1);
}
END_TEST

START_TEST(test_nothing_else)
{
    static const char *const files[] = {
        "A",
        "A ",
        "A 1",
        "A 1\n",
        "A 2\nx",
        "A 0\n",
        "A 01\nx",
        "A -1\nx",
        "A +1\nx",
        "A  1\nx",
        "A 1 \nx",
        "A 1\rx",
        " 1\nx",
        "\n",
        "1A 1\nx",
        "../A 1\nx",
        "A/B 1\nx",
        "A 65537\n",
        "A 18446744073709551617\nx",
        "A 99999999999999999999999999999999\nx",
        "N2345678901234567890123456789012345678901234567890123456789012345 1\nx"};
    for (size_t i = 0; i < AR_COUNT(files); i++) {
        const char *at = files[i];
        struct secret_entry out;
        ck_assert_msg(secret_file_next(&at, at + strlen(at), &out) == -EPROTO, "%s", files[i]);
        ck_assert_ptr_eq(at, files[i]);
    }
    static const char nul[] = "A\0B 1\nx";
    const char *at = nul;
    struct secret_entry out;
    ck_assert_int_eq(secret_file_next(&at, nul + sizeof nul - 1, &out), -EPROTO);
}
END_TEST

/* Each beginning of a good file is one itself only where an entry ends. */
START_TEST(test_every_beginning)
{
    static const char file[] = "A 3\nabcB_2 10\n0123456789";
    for (size_t length = 1; length < sizeof file - 1; length++) {
        AR_AUTO_FREE char *part = malloc(length);
        ck_assert_ptr_nonnull(part);
        memcpy(part, file, length);
        const char *at = part;
        struct secret_entry out;
        int rc = 0;
        while (rc == 0)
            rc = secret_file_next(&at, part + length, &out);
        ck_assert_int_eq(rc, length == 7 ? 1 : -EPROTO);
    }
}
END_TEST

static const TTest **const tests[] = {&test_round_trip, &test_nothing_else, &test_every_beginning,
                                      NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"secret_file", tests}};
    return unit_main("secret_file", cases, AR_COUNT(cases));
}
