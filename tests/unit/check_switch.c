/*
 * check_switch.c - throws of switches as the socket and the journal have them.
 */
#include "protocol/switch.h"
#include "tests/unit/unit.h"

static const struct {
    const char *text, *path;
    enum problem problem; /* PROBLEM_NONE: it is right */
    struct switch_key key;
} orders[] = {
    {"{'scope':'all','why':'x'}", NULL, PROBLEM_NONE, {SWITCH_ALL, ""}},
    {"{'scope':'company','name':'ac me é','why':'x'}",
     NULL,
     PROBLEM_NONE,
     {SWITCH_COMPANY, "ac me é"}},
    {"{'scope':'executor','name':'namespace','why':'x'}",
     NULL,
     PROBLEM_NONE,
     {SWITCH_EXECUTOR, "namespace"}},
    {"{'scope':'language','name':'c++','why':'x'}", NULL, PROBLEM_NONE, {SWITCH_LANGUAGE, "c++"}},
    {"{'scope':'all','name':'x','why':'x'}", "/name", PROBLEM_CONFLICT, {0}},
    {"{'scope':'company','why':'x'}", "/name", PROBLEM_MISSING, {0}},
    {"{'scope':'company','name':'','why':'x'}", "/name", PROBLEM_EMPTY, {0}},
    {"{'scope':'executor','name':'Name','why':'x'}", "/name", PROBLEM_MALFORMED, {0}},
    {"{'scope':'globally','why':'x'}", "/scope", PROBLEM_NOT_ALLOWED_WORD, {0}},
    {"{'scope':7,'why':'x'}", "/scope", PROBLEM_WRONG_TYPE, {0}},
    {"{'scope':'all'}", "/why", PROBLEM_MISSING, {0}},
    {"{'scope':'all','why':'a\\nb'}", "/why", PROBLEM_CONTROL_CHARACTER, {0}},
    {"{'scope':'all','why':'x','until':'noon'}", "/until", PROBLEM_UNKNOWN_MEMBER, {0}},
};

START_TEST(orders_are_read)
{
    for (size_t i = 0; i < AR_COUNT(orders); i++) {
        struct switch_order order;
        struct fault fault = {0};
        AR_AUTO_JSON json_t *params = unit_json(orders[i].text);
        int rc = switch_order_parse(params, true, &order, &fault);
        ck_assert_msg(rc == (orders[i].problem ? 1 : 0), "%s: %d", orders[i].text, rc);
        ck_assert_int_eq(fault.problem, orders[i].problem);
        if (rc == 0)
            ck_assert(switch_key_equal(&order.key, &orders[i].key));
        else
            ck_assert_str_eq(fault.path, orders[i].path);
    }
}
END_TEST

/* The longest texts still fit, and no longer ones pass. */
START_TEST(texts_have_bounds)
{
    char longest[SWITCH_NAME_BYTES + 2];
    for (size_t extra = 0; extra < 2; extra++) {
        struct switch_order order;
        struct fault fault = {0};
        memset(longest, 'x', sizeof longest);
        longest[SWITCH_NAME_BYTES + extra] = 0;
        AR_AUTO_JSON json_t *params =
            json_pack("{s:s, s:s, s:s}", "scope", "company", "name", longest, "why", longest);
        ck_assert_int_eq(switch_order_parse(params, false, &order, &fault), (int)extra);
        if (extra == 0)
            ck_assert_str_eq(order.why, longest);
        else
            ck_assert_int_eq(fault.problem, PROBLEM_TOO_LONG);
    }
}
END_TEST

START_TEST(only_disable_has_now)
{
    struct switch_order order;
    struct fault fault = {0};
    AR_AUTO_JSON json_t *params = unit_json("{'scope':'all','why':'x','now':true}");
    ck_assert_int_eq(switch_order_parse(params, true, &order, &fault), 0);
    ck_assert(order.now);
    ck_assert_int_eq(switch_order_parse(params, false, &order, &fault), 1);
    ck_assert_int_eq(fault.problem, PROBLEM_UNKNOWN_MEMBER);
}
END_TEST

START_TEST(the_journal_gives_it_back)
{
    static const struct switch_off offs[] = {
        {{SWITCH_ALL, ""}, "the database moves", "operator", 0, 1},
        {{SWITCH_COMPANY, "\"ac\\me\" é"}, "why \"not\"", "local", 4294967294, 1764460800000000},
    };
    for (size_t i = 0; i < AR_COUNT(offs); i++) {
        struct switch_off again;
        AR_AUTO_FREE char *text = switch_off_text(&offs[i]);
        ck_assert_ptr_nonnull(text);
        ck_assert_ptr_null(strchr(text, '\n'));
        ck_assert_int_eq(switch_off_parse(text, &again), 0);
        ck_assert(switch_key_equal(&again.key, &offs[i].key));
        ck_assert_str_eq(again.why, offs[i].why);
        ck_assert_str_eq(again.client, offs[i].client);
        ck_assert_int_eq(again.uid, offs[i].uid);
        ck_assert_int_eq(again.since_us, offs[i].since_us);
    }
}
END_TEST

static const char *const no_switches[] = {
    "",
    "{",
    "[]",
    "{}",
    "{\"client\":\"x\",\"scope\":\"all\",\"since_us\":-1,\"uid\":0,\"why\":\"x\"}",
    "{\"client\":\"x\",\"scope\":\"all\",\"since_us\":1,\"uid\":4294967296,\"why\":\"x\"}",
    "{\"client\":\"\",\"scope\":\"all\",\"since_us\":1,\"uid\":0,\"why\":\"x\"}",
    "{\"scope\":\"all\",\"since_us\":1,\"uid\":0,\"why\":\"x\"}",
};

START_TEST(what_is_no_switch)
{
    for (size_t i = 0; i < AR_COUNT(no_switches); i++) {
        struct switch_off off;
        ck_assert_msg(switch_off_parse(no_switches[i], &off) == 1, "%s", no_switches[i]);
    }
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&orders_are_read,      &texts_have_bounds,
                                          &only_disable_has_now, &the_journal_gives_it_back,
                                          &what_is_no_switch,    NULL};
    static const struct unit_case cases[] = {{"switch", tests}};
    return unit_main("switch", cases, AR_COUNT(cases));
}
