/*
 * config_value.h - parsers of single configuration values. Each writes to *out and returns 0, 1 when
 * the text is not of its form, or -ENOMEM. A list replaces what was there.
 */
#ifndef AUDITRUN_DAEMON_CONFIG_VALUE_H
#define AUDITRUN_DAEMON_CONFIG_VALUE_H

#include "protocol/text.h"

typedef int config_value_fn(const char *text, void *out);

config_value_fn config_value_bool;     /* bool: yes, no, true, false, on, off */
config_value_fn config_value_count;    /* int64_t: 1..1,000,000,000 */
config_value_fn config_value_size;     /* int64_t bytes: number with K, M, G (powers of 1024) */
config_value_fn config_value_duration; /* int64_t ms: number with ms, s, m, h; up to 24 h */
config_value_fn config_value_mode;     /* int64_t: octal file mode up to 0777 */
config_value_fn config_value_text;     /* char *: not empty */
config_value_fn config_value_path;     /* char *: absolute and canonical */
config_value_fn config_value_paths;    /* struct text_list of such paths, separated by blanks */
config_value_fn
    config_value_endpoints;          /* struct text_list of IP addresses, each maybe with a port */
config_value_fn config_value_ranges; /* struct config_ranges: words as 10.1.0.0/16 */
config_value_fn config_value_loopback;  /* char *: loopback address with a port */
config_value_fn config_value_words;     /* struct text_list: words as a shell splits them */
config_value_fn config_value_names;     /* struct config_names: words, or the one word "*" */
config_value_fn config_value_hosts;     /* the same, of host patterns (text_is_host_pattern) */
config_value_fn config_value_methods;   /* the same, of methods (text_is_api_method) */
config_value_fn config_value_secrets;   /* the same, of names of secrets */
config_value_fn config_value_units;     /* struct text_list of names of units, at least one */
config_value_fn config_value_users;     /* struct config_ids: user names or numbers */
config_value_fn config_value_groups;    /* struct config_ids: group names or numbers */
config_value_fn config_value_log_level; /* int: error, warning, info, debug */
config_value_fn config_value_network;   /* enum network_mode: none, allowlist, open */
config_value_fn config_value_files;     /* enum config_files: none, read, write */
config_value_fn config_value_when_down; /* enum config_when_down: refuse, keep */

#endif
