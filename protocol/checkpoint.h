/*
 * checkpoint.h - a signature over the head of a chain (Ed25519, RFC 8032), kept where the database's
 * owner cannot reach it, so that a history that was rewritten as a whole shows.
 *
 * What is signed is the text
 *     auditrun checkpoint 1\nwriter:W\nseq:N\nrow_hash:H\nmade_at:T\nkey_id:K\n
 * K being the hex SHA-256 of the 32 bytes of the public key. Keys are PEM (PKCS #8 and
 * SubjectPublicKeyInfo), so that `openssl pkey` and `openssl pkeyutl -rawin` can work with them.
 */
#ifndef AUDITRUN_PROTOCOL_CHECKPOINT_H
#define AUDITRUN_PROTOCOL_CHECKPOINT_H

#include "protocol/row.h"

#define CHECKPOINT_KEY_BYTES       32
#define CHECKPOINT_SIGNATURE_BYTES 64
#define CHECKPOINT_TEXT_BYTES      384
#define CHECKPOINT_MAX_PEM_BYTES   4096

struct checkpoint {
    char writer[UUID7_TEXT_BYTES];
    int64_t seq; /* from 1 */
    char row_hash[DIGEST_HEX_BYTES];
    int64_t made_at; /* us since the epoch */
    char key_id[DIGEST_HEX_BYTES];
    unsigned char public_key[CHECKPOINT_KEY_BYTES];
    unsigned char signature[CHECKPOINT_SIGNATURE_BYTES];
};

/* A key pair, or the public half alone. */
struct checkpoint_key;

/* 0 with *out owned, -EIO when libcrypto fails. */
int checkpoint_key_make(struct checkpoint_key **out) AR_MUST_CHECK;
/* From the PEM text of a private or a public key. 0 with *out owned, 1 when it is no Ed25519 key,
 * -ENOMEM. */
int checkpoint_key_read(const char *pem, size_t length, struct checkpoint_key **out) AR_MUST_CHECK;
void checkpoint_key_free(struct checkpoint_key *key);
static inline void checkpoint_key_cleanup(struct checkpoint_key **key)
{
    checkpoint_key_free(*key);
}
bool checkpoint_key_can_sign(const struct checkpoint_key *key);
const char *checkpoint_key_id(const struct checkpoint_key *key);
const unsigned char *checkpoint_key_public(const struct checkpoint_key *key);
/* PEM of the private key (which must be there), or of the public one: malloc'd, NULL when libcrypto
 * fails. The caller wipes a private one. */
char *checkpoint_key_pem(const struct checkpoint_key *key, bool private_key) AR_MUST_CHECK;

/* The text that is signed. */
void checkpoint_text(const struct checkpoint *checkpoint, char out[CHECKPOINT_TEXT_BYTES]);
/* Fills key_id, public_key and signature for the other members. 0, -EIO. */
int checkpoint_sign(struct checkpoint *checkpoint, const struct checkpoint_key *key) AR_MUST_CHECK;
/* By the public key that it carries, which must be the one that key_id names: 0 right, 1 wrong,
 * -EIO. Whether that key is to be trusted is the caller's question. */
int checkpoint_verify(const struct checkpoint *checkpoint) AR_MUST_CHECK;

/* {"writer", "seq", "row_hash", "made_at", "key_id", "public_key", "signature"}; the last two in
 * hex. */
json_t *checkpoint_to_json(const struct checkpoint *checkpoint) AR_MUST_CHECK;
/* 0 with *out filled, 1 with the fault set. */
int checkpoint_from_json(const json_t *value, struct checkpoint *out,
                         struct fault *fault) AR_MUST_CHECK;

#endif
