/*
 * schema.c - from the URL of a ledger to what makes it ready.
 */
#include "sinks/schema.h"

#include "sinks/postgres_schema.h"
#include "sinks/sqlite_schema.h"
#include "sinks/url.h"

int schema_init_with(const char *url, const struct schema_options *options, int *applied,
                     char message[SCHEMA_MESSAGE_BYTES])
{
    const char *rest;
    *applied = 0;
    message[0] = '\0';
    switch (url_parse(url, &rest)) {
    case URL_SQLITE:
        return sqlite_schema_init(rest, applied, message);
    case URL_POSTGRES:
        return postgres_schema_init(rest, options, applied, message);
    case URL_UNKNOWN:
        break;
    }
    return 2;
}

int schema_init(const char *url, int *applied, char message[SCHEMA_MESSAGE_BYTES])
{
    static const struct schema_options none;
    return schema_init_with(url, &none, applied, message);
}

int schema_status(const char *url, struct schema_status *status, char message[SCHEMA_MESSAGE_BYTES])
{
    const char *rest;
    *status = (struct schema_status){0};
    message[0] = '\0';
    int rc = 2;
    switch (url_parse(url, &rest)) {
    case URL_SQLITE:
        rc = sqlite_schema_status(rest, status, message);
        break;
    case URL_POSTGRES:
        rc = postgres_schema_status(rest, status, message);
        break;
    case URL_UNKNOWN:
        break;
    }
    if (rc != 0)
        schema_status_free(status);
    return rc;
}

void schema_status_free(struct schema_status *status)
{
    text_list_free(&status->roles_missing);
    text_list_free(&status->event_triggers_missing);
    text_list_free(&status->changes);
}
