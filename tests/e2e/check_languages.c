/*
 * check_languages.c - every language that works on this host, through the real daemon: input,
 * arguments, text that is not ASCII, exit codes, faults that the compiler finds, and the memory that
 * a runtime is granted; and what the envelope says of languages that do not work.
 *
 * What is not installed is skipped, by name. Languages are tried under the default limits of the
 * daemon, which each of them has to be content with.
 */
#include "tests/e2e/e2e.h"

#include <sys/stat.h>

/* The right answer to the input and the argument below. */
#define INPUT    "w\xc3\xb6rld \xe2\x82\xac\n"
#define ARGUMENT "a \xc3\xa4'\""
#define GREETING         \
    "gr\xc3\xbc\xc3\x9f" \
    "e"
#define ANSWER    GREETING " w\xc3\xb6rld \xe2\x82\xac " ARGUMENT "\n"
#define EXIT_CODE 7

struct program {
    const char *language;
    const char *hello;  /* prints the answer and exits with the exit code */
    const char *broken; /* what its compiler must refuse; NULL: it has none */
};

static const struct program programs[] = {
    {"bash", "read -r line; echo \"" GREETING " $line $1\"; exit 7", NULL},
    {"c",
     "#include <stdio.h>\n#include <string.h>\n"
     "int main(int argc, char **argv) { char line[99]; (void)argc; fgets(line, 99, stdin);\n"
     "line[strcspn(line, \"\\n\")] = 0; printf(\"" GREETING " %s %s\\n\", line, argv[1]);"
     "return 7; }",
     "int main(void) { return undeclared; }"},
    {"c++",
     "#include <iostream>\n#include <string>\n"
     "int main(int, char **argv) { std::string line; std::getline(std::cin, line);\n"
     "std::cout << \"" GREETING " \" << line << \" \" << argv[1] << std::endl; return 7; }",
     "#include <string>\nint main() { std::string s = 5; return s; }"},
    {"go",
     "package main\nimport (\"bufio\"; \"fmt\"; \"os\")\nfunc main() {\n"
     "in := bufio.NewScanner(os.Stdin); in.Scan()\n"
     "fmt.Println(\"" GREETING "\", in.Text(), os.Args[1]); os.Exit(7) }",
     "package main\nfunc main() { var unused int }"},
    {"java",
     "import java.util.Scanner;\npublic class Main { public static void main(String[] a) {\n"
     "String line = new Scanner(System.in).nextLine();\n"
     "System.out.println(\"" GREETING " \" + line + \" \" + a[0]); System.exit(7); } }",
     "class Main { public static void main(String[] a) { int x = \"text\"; } }"},
    {"javascript",
     "const line = require('fs').readFileSync(0, 'utf8').trim();\n"
     "console.log('" GREETING "', line, process.argv[2]); process.exit(7);",
     NULL},
    {"lua", "print('" GREETING " ' .. io.read('l') .. ' ' .. arg[1]) os.exit(7)", NULL},
    {"perl", "my $l = <STDIN>; chomp $l; print \"" GREETING " $l $ARGV[0]\\n\"; exit 7;", NULL},
    {"php", "<?php echo '" GREETING " ', trim(fgets(STDIN)), ' ', $argv[1], \"\\n\"; exit(7);",
     NULL},
    {"python", "import sys\nprint('" GREETING "', input(), sys.argv[1])\nsys.exit(7)", NULL},
    {"ruby", "puts \"" GREETING " #{STDIN.gets.chomp} #{ARGV[0]}\"; exit 7", NULL},
    {"rust",
     "use std::io::BufRead;\nfn main() {\n"
     "let line = std::io::stdin().lock().lines().next().unwrap().unwrap();\n"
     "println!(\"" GREETING " {} {}\", line, std::env::args().nth(1).unwrap());\n"
     "std::process::exit(7) }",
     "fn main() { let s = String::new(); drop(s); drop(s) }"},
    {"typescript",
     "export {}; declare const require: any, process: any;\n"
     "const line: string = require('fs').readFileSync(0, 'utf8').trim();\n"
     "console.log('" GREETING "', line, process.argv[2]); process.exit(7);",
     "const n: number = 'text';"},
};

