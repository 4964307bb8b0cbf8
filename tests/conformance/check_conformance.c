/*
 * check_conformance.c - the executor contract (docs/executors.md), against any executor program.
 *
 * AUDITRUN_EXECUTOR names one, as words parted by blanks. Without it the suite runs against the
 * namespace executor and, through auditrun-executor-once, against the example of the documentation.
 * Only what the contract asks of everybody, and what the executor advertises, is asked of it. The
 * code is shell code: an executor that is to be checked has to offer bash.
 */
#include "tests/lib/executor.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define LANGUAGE     "bash"
#define MAX_PROGRAMS 4
#define BIG_OUTPUT   307200
#define SLOT         "61" /* a uid of its own, away from a daemon on the same host */

struct program {
    char *words[EXECUTOR_MAX_WORDS + 1];
};

/* The programs of this run, and their envelopes: read before the tests fork. */
static struct program programs[MAX_PROGRAMS];
static struct envelope envelopes[MAX_PROGRAMS];
static int program_count;

static const char *const *words_of(int index)
{
    return (const char *const *)programs[index].words;
}

/* ---- helpers ---------------------------------------------------------------------------------- */

static struct request shell(const char *code)
{
    static char language[] = LANGUAGE;
    return (struct request){.language = language,
                            .code = {.data = (char *)code, .length = strlen(code)},
                            .grant = {.network = NETWORK_NONE}};
}

static struct executor started(int index)
{
    struct executor executor;
    ck_assert_msg(executor_start(&executor, words_of(index), SLOT), "the provider is not ready");
    return executor;
}

/* Does one run and checks how it ended. */
static void expect(struct executor *executor, const struct request *request, enum outcome outcome,
                   int number, struct executor_result *result)
{
    ck_assert_msg(executor_do(executor, request, result), "there is no report in time");
    ck_assert_msg(result->report.outcome == outcome, "%s, not %s; stderr: %.500s",
                  outcome_word(result->report.outcome), outcome_word(outcome),
                  result->err.data ? result->err.data : "");
    if (outcome == OUTCOME_EXITED)
        ck_assert_int_eq(result->report.exit_code, number);
    if (outcome == OUTCOME_SIGNALED)
        ck_assert_int_eq(result->report.signal, number);
    ck_assert(executor_await_ready(executor));
}

static void expect_once(int index, const char *code, enum outcome outcome, int number)
{
    struct executor_result result;
    struct executor executor = started(index);
    struct request request = shell(code);
    expect(&executor, &request, outcome, number, &result);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}

static void expect_text(const struct bytes *bytes, const char *text)
{
    ck_assert_str_eq(bytes->data ? bytes->data : "", text);
}

/* ---- the envelope ----------------------------------------------------------------------------- */

START_TEST(envelope_is_whole)
{
    const struct envelope *envelope = &envelopes[_i];
    ck_assert_msg(envelope_has_language(envelope, LANGUAGE), "the suite needs " LANGUAGE);
    ck_assert_str_ne(envelope->name, "");
    ck_assert_msg(envelope->network[NETWORK_NONE], "the suite needs the network mode none");
}
END_TEST

/* ---- how it ends ------------------------------------------------------------------------------ */

