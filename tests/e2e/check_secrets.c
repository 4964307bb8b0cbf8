/*
 * check_secrets.c - secrets from the folder on the host to the code, and nowhere else: C19 to C21 of the
 * cases from the field.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/host.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KEY         "s3cr3t/CANARY+value=42"
#define WITH        "{'grant': {'secrets': ['BILLING_KEY']}}"
#define NAMED(name) "{'grant': {'secrets': ['" name "']}}"

/* ---- the folder ------------------------------------------------------------------------------- */

static void put(const struct daemon *daemon, const char *name, const char *value, mode_t mode)
{
    char inner[128];
    (void)snprintf(inner, sizeof inner, "secrets/%s", name);
    AR_AUTO_FREE char *path = daemon_path(daemon, inner);
    daemon_write_file(path, value, mode);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void make_folder(const struct daemon *daemon, const char *name)
{
    AR_AUTO_FREE char *path = daemon_path(daemon, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void fill_folder(const struct daemon *daemon)
{
    AR_AUTO_FREE char *link = daemon_path(daemon, "secrets/acme/LINK");
    AR_AUTO_FREE char *fifo = daemon_path(daemon, "secrets/acme/FIFO");
    AR_AUTO_FREE char *big = daemon_path(daemon, "secrets/acme/BIG");
    make_folder(daemon, "secrets");
    make_folder(daemon, "secrets/acme");
    make_folder(daemon, "secrets/globex");
    make_folder(daemon, "secrets/acme/DIR");
    put(daemon, "acme/BILLING_KEY", KEY "\n", 0600);
    put(daemon, "acme/LINES",
        "-----BEGIN KEY-----\nMIIEvAIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n", 0400);
    put(daemon, "acme/OPEN", "everybody knows", 0644);
    put(daemon, "acme/EMPTY", "", 0600);
    put(daemon, "acme/BIG", "big", 0600);
    put(daemon, "globex/KEY", "of another company", 0600);
    ck_assert_int_eq(truncate(big, 10 << 20), 0);
    ck_assert_int_eq(symlink("../globex/KEY", link), 0);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
}

static struct daemon *start(const char *more)
{
    struct daemon *daemon = daemon_prepare(&(struct daemon_options){0});
    AR_AUTO_FREE char *config = NULL;
    ck_assert_int_gt(asprintf(&config, "[secrets]\ndirectory = %s/secrets\n%s",
                              daemon_folder(daemon), more ? more : ""),
                     0);
    fill_folder(daemon);
    daemon_configure(daemon, config);
    daemon_start_again(daemon);
    return daemon;
}

static json_t *run(struct client *client, const char *language, const char *code, const char *more)
{
    return client_call(client, "run", client_params(language, code, more));
}

static void expect_output(struct client *client, const char *code, const char *more,
                          const char *output)
{
    AR_AUTO_JSON json_t *result = run(client, "python", code, more);
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_msg(strcmp(e2e_stdout(result), output) == 0, "%.2000s\n%.2000s", e2e_stdout(result),
                  e2e_text(result, "stderr"));
}

/* ---- what the code has ------------------------------------------------------------------------ */

static const char looking_code[] =
    "import os, stat\n"
    "path = '/run/secrets/BILLING_KEY'\n"
    "status = os.stat(path)\n"
    "text = open(path).read()\n"
    "print(oct(stat.S_IMODE(status.st_mode)), status.st_uid == os.getuid(), len(text))\n"
    "print(os.listdir('/run/secrets'), sorted(text.strip()) == sorted('" KEY "'))\n"
    "print([line.split()[2] for line in open('/proc/self/mounts') if ' /run/secrets ' in line])\n"
    "print('BILLING_KEY' in os.environ)\n"
    "for change in (lambda: open(path, 'w'), lambda: os.unlink(path), lambda: os.chmod(path, "
    "0o644)):\n"
    "    try:\n        change()\n        print('changed')\n"
    "    except OSError:\n        pass\n"
    "for name in ('/proc/1/environ', '/proc/1/cmdline'):\n"
    "    try:\n        print(b'CANARY' in open(name, 'rb').read())\n"
    "    except OSError:\n        pass\n";

START_TEST(a_file_of_its_own)
{
    struct daemon *daemon = start(NULL);
    struct client *client = daemon_connect(daemon);
    expect_output(client, looking_code, WITH,
                  "0o400 True 23\n['BILLING_KEY'] True\n['tmpfs']\nFalse\n");
    expect_output(client, "import os; print(os.path.exists('/run/secrets/BILLING_KEY'))", NULL,
                  "False\n");
    expect_output(client,
                  "import os; print(os.environ['BILLING_KEY'][3:10] == 'r3t/CAN', len("
                  "os.environ['BILLING_KEY']))",
                  "{'grant': {'secrets': ['BILLING_KEY', 'LINES'], 'secrets_env': "
                  "['BILLING_KEY']}}",
                  "True 22\n");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- what is no secret of this company (C21) -------------------------------------------------- */

static void expect_denied(const struct daemon *daemon, struct client *client, json_t *params,
                          const char *name)
{
    AR_AUTO_JSON json_t *result = client_call(client, "run", params);
    AR_AUTO_JSON json_t *expected =
        json_pack("[{s:s, s:[s], s:n}]", "demand", "secrets", "requested", name, "offered");
    client_expect(result, "capability_denied", "no_such_secret");
    ck_assert(json_equal(json_object_get(result, "denials"), expected));
    rows_expect_result(daemon_ledger(daemon), result);
}

START_TEST(denied_by_name)
{
    static const char *const names[] = {"LINK", "OPEN",  "BIG",     "DIR",
                                        "FIFO", "EMPTY", "MISSING", "KEY"};
    static const char *const companies[] = {"../globex", ".",    "..",    "acme/../globex",
                                            "acme/",     "ACME", "acme ", "a/a/a"};
    struct daemon *daemon = start(NULL);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        json_t *params = client_params("bash", "true", NULL);
        json_t *grant = json_pack("{s:[s, s]}", "secrets", "BILLING_KEY", names[i]);
        ck_assert_int_eq(json_object_set_new(params, "grant", grant), 0);
        expect_denied(daemon, client, params, names[i]);
    }
    for (size_t i = 0; i < AR_COUNT(companies); i++) {
        json_t *params = client_params("bash", "true", NAMED("KEY"));
        ck_assert_int_eq(json_object_set_new(params, "company", json_string(companies[i])), 0);
        expect_denied(daemon, client, params, "KEY");
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(names_that_are_none)
{
    static const char *const names[] = {"../globex/KEY", "/etc/shadow", ".", "KEY/", "KEY\\n"};
    struct daemon *daemon = start(NULL);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        char more[128];
        (void)snprintf(more, sizeof more, "{'grant': {'secrets': ['%s']}}", names[i]);
        AR_AUTO_JSON json_t *error =
            client_fail(client, "run", client_params("bash", "true", more));
        client_expect_error(error, -32602, "/grant/secrets/0", NULL);
    }
    AR_AUTO_JSON json_t *error = client_fail(
        client, "run",
        client_params("bash", "true",
                      "{'grant': {'secrets': ['BILLING_KEY'], 'secrets_env': ['OTHER']}}"));
    client_expect_error(error, -32602, "/grant/secrets_env/0", "conflict");
    rows_expect(daemon_ledger(daemon), 0);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(without_a_folder_there_are_none)
{
    struct daemon *daemon = e2e_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = run(client, "bash", "true", WITH);
    client_expect(result, "capability_denied", "not_enforceable");
    rows_expect_result(daemon_ledger(daemon), result);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- what comes back (C20) -------------------------------------------------------------------- */

static const char telling_code[] =
    "import base64, json, re, sys, time, urllib.parse\n"
    "key = open('/run/secrets/BILLING_KEY').read().strip()\n"
    "lines = open('/run/secrets/LINES').read()\n"
    "print(key)\n"
    "for letter in key:\n    print(letter, end='', flush=True)\n    time.sleep(0.002)\n"
    "print()\n"
    "for before in ('', 'a', 'ab'):\n"
    "    print(len(base64.b64encode((before + key).encode())) > 20, "
    "base64.b64encode((before + key + 'x').encode()).decode())\n"
    "quoted = urllib.parse.quote(key, safe='')\n"
    "print(quoted, re.sub('%..', lambda found: found[0].lower(), quoted))\n"
    "print(json.dumps(lines))\n"
    "print(lines.replace('\\n', '\\r\\n'))\n"
    "print(lines)\n"
    "open('out', 'w').write('<' + key + '>')\n"
    "sys.stderr.write(key)\n";

static void expect_masked(const json_t *result)
{
    static const char *const traces[] = {
        "CANARY",   "3cr3t",   "value=42", "MIIEvA",   "hkiG9w",   "BEGIN",
        "Q0FOQVJZ", "NBTkFSW", "DQU5BUl",  "%2Bvalue", "%2bvalue",
    };
    AR_AUTO_FREE char *text = json_dumps(result, JSON_COMPACT);
    for (size_t i = 0; i < AR_COUNT(traces); i++)
        ck_assert_msg(!strstr(text, traces[i]), "%s in %.4000s", traces[i], text);
    ck_assert_ptr_nonnull(strstr(text, "***"));
}

START_TEST(values_come_back_masked)
{
    struct daemon *daemon = start(NULL);
    struct client *client = daemon_connect(daemon);
    for (int stream = 0; stream < 2; stream++) {
        AR_AUTO_JSON json_t *result =
            run(client, "python", telling_code,
                stream ? "{'stream': true, 'outputs': ['out'], 'grant': {'secrets': "
                         "['BILLING_KEY', 'LINES']}}"
                       : "{'outputs': ['out'], 'grant': {'secrets': ['BILLING_KEY', 'LINES']}}");
        client_expect(result, "succeeded", "exit_zero");
        expect_masked(result);
        const json_t *output = json_array_get(json_object_get(result, "outputs"), 0);
        ck_assert_str_eq(json_string_value(json_object_get(output, "text")), "<***>");
        ck_assert_str_eq(e2e_text(result, "stderr"), "***");
        ck_assert_int_eq(strncmp(e2e_stdout(result), "***\n***\nTrue ", 13), 0);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* No notification has it either, however it is cut into pieces. */
START_TEST(a_stream_is_masked_across_its_pieces)
{
    static const char code[] = "import sys, time\n"
                               "key = open('/run/secrets/BILLING_KEY').read()\n"
                               "for i in range(3):\n"
                               "    for part in ('<', key[:7], key[7:-1], '>'):\n"
                               "        sys.stdout.write(part); sys.stdout.flush()\n"
                               "        time.sleep(0.05)\n";
    struct daemon *daemon = start(NULL);
    struct client *client = daemon_connect(daemon);
    char text[256] = "";
    client_request(
        client, 1, "run",
        client_params("python", code, "{'stream': true, 'grant': {'secrets': ['BILLING_KEY']}}"));
    for (;;) {
        AR_AUTO_JSON json_t *message = client_next(client);
        if (!json_object_get(message, "method"))
            break;
        const char *piece =
            json_string_value(json_object_get(json_object_get(message, "params"), "text"));
        ck_assert_uint_lt(strlen(text) + strlen(piece), sizeof text);
        memcpy(text + strlen(text), piece, strlen(piece) + 1);
    }
    ck_assert_str_eq(text, "<***><***><***>");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(a_cut_leaves_no_part)
{
    static const char code[] = "key = open('/run/secrets/BILLING_KEY').read().strip()\n"
                               "print('x' * 90 + key)\n";
    struct daemon *daemon = start(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result =
        run(client, "python", code,
            "{'grant': {'secrets': ['BILLING_KEY'], 'limits': {'output_bytes': 100}}}");
    client_expect(result, "limit_exceeded", "output");
    const char *text = e2e_stdout(result);
    ck_assert_uint_eq(strspn(text, "x"), 90);
    ck_assert_str_eq(text + 90, "***");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(masking_can_be_switched_off)
{
    struct daemon *daemon = start("mask_secrets = no\n");
    struct client *client = daemon_connect(daemon);
    expect_output(client, "print(open('/run/secrets/BILLING_KEY').read(), end='')", WITH, KEY "\n");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- nowhere else (C19) ----------------------------------------------------------------------- */

static void look_below(const char *folder, const char *mark, const char *but)
{
    DIR *entries = opendir(folder);
    if (!entries || strcmp(folder, but) == 0) {
        if (entries)
            (void)closedir(entries);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(entries));) {
        char path[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_type == DT_DIR)
            look_below(path, mark, but);
        else if (entry->d_type == DT_REG)
            ck_assert_msg(!host_file_has(path, mark), "%s has it", path);
    }
    (void)closedir(entries);
}

/* Arguments and environments of all processes of the host, in which no secret may be. */
static void look_at_processes(const char *mark)
{
    DIR *entries = opendir("/proc");
    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        static const char *const names[] = {"cmdline", "environ"};
        for (size_t i = 0; i < AR_COUNT(names) && strtol(entry->d_name, NULL, 10) > 0; i++) {
            char path[512];
            (void)snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, names[i]);
            ck_assert_msg(!host_file_has(path, mark), "%s has it", path);
        }
    }
    (void)closedir(entries);
}

START_TEST(nowhere_else)
{
    static const char code[] = "open('/run/secrets/BILLING_KEY').read()\n"
                               "print('up', flush=True)\n"
                               "import time; time.sleep(1)\n";
    struct daemon *daemon = start("[daemon]\nlog_level = debug\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *secrets = daemon_path(daemon, "secrets");
    client_request(
        client, 1, "run",
        client_params("python", code, "{'stream': true, 'grant': {'secrets': ['BILLING_KEY']}}"));
    AR_AUTO_JSON json_t *up = client_next(client);
    ck_assert_str_eq(json_string_value(json_object_get(up, "method")), "output");
    look_at_processes("CANARY+value");
    look_below(daemon_folder(daemon), "CANARY+value", secrets);
    AR_AUTO_JSON json_t *result = client_result(client, 1);
    client_expect(result, "succeeded", "exit_zero");
    look_below(daemon_folder(daemon), "CANARY+value", secrets);
    struct rows rows = rows_read(daemon_ledger(daemon));
    const struct record *record =
        rows_find(&rows, json_string_value(json_object_get(result, "run_id")));
    ck_assert_ptr_nonnull(strstr(record->grant, "\"secrets\":[\"BILLING_KEY\"]"));
    rows_free(&rows);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {
        &a_file_of_its_own,
        &denied_by_name,
        &names_that_are_none,
        &without_a_folder_there_are_none,
        &values_come_back_masked,
        &a_stream_is_masked_across_its_pieces,
        &a_cut_leaves_no_part,
        &masking_can_be_switched_off,
        &nowhere_else,
        NULL,
    };
    return e2e_main("secrets", tests);
}
