/*
 * mask.c - finds needles in a stream, and lets out what surely belongs to none.
 *
 * The stream is read in three views at once (mask_view.h). In each, every needle has a state: how many
 * of its symbols have just been seen. Only live needles (state > 0) cost anything. A match is an
 * interval of the stream; intervals that overlap are one. What lies before the earliest live needle
 * can be let out: no match to come begins there. As all that depends on the bytes alone, the result
 * is the same for any division into pieces.
 *
 * Until there is an escape character the views are the same: one state is then enough. Where nothing
 * is live and no needle can begin, bytes are skipped.
 *
 * Memory that held a part of a value is wiped before it is given back.
 */
#include "protocol/mask.h"

#include "protocol/mask_needle.h"
#include "protocol/mask_view.h"

#include <string.h>

#define MASK_BLOCK_BYTES 4096 /* looked at before what is free to go goes */
#define MASK_STARS       "***"

/* The state of all needles in one view. */
struct view {
    struct mask_view_reader reader;
    uint32_t *matched; /* [needles] symbols seen */
    uint32_t *live;    /* [needles] indices of those that have seen any */
    size_t live_count;
    uint64_t *starts; /* where in the stream the latest symbols begin */
    size_t start_count, start_capacity;
    size_t line_ends; /* in a row */
};

struct interval {
    uint64_t start, end;
};

struct mask_stream {
    const struct mask *mask;
    struct view views[MASK_VIEW_COUNT];
    bool forked; /* the views differ: otherwise only the raw one is kept */
    unsigned char *held;
    size_t held_first, held_count, held_capacity;
    uint64_t at;           /* of the first held byte in the stream */
    uint64_t masked_until; /* the end of what the last stars stand for */
    struct interval *intervals;
    size_t interval_count, interval_capacity;
};

struct output {
    char *data;
    size_t length, capacity;
};

/* ---- memory ------------------------------------------------------------------------------------- */

/* Like realloc, but what is left behind is wiped. */
static int grow(void **memory, size_t used, size_t capacity, size_t size)
{
    size_t bytes;
    if (!base_mul(capacity, size, &bytes))
        return -ENOMEM;
    void *wider = malloc(bytes);
    if (!wider)
        return -ENOMEM;
    if (*memory) {
        memcpy(wider, *memory, used * size);
        explicit_bzero(*memory, used * size);
        free(*memory);
    }
    *memory = wider;
    return 0;
}

static int put_output(struct output *output, const void *data, size_t length)
{
    if (length == 0)
        return 0;
    if (output->capacity - output->length < length) {
        size_t capacity;
        if (!base_mul(output->length + length, (size_t)2, &capacity))
            return -ENOMEM;
        char *wider = realloc(output->data, capacity);
        if (!wider)
            return -ENOMEM;
        output->data = wider;
        output->capacity = capacity;
    }
    memcpy(output->data + output->length, data, length);
    output->length += length;
    return 0;
}

static void view_free(struct view *view)
{
    if (view->starts)
        explicit_bzero(view->starts, view->start_capacity * sizeof view->starts[0]);
    free(view->starts);
    free(view->matched);
    free(view->live);
}

void mask_stream_free(struct mask_stream *stream)
{
    if (!stream)
        return;
    for (int i = 0; i < MASK_VIEW_COUNT; i++)
        view_free(&stream->views[i]);
    if (stream->held)
        explicit_bzero(stream->held, stream->held_capacity);
    free(stream->held);
    free(stream->intervals);
    explicit_bzero(stream, sizeof *stream);
    free(stream);
}

struct mask_stream *mask_stream_new(const struct mask *mask)
{
    struct mask_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->mask = mask;
    for (int i = 0; i < MASK_VIEW_COUNT; i++) {
        struct view *view = &stream->views[i];
        view->reader.view = (enum mask_view)i;
        view->matched = calloc(mask->count + 1, sizeof view->matched[0]);
        view->live = calloc(mask->count + 1, sizeof view->live[0]);
        if (!view->matched || !view->live) {
            mask_stream_free(stream);
            return NULL;
        }
    }
    return stream;
}

/* ---- matching ----------------------------------------------------------------------------------- */

