/*
 * check_requests.c - params of a run that are not right: where the fault is, that nothing is made of
 * them, and that no answer repeats them. And one honest run with files, in a real sandbox.
 */
#include "tests/e2e/gate.h"

#define CANARY "CANARY-7f3a"

/* A text of so many times the unit; malloc'd. */
static char *repeated(const char *unit, size_t count)
{
    char *text = calloc(count * strlen(unit) + 1, 1);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * strlen(unit), unit, strlen(unit));
    return text;
}

/* ---- members ---------------------------------------------------------------------------------- */

START_TEST(test_members_that_are_not_right)
{
    static const struct {
        const char *more, *path, *problem;
    } cases[] = {
        {"{'netwrok': {}}", "/netwrok", "unknown_member"},
        {"{'grant': {'netwrok': {}}}", "/grant/netwrok", "unknown_member"},
        {"{'grant': {'limits': {'wall': 1}}}", "/grant/limits/wall", "unknown_member"},
        {"{'grant': null}", "/grant", "wrong_type"},
        {"{'actor': 7}", "/actor", "wrong_type"},
        {"{'actor': ''}", "/actor", "empty"},
        {"{'purpose': 'a\\u0000b'}", "/purpose", "control_character"},
        {"{'purpose': 'a\\u0085b'}", "/purpose", "control_character"},
        {"{'purpose': 'a\\u007fb'}", "/purpose", "control_character"},
        {"{'language': 'Python'}", "/language", "malformed"},
        {"{'language': '../python'}", "/language", "malformed"},
        {"{'code': ['print 1']}", "/code", "wrong_type"},
        {"{'code_base64': 'cHJpbnQ='}", "/code_base64", "conflict"},
        {"{'stdin_base64': 'a'}", "/stdin_base64", "not_base64"},
        {"{'args': 'a'}", "/args", "wrong_type"},
        {"{'args': ['a', 1]}", "/args/1", "wrong_type"},
        {"{'args': ['a\\u0000b']}", "/args/0", "control_character"},
        {"{'env': {'A=B': 'x'}}", "/env", "malformed"},
        {"{'env': {'A': 1}}", "/env", "wrong_type"},
        {"{'stream': 1}", "/stream", "wrong_type"},
        {"{'idempotency_key': ''}", "/idempotency_key", "empty"},
        {"{'traceparent': '00-0-0-00'}", "/traceparent", "malformed"},
    };
    static const char *const required[] = {"company",  "actor", "purpose",
                                           "language", "code",  "grant"};
    struct gate gate = gate_open("");
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        gate_fault(&gate, gate_params(cases[i].more), cases[i].path, cases[i].problem);
    for (size_t i = 0; i < AR_COUNT(required); i++) {
        char path[32];
        json_t *params = gate_params(NULL);
        ck_assert_int_eq(json_object_del(params, required[i]), 0);
        (void)snprintf(path, sizeof(path), "/%s", required[i]);
        gate_fault(&gate, params, path, "missing");
    }
    gate_close(&gate);
}
END_TEST

START_TEST(test_members_that_are_too_long)
{
    static const char *const members[] = {"company", "actor", "purpose", "idempotency_key"};
    struct gate gate = gate_open("");
    AR_AUTO_FREE char *just = repeated("é", 100); /* bytes are counted */
    AR_AUTO_FREE char *over = repeated("x", 201);
    for (size_t i = 0; i < AR_COUNT(members); i++) {
        char path[32];
        json_t *params = gate_params(NULL);
        ck_assert_int_eq(json_object_set_new(params, members[i], json_string(over)), 0);
        (void)snprintf(path, sizeof(path), "/%s", members[i]);
        gate_fault(&gate, params, path, "too_long");
    }
    json_t *params = gate_params(NULL);
    ck_assert_int_eq(json_object_set_new(params, "purpose", json_string(just)), 0);
    gate_served(&gate, params);
    gate_close(&gate);
}
END_TEST

