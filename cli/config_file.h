/*
 * config_file.h - the two settings of the daemon's configuration that the command line needs.
 *
 * [socket] path and [ledger] url. Everything else in the file is the daemon's business
 * (`auditrund --check-config` judges it). A file that was not named and is not there is no fault:
 * the defaults hold.
 */
#ifndef AUDITRUN_CLI_CONFIG_FILE_H
#define AUDITRUN_CLI_CONFIG_FILE_H

#include "protocol/base.h"

#define CONFIG_FILE_MESSAGE_BYTES 512

struct config_file {
    char *socket_path; /* NULL: not set */
    char *ledger_url;  /* NULL: not set */
};

/* path NULL: AUDITRUN_CONFIG, or else the installed default. 0 with *out owned
 * (config_file_free); 1 when the file cannot be read or is not of its form (message); -ENOMEM. */
int config_file_read(const char *path, struct config_file *out,
                     char message[CONFIG_FILE_MESSAGE_BYTES]) AR_MUST_CHECK;
void config_file_free(struct config_file *config);

/* Where the daemon listens: option, AUDITRUN_SOCKET, [socket] path of the configuration, default.
 * Reads the configuration only when it is needed. *out is malloc'd. Returns as above. */
int config_file_socket(const char *option, const char *config_path, char **out,
                       char message[CONFIG_FILE_MESSAGE_BYTES]) AR_MUST_CHECK;

/* Which ledger: option, or [ledger] url of the configuration. As above, 1 also when none is set. */
int config_file_ledger(const char *option, const char *config_path, char **out,
                       char message[CONFIG_FILE_MESSAGE_BYTES]) AR_MUST_CHECK;

#endif
