/*
 * url.h - the forms of a ledger's URL; the same for sinks, readers and schema_init().
 */
#ifndef AUDITRUN_SINKS_URL_H
#define AUDITRUN_SINKS_URL_H

#include "protocol/base.h"

enum url_store { URL_UNKNOWN, URL_SQLITE, URL_POSTGRES };

/* "sqlite:/path/to/ledger.db" and "postgres:" before a libpq connection string or URL; a libpq URL
 * alone ("postgresql://host/db", "postgres://host/db") is taken too. *rest borrows from url: the
 * path, or what libpq is to be given. */
enum url_store url_parse(const char *url, const char **rest);

#endif
