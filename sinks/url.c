/*
 * url.c - see url.h.
 */
#include "sinks/url.h"

#include <string.h>

static bool after(const char *url, const char *prefix, const char **rest)
{
    size_t length = strlen(prefix);
    if (strncmp(url, prefix, length) != 0)
        return false;
    *rest = url + length;
    return true;
}

enum url_store url_parse(const char *url, const char **rest)
{
    if (after(url, "sqlite:", rest))
        return **rest ? URL_SQLITE : URL_UNKNOWN;
    if (after(url, "postgres://", rest) || after(url, "postgresql://", rest)) {
        *rest = url;
        return URL_POSTGRES;
    }
    if (after(url, "postgres:", rest))
        return URL_POSTGRES;
    return URL_UNKNOWN;
}