/* What a runtime is granted, and code that must come to this end under it. */
struct appetite {
    const char *language;
    int mebibytes;
    const char *status, *reason;
    const char *code;
};

/* Much more in all than is granted, of which little is needed at a time. */
#define NODE_CHURN                                       \
    "let keep = []; for (let i = 0; i < 2000000; i++)\n" \
    "keep[i % 50000] = {number: i, text: 'x' + i, list: [i]}; console.log('fits')"
#define NODE_HOARD "let keep = []; for (;;) keep.push(new Array(131072).fill(1.5))"
#define JAVA_CHURN                                                                          \
    "class Main { public static void main(String[] a) {\n"                                  \
    "byte[][] keep = new byte[20][]; for (int i = 0; i < 1600; i++)\n"                      \
    "{ keep[i % 20] = new byte[1 << 20]; java.util.Arrays.fill(keep[i % 20], (byte)1); }\n" \
    "System.out.println(\"fits\"); } }"
#define JAVA_HOARD                                             \
    "class Main { public static void main(String[] a) {\n"     \
    "var keep = new java.util.ArrayList<byte[]>(); for (;;)\n" \
    "{ byte[] b = new byte[1 << 20]; java.util.Arrays.fill(b, (byte)1); keep.add(b); } } }"

static const struct appetite appetites[] = {
    {"javascript", 128, "succeeded", "exit_zero", NODE_CHURN},
    {"javascript", 256, "succeeded", "exit_zero", NODE_CHURN},
    {"javascript", 128, "limit_exceeded", "memory", NODE_HOARD},
    {"javascript", 256, "limit_exceeded", "memory", NODE_HOARD},
    {"typescript", 256, "succeeded", "exit_zero", "console.log('fits')"},
    {"typescript", 256, "limit_exceeded", "memory",
     "let keep: number[][] = []; for (;;) keep.push(new Array(131072).fill(1.5))"},
    {"java", 128, "succeeded", "exit_zero", JAVA_CHURN},
    {"java", 256, "succeeded", "exit_zero", JAVA_CHURN},
    {"java", 128, "limit_exceeded", "memory", JAVA_HOARD},
    {"java", 256, "limit_exceeded", "memory", JAVA_HOARD},
    {"php", 64, "limit_exceeded", "memory",
     "<?php $keep = []; for (;;) $keep[] = str_repeat('x', 1 << 20);"},
    {"go", 128, "limit_exceeded", "memory",
     "package main\nfunc main() { var keep [][]byte; for { b := make([]byte, 1 << 20)\n"
     "for i := range b { b[i] = 1 }; keep = append(keep, b) } }"},
    {"rust", 256, "limit_exceeded", "memory",
     "fn main() { let mut keep = Vec::new(); loop { keep.push(vec![1u8; 1 << 20]); } }"},
};

/* ---- what is there ---------------------------------------------------------------------------- */

/* One daemon for all tests of a case, each of which is forked. */
static struct daemon *the_daemon;
static json_t *envelope;

static json_t *read_envelope(const struct daemon *daemon)
{
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = client_call(client, "executors", NULL);
    json_t *first = json_array_get(json_object_get(result, "executors"), 0);
    client_disconnect(client);
    ck_assert_msg(json_is_object(first), "the namespace executor proves nothing here");
    return json_incref(first);
}

static const json_t *find_named(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(item, "name")), name) == 0)
            return item;
    }
    return NULL;
}

/* Is the language offered? If not, that is told, with the reason in the envelope. */
static bool is_offered(const char *language)
{
    if (find_named(json_object_get(envelope, "languages"), language))
        return true;
    const json_t *missing = find_named(json_object_get(envelope, "unavailable"), language);
    ck_assert_msg(missing != NULL, "%s is neither offered nor unavailable", language);
    (void)fprintf(stderr, "SKIPPED: %s: %s\n", language,
                  json_string_value(json_object_get(missing, "problem")));
    return false;
}

