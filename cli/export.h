/*
 * export.h - writes what a ledger has to a stream, chain by chain, from one moment of it.
 */
#ifndef AUDITRUN_CLI_EXPORT_H
#define AUDITRUN_CLI_EXPORT_H

#include "cli/export_place.h"
#include "cli/progress.h"
#include "cli/run_filter.h"

struct export
{
    const char *url;           /* borrowed, as all texts */
    struct reader *reader;     /* of url */
    struct run_filter filter;  /* checked */
    struct export_places from; /* what is not written again */
    bool csv;                  /* runs only, as RFC 4180 says; else JSON lines */
    bool titles;               /* with csv: a line of them first */
    FILE *out;
    struct progress progress;
    int64_t runs, events, checkpoints, keys; /* how many were written */
};

/* Is the whole ledger, or a whole chain, asked for? Then JSON lines have more than the runs. */
bool export_is_whole(const struct run_filter *filter);

/* Returns an exit code, after the complaint. The stream may have failed: ferror() tells. */
int export_write(struct export *export) AR_MUST_CHECK;

#endif