static size_t longest_match(const struct view *view)
{
    size_t longest = 0;
    for (size_t i = 0; i < view->live_count; i++)
        if (view->matched[view->live[i]] > longest)
            longest = view->matched[view->live[i]];
    return longest;
}

/* Notes where a symbol begins. Only those of live matches are kept when room gets short. */
static int push_start(struct view *view, uint64_t start)
{
    if (view->start_count == view->start_capacity) {
        size_t needed = longest_match(view);
        if (view->start_capacity == 0 || needed > view->start_capacity / 2) {
            size_t capacity = view->start_capacity ? 2 * view->start_capacity : 64;
            void *starts = view->starts;
            if (grow(&starts, view->start_count, capacity, sizeof view->starts[0]) < 0)
                return -ENOMEM;
            view->starts = starts;
            view->start_capacity = capacity;
        } else {
            memmove(view->starts, view->starts + view->start_count - needed,
                    needed * sizeof view->starts[0]);
            view->start_count = needed;
        }
    }
    view->starts[view->start_count++] = start;
    return 0;
}

/* Adds an interval to those that wait, which are sorted and apart. Nearly all go to the end. */
static int add_interval(struct mask_stream *stream, uint64_t start, uint64_t end)
{
    struct interval *list = stream->intervals;
    size_t to = stream->interval_count;
    while (to > 0 && list[to - 1].start >= end)
        to--;
    size_t from = to;
    while (from > 0 && list[from - 1].end > start) {
        from--;
        start = list[from].start < start ? list[from].start : start;
        end = list[from].end > end ? list[from].end : end;
    }
    if (from == to && stream->interval_count == stream->interval_capacity) {
        size_t capacity = stream->interval_capacity ? 2 * stream->interval_capacity : 8;
        list = reallocarray(list, capacity, sizeof *list);
        if (!list)
            return -ENOMEM;
        stream->intervals = list;
        stream->interval_capacity = capacity;
    }
    memmove(list + from + 1, list + to, (stream->interval_count - to) * sizeof *list);
    list[from] = (struct interval){start, end};
    stream->interval_count += from + 1 - to;
    return 0;
}

static void forget_live(struct view *view)
{
    for (size_t i = 0; i < view->live_count; i++)
        view->matched[view->live[i]] = 0;
    view->live_count = view->start_count = 0;
}

/* Moves each live needle on by a symbol. */
static int step_live(struct mask_stream *stream, struct view *view,
                     const unsigned char symbols[MASK_ALPHABETS], uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < view->live_count; i++) {
        uint32_t index = view->live[i];
        const struct mask_needle *needle = &stream->mask->needles[index];
        unsigned char symbol = symbols[needle->alphabet];
        uint32_t matched = view->matched[index];
        while (matched > 0 && needle->text[matched] != symbol)
            matched = needle->back[matched];
        matched += needle->text[matched] == symbol;
        if (matched == needle->length) {
            if (add_interval(stream, view->starts[view->start_count - matched], end) < 0)
                return -ENOMEM;
            matched = needle->back[matched];
        }
        view->matched[index] = matched;
        if (matched > 0)
            view->live[kept++] = index;
    }
    view->live_count = kept;
    return 0;
}

/* Needles that begin with the symbol come to life; those that live have had it. */
static void wake(const struct mask *mask, struct view *view, enum mask_alphabet alphabet,
                 unsigned char symbol)
{
    for (uint32_t next = mask->first[alphabet][symbol]; next > 0;
         next = mask->needles[next - 1].next) {
        if (view->matched[next - 1] > 0)
            continue;
        view->matched[next - 1] = 1;
        view->live[view->live_count++] = next - 1;
    }
}

/* A byte of the view that comes from [start, end) of the stream. */
static int step(struct mask_stream *stream, struct view *view, unsigned char byte, uint64_t start,
                uint64_t end)
{
    if (mask_needle_is_line_end(byte)) {
        if (++view->line_ends > stream->mask->line_ends)
            forget_live(view);
        return 0;
    }
    view->line_ends = 0;
    if (view->live_count == 0 && !stream->mask->starts[byte])
        return 0;
    const unsigned char symbols[MASK_ALPHABETS] = {mask_needle_symbol(MASK_PLAIN, byte),
                                                   mask_needle_symbol(MASK_BASE64, byte)};
    if (push_start(view, start) < 0 || step_live(stream, view, symbols, end) < 0)
        return -ENOMEM;
    wake(stream->mask, view, MASK_PLAIN, symbols[MASK_PLAIN]);
    wake(stream->mask, view, MASK_BASE64, symbols[MASK_BASE64]);
    if (view->live_count == 0)
        view->start_count = 0;
    return 0;
}

