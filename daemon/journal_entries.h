/*
 * journal_entries.h - what of a journal is still open: id (of a run, of an event) to its last frame,
 * in memory, and the room that these will still need in the file.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_ENTRIES_H
#define AUDITRUN_DAEMON_JOURNAL_ENTRIES_H

#include "daemon/journal_frame.h"
#include "protocol/uuid7.h"

#include <sys/queue.h>

struct journal_entry {
    char id[UUID7_TEXT_BYTES];
    enum journal_type type; /* JOURNAL_INTENT, JOURNAL_KEPT, JOURNAL_EVENT or JOURNAL_SWITCH */
    size_t room;            /* bytes of the frames that will follow for it */
    int64_t since_us;       /* of a kept record: when its run ended, wall clock */
    size_t length;
    char *payload;                   /* of its frame; NUL-terminated */
    TAILQ_ENTRY(journal_entry) link; /* among those of its type, the oldest first */
};
TAILQ_HEAD(journal_entry_list, journal_entry);

struct journal_entries {
    void *tree; /* of struct journal_entry, by id */
    struct journal_entry_list list[JOURNAL_TYPE_END];
    size_t count[JOURNAL_TYPE_END];
    size_t bytes; /* of the frames of all */
    size_t room;  /* of all */
};

void journal_entries_init(struct journal_entries *entries);
void journal_entries_free(struct journal_entries *entries);

/* An entry that is in no collection yet; NULL when out of memory. */
struct journal_entry *journal_entries_make(const char *id, enum journal_type type,
                                           const char *payload, size_t length) AR_MUST_CHECK;
/* Frees one that is in no collection; NULL is harmless. */
void journal_entries_discard(struct journal_entry *entry);
/* Takes an entry over, in place of the one of that id, which is freed. 0; -ENOMEM, which is only
 * possible when there is none of that id, and leaves the entry to the caller. */
int journal_entries_put(struct journal_entries *entries, struct journal_entry *entry) AR_MUST_CHECK;
/* NULL when there is none. */
const struct journal_entry *journal_entries_find(const struct journal_entries *entries,
                                                 const char *id);
void journal_entries_remove(struct journal_entries *entries, const char *id);
/* How many there are of all types. */
size_t journal_entries_count(const struct journal_entries *entries);
/* In the order of ids, until visit returns other than 0, which is returned. */
int journal_entries_each(const struct journal_entries *entries,
                         int (*visit)(void *context, const struct journal_entry *entry),
                         void *context) AR_MUST_CHECK;

#endif