START_TEST(test_nesting)
{
    struct gate gate = gate_open("");
    AR_AUTO_FREE char *open = repeated("[", 5000);
    AR_AUTO_FREE char *close = repeated("]", 5000);
    AR_AUTO_FREE char *line = NULL;
    ck_assert_int_gt(asprintf(&line,
                              "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"run\",\"params\":{"
                              "\"company\":\"acme\",\"grant\":%s%s}}",
                              open, close),
                     0);
    client_send_line(gate.client, line);
    AR_AUTO_JSON json_t *answer = client_answer(gate.client, 4);
    const json_t *error = json_object_get(answer, "error");
    client_expect_error(error, -32602, NULL, "too_deep");
    gate_close(&gate);
}
END_TEST

/* No error, and nothing in the log, says what was sent. */
START_TEST(test_errors_repeat_nothing)
{
    static const char *const faulty[] = {
        "{'" CANARY "': 1}",
        "{'grant': {'" CANARY "': 1}}",
        "{'grant': {'network': {'mode': '" CANARY "'}}}",
        "{'grant': {'secrets': ['" CANARY "']}}",
        "{'grant': {'data_api': ['" CANARY " ']}}",
        "{'language': '" CANARY "'}",
        "{'executor': '" CANARY "'}",
        "{'env': {'" CANARY "': ''}}",
        "{'env': {'A': ['" CANARY "']}}",
        "{'files': [{'path': '../" CANARY "', 'text': '" CANARY "'}]}",
        "{'files': [{'path': 'a', 'text': '', '" CANARY "': 1}]}",
        "{'outputs': ['/" CANARY "']}",
        "{'code_base64': '" CANARY "'}",
        "{'traceparent': '" CANARY "'}",
    };
    struct gate gate = gate_open("[daemon]\nlog_level = debug\n");
    for (size_t i = 0; i < AR_COUNT(faulty); i++) {
        AR_AUTO_JSON json_t *error = client_fail(gate.client, "run", gate_params(faulty[i]));
        client_expect_error(error, -32602, NULL, NULL);
        ck_assert_msg(!strstr(client_last_line(gate.client), CANARY), "it comes back: %s",
                      client_last_line(gate.client));
    }
    client_send_line(gate.client, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"" CANARY "\"}");
    json_decref(client_answer(gate.client, 3));
    ck_assert_ptr_null(strstr(client_last_line(gate.client), CANARY));
    AR_AUTO_FREE char *log = daemon_read_log(gate.daemon);
    ck_assert_ptr_null(strstr(log, CANARY));
    gate_close(&gate);
}
END_TEST

/* ---- files ------------------------------------------------------------------------------------ */

static json_t *file_params(const char *path)
{
    json_t *params = gate_params(NULL);
    json_t *files = json_pack("[{s:s, s:s}, {s:s, s:s}]", "path", "good", "text", "", "path", path,
                              "text", "x");
    ck_assert_ptr_nonnull(files);
    ck_assert_int_eq(json_object_set_new(params, "files", files), 0);
    return params;
}

static json_t *output_params(const char *path)
{
    json_t *params = gate_params(NULL);
    ck_assert_int_eq(json_object_set_new(params, "outputs", json_pack("[s, s]", "good", path)), 0);
    return params;
}

static void expect_bad_path(struct gate *gate, const char *path, const char *problem)
{
    gate_fault(gate, file_params(path), "/files/1/path", problem);
    gate_fault(gate, output_params(path), "/outputs/1", problem);
}