/* ---- tests ------------------------------------------------------------------------------------ */

static json_t *run(const char *language, const char *code, json_t *more)
{
    struct client *client = daemon_connect(the_daemon);
    json_t *params = client_params(language, code, NULL);
    ck_assert_int_eq(json_object_update(params, more), 0);
    json_decref(more);
    client_request(client, 1, "run", params);
    AR_AUTO_JSON json_t *answer = client_answer_within(client, 1, 60000);
    ck_assert_msg(answer != NULL, "%s: no answer", language);
    json_t *result = json_incref(json_object_get(answer, "result"));
    client_disconnect(client);
    ck_assert_msg(result != NULL, "%s: no result", language);
    return result;
}

START_TEST(test_hello)
{
    const struct program *program = &programs[_i];
    if (!is_offered(program->language))
        return;
    AR_AUTO_JSON json_t *result = run(program->language, program->hello,
                                      json_pack("{s:s, s:[s], s:{s:{s:i}}}", "stdin", INPUT, "args",
                                                ARGUMENT, "grant", "limits", "wall_ms", 40000));
    client_expect(result, "failed", "exit_nonzero");
    ck_assert_str_eq(e2e_stdout(result), ANSWER);
    ck_assert_int_eq(json_integer_value(json_object_get(result, "exit_code")), EXIT_CODE);
    /* Nor is anything said on the side, where the code's own words belong. */
    ck_assert_str_eq(e2e_text(result, "stderr"), "");
}
END_TEST

START_TEST(test_broken)
{
    const struct program *program = &programs[_i];
    if (!program->broken || !is_offered(program->language))
        return;
    AR_AUTO_JSON json_t *result =
        run(program->language, program->broken,
            json_pack("{s:{s:{s:i}}}", "grant", "limits", "wall_ms", 40000));
    client_expect(result, "failed", "compile_failed");
    ck_assert_str_eq(e2e_stdout(result), "");
    ck_assert_msg(e2e_text(result, "stderr")[0], "%s: the compiler says nothing",
                  program->language);
}
END_TEST

/* The compiler has the run's clock. */
START_TEST(test_clock)
{
    const struct program *program = &programs[_i];
    if (!program->broken || !is_offered(program->language))
        return;
    AR_AUTO_JSON json_t *result = run(program->language, program->hello,
                                      json_pack("{s:{s:{s:i}}}", "grant", "limits", "wall_ms", 20));
    client_expect(result, "timed_out", "wall_clock");
    ck_assert_str_eq(e2e_stdout(result), "");
}
END_TEST

START_TEST(test_memory)
{
    const struct appetite *appetite = &appetites[_i];
    if (!is_offered(appetite->language))
        return;
    if (!json_object_get(json_object_get(envelope, "limits"), "memory_bytes")) {
        (void)fputs("SKIPPED: no control groups here, memory is not limited\n", stderr);
        return;
    }
    AR_AUTO_JSON json_t *result =
        run(appetite->language, appetite->code,
            json_pack("{s:{s:{s:i, s:i, s:i}}}", "grant", "limits", "wall_ms", 50000, "cpu_ms",
                      30000, "memory_bytes", appetite->mebibytes << 20));
    client_expect(result, appetite->status, appetite->reason);
    ck_assert_str_eq(e2e_stdout(result),
                     strcmp(appetite->status, "succeeded") == 0 ? "fits\n" : "");
}
END_TEST

/* ---- what does not work ----------------------------------------------------------------------- */

