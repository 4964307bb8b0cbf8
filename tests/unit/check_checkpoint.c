/*
 * check_checkpoint.c - signatures over heads: by our own keys, by the key of RFC 8032, and none by a
 * key that is not the one.
 */
#include "protocol/checkpoint.h"
#include "protocol/text.h"
#include "tests/suite.h"

#include <check.h>
#include <string.h>

#define WRITER "019a0000-0000-7000-8000-0000000000aa"

static struct checkpoint of_some_head(void)
{
    struct checkpoint checkpoint = {.seq = 42, .made_at = 1700000000000001};
    memcpy(checkpoint.writer, WRITER, sizeof(WRITER));
    memset(checkpoint.row_hash, 'a', DIGEST_HEX_BYTES - 1);
    return checkpoint;
}

static struct checkpoint_key *new_key(void)
{
    struct checkpoint_key *key;
    ck_assert_int_eq(checkpoint_key_make(&key), 0);
    return key;
}

START_TEST(test_text)
{
    struct checkpoint checkpoint = of_some_head();
    char text[CHECKPOINT_TEXT_BYTES];
    memset(checkpoint.key_id, 'b', DIGEST_HEX_BYTES - 1);
    checkpoint_text(&checkpoint, text);
    ck_assert_str_eq(text, "auditrun checkpoint 1\nwriter:" WRITER "\nseq:42\nrow_hash:"
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
                           "made_at:2023-11-14T22:13:20.000001Z\nkey_id:"
                           "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n");
}
END_TEST

START_TEST(test_sign_and_verify)
{
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = new_key();
    struct checkpoint checkpoint = of_some_head();
    ck_assert_int_eq(checkpoint_sign(&checkpoint, key), 0);
    ck_assert_str_eq(checkpoint.key_id, checkpoint_key_id(key));
    ck_assert_int_eq(checkpoint_verify(&checkpoint), 0);
    struct checkpoint changed = checkpoint;
    changed.seq++;
    ck_assert_int_eq(checkpoint_verify(&changed), 1);
    changed = checkpoint;
    changed.row_hash[0] = 'b';
    ck_assert_int_eq(checkpoint_verify(&changed), 1);
    changed = checkpoint;
    changed.made_at++;
    ck_assert_int_eq(checkpoint_verify(&changed), 1);
    changed = checkpoint;
    changed.writer[0] = '1';
    ck_assert_int_eq(checkpoint_verify(&changed), 1);
    changed = checkpoint;
    changed.signature[5] ^= 1;
    ck_assert_int_eq(checkpoint_verify(&changed), 1);
}
END_TEST

/* The key_id of one key and the public half of another: a signature by the other does not count. */
START_TEST(test_key_id_names_the_key)
{
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = new_key(), *other = new_key();
    struct checkpoint checkpoint = of_some_head();
    ck_assert_int_eq(checkpoint_sign(&checkpoint, other), 0);
    memcpy(checkpoint.key_id, checkpoint_key_id(key), DIGEST_HEX_BYTES);
    ck_assert_int_eq(checkpoint_verify(&checkpoint), 1);
}
END_TEST

START_TEST(test_pem)
{
    AR_CLEANUP(checkpoint_key_cleanup)
    struct checkpoint_key *key = new_key(), *private_half = NULL, *public_half = NULL;
    AR_AUTO_FREE char *private_pem = checkpoint_key_pem(key, true),
                      *public_pem = checkpoint_key_pem(key, false);
    ck_assert_ptr_nonnull(strstr(private_pem, "-----BEGIN PRIVATE KEY-----"));
    ck_assert_ptr_nonnull(strstr(public_pem, "-----BEGIN PUBLIC KEY-----"));
    ck_assert_int_eq(checkpoint_key_read(private_pem, strlen(private_pem), &private_half), 0);
    ck_assert_int_eq(checkpoint_key_read(public_pem, strlen(public_pem), &public_half), 0);
    ck_assert(checkpoint_key_can_sign(private_half));
    ck_assert(!checkpoint_key_can_sign(public_half));
    ck_assert_str_eq(checkpoint_key_id(private_half), checkpoint_key_id(key));
    ck_assert_str_eq(checkpoint_key_id(public_half), checkpoint_key_id(key));
    struct checkpoint checkpoint = of_some_head();
    ck_assert_int_eq(checkpoint_sign(&checkpoint, private_half), 0);
    ck_assert_int_eq(checkpoint_verify(&checkpoint), 0);
    ck_assert_int_eq(checkpoint_sign(&checkpoint, public_half), -EIO);
}
END_TEST

