/*
 * check_chain_event.c - the daemon's own rows: canonical bytes, hash, and JSON there and back.
 */
#include "protocol/chain_event.h"
#include "tests/suite.h"

#include <check.h>
#include <string.h>

#define ID     "019a0000-0000-7000-8000-000000000001"
#define WRITER "019a0000-0000-7000-8000-0000000000aa"

static struct chain_event *sealed(void)
{
    struct chain_event *event = chain_event_new(
        ID, EVENT_STARTED, json_pack("{s:s, s:n}", "version", "1", "key_id"), 1700000000000001);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(chain_event_seal(event, WRITER, 7, digest_zero, 1700000000000002, true), 0);
    return event;
}

START_TEST(test_canonical)
{
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = sealed();
    size_t length;
    AR_AUTO_FREE char *text = row_canonical(&chain_event_layout, event, &length);
    ck_assert_str_eq(text, "event_id:" ID "\nwriter:" WRITER "\nseq:7\nschema_version:1\n"
                           "kind:started\ndetail:{\"key_id\":null,\"version\":\"1\"}\n"
                           "happened_at:2023-11-14T22:13:20.000001Z\n"
                           "recorded_at:2023-11-14T22:13:20.000002Z\nlate:true\n");
    ck_assert_uint_eq(length, strlen(text));
    /* printf '%064d\n' 0 | cat - the text above | sha256sum */
    char hash[DIGEST_HEX_BYTES];
    ck_assert_int_eq(digest_chain(digest_zero, text, length, hash), 0);
    ck_assert_str_eq(event->row_hash, hash);
}
END_TEST

/* Each column makes another hash, and the check finds that it is not the row's. */
START_TEST(test_every_column_is_hashed)
{
    static const char *const changes[][2] = {
        {"event_id", "019a0000-0000-7000-8000-000000000002"},
        {"writer", "019a0000-0000-7000-8000-0000000000ab"},
        {"seq", "8"},
        {"schema_version", "2"},
        {"kind", "stopped"},
        {"detail", "{}"},
        {"happened_at", "2023-11-14T22:13:20.000002Z"},
        {"recorded_at", "2023-11-14T22:13:20.000003Z"},
        {"late", "false"},
        {"prev_hash", "000000000000000000000000000000000000000000000000000000000000000a"},
        {"row_hash", "000000000000000000000000000000000000000000000000000000000000000a"},
    };
    ck_assert_uint_eq(AR_COUNT(changes), chain_event_layout.count);
    for (size_t i = 0; i < AR_COUNT(changes); i++) {
        AR_CLEANUP(chain_event_cleanup) struct chain_event *event = sealed();
        size_t column = row_find(&chain_event_layout, changes[i][0]);
        ck_assert_uint_eq(column, i);
        ck_assert_int_eq(chain_event_check(event), 0);
        ck_assert_int_eq(row_set(&chain_event_layout, event, column, changes[i][1]), 0);
        ck_assert_msg(chain_event_check(event) == 1, "%s", changes[i][0]);
    }
}
END_TEST

START_TEST(test_json_there_and_back)
{
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = sealed(), *again = NULL;
    struct fault fault = {0};
    AR_AUTO_JSON json_t *value = chain_event_to_json(event);
    ck_assert_int_eq(chain_event_from_json(value, &again, &fault), 0);
    ck_assert_int_eq(chain_event_check(again), 0);
    ck_assert_str_eq(again->row_hash, event->row_hash);
    ck_assert_int_eq(json_object_set_new(value, "kind", json_string("slept")), 0);
    ck_assert_int_eq(chain_event_from_json(value, &again, &fault), 1);
    ck_assert_str_eq(fault.path, "/kind");
}
END_TEST

START_TEST(test_without_details)
{
    AR_CLEANUP(chain_event_cleanup)
    struct chain_event *event = chain_event_new(ID, EVENT_GAP, NULL, 0);
    ck_assert_str_eq(event->detail, "{}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chain_event");
    TCase *tcase = tcase_create("chain_event");
    tcase_add_test(tcase, test_canonical);
    tcase_add_test(tcase, test_every_column_is_hashed);
    tcase_add_test(tcase, test_json_there_and_back);
    tcase_add_test(tcase, test_without_details);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