static int take_units(struct mask_stream *stream, struct view *view, bool last)
{
    struct mask_view_unit unit;
    while (mask_view_take(&view->reader, last, &unit))
        for (size_t i = 0; i < unit.count; i++)
            if (step(stream, view, unit.bytes[i], unit.start, unit.end) < 0)
                return -ENOMEM;
    return 0;
}

/* A byte of the stream, for one view. A line end may stand within an escape sequence. */
static int feed(struct mask_stream *stream, struct view *view, unsigned char byte, uint64_t at)
{
    if (mask_needle_is_line_end(byte) && view->reader.count > 0) {
        if (++view->line_ends <= stream->mask->line_ends)
            return 0;
        if (take_units(stream, view, true) < 0)
            return -ENOMEM;
        forget_live(view);
        return 0;
    }
    if (view->reader.count == 0) {
        if (!mask_view_escapes(view->reader.view, byte))
            return step(stream, view, byte, at, at + 1);
        view->line_ends = 0;
    }
    mask_view_put(&view->reader, byte, at);
    return take_units(stream, view, false);
}

/* ---- views -------------------------------------------------------------------------------------- */

static int copy_view(struct view *to, const struct view *from)
{
    if (to->start_capacity < from->start_count) {
        void *starts = to->starts;
        if (grow(&starts, to->start_count, from->start_capacity, sizeof to->starts[0]) < 0)
            return -ENOMEM;
        to->starts = starts;
        to->start_capacity = from->start_capacity;
    }
    if (from->start_count > 0)
        memcpy(to->starts, from->starts, from->start_count * sizeof to->starts[0]);
    to->start_count = from->start_count;
    to->live_count = from->live_count;
    for (size_t i = 0; i < from->live_count; i++) {
        to->live[i] = from->live[i];
        to->matched[to->live[i]] = from->matched[to->live[i]];
    }
    to->line_ends = from->line_ends;
    return 0;
}

/* From here on the views are no longer the same. */
static int fork_views(struct mask_stream *stream)
{
    for (int i = MASK_VIEW_RAW + 1; i < MASK_VIEW_COUNT; i++)
        if (copy_view(&stream->views[i], &stream->views[MASK_VIEW_RAW]) < 0)
            return -ENOMEM;
    stream->forked = true;
    return 0;
}

static int views_in_use(const struct mask_stream *stream)
{
    return stream->forked ? MASK_VIEW_COUNT : MASK_VIEW_RAW + 1;
}

static bool is_idle(const struct mask_stream *stream)
{
    for (int i = 0; i < views_in_use(stream); i++)
        if (stream->views[i].live_count > 0 || stream->views[i].reader.count > 0)
            return false;
    return true;
}

static bool may_skip(const struct mask_stream *stream, unsigned char byte)
{
    return !stream->mask->starts[byte] && byte != '%' && byte != '\\';
}

static int look(struct mask_stream *stream, const unsigned char *block, size_t length, uint64_t at)
{
    bool idle = is_idle(stream);
    for (size_t i = 0; i < length; i++) {
        if (idle) {
            stream->forked = false;
            while (i < length && may_skip(stream, block[i]))
                i++;
            if (i == length)
                break;
        }
        if (!stream->forked && (block[i] == '%' || block[i] == '\\') && fork_views(stream) < 0)
            return -ENOMEM;
        for (int v = 0; v < views_in_use(stream); v++)
            if (feed(stream, &stream->views[v], block[i], at + i) < 0)
                return -ENOMEM;
        idle = is_idle(stream);
    }
    return 0;
}

