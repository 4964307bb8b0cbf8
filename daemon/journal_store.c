/*
 * journal_store.c - the journal's file together with what is open in it, and the room that this needs.
 *
 * The invariant: behind the end of the file there is always allocated room for what the open entries
 * may still write (entries.room), and a little more (SMALL_BYTES) for a writer's id. What is written
 * beyond that needs new room first, and is refused when there is none.
 *
 * The journal is bounded by being written anew: with only what is open, into a second file, which then
 * takes the name. That needs space for both for a moment; the file keeps some ready for it, so that a
 * full disk does not stay full of what is settled.
 */
#include "daemon/journal_store.h"

#include "daemon/clock.h"
#include "daemon/log.h"

#include <stdio.h>
#include <string.h>

#define REWRITE_BYTES    (16 << 20) /* over this, and four times what is open: written anew */
#define REWRITE_PAUSE_US 1000000    /* after one that failed */
#define SMALL_BYTES      4096
#define NO_LIMIT         INT64_MAX /* for what must not be refused */
#define SETTLE_BYTES     (JOURNAL_HEADER_BYTES + UUID7_TEXT_BYTES - 1)

struct journal_store {
    struct journal_file *file;
    struct journal_state state;
    char writer[UUID7_TEXT_BYTES]; /* that is to be noted: state.writer, unless that failed */
    int64_t max_bytes;
    int64_t no_rewrite_before_us; /* monotonic */
    bool full;
};

/* ---- room ------------------------------------------------------------------------------------- */

/* What an entry of this type will still have to write. */
static size_t room_of(enum journal_type type, size_t length)
{
    switch (type) {
    case JOURNAL_INTENT:
        return JOURNAL_HEADER_BYTES + length + JOURNAL_GROWTH_BYTES + SETTLE_BYTES;
    case JOURNAL_KEPT:
    case JOURNAL_EVENT:
    case JOURNAL_SWITCH:
        return SETTLE_BYTES;
    default:
        return 0;
    }
}

static int write_state(void *context, struct journal_file *file)
{
    return journal_state_write(context, file);
}

static int rewrite(struct journal_store *store)
{
    int64_t now = clock_monotonic_us();
    if (now < store->no_rewrite_before_us)
        return -EAGAIN;
    int rc = journal_file_rewrite(store->file, write_state, &store->state,
                                  store->state.entries.room + SMALL_BYTES);
    if (rc < 0) {
        store->no_rewrite_before_us = now + REWRITE_PAUSE_US;
        log_warning("the journal could not be rewritten, it goes on in the old file: %s",
                    strerror(-rc));
    }
    return rc;
}

/* Would a rewrite free at least half of the file? */
static bool is_half_settled(const struct journal_store *store)
{
    off_t size = journal_file_size(store->file);
    return size > SMALL_BYTES && size / 2 >= (off_t)store->state.entries.bytes;
}

static bool fits_the_spare(const struct journal_store *store)
{
    const struct journal_entries *entries = &store->state.entries;
    return entries->bytes + entries->room + 2 * SMALL_BYTES <= JOURNAL_SPARE_BYTES;
}

/* How far the file may grow for a new entry. A switch is never refused: there are few. The last sixteenth is for those that no intent had a room
 * for: the rows of the runs that are refused because there is no room for their intents. */
static int64_t limit_of(const struct journal_store *store, enum journal_type type)
{
    if (type == JOURNAL_SWITCH)
        return NO_LIMIT;
    return type == JOURNAL_INTENT ? store->max_bytes - store->max_bytes / 16 : store->max_bytes;
}

/* Is there room for `more` bytes beyond what is open, up to that size of the file? */
static int reserve(struct journal_store *store, size_t more, int64_t limit)
{
    size_t need = more + SMALL_BYTES + store->state.entries.room;
    if (journal_file_size(store->file) > limit - (int64_t)need)
        return -ENOSPC;
    return journal_file_reserve(store->file, need);
}

