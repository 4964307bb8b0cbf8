/*
 * check_digest.c - SHA-256 against published vectors, and the step of the chain.
 */
#include "protocol/digest.h"
#include "tests/unit/unit.h"

START_TEST(test_vectors)
{
    static const char *const vectors[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[DIGEST_HEX_BYTES];
    for (size_t i = 0; i < AR_COUNT(vectors); i++) {
        ck_assert_int_eq(digest_hex(vectors[i][0], strlen(vectors[i][0]), hex), 0);
        ck_assert_str_eq(hex, vectors[i][1]);
    }
    ck_assert_int_eq(digest_hex(NULL, 0, hex), 0);
    ck_assert_str_eq(hex, vectors[0][1]);
}
END_TEST

START_TEST(test_chain_is_hash_of_both)
{
    static const char canonical[] = "run_id:x\nlate:false\n";
    char joined[256], expected[DIGEST_HEX_BYTES], hex[DIGEST_HEX_BYTES];
    (void)snprintf(joined, sizeof(joined), "%s\n%s", digest_zero, canonical);
    ck_assert_int_eq(digest_hex(joined, strlen(joined), expected), 0);
    ck_assert_int_eq(digest_chain(digest_zero, canonical, strlen(canonical), hex), 0);
    ck_assert_str_eq(hex, expected);
    ck_assert_int_eq(digest_chain(hex, canonical, strlen(canonical), expected), 0);
    ck_assert_str_ne(hex, expected);
}
END_TEST

START_TEST(test_form)
{
    ck_assert_uint_eq(strlen(digest_zero), 64);
    ck_assert(digest_is_hex(digest_zero));
    ck_assert(!digest_is_hex(""));
    ck_assert(!digest_is_hex(digest_zero + 1));
    ck_assert(!digest_is_hex("E3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    ck_assert(!digest_is_hex("g3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    ck_assert(!digest_is_hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8550"));
}
END_TEST

static const TTest **const tests[] = {&test_vectors, &test_chain_is_hash_of_both, &test_form, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"digest", tests}};
    return unit_main("digest", cases, AR_COUNT(cases));
}