/* What is no Ed25519 key: rubbish, nothing, another curve (X25519, made by openssl genpkey). */
START_TEST(test_no_key)
{
    static const char *const texts[] = {
        "",
        "rubbish",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VuBCIEIHgAO4sNtA2sCHwzJ3dVPM6E2LB0I3VPRvMBDBvrvhRW\n"
        "-----END PRIVATE KEY-----\n",
    };
    for (size_t i = 0; i < AR_COUNT(texts); i++) {
        struct checkpoint_key *key = NULL;
        ck_assert_msg(checkpoint_key_read(texts[i], strlen(texts[i]), &key) == 1, "%zu", i);
    }
    AR_AUTO_FREE char *big = calloc(1, CHECKPOINT_MAX_PEM_BYTES + 1);
    struct checkpoint_key *key = NULL;
    ck_assert_int_eq(checkpoint_key_read(big, CHECKPOINT_MAX_PEM_BYTES + 1, &key), 1);
}
END_TEST

/* The public key of the first test vector of RFC 8032, section 7.1, as SubjectPublicKeyInfo. */
START_TEST(test_key_of_the_rfc)
{
    static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
                              "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
                              "-----END PUBLIC KEY-----\n";
    static const char raw[] = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = NULL;
    char hex[2 * CHECKPOINT_KEY_BYTES + 1];
    ck_assert_int_eq(checkpoint_key_read(pem, strlen(pem), &key), 0);
    text_to_hex(checkpoint_key_public(key), CHECKPOINT_KEY_BYTES, hex);
    ck_assert_str_eq(hex, raw);
}
END_TEST

START_TEST(test_json_there_and_back)
{
    static const char *const members[] = {"writer", "seq",        "row_hash", "made_at",
                                          "key_id", "public_key", "signature"};
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = new_key();
    struct checkpoint checkpoint = of_some_head(), again;
    struct fault fault = {0};
    ck_assert_int_eq(checkpoint_sign(&checkpoint, key), 0);
    AR_AUTO_JSON json_t *value = checkpoint_to_json(&checkpoint);
    ck_assert_int_eq(checkpoint_from_json(value, &again, &fault), 0);
    ck_assert_int_eq(checkpoint_verify(&again), 0);
    ck_assert_str_eq(again.writer, checkpoint.writer);
    for (size_t i = 0; i < AR_COUNT(members); i++) {
        AR_AUTO_JSON json_t *without = json_deep_copy(value);
        ck_assert_int_eq(json_object_del(without, members[i]), 0);
        fault = (struct fault){0};
        ck_assert_int_eq(checkpoint_from_json(without, &again, &fault), 1);
        ck_assert_str_eq(fault.path + 1, members[i]);
        if (i == 1)
            continue;
        ck_assert_int_eq(json_object_set_new(without, members[i], json_string("Z")), 0);
        ck_assert_int_eq(checkpoint_from_json(without, &again, &fault), 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tcase = tcase_create("checkpoint");
    tcase_add_test(tcase, test_text);
    tcase_add_test(tcase, test_sign_and_verify);
    tcase_add_test(tcase, test_key_id_names_the_key);
    tcase_add_test(tcase, test_pem);
    tcase_add_test(tcase, test_no_key);
    tcase_add_test(tcase, test_key_of_the_rfc);
    tcase_add_test(tcase, test_json_there_and_back);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