START_TEST(test_paths_of_files)
{
    static const struct {
        const char *path, *problem;
    } cases[] = {
        {"../x", "malformed"},
        {"/etc/cron.d/x", "malformed"},
        {"a/../../x", "malformed"},
        {"a/../x", "malformed"},
        {".", "malformed"},
        {"..", "malformed"},
        {"", "empty"},
        {"a//b", "malformed"},
        {"a/", "malformed"},
        {"./a", "malformed"},
        {"a/./b", "malformed"},
        {"a\nb", "control_character"},
        {"good", "repeated"},
        {"good/b", "conflict"},
    };
    struct gate gate = gate_open("");
    for (size_t i = 0; i < AR_COUNT(cases); i++)
        expect_bad_path(&gate, cases[i].path, cases[i].problem);
    AR_AUTO_FREE char *component = repeated("x", 256);
    AR_AUTO_FREE char *components = repeated("x/", 59);
    AR_AUTO_FREE char *sixty = NULL;
    AR_AUTO_FREE char *long_path = repeated("yyyyyyy/", 512);
    ck_assert_int_gt(asprintf(&sixty, "%sx", components), 0);
    expect_bad_path(&gate, component, "malformed");
    expect_bad_path(&gate, sixty, "malformed");
    expect_bad_path(&gate, long_path, "too_long");
    gate_close(&gate);
}
END_TEST

START_TEST(test_too_many_files)
{
    struct gate gate = gate_open("");
    json_t *params = gate_params(NULL);
    json_t *files = json_array();
    json_t *outputs = json_array();
    for (int i = 0; i < 10000; i++) {
        char path[16];
        (void)snprintf(path, sizeof(path), "f%d", i);
        (void)json_array_append_new(files, json_pack("{s:s, s:s}", "path", path, "text", ""));
        (void)json_array_append_new(outputs, json_string(path));
    }
    ck_assert_int_eq(json_object_set_new(params, "files", files), 0);
    gate_fault(&gate, params, "/files", "too_many");
    params = gate_params(NULL);
    ck_assert_int_eq(json_object_set_new(params, "outputs", outputs), 0);
    gate_fault(&gate, params, "/outputs", "too_many");
    gate_close(&gate);
}
END_TEST

static const char honest_code[] =
    "import os\n"
    "found = []\n"
    "for folder, folders, files in os.walk('.'):\n"
    "    found += [os.path.join(folder, name) for name in files]\n"
    "print(sorted(found), open('in/deep/er/data.txt').read(), open('main.py').read())\n"
    "print(all(os.stat(name).st_uid == os.getuid() for name in found))\n"
    "os.makedirs('out/there')\n"
    "os.makedirs('folder')\n"
    "open('out/there/result', 'w').write('made')\n"
    "os.symlink('/etc/passwd', 'link')\n";

/* Files with the name that the executor gives to the code do not get in its way. */
START_TEST(test_honest_files)
{
    static const char expected[] = "['./in/deep/er/data.txt', './main.py'] content mine\nTrue\n";
    struct daemon *daemon = e2e_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result =
        client_call(client, "run",
                    client_params("python", honest_code,
                                  "{'files': [{'path': 'in/deep/er/data.txt', 'text': 'content'},"
                                  "{'path': 'main.py', 'base64': 'bWluZQ=='}],"
                                  "'outputs': ['out/there/result', 'missing', 'link', 'folder']}"));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), expected);
    AR_AUTO_JSON json_t *outputs = client_json("[{'path': 'out/there/result', 'text': 'made'},"
                                               "{'path': 'missing', 'problem': 'missing'},"
                                               "{'path': 'link', 'problem': 'not_regular'},"
                                               "{'path': 'folder', 'problem': 'not_regular'}]");
    AR_AUTO_FREE char *got = json_dumps(json_object_get(result, "outputs"), JSON_COMPACT);
    ck_assert_msg(json_equal(outputs, json_object_get(result, "outputs")), "outputs are %s", got);
    rows_expect_result(daemon_ledger(daemon), result);
    client_disconnect(client);
    rows_expect(daemon_ledger(daemon), 1);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_members_that_are_not_right,
                                          &test_members_that_are_too_long,
                                          &test_nesting,
                                          &test_errors_repeat_nothing,
                                          &test_paths_of_files,
                                          &test_too_many_files,
                                          &test_honest_files,
                                          NULL};
    return e2e_main("requests", tests);
}