START_TEST(exit_codes_are_exit_codes)
{
    static const int codes[] = {0, 1, 77, 124, 126, 127, 128, 137, 143, 255};
    struct executor executor = started(_i);
    for (size_t i = 0; i < AR_COUNT(codes); i++) {
        struct executor_result result;
        char code[32];
        (void)snprintf(code, sizeof(code), "exit %d", codes[i]);
        struct request request = shell(code);
        expect(&executor, &request, OUTCOME_EXITED, codes[i], &result);
        executor_result_free(&result);
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(signals_are_signals)
{
    expect_once(_i, "kill -9 $$", OUTCOME_SIGNALED, SIGKILL);
    expect_once(_i, "kill -TERM $$", OUTCOME_SIGNALED, SIGTERM);
    expect_once(_i, "kill -SEGV $$", OUTCOME_SIGNALED, SIGSEGV);
}
END_TEST

START_TEST(signal_of_a_child_is_not_the_end)
{
    expect_once(_i, "bash -c 'kill -9 $$'; exit 5", OUTCOME_EXITED, 5);
}
END_TEST

/* ---- what goes in and comes out --------------------------------------------------------------- */

START_TEST(streams_are_the_codes_own)
{
    struct executor_result result;
    struct executor executor = started(_i);
    struct request request = shell("cat; echo out; echo err >&2");
    char input[] = "line\nno newline";
    request.stdin_bytes = (struct bytes){.data = input, .length = strlen(input)};
    expect(&executor, &request, OUTCOME_EXITED, 0, &result);
    expect_text(&result.out, "line\nno newlineout\n");
    expect_text(&result.err, "err\n");
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(args_and_env_arrive)
{
    static char first[] = "a b", second[] = "$(x)'\"", third[] = "", name[] = "CASE_NAME",
                value[] = "some \"value\"";
    char *args[] = {first, second, third};
    struct request_variable env[] = {{.name = name, .value = value}};
    struct executor_result result;
    struct executor executor = started(_i);
    struct request request = shell("printf '<%s>' \"$@\" \"$#\" \"$CASE_NAME\"");
    request.args = (struct text_list){.items = args, .count = 3};
    request.env = env;
    request.env_count = 1;
    expect(&executor, &request, OUTCOME_EXITED, 0, &result);
    expect_text(&result.out, "<a b><$(x)'\"><><3><some \"value\">");
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(files_go_in_and_out)
{
    static char in[] = "in/deep/x.txt", out[] = "out/y.txt", missing[] = "none.txt",
                link[] = "link.txt", folder[] = "in", content[] = "content";
    char *paths[] = {out, missing, link, folder};
    static const enum output_problem problems[] = {OUTPUT_OK, OUTPUT_MISSING, OUTPUT_NOT_REGULAR,
                                                   OUTPUT_NOT_REGULAR};
    struct request_file files[] = {{.path = in, .content = {.data = content, .length = 7}}};
    struct executor_result result;
    struct output_file *found;
    struct fault fault = {0};
    struct executor executor = started(_i);
    struct request request =
        shell("mkdir out && cat in/deep/x.txt >out/y.txt && ln -s /etc/passwd link.txt");
    request.files = files;
    request.file_count = 1;
    request.outputs = (struct text_list){.items = paths, .count = 4};
    expect(&executor, &request, OUTCOME_EXITED, 0, &result);
    ck_assert(result.outputs.data != NULL);
    ck_assert_int_eq(spec_outputs_parse(result.outputs.data, result.outputs.length,
                                        &request.outputs, &found, &fault),
                     0);
    for (size_t i = 0; i < AR_COUNT(problems); i++)
        ck_assert_int_eq(found[i].problem, problems[i]);
    ck_assert_str_eq(found[0].content.data, content);
    spec_outputs_free(found, AR_COUNT(problems));
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}
END_TEST

/* C22 (c): the last bytes of a program that ends at once. */
START_TEST(all_output_arrives)
{
    struct executor executor = started(_i);
    for (int i = 0; i < 20; i++) {
        struct executor_result result;
        struct request request = shell("head -c 307200 /dev/zero; exit 0");
        expect(&executor, &request, OUTCOME_EXITED, 0, &result);
        ck_assert_uint_eq(result.out.length, BIG_OUTPUT);
        executor_result_free(&result);
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(no_descriptor_is_left)
{
    struct executor_result result;
    struct executor executor = started(_i);
    struct request request = shell("for n in {3..200}; do\n"
                                   "[ -e /proc/self/fd/$n ] && echo $n; done; exit 0");
    for (int i = 0; i < 2; i++) {
        expect(&executor, &request, OUTCOME_EXITED, 0, &result);
        expect_text(&result.out, "");
        executor_result_free(&result);
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

/* ---- one run after the other ------------------------------------------------------------------ */

START_TEST(nothing_is_left_for_the_next_run)
{
    struct executor_result result;
    struct executor executor = started(_i);
    struct request request = shell("ls -A; echo x >trace; mkdir -p .hidden/deep");
    for (int i = 0; i < 3; i++) {
        expect(&executor, &request, OUTCOME_EXITED, 0, &result);
        expect_text(&result.out, "");
        executor_result_free(&result);
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

/* C22 (a), (b): the run ends with its main process. A process that was left would hold the pipe, and
 * the driver waits for its end. */
START_TEST(orphans_are_killed)
{
    expect_once(_i, "(sleep 1000 &); sleep 1000 & exit 0", OUTCOME_EXITED, 0);
    expect_once(_i, "setsid bash -c 'trap \"\" TERM HUP; while sleep 1; do echo x; done' & exit 0",
                OUTCOME_EXITED, 0);
}
END_TEST

/* ---- the control socket ----------------------------------------------------------------------- */

/* Starts code that would never end, and comes back when it runs. */
static struct executor running(int index, struct executor_run *run, struct executor_result *result,
                               struct request *request)
{
    struct executor executor = started(index);
    *request = shell("trap '' TERM HUP INT; echo begun; while :; do sleep 1000; done");
    ck_assert(executor_send(&executor, request, result, run));
    ck_assert_msg(executor_await_output(&executor, run, "begun"), "the code does not run");
    return executor;
}

/* The streams end when nobody holds them any more: nothing of the run lives. */
static void expect_nothing_left(struct executor *executor, struct executor_run *run,
                                struct executor_result *result)
{
    base_close(&executor->control);
    executor->control = -1;
    ck_assert_msg(executor_finish(executor, run), "something of the run is left");
    executor_run_close(run);
    executor_result_free(result);
}

START_TEST(end_of_file_ends_everything)
{
    struct executor_run run;
    struct executor_result result;
    struct request request;
    struct executor executor = running(_i, &run, &result, &request);
    ck_assert_msg(executor_stop(&executor), "the provider does not end");
    expect_nothing_left(&executor, &run, &result);
}
END_TEST

START_TEST(sigterm_ends_everything)
{
    struct executor_run run;
    struct executor_result result;
    struct request request;
    struct executor executor = running(_i, &run, &result, &request);
    ck_assert_msg(executor_signal(&executor, SIGTERM), "the provider does not end");
    expect_nothing_left(&executor, &run, &result);
}
END_TEST

START_TEST(idle_provider_ends)
{
    struct executor executor = started(_i);
    ck_assert(executor_stop(&executor));
    executor = started(_i);
    ck_assert(executor_signal(&executor, SIGTERM));
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(nonsense_is_no_run)
{
    static const char *const messages[] = {"", "x", "{}", "{\"run\": {\"spec_bytes\": 10}}"};
    for (size_t i = 1; i < AR_COUNT(messages); i++) {
        struct executor executor = started(_i);
        ck_assert(send(executor.control, messages[i], strlen(messages[i]), MSG_NOSIGNAL) >= 0);
        ck_assert_msg(executor_ended(&executor), "it goes on after: %s", messages[i]);
        ck_assert(executor_stop(&executor));
    }
}
END_TEST

START_TEST(unknown_language_does_not_run)
{
    static char language[] = "no-such-language";
    struct executor_result result;
    struct executor executor = started(_i);
    struct request request = shell("echo ran");
    request.language = language;
    bool reported = executor_do(&executor, &request, &result);
    if (reported)
        ck_assert_int_eq(result.report.outcome, OUTCOME_SETUP_FAILED);
    else
        ck_assert(executor_ended(&executor));
    expect_text(&result.out, "");
    executor_result_free(&result);
    (void)executor_stop(&executor);
}
END_TEST

/* ---- limits, where they are advertised -------------------------------------------------------- */

static bool advertises(int index, enum limit limit)
{
    return envelopes[index].limits.has[limit];
}

static void expect_under(int index, enum limit limit, int64_t value, const char *code,
                         enum outcome outcome, const char *text)
{
    struct executor_result result;
    struct executor executor = started(index);
    struct request request = shell(code);
    request.grant.limits.has[limit] = true;
    request.grant.limits.value[limit] = value;
    expect(&executor, &request, outcome, 0, &result);
    if (text)
        expect_text(&result.out, text);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}

START_TEST(processor_time_is_limited)
{
    if (!advertises(_i, LIMIT_CPU_MS))
        return;
    expect_under(_i, LIMIT_CPU_MS, 200, "while :; do :; done", OUTCOME_LIMIT, NULL);
    /* It is for the run as a whole, also where the time is spent in many short lives. */
    expect_under(_i, LIMIT_CPU_MS, 200, "while :; do (for i in {1..200}; do :; done) & wait; done",
                 OUTCOME_LIMIT, NULL);
}
END_TEST

/* In Python: a shell that cannot fork waits and tries again for a quarter of a minute. */
START_TEST(processes_are_limited)
{
    static char language[] = "python";
    struct executor_result result;
    struct request request = shell("import os, time\n"
                                   "count = 1\n"
                                   "try:\n"
                                   "    while count < 20:\n"
                                   "        if os.fork() == 0: time.sleep(1000)\n"
                                   "        count += 1\n"
                                   "except BlockingIOError: print(count)\n");
    if (!advertises(_i, LIMIT_PROCESSES) || !envelope_has_language(&envelopes[_i], language))
        return;
    struct executor executor = started(_i);
    request.language = language;
    request.grant.limits.has[LIMIT_PROCESSES] = true;
    request.grant.limits.value[LIMIT_PROCESSES] = 4;
    expect(&executor, &request, OUTCOME_EXITED, 0, &result);
    expect_text(&result.out, "4\n");
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(open_files_are_limited)
{
    if (advertises(_i, LIMIT_OPEN_FILES))
        expect_under(_i, LIMIT_OPEN_FILES, 20,
                     "ulimit -n; exec 19</dev/null && echo 19; (exec 20</dev/null) 2>/dev/null"
                     " || echo no 20",
                     OUTCOME_EXITED, "20\n19\nno 20\n");
}
END_TEST

START_TEST(scratch_is_limited)
{
    if (advertises(_i, LIMIT_SCRATCH_BYTES))
        expect_under(_i, LIMIT_SCRATCH_BYTES, 1 << 20,
                     "head -c 900000 /dev/zero >a && echo a;"
                     "head -c 900000 /dev/zero >/tmp/b 2>/dev/null || echo full",
                     OUTCOME_EXITED, "a\nfull\n");
}
END_TEST

static void expect_with(int index, const char *reach, const struct request *request,
                        const struct executor_gifts *gifts, const char *out)
{
    struct executor_result result;
    struct executor executor;
    ck_assert(executor_start_reaching(&executor, words_of(index), SLOT, reach));
    ck_assert(executor_do_with(&executor, request, gifts, &result));
    ck_assert_int_eq(result.report.outcome, OUTCOME_EXITED);
    expect_text(&result.out, out);
    ck_assert_int_eq(result.listener >= 0, request->grant.network != NETWORK_NONE);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}

START_TEST(data_port_arrives)
{
    static char method[] = "x.y", *methods[] = {method};
    struct request request = shell("read -r line <&$AUDITRUN_API_FD; echo \"$line\"");
    int pair[2];
    if (!envelopes[_i].data_api)
        return;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(write(pair[0], "heard\n", 6), 6);
    const struct executor_gifts gifts = {.data_port = pair[1], .secrets = -1};
    request.grant.data_api = (struct text_list){.items = methods, .count = 1};
    expect_with(_i, "", &request, &gifts, "heard\n");
}
END_TEST

START_TEST(secrets_arrive_and_are_wiped)
{
    static char name[] = "KEY", *names[] = {name}, text[16] = "KEY 5\nvalue";
    struct request request = shell("cat /run/secrets/KEY; echo \" ${KEY-none}\"");
    const struct executor_gifts gifts = {.data_port = -1,
                                         .secrets = memfd_create("secrets", MFD_CLOEXEC)};
    if (!envelopes[_i].secrets)
        return;
    ck_assert_int_eq(write(gifts.secrets, text, strlen(text)), (ssize_t)strlen(text));
    request.grant.secrets = (struct text_list){.items = names, .count = 1};
    expect_with(_i, "", &request, &gifts, "value none\n");
    ck_assert_int_eq(pread(gifts.secrets, text, 11, 0) == 11 ? text[0] | text[10] : 0, 0);
}
END_TEST

START_TEST(listener_comes_with_a_network)
{
    struct request request = shell("exec 9<>/dev/tcp/127.0.0.1/3128 && echo connected");
    request.grant.network = NETWORK_OPEN;
    if (envelopes[_i].network[NETWORK_OPEN])
        expect_with(_i, "network", &request, &EXECUTOR_NO_GIFTS, "connected\n");
}
END_TEST

/* ---- the programs ----------------------------------------------------------------------------- */

static void add_word(struct program *program, const char *prefix, const char *word)
{
    size_t count = 0;
    while (program->words[count])
        count++;
    if (count == EXECUTOR_MAX_WORDS || asprintf(&program->words[count], "%s%s", prefix, word) < 0)
        abort();
}

/* The fenced Python program of the documentation, into a file. */
static bool extract_example(const char *from, const char *to)
{
    char line[1024];
    bool inside = false, found = false;
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    while (in && out && fgets(line, sizeof(line), in)) {
        if (strcmp(line, "```\n") == 0)
            inside = false;
        if (inside)
            found = fputs(line, out) >= 0;
        if (strcmp(line, "```python\n") == 0)
            inside = true;
    }
    if (in)
        (void)fclose(in);
    if (out && fclose(out) != 0)
        found = false;
    return found;
}

static void add_given(const char *words)
{
    char *copy = strdup(words), *rest = copy;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            add_word(&programs[0], "", word);
    free(copy);
    program_count = 1;
}

/* Our own two; the file of the example lies in example, to be removed. */
static bool add_own(const char *build, const char *source, const char *example)
{
    char page[4096];
    (void)snprintf(page, sizeof(page), "%s/docs/executors.md", source);
    add_word(&programs[0], build, "/auditrun-executor-namespace");
    add_word(&programs[0], "", "--languages");
    add_word(&programs[0], source, "/tests/languages.d");
    add_word(&programs[1], build, "/auditrun-executor-once");
    add_word(&programs[1], "", "/usr/bin/python3");
    add_word(&programs[1], "", example);
    program_count = 2;
    return extract_example(page, example);
}

static bool find_programs(const char *example)
{
    const char *given = getenv("AUDITRUN_EXECUTOR"), *build = getenv("AUDITRUN_BUILD"),
               *source = getenv("AUDITRUN_SOURCE");
    if (given && *given)
        add_given(given);
    else if (!add_own(build ? build : "build", source ? source : ".", example))
        return false;
    for (int i = 0; i < program_count; i++)
        if (!executor_envelope(words_of(i), &envelopes[i]))
            return false;
    return true;
}

static void free_programs(void)
{
    for (int i = 0; i < program_count; i++) {
        envelope_free(&envelopes[i]);
        for (int word = 0; programs[i].words[word]; word++)
            free(programs[i].words[word]);
    }
}

static Suite *make_suite(void)
{
    static const TTest *const *const tests[] = {
        &envelope_is_whole,
        &exit_codes_are_exit_codes,
        &signals_are_signals,
        &signal_of_a_child_is_not_the_end,
        &streams_are_the_codes_own,
        &args_and_env_arrive,
        &files_go_in_and_out,
        &all_output_arrives,
        &no_descriptor_is_left,
        &nothing_is_left_for_the_next_run,
        &orphans_are_killed,
        &end_of_file_ends_everything,
        &sigterm_ends_everything,
        &idle_provider_ends,
        &nonsense_is_no_run,
        &unknown_language_does_not_run,
        &processor_time_is_limited,
        &processes_are_limited,
        &open_files_are_limited,
        &scratch_is_limited,
        &data_port_arrives,
        &secrets_arrive_and_are_wiped,
        &listener_comes_with_a_network,
    };
    Suite *suite = suite_create("conformance");
    TCase *tcase = tcase_create("conformance");
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_loop_test(tcase, *tests[i], 0, program_count);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    char example[] = "/tmp/auditrun-conformance.XXXXXX";
    int fd = mkstemp(example), failed = 1;
    if (fd < 0)
        return EXIT_FAILURE;
    (void)close(fd);
    if (find_programs(example)) {
        SRunner *runner = srunner_create(make_suite());
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
    }
    free_programs();
    (void)unlink(example);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
