/*
 * check_cli_options.c - values with units, option tables, and the line of `auditrun run`.
 */
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/order.h"
#include "protocol/request.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define NOW_US INT64_C(1769860800000000) /* 2026-01-31T12:00:00Z */

START_TEST(sizes_are_exact_or_refused)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"1B", 1},
                {"64K", 65536},
                {"64k", 65536},
                {"128M", 134217728},
                {"1.5G", 1610612736},
                {"2T", INT64_C(2199023255552)},
                {"16MiB", 16777216},
                {"0.5K", 512},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",         "M",    "-1",  "+1",  " 1",
                                      "1 M",      "1.M",  ".5M", "1e3", "0x10",
                                      "1X",       "0.3K", "1MM", "1.5", "9223372036854775808",
                                      "8388608T", "1,5G"};
    for (size_t i = 0; i < AR_COUNT(good); i++) {
        int64_t bytes = -7;
        ck_assert_msg(options_size(good[i].text, &bytes) == 0, "%s", good[i].text);
        ck_assert_int_eq(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < AR_COUNT(bad); i++) {
        int64_t bytes = -7;
        ck_assert_msg(options_size(bad[i], &bytes) == 1, "%s", bad[i]);
        ck_assert_int_eq(bytes, -7);
    }
}
END_TEST

START_TEST(durations_need_their_unit)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0", 0},         {"250ms", 250},  {"5s", 5000},     {"0.25s", 250}, {"2m", 120000},
                {"2min", 120000}, {"1h", 3600000}, {"1d", 86400000}, {"1.5s", 1500}, {"0s", 0}};
    static const char *const bad[] = {"",    "5",       "s",     "-5s", "5S",
                                      "5 s", "0.0001s", "1.5ms", "5sm", "999999999999999999d"};
    for (size_t i = 0; i < AR_COUNT(good); i++) {
        int64_t ms = -7;
        ck_assert_msg(options_duration(good[i].text, &ms) == 0, "%s", good[i].text);
        ck_assert_int_eq(ms, good[i].ms);
    }
    for (size_t i = 0; i < AR_COUNT(bad); i++) {
        int64_t ms = -7;
        ck_assert_msg(options_duration(bad[i], &ms) == 1, "%s", bad[i]);
    }
}
END_TEST

START_TEST(times_are_calendar_times_or_ago)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"2026-01-31", INT64_C(1769817600000000)},
                {"2026-01-31T12:00:00Z", NOW_US},
                {"2026-01-31T12:00:00", NOW_US},
                {"2026-01-31 12:00:00", NOW_US},
                {"2026-01-31 12:00", NOW_US},
                {"2026-01-31T12:00Z", NOW_US},
                {"2026-01-31T12:00:00.000001Z", NOW_US + 1},
                {"2h", NOW_US - INT64_C(7200000000)},
                {"0", NOW_US}};
    static const char *const bad[] = {"",           "yesterday",           "2026-02-30",
                                      "2026-13-01", "2026-01-31x",         " 2026-01-31",
                                      "12:00",      "2026-01-31T25:00:00Z"};
    for (size_t i = 0; i < AR_COUNT(good); i++) {
        int64_t us = -7;
        ck_assert_msg(options_time(good[i].text, NOW_US, &us) == 0, "%s", good[i].text);
        ck_assert_msg(us == good[i].us, "%s: %lld", good[i].text, (long long)us);
    }
    for (size_t i = 0; i < AR_COUNT(bad); i++) {
        int64_t us = -7;
        ck_assert_msg(options_time(bad[i], NOW_US, &us) == 1, "%s", bad[i]);
    }
}
END_TEST

/* ---- tables ---------------------------------------------------------------------------------- */

struct sample {
    bool flag;
    const char *text;
    struct text_list list;
    int64_t count, size;
};

static const struct option_row sample_rows[] = {
    {"flag", OPTION_FLAG, offsetof(struct sample, flag)},
    {"text", OPTION_TEXT, offsetof(struct sample, text)},
    {"list", OPTION_LIST, offsetof(struct sample, list)},
    {"count", OPTION_COUNT, offsetof(struct sample, count)},
    {"size", OPTION_SIZE, offsetof(struct sample, size)},
};

/* The words of a line, split at blanks, into argv; returns argc. */
static int split(char *line, char **argv, int room)
{
    int argc = 0;
    for (char *word = strsep(&line, " "); word && argc < room; word = strsep(&line, " "))
        if (*word)
            argv[argc++] = word;
    return argc;
}

static int parse_sample(const char *line, struct sample *sample, struct options_rest *rest)
{
    static char copy[512];
    char *argv[32];
    (void)snprintf(copy, sizeof(copy), "%s", line);
    *sample = (struct sample){.count = OPTIONS_UNSET, .size = OPTIONS_UNSET};
    *rest = (struct options_rest){0};
    int argc = split(copy, argv, 32);
    return options_parse(argc, argv, sample_rows, AR_COUNT(sample_rows), sample, NOW_US, rest);
}

