/*
 * verify.c - see verify.h.
 *
 * Rows, heads, checkpoints and the list of writers are of one moment (reader_freeze), so that a daemon
 * that appends meanwhile is never mistaken for a change. First everything small is read: checkpoints,
 * what retired partitions left, the heads. Then the rows stream by, and the walk stops at the first
 * that is wrong. What is kept in memory grows with writers, checkpoints and retired ranges, never with
 * rows.
 */
#include "sinks/verify.h"

#include "sinks/mark.h"
#include "sinks/retired.h"

#include <stdio.h>
#include <string.h>

#define PROGRESS_ROWS 4096

static const char *const words[VERIFY_FINDING_COUNT] = {
    [VERIFY_OK] = "ok",
    [VERIFY_UNREADABLE] = "unreadable",
    [VERIFY_REPEATED] = "repeated",
    [VERIFY_MISSING] = "missing",
    [VERIFY_ALTERED] = "altered",
    [VERIFY_UNLINKED] = "unlinked",
    [VERIFY_HEAD] = "head_differs",
    [VERIFY_CHECKPOINT] = "checkpoint_differs",
    [VERIFY_UNSIGNED] = "unsigned",
};

const char *verify_word(enum verify_finding finding)
{
    return words[finding];
}

/* A chain as the store says that it ends. */
struct chain {
    char writer[UUID7_TEXT_BYTES];
    int64_t head_seq; /* 0: there is no head */
    char head_hash[DIGEST_HEX_BYTES];
};

struct walk {
    const struct verify_options *options;
    struct verify_result *result;
    struct chain_row_hasher *hasher;
    struct mark_list marks;
    struct retired retired;
    struct chain *chains; /* in the order of writer, as the rows come */
    size_t count;
    size_t current;
    size_t mark; /* the next one of the current chain, if it is of it */
    /* Of the last row of the current chain: */
    int64_t seq;
    char hash[DIGEST_HEX_BYTES];
    char row_id[UUID7_TEXT_BYTES];
};

static int found(struct walk *walk, enum verify_finding finding, int64_t seq, const char *row_id)
{
    struct verify_result *result = walk->result;
    result->finding = finding;
    result->seq = seq;
    if (walk->current < walk->count)
        memcpy(result->writer, walk->chains[walk->current].writer, sizeof(result->writer));
    (void)snprintf(result->row_id, sizeof(result->row_id), "%s", row_id);
    return 1;
}

/* ---- what is read first ------------------------------------------------------------------------- */

static bool is_wanted(const struct walk *walk, const char *writer)
{
    return !walk->options->writer || strcmp(walk->options->writer, writer) == 0;
}

/* A checkpoint that cannot be read is one that does not count; where it stands may be unknown. */
static int read_marks(struct reader *reader, struct walk *walk)
{
    const struct mark_trust trust = {walk->options->key_ids, walk->options->key_id_count};
    struct reader_filter all = READER_FILTER_ALL;
    struct checkpoint checkpoint;
    int rc = 0;
    for (size_t i = 0; i < walk->options->checkpoint_count && rc == 0; i++)
        rc = mark_list_add(&walk->marks, &walk->options->checkpoints[i], &trust);
    if (rc == 0)
        rc = reader_query_checkpoints(reader, &all);
    if (rc != 0)
        return rc == 1 ? 2 : rc;
    while ((rc = reader_next_checkpoint(reader, &checkpoint)) == 0 || rc == READER_UNREADABLE) {
        if (rc == READER_UNREADABLE)
            memset(checkpoint.signature, 0, sizeof(checkpoint.signature));
        rc = mark_list_add(&walk->marks, &checkpoint, &trust);
        if (rc < 0)
            return rc;
    }
    mark_list_sort(&walk->marks);
    return rc == 1 ? 0 : rc;
}

static int add_retired(struct walk *walk, const struct chain_event *event)
{
    int rc = chain_event_check(event);
    if (rc < 0)
        return rc;
    bool is_signed =
        rc == 0 && mark_list_vouches(&walk->marks, event->writer, event->seq, event->row_hash);
    return retired_add(&walk->retired, event, is_signed);
}

static int read_retired(struct reader *reader, struct walk *walk)
{
    struct reader_filter filter = READER_FILTER_ALL;
    filter.kind = event_kind_word(EVENT_PARTITION_RETIRED);
    int rc = reader_query_events(reader, &filter, READER_BY_CHAIN);
    if (rc != 0)
        return rc == 1 ? 2 : rc;
    for (;;) {
        AR_CLEANUP(chain_event_cleanup) struct chain_event *event = NULL;
        rc = reader_next_event(reader, &event);
        if (rc == 0)
            rc = add_retired(walk, event);
        else if (rc != READER_UNREADABLE) /* which the walk will come upon */
            break;
        if (rc < 0)
            return rc;
    }
    retired_sort(&walk->retired);
    return rc == 1 ? 0 : rc;
}

