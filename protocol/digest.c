/*
 * digest.c - SHA-256 through libcrypto's EVP interface.
 *
 * Pure: no state outlives a call. A failure of libcrypto (out of memory, a provider that is not
 * there) is -EIO, for nothing can be recorded without a digest.
 */
#include "protocol/digest.h"

#include "protocol/text.h"

#include <openssl/evp.h>
#include <string.h>

#define DIGEST_BYTES 32

const char digest_zero[DIGEST_HEX_BYTES] =
    "0000000000000000000000000000000000000000000000000000000000000000";

static void free_context(EVP_MD_CTX **context)
{
    EVP_MD_CTX_free(*context);
}

int digest_hex(const void *data, size_t length, char out[DIGEST_HEX_BYTES])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned int sum_length = 0;
    if (EVP_Digest(length > 0 ? data : "", length, sum, &sum_length, EVP_sha256(), NULL) != 1 ||
        sum_length != DIGEST_BYTES)
        return -EIO;
    text_to_hex(sum, DIGEST_BYTES, out);
    return 0;
}

int digest_chain(const char *previous_hex, const char *canonical, size_t length,
                 char out[DIGEST_HEX_BYTES])
{
    AR_CLEANUP(free_context) EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned int sum_length = 0;
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(context, previous_hex, strlen(previous_hex)) != 1 ||
        EVP_DigestUpdate(context, "\n", 1) != 1 ||
        EVP_DigestUpdate(context, canonical, length) != 1 ||
        EVP_DigestFinal_ex(context, sum, &sum_length) != 1 || sum_length != DIGEST_BYTES)
        return -EIO;
    text_to_hex(sum, DIGEST_BYTES, out);
    return 0;
}

bool digest_is_hex(const char *text)
{
    size_t length = strspn(text, "0123456789abcdef");
    return length == DIGEST_HEX_BYTES - 1 && text[length] == '\0';
}
