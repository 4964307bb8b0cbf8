/*
 * check_network.c - runs that are granted a network: what they reach, what they do not, and what is
 * counted; C11 to C15 of the cases from the field.
 *
 * The daemon and all that it starts are in a network namespace of the test's own, with one way out to
 * another one (tests/lib/internet.h).
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/internet.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CONFIG INTERNET_CONFIG
#define ALL    "'ok.t.test:80', 'ok.t.test:443', 'both.t.test:80', '*.w.t.test:443'"
#define WHERE(host)                                               \
    "{'grant': {'network': {'mode': 'allowlist', 'hosts': [" host \
    "]}, 'limits': {'processes': 64}}}"

struct setting {
    struct internet *internet;
    struct daemon *daemon;
    struct client *client;
};

static struct setting begin(const char *config)
{
    struct setting setting = {.internet = internet_start()};
    setting.daemon = e2e_daemon(config);
    setting.client = daemon_connect(setting.daemon);
    return setting;
}

static void end(struct setting *setting)
{
    client_disconnect(setting->client);
    daemon_free(setting->daemon);
    internet_end(setting->internet);
}

static json_t *run(const struct setting *setting, const char *language, const char *code,
                   const char *more)
{
    return client_call(setting->client, "run", client_params(language, code, more));
}

/* Runs it, which must succeed, and looks at what it printed. */
static void expect_output(const struct setting *setting, const char *language, const char *code,
                          const char *more, const char *output)
{
    AR_AUTO_JSON json_t *result = run(setting, language, code, more);
    client_expect(result, "succeeded", "exit_zero");
    AR_AUTO_FREE char *text = json_dumps(result, JSON_COMPACT);
    ck_assert_msg(strcmp(e2e_stdout(result), output) == 0, "%s\n%.3000s", output, text);
    rows_expect_result(daemon_ledger(setting->daemon), result);
}

static json_int_t network_usage(const json_t *result, const char *member)
{
    const json_t *usage = json_object_get(json_object_get(result, "usage"), "network");
    const json_t *value = json_object_get(usage, member);
    ck_assert_msg(json_is_integer(value), "%s", member);
    return json_integer_value(value);
}

/* ---- what is granted -------------------------------------------------------------------------- */

#define GET \
    "get() { curl -s -m 10 -o /dev/null -w '%{http_code}/%{http_connect}\\n' \"$@\" || true; }\n"

static const char every_way[] =
    GET "get http://ok.t.test/plain\n"
        "get -k https://ok.t.test/connect\n"
        "get -p http://ok.t.test/tunnel\n"
        "http_proxy= get -x socks5h://127.0.0.1:3128 http://ok.t.test/socks\n"
        "get -d body http://ok.t.test/post\n"
        "get -H 'Transfer-Encoding: chunked' -d body http://ok.t.test/chunked\n"
        "get http://both.t.test/the-public-one\n"
        "get -k https://api.w.t.test/\n";

START_TEST(hosts_that_are_granted)
{
    struct setting setting = begin(CONFIG);
    AR_AUTO_JSON json_t *result = run(&setting, "bash", every_way, WHERE(ALL));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "200/000\n200/200\n200/200\n200/000\n200/000\n200/000\n"
                                         "200/000\n200/200\n");
    ck_assert_int_eq(network_usage(result, "connections"), 8);
    ck_assert_int_eq(network_usage(result, "refusals"), 0);
    ck_assert_int_gt(network_usage(result, "bytes_in"), 8 * 20);
    ck_assert_int_gt(network_usage(result, "bytes_out"), 8 * 20);
    const json_t *usage = json_object_get(json_object_get(result, "usage"), "network");
    ck_assert_uint_eq(json_array_size(json_object_get(usage, "hosts")), 4);
    struct rows rows = rows_read(daemon_ledger(setting.daemon));
    const struct record *record =
        rows_find(&rows, json_string_value(json_object_get(result, "run_id")));
    ck_assert_ptr_nonnull(strstr(record->grant, "\"ok.t.test:443\""));
    ck_assert_ptr_nonnull(strstr(record->usage, "\"connections\":8"));
    ck_assert_ptr_null(strstr(record->usage, "t.test"));
    rows_free(&rows);
    end(&setting);
}
END_TEST

static const char in_python[] =
    "import os, ssl, urllib.request, urllib.error\n"
    "context = ssl.create_default_context(cafile='ca.crt')\n"
    "print(urllib.request.urlopen('https://ok.t.test/x', context=context).read())\n"
    "try:\n    urllib.request.urlopen('https://other.t.test/x', context=context)\n"
    "except OSError as error:\n    print('refused', '403' in str(error))\n"
    "try:\n    import requests\n"
    "    print(requests.get('https://ok.t.test/y', verify='ca.crt').text)\n"
    "except ImportError:\n    print('hello from the net\\n')\n";

