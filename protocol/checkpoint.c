/*
 * checkpoint.c - Ed25519 over the head of a chain, by libcrypto.
 */
#include "protocol/checkpoint.h"

#include "protocol/text.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

struct checkpoint_key {
    EVP_PKEY *pkey;
    bool can_sign;
    unsigned char public_key[CHECKPOINT_KEY_BYTES];
    char id[DIGEST_HEX_BYTES];
};

static void context_cleanup(EVP_MD_CTX **context)
{
    EVP_MD_CTX_free(*context);
}

static void bio_cleanup(BIO **bio)
{
    BIO_free(*bio);
}

/* ---- keys --------------------------------------------------------------------------------------- */

/* Takes over pkey, also when it fails. 0, 1 when it is no Ed25519 key, -ENOMEM. */
static int key_new(EVP_PKEY *pkey, bool can_sign, struct checkpoint_key **out)
{
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = calloc(1, sizeof(*key));
    size_t length = sizeof(key->public_key);
    if (!key) {
        EVP_PKEY_free(pkey);
        return -ENOMEM;
    }
    key->pkey = pkey;
    key->can_sign = can_sign;
    if (EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_public_key(pkey, key->public_key, &length) != 1 ||
        length != sizeof(key->public_key))
        return 1;
    int rc = digest_hex(key->public_key, sizeof(key->public_key), key->id);
    if (rc == 0)
        *out = AR_TAKE(key);
    return rc;
}

int checkpoint_key_make(struct checkpoint_key **out)
{
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (!pkey)
        return -EIO;
    int rc = key_new(pkey, true, out);
    return rc > 0 ? -EIO : rc;
}

/* No key is asked for by a prompt: one with a passphrase cannot be used. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

int checkpoint_key_read(const char *pem, size_t length, struct checkpoint_key **out)
{
    if (length > CHECKPOINT_MAX_PEM_BYTES)
        return 1;
    AR_CLEANUP(bio_cleanup) BIO *bio = BIO_new_mem_buf(pem, (int)length);
    if (!bio)
        return -ENOMEM;
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    if (pkey)
        return key_new(pkey, true, out);
    (void)BIO_reset(bio);
    pkey = PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
    return pkey ? key_new(pkey, false, out) : 1;
}

void checkpoint_key_free(struct checkpoint_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

bool checkpoint_key_can_sign(const struct checkpoint_key *key)
{
    return key->can_sign;
}

const char *checkpoint_key_id(const struct checkpoint_key *key)
{
    return key->id;
}

const unsigned char *checkpoint_key_public(const struct checkpoint_key *key)
{
    return key->public_key;
}

char *checkpoint_key_pem(const struct checkpoint_key *key, bool private_key)
{
    AR_CLEANUP(bio_cleanup) BIO *bio = BIO_new(BIO_s_secmem());
    char *text;
    if (!bio ||
        (private_key ? !PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL)
                     : !PEM_write_bio_PUBKEY(bio, key->pkey)))
        return NULL;
    long length = BIO_get_mem_data(bio, &text);
    char *copy = length > 0 ? malloc((size_t)length + 1) : NULL;
    if (!copy)
        return NULL;
    memcpy(copy, text, (size_t)length);
    copy[length] = '\0';
    return copy;
}

/* ---- signatures --------------------------------------------------------------------------------- */

void checkpoint_text(const struct checkpoint *checkpoint, char out[CHECKPOINT_TEXT_BYTES])
{
    char made_at[ROW_TIME_BYTES];
    row_time_text(checkpoint->made_at, made_at);
    (void)snprintf(out, CHECKPOINT_TEXT_BYTES,
                   "auditrun checkpoint 1\nwriter:%s\nseq:%lld\nrow_hash:%s\nmade_at:%s\n"
                   "key_id:%s\n",
                   checkpoint->writer, (long long)checkpoint->seq, checkpoint->row_hash, made_at,
                   checkpoint->key_id);
}

int checkpoint_sign(struct checkpoint *checkpoint, const struct checkpoint_key *key)
{
    AR_CLEANUP(context_cleanup) EVP_MD_CTX *context = EVP_MD_CTX_new();
    char text[CHECKPOINT_TEXT_BYTES];
    size_t length = sizeof(checkpoint->signature);
    memcpy(checkpoint->key_id, key->id, sizeof(checkpoint->key_id));
    memcpy(checkpoint->public_key, key->public_key, sizeof(checkpoint->public_key));
    checkpoint_text(checkpoint, text);
    if (!context || !key->can_sign ||
        EVP_DigestSignInit(context, NULL, NULL, NULL, key->pkey) != 1 ||
        EVP_DigestSign(context, checkpoint->signature, &length, (unsigned char *)text,
                       strlen(text)) != 1 ||
        length != sizeof(checkpoint->signature))
        return -EIO;
    return 0;
}

