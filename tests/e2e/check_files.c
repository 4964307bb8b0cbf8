/*
 * check_files.c - what code does with its folders, links and descriptors, and how its compiler is held:
 * C09, C10, C16, C17 and C23 of the cases from the field.
 *
 * AUDITRUN_COMPILED_RUNS (12): how many programs are compiled and started at the same time as a row of
 * short runs.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/host.h"
#include "tests/lib/hostile.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WARM_RUNS  100
#define IN_FLIGHT  6
#define SWAP_RUNS  6
#define ANSWER_MS  60000
#define BIG_SOURCE 400000 /* lines, each with an error */

static json_t *run(struct client *client, const char *language, const char *code, const char *more)
{
    return client_call(client, "run", client_params(language, code, more));
}

/* ---- outputs (C16, C17) ----------------------------------------------------------------------- */

static const char odd_code[] =
    "import os, socket\n"
    "def put(name, text='mine'):\n"
    "    with open(name, 'w') as file:\n        file.write(text)\n"
    "put('plain'); put('-rf'); put('$(id)'); put('a;b'); put('\\u00fc \\u202e'); put('n' * 255)\n"
    "put('blind'); os.chmod('blind', 0)\n"
    "os.mkdir('shut'); put('shut/in'); os.chmod('shut', 0)\n"
    "os.symlink('/etc/passwd', 'link'); os.symlink('plain', 'inner'); os.symlink('link', 'chain')\n"
    "os.symlink('/etc', 'up'); os.symlink('.', 'here'); os.symlink('/proc/self/fd/0', 'stdin')\n"
    "os.symlink('loop', 'loop'); os.mkdir('folder'); os.mkfifo('fifo'); os.link('plain', 'hard')\n"
    "socket.socket(socket.AF_UNIX).bind('socket')\n"
    "with open('sparse', 'w') as file:\n    os.truncate('sparse', 65 << 20)\n"
    "with open('raw', 'wb') as file:\n    file.write(b'\\xff\\x00')\n";

#define ODD_OUTPUTS                                                                             \
    "'plain', '-rf', '$(id)', 'a;b', '\\u00fc \\u202e', 'blind', 'shut/in', 'link', 'inner', "  \
    "'chain', 'up/passwd', 'here/plain', 'stdin', 'loop', 'folder', 'fifo', 'hard', 'socket', " \
    "'sparse', 'raw', 'none', 'nothing/below'"

static const char odd_expected[] =
    "[{'path': 'plain', 'text': 'mine'}, {'path': '-rf', 'text': 'mine'}, {'path': '$(id)', "
    "'text': "
    "'mine'}, {'path': 'a;b', 'text': 'mine'}, {'path': '\\u00fc \\u202e', 'text': 'mine'}, "
    "{'path': 'blind', 'text': 'mine'}, {'path': 'shut/in', 'text': 'mine'}, "
    "{'path': 'link', 'problem': 'not_regular'}, {'path': 'inner', 'problem': 'not_regular'}, "
    "{'path': 'chain', 'problem': 'not_regular'}, {'path': 'up/passwd', 'problem': 'not_regular'}, "
    "{'path': 'here/plain', 'problem': 'not_regular'}, {'path': 'stdin', 'problem': "
    "'not_regular'}, "
    "{'path': 'loop', 'problem': 'not_regular'}, {'path': 'folder', 'problem': 'not_regular'}, "
    "{'path': 'fifo', 'problem': 'not_regular'}, {'path': 'hard', 'text': 'mine'}, "
    "{'path': 'socket', 'problem': 'not_regular'}, {'path': 'sparse', 'problem': 'too_big'}, "
    "{'path': 'raw', 'base64': '/wA='}, {'path': 'none', 'problem': 'missing'}, "
    "{'path': 'nothing/below', 'problem': 'missing'}]";

