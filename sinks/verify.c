/*
 * verify.c - walks the rows of all writers in the order of their chains, against the heads.
 *
 * Rows, heads and the list of writers are of one moment (reader_freeze), so that a daemon that
 * appends meanwhile is never mistaken for a change. The walk stops at the first row that is wrong.
 */
#include "sinks/verify.h"

#include <stdio.h>
#include <string.h>

#define PROGRESS_ROWS 4096

static const char *const words[VERIFY_FINDING_COUNT] = {
    [VERIFY_OK] = "ok",
    [VERIFY_ALTERED] = "altered",
    [VERIFY_MISSING] = "missing",
    [VERIFY_REPEATED] = "repeated",
    [VERIFY_UNLINKED] = "unlinked",
    [VERIFY_HEAD] = "head_differs",
    [VERIFY_UNREADABLE] = "unreadable",
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
    struct verify_result *result;
    struct chain *chains; /* in the order of writer, as the rows come */
    size_t count;
    size_t current;
    int64_t seq; /* of the last row of the current chain */
    char hash[DIGEST_HEX_BYTES];
    char run_id[UUID7_TEXT_BYTES];
};

static int found(struct walk *walk, enum verify_finding finding, int64_t seq, const char *run_id)
{
    struct verify_result *result = walk->result;
    result->finding = finding;
    result->seq = seq;
    if (walk->current < walk->count)
        memcpy(result->writer, walk->chains[walk->current].writer, sizeof(result->writer));
    (void)snprintf(result->run_id, sizeof(result->run_id), "%s", run_id);
    return 1;
}

/* ---- the list of chains --------------------------------------------------------------------- */

static int read_chain(struct reader *reader, const char *writer, struct chain *chain)
{
    (void)snprintf(chain->writer, sizeof(chain->writer), "%s", writer);
    memcpy(chain->head_hash, digest_zero, sizeof(chain->head_hash));
    int rc = reader_head(reader, writer, &chain->head_seq, chain->head_hash);
    return rc == 1 ? 0 : rc;
}

static int read_chains(struct reader *reader, struct walk *walk)
{
    char **writers = NULL;
    size_t count = 0;
    int rc = reader_writers(reader, &writers, &count);
    if (rc != 0)
        return rc;
    walk->chains = calloc(count + 1, sizeof(*walk->chains));
    if (!walk->chains)
        rc = -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (rc == 0)
            rc = read_chain(reader, writers[i], &walk->chains[walk->count++]);
        free(writers[i]);
    }
    free((void *)writers);
    walk->result->writers = (int64_t)walk->count;
    return rc;
}

/* ---- the walk ------------------------------------------------------------------------------- */

static void begin_chain(struct walk *walk)
{
    walk->seq = 0;
    memcpy(walk->hash, digest_zero, sizeof(walk->hash));
    walk->run_id[0] = '\0';
}

/* No more rows of the current chain: is its last one the head? */
static int end_chain(struct walk *walk)
{
    const struct chain *chain = &walk->chains[walk->current];
    if (walk->seq < chain->head_seq)
        return found(walk, VERIFY_HEAD, walk->seq + 1, "");
    if (strcmp(walk->hash, chain->head_hash) != 0)
        return found(walk, VERIFY_HEAD, walk->seq, walk->run_id);
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

static int check_row(struct walk *walk, const struct record *record)
{
    if (seek_chain(walk, record->writer) != 0)
        return 1;
    if (record->seq <= walk->seq)
        return found(walk, VERIFY_REPEATED, record->seq, record->run_id);
    if (record->seq > walk->seq + 1)
        return found(walk, VERIFY_MISSING, walk->seq + 1, "");
    int rc = record_check(record);
    if (rc < 0)
        return rc;
    if (rc > 0)
        return found(walk, VERIFY_ALTERED, record->seq, record->run_id);
    if (strcmp(record->prev_hash, walk->hash) != 0)
        return found(walk, VERIFY_UNLINKED, record->seq, record->run_id);
    if (record->seq > walk->chains[walk->current].head_seq)
        return found(walk, VERIFY_HEAD, record->seq, record->run_id);
    walk->seq = record->seq;
    memcpy(walk->hash, record->row_hash, sizeof(walk->hash));
    memcpy(walk->run_id, record->run_id, sizeof(walk->run_id));
    return 0;
}

/* 0: go on, 1: something was found or all was read, 2, -errno. */
static int step(struct reader *reader, struct walk *walk)
{
    AR_CLEANUP(record_cleanup) struct record *record = NULL;
    int rc = reader_next(reader, &record);
    if (rc == READER_UNREADABLE)
        return found(walk, VERIFY_UNREADABLE, walk->seq + 1, "");
    if (rc == 0)
        rc = check_row(walk, record);
    else
        while (rc == 1 && walk->current < walk->count)
            if (end_chain(walk) != 0)
                break;
    if (rc == 0)
        walk->result->rows++;
    return rc;
}

int verify_ledger(struct reader *reader, void (*progress)(void *context, int64_t rows, int64_t of),
                  void *context, struct verify_result *result)
{
    struct walk walk = {.result = result};
    struct reader_filter all = READER_FILTER_ALL;
    *result = (struct verify_result){.finding = VERIFY_OK};
    begin_chain(&walk);
    int rc = reader_freeze(reader);
    if (rc != 0)
        return rc;
    int64_t of = reader_estimate(reader);
    rc = read_chains(reader, &walk);
    if (rc == 0) {
        rc = reader_query(reader, &all, READER_BY_CHAIN);
        rc = rc == 1 ? 2 : rc;
    }
    while (rc == 0) {
        rc = step(reader, &walk);
        if (progress && rc == 0 && result->rows % PROGRESS_ROWS == 0)
            progress(context, result->rows, of);
    }
    reader_thaw(reader);
    free(walk.chains);
    return rc == 1 ? 0 : rc;
}
