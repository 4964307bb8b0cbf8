/*
 * options.h - the daemon's command line.
 */
#ifndef AUDITRUN_DAEMON_OPTIONS_H
#define AUDITRUN_DAEMON_OPTIONS_H

#include "protocol/base.h"

/* What to do; all but the first print to the standard output and exit. */
enum options_task {
    OPTIONS_SERVE,
    OPTIONS_CHECK_CONFIG,
    OPTIONS_CHECK_JOURNAL,
    OPTIONS_REPAIR_JOURNAL
};

struct options {
    const char *config_path;
    enum options_task task;
};

/* 0; 1 when there is nothing more to do (help and version have been printed); 2 for bad usage, which
 * has been explained on standard error. */
int options_parse(int argc, char **argv, struct options *out) AR_MUST_CHECK;

#endif