/* A language for each word. */
static const char broken_languages[] =
    "[language bash]\nfile = a\nrun = /bin/bash {file}\nsample = echo fine\n"
    "[language absent]\nfile = a\nrun = /usr/bin/no-such-program {file}\nsample = x\n"
    "[language compiler-absent]\nfile = a\ncompile = /nowhere/cc\nrun = {program}\nsample = x\n"
    "[language folder]\nfile = a\nrun = /usr/bin {file}\nsample = x\n"
    "[language hidden]\nfile = a\nrun = /etc/passwd {file}\nsample = x\n"
    "[language refuses]\nfile = a\ncompile = /bin/false\nrun = {program}\nsample = x\n"
    "[language fails]\nfile = a\nrun = /bin/bash {file}\nsample = echo x; exit 3\n"
    "[language dies]\nfile = a\nrun = /bin/bash {file}\nsample = kill -9 $$\n"
    "[language slow]\nfile = a\nrun = /bin/sleep 1000\nsample = x\n";

static const char *const problems[][2] = {
    {"absent", "not_installed"},     {"compiler-absent", "not_installed"},
    {"folder", "does_not_start"},    {"hidden", "does_not_start"},
    {"refuses", "does_not_compile"}, {"fails", "sample_failed"},
    {"dies", "sample_failed"},       {"slow", "too_slow"},
};

START_TEST(test_unavailable)
{
    struct daemon *daemon = daemon_prepare(&(struct daemon_options){0});
    AR_AUTO_FREE char *folder = daemon_path(daemon, "languages");
    AR_AUTO_FREE char *file = daemon_path(daemon, "languages/all.conf");
    AR_AUTO_FREE char *config = NULL;
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    daemon_write_file(file, broken_languages, 0644);
    ck_assert_int_gt(asprintf(&config, "[executor namespace]\nargs = --languages %s\n", folder), 0);
    daemon_configure(daemon, config);
    daemon_start_again(daemon);
    AR_AUTO_JSON json_t *own = read_envelope(daemon);
    const json_t *languages = json_object_get(own, "languages");
    const json_t *unavailable = json_object_get(own, "unavailable");
    ck_assert_uint_eq(json_array_size(languages), 1);
    ck_assert(find_named(languages, "bash"));
    ck_assert_uint_eq(json_array_size(unavailable), AR_COUNT(problems));
    for (size_t i = 0; i < AR_COUNT(problems); i++) {
        const json_t *language = find_named(unavailable, problems[i][0]);
        ck_assert_ptr_nonnull(language);
        ck_assert_str_eq(json_string_value(json_object_get(language, "problem")), problems[i][1]);
    }
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *denied = client_call(client, "run", client_params("slow", "x", NULL));
    client_expect(denied, "capability_denied", "not_enforceable");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

/* With every language that we ship, not only with those that are quick to try. */
static void open_daemon(void)
{
    const char *source = getenv("AUDITRUN_SOURCE");
    AR_AUTO_FREE char *config = NULL;
    ck_assert_int_gt(asprintf(&config,
                              "[executor namespace]\nargs = --languages %s/etc/languages.d\n",
                              source ? source : "."),
                     0);
    the_daemon = e2e_daemon(config);
    envelope = read_envelope(the_daemon);
}

static void close_daemon(void)
{
    json_decref(envelope);
    daemon_free(the_daemon);
}

int main(void)
{
    const int count = (int)AR_COUNT(programs);
    Suite *suite = suite_create("languages");
    TCase *tcase = e2e_case(suite, "languages");
    tcase_add_unchecked_fixture(tcase, open_daemon, close_daemon);
    tcase_add_loop_test(tcase, test_hello, 0, count);
    tcase_add_loop_test(tcase, test_broken, 0, count);
    tcase_add_loop_test(tcase, test_clock, 0, count);
    tcase = e2e_case(suite, "memory");
    tcase_add_unchecked_fixture(tcase, open_daemon, close_daemon);
    tcase_add_loop_test(tcase, test_memory, 0, (int)AR_COUNT(appetites));
    tcase_add_test(e2e_case(suite, "unavailable"), test_unavailable);
    return e2e_run(suite);
}
