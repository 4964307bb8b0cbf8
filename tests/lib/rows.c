/*
 * rows.c - see rows.h.
 */
#include "tests/lib/rows.h"

#include "sinks/verify.h"
#include "tests/lib/processes.h"

#include <check.h>
#include <poll.h>
#include <string.h>

#define POLL_MS 20

static struct reader *open_reader(const char *url)
{
    char message[READER_MESSAGE_BYTES] = "";
    struct reader *reader = NULL;
    int rc = reader_open(url, &reader, message);
    ck_assert_msg(rc == 0, "the ledger cannot be read (%d): %s", rc, message);
    return reader;
}

static void verify(struct reader *reader)
{
    struct verify_result result;
    int rc = verify_ledger(reader, NULL, &result);
    ck_assert_msg(rc == 0, "the ledger cannot be verified (%d): %s", rc, reader_message(reader));
    ck_assert_msg(result.finding == VERIFY_OK, "the ledger is not whole: %s at %s %lld",
                  verify_word(result.finding), result.writer, (long long)result.seq);
}

static void add(struct rows *rows, struct record *record)
{
    struct record **grown = reallocarray(rows->items, rows->count + 1, sizeof(struct record *));
    ck_assert_ptr_nonnull(grown);
    rows->items = grown;
    grown[rows->count++] = record;
}

struct rows rows_read(const char *url)
{
    struct reader_filter filter = READER_FILTER_ALL;
    struct rows rows = {0};
    struct record *record;
    int rc;
    struct reader *reader = open_reader(url);
    verify(reader);
    ck_assert_int_eq(reader_query(reader, &filter, READER_NEWEST_FIRST), 0);
    while ((rc = reader_next(reader, &record)) == 0)
        add(&rows, record);
    ck_assert_msg(rc == 1, "a row cannot be read (%d): %s", rc, reader_message(reader));
    reader_close(reader);
    return rows;
}

void rows_free(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        record_free(rows->items[i]);
    free(rows->items);
    *rows = (struct rows){0};
}

size_t rows_count(const struct rows *rows, enum status status, enum reason reason)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        count += (status == STATUS_NONE || rows->items[i]->status == status) &&
                 (reason == REASON_NONE || rows->items[i]->reason == reason);
    return count;
}

const struct record *rows_find(const struct rows *rows, const char *run_id)
{
    const struct record *found = NULL;
    for (size_t i = 0; i < rows->count; i++) {
        if (strcmp(rows->items[i]->run_id, run_id) != 0)
            continue;
        ck_assert_msg(!found, "two rows of run %s", run_id);
        found = rows->items[i];
    }
    ck_assert_msg(found != NULL, "no row of run %s", run_id);
    return found;
}

struct rows rows_wait(const char *url, size_t count, int64_t ms)
{
    int64_t deadline = processes_now_ms() + ms;
    struct rows rows = rows_read(url);
    while (rows.count < count) {
        ck_assert_msg(processes_now_ms() < deadline, "%zu rows, not %zu", rows.count, count);
        (void)poll(NULL, 0, POLL_MS);
        rows_free(&rows);
        rows = rows_read(url);
    }
    return rows;
}

void rows_expect(const char *url, size_t count)
{
    struct rows rows = rows_read(url);
    ck_assert_uint_eq(rows.count, count);
    rows_free(&rows);
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    ck_assert_msg(text != NULL, "the result has no text %s", member);
    return text;
}

void rows_expect_result(const char *url, const json_t *result)
{
    struct rows rows = rows_read(url);
    const struct record *row = rows_find(&rows, text_of(result, "run_id"));
    const json_t *place = json_object_get(result, "record");
    ck_assert_str_eq(status_word(row->status), text_of(result, "status"));
    ck_assert_str_eq(reason_word(row->reason), text_of(result, "reason"));
    ck_assert_str_eq(row->writer, text_of(place, "writer"));
    ck_assert_str_eq(row->row_hash, text_of(place, "hash"));
    ck_assert_int_eq(row->seq, json_integer_value(json_object_get(place, "seq")));
    rows_free(&rows);
}
