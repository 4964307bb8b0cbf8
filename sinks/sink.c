/*
 * sink.c - from the URL of a ledger to the sink that serves it.
 */
#include "sinks/sink.h"

#include "sinks/postgres.h"
#include "sinks/sqlite.h"
#include "sinks/url.h"

int sink_open(const char *url, struct event_base *base, struct sink **out)
{
    const char *rest;
    switch (url_parse(url, &rest)) {
    case URL_SQLITE:
        return sqlite_open(rest, base, out);
    case URL_POSTGRES:
        return postgres_open(rest, base, out);
    case URL_UNKNOWN:
        break;
    }
    return 1;
}
