/*
 * retired.c - see retired.h.
 */
#include "sinks/retired.h"

#include <string.h>

/* 0, 1: it has not the form of a range */
static int read_range(const json_t *value, struct retired_range *range)
{
    const char *writer = json_string_value(json_object_get(value, "writer"));
    const char *prev_hash = json_string_value(json_object_get(value, "prev_hash"));
    const char *last_hash = json_string_value(json_object_get(value, "last_hash"));
    range->first_seq = json_integer_value(json_object_get(value, "first_seq"));
    range->last_seq = json_integer_value(json_object_get(value, "last_seq"));
    if (!writer || !prev_hash || !last_hash || strlen(writer) != UUID7_TEXT_BYTES - 1 ||
        !uuid7_is_uuid(writer) || !digest_is_hex(prev_hash) || !digest_is_hex(last_hash) ||
        range->first_seq < 1 || range->last_seq < range->first_seq)
        return 1;
    memcpy(range->writer, writer, sizeof(range->writer));
    memcpy(range->prev_hash, prev_hash, sizeof(range->prev_hash));
    memcpy(range->last_hash, last_hash, sizeof(range->last_hash));
    return 0;
}

int retired_add(struct retired *retired, const struct chain_event *event, bool is_signed)
{
    AR_AUTO_JSON json_t *detail = json_loads(event->detail, JSON_ALLOW_NUL, NULL);
    const json_t *ranges = json_object_get(detail, "ranges");
    size_t count = json_array_size(ranges);
    if (count == 0)
        return 0;
    struct retired_range *items =
        reallocarray(retired->items, retired->count + count, sizeof(*items));
    if (!items)
        return -ENOMEM;
    retired->items = items;
    for (size_t i = 0; i < count; i++) {
        struct retired_range *range = &items[retired->count];
        if (read_range(json_array_get(ranges, i), range) != 0)
            continue;
        range->is_signed = is_signed;
        retired->count++;
    }
    return 0;
}

static int compare_place(const struct retired_range *range, const char *writer, int64_t first_seq)
{
    int order = strcmp(range->writer, writer);
    return order != 0 ? order : (range->first_seq > first_seq) - (range->first_seq < first_seq);
}

static int compare(const void *left, const void *right)
{
    const struct retired_range *one = left, *other = right;
    int order = compare_place(one, other->writer, other->first_seq);
    return order != 0 ? order : (int)other->is_signed - (int)one->is_signed;
}

void retired_sort(struct retired *retired)
{
    if (retired->count > 0)
        qsort(retired->items, retired->count, sizeof(*retired->items), compare);
}

const struct retired_range *retired_find(const struct retired *retired, const char *writer,
                                         int64_t first_seq, const char *prev_hash)
{
    size_t low = 0, high = retired->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_place(&retired->items[middle], writer, first_seq) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < retired->count; low++) {
        const struct retired_range *range = &retired->items[low];
        if (compare_place(range, writer, first_seq) != 0)
            return NULL;
        if (strcmp(range->prev_hash, prev_hash) == 0)
            return range;
    }
    return NULL;
}

void retired_free(struct retired *retired)
{
    free(retired->items);
    *retired = (struct retired){0};
}
