/*
 * journal_store.h - the journal's file together with what is open in it, and the room that this needs.
 *
 * An intent is only taken together with room for everything that its run may still have to write: its
 * kept record and the note that it is settled. So a full disk, or the size limit, means that no run
 * starts, and never that a run which has started cannot be recorded.
 *
 * Not for several threads at a time: it belongs to the journal's thread once that runs.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_STORE_H
#define AUDITRUN_DAEMON_JOURNAL_STORE_H

#include "daemon/journal_state.h"

#include <stddef.h>

struct journal_store;

#define JOURNAL_MESSAGE_BYTES 512
/* What a record may be longer than the intent of its run. */
#define JOURNAL_GROWTH_BYTES 1024

/* Opens the folder and reads what was left. 0 with *out owned; 1 when it must not be used (message,
 * for the operator); -ENOMEM. Beyond max_bytes (0: no
 * limit) nothing is taken that could be refused. */
int journal_store_open(const char *directory, int64_t max_bytes, struct journal_store **out,
                       char message[JOURNAL_MESSAGE_BYTES]) AR_MUST_CHECK;
void journal_store_close(struct journal_store *store);

/* What was read, and written since. */
const struct journal_state *journal_store_state(const struct journal_store *store);

/* One thing to write. */
struct journal_note {
    enum journal_type type;
    char id[UUID7_TEXT_BYTES]; /* of the run or event; of the writer, with WRITER and HEAD */
    const char *text;          /* NULL with WRITER and SETTLED */
    size_t length;
    int64_t since_us; /* of a kept record: when its run ended */
};

/* Writes it; durable after journal_store_sync(). 0; -ENOSPC when the disk is full or the limit is
 * reached; -errno. An intent that was taken has room for what will follow. */
int journal_store_put(struct journal_store *store, const struct journal_note *note) AR_MUST_CHECK;
int journal_store_sync(struct journal_store *store) AR_MUST_CHECK;
/* After a group: writes the journal anew when most of it is settled. */
void journal_store_tidy(struct journal_store *store);
/* When nothing more is to be written for now. */
void journal_store_rest(struct journal_store *store);

/* For people. */
struct journal_figures {
    int64_t bytes, max_bytes;
    int64_t intents, kept, events; /* that are open */
    int64_t oldest_kept_us;        /* wall clock; 0: none is kept */
    bool full;                     /* the last intent was refused for want of room */
};
void journal_store_figures(const struct journal_store *store, struct journal_figures *out);

#endif
