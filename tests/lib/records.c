/*
 * records.c - see records.h.
 */
#include "tests/lib/records.h"

#include <stdio.h>
#include <string.h>

#define NOW_MS INT64_C(1769860800000)

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void must(bool right)
{
    if (!right)
        abort();
}

/* xorshift64* */
uint64_t records_random(struct records_chain *chain)
{
    uint64_t x = chain->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    chain->random = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

static void next_id(struct records_chain *chain, char out[UUID7_TEXT_BYTES])
{
    uint8_t bytes[10];
    uint64_t first = records_random(chain), second = records_random(chain);
    memcpy(bytes, &first, 8);
    memcpy(bytes + 8, &second, 2);
    uuid7_next(&chain->ids, (uint64_t)NOW_MS, bytes, out);
}

void records_begin(struct records_chain *chain, uint64_t seed)
{
    *chain = (struct records_chain){.random = seed ? seed : 1};
    memcpy(chain->hash, digest_zero, sizeof(chain->hash));
    next_id(chain, chain->writer);
}

static size_t column_of(const char *name)
{
    size_t i = 0;
    while (i < record_layout.count && strcmp(record_layout.columns[i].name, name) != 0)
        i++;
    must(i < record_layout.count);
    return i;
}

static void set(struct record *record, const char *name, const char *text)
{
    must(row_set(&record_layout, record, column_of(name), text) == 0);
}

struct record *records_plain(struct records_chain *chain)
{
    struct record *record = need(record_new());
    char text[UUID7_TEXT_BYTES + 16], digest[DIGEST_HEX_BYTES];
    next_id(chain, record->run_id);
    (void)snprintf(text, sizeof(text), "print(%s)", record->run_id);
    must(digest_hex(text, strlen(text), digest) == 0);
    set(record, "code_sha256", digest);
    set(record, "company", "acme");
    set(record, "actor", "agent-000017");
    set(record, "purpose", "monthly revenue report for the finance team");
    set(record, "client_name", "billing");
    set(record, "language", "python");
    set(record, "grant",
        "{\"data_api\":[],\"filesystem\":{\"read\":[\"/srv/catalogue\"],\"write\":[]},"
        "\"limits\":{\"cpu_ms\":2000,\"memory_bytes\":134217728,\"output_bytes\":1048576,"
        "\"processes\":16,\"wall_ms\":5000},\"network\":{\"hosts\":[],\"mode\":\"none\"},"
        "\"secrets\":[]}");
    set(record, "provider", "namespace");
    set(record, "provider_version", "0.1.0");
    set(record, "envelope_sha256", digest_zero);
    set(record, "status", "succeeded");
    set(record, "reason", "exit_zero");
    set(record, "denials", "[]");
    set(record, "exit_code", "0");
    set(record, "usage", "{\"memory_peak_bytes\":10485760,\"user_us\":12000,\"wall_us\":31000}");
    record->client_uid = record->client_gid = 1000;
    record->client_pid = 4242;
    record->code_bytes = (int64_t)strlen(text);
    record->received_at = NOW_MS * 1000 + (int64_t)(records_random(chain) % 1000000);
    record->started_at = record->received_at + 500;
    record->finished_at = record->received_at + 31000;
    return record;
}

static const char *pick(struct records_chain *chain, const char *const *texts, size_t count)
{
    return texts[records_random(chain) % count];
}

static int64_t pick_time(struct records_chain *chain)
{
    static const int64_t odd[] = {0,
                                  -1,
                                  1,
                                  999999,
                                  -62135596800000000,
                                  253402300799999999,
                                  951782400000000,
                                  1483228799999999,
                                  946684800000000,
                                  946684799999999};
    uint64_t random = records_random(chain);
    if (random % 3 == 0)
        return odd[random / 3 % AR_COUNT(odd)];
    return (int64_t)(random % UINT64_C(4102444800000000));
}

static int64_t pick_integer(struct records_chain *chain)
{
    static const int64_t odd[] = {0,
                                  -1,
                                  1,
                                  255,
                                  INT32_MAX,
                                  INT32_MIN,
                                  INT64_MAX,
                                  -INT64_MAX,
                                  9007199254740991,
                                  -9007199254740993};
    return odd[records_random(chain) % AR_COUNT(odd)];
}

static void set_odd_texts(struct records_chain *chain, struct record *record)
{
    static const char *const texts[] = {"acme",
                                        "\u00e9",
                                        "e\u0301",
                                        "\u2028",
                                        "\"",
                                        "\\",
                                        "\\\\x41",
                                        "'",
                                        "''; DROP TABLE runs; --",
                                        "null",
                                        "NULL",
                                        " ",
                                        "  two  ",
                                        "a:b",
                                        "{}",
                                        "{a,\"b\"}",
                                        "$1",
                                        "%s",
                                        "\U0001f600",
                                        "0",
                                        "1e5",
                                        "\ufeffbom",
                                        "\u202eright to left",
                                        "\uffff",
                                        "2026-01-31T12:00:00.123456Z"};
    static const char *const columns[] = {"company", "actor", "purpose", "client_name", "language"};
    static const char *const nullable[] = {"client_name", "provider", "provider_version"};
    for (size_t i = 0; i < AR_COUNT(columns); i++)
        set(record, columns[i], pick(chain, texts, AR_COUNT(texts)));
    for (size_t i = 0; i < AR_COUNT(nullable); i++)
        if (records_random(chain) % 2)
            set(record, nullable[i], NULL);
    if (record->provider && records_random(chain) % 2)
        set(record, "provider", "");
    if (records_random(chain) % 2)
        set(record, "envelope_sha256", NULL);
    if (records_random(chain) % 2)
        set(record, "trace_id", "0123456789abcdef0123456789abcdef");
}

static void set_odd_json(struct records_chain *chain, struct record *record)
{
    static const char *const objects[] = {"{}",
                                          "{\"b\":1,\"a\":[]}",
                                          "{\"n\":[9007199254740992,-9007199254740993]}",
                                          "{\"\u00e9\":\"e\u0301\"}",
                                          "{\"line\":\"\u2028\"}",
                                          "{\"x\":\"\\\"\\\\\\n\\u0001\"}",
                                          "{\"del\":\"\x7f\"}",
                                          "{\"a\":null,\"b\":true,\"c\":{\"d\":[[],{}]}}",
                                          "{\"s\" : 1}"};
    static const char *const arrays[] = {
        "[]", "[{\"demand\":\"network\",\"offered\":null,\"requested\":\"open\"}]",
        "[[],[1],\"\"]"};
    set(record, "grant", pick(chain, objects, AR_COUNT(objects)));
    set(record, "usage", pick(chain, objects, AR_COUNT(objects)));
    set(record, "denials", pick(chain, arrays, AR_COUNT(arrays)));
}

struct record *records_odd(struct records_chain *chain)
{
    struct record *record = records_plain(chain);
    set_odd_texts(chain, record);
    set_odd_json(chain, record);
    record->reason = (enum reason)(1 + records_random(chain) % (REASON_COUNT - 1));
    record->status = reason_status(record->reason);
    record->client_uid = pick_integer(chain);
    record->client_gid = pick_integer(chain);
    record->client_pid = pick_integer(chain);
    record->code_bytes = pick_integer(chain) & INT64_MAX;
    record->exit_code = records_random(chain) % 2 ? ROW_NULL : pick_integer(chain);
    record->signal = records_random(chain) % 2 ? ROW_NULL : 0;
    record->received_at = pick_time(chain);
    record->started_at = records_random(chain) % 2 ? ROW_NULL : pick_time(chain);
    record->finished_at = pick_time(chain);
    return record;
}

void records_seal(struct records_chain *chain, struct record *record)
{
    bool late = records_random(chain) % 2;
    must(record_seal(record, chain->writer, chain->seq + 1, chain->hash, pick_time(chain), late) ==
         0);
    chain->seq++;
    memcpy(chain->hash, record->row_hash, sizeof(chain->hash));
}

void records_fill(struct records_chain *chain, struct record **records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        records[i] = records_plain(chain);
        records_seal(chain, records[i]);
    }
}

void records_free(struct record **records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        record_free(records[i]);
        records[i] = NULL;
    }
}

bool records_same(const struct record *one, const struct record *other)
{
    bool same = true;
    for (size_t i = 0; i < record_layout.count && same; i++) {
        AR_AUTO_FREE char *left = NULL;
        AR_AUTO_FREE char *right = NULL;
        must(row_get(&record_layout, one, i, &left) == 0 &&
             row_get(&record_layout, other, i, &right) == 0);
        same = left && right ? strcmp(left, right) == 0 : left == right;
        if (!same)
            (void)fprintf(stderr, "%s differs: %s, %s\n", record_layout.columns[i].name,
                          left ? left : "(null)", right ? right : "(null)");
    }
    return same;
}