static int read_chain(struct reader *reader, struct walk *walk, const char *writer)
{
    struct chain *chain = &walk->chains[walk->count++];
    (void)snprintf(chain->writer, sizeof(chain->writer), "%s", writer);
    memcpy(chain->head_hash, digest_zero, sizeof(chain->head_hash));
    int rc = reader_head(reader, writer, &chain->head_seq, chain->head_hash);
    return rc == 1 ? 0 : rc;
}

static int compare_chains(const void *left, const void *right)
{
    const struct chain *one = left, *other = right;
    return strcmp(one->writer, other->writer);
}

/* Writers that only a checkpoint from elsewhere speaks of: the store has forgotten them. */
static void add_forgotten(struct walk *walk, size_t known)
{
    for (size_t i = 0; i < walk->marks.count; i++) {
        struct chain wanted = {.head_seq = 0};
        memcpy(wanted.writer, walk->marks.items[i].writer, sizeof(wanted.writer));
        memcpy(wanted.head_hash, digest_zero, sizeof(wanted.head_hash));
        bool is_first = i == 0 || strcmp(walk->marks.items[i - 1].writer, wanted.writer) != 0;
        if (wanted.writer[0] != '\0' && is_first && is_wanted(walk, wanted.writer) &&
            (known == 0 || !bsearch(&wanted, walk->chains, known, sizeof(wanted), compare_chains)))
            walk->chains[walk->count++] = wanted;
    }
    qsort(walk->chains, walk->count, sizeof(*walk->chains), compare_chains);
}

static int read_chains(struct reader *reader, struct walk *walk)
{
    char **writers = NULL;
    size_t count = 0;
    int rc = reader_writers(reader, &writers, &count);
    if (rc != 0)
        return rc;
    walk->chains = calloc(count + walk->marks.count + 1, sizeof(*walk->chains));
    if (!walk->chains)
        rc = -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (rc == 0 && is_wanted(walk, writers[i]))
            rc = read_chain(reader, walk, writers[i]);
        free(writers[i]);
    }
    free((void *)writers);
    if (rc == 0)
        add_forgotten(walk, walk->count);
    walk->result->writers = (int64_t)walk->count;
    return rc;
}

/* ---- checkpoints on the way --------------------------------------------------------------------- */

static const struct mark *next_mark(const struct walk *walk)
{
    return walk->mark < walk->marks.count && strcmp(walk->marks.items[walk->mark].writer,
                                                    walk->chains[walk->current].writer) == 0
               ? &walk->marks.items[walk->mark]
               : NULL;
}

/* The chain has come to walk->seq with walk->hash: what do checkpoints say? Those over rows that were
 * jumped over can say nothing more than who signed them. */
