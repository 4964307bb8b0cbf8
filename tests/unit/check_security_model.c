/*
 * check_security_model.c - docs/security-model.md against the filter of system calls: each list, each
 * condition, in the order of the code, and nothing besides.
 */
#include "executors/namespace/filter.h"
#include "tests/unit/unit.h"

/* The next name of a list that is parted by blanks; "" at its end. */
static const char *next_name(const char **list, char name[64])
{
    *list += strspn(*list, " \n");
    size_t length = strcspn(*list, " \n");
    ck_assert_uint_lt(length, 64);
    memcpy(name, *list, length);
    name[length] = '\0';
    *list += length;
    return name;
}

static char *read_document(void)
{
    const char *source = getenv("AUDITRUN_SOURCE");
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/docs/security-model.md", source ? source : ".");
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, file), 0);
    (void)fclose(file);
    return text;
}

/* The words of the first block after this heading are the list. */
static void expect_block(const char *text, const char *heading, const char *list)
{
    char name[64], told[64];
    const char *block = strstr(text, heading);
    ck_assert_msg(block != NULL, "%s", heading);
    block = strstr(block, "```\n");
    ck_assert_msg(block != NULL, "%s", heading);
    for (block += 4;;) {
        ck_assert_msg(strcmp(next_name(&block, told), *next_name(&list, name) ? name : "```") == 0,
                      "%s: %s where the code has %s", heading, told, name);
        if (!*name)
            return;
    }
}

START_TEST(document_has_the_lists)
{
    AR_AUTO_FREE char *text = read_document();
    expect_block(text, "\n### Let through\n", filter_names(FILTER_ALLOWED));
    expect_block(text, "\n### Refused with EPERM\n", filter_names(FILTER_REFUSED));
    expect_block(text, "\n### Refused with EOPNOTSUPP\n", filter_names(FILTER_UNSUPPORTED));
}
END_TEST

static const char *answer_word(int error)
{
    return error == 0 ? "nothing is done, success is told" : strerrorname_np(error);
}

START_TEST(document_has_what_is_trusted)
{
    AR_AUTO_FREE char *text = read_document();
    char row[128];
    int error;
    const char *name, *rest = strstr(text, "\n### With the token of the slot\n");
    ck_assert_ptr_nonnull(rest);
    for (size_t i = 0; (name = filter_trusted(i, &error)) != NULL; i++) {
        (void)snprintf(row, sizeof(row), "\n| `%s` | %s |\n", name, strerrorname_np(error));
        rest = strstr(rest, row);
        ck_assert_msg(rest != NULL, "there is no row, or not in its place: %s", row);
    }
}
END_TEST

/* One row for each condition, in the order of the code; several that read the same are one row. */
START_TEST(document_has_the_conditions)
{
    AR_AUTO_FREE char *text = read_document();
    const char *table = strstr(text, "\n### Conditions\n"), *rest = table;
    char row[512];
    const char *name, *when, *where;
    int error;

    ck_assert_ptr_nonnull(rest);
    for (size_t i = 0; (name = filter_condition(i, &when, &error, &where)) != NULL; i++) {
        (void)snprintf(row, sizeof(row), "\n| `%s` | %s | %s | %s |\n", name, when, where,
                       answer_word(error));
        const char *earlier = strstr(table, row);
        if (earlier && earlier < rest)
            continue;
        const char *found = strstr(rest, row);
        ck_assert_msg(found != NULL, "there is no row, or not in its place: %s", row);
        rest = found + strlen(row) - 1;
    }
    ck_assert_msg(strncmp(rest, "\n| `", 4) != 0, "a row of the document is no condition: %.80s",
                  rest);
}
END_TEST

static const TTest **const document[] = {&document_has_the_lists, &document_has_what_is_trusted,
                                         &document_has_the_conditions, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"document", document}};
    return unit_main("security_model", cases, AR_COUNT(cases));
}