static const char in_javascript[] =
    "const get = async (url) => {\n"
    "  try { console.log((await (await fetch(url)).text()).trim()); }\n"
    "  catch (error) { console.log('refused'); }\n"
    "};\n"
    "(async () => { await get('http://ok.t.test/'); await get('http://other.t.test/'); })();\n";

static json_t *with_authority(const struct setting *setting, const char *more)
{
    AR_AUTO_FREE char *authority = internet_authority(setting->internet);
    json_t *params = client_params("python", in_python, more);
    json_t *files = json_pack("[{s:s, s:s}]", "path", "ca.crt", "text", authority);
    ck_assert_int_eq(json_object_set_new(params, "files", files), 0);
    return params;
}

START_TEST(languages_find_the_proxy)
{
    struct setting setting = begin(CONFIG);
    AR_AUTO_JSON json_t *result =
        client_call(setting.client, "run", with_authority(&setting, WHERE(ALL)));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result),
                     "b'hello from the net\\n'\nrefused True\nhello from the net\n\n");
    expect_output(&setting, "javascript", in_javascript,
                  "{'grant': {'network': {'mode': 'allowlist', 'hosts': ['ok.t.test:80']}}}",
                  "hello from the net\nrefused\n");
    end(&setting);
}
END_TEST

/* Those that are installed; what they ask for arrives, whatever they make of the answer. */
static const char installers[] =
    "if [ -e /usr/bin/npm ]; then npm ping --registry=http://ok.t.test/ --fetch-retries=0; fi\n"
    "if python3 -m pip --version; then\n"
    "  python3 -m pip --retries 0 download --no-deps --disable-pip-version-check \\\n"
    "    -i http://ok.t.test/simple --trusted-host ok.t.test demo\n"
    "fi\n"
    "[ -e /usr/bin/npm ] && echo npm\n"
    "python3 -m pip --version >/dev/null && echo pip\n"
    "true\n";

START_TEST(installers_find_the_proxy)
{
    struct setting setting = begin(CONFIG);
    AR_AUTO_JSON json_t *result =
        run(&setting, "bash", installers,
            "{'grant': {'network': {'mode': 'allowlist', 'hosts': ['ok.t.test:80']}, 'limits': {"
            "'wall_ms': 60000, 'cpu_ms': 60000, 'memory_bytes': 1073741824, 'scratch_bytes': "
            "268435456}}}");
    client_expect(result, "succeeded", "exit_zero");
    const char *text = e2e_stdout(result);
    AR_AUTO_FREE char *requests = internet_notes(setting.internet, "requests");
    if (strstr(text, "\nnpm\n") || strncmp(text, "npm\n", 4) == 0)
        ck_assert_msg(strstr(requests, "GET ok.t.test /-/ping"), "%s\n%s", requests,
                      e2e_text(result, "stderr"));
    else
        (void)fprintf(stderr, "SKIPPED: npm is not installed\n");
    if (strstr(text, "pip\n"))
        ck_assert_msg(strstr(requests, "GET ok.t.test /simple/demo/"), "%s\n%s", requests,
                      e2e_text(result, "stderr"));
    else
        (void)fprintf(stderr, "SKIPPED: pip is not installed\n");
    end(&setting);
}
END_TEST

/* ---- what is not ------------------------------------------------------------------------------ */

static const char other_ways[] =
    GET "for host in ok.t.test:8080 other.t.test ok.t.test.evil.test w.t.test:443 \\\n"
        "    127.0.0.1 127.1 2130706433 0x7f000001 [::1] [::ffff:127.0.0.1] 10.9.0.2 localhost \\\n"
        "    169.254.169.254 93.184.216.34 [64:ff9b::7f00:1] CANARY.evil.test; do\n"
        "  get http://$host/; get -p http://$host/\n"
        "  http_proxy= get -x socks5h://127.0.0.1:3128 http://$host/\n"
        "done | sort | uniq -c | sed 's/^ *//'\n"
        "for to in 93.184.216.34/80 10.9.0.2/53 127.0.0.1/80 10.9.0.1/80; do\n"
        "  (exec 5<>/dev/tcp/$to) 2>/dev/null && echo connected $to\n"
        "done\n"
        "getent hosts CANARY.evil.test ok.t.test\n"
        "curl -s -m 5 --noproxy '*' http://ok.t.test/ && echo past the proxy\n"
        "curl -s -m 5 --noproxy '*' http://93.184.216.34/ && echo past the proxy\n"
        "true\n";

START_TEST(hosts_that_are_not_granted)
{
    struct setting setting = begin(CONFIG);
    AR_AUTO_JSON json_t *result = run(&setting, "bash", other_ways, WHERE("'ok.t.test:80'"));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "16 000/000\n16 000/403\n16 403/000\n");
    ck_assert_int_eq(network_usage(result, "connections"), 0);
    ck_assert_int_eq(network_usage(result, "refusals"), 48);
    AR_AUTO_FREE char *questions = internet_notes(setting.internet, "questions");
    ck_assert_str_eq(questions, ""); /* no name that is not granted is looked up */
    AR_AUTO_FREE char *log = daemon_read_log(setting.daemon);
    ck_assert_ptr_null(strstr(log, "evil"));
    ck_assert_ptr_null(strstr(log, "CANARY"));
    end(&setting);
}
END_TEST

