/*
 * mark.c - see mark.h.
 */
#include "sinks/mark.h"

#include <string.h>

static int make_room(struct mark_list *list)
{
    if (list->count < list->capacity)
        return 0;
    size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
    struct mark *items = reallocarray(list->items, capacity, sizeof(*items));
    if (!items)
        return -ENOMEM;
    list->items = items;
    list->capacity = capacity;
    return 0;
}

static bool is_trusted(const struct mark_trust *trust, const char *key_id)
{
    size_t i = 0;
    while (i < trust->count && strcmp(trust->key_ids[i], key_id) != 0)
        i++;
    return trust->count == 0 || i < trust->count;
}

int mark_list_add(struct mark_list *list, const struct checkpoint *checkpoint,
                  const struct mark_trust *trust)
{
    int rc = make_room(list);
    if (rc < 0)
        return rc;
    bool trusted = is_trusted(trust, checkpoint->key_id);
    rc = trusted ? checkpoint_verify(checkpoint) : 1;
    if (rc < 0)
        return rc;
    struct mark *mark = &list->items[list->count++];
    *mark = (struct mark){.seq = checkpoint->seq, .counts = rc == 0};
    memcpy(mark->writer, checkpoint->writer, sizeof(mark->writer));
    memcpy(mark->row_hash, checkpoint->row_hash, sizeof(mark->row_hash));
    return 0;
}

static int compare_place(const struct mark *mark, const char *writer, int64_t seq)
{
    int order = strcmp(mark->writer, writer);
    return order != 0 ? order : (mark->seq > seq) - (mark->seq < seq);
}

static int compare(const void *left, const void *right)
{
    const struct mark *other = right;
    return compare_place(left, other->writer, other->seq);
}

void mark_list_sort(struct mark_list *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), compare);
}

size_t mark_list_find(const struct mark_list *list, const char *writer, int64_t seq)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_place(&list->items[middle], writer, seq) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool mark_list_vouches(const struct mark_list *list, const char *writer, int64_t seq,
                       const char *row_hash)
{
    for (size_t i = mark_list_find(list, writer, seq); i < list->count; i++) {
        const struct mark *mark = &list->items[i];
        if (compare_place(mark, writer, seq) != 0)
            break;
        if (mark->counts && strcmp(mark->row_hash, row_hash) == 0)
            return true;
    }
    return false;
}

void mark_list_free(struct mark_list *list)
{
    free(list->items);
    *list = (struct mark_list){0};
}
