/*
 * journal_entries.c - what of a journal is still open.
 *
 * A tree of the C library (tsearch(3)), keyed by run id. Used by one thread at a time.
 */
#include "daemon/journal_entries.h"

#include <search.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct journal_entry *)a)->run_id,
                  ((const struct journal_entry *)b)->run_id);
}

static void free_entry(void *item)
{
    struct journal_entry *entry = item;
    if (entry)
        free(entry->payload);
    free(entry);
}

static struct journal_entry *make_entry(const char *run_id, enum journal_type type,
                                        const char *payload, size_t length)
{
    struct journal_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    memcpy(entry->run_id, run_id, strnlen(run_id, UUID7_TEXT_BYTES - 1));
    entry->type = type;
    entry->length = length;
    entry->payload = malloc(length + 1);
    if (!entry->payload) {
        free_entry(entry);
        return NULL;
    }
    memcpy(entry->payload, payload, length);
    entry->payload[length] = 0;
    return entry;
}

int journal_entries_put(struct journal_entries *entries, const char *run_id, enum journal_type type,
                        const char *payload, size_t length)
{
    struct journal_entry *entry = make_entry(run_id, type, payload, length);
    if (!entry)
        return -ENOMEM;
    journal_entries_remove(entries, run_id);
    if (!tsearch(entry, &entries->tree, compare)) {
        free_entry(entry);
        return -ENOMEM;
    }
    entries->count++;
    entries->bytes += length;
    return 0;
}

void journal_entries_remove(struct journal_entries *entries, const char *run_id)
{
    struct journal_entry key = {0};
    memcpy(key.run_id, run_id, strnlen(run_id, UUID7_TEXT_BYTES - 1));
    struct journal_entry **found = tfind(&key, &entries->tree, compare);
    if (!found)
        return;
    struct journal_entry *entry = *found;
    (void)tdelete(entry, &entries->tree, compare);
    entries->count--;
    entries->bytes -= entry->length;
    free_entry(entry);
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

void journal_entries_free(struct journal_entries *entries)
{
    tdestroy(entries->tree, free_entry);
    *entries = (struct journal_entries){0};
}