static void free_sample(struct sample *sample, struct options_rest *rest)
{
    options_free(sample_rows, AR_COUNT(sample_rows), sample);
    options_rest_free(rest);
}

static void silence_stderr(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(null, 0);
    ck_assert_int_ge(dup2(null, STDERR_FILENO), 0);
    (void)close(null);
}

START_TEST(a_table_reads_every_kind)
{
    struct sample sample;
    struct options_rest rest;
    int rc =
        parse_sample("auditrun_x one --flag --text=a --list b --list c two --count 3 --size 1K "
                     "-- --flag three",
                     &sample, &rest);
    ck_assert_int_eq(rc, OPTIONS_OK);
    ck_assert(sample.flag);
    ck_assert_str_eq(sample.text, "a");
    ck_assert_uint_eq(sample.list.count, 2);
    ck_assert_str_eq(sample.list.items[1], "c");
    ck_assert_int_eq(sample.count, 3);
    ck_assert_int_eq(sample.size, 1024);
    ck_assert_uint_eq(rest.operands.count, 2);
    ck_assert_str_eq(rest.operands.items[1], "two");
    ck_assert_uint_eq(rest.behind.count, 2);
    ck_assert_str_eq(rest.behind.items[0], "--flag");
    free_sample(&sample, &rest);
}
END_TEST

START_TEST(what_was_not_given_stays)
{
    struct sample sample;
    struct options_rest rest;
    ck_assert_int_eq(parse_sample("auditrun_x", &sample, &rest), OPTIONS_OK);
    ck_assert(!sample.flag);
    ck_assert_ptr_null(sample.text);
    ck_assert_int_eq(sample.count, OPTIONS_UNSET);
    ck_assert_uint_eq(rest.operands.count + rest.behind.count, 0);
    free_sample(&sample, &rest);
}
END_TEST

START_TEST(a_wrong_line_is_a_usage_error)
{
    static const char *const lines[] = {"auditrun_x --nothing",  "auditrun_x --text",
                                        "auditrun_x --flag=yes", "auditrun_x --count x",
                                        "auditrun_x --count -1", "auditrun_x --size 5Q",
                                        "auditrun_x -z"};
    silence_stderr();
    for (size_t i = 0; i < AR_COUNT(lines); i++) {
        struct sample sample;
        struct options_rest rest;
        ck_assert_msg(parse_sample(lines[i], &sample, &rest) == OPTIONS_USAGE, "%s", lines[i]);
        free_sample(&sample, &rest);
    }
}
END_TEST

START_TEST(help_wins_over_what_is_behind_it)
{
    struct sample sample;
    struct options_rest rest;
    ck_assert_int_eq(parse_sample("auditrun_x --help --nothing", &sample, &rest), OPTIONS_HELP);
    free_sample(&sample, &rest);
    ck_assert_int_eq(parse_sample("auditrun_x -h", &sample, &rest), OPTIONS_HELP);
    free_sample(&sample, &rest);
}
END_TEST

/* ---- auditrun run ------------------------------------------------------------------------------ */

static char folder[64];
static char code_path[96];

