/*
 * check_questions.c - every statement that docs/ledger.md shows, on a real ledger with rows in it.
 */
#include "tests/lib/ledger.h"

#include <check.h>
#include <string.h>

static struct postgres_server *server;

static char *read_document(void)
{
    const char *top = getenv("AUDITRUN_SOURCE");
    AR_AUTO_FREE char *path = NULL;
    char *text = NULL;
    size_t length = 0;
    ck_assert_int_gt(asprintf(&path, "%s/docs/ledger.md", top ? top : "."), 0);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    ck_assert(getdelim(&text, &length, '\0', file) > 0);
    (void)fclose(file);
    return text;
}

/* The next block of SQL: its text, ended with NUL in place; NULL when there are no more. */
static char *next_block(char **at)
{
    static const char begin[] = "\n```sql\n", end[] = "\n```";
    char *block = strstr(*at, begin);
    if (!block)
        return NULL;
    block += sizeof(begin) - 1;
    char *stop = strstr(block, end);
    ck_assert_ptr_nonnull(stop);
    *stop = '\0';
    *at = stop + 1;
    return block;
}

START_TEST(test_statements_of_the_document)
{
    struct ledger ledger;
    struct records_chain chains[2];
    AR_AUTO_FREE char *text = read_document();
    char *at = text, *block;
    size_t count = 0;
    ledger_begin_with_rows(&ledger, LEDGER_POSTGRES, server, chains);
    while ((block = next_block(&at))) {
        ck_assert_msg(postgres_run(ledger.url, block), "%s", block);
        count++;
    }
    ck_assert_uint_ge(count, 10);
    ledger_end(&ledger);
}
END_TEST

int main(void)
{
    server = postgres_start();
    if (!server)
        return 1;
    Suite *suite = suite_create("questions");
    TCase *tcase = tcase_create("questions");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, test_statements_of_the_document);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    postgres_free(server);
    return failed == 0 ? 0 : 1;
}
