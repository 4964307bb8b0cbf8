/*
 * options.h - the daemon's command line.
 */
#ifndef AUDITRUN_DAEMON_OPTIONS_H
#define AUDITRUN_DAEMON_OPTIONS_H

#include "protocol/base.h"

struct options {
    const char *config_path;
    bool check_config; /* check the configuration and exit */
};

/* 0; 1 when there is nothing more to do (help and version have been printed); 2 for bad usage, which
 * has been explained on standard error. */
int options_parse(int argc, char **argv, struct options *out) AR_MUST_CHECK;

#endif
