/*
 * exit_code.h - the exit codes of the command line, all of them.
 *
 * The code's own when it ended by itself; otherwise a fixed number, mostly from sysexits(3), so that
 * a script can tell "the code failed" from "it was not allowed" from "nobody was there". What the
 * numbers leave open (code may exit with 77 too) is told by --json. auditrun(1) lists them.
 */
#ifndef AUDITRUN_CLI_EXIT_CODE_H
#define AUDITRUN_CLI_EXIT_CODE_H

#include "protocol/vocabulary.h"

enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_NO = 1,             /* verify: a bad row; cancel: nothing was cancelled */
    EXIT_CODE_STORE = 2,          /* ledger, verify: the store failed */
    EXIT_CODE_USAGE = 64,         /* the command line is wrong */
    EXIT_CODE_PARAMS = 65,        /* the daemon refused the request (-32602) */
    EXIT_CODE_NO_INPUT = 66,      /* a local file cannot be read; no such record */
    EXIT_CODE_UNAVAILABLE = 69,   /* the daemon cannot be reached, or went away */
    EXIT_CODE_PROVIDER = 70,      /* provider_failed, interrupted */
    EXIT_CODE_SYSTEM = 71,        /* out of memory and the like, on this side */
    EXIT_CODE_AUDIT = 73,         /* the run ended, but its record is not in the ledger */
    EXIT_CODE_OUTPUT = 74,        /* output could not be written on this side */
    EXIT_CODE_REFUSED = 75,       /* refused: try again later */
    EXIT_CODE_PROTOCOL = 76,      /* an answer that makes no sense, or an error of the protocol */
    EXIT_CODE_NOT_ALLOWED = 77,   /* capability_denied, unauthorized, disabled, forbidden */
    EXIT_CODE_CONFIG = 78,        /* the configuration file is bad */
    EXIT_CODE_TIMED_OUT = 124,    /* timed_out, as timeout(1) says it */
    EXIT_CODE_LIMIT = 125,        /* limit_exceeded */
    EXIT_CODE_NOT_COMPILED = 126, /* failed, compile_failed */
    EXIT_CODE_SIGNAL = 128,       /* failed, killed_by_signal: + the signal's number */
    EXIT_CODE_CANCELLED = 130     /* cancelled; interrupted from the keyboard */
};

/* For a terminal status. exit_code and signal are the code's own (0 when there is none). */
int exit_code_for_run(enum status status, enum reason reason, int exit_code, int signal);

/* For the code of a JSON-RPC error. */
int exit_code_for_error(long long rpc_code);

#endif
