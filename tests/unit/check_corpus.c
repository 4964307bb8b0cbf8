/*
 * check_corpus.c - the corpora of the fuzzers of protocol/, each input with the outcome that its name
 * says: ok-* is taken, bad-* is refused, code-* is refused although the schema cannot tell
 * (check_schemas.py holds the same inputs against the schemas).
 */
#include "protocol/envelope.h"
#include "protocol/record.h"
#include "protocol/rpc.h"
#include "protocol/spec.h"
#include "tests/suite.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* 0: taken, 1: refused. */
typedef int reader(const char *text, size_t length);

static int read_rpc(const char *text, size_t length)
{
    struct rpc_call call = {0};
    struct rpc_error error = {0};
    int outcome = rpc_parse(text, length, &call, &error);
    rpc_call_free(&call);
    return outcome;
}

static int read_params(const json_t *params)
{
    struct request *request = NULL;
    struct fault fault = {0};
    int outcome = request_parse(params, &request, &fault);
    request_free(request);
    return outcome;
}

static int read_request(const char *text, size_t length)
{
    struct json_document document;
    int outcome = json_parse(text, length, &document);
    if (outcome == JSON_OK)
        outcome = read_params(document.root);
    json_document_free(&document);
    return outcome > 0 ? 1 : outcome;
}

/* A spec, a message of either side, or outputs: the corpus has all of them. */
static int read_spec(const char *text, size_t length)
{
    static char *items[] = {(char *)"a", (char *)"b/c"};
    struct fault fault = {0};
    struct spec *spec = NULL;
    struct report report;
    enum spec_message kind;
    struct spec_run order;
    int outcome = spec_parse(text, length, &spec, &fault);
    spec_free(spec);
    if (outcome == 1)
        outcome = spec_parse_provider_message(text, length, &kind, &report);
    if (outcome == 1)
        outcome = spec_parse_daemon_message(text, length, &kind, &order);
    for (size_t count = 0; outcome == 1 && count <= AR_COUNT(items); count++) {
        const struct text_list asked = {items, count};
        struct output_file *files = NULL;
        fault = (struct fault){0};
        outcome = spec_outputs_parse(text, length, &asked, &files, &fault);
        spec_outputs_free(files, count);
    }
    return outcome;
}

static int read_envelope(const char *text, size_t length)
{
    struct envelope envelope = {0};
    struct fault fault = {0};
    int outcome = envelope_parse(text, length, &envelope, &fault);
    if (outcome == 0)
        envelope_free(&envelope);
    return outcome;
}

static int read_record(const char *text, size_t length)
{
    struct json_document document;
    struct record *record = NULL;
    struct fault fault = {0};
    int outcome = json_parse(text, length, &document);
    if (outcome == JSON_OK)
        outcome = record_from_json(document.root, false, &record, &fault);
    record_free(record);
    json_document_free(&document);
    return outcome > 0 ? 1 : outcome;
}

static const struct {
    const char *corpus;
    reader *read;
} targets[] = {{"rpc", read_rpc},
               {"request", read_request},
               {"spec", read_spec},
               {"envelope", read_envelope},
               {"record", read_record}};

/* The file, in memory that is exactly as long. */
static char *read_file(const char *path, size_t *length)
{
    struct stat status;
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0 && fstat(fd, &status) == 0, "cannot open %s", path);
    *length = (size_t)status.st_size;
    char *text = malloc(*length ? *length : 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(read(fd, text, *length) == status.st_size, "cannot read %s", path);
    return text;
}

static void check_file(const char *folder, const char *name, reader *read_text)
{
    char path[4096];
    size_t length;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    AR_AUTO_FREE char *text = read_file(path, &length);
    int outcome = read_text(text, length);
    if (strncmp(name, "ok-", 3) == 0)
        ck_assert_msg(outcome == 0, "%s is refused", path);
    else if (strncmp(name, "bad-", 4) == 0 || strncmp(name, "code-", 5) == 0)
        ck_assert_msg(outcome == 1, "%s is taken", path);
    else
        ck_assert_msg(outcome >= 0, "%s",
                      path); /* found by a fuzzer: anything but a failure of ours */
}

START_TEST(test_corpus)
{
    const char *top = getenv("AUDITRUN_SOURCE");
    char folder[2048];
    (void)snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", top ? top : ".",
                   targets[_i].corpus);
    DIR *directory = opendir(folder);
    ck_assert_msg(directory != NULL, "cannot open %s", folder);
    size_t count = 0;
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        if (entry->d_name[0] == '.')
            continue;
        check_file(folder, entry->d_name, targets[_i].read);
        count++;
    }
    (void)closedir(directory);
    ck_assert_uint_gt(count, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("corpus");
    TCase *tcase = tcase_create("corpus");
    tcase_add_loop_test(tcase, test_corpus, 0, AR_COUNT(targets));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