static int make_room(struct journal_store *store, size_t more, int64_t limit)
{
    int rc = reserve(store, more, limit);
    if ((rc == -ENOSPC || rc == -EDQUOT) && is_half_settled(store) && rewrite(store) == 0)
        rc = reserve(store, more, limit);
    return rc;
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* A writer's id that could not be noted is tried again with the next frame that is its own. */
static int write_writer(struct journal_store *store)
{
    if (strcmp(store->writer, store->state.writer) == 0)
        return 0;
    int rc = journal_file_append(store->file, JOURNAL_WRITER, store->writer, UUID7_TEXT_BYTES - 1);
    if (rc == 0)
        journal_state_set_writer(&store->state, store->writer);
    return rc;
}

static int put_writer(struct journal_store *store, const struct journal_note *note)
{
    memcpy(store->writer, note->id, sizeof store->writer);
    return write_writer(store);
}

static int put_head(struct journal_store *store, const struct journal_note *note)
{
    struct journal_frame frame = {
        .type = JOURNAL_HEAD, .payload = note->text, .length = note->length};
    if (strcmp(note->id, store->writer) != 0)
        return 0; /* of a writer that is no longer ours */
    int rc = make_room(store, 2 * JOURNAL_HEADER_BYTES + UUID7_TEXT_BYTES + note->length, NO_LIMIT);
    if (rc == 0)
        rc = write_writer(store);
    if (rc == 0)
        rc = journal_file_append(store->file, JOURNAL_HEAD, note->text, note->length);
    return rc == 0 ? journal_state_apply(&store->state, &frame) : rc;
}

/* The entry is gone whether or not that can be written: the ledger knows about the run. */
static int put_settled(struct journal_store *store, const struct journal_note *note)
{
    bool open = journal_entries_find(&store->state.entries, note->id) != NULL;
    int rc = open ? 0 : make_room(store, SETTLE_BYTES, NO_LIMIT);
    if (rc == 0)
        rc = journal_file_append(store->file, JOURNAL_SETTLED, note->id, UUID7_TEXT_BYTES - 1);
    journal_entries_remove(&store->state.entries, note->id);
    journal_state_raise(&store->state, note->id);
    return open ? rc : 0;
}

static struct journal_entry *make_entry(const struct journal_note *note)
{
    if (note->type != JOURNAL_EVENT && note->type != JOURNAL_SWITCH)
        return journal_entries_make(note->id, note->type, note->text, note->length);
    AR_AUTO_FREE char *payload = NULL;
    int length = asprintf(&payload, "%s %s", note->id, note->text);
    return length < 0 ? NULL : journal_entries_make(note->id, note->type, payload, (size_t)length);
}

/* The room that this entry needs beyond what the one before it has. */
static int make_entry_room(struct journal_store *store, const struct journal_entry *entry)
{
    const struct journal_entry *before = journal_entries_find(&store->state.entries, entry->id);
    size_t need = JOURNAL_HEADER_BYTES + entry->length + entry->room;
    size_t has = before ? before->room : 0;
    if (need <= has)
        return 0;
    int rc = make_room(store, need - has, before ? NO_LIMIT : limit_of(store, entry->type));
    if (entry->type == JOURNAL_INTENT)
        store->full = rc == -ENOSPC || rc == -EDQUOT;
    return rc;
}

/* In the collection before it is in the file, so that nothing is written that is not remembered; one
 * that takes another's place is only exchanged afterwards, so that nothing is forgotten. */
static int write_entry(struct journal_store *store, struct journal_entry **entry)
{
    struct journal_entries *entries = &store->state.entries;
    struct journal_entry *made = *entry;
    bool replaces = journal_entries_find(entries, made->id) != NULL;
    int rc = replaces ? 0 : journal_entries_put(entries, made);
    if (rc < 0)
        return rc;
    rc = journal_file_append(store->file, made->type, made->payload, made->length);
    if (rc == 0 && replaces)
        rc = journal_entries_put(entries, made);
    if (rc < 0 && !replaces)
        journal_entries_remove(entries, made->id);
    if (rc == 0 || !replaces)
        *entry = NULL;
    return rc;
}

static int put_entry(struct journal_store *store, const struct journal_note *note)
{
    struct journal_entry *entry = make_entry(note);
    if (!entry)
        return -ENOMEM;
    entry->since_us = note->since_us;
    entry->room = room_of(note->type, entry->length);
    int rc = entry->length <= JOURNAL_MAX_PAYLOAD ? make_entry_room(store, entry) : -EMSGSIZE;
    if (rc == 0)
        rc = write_entry(store, &entry);
    journal_entries_discard(entry);
    if (rc == 0)
        journal_state_raise(&store->state, note->id);
    return rc;
}

int journal_store_put(struct journal_store *store, const struct journal_note *note)
{
    switch (note->type) {
    case JOURNAL_WRITER:
        return put_writer(store, note);
    case JOURNAL_HEAD:
        return put_head(store, note);
    case JOURNAL_SETTLED:
        return put_settled(store, note);
    default:
        return put_entry(store, note);
    }
}

int journal_store_sync(struct journal_store *store)
{
    return journal_file_sync(store->file);
}

void journal_store_tidy(struct journal_store *store)
{
    int64_t size = journal_file_size(store->file);
    int64_t most = store->max_bytes / 4 < REWRITE_BYTES ? store->max_bytes / 4 : REWRITE_BYTES;
    bool is_due = size >= most && size / 4 >= (int64_t)store->state.entries.bytes;
    if (is_due || (store->full && is_half_settled(store) && fits_the_spare(store)))
        (void)rewrite(store); /* it has said so when it failed */
}

void journal_store_rest(struct journal_store *store)
{
    if (reserve(store, JOURNAL_HEADER_BYTES, NO_LIMIT) == 0)
        journal_file_mark(store->file);
}

/* ---- beginning and end ------------------------------------------------------------------------ */

const struct journal_state *journal_store_state(const struct journal_store *store)
{
    return &store->state;
}

void journal_store_figures(const struct journal_store *store, struct journal_figures *out)
{
    const struct journal_entries *entries = &store->state.entries;
    const struct journal_entry *oldest = TAILQ_FIRST(&entries->list[JOURNAL_KEPT]);
    *out = (struct journal_figures){.bytes = journal_file_size(store->file),
                                    .max_bytes = store->max_bytes,
                                    .intents = (int64_t)entries->count[JOURNAL_INTENT],
                                    .kept = (int64_t)entries->count[JOURNAL_KEPT],
                                    .events = (int64_t)entries->count[JOURNAL_EVENT],
                                    .oldest_kept_us = oldest ? oldest->since_us : 0,
                                    .full = store->full};
}

/* What to tell an operator about a journal that cannot be used. */
static void explain(int rc, const char *directory, off_t offset, char *message)
{
    if (rc == -EWOULDBLOCK)
        (void)snprintf(message, JOURNAL_MESSAGE_BYTES, "another daemon uses the journal in %s",
                       directory);
    else if (rc == -EUCLEAN)
        (void)snprintf(message, JOURNAL_MESSAGE_BYTES,
                       "the journal %s/journal is damaged at byte %lld; nothing was changed: see "
                       "what is in it with auditrund --check-journal, save what is whole with "
                       "auditrund --repair-journal",
                       directory, (long long)offset);
    else if (rc == -ENODATA)
        (void)snprintf(message, JOURNAL_MESSAGE_BYTES,
                       "the journal %s/journal is lost: it is empty or gone, and there was one "
                       "here; bring it back, or begin a new one with auditrund --repair-journal",
                       directory);
    else
        (void)snprintf(message, JOURNAL_MESSAGE_BYTES, "the journal in %s cannot be used: %s",
                       directory, strerror(-rc));
}

static int visit_frame(void *context, const struct journal_frame *frame)
{
    return journal_state_apply(context, frame);
}

/* What is left is written anew, which also shows that the journal can be written. On a full disk the
 * daemon starts all the same: it can bring to the ledger what it has, and runs nothing. */
static int begin(struct journal_store *store)
{
    size_t cut = journal_file_cut(store->file);
    if (cut > 0)
        log_warning("%zu bytes behind the end of the journal were never acknowledged: cut off",
                    cut);
    memcpy(store->writer, store->state.writer, sizeof store->writer);
    int rc = rewrite(store);
    if (rc == -ENOSPC || rc == -EDQUOT)
        rc = 0;
    if (rc == 0 && !journal_file_allocates(store->file))
        log_warning("the journal's file system cannot allocate: room is made by writing zeros");
    return rc;
}

int journal_store_open(const char *directory, int64_t max_bytes, struct journal_store **out,
                       char message[JOURNAL_MESSAGE_BYTES])
{
    off_t offset = 0;
    struct journal_store *store = calloc(1, sizeof *store);
    if (!store)
        return -ENOMEM;
    store->max_bytes = max_bytes > 0 ? max_bytes : NO_LIMIT;
    journal_state_init(&store->state);
    int rc = journal_file_open(directory, visit_frame, &store->state, &store->file, &offset);
    if (rc == 0)
        rc = begin(store);
    if (rc == 0) {
        *out = store;
        return 0;
    }
    explain(rc, directory, offset, message);
    journal_store_close(store);
    return rc == -ENOMEM ? rc : 1;
}

void journal_store_close(struct journal_store *store)
{
    if (!store)
        return;
    journal_file_close(store->file);
    journal_state_free(&store->state);
    free(store);
}