static int check_marks(struct walk *walk)
{
    const struct mark *mark;
    while ((mark = next_mark(walk)) && mark->seq <= walk->seq) {
        if (mark->seq == walk->seq && strcmp(mark->row_hash, walk->hash) != 0)
            return found(walk, VERIFY_CHECKPOINT, walk->seq, walk->row_id);
        if (!mark->counts)
            return found(walk, VERIFY_UNSIGNED, mark->seq,
                         mark->seq == walk->seq ? walk->row_id : "");
        walk->mark++;
        walk->result->checkpoints++;
    }
    return 0;
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static void begin_chain(struct walk *walk)
{
    walk->seq = 0;
    memcpy(walk->hash, digest_zero, sizeof(walk->hash));
    walk->row_id[0] = '\0';
    if (walk->current < walk->count)
        walk->mark = mark_list_find(&walk->marks, walk->chains[walk->current].writer, INT64_MIN);
}

/* Jumps over the retired ranges that follow here, up to a row that is there (until) or the head. */
static int jump(struct walk *walk, int64_t until)
{
    const struct chain *chain = &walk->chains[walk->current];
    const struct retired_range *range;
    while (walk->seq + 1 < until && chain->head_seq > 0 &&
           (range = retired_find(&walk->retired, chain->writer, walk->seq + 1, walk->hash))) {
        if (range->first_seq > chain->head_seq)
            return found(walk, VERIFY_HEAD, range->first_seq, "");
        if (!range->is_signed)
            return found(walk, VERIFY_UNSIGNED, range->first_seq, "");
        walk->result->retired += range->last_seq - walk->seq;
        walk->seq = range->last_seq;
        memcpy(walk->hash, range->last_hash, sizeof(walk->hash));
        walk->row_id[0] = '\0';
        if (check_marks(walk) != 0)
            return 1;
    }
    return 0;
}

/* No more rows of the current chain: is its last one the head, and does no checkpoint know more? */
static int end_chain(struct walk *walk)
{
    const struct chain *chain = &walk->chains[walk->current];
    if (walk->seq < chain->head_seq && jump(walk, chain->head_seq + 1) != 0)
        return 1;
    if (walk->seq < chain->head_seq)
        return found(walk, VERIFY_HEAD, walk->seq + 1, "");
    if (strcmp(walk->hash, chain->head_hash) != 0)
        return found(walk, VERIFY_HEAD, walk->seq, walk->row_id);
    if (next_mark(walk))
        return found(walk, VERIFY_CHECKPOINT, walk->seq + 1, "");
    walk->current++;
    begin_chain(walk);
    return 0;
}

/* Goes on to the chain of this row; all chains before it have ended. */
static int seek_chain(struct walk *walk, const char *writer)
{
    while (walk->current < walk->count && strcmp(walk->chains[walk->current].writer, writer) < 0)
        if (end_chain(walk) != 0)
            return 1;
    if (walk->current < walk->count && strcmp(walk->chains[walk->current].writer, writer) == 0)
        return 0;
    return found(walk, VERIFY_UNREADABLE, walk->seq + 1, "");
}

/* Is it the next row of its chain? */
static int check_place(struct walk *walk, const struct chain_row *row)
{
    if (row->writer[0] == '\0')
        return found(walk, VERIFY_UNREADABLE, walk->seq + 1, "");
    if (seek_chain(walk, row->writer) != 0)
        return 1;
    if (row->seq == 0)
        return found(walk, VERIFY_UNREADABLE, walk->seq + 1, "");
    if (row->seq > walk->seq + 1 && jump(walk, row->seq) != 0)
        return 1;
    if (row->seq > walk->seq + 1 && row->readable)
        return found(walk, VERIFY_MISSING, walk->seq + 1, "");
    if (!row->readable)
        return found(walk, VERIFY_UNREADABLE, row->seq, "");
    if (row->seq <= walk->seq)
        return found(walk, VERIFY_REPEATED, row->seq, row->id);
    return 0;
}

static int check_row(struct walk *walk, const struct chain_row *row)
{
    if (check_place(walk, row) != 0)
        return 1;
    int rc = chain_row_check(walk->hasher, row);
    if (rc < 0)
        return rc;
    if (rc > 0)
        return found(walk, VERIFY_ALTERED, row->seq, row->id);
    if (memcmp(chain_row_prev_hash(row), walk->hash, DIGEST_HEX_BYTES - 1) != 0)
        return found(walk, VERIFY_UNLINKED, row->seq, row->id);
    if (row->seq > walk->chains[walk->current].head_seq)
        return found(walk, VERIFY_HEAD, row->seq, row->id);
    walk->seq = row->seq;
    memcpy(walk->hash, row->row_hash, sizeof(walk->hash));
    memcpy(walk->row_id, row->id, sizeof(walk->row_id));
    if (check_marks(walk) != 0)
        return 1;
    if (row->retires && !mark_list_vouches(&walk->marks, row->writer, row->seq, row->row_hash))
        return found(walk, VERIFY_UNSIGNED, row->seq, row->id);
    return 0;
}

/* 0: go on, 1: something was found or all was read, 2, -errno. */
static int step(struct reader *reader, struct walk *walk)
{
    const struct chain_row *row = NULL;
    int rc = reader_walk_next(reader, &row);
    if (rc == 0)
        rc = check_row(walk, row);
    else
        while (rc == 1 && walk->current < walk->count)
            if (end_chain(walk) != 0)
                break;
    if (rc == 0)
        walk->result->rows++;
    return rc;
}

static int walk_rows(struct reader *reader, struct walk *walk, int64_t of)
{
    const struct verify_options *options = walk->options;
    int rc = reader_walk(reader, options->writer);
    if (rc == 1)
        return 2;
    begin_chain(walk);
    while (rc == 0) {
        rc = step(reader, walk);
        if (options->progress && rc == 0 && walk->result->rows % PROGRESS_ROWS == 0)
            options->progress(options->context, walk->result->rows, of);
    }
    return rc == 1 ? 0 : rc;
}

/* Nothing but the place of a checkpoint that cannot be read is known: it is wrong whatever the rows
 * are, and comes first, for its writer is "". */
static int check_nameless(struct walk *walk)
{
    if (walk->marks.count == 0 || walk->marks.items[0].writer[0] != '\0')
        return 0;
    walk->current = walk->count;
    return found(walk, VERIFY_UNSIGNED, 0, "");
}

static int verify_frozen(struct reader *reader, struct walk *walk)
{
    int64_t of = walk->options->writer ? -1 : reader_estimate(reader);
    int rc = read_marks(reader, walk);
    if (rc == 0 && check_nameless(walk) != 0)
        return 0;
    if (rc == 0)
        rc = read_retired(reader, walk);
    if (rc == 0)
        rc = read_chains(reader, walk);
    return rc == 0 ? walk_rows(reader, walk, of) : rc;
}

int verify_ledger(struct reader *reader, const struct verify_options *options,
                  struct verify_result *result)
{
    static const struct verify_options all = {0};
    struct walk walk = {.options = options ? options : &all, .result = result};
    *result = (struct verify_result){.finding = VERIFY_OK};
    walk.hasher = chain_row_hasher_new();
    if (!walk.hasher)
        return -EIO;
    int rc = reader_freeze(reader);
    if (rc == 0) {
        rc = verify_frozen(reader, &walk);
        reader_thaw(reader);
    }
    chain_row_hasher_free(walk.hasher);
    mark_list_free(&walk.marks);
    retired_free(&walk.retired);
    free(walk.chains);
    return rc;
}
