/*
 * journal_entries.c - what of a journal is still open.
 *
 * A tree of the C library (tsearch(3)), keyed by id, and a list a type in the order in which they
 * came. Used by one thread at a time.
 */
#include "daemon/journal_entries.h"

#include <search.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct journal_entry *)a)->id, ((const struct journal_entry *)b)->id);
}

void journal_entries_init(struct journal_entries *entries)
{
    *entries = (struct journal_entries){0};
    for (size_t i = 0; i < JOURNAL_TYPE_END; i++)
        TAILQ_INIT(&entries->list[i]);
}

static void free_entry(void *item)
{
    journal_entries_discard(item);
}

void journal_entries_free(struct journal_entries *entries)
{
    tdestroy(entries->tree, free_entry);
    journal_entries_init(entries);
}

struct journal_entry *journal_entries_make(const char *id, enum journal_type type,
                                           const char *payload, size_t length)
{
    struct journal_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    memcpy(entry->id, id, strnlen(id, UUID7_TEXT_BYTES - 1));
    entry->type = type;
    entry->length = length;
    entry->payload = malloc(length + 1);
    if (!entry->payload) {
        free(entry);
        return NULL;
    }
    memcpy(entry->payload, payload, length);
    entry->payload[length] = 0;
    return entry;
}

void journal_entries_discard(struct journal_entry *entry)
{
    if (entry)
        free(entry->payload);
    free(entry);
}

static void count_in(struct journal_entries *entries, struct journal_entry *entry)
{
    TAILQ_INSERT_TAIL(&entries->list[entry->type], entry, link);
    entries->count[entry->type]++;
    entries->bytes += JOURNAL_HEADER_BYTES + entry->length;
    entries->room += entry->room;
}

static void count_out(struct journal_entries *entries, struct journal_entry *entry)
{
    TAILQ_REMOVE(&entries->list[entry->type], entry, link);
    entries->count[entry->type]--;
    entries->bytes -= JOURNAL_HEADER_BYTES + entry->length;
    entries->room -= entry->room;
}

static struct journal_entry **find(const struct journal_entries *entries, const char *id)
{
    struct journal_entry key = {0};
    memcpy(key.id, id, strnlen(id, UUID7_TEXT_BYTES - 1));
    return tfind(&key, &entries->tree, compare);
}

int journal_entries_put(struct journal_entries *entries, struct journal_entry *entry)
{
    struct journal_entry **found = find(entries, entry->id);
    if (found) {
        count_out(entries, *found);
        journal_entries_discard(*found);
        *found = entry;
    } else if (!tsearch(entry, &entries->tree, compare)) {
        return -ENOMEM;
    }
    count_in(entries, entry);
    return 0;
}

const struct journal_entry *journal_entries_find(const struct journal_entries *entries,
                                                 const char *id)
{
    struct journal_entry **found = find(entries, id);
    return found ? *found : NULL;
}

void journal_entries_remove(struct journal_entries *entries, const char *id)
{
    struct journal_entry **found = find(entries, id);
    if (!found)
        return;
    struct journal_entry *entry = *found;
    (void)tdelete(entry, &entries->tree, compare);
    count_out(entries, entry);
    journal_entries_discard(entry);
}

size_t journal_entries_count(const struct journal_entries *entries)
{
    size_t count = 0;
    for (size_t i = 0; i < JOURNAL_TYPE_END; i++)
        count += entries->count[i];
    return count;
}

struct walk {
    int (*visit)(void *context, const struct journal_entry *entry);
    void *context;
    int rc;
};

static void visit_node(const void *node, VISIT which, void *context)
{
    struct walk *walk = context;
    if (walk->rc == 0 && (which == postorder || which == leaf))
        walk->rc = walk->visit(walk->context, *(const struct journal_entry *const *)node);
}

int journal_entries_each(const struct journal_entries *entries,
                         int (*visit)(void *context, const struct journal_entry *entry),
                         void *context)
{
    struct walk walk = {visit, context, 0};
    twalk_r(entries->tree, visit_node, &walk);
    return walk.rc;
}