static int check_signature(const struct checkpoint *checkpoint, EVP_PKEY *pkey)
{
    AR_CLEANUP(context_cleanup) EVP_MD_CTX *context = EVP_MD_CTX_new();
    char text[CHECKPOINT_TEXT_BYTES];
    checkpoint_text(checkpoint, text);
    if (!context || EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) != 1)
        return -EIO;
    return EVP_DigestVerify(context, checkpoint->signature, sizeof(checkpoint->signature),
                            (unsigned char *)text, strlen(text)) == 1
               ? 0
               : 1;
}

int checkpoint_verify(const struct checkpoint *checkpoint)
{
    char id[DIGEST_HEX_BYTES];
    int rc = digest_hex(checkpoint->public_key, sizeof(checkpoint->public_key), id);
    if (rc < 0)
        return rc;
    if (strcmp(id, checkpoint->key_id) != 0)
        return 1;
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, checkpoint->public_key,
                                                 sizeof(checkpoint->public_key));
    if (!pkey)
        return 1;
    rc = check_signature(checkpoint, pkey);
    EVP_PKEY_free(pkey);
    return rc;
}

/* ---- JSON --------------------------------------------------------------------------------------- */

json_t *checkpoint_to_json(const struct checkpoint *checkpoint)
{
    char made_at[ROW_TIME_BYTES], public_key[2 * CHECKPOINT_KEY_BYTES + 1],
        signature[2 * CHECKPOINT_SIGNATURE_BYTES + 1];
    row_time_text(checkpoint->made_at, made_at);
    text_to_hex(checkpoint->public_key, sizeof(checkpoint->public_key), public_key);
    text_to_hex(checkpoint->signature, sizeof(checkpoint->signature), signature);
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "writer", checkpoint->writer, "seq",
                     (json_int_t)checkpoint->seq, "row_hash", checkpoint->row_hash, "made_at",
                     made_at, "key_id", checkpoint->key_id, "public_key", public_key, "signature",
                     signature);
}

static int read_hex(const json_t *value, const char *member, size_t bytes, unsigned char *out,
                    struct fault *fault)
{
    const char *text = "";
    if (json_read_line(value, member, NULL, 2 * bytes, 2 * bytes, &text, fault))
        return 1;
    return text_from_hex(text, bytes, out) ? 0 : json_fault(fault, NULL, member, PROBLEM_MALFORMED);
}

static int read_digest(const json_t *value, const char *member, char out[DIGEST_HEX_BYTES],
                       struct fault *fault)
{
    unsigned char bytes[(DIGEST_HEX_BYTES - 1) / 2];
    if (read_hex(value, member, sizeof(bytes), bytes, fault))
        return 1;
    text_to_hex(bytes, sizeof(bytes), out);
    return 0;
}

int checkpoint_from_json(const json_t *value, struct checkpoint *out, struct fault *fault)
{
    static const struct json_member members[] = {
        {"writer", true}, {"seq", true},        {"row_hash", true},  {"made_at", true},
        {"key_id", true}, {"public_key", true}, {"signature", true},
    };
    const char *writer = "", *made_at = "";
    *out = (struct checkpoint){0};
    if (json_check_object(value, members, AR_COUNT(members), NULL, fault) ||
        json_read_line(value, "writer", NULL, UUID7_TEXT_BYTES - 1, UUID7_TEXT_BYTES - 1, &writer,
                       fault) ||
        json_read_integer(value, "seq", NULL, 1, INT64_MAX, &out->seq, fault) ||
        read_digest(value, "row_hash", out->row_hash, fault) ||
        json_read_line(value, "made_at", NULL, 1, ROW_TIME_BYTES, &made_at, fault) ||
        read_digest(value, "key_id", out->key_id, fault) ||
        read_hex(value, "public_key", sizeof(out->public_key), out->public_key, fault) ||
        read_hex(value, "signature", sizeof(out->signature), out->signature, fault))
        return 1;
    if (!uuid7_is_uuid(writer))
        return json_fault(fault, NULL, "writer", PROBLEM_MALFORMED);
    if (!row_time_parse(made_at, &out->made_at))
        return json_fault(fault, NULL, "made_at", PROBLEM_MALFORMED);
    memcpy(out->writer, writer, sizeof(out->writer));
    return 0;
}
