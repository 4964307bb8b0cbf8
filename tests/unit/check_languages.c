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

static const struct languages_places places = {
    .file = "/code/a", .program = "/code/p", .memory_mb = 64};

/* The one language of this content. */
static struct languages languages_of(const char *content)
{
    struct languages languages;
    struct languages_fault fault;
    ck_assert_msg(read_text(content, &languages, &fault) == 0, "%d: %s", fault.line, fault.problem);
    ck_assert_uint_eq(languages.count, 1);
    return languages;
}

static void expect_vector(char **vector, const char *const *expected)
{
    ck_assert_ptr_nonnull(vector);
    size_t count = 0;
    for (; expected[count]; count++) {
        ck_assert_ptr_nonnull(vector[count]);
        ck_assert_str_eq(vector[count], expected[count]);
    }
    ck_assert(vector[count] == NULL);
    languages_free_vector(vector);
}

START_TEST(command_is_filled)
{
    static char first[] = "{file}", *args[] = {first};
    static const char *const expected[] = {"/r", "/code/a", "-p", "/code/p,64", "{file}", NULL};
    const struct text_list list = {.items = args, .count = 1};
    struct languages languages = languages_of("[language x]\nfile = a\nsample = s\n"
                                              "run = /r {file} -p {program},{memory_mb}\n");
    const struct language *language = languages_find(&languages, "x");
    ck_assert(language && !languages_find(&languages, "y"));
    /* What a client sends is never replaced. */
    expect_vector(languages_command(&language->run, &places, &list), expected);
    languages_free(&languages);
}
END_TEST

START_TEST(environment_is_layered)
{
    static const char *const base[] = {"PATH=/bin", "HOME=/work", "LANG=C", NULL};
    static const char *const compiler[] = {"PATH=/bin",        "HOME=/code/p", "LANG=C",
                                           "OPTIONS=-m64 {x}", "EMPTY=",       NULL};
    static const char *const code[] = {
        "PATH=/bin", "HOME=/code/p", "LANG={file}", "OPTIONS=", "EMPTY=", "HOM=1", NULL};
    static char lang[] = "LANG", options[] = "OPTIONS", home[] = "HOM", file[] = "{file}",
                none[] = "", one[] = "1";
    struct request_variable variables[] = {{lang, file}, {options, none}, {home, one}};
    const struct spec spec = {.env = variables, .env_count = AR_COUNT(variables)};
    struct languages languages =
        languages_of(GOOD "env.HOME = {program}\n"
                          "env.OPTIONS = -m{memory_mb} {x}\nenv.EMPTY =\n");
    const struct language *language = &languages.items[0];
    expect_vector(languages_environment(language, &places, base, NULL), compiler);
    expect_vector(languages_environment(language, &places, base, &spec), code);
    languages_free(&languages);
}
END_TEST

START_TEST(memory_is_in_whole_mib)
{
    struct limits limits = {0};
    ck_assert_int_gt(languages_memory_mb(&limits), 1); /* of this machine */
    limits.has[LIMIT_MEMORY_BYTES] = true;
    static const int64_t cases[][2] = {
        {1, 1},       {1 << 20, 1},     {(2 << 20) - 1, 1},
        {2 << 20, 2}, {256 << 20, 256}, {INT64_C(1) << 52, INT64_C(1) << 32}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        limits.value[LIMIT_MEMORY_BYTES] = cases[i][0];
        ck_assert_int_eq(languages_memory_mb(&limits), cases[i][1]);
    }
}
END_TEST

/* /etc/passwd is on every machine. */
START_TEST(etc_is_what_is_there)
{
    struct text_list names;
    struct languages languages = languages_of(GOOD "etc = passw[c-e] 'no such thing-*'\n");
    ck_assert_int_eq(languages_etc(&languages, &names), 0);
    ck_assert_uint_eq(names.count, 1);
    ck_assert_str_eq(names.items[0], "passwd");
    text_list_free(&names);
    languages_free(&languages);
    languages = languages_of(GOOD);
    ck_assert_int_eq(languages_etc(&languages, &names), 0);
    ck_assert_uint_eq(names.count, 0);
    languages_free(&languages);
}
END_TEST

/* What we ship must be readable, and every language complete. */
START_TEST(shipped_languages_are_good)
{
    static const char *const names[] = {"bash",       "c",    "c++",       "go",  "java",
                                        "javascript", "lua",  "perl",      "php", "python",
                                        "ruby",       "rust", "typescript"};
    const char *top = getenv("AUDITRUN_SOURCE");
    char directory[4096];
    struct languages languages;
    struct languages_fault fault;
    (void)snprintf(directory, sizeof(directory), "%s/etc/languages.d", top ? top : ".");
    int result = languages_read(directory, &languages, &fault);
    ck_assert_msg(result == 0, "%s:%d: %s", fault.file, fault.line, fault.problem);
    ck_assert_uint_eq(languages.count, AR_COUNT(names));
    for (size_t i = 0; i < AR_COUNT(names); i++)
        ck_assert_msg(languages_find(&languages, names[i]) != NULL, "%s", names[i]);
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
        {"[language x]\nenv.A = 1\nenv.B = 1\nenv.A = 2\n", 4},
        {"[language x]\nenv. = 1\n", 2},
        {"[language x]\nenv.A-B = 1\n", 2},
        {"[language x]\nenv = 1\n", 2},
        {"[language x]\netc =\n", 2},
        {"[language x]\netc = a\netc = b\n", 3},
        {"[language x]\netc = a b c d e\n", 2},
        {"[language x]\netc = a/b\n", 2},
        {"[language x]\netc = ..\n", 2},
        {"[language x]\netc = .hidden\n", 2},
        {"[language x]\netc = *\n", 2},
        {"[language x]\netc = ''\n", 2},
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
    static const TTest **const tests[] = {&words_are_split,
                                          &open_quotes_are_refused,
                                          &command_is_filled,
                                          &environment_is_layered,
                                          &memory_is_in_whole_mib,
                                          &etc_is_what_is_there,
                                          &shipped_languages_are_good,
                                          &faults_name_the_line,
                                          &missing_directory_is_an_error,
                                          NULL};
    static const struct unit_case cases[] = {{"languages", tests}};
    return unit_main("languages", cases, AR_COUNT(cases));
}