/* Names that are granted, and lead where nothing may go. */
START_TEST(names_that_lead_inside)
{
    static const char code[] = GET "for name in private loop meta mapped alias slow; do\n"
                                   "  get http://$name.t.test/; get -p http://$name.t.test/\n"
                                   "done | sort | uniq -c | sed 's/^ *//'\n"
                                   "get -L http://ok.t.test/elsewhere\n"
                                   "for i in 1 2 3 4; do get http://turns.t.test/; done\n";
    struct setting setting = begin(CONFIG);
    AR_AUTO_JSON json_t *result =
        run(&setting, "bash", code,
            WHERE("'private.t.test:80', 'loop.t.test:80', 'meta.t.test:80', 'mapped.t.test:80', "
                  "'alias.t.test:80', 'slow.t.test:80', 'ok.t.test:80', 'turns.t.test:80'"));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "5 000/403\n1 000/504\n5 403/000\n1 504/000\n"
                                         "403/000\n"
                                         "200/000\n403/000\n200/000\n403/000\n");
    end(&setting);
}
END_TEST

START_TEST(without_a_network)
{
    static const char code[] = "env | grep -i proxy\n"
                               "(exec 5<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo connected\n"
                               "curl -s -m 5 http://ok.t.test/ && echo reached\n"
                               "true\n";
    struct setting setting = begin(CONFIG);
    expect_output(&setting, "bash", code, NULL, "");
    expect_output(&setting, "bash", code, "{'grant': {'network': {'mode': 'none'}}}", "");
    AR_AUTO_FREE char *questions = internet_notes(setting.internet, "questions");
    ck_assert_str_eq(questions, "");
    end(&setting);
}
END_TEST

/* ---- open ------------------------------------------------------------------------------------- */

/* A service of the host, in the network namespace that the daemon is in. */
static int listen_abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static const char name[] = "auditrun-canary";
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path + 1, name, sizeof name - 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof name)),
                     0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

static const char open_code[] =
    "import socket, subprocess\n"
    "def get(*args):\n"
    "    print(subprocess.run(['curl', '-s', '-m', '5', '-o', '/dev/null', '-w', '%{http_code}',\n"
    "                          *args], capture_output=True, text=True).stdout)\n"
    "get('http://ok.t.test/'); get('http://other.t.test/'); get('http://93.184.216.35/')\n"
    "for host in ('127.0.0.1', 'loop.t.test', '10.9.0.1', '10.9.0.2', 'localhost', '[::1]'):\n"
    "    get('http://' + host + '/')\n"
    "try:\n"
    "    socket.socket(socket.AF_UNIX).connect('\\0auditrun-canary')\n"
    "except OSError:\n    print('alone')\n";

START_TEST(the_open_network_is_not_this_host)
{
    struct setting setting = begin(CONFIG "open = yes\n");
    AR_AUTO_CLOSE int canary = listen_abstract();
    ck_assert_int_ge(canary, 0);
    AR_AUTO_JSON json_t *result =
        run(&setting, "python", open_code, "{'grant': {'network': {'mode': 'open'}}}");
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "200\n200\n200\n403\n403\n403\n403\n502\n403\nalone\n");
    ck_assert_int_eq(network_usage(result, "connections"), 3);
    ck_assert_int_eq(network_usage(result, "refusals"), 5); /* one name is not found */
    ck_assert_ptr_null(
        json_object_get(json_object_get(json_object_get(result, "usage"), "network"), "hosts"));
    rows_expect_result(daemon_ledger(setting.daemon), result);
    end(&setting);
}
END_TEST

START_TEST(open_is_not_offered_by_default)
{
    struct setting setting = begin(CONFIG);
    AR_AUTO_JSON json_t *result =
        run(&setting, "bash", "true", "{'grant': {'network': {'mode': 'open'}}}");
    client_expect(result, "capability_denied", "not_enforceable");
    AR_AUTO_JSON json_t *expected = client_json(
        "[{'demand': 'network', 'requested': 'open', 'offered': ['none', 'allowlist']}]");
    ck_assert(json_equal(json_object_get(result, "denials"), expected));
    rows_expect_result(daemon_ledger(setting.daemon), result);
    end(&setting);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {
        &hosts_that_are_granted,
        &languages_find_the_proxy,
        &installers_find_the_proxy,
        &hosts_that_are_not_granted,
        &names_that_lead_inside,
        &without_a_network,
        &the_open_network_is_not_this_host,
        &open_is_not_offered_by_default,
        NULL,
    };
    if (geteuid() != 0) {
        (void)fprintf(stderr, "SKIPPED: only root can make networks\n");
        return 77;
    }
    return e2e_main("network", tests);
}
