/*
 * history.c - see history.h.
 */
#include "tests/lib/history.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- chains ------------------------------------------------------------------------------------- */

static void next_id(struct records_chain *chain, char out[UUID7_TEXT_BYTES])
{
    struct record *record = records_plain(chain);
    memcpy(out, record->run_id, UUID7_TEXT_BYTES);
    record_free(record);
}

struct chain_event *history_event(struct records_chain *chain, enum event_kind kind,
                                  const char *detail)
{
    char id[UUID7_TEXT_BYTES];
    next_id(chain, id);
    json_t *value = json_loads(detail, 0, NULL);
    ck_assert_ptr_nonnull(value);
    struct chain_event *event = chain_event_new(id, kind, value, INT64_C(1769860800123456));
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(chain_event_seal(event, chain->writer, chain->seq + 1, chain->hash,
                                      INT64_C(1769860800234567), false),
                     0);
    chain->seq++;
    memcpy(chain->hash, event->row_hash, sizeof(chain->hash));
    return event;
}

void history_grow_event(struct ledger *ledger, struct records_chain *chain, enum event_kind kind,
                        const char *detail)
{
    struct sink_head head = ledger_chain_head(chain);
    struct chain_event *event = history_event(chain, kind, detail);
    const struct sink_batch batch = {
        .writer = chain->writer, .head = head, .events = &event, .event_count = 1};
    ck_assert_int_eq(ledger_append_batch(ledger, &batch).outcome, SINK_STORED);
    chain_event_free(event);
}

void history_new_chain(struct records_chain *chain, uint64_t seed)
{
    records_begin(chain, seed);
    chain->writer[0] = 'f';
}

void history_begin(struct ledger *ledger, enum ledger_kind kind, struct postgres_server *server,
                   struct records_chain chains[2])
{
    ledger_begin(ledger, kind, server);
    for (size_t i = 0; i < 2; i++) {
        records_begin(&chains[i], 2000 + i);
        chains[i].writer[0] = i == 0 ? '1' : '2';
        history_grow_event(ledger, &chains[i], EVENT_STARTED, "{\"version\":\"1.0\"}");
        ledger_grow(ledger, &chains[i], 2);
        history_grow_event(ledger, &chains[i], EVENT_RELOADED, "{\"config\":\"\\u00e9\"}");
        ledger_grow(ledger, &chains[i], 5);
        history_grow_event(ledger, &chains[i], EVENT_STOPPED, "{}");
        ck_assert_int_eq(chains[i].seq, HISTORY_ROWS);
    }
}

/* ---- signatures --------------------------------------------------------------------------------- */

struct checkpoint_key *history_key(void)
{
    struct checkpoint_key *key = NULL;
    ck_assert_int_eq(checkpoint_key_make(&key), 0);
    return key;
}

struct checkpoint history_sign(const struct records_chain *chain, const struct checkpoint_key *key)
{
    struct checkpoint checkpoint = {.seq = chain->seq, .made_at = INT64_C(1769860800345678)};
    memcpy(checkpoint.writer, chain->writer, sizeof(checkpoint.writer));
    memcpy(checkpoint.row_hash, chain->hash, sizeof(checkpoint.row_hash));
    ck_assert_int_eq(checkpoint_sign(&checkpoint, key), 0);
    return checkpoint;
}

/* ---- what is found ------------------------------------------------------------------------------ */

void history_tamper(const struct ledger *ledger, const char *sql, const char *writer)
{
    char *made = NULL;
    size_t length;
    FILE *stream = open_memstream(&made, &length);
    ck_assert_ptr_nonnull(stream);
    for (const char *place; (place = strstr(sql, "%s")); sql = place + 2)
        (void)fprintf(stream, "%.*s%s", (int)(place - sql), sql, writer);
    (void)fputs(sql, stream);
    ck_assert_int_eq(fclose(stream), 0);
    ck_assert_msg(ledger_tamper(ledger, made), "%s", made);
    free(made);
}

/* The same question in plain SQL. */
static void expect_sql(const struct ledger *ledger, const char *writer,
                       const struct verify_result *result)
{
    AR_AUTO_FREE char *sql = NULL;
    AR_AUTO_FREE char *wanted = NULL;
    ck_assert_int_gt(
        asprintf(&sql,
                 "SELECT concat_ws(' ', finding, writer, NULLIF(seq, 0), row_id, rows, "
                 "writers) FROM verify(%s%s%s)",
                 writer ? "'" : "", writer ? writer : "", writer ? "'" : ""),
        0);
    char seq[32] = "";
    if (result->seq > 0)
        (void)snprintf(seq, sizeof(seq), " %" PRId64, result->seq);
    ck_assert_int_gt(asprintf(&wanted, "%s%s%s%s%s%s %" PRId64 " %" PRId64,
                              verify_word(result->finding), result->writer[0] ? " " : "",
                              result->writer, seq, result->row_id[0] ? " " : "", result->row_id,
                              result->rows, result->writers),
                     0);
    AR_AUTO_FREE char *value = ledger_value(ledger, sql);
    ck_assert_str_eq(value, wanted);
}

struct verify_result history_verify(const struct ledger *ledger,
                                    const struct verify_options *options)
{
    struct verify_result result;
    struct reader *reader = ledger_reader(ledger);
    int rc = verify_ledger(reader, options, &result);
    ck_assert_msg(rc == 0, "verify: %d, %s", rc, reader_message(reader));
    reader_close(reader);
    bool elsewhere = options && (options->checkpoint_count > 0 || options->key_id_count > 0);
    if (ledger->kind == LEDGER_POSTGRES && !elsewhere && result.finding != VERIFY_UNSIGNED)
        expect_sql(ledger, options ? options->writer : NULL, &result);
    return result;
}

void history_expect(const struct ledger *ledger, const struct verify_options *options,
                    enum verify_finding finding, const char *writer, int64_t seq)
{
    struct verify_result result = history_verify(ledger, options);
    ck_assert_msg(result.finding == finding, "%s at %s %" PRId64 ", not %s",
                  verify_word(result.finding), result.writer, result.seq, verify_word(finding));
    ck_assert_str_eq(result.writer, writer);
    ck_assert_int_eq(result.seq, seq);
}
