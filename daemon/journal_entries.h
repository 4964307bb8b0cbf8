/*
 * journal_entries.h - what of a journal is still open: run id to frame, in memory.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_ENTRIES_H
#define AUDITRUN_DAEMON_JOURNAL_ENTRIES_H

#include "daemon/journal_file.h"
#include "protocol/uuid7.h"

struct journal_entry {
    char run_id[UUID7_TEXT_BYTES];
    enum journal_type type; /* JOURNAL_INTENT or JOURNAL_KEPT */
    char *payload;
    size_t length;
};

struct journal_entries {
    void *tree; /* of struct journal_entry, by run id */
    size_t count;
    size_t bytes;
};

/* Adds or replaces; 0 or -ENOMEM. */
int journal_entries_put(struct journal_entries *entries, const char *run_id, enum journal_type type,
                        const char *payload, size_t length) AR_MUST_CHECK;
void journal_entries_remove(struct journal_entries *entries, const char *run_id);
/* In the order of run ids, until visit returns other than 0, which is returned. */
int journal_entries_each(const struct journal_entries *entries,
                         int (*visit)(void *context, const struct journal_entry *entry),
                         void *context) AR_MUST_CHECK;
void journal_entries_free(struct journal_entries *entries);

#endif