static void make_code(const char *name, const char *text)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/check_cli_options.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(code_path, sizeof(code_path), "%s/%s", folder, name);
    FILE *file = fopen(code_path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void remove_code(void)
{
    ck_assert_int_eq(unlink(code_path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* The params of a line; %s in it is the file with the code. NULL with *code set when refused. */
static json_t *params_of(const char *options, int *code)
{
    static char line[1024];
    char *argv[64];
    json_t *params = NULL;
    struct order order = order_defaults;
    struct options_rest rest = {0};
    (void)snprintf(line, sizeof(line), "auditrun_run %s", options);
    int argc = split(line, argv, 64);
    *code = options_parse(argc, argv, order_rows, ORDER_ROW_COUNT, &order, NOW_US, &rest);
    if (*code == OPTIONS_OK)
        *code = order_complete("auditrun run", &order, &rest);
    if (*code == EXIT_CODE_OK)
        *code = order_params(&order, &params);
    options_free(order_rows, ORDER_ROW_COUNT, &order);
    options_rest_free(&rest);
    return params;
}

static json_t *params_with_file(const char *before, const char *behind, int *code)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "%s %s %s", before, code_path, behind);
    return params_of(line, code);
}

static void set_attribution(void)
{
    ck_assert_int_eq(setenv("AUDITRUN_COMPANY", "acme", 1), 0);
    ck_assert_int_eq(setenv("AUDITRUN_ACTOR", "ana", 1), 0);
    ck_assert_int_eq(setenv("AUDITRUN_PURPOSE", "test", 1), 0);
}

START_TEST(every_row_of_run_has_a_name)
{
    for (size_t i = 0; i < ORDER_ROW_COUNT; i++)
        ck_assert_msg(order_rows[i].name != NULL, "row %zu", i);
}
END_TEST

START_TEST(a_plain_run_asks_for_nothing)
{
    int code = 0;
    struct fault fault = {0};
    struct request *request = NULL;
    set_attribution();
    make_code("x.py", "print(1)\n");
    json_t *params = params_with_file("", "", &code);
    ck_assert_int_eq(code, 0);
    ck_assert_int_eq(request_parse(params, &request, &fault), 0);
    ck_assert_str_eq(request->language, "python");
    ck_assert_str_eq(request->company, "acme");
    ck_assert_str_eq(request->code.data, "print(1)\n");
    ck_assert_int_eq(request->grant.network, NETWORK_NONE);
    ck_assert(!request->grant.limits.has[LIMIT_WALL_MS]);
    request_free(request);
    json_decref(params);
    remove_code();
}
END_TEST

START_TEST(every_option_arrives_where_it_belongs)
{
    int code = 0;
    struct fault fault = {0};
    struct request *request = NULL;
    make_code("x.py", "print(1)\n");
    json_t *params = params_with_file(
        "--company c --actor a --purpose p --language lua --executor e --host h.example:443 "
        "--data-api m.read --secret S --secret-env V --read /srv/r --write /srv/w --wall 5s --cpu "
        "2s --memory "
        "128M "
        "--processes 4 --open-files 8 --scratch 16M --output-limit 1M --arg one --env K=V=W "
        "--output-file out.txt=/tmp/z --key k1",
        "-- two --three", &code);
    ck_assert_int_eq(code, 0);
    ck_assert_msg(request_parse(params, &request, &fault) == 0, "%s %s", fault.path,
                  problem_word(fault.problem));
    ck_assert_str_eq(request->language, "lua");
    ck_assert_str_eq(request->executor, "e");
    ck_assert_str_eq(request->idempotency_key, "k1");
    ck_assert_int_eq(request->grant.network, NETWORK_ALLOWLIST);
    ck_assert_str_eq(request->grant.hosts.items[0], "h.example:443");
    ck_assert_str_eq(request->grant.secrets.items[0], "S");
    ck_assert_str_eq(request->grant.secrets.items[1], "V");
    ck_assert_str_eq(request->grant.secrets_env.items[0], "V");
    ck_assert_str_eq(request->grant.write.items[0], "/srv/w");
    ck_assert_int_eq(request->grant.limits.value[LIMIT_WALL_MS], 5000);
    ck_assert_int_eq(request->grant.limits.value[LIMIT_MEMORY_BYTES], 134217728);
    ck_assert_int_eq(request->grant.limits.value[LIMIT_OUTPUT_BYTES], 1048576);
    ck_assert_uint_eq(request->args.count, 3);
    ck_assert_str_eq(request->args.items[2], "--three");
    ck_assert_str_eq(request->env[0].value, "V=W");
    ck_assert_str_eq(request->outputs.items[0], "out.txt");
    request_free(request);
    json_decref(params);
    remove_code();
}
END_TEST

START_TEST(bytes_that_are_no_text_go_as_base64)
{
    int code = 0;
    set_attribution();
    make_code("x.sh", "echo \xff\n");
    json_t *params = params_with_file("", "", &code);
    ck_assert_int_eq(code, 0);
    ck_assert_ptr_null(json_object_get(params, "code"));
    ck_assert_str_eq(json_string_value(json_object_get(params, "code_base64")), "ZWNobyD/Cg==");
    ck_assert_str_eq(json_string_value(json_object_get(params, "language")), "bash");
    json_decref(params);
    remove_code();
}
END_TEST

START_TEST(the_first_line_tells_the_language)
{
    static const struct {
        const char *line, *language;
    } cases[] = {{"#!/usr/bin/env python3\n", "python"},
                 {"#!/usr/bin/env -S node --x\n", "javascript"},
                 {"#!/bin/sh\n", "bash"},
                 {"#!/usr/bin/lua5.4", "lua"},
                 {"#! /usr/bin/perl -w\n", "perl"}};
    set_attribution();
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        int code = 0;
        make_code("script", cases[i].line);
        json_t *params = params_with_file("", "", &code);
        ck_assert_int_eq(code, 0);
        ck_assert_str_eq(json_string_value(json_object_get(params, "language")), cases[i].language);
        json_decref(params);
        remove_code();
    }
}
END_TEST

START_TEST(a_line_that_cannot_be_sent_is_refused)
{
    static const struct {
        const char *options;
        int code;
    } cases[] = {{"", EXIT_CODE_USAGE},
                 {"a.py b.py", EXIT_CODE_USAGE},
                 {"--env novalue a.py", EXIT_CODE_USAGE},
                 {"--file =x a.py", EXIT_CODE_USAGE},
                 {"--stdin - -", EXIT_CODE_USAGE},
                 {"--quiet --verbose a.py", EXIT_CODE_USAGE},
                 {"--wall 5 a.py", OPTIONS_USAGE},
                 {"/nonexistent/a.py", EXIT_CODE_NO_INPUT},
                 {"/dev/null", EXIT_CODE_USAGE}};
    set_attribution();
    silence_stderr();
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        int code = 0;
        ck_assert_ptr_null(params_of(cases[i].options, &code));
        ck_assert_msg(code == cases[i].code, "%s: %d", cases[i].options, code);
    }
}
END_TEST