START_TEST(odd_outputs_are_told_by_a_word)
{
    struct daemon *daemon = e2e_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = run(client, "python", odd_code,
                                      "{'outputs': [" ODD_OUTPUTS "], 'grant': {'limits': "
                                      "{'scratch_bytes': 100000000}}}");
    AR_AUTO_JSON json_t *expected = client_json(odd_expected);
    const json_t *outputs = json_object_get(result, "outputs");
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_uint_eq(json_array_size(outputs), json_array_size(expected));
    for (size_t i = 0; i < json_array_size(expected); i++) {
        AR_AUTO_FREE char *got = json_dumps(json_array_get(outputs, i), JSON_COMPACT);
        ck_assert_msg(json_equal(json_array_get(outputs, i), json_array_get(expected, i)), "%.300s",
                      got);
    }
    rows_expect_result(daemon_ledger(daemon), result);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* A process that outlives the code changes a file for a link, over and over. */
static const char swap_code[] =
    "import os, time\n"
    "open('mine', 'w').write('mine')\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    while True:\n"
    "        os.link('mine', 'next'); os.rename('next', 'file')\n"
    "        os.symlink('/etc/passwd', 'next'); os.rename('next', 'file')\n"
    "while not os.path.lexists('file'):\n    pass\n"
    "time.sleep(0.05)\n";

START_TEST(no_moment_lets_a_link_through)
{
    struct daemon *daemon = e2e_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    for (int i = 0; i < SWAP_RUNS; i++) {
        AR_AUTO_JSON json_t *result = run(client, "python", swap_code, "{'outputs': ['file']}");
        const json_t *output = json_array_get(json_object_get(result, "outputs"), 0);
        const char *text = json_string_value(json_object_get(output, "text"));
        const char *problem = json_string_value(json_object_get(output, "problem"));
        client_expect(result, "succeeded", "exit_zero");
        ck_assert_msg(text ? strcmp(text, "mine") == 0
                           : problem && strcmp(problem, "not_regular") == 0,
                      "%.300s", text ? text : problem);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- what code leaves in its folders (C16) ----------------------------------------------------- */

static const char leaving_code[] =
    "import os, sys\n"
    "for n, target in enumerate(['/etc/passwd', '/', '..', *sys.argv[1:]]):\n"
    "    os.symlink(target, f'link{n}')\n"
    "for place in ('/work', '/tmp'):\n"
    "    os.chdir(place)\n"
    "    os.mkdir('shut'); os.mkdir('shut/in'); open('shut/in/file', 'w').close()\n"
    "    open('\\n' * 255, 'w').close()\n"
    "    os.chmod('shut/in', 0); os.chmod('shut', 0); os.mkfifo('fifo')\n"
    "    os.chmod(place, 0)\n";

static const char *const watched[] = {"/etc/passwd", "/etc", "/", "/usr/bin", "/dev/null"};

static void look_at(const char *path, struct stat *status)
{
    ck_assert_int_eq(lstat(path, status), 0);
}

static void expect_same(const char *path, const struct stat *before)
{
    struct stat now;
    look_at(path, &now);
    ck_assert_msg(now.st_mode == before->st_mode && now.st_uid == before->st_uid &&
                      now.st_gid == before->st_gid && now.st_size == before->st_size &&
                      now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
                      now.st_ctim.tv_nsec == before->st_ctim.tv_nsec,
                  "%s has changed", path);
}

START_TEST(scratch_goes_as_a_whole)
{
    struct stat before[AR_COUNT(watched)];
    AR_AUTO_FREE char *more = NULL;
    struct text_list wrong = {0}, host;
    struct daemon *daemon = e2e_daemon("[executor namespace]\nslots = 1\n");
    struct client *client = daemon_connect(daemon);
    struct stat journal;
    for (size_t i = 0; i < AR_COUNT(watched); i++)
        look_at(watched[i], &before[i]);
    look_at(daemon_journal(daemon), &journal);
    host = host_look();
    ck_assert_int_gt(asprintf(&more, "{'args': ['%s', '%s'], 'outputs': ['link0', 'link3']}",
                              daemon_folder(daemon), daemon_journal(daemon)),
                     0);
    for (int i = 0; i < 3; i++) {
        AR_AUTO_JSON json_t *result = run(client, "python", leaving_code, more);
        client_expect(result, "succeeded", "exit_zero");
        rows_expect_result(daemon_ledger(daemon), result);
    }
    host_judge_daemon(daemon, 1, &wrong);
    host_compare(&host, &wrong);
    for (size_t i = 0; i < AR_COUNT(watched); i++)
        expect_same(watched[i], &before[i]);
    expect_same(daemon_journal(daemon), &journal);
    text_list_free(&host);
    client_disconnect(client);
    daemon_free(daemon);
    hostile_expect_none(&wrong);
}
END_TEST

/* ---- descriptors (C10) ------------------------------------------------------------------------ */

/* In the first and in the hundredth run of a slot nothing is open but the streams, and no number leads
 * to a folder. */
START_TEST(open_descriptors_lead_nowhere_in_a_warm_pool)
{
    static const char all[] =
        "for n in {0..255}; do f=/proc/self/fd/$n\n"
        "[ -e $f/../../../../etc/shadow ] && echo shadow $n\n"
        "(cd $f) 2>/dev/null && echo folder $n; done; readlink /proc/self/cwd\n";
    static const char open_ones[] =
        "for n in {0..400}; do [ -e /proc/$$/fd/$n ] && o+=\" $n\"; done; echo $o";
    struct daemon *daemon = e2e_daemon("[executor namespace]\nslots = 1\n");
    struct client *client = daemon_connect(daemon);
    for (int i = 1; i <= WARM_RUNS; i++) {
        const bool whole = i == 1 || i == WARM_RUNS;
        AR_AUTO_JSON json_t *result = run(client, "bash", whole ? all : open_ones, NULL);
        client_expect(result, "succeeded", "exit_zero");
        ck_assert_str_eq(e2e_stdout(result), whole ? "/work\n" : "0 1 2 255\n");
    }
    rows_expect(daemon_ledger(daemon), WARM_RUNS);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- the compiler (C09) ----------------------------------------------------------------------- */

/* A source with an error in each of many lines; owned. */
static char *faulty_source(void)
{
    static const char line[] = "int a = b;\n";
    char *source = calloc(BIG_SOURCE, sizeof(line) - 1);
    ck_assert_ptr_nonnull(source);
    for (size_t i = 0; i + 1 < BIG_SOURCE; i++)
        memcpy(source + i * (sizeof(line) - 1), line, sizeof(line) - 1);
    return source;
}

START_TEST(compiler_is_held_like_the_code)
{
    AR_AUTO_FREE char *faulty = faulty_source();
    const struct {
        const char *source, *limits, *status, *reason;
    } cases[] = {
        {"#include \"/etc/shadow\"\n", "'wall_ms': 10000", "failed", "compile_failed"},
        {"#include \"/etc/passwd\"\n", "'wall_ms': 10000", "failed", "compile_failed"},
        {"#include \"/dev/zero\"\nint main(void) {}", "'wall_ms': 10000, 'memory_bytes': 134217728",
         "limit_exceeded", "memory"},
        {"#if __INCLUDE_LEVEL__ < 60\n#include __FILE__\n#include __FILE__\n#endif\n",
         "'wall_ms': 1500", "timed_out", "wall_clock"},
        {"#if __INCLUDE_LEVEL__ < 60\n#include __FILE__\n#include __FILE__\n#endif\n",
         "'wall_ms': 10000, 'cpu_ms': 400", "limit_exceeded", "cpu"},
        {faulty, "'wall_ms': 10000, 'output_bytes': 100000", "limit_exceeded", "output"},
    };
    struct daemon *daemon = e2e_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    struct text_list wrong = {0};
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        AR_AUTO_FREE char *more = NULL;
        ck_assert_int_gt(asprintf(&more, "{'grant': {'limits': {%s}}}", cases[i].limits), 0);
        AR_AUTO_JSON json_t *result = run(client, "c", cases[i].source, more);
        const char *status = json_string_value(json_object_get(result, "status"));
        const char *reason = json_string_value(json_object_get(result, "reason"));
        if (strcmp(status, cases[i].status) != 0 || strcmp(reason, cases[i].reason) != 0)
            hostile_tell(&wrong, "%.60s: %s, %s, not %s, %s; %.200s", cases[i].source, status,
                         reason, cases[i].status, cases[i].reason, e2e_text(result, "stderr"));
        if (strstr(e2e_text(result, "stderr"), "root:"))
            hostile_tell(&wrong, "%.60s: shows a file of the host", cases[i].source);
        rows_expect_result(daemon_ledger(daemon), result);
    }
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    ck_assert_ptr_null(strstr(log, "main.c"));
    client_disconnect(client);
    daemon_free(daemon);
    hostile_expect_none(&wrong);
}
END_TEST

/* A compiler takes its files away when one of them does not fit, so that nobody can tell afterwards that
 * it was the scratch: the source is refused, or over its limit, and nothing has become of it. */
START_TEST(compiler_cannot_write_more_than_the_scratch)
{
    struct daemon *daemon = e2e_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result =
        run(client, "c", "char x[1UL << 30] = {1}; int main(void) { return 0; }",
            "{'grant': {'limits': {'wall_ms': 20000, 'scratch_bytes': 16777216}}}");
    if (strcmp(json_string_value(json_object_get(result, "status")), "failed") == 0)
        client_expect(result, "failed", "compile_failed");
    else
        client_expect(result, "limit_exceeded", "scratch");
    rows_expect_result(daemon_ledger(daemon), result);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- fresh programs (C23) --------------------------------------------------------------------- */

static size_t compiled_runs(void)
{
    const char *text = getenv("AUDITRUN_COMPILED_RUNS");
    return text && *text ? strtoul(text, NULL, 10) : 12;
}

/* Every third run is compiled, every third starts a program that came with it, the others fork. */
static json_t *fresh_params(size_t i)
{
    if (i % 3 == 0)
        return client_params("c", "int main(void) { return 0; }", NULL);
    if (i % 3 == 1)
        return client_params("bash", "exec ./tool",
                             "{'files': [{'path': 'tool', 'text': '#!/bin/sh\\nexit 0\\n'}]}");
    return client_params("bash", "for i in 1 2 3 4 5; do /bin/true; done", NULL);
}

START_TEST(fresh_programs_are_never_busy)
{
    const size_t count = compiled_runs() * 3;
    struct daemon *daemon = e2e_daemon("[executor namespace]\nslots = 4\n");
    struct client *client = daemon_connect(daemon);
    for (size_t sent = 0, answered = 0; answered < count; answered++) {
        for (; sent < count && sent < answered + IN_FLIGHT; sent++)
            client_request(client, (json_int_t)sent + 1, "run", fresh_params(sent));
        AR_AUTO_JSON json_t *message = client_next_within(client, ANSWER_MS);
        ck_assert_ptr_nonnull(message);
        client_expect(json_object_get(message, "result"), "succeeded", "exit_zero");
    }
    rows_expect(daemon_ledger(daemon), count);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *files = e2e_case(suite, "files");
    tcase_add_test(files, odd_outputs_are_told_by_a_word);
    tcase_add_test(files, no_moment_lets_a_link_through);
    tcase_add_test(files, scratch_goes_as_a_whole);
    tcase_add_test(files, open_descriptors_lead_nowhere_in_a_warm_pool);
    TCase *compiler = e2e_case(suite, "compiler");
    tcase_add_test(compiler, compiler_is_held_like_the_code);
    tcase_add_test(compiler, compiler_cannot_write_more_than_the_scratch);
    tcase_add_test(compiler, fresh_programs_are_never_busy);
    return e2e_run(suite);
}
