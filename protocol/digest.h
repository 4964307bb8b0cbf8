/*
 * digest.h - SHA-256 (OpenSSL libcrypto), its hex form, and the step of a hash chain.
 */
#ifndef AUDITRUN_PROTOCOL_DIGEST_H
#define AUDITRUN_PROTOCOL_DIGEST_H

#include "protocol/base.h"

#define DIGEST_HEX_BYTES 65 /* 64 lower-case hex digits and NUL */

/* Hex SHA-256 of data. 0 or -EIO when libcrypto fails. */
int digest_hex(const void *data, size_t length, char out[DIGEST_HEX_BYTES]) AR_MUST_CHECK;

/* row_hash = SHA-256(prev_hash_hex "\n" canonical); prev_hash_hex is 64 zeros for the first row. */
int digest_chain(const char *previous_hex, const char *canonical, size_t length,
                 char out[DIGEST_HEX_BYTES]) AR_MUST_CHECK;

/* Is it 64 lower-case hex digits? */
bool digest_is_hex(const char *text);

/* 64 zeros: the predecessor of the first row of every chain. */
extern const char digest_zero[DIGEST_HEX_BYTES];

#endif
