/*
 * config_entries.h - an INI file as a flat list of entries with their lines, before anything is
 * known about what they mean. Reading by inih; a line that begins with a blank continues the value
 * before.
 */
#ifndef AUDITRUN_DAEMON_CONFIG_ENTRIES_H
#define AUDITRUN_DAEMON_CONFIG_ENTRIES_H

#include "protocol/digest.h"

struct config_entry {
    char *section; /* as between the brackets: "executor namespace" */
    char *key;
    char *value;
    int line;
};

struct config_entries {
    struct config_entry *items;
    size_t count;
    char sha256[DIGEST_HEX_BYTES]; /* of the bytes of the file, as sha256sum(1) gives it */
};

/* 0 with *out owned (config_entries_free); 1 when the file cannot be read or is no INI file: *line is
 * where (0: the file as a whole, errno says why) and *what a constant text; -ENOMEM. */
int config_entries_read(const char *path, struct config_entries *out, int *line,
                        const char **what) AR_MUST_CHECK;
void config_entries_free(struct config_entries *entries);

#endif
