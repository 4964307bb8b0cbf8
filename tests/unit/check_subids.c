/*
 * check_subids.c - /etc/subuid as it is, as it should not be, and as nobody would write it; and what
 * may not be in a range of ids.
 */
#include "executors/namespace/idrange.h"
#include "protocol/subids.h"
#include "tests/unit/unit.h"

#define USER 1001

static int find(const char *text, const char *name, uint32_t number, uint32_t *id)
{
    /* fmemopen(3) wants a byte. */
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text) + 1, "r");
    ck_assert_ptr_nonnull(file);
    *id = 0;
    int result = subids_find(file, name, USER, number, id);
    (void)fclose(file);
    return result;
}

START_TEST(test_ids_are_found)
{
    static const char text[] = "root:100000:65536\n"
                               "1001:200000:2\n"
                               "ada:300000:65536\n"
                               "ada2:1:1\n"
                               "1001:4294967293:2\n";
    static const struct {
        const char *name;
        uint32_t number, id;
        int result;
    } cases[] = {{"ada", 0, 200000, 0},
                 {"ada", 1, 200001, 0},
                 {"ada", 2, 300000, 0},
                 {"ada", 65537, 365535, 0},
                 {"ada", 65538, 4294967293, 0},
                 {"ada", 65539, 4294967294, 0},
                 {"ada", 65540, 0, 2},
                 {"ada", UINT32_MAX, 0, 2},
                 {NULL, 0, 200000, 0},
                 {NULL, 2, 4294967293, 0},
                 {NULL, 4, 0, 2},
                 {"ad", 3, 4294967294, 0}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        uint32_t id;
        ck_assert_int_eq(find(text, cases[i].name, cases[i].number, &id), cases[i].result);
        ck_assert_uint_eq(id, cases[i].id);
    }
}
END_TEST

START_TEST(test_lines_that_are_none)
{
    static const char *const lines[] = {"",
                                        "\n",
                                        "ada",
                                        "ada:",
                                        "ada:1",
                                        "ada:1:",
                                        "ada::1",
                                        ":1:1",
                                        "ada:1:0",
                                        "ada:-1:1",
                                        "ada:+1:1",
                                        "ada: 1:1",
                                        "ada:1:1 ",
                                        "ada:1:1:1",
                                        "ada:0x1:1",
                                        "ada:4294967295:1",
                                        "ada:4294967294:2",
                                        "ada:1:4294967295",
                                        "ada:99999999999999999999:1",
                                        " ada:1:1",
                                        "#ada:1:1",
                                        "Ada:1:1",
                                        "1001x:1:1"};
    uint32_t id;
    for (size_t i = 0; i < AR_COUNT(lines); i++)
        ck_assert_msg(find(lines[i], "ada", 0, &id) == 1, "%s", lines[i]);
    /* Nothing of a line that is too long is read, and the next one is. */
    AR_AUTO_FREE char *flood = unit_repeat("ada:1:", "1", 2000, "\nada:7:1");
    ck_assert_int_eq(find(flood, "ada", 0, &id), 0);
    ck_assert_uint_eq(id, 7);
    AR_AUTO_FREE char *tail = unit_repeat("x", "x", 510, "ada:1:1\nada:7:1");
    ck_assert_int_eq(find(tail, "ada", 0, &id), 0);
    ck_assert_uint_eq(id, 7);
}
END_TEST

START_TEST(test_ids_are_listed)
{
    static const char text[] = "ada:10:2\nroot:1:9\nx\n1001:20:3\nada:30:4\n";
    struct subids_range ranges[3];
    for (size_t max = 0; max <= AR_COUNT(ranges); max++) {
        FILE *file = fmemopen((void *)(uintptr_t)text, sizeof text, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(subids_list(file, "ada", USER, ranges, max), max);
        (void)fclose(file);
    }
    ck_assert_uint_eq(ranges[0].first, 10);
    ck_assert_uint_eq(ranges[0].count, 2);
    ck_assert_uint_eq(ranges[1].first, 20);
    ck_assert_uint_eq(ranges[1].count, 3);
    ck_assert_uint_eq(ranges[2].first, 30);
    ck_assert_uint_eq(ranges[2].count, 4);
}
END_TEST

static bool taken(const char *text, uint32_t first, uint32_t count)
{
    static const struct subids_owner owners[] = {{"root", 0}, {"auditrun", 900}};
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text) + 1, "r");
    ck_assert_ptr_nonnull(file);
    bool result = subids_are_taken(file, first, count, owners, AR_COUNT(owners));
    (void)fclose(file);
    return result;
}

START_TEST(test_ranges_that_overlap)
{
    ck_assert(!taken("ada:100:10\n", 90, 10));
    ck_assert(taken("ada:100:10\n", 90, 11));
    ck_assert(taken("ada:100:10\n", 109, 10));
    ck_assert(!taken("ada:100:10\n", 110, 10));
    ck_assert(taken("ada:100:10\n", 103, 2));
    ck_assert(taken("ada:100:10\n", 1, 4294967294));
    ck_assert(!taken("root:100:10\nauditrun:100:10\n900:100:10\n0:1:1000\n", 100, 10));
    ck_assert(taken("root:100:10\nada:100:10\n", 100, 10));
    ck_assert(!taken("", 100, 10));
}
END_TEST

START_TEST(test_ranges_that_cannot_be)
{
    static const struct {
        struct idrange range;
        bool right;
    } cases[] = {{{1, 1}, true},           {{1, 65533}, true},          {{1, 65534}, false},
                 {{65534, 1}, false},      {{65535, 1}, true},          {{0, 1}, false},
                 {{1, 0}, false},          {{4294967294, 1}, true},     {{4294967294, 2}, false},
                 {{4294967295, 1}, false}, {{65535, UINT32_MAX}, false}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        const char *problem;
        ck_assert_msg(idrange_is_right(&cases[i].range, &problem) == cases[i].right, "case %zu", i);
        ck_assert((problem == NULL) == cases[i].right);
    }
}
END_TEST

/* Root is a user everywhere. */
START_TEST(test_users_are_seen)
{
    const struct idrange users = {0, 1}, nobody = {2100000000, 65536};
    const char *problem;
    ck_assert(!idrange_is_free(&users, &problem));
    ck_assert_ptr_nonnull(problem);
    ck_assert_msg(idrange_is_free(&nobody, &problem), "%s", problem);
}
END_TEST

static const TTest **const files[] = {&test_ids_are_found, &test_lines_that_are_none,
                                      &test_ids_are_listed, NULL};
static const TTest **const ranges[] = {&test_ranges_that_overlap, &test_ranges_that_cannot_be,
                                       &test_users_are_seen, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"files", files}, {"ranges", ranges}};
    return unit_main("subids", cases, AR_COUNT(cases));
}