/* Where the first thing begins that may still become a match. */
static uint64_t earliest(const struct mask_stream *stream)
{
    uint64_t first = stream->at + stream->held_count;
    for (int i = 0; i < views_in_use(stream); i++) {
        const struct view *view = &stream->views[i];
        size_t matched = longest_match(view);
        if (matched > 0 && view->starts[view->start_count - matched] < first)
            first = view->starts[view->start_count - matched];
        if (view->reader.count > 0 && view->reader.at[0] < first)
            first = view->reader.at[0];
    }
    return first;
}

/* ---- held bytes --------------------------------------------------------------------------------- */

static int hold(struct mask_stream *stream, const void *block, size_t length)
{
    size_t used = stream->held_first + stream->held_count;
    if (stream->held_capacity - used < length && stream->held_first > 0 &&
        stream->held_first >= stream->held_count) {
        memmove(stream->held, stream->held + stream->held_first, stream->held_count);
        stream->held_first = 0;
        used = stream->held_count;
    }
    if (stream->held_capacity - used < length) {
        size_t capacity = 2 * (used + length);
        void *held = stream->held;
        if (grow(&held, used, capacity, 1) < 0)
            return -ENOMEM;
        stream->held = held;
        stream->held_capacity = capacity;
    }
    memcpy(stream->held + used, block, length);
    stream->held_count += length;
    return 0;
}

/* Gives on what is before the place, save what is masked. */
static int give(struct mask_stream *stream, uint64_t until, struct output *output)
{
    size_t passed = (size_t)(until - stream->at);
    size_t masked =
        stream->masked_until > stream->at ? (size_t)(stream->masked_until - stream->at) : 0;
    if (masked < passed &&
        put_output(output, stream->held + stream->held_first + masked, passed - masked) < 0)
        return -ENOMEM;
    stream->at = until;
    stream->held_first += passed;
    stream->held_count -= passed;
    if (stream->held_count == 0)
        stream->held_first = 0;
    return 0;
}

static int drain(struct mask_stream *stream, uint64_t until, struct output *output)
{
    size_t done = 0;
    for (; done < stream->interval_count && stream->intervals[done].start < until; done++) {
        const struct interval *next = &stream->intervals[done];
        if (next->start > stream->at && give(stream, next->start, output) < 0)
            return -ENOMEM;
        if (next->start >= stream->masked_until &&
            put_output(output, MASK_STARS, strlen(MASK_STARS)) < 0)
            return -ENOMEM;
        if (next->end > stream->masked_until)
            stream->masked_until = next->end;
    }
    stream->interval_count -= done;
    if (done > 0)
        memmove(stream->intervals, stream->intervals + done,
                stream->interval_count * sizeof stream->intervals[0]);
    return until > stream->at ? give(stream, until, output) : 0;
}

/* Hands the output over, or frees it when something failed. */
static int end_output(int rc, struct output *output, char **out, size_t *out_length)
{
    if (rc < 0 || output->length == 0) {
        free(output->data);
        output->data = NULL;
    }
    *out = output->data;
    *out_length = output->data ? output->length : 0;
    return rc;
}

int mask_stream_put(struct mask_stream *stream, const void *data, size_t length, char **out,
                    size_t *out_length)
{
    struct output output = {0};
    const unsigned char *bytes = data;
    int rc = 0;
    while (rc == 0 && length > 0) {
        size_t block = length < MASK_BLOCK_BYTES ? length : MASK_BLOCK_BYTES;
        uint64_t at = stream->at + stream->held_count;
        rc = hold(stream, bytes, block);
        if (rc == 0)
            rc = look(stream, bytes, block, at);
        if (rc == 0)
            rc = drain(stream, earliest(stream), &output);
        bytes += block;
        length -= block;
    }
    return end_output(rc, &output, out, out_length);
}

int mask_stream_end(struct mask_stream *stream, bool cut, char **out, size_t *out_length)
{
    struct output output = {0};
    uint64_t end = stream->at + stream->held_count;
    uint64_t first = earliest(stream);
    int rc = 0;
    if (cut && first < end)
        rc = add_interval(stream, first, end);
    for (int i = 0; rc == 0 && i < views_in_use(stream); i++)
        rc = take_units(stream, &stream->views[i], true);
    if (rc == 0)
        rc = drain(stream, end, &output);
    return end_output(rc, &output, out, out_length);
}
