/*
 * schema.c - from the URL of a ledger to what makes it ready.
 */
#include "sinks/schema.h"

#include "sinks/postgres_schema.h"
#include "sinks/sqlite_schema.h"
#include "sinks/url.h"

int schema_init(const char *url, int *applied, char message[SCHEMA_MESSAGE_BYTES])
{
    const char *rest;
    *applied = 0;
    message[0] = '\0';
    switch (url_parse(url, &rest)) {
    case URL_SQLITE:
        return sqlite_schema_init(rest, applied, message);
    case URL_POSTGRES:
        return postgres_schema_init(rest, applied, message);
    case URL_UNKNOWN:
        break;
    }
    return 2;
}
