/*
 * config.h - the configuration file as a checked, immutable struct.
 *
 * One table row a setting (config.c): section, key, parser, place, default. A file is read into a
 * new struct and checked whole before anyone uses it; every fault names file, line and key. Each
 * key is documented in auditrun.conf(5), which a test checks.
 */
#ifndef AUDITRUN_DAEMON_CONFIG_H
#define AUDITRUN_DAEMON_CONFIG_H

#include "protocol/address.h"
#include "protocol/digest.h"
#include "protocol/grant.h"

#include <sys/types.h>

#define CONFIG_MESSAGE_BYTES     512
#define CONFIG_MIN_JOURNAL_BYTES (1 << 20)
#define CONFIG_MAX_ITEMS         256 /* executors, clients, companies, languages: each at most */

enum config_when_down { CONFIG_REFUSE, CONFIG_KEEP };

/* Ids of users or groups. */
struct config_ids {
    int64_t *ids;
    size_t count;
};

/* "all" is "*". A list that is empty and not all allows nothing. */
struct config_names {
    bool all;
    struct text_list list;
};

struct config_executor {
    char *name;
    bool enabled;
    char *program; /* absolute path */
    struct text_list args;
    int64_t slots;   /* the most providers at a time */
    int64_t recycle; /* runs after which a provider is replaced */
};

enum config_files { CONFIG_FILES_NONE, CONFIG_FILES_READ, CONFIG_FILES_WRITE };

/* The most that a client may ask for (policy.h). */
struct config_ceilings {
    enum network_mode network;
    struct config_names hosts, data_api, secrets;
    enum config_files files;
    int64_t limits[LIMIT_COUNT]; /* 0: none */
};

struct config_client {
    char *name;
    struct config_ids uids, gids; /* matches when any of these does... */
    struct text_list units;       /* ...and one of these; what is empty is not looked at */
    struct config_names companies, purposes, executors, languages;
    struct config_ceilings ceilings;
    int64_t max_running; /* its runs at a time */
    bool switches;       /* may throw them, and see them */
};

struct config_company {
    char *name;
    bool enabled;
    struct text_list read, write; /* roots of the host paths that may be granted */
};

struct config_language {
    char *name;
    bool enabled;
};

struct config_ranges {
    struct address_range *items;
    size_t count;
};

/* What runs may reach, when they are granted a network. */
struct config_network {
    bool allowlist, open;         /* may be granted */
    struct text_list nameservers; /* addresses, with or without a port; empty: those of the host */
    struct config_ranges allowed; /* reached although they are not public */
    int64_t max_connections;      /* of a run, at a time */
    int64_t max_bytes;            /* of a run, both ways together */
    int64_t connect_timeout_ms;   /* looking up and connecting */
    int64_t idle_timeout_ms;      /* a connection over which nothing goes */
};

struct config_data_port {
    char *socket; /* of the service; NULL: there is none */
    int64_t max_request_bytes, max_answer_bytes;
    int64_t max_pending; /* calls of a run on their way */
    int64_t max_rate;    /* calls of a run in a second */
    int64_t timeout_ms;  /* of one call */
};

struct config_metrics {
    char *socket; /* path; NULL: none */
    int64_t mode;
    char *listen; /* loopback address and port; NULL: none */
};

struct config_secrets {
    char *directory;   /* with a folder for each company; NULL: none */
    bool credentials;  /* files auditrun.COMPANY.NAME among the unit's credentials */
    bool mask_secrets; /* in what runs put out */
};

struct config {
    int64_t holders;
    char **fixed; /* texts of the settings that a reload does not change (config_next_fixed) */
    char sha256[DIGEST_HEX_BYTES]; /* of the file */
    bool enabled;                  /* the global switch */
    int log_level;                 /* enum log_level (daemon/log.h) */
    int64_t drain_timeout_ms;
    char *socket_path;
    int64_t socket_mode;
    int64_t max_connections;
    int64_t max_line_bytes;
    int64_t max_pending;      /* requests in flight on one connection */
    int64_t stall_timeout_ms; /* a client that reads nothing for so long is cut off */
    char *ledger_url;
    int64_t ledger_deadline_ms;
    char *checkpoint_key; /* path of the private key; NULL: checkpoints are not made */
    int64_t checkpoint_every_ms;
    enum config_when_down when_down;
    char *journal_directory;
    int64_t journal_max_bytes;             /* over it no run is dispatched */
    struct limits limits;                  /* defaults of grants */
    int64_t max_wall_ms, max_output_bytes; /* the most that may be granted, whoever asks */
    struct config_network network;
    struct config_data_port data_port;
    struct config_secrets secrets;
    struct config_metrics metrics;
    int64_t max_running, max_queued, queue_deadline_ms;
    int64_t max_running_company, max_queued_company; /* of one company */
    struct config_executor *executors;
    size_t executor_count;
    struct config_client *clients;
    size_t client_count;
    struct config_company *companies;
    size_t company_count;
    struct config_language *languages;
    size_t language_count;
};

/* Reads and checks a file. 0 with *out held once by the caller (config_release), 1 when the file is
 * wrong or cannot be read (message, for the operator: file, line, key and what to do), -ENOMEM. */
int config_load(const char *path, const struct config **out,
                char message[CONFIG_MESSAGE_BYTES]) AR_MUST_CHECK;
/* A configuration lives as long as anybody needs it: a run keeps the one that it was received under,
 * whatever is in force when it ends. Returns config; for one thread. */
const struct config *config_hold(const struct config *config);
/* Freed with the last that lets go. NULL is nothing. */
void config_release(const struct config *config);

bool config_names_allow(const struct config_names *names, const char *name);
/* The client of that name, or NULL. */
const struct config_client *config_client(const struct config *config, const char *name);
/* The company's own section, or NULL: a company without one is enabled and has no host paths. */
const struct config_company *config_company(const struct config *config, const char *name);
bool config_language_enabled(const struct config *config, const char *name);

/* Settings that are only read at the start: from *i on (0 at first) the next that the two configurations
 * do not agree in. */
bool config_next_fixed(const struct config *one, const struct config *other, size_t *i,
                       const char **section, const char **key);

/* The settings table, for the test that holds it against the man page: the i-th row's section and
 * key, or false past the end. */
bool config_setting(size_t i, const char **section, const char **key);

#endif
