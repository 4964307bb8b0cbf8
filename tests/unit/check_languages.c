/*
 * check_languages.c - the configuration of languages: words, placeholders, files and their faults.
 */
#include "executors/common/languages.h"
#include "tests/unit/unit.h"

#include <sys/stat.h>

#define GOOD "[language x]\nfile = a\nrun = /r {file} -p {program}\nsample = s\n"

/* A directory with one file of this content, read; then gone. */
static int read_text(const char *content, struct languages *languages,
                     struct languages_fault *fault)
{
    char directory[] = "/tmp/auditrun-languages.XXXXXX", path[64], other[64];
    ck_assert(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof(path), "%s/one.conf", directory);
    (void)snprintf(other, sizeof(other), "%s/one.conf.bak", directory);
    FILE *file = fopen(path, "we");
    FILE *ignored = fopen(other, "we");
    ck_assert(file && ignored && fputs(content, file) >= 0 && fputs("nonsense", ignored) >= 0);
    (void)fclose(file);
    (void)fclose(ignored);
    int result = languages_read(directory, languages, fault);
    (void)unlink(path);
    (void)unlink(other);
    (void)rmdir(directory);
    return result;
}

START_TEST(words_are_split)
{
    static const struct {
        const char *command;
        const char *words[5];
    } cases[] = {
        {"", {NULL}},
        {" \t ", {NULL}},
        {"a", {"a"}},
        {" a  b\tc ", {"a", "b", "c"}},
        {"a 'b c' \"d e\"", {"a", "b c", "d e"}},
        {"a'b'\"c\"d", {"abcd"}},
        {"'' \"\" x", {"", "", "x"}},
        {"a\\ b \\\\ \\'", {"a b", "\\", "'"}},
        {"'a\\b' \"a\\b\" \"a\\\"b\"", {"a\\b", "a\\b", "a\"b"}},
        {"$(x) `y` *", {"$(x)", "`y`", "*"}},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct text_list words;
        size_t count = 0;
        ck_assert_int_eq(languages_split(cases[i].command, &words), 0);
        for (; cases[i].words[count]; count++) {
            ck_assert_uint_lt(count, words.count);
            ck_assert_str_eq(words.items[count], cases[i].words[count]);
        }
        ck_assert_uint_eq(words.count, count);
        text_list_free(&words);
    }
}
END_TEST

START_TEST(open_quotes_are_refused)
{
    static const char *const commands[] = {"'", "a \"b", "a 'b\" c", "\"a\\\""};
    for (size_t i = 0; i < AR_COUNT(commands); i++) {
        struct text_list words;
        ck_assert_int_eq(languages_split(commands[i], &words), 1);
    }
}
END_TEST

START_TEST(vector_is_filled)
{
    struct languages languages;
    struct languages_fault fault;
    static char first[] = "{file}", *args[] = {first};
    const struct text_list list = {.items = args, .count = 1};
    ck_assert_int_eq(read_text(GOOD, &languages, &fault), 0);
    ck_assert_uint_eq(languages.count, 1);
    const struct language *language = languages_find(&languages, "x");
    ck_assert(language && !languages_find(&languages, "y"));
    char **vector = languages_vector(&language->run, "/code/a", "/code/p", &list);
    ck_assert(vector != NULL);
    static const char *const expected[] = {"/r", "/code/a", "-p", "/code/p", "{file}"};
    for (size_t i = 0; i < AR_COUNT(expected); i++)
        ck_assert_str_eq(vector[i], expected[i]); /* what a client sends is never replaced */
    ck_assert(vector[AR_COUNT(expected)] == NULL);
    languages_free_vector(vector);
    languages_free(&languages);
}
END_TEST

START_TEST(faults_name_the_line)
{
    static const struct {
        const char *text;
        int line;
    } cases[] = {
        {"[language X]\nfile = a\n", 2},
        {"[other]\nfile = a\n", 2},
        {"[language x]\nfile = a/b\n", 2},
        {"[language x]\nfile = ..\n", 2},
        {"[language x]\nrun = sh {file}\n", 2},
        {"[language x]\nrun = /bin/sh 'x\n", 2},
        {"[language x]\nfile = a\nfile = b\n", 3},
        {"[language x]\nspeed = 1\n", 2},
        {"[language x]\nfile\n", 2},
        {"[language x]\nfile = a\nrun = /r\n", 0},
        {"[language x]\nfile = a\nsample = s\n", 0},
        {GOOD "#12345678901234567890123456789012345678901234567890123456789012345678901234567890"
              "1234567890123456789012345678901234567890123456789012345678901234567890123456789012"
              "345678901234567890123456789012345678901234567890\n",
         5},
    };
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        struct languages languages;
        struct languages_fault fault;
        ck_assert_int_eq(read_text(cases[i].text, &languages, &fault), 1);
        ck_assert_str_eq(fault.file, "one.conf");
        ck_assert_msg(fault.line == cases[i].line, "case %zu: line %d, not %d (%s)", i, fault.line,
                      cases[i].line, fault.problem);
        ck_assert_uint_eq(languages.count, 0);
    }
}
END_TEST

START_TEST(missing_directory_is_an_error)
{
    struct languages languages;
    struct languages_fault fault;
    ck_assert_int_eq(languages_read("/nonexistent/languages.d", &languages, &fault), -ENOENT);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {
        &words_are_split,      &open_quotes_are_refused,       &vector_is_filled,
        &faults_name_the_line, &missing_directory_is_an_error, NULL};
    static const struct unit_case cases[] = {{"languages", tests}};
    return unit_main("languages", cases, AR_COUNT(cases));
}
