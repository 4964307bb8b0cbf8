/*
 * check_record.c - the row's canonical bytes, its hash, and that every column comes back exactly as
 * it was (C28).
 */
#include "protocol/record.h"
#include "protocol/text.h"
#include "tests/unit/unit.h"

#include <time.h>

#define RUN_ID "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
#define WRITER "c9bf9e57-1685-4c89-bafb-ff5af830be8a"

static void set(struct record *record, const char *name, const char *text)
{
    for (size_t i = 0; i < record_layout.count; i++) {
        if (strcmp(record_layout.columns[i].name, name) == 0) {
            ck_assert_msg(row_set(&record_layout, record, i, text) == 0, "%s: %s", name,
                          text ? text : "null");
            return;
        }
    }
    ck_abort_msg("no column %s", name);
}

static struct record *sample(void)
{
    struct record *record = record_new();
    ck_assert_ptr_nonnull(record);
    set(record, "run_id", RUN_ID);
    set(record, "company", "acme");
    set(record, "actor", "actor-1");
    set(record, "purpose", "case");
    set(record, "client_name", "web");
    set(record, "client_uid", "1000");
    set(record, "client_gid", "1000");
    set(record, "client_pid", "4242");
    set(record, "language", "python");
    set(record, "code_sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    set(record, "code_bytes", "8");
    set(record, "grant", "{\"limits\":{\"wall_ms\":5000},\"network\":{\"mode\":\"none\"}}");
    set(record, "provider", "namespace");
    set(record, "provider_version", "1.0");
    set(record, "status", "failed");
    set(record, "reason", "exit_nonzero");
    set(record, "denials", "[]");
    set(record, "exit_code", "7");
    set(record, "usage", "{\"wall_us\":1234}");
    set(record, "received_at", "2026-01-31T12:00:00.123456Z");
    set(record, "started_at", "2026-01-31T12:00:00.123457Z");
    set(record, "finished_at", "2026-01-31T12:00:01.000000Z");
    return record;
}

START_TEST(test_canonical_bytes)
{
    AR_CLEANUP(record_cleanup) struct record *record = sample();
    int64_t recorded_at;
    size_t length;
    ck_assert(row_time_parse("2026-01-31T12:00:01.000001Z", &recorded_at));
    ck_assert_int_eq(record_seal(record, WRITER, 42, digest_zero, recorded_at, true), 0);
    AR_AUTO_FREE char *text = row_canonical(&record_layout, record, &length);
    static const char expected[] =
        "run_id:" RUN_ID "\nwriter:" WRITER
        "\nseq:42\nschema_version:1\ncompany:acme\nactor:actor-1\n"
        "purpose:case\nclient_name:web\nclient_uid:1000\nclient_gid:1000\nclient_pid:4242\n"
        "language:python\n"
        "code_sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\ncode_bytes:"
        "8\n"
        "grant:{\"limits\":{\"wall_ms\":5000},\"network\":{\"mode\":\"none\"}}\nprovider:"
        "namespace\n"
        "provider_version:1.0\nenvelope_sha256\nstatus:failed\nreason:exit_nonzero\ndenials:[]\n"
        "exit_code:7\nsignal\nusage:{\"wall_us\":1234}\ntrace_id\nreceived_at:2026-01-31T12:00:00."
        "123456Z\n"
        "started_at:2026-01-31T12:00:00.123457Z\nfinished_at:2026-01-31T12:00:01.000000Z\n"
        "recorded_at:2026-01-31T12:00:01.000001Z\nlate:true\n";
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(length, strlen(expected));
    char hash[DIGEST_HEX_BYTES];
    ck_assert_int_eq(digest_chain(digest_zero, expected, strlen(expected), hash), 0);
    ck_assert_str_eq(record->row_hash, hash);
    ck_assert_str_eq(record->prev_hash, digest_zero);
    ck_assert_int_eq(record_check(record), 0);
}
END_TEST

START_TEST(test_seal_again)
{
    AR_CLEANUP(record_cleanup) struct record *record = sample();
    char first[DIGEST_HEX_BYTES];
    ck_assert_int_eq(record_seal(record, WRITER, 1, digest_zero, 1, false), 0);
    memcpy(first, record->row_hash, sizeof(first));
    ck_assert_int_eq(record_seal(record, WRITER, 2, first, 1, true), 0);
    ck_assert_str_ne(record->row_hash, first);
    ck_assert_int_eq(record_seal(record, WRITER, 1, digest_zero, 1, false), 0);
    ck_assert_str_eq(record->row_hash, first);
}
END_TEST

/* The smallest step in any one column, null and empty included, is seen. */
START_TEST(test_any_change_shows)
{
    static const char *const changes[][2] = {
        {"run_id", "017f22e2-79b0-7cc3-98c4-dc0c0c07398e"},
        {"writer", "c9bf9e57-1685-4c89-bafb-ff5af830be8b"},
        {"seq", "6"},
        {"schema_version", "2"},
        {"company", "acmf"},
        {"actor", "actor-2"},
        {"purpose", "cas"},
        {"client_name", ""},
        {"client_name", NULL},
        {"client_uid", "1001"},
        {"client_gid", "0"},
        {"client_pid", "-4242"},
        {"language", "python "},
        {"code_sha256", "ca7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"code_bytes", "9"},
        {"grant", "{\"limits\":{\"wall_ms\":5001},\"network\":{\"mode\":\"none\"}}"},
        {"grant", "{ \"limits\":{\"wall_ms\":5000},\"network\":{\"mode\":\"none\"}}"},
        {"provider", ""},
        {"provider", NULL},
        {"provider_version", "1.0.0"},
        {"envelope_sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"status", "succeeded"},
        {"reason", "exit_zero"},
        {"denials", "[[]]"},
        {"exit_code", NULL},
        {"exit_code", "0"},
        {"signal", "0"},
        {"usage", "{}"},
        {"trace_id", "0af7651916cd43dd8448eb211c80319c"},
        {"received_at", "2026-01-31T12:00:00.123455Z"},
        {"started_at", NULL},
        {"finished_at", "2026-01-31T12:00:01.000001Z"},
        {"recorded_at", "2026-01-31T12:00:01.000002Z"},
        {"late", "true"},
        {"prev_hash", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"row_hash", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    };
    for (size_t i = 0; i < AR_COUNT(changes); i++) {
        AR_CLEANUP(record_cleanup) struct record *record = sample();
        ck_assert_int_eq(record_seal(record, WRITER, 5, digest_zero, 1, false), 0);
        ck_assert_int_eq(record_check(record), 0);
        set(record, changes[i][0], changes[i][1]);
        ck_assert_msg(record_check(record) == 1, "%s", changes[i][0]);
    }
    for (size_t i = 0; i < record_layout.count; i++) {
        bool touched = false;
        for (size_t j = 0; j < AR_COUNT(changes); j++)
            touched |= strcmp(changes[j][0], record_layout.columns[i].name) == 0;
        ck_assert_msg(touched, "%s is not in the list", record_layout.columns[i].name);
    }
}
END_TEST

START_TEST(test_forms)
{
    static const char *const wrong[][2] = {{"run_id", ""},
                                           {"run_id", "c9bf9e57-1685-4c89-bafb-ff5af830be8a"},
                                           {"run_id", NULL},
                                           {"writer", "x"},
                                           {"writer", NULL},
                                           {"seq", ""},
                                           {"seq", "01"},
                                           {"seq", "+1"},
                                           {"seq", "-0"},
                                           {"seq", " 1"},
                                           {"seq", "1 "},
                                           {"seq", "1.0"},
                                           {"seq", "0x1"},
                                           {"seq", NULL},
                                           {"seq", "9223372036854775808"},
                                           {"exit_code", "-9223372036854775808"},
                                           {"exit_code", ""},
                                           {"company", NULL},
                                           {"company", "a\nb"},
                                           {"company", "a\x7f"},
                                           {"company", "\xff"},
                                           {"company", "\xc2\x85"},
                                           {"code_sha256", ""},
                                           {"code_sha256", "abc"},
                                           {"code_sha256", NULL},
                                           {"envelope_sha256", ""},
                                           {"grant", "[]"},
                                           {"grant", "{"},
                                           {"grant", "{\n}"},
                                           {"grant", ""},
                                           {"grant", NULL},
                                           {"grant", "{\"a\":1,\"a\":2}"},
                                           {"denials", "{}"},
                                           {"usage", "[]"},
                                           {"status", "ok"},
                                           {"status", NULL},
                                           {"reason", "because"},
                                           {"trace_id", ""},
                                           {"trace_id", "0AF7651916CD43DD8448EB211C80319C"},
                                           {"trace_id", "0af7651916cd43dd8448eb211c80319"},
                                           {"late", "t"},
                                           {"late", ""},
                                           {"late", NULL},
                                           {"received_at", ""},
                                           {"received_at", NULL},
                                           {"prev_hash", "abc"}};
    AR_CLEANUP(record_cleanup) struct record *record = sample();
    AR_AUTO_JSON json_t *before = record_to_json(record);
    for (size_t i = 0; i < AR_COUNT(wrong); i++) {
        for (size_t column = 0; column < record_layout.count; column++) {
            if (strcmp(record_layout.columns[column].name, wrong[i][0]) != 0)
                continue;
            /* "" is a digest's null in the struct, but no text of the column. */
            ck_assert_msg(row_set(&record_layout, record, column, wrong[i][1]) == 1, "%s: %s",
                          wrong[i][0], wrong[i][1] ? wrong[i][1] : "null");
        }
    }
    AR_AUTO_JSON json_t *after = record_to_json(record);
    ck_assert(json_equal(before, after));
    char *text;
    ck_assert_int_eq(row_get(&record_layout, record, record_layout.count, &text), -ENOENT);
    ck_assert_int_eq(row_set(&record_layout, record, record_layout.count, "x"), 1);
}
END_TEST

START_TEST(test_times)
{
    static const struct {
        int64_t us;
        const char *text;
    } times[] = {{0, "1970-01-01T00:00:00.000000Z"},
                 {-1, "1969-12-31T23:59:59.999999Z"},
                 {1, "1970-01-01T00:00:00.000001Z"},
                 {951782400000000, "2000-02-29T00:00:00.000000Z"},
                 {1483228799999999, "2016-12-31T23:59:59.999999Z"},
                 {1483228800000000, "2017-01-01T00:00:00.000000Z"},
                 {4107542399999999, "2100-02-28T23:59:59.999999Z"},
                 {4107542400000000, "2100-03-01T00:00:00.000000Z"},
                 {253402300799999999, "9999-12-31T23:59:59.999999Z"},
                 {-62135596800000000, "0001-01-01T00:00:00.000000Z"}};
    for (size_t i = 0; i < AR_COUNT(times); i++) {
        char text[ROW_TIME_BYTES];
        int64_t us = 7;
        row_time_text(times[i].us, text);
        ck_assert_str_eq(text, times[i].text);
        ck_assert(row_time_parse(text, &us));
        ck_assert_int_eq(us, times[i].us);
    }
    static const char *const wrong[] = {"",
                                        "2026-01-31",
                                        "2026-01-31T12:00:00Z",
                                        "2026-01-31T12:00:00.123Z",
                                        "2026-01-31 12:00:00.123456Z",
                                        "2026-01-31T12:00:00.123456",
                                        "2026-01-31T12:00:00.123456z",
                                        "2026-01-31T12:00:00.123456+00:00",
                                        "2026-02-29T12:00:00.123456Z",
                                        "2026-02-30T12:00:00.123456Z",
                                        "2026-13-01T12:00:00.123456Z",
                                        "2026-00-01T12:00:00.123456Z",
                                        "2026-01-00T12:00:00.123456Z",
                                        "2026-01-01T24:00:00.123456Z",
                                        "2026-01-01T12:60:00.123456Z",
                                        "2016-12-31T23:59:60.000000Z",
                                        "0000-01-01T00:00:00.000000Z",
                                        "-001-01-01T00:00:00.000000Z",
                                        "10000-01-01T00:00:00.00000Z",
                                        "2026-01-31T12:00:00.123456Z ",
                                        "2026-01-31T12:00:00.123456ZZ",
                                        "2026-01-31T12:00:00,123456Z",
                                        "9999-99-99T99:99:99.999999Z",
                                        NULL};
    for (size_t i = 0; wrong[i]; i++) {
        int64_t us;
        ck_assert_msg(!row_time_parse(wrong[i], &us), "%s", wrong[i]);
    }
}
END_TEST

START_TEST(test_times_against_library)
{
    struct unit_random random = unit_random_new();
    for (int i = 0; i < 50000; i++) {
        int64_t us = (int64_t)unit_random_below(&random, 315537897600u) * 1000000 -
                     62135596800000000 + (int64_t)unit_random_below(&random, 1000000);
        time_t seconds = (time_t)(us >= 0 ? us / 1000000 : -((-us + 999999) / 1000000));
        struct tm tm;
        char text[ROW_TIME_BYTES], expected[64];
        ck_assert_ptr_nonnull(gmtime_r(&seconds, &tm));
        (void)snprintf(expected, sizeof(expected), "%04d-%02d-%02dT%02d:%02d:%02d.%06lldZ",
                       tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                       tm.tm_sec, (long long)(us - (int64_t)seconds * 1000000));
        row_time_text(us, text);
        ck_assert_str_eq(text, expected);
        int64_t again;
        ck_assert(row_time_parse(text, &again));
        ck_assert_int_eq(again, us);
    }
}
END_TEST

/* ---- random records ----------------------------------------------------------------------------- */

static void random_text(struct unit_random *random, char out[256])
{
    static const char *const pieces[] = {
        "a", "Z",           " ",         "\"",           "\\",
        "/", "\xc3\xa9",    "e\xcc\x81", "\xe2\x80\xa8", "\xf0\x9f\x98\x80",
        ":", "%s",          "'",         "null",         "\xc2\xa0",
        "{", "\xef\xbb\xbf"};
    size_t used = 0;
    for (size_t n = unit_random_below(random, 20); n > 0; n--) {
        const char *piece = pieces[unit_random_below(random, AR_COUNT(pieces))];
        memcpy(out + used, piece, strlen(piece));
        used += strlen(piece);
    }
    out[used] = '\0';
}

static char *random_json(struct unit_random *random, bool array)
{
    static const int64_t numbers[] = {0, -1, 1, 9007199254740991, -9007199254740991};
    AR_AUTO_JSON json_t *value = array ? json_array() : json_object();
    for (size_t n = unit_random_below(random, 5); n > 0; n--) {
        char text[256], name[8];
        random_text(random, text);
        (void)snprintf(name, sizeof(name), "m%zu", unit_random_below(random, 9));
        json_t *item = unit_random_below(random, 2) ? json_string(text)
                       : unit_random_below(random, 2)
                           ? json_integer(numbers[unit_random_below(random, AR_COUNT(numbers))])
                           : json_pack("{s:[], s:s, s:n}", "z", "a", "\x01\x1f\x7f\n", "m");
        if (array)
            ck_assert_int_eq(json_array_append_new(value, item), 0);
        else
            ck_assert_int_eq(json_object_set_new(value, name, item), 0);
    }
    return json_canonical(value);
}

static int64_t random_time(struct unit_random *random)
{
    static const int64_t edges[] = {
        0, -1, 999999, 1483228799999999, 253402300799999999, -62135596800000000};
    if (unit_random_below(random, 2))
        return edges[unit_random_below(random, AR_COUNT(edges))];
    return (int64_t)(unit_random_next(random) >> 14);
}

static void random_digest(struct unit_random *random, char out[DIGEST_HEX_BYTES])
{
    uint64_t number = unit_random_next(random);
    ck_assert_int_eq(digest_hex(&number, sizeof(number), out), 0);
}

static void random_texts(struct unit_random *random, struct record *record)
{
    char **const required[] = {&record->company, &record->actor, &record->purpose,
                               &record->language};
    char **const optional[] = {&record->client_name, &record->provider, &record->provider_version,
                               &record->idempotency_key};
    char text[256];
    for (size_t i = 0; i < AR_COUNT(required); i++) {
        random_text(random, text);
        *required[i] = strdup(text);
    }
    for (size_t i = 0; i < AR_COUNT(optional); i++) {
        random_text(random, text);
        if (text[0] && unit_random_below(random, 3))
            *optional[i] = strdup(text);
    }
    if (unit_random_below(random, 2))
        record->trace_id = strdup("0af7651916cd43dd8448eb211c80319c");
    record->grant = random_json(random, false);
    record->denials = random_json(random, true);
    record->usage = random_json(random, false);
}

static struct record *random_record(struct unit_random *random)
{
    static const int64_t codes[] = {ROW_NULL, 0, 255, -1, INT64_MAX, INT64_MIN + 1};
    struct record *record = record_new();
    memcpy(record->run_id, RUN_ID, sizeof(record->run_id));
    random_texts(random, record);
    record->client_uid = (int64_t)(unit_random_next(random) >> 32);
    record->client_gid = (int64_t)(unit_random_next(random) >> 32);
    record->client_pid = (int64_t)unit_random_below(random, 4194304);
    random_digest(random, record->code_sha256);
    if (unit_random_below(random, 2))
        random_digest(random, record->envelope_sha256);
    if (record->idempotency_key)
        random_digest(random, record->request_sha256);
    record->code_bytes = (int64_t)(unit_random_next(random) >> 1);
    record->reason = (enum reason)(1 + unit_random_below(random, REASON_COUNT - 1));
    record->status = reason_status(record->reason);
    record->exit_code = codes[unit_random_below(random, AR_COUNT(codes))];
    record->signal = codes[unit_random_below(random, AR_COUNT(codes))];
    record->received_at = random_time(random);
    record->started_at = unit_random_below(random, 3) ? random_time(random) : ROW_NULL;
    record->finished_at = random_time(random);
    char previous[DIGEST_HEX_BYTES];
    random_digest(random, previous);
    ck_assert_int_eq(record_seal(record, WRITER, 1 + (int64_t)unit_random_below(random, 1u << 30),
                                 previous, random_time(random), unit_random_below(random, 2)),
                     0);
    return record;
}

static void assert_same(const struct record *a, const struct record *b, uint64_t seed)
{
    for (size_t i = 0; i < record_layout.count; i++) {
        AR_AUTO_FREE char *left = NULL;
        AR_AUTO_FREE char *right = NULL;
        ck_assert_int_eq(row_get(&record_layout, a, i, &left), 0);
        ck_assert_int_eq(row_get(&record_layout, b, i, &right), 0);
        ck_assert_msg(!left == !right && (!left || strcmp(left, right) == 0), "%s, seed %llu",
                      record_layout.columns[i].name, (unsigned long long)seed);
        ck_assert(!left || !strchr(left, '\n'));
    }
    ck_assert_int_eq(record_check(b), 0);
}

START_TEST(test_columns_come_back)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < 500; round++) {
        AR_CLEANUP(record_cleanup) struct record *record = random_record(&random);
        AR_CLEANUP(record_cleanup) struct record *copy = record_new();
        for (size_t i = 0; i < record_layout.count; i++) {
            AR_AUTO_FREE char *text = NULL;
            ck_assert_int_eq(row_get(&record_layout, record, i, &text), 0);
            ck_assert_msg(row_set(&record_layout, copy, i, text) == 0, "%s: %s, seed %llu",
                          record_layout.columns[i].name, text ? text : "null",
                          (unsigned long long)random.seed);
        }
        assert_same(record, copy, random.seed);
    }
}
END_TEST

START_TEST(test_json_comes_back)
{
    struct unit_random random = unit_random_new();
    for (int round = 0; round < 500; round++) {
        AR_CLEANUP(record_cleanup) struct record *record = random_record(&random);
        bool with_key = round % 2;
        AR_AUTO_JSON json_t *value =
            with_key ? record_to_journal_json(record) : record_to_json(record);
        AR_AUTO_FREE char *text = json_dumps(value, JSON_COMPACT);
        struct json_document document;
        ck_assert_int_eq(json_parse(text, strlen(text), &document), JSON_OK);
        AR_CLEANUP(record_cleanup) struct record *copy = NULL;
        struct fault fault = {0};
        ck_assert_msg(record_from_json(document.root, with_key, &copy, &fault) == 0,
                      "%s at %s, seed %llu", problem_word(fault.problem), fault.path,
                      (unsigned long long)random.seed);
        assert_same(record, copy, random.seed);
        if (with_key) {
            ck_assert(!record->idempotency_key == !copy->idempotency_key);
            ck_assert(!copy->idempotency_key ||
                      !strcmp(record->idempotency_key, copy->idempotency_key));
            ck_assert_str_eq(record->request_sha256, copy->request_sha256);
        }
        json_document_free(&document);
    }
}
END_TEST

START_TEST(test_json_faults)
{
    static const struct {
        const char *member, *value, *path;
        enum problem problem;
    } cases[] = {{"company", "1", "/company", PROBLEM_WRONG_TYPE},
                 {"company", "null", "/company", PROBLEM_WRONG_TYPE},
                 {"company", "'a\\u0000b'", "/company", PROBLEM_CONTROL_CHARACTER},
                 {"company", "'a\\nb'", "/company", PROBLEM_MALFORMED},
                 {"seq", "'1'", "/seq", PROBLEM_WRONG_TYPE},
                 {"seq", "1.0", "/seq", PROBLEM_WRONG_TYPE},
                 {"grant", "'{}'", "/grant", PROBLEM_WRONG_TYPE},
                 {"grant", "[]", "/grant", PROBLEM_MALFORMED},
                 {"late", "1", "/late", PROBLEM_WRONG_TYPE},
                 {"status", "'fine'", "/status", PROBLEM_MALFORMED},
                 {"status", "'succeeded'", "/reason", PROBLEM_CONFLICT},
                 {"received_at", "'yesterday'", "/received_at", PROBLEM_MALFORMED},
                 {"row_hash", "'x'", "/row_hash", PROBLEM_MALFORMED},
                 {"extra", "1", "/extra", PROBLEM_UNKNOWN_MEMBER},
                 {"idempotency_key", "'k'", "/idempotency_key", PROBLEM_UNKNOWN_MEMBER}};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_CLEANUP(record_cleanup) struct record *record = sample();
        AR_AUTO_JSON json_t *value = record_to_json(record);
        struct record *copy = NULL;
        struct fault fault = {0};
        ck_assert_int_eq(json_object_set_new(value, cases[i].member, unit_json(cases[i].value)), 0);
        ck_assert_msg(record_from_json(value, false, &copy, &fault) == 1, "%s", cases[i].member);
        ck_assert_ptr_null(copy);
        ck_assert_msg(fault.problem == cases[i].problem, "%s: %s", cases[i].member,
                      problem_word(fault.problem));
        ck_assert_str_eq(fault.path, cases[i].path);
    }
    for (size_t i = 0; i < record_layout.count; i++) {
        AR_CLEANUP(record_cleanup) struct record *record = sample();
        AR_AUTO_JSON json_t *value = record_to_json(record);
        struct record *copy = NULL;
        struct fault fault = {0};
        ck_assert_int_eq(json_object_del(value, record_layout.columns[i].name), 0);
        ck_assert_int_eq(record_from_json(value, false, &copy, &fault), 1);
        ck_assert_int_eq(fault.problem, PROBLEM_MISSING);
        ck_assert_str_eq(fault.path + 1, record_layout.columns[i].name);
    }
}
END_TEST

static const TTest **const hashing[] = {&test_canonical_bytes, &test_seal_again,
                                        &test_any_change_shows, NULL};
static const TTest **const reading[] = {&test_forms,
                                        &test_times,
                                        &test_times_against_library,
                                        &test_columns_come_back,
                                        &test_json_comes_back,
                                        &test_json_faults,
                                        NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"hashing", hashing}, {"reading", reading}};
    return unit_main("record", cases, AR_COUNT(cases));
}
