/*
 * run_filter.c - see run_filter.h.
 */
#include "cli/run_filter.h"

#include "cli/exit_code.h"
#include "cli/message.h"

#include <string.h>

#define PREFIX_MINIMUM 4

/* A whole hash is the store's to compare; a prefix is ours. */
static int check_hash(const char *title, struct run_filter *filter)
{
    const char *hash = filter->code_hash;
    if (!hash)
        return EXIT_CODE_OK;
    if (digest_is_hex(hash)) {
        filter->filter.code_sha256 = hash;
        filter->code_hash = NULL;
        return EXIT_CODE_OK;
    }
    size_t length = strlen(hash);
    if (length < PREFIX_MINIMUM || length > DIGEST_HEX_BYTES - 1 ||
        strspn(hash, "0123456789abcdef") != length)
        return message_usage(title, "--code-hash takes 4 to 64 lower-case hex digits");
    return EXIT_CODE_OK;
}

int run_filter_check(const char *title, struct run_filter *filter)
{
    enum status status = STATUS_NONE;
    if (filter->filter.status && !status_from_word(filter->filter.status, &status))
        return message_usage(title, "--status takes one of the statuses: succeeded, failed, "
                                    "timed_out, limit_exceeded, cancelled, capability_denied, "
                                    "unauthorized, disabled, refused, provider_failed, "
                                    "interrupted");
    if (filter->filter.writer && !uuid7_is_uuid(filter->filter.writer))
        return message_usage(title, "--writer takes a UUID in lower case");
    return check_hash(title, filter);
}

bool run_filter_matches(const struct run_filter *filter, const struct record *record)
{
    return !filter->code_hash ||
           strncmp(record->code_sha256, filter->code_hash, strlen(filter->code_hash)) == 0;
}