START_TEST(who_and_why_are_needed)
{
    int code = 0;
    silence_stderr();
    set_attribution();
    ck_assert_int_eq(unsetenv("AUDITRUN_ACTOR"), 0);
    ck_assert_ptr_null(params_of("/dev/null", &code));
    ck_assert_int_eq(code, EXIT_CODE_USAGE);
    ck_assert_int_eq(setenv("AUDITRUN_ACTOR", "", 1), 0);
    ck_assert_ptr_null(params_of("/dev/null --language python", &code));
    ck_assert_int_eq(code, EXIT_CODE_USAGE);
}
END_TEST

START_TEST(a_pointer_names_its_option)
{
    ck_assert_str_eq(order_option("/grant/network/hosts/3"), "--host");
    ck_assert_str_eq(order_option("/grant/limits/wall_ms"), "--wall");
    ck_assert_str_eq(order_option("/stdin_base64"), "--stdin");
    ck_assert_str_eq(order_option("/code"), "the file with the code");
    ck_assert_ptr_null(order_option("/companyx"));
    ck_assert_ptr_null(order_option(""));
}
END_TEST

START_TEST(exit_codes_tell_who_ended_it)
{
    ck_assert_int_eq(exit_code_for_run(STATUS_SUCCEEDED, REASON_EXIT_ZERO, 0, 0), 0);
    ck_assert_int_eq(exit_code_for_run(STATUS_FAILED, REASON_EXIT_NONZERO, 3, 0), 3);
    ck_assert_int_eq(exit_code_for_run(STATUS_FAILED, REASON_EXIT_NONZERO, 255, 0), 255);
    ck_assert_int_eq(exit_code_for_run(STATUS_FAILED, REASON_KILLED_BY_SIGNAL, 0, 11), 139);
    ck_assert_int_eq(exit_code_for_run(STATUS_FAILED, REASON_COMPILE_FAILED, 1, 0), 126);
    ck_assert_int_eq(exit_code_for_run(STATUS_TIMED_OUT, REASON_WALL_CLOCK, 0, 0), 124);
    for (int status = STATUS_SUCCEEDED + 1; status < STATUS_COUNT; status++)
        ck_assert_int_ne(exit_code_for_run((enum status)status, REASON_NONE, 0, 0), 0);
    ck_assert_int_eq(exit_code_for_error(RPC_INVALID_PARAMS), EXIT_CODE_PARAMS);
    ck_assert_int_eq(exit_code_for_error(RPC_AUDIT_FAILURE), EXIT_CODE_AUDIT);
    ck_assert_int_eq(exit_code_for_error(RPC_INTERNAL_ERROR), EXIT_CODE_PROTOCOL);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("cli_options");
    TCase *values = tcase_create("values");
    tcase_add_test(values, sizes_are_exact_or_refused);
    tcase_add_test(values, durations_need_their_unit);
    tcase_add_test(values, times_are_calendar_times_or_ago);
    suite_add_tcase(suite, values);
    TCase *tables = tcase_create("tables");
    tcase_add_test(tables, a_table_reads_every_kind);
    tcase_add_test(tables, what_was_not_given_stays);
    tcase_add_test(tables, a_wrong_line_is_a_usage_error);
    tcase_add_test(tables, help_wins_over_what_is_behind_it);
    suite_add_tcase(suite, tables);
    TCase *run = tcase_create("run");
    tcase_add_test(run, every_row_of_run_has_a_name);
    tcase_add_test(run, a_plain_run_asks_for_nothing);
    tcase_add_test(run, every_option_arrives_where_it_belongs);
    tcase_add_test(run, bytes_that_are_no_text_go_as_base64);
    tcase_add_test(run, the_first_line_tells_the_language);
    tcase_add_test(run, a_line_that_cannot_be_sent_is_refused);
    tcase_add_test(run, who_and_why_are_needed);
    tcase_add_test(run, a_pointer_names_its_option);
    tcase_add_test(run, exit_codes_tell_who_ended_it);
    suite_add_tcase(suite, run);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
