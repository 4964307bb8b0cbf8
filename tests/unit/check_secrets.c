/*
 * check_secrets.c - secrets of a run's own company, from files that nobody else can read or choose; what
 * cannot be had is named; and nothing of a value stays in memory.
 */
#include "daemon/secrets.h"

#include "protocol/secret_file.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>

static char top[] = "/tmp/check-secrets.XXXXXX";
static char directory[64]; /* the secrets */

static const char *in_top(const char *path)
{
    static char paths[4][512];
    static unsigned next;
    char *to = paths[next++ % 4];
    (void)snprintf(to, sizeof paths[0], "%s/%s", top, path);
    return to;
}

static void write_file(const char *path, const void *data, size_t length, mode_t mode)
{
    int fd = open(in_top(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, length), (ssize_t)length);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(close(fd), 0);
}

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text), 0400);
}

static void make_folder(const char *path, mode_t mode)
{
    ck_assert_int_eq(mkdir(in_top(path), 0700), 0);
    ck_assert_int_eq(chmod(in_top(path), mode), 0);
}

static void set_up(void)
{
    (void)snprintf(top, sizeof top, "/tmp/check-secrets.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    (void)snprintf(directory, sizeof directory, "%s/secrets", top);
    make_folder("secrets", 0755);
    make_folder("secrets/acme", 0750);
    make_folder("secrets/globex", 0700);
    make_folder("credentials", 0700);
    write_text("secrets/acme/KEY", "the key of acme\n");
    write_text("secrets/acme/TOKEN", "token");
    write_text("secrets/globex/KEY", "the key of globex");
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void tear_down(void)
{
    ck_assert_int_eq(nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Loads names, given as one text with blanks between them. missing is written in the same way. */
static struct secrets *load(const struct config_secrets *given, const char *company,
                            const char *names, char missing[256])
{
    struct config_secrets config = {.directory = directory, .mask_secrets = true};
    struct text_list asked = {0}, lost = {0};
    struct secrets *secrets;
    AR_AUTO_FREE char *copy = strdup(names);
    char *rest = NULL;
    for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        ck_assert_int_eq(text_list_add(&asked, name), 0);
    int rc = secrets_load(given ? given : &config, company, &asked, &secrets, &lost);
    ck_assert_int_eq(rc, lost.count > 0 ? 1 : 0);
    ck_assert_int_eq(secrets != NULL, rc == 0);
    missing[0] = '\0';
    for (size_t i = 0, at = 0; i < lost.count; i++)
        at += (size_t)snprintf(missing + at, 256 - at, "%s%s", i ? " " : "", lost.items[i]);
    text_list_free(&asked);
    text_list_free(&lost);
    return secrets;
}

static void expect_missing(const char *company, const char *names, const char *wanted)
{
    char missing[256];
    struct secrets *secrets = load(NULL, company, names, missing);
    ck_assert_msg(strcmp(missing, wanted) == 0, "%s of %s: \"%s\", not \"%s\"", names, company,
                  missing, wanted);
    secrets_free(secrets);
}

/* What a provider reads; the content is name=value; of each. */
static void expect_file(const struct secrets *secrets, const char *wanted)
{
    char all[512] = "";
    size_t at = 0;
    int fd, rc;
    struct secret_entry entry;
    ck_assert_int_eq(secrets_file(secrets, &fd), 0);
    off_t size = lseek(fd, 0, SEEK_END);
    ck_assert_int_eq(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    size_t mapped = size > 0 ? (size_t)size : 1;
    char *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    const char *here = map;
    while ((rc = secret_file_next(&here, map + size, &entry)) == 0)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s=%.*s;", entry.name, (int)entry.length,
                               entry.value);
    ck_assert_int_eq(rc, 1);
    ck_assert_str_eq(all, wanted);
    ck_assert_int_eq(munmap(map, mapped), 0);
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(test_load)
{
    char missing[256];
    struct secrets *secrets = load(NULL, "acme", "KEY TOKEN", missing);
    ck_assert_str_eq(missing, "");
    expect_file(secrets, "KEY=the key of acme\n;TOKEN=token;");
    ck_assert_ptr_nonnull(secrets_mask(secrets));
    secrets_free(secrets);
    secrets = load(NULL, "globex", "KEY", missing);
    expect_file(secrets, "KEY=the key of globex;");
    secrets_free(secrets);
    secrets = load(NULL, "acme", "", missing);
    expect_file(secrets, "");
    secrets_free(secrets);
    secrets_free(NULL);
}
END_TEST

START_TEST(test_mask)
{
    char missing[256], *out;
    size_t length;
    struct config_secrets config = {.directory = directory};
    struct secrets *secrets = load(&config, "acme", "KEY", missing);
    ck_assert_ptr_nonnull(secrets);
    ck_assert_ptr_null(secrets_mask(secrets));
    secrets_free(secrets);
    secrets = load(NULL, "acme", "KEY", missing);
    struct mask_stream *stream = mask_stream_new(secrets_mask(secrets));
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(mask_stream_put(stream, "<the key of acme>", 17, &out, &length), 0);
    ck_assert_uint_eq(length, 5);
    ck_assert_mem_eq(out, "<***>", 5);
    free(out);
    mask_stream_free(stream);
    secrets_free(secrets);
}
END_TEST

START_TEST(test_companies_that_are_no_component)
{
    static const char *const companies[] = {
        "../globex", ".",      "..",     "acme/../globex", "acme/",  "",    "/acme",
        "ACME",      "nobody", "acme\n", "./acme",         "//acme", "...", "acme/."};
    AR_AUTO_FREE char *deep = unit_repeat("", "a/", 100, "");
    AR_AUTO_FREE char *dots = unit_repeat("", "../", 80, "etc");
    AR_AUTO_FREE char *wide = unit_repeat("", "a", 256, "");
    AR_AUTO_FREE char *absolute = strdup(in_top("secrets/acme"));
    for (size_t i = 0; i < AR_COUNT(companies); i++)
        expect_missing(companies[i], "KEY", "KEY");
    expect_missing(deep, "KEY", "KEY");
    expect_missing(dots, "passwd", "passwd");
    expect_missing(wide, "KEY", "KEY");
    expect_missing(absolute, "KEY", "KEY");
    expect_missing("acme", "KEY", "");
}
END_TEST

START_TEST(test_names_that_are_no_name)
{
    expect_missing("acme", "../globex/KEY /etc/passwd . KEY/ KEY\n TOKEN",
                   "../globex/KEY /etc/passwd . KEY/ KEY\n");
}
END_TEST

START_TEST(test_files_that_are_not_as_they_have_to_be)
{
    AR_AUTO_FREE char *big = calloc(1, SECRET_MAX_BYTES + 1);
    ck_assert_ptr_nonnull(big);
    ck_assert_int_eq(symlink("../globex/KEY", in_top("secrets/acme/LINK")), 0);
    ck_assert_int_eq(symlink("KEY", in_top("secrets/acme/NEAR")), 0);
    ck_assert_int_eq(symlink("acme", in_top("secrets/linked")), 0);
    write_file("secrets/acme/OPEN", "open", 4, 0644);
    write_file("secrets/acme/GROUP", "group", 5, 0440);
    write_file("secrets/acme/OTHER", "other", 5, 0401);
    write_file("secrets/acme/BIG", big, SECRET_MAX_BYTES + 1, 0400);
    write_file("secrets/acme/MOST", big, SECRET_MAX_BYTES, 0400);
    write_file("secrets/acme/EMPTY", "", 0, 0400);
    make_folder("secrets/acme/DIR", 0700);
    ck_assert_int_eq(mkfifo(in_top("secrets/acme/FIFO"), 0600), 0);
    expect_missing("acme", "LINK NEAR OPEN GROUP OTHER BIG EMPTY DIR FIFO GONE KEY",
                   "LINK NEAR OPEN GROUP OTHER BIG EMPTY DIR FIFO GONE");
    expect_missing("acme", "MOST KEY TOKEN", "");
    expect_missing("linked", "KEY", "KEY");
    if (geteuid() == 0) {
        write_text("secrets/acme/STRANGE", "of a stranger");
        ck_assert_int_eq(chown(in_top("secrets/acme/STRANGE"), 65534, 65534), 0);
        expect_missing("acme", "STRANGE", "STRANGE");
    }
}
END_TEST

START_TEST(test_folders_that_others_may_write_to)
{
    ck_assert_int_eq(chmod(in_top("secrets/acme"), 0770), 0);
    expect_missing("acme", "KEY", "KEY");
    expect_missing("globex", "KEY", "");
    ck_assert_int_eq(chmod(in_top("secrets"), 0757), 0);
    expect_missing("globex", "KEY", "KEY");
}
END_TEST

START_TEST(test_credentials)
{
    char missing[256];
    struct config_secrets config = {.directory = directory, .credentials = true};
    write_file("credentials/auditrun.acme.KEY", "a credential", 12, 0400);
    write_file("credentials/auditrun.a.b.ONLY", "only here", 9, geteuid() == 0 ? 0440 : 0400);
    write_file("credentials/auditrun.acme.OPEN", "open", 4, 0444);
    write_text("secrets/acme/OPEN", "closed");
    ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    struct secrets *secrets = load(&config, "acme", "KEY", missing);
    expect_file(secrets, "KEY=the key of acme\n;");
    secrets_free(secrets);
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", in_top("credentials"), 1), 0);
    secrets = load(&config, "acme", "KEY TOKEN", missing);
    expect_file(secrets, "KEY=a credential;TOKEN=token;");
    secrets_free(secrets);
    ck_assert_ptr_null(load(&config, "acme", "KEY OPEN", missing));
    ck_assert_str_eq(missing, "OPEN");
    config.directory = NULL;
    secrets = load(&config, "a.b", "ONLY", missing);
    expect_file(secrets, "ONLY=only here;");
    secrets_free(secrets);
    ck_assert_ptr_null(load(&config, "a", "b.ONLY TOKEN", missing));
    ck_assert_str_eq(missing, "b.ONLY TOKEN");
    config.credentials = false;
    ck_assert_ptr_null(load(&config, "a.b", "ONLY", missing));
}
END_TEST

/* ---- wiping ------------------------------------------------------------------------------------- */

#define CANARY_BYTES 48

/* The canary is never whole in memory but where the code under test has it: it is told by its
 * complement. */
static bool has_canary(const char *block, size_t length, const unsigned char *complement)
{
    for (size_t i = 0; i + CANARY_BYTES <= length; i++) {
        size_t same = 0;
        while (same < CANARY_BYTES && block[i + same] == (char)~complement[same])
            same++;
        if (same == CANARY_BYTES)
            return true;
    }
    return false;
}

#define SHADOW_BYTES (1ul << 30) /* what is bigger is the sanitizer's own account of memory */

/* Looks through all writable memory of this process, which is read with a copy of its own. */
static bool is_in_memory(const unsigned char *complement)
{
    static char block[1 << 16];
    bool found = false;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ck_assert(maps && memory >= 0);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[1] != 'w' ||
            to - from > SHADOW_BYTES)
            continue;
        for (; from < to; from += sizeof block - CANARY_BYTES) {
            if (from + sizeof block > (unsigned long)block && from < (unsigned long)(block + 1))
                continue;
            size_t wanted = to - from < sizeof block ? to - from : sizeof block;
            ssize_t n = pread(memory, block, wanted, (off_t)from);
            found |= n > 0 && has_canary(block, (size_t)n, complement);
            memset(block, 0, sizeof block);
        }
    }
    ck_assert_int_eq(fclose(maps), 0);
    ck_assert_int_eq(close(memory), 0);
    return found;
}

START_TEST(test_wiped)
{
    struct unit_random random = unit_random_new();
    unsigned char complement[CANARY_BYTES];
    char missing[256], *out;
    size_t length;
    char *canary = malloc(CANARY_BYTES);
    for (size_t i = 0; i < CANARY_BYTES; i++) {
        canary[i] = (char)('a' + unit_random_below(&random, 26));
        complement[i] = (unsigned char)~canary[i];
    }
    write_file("secrets/acme/CANARY", canary, CANARY_BYTES, 0400);
    explicit_bzero(canary, CANARY_BYTES);
    ck_assert(!is_in_memory(complement));
    struct secrets *secrets = load(NULL, "acme", "CANARY", missing);
    ck_assert(is_in_memory(complement));
    struct mask_stream *stream = mask_stream_new(secrets_mask(secrets));
    for (size_t i = 0; i < CANARY_BYTES; i++) {
        canary[0] = (char)~complement[i];
        ck_assert_int_eq(mask_stream_put(stream, canary, 1, &out, &length), 0);
        free(out);
    }
    mask_stream_free(stream);
    secrets_free(secrets);
    ck_assert(!is_in_memory(complement));
    free(canary);
}
END_TEST

static const TTest **const tests[] = {&test_load,
                                      &test_mask,
                                      &test_companies_that_are_no_component,
                                      &test_names_that_are_no_name,
                                      &test_files_that_are_not_as_they_have_to_be,
                                      &test_folders_that_others_may_write_to,
                                      &test_credentials,
                                      &test_wiped,
                                      NULL};

int main(void)
{
    Suite *suite = suite_create("secrets");
    TCase *tcase = tcase_create("secrets");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (const TTest **const *test = tests; *test; test++)
        tcase_add_test(tcase, **test);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
