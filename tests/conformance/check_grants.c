/*
 * check_grants.c - what a grant can give, in the namespace executor without the daemon: data port, secrets
 * and network. The test hands the descriptors over itself, and looks at what the code can do with them
 * and what is left.
 *
 * Attacks print a word for each thing that worked, so that a sandbox that holds prints nothing.
 */
#include "tests/lib/gifts.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

static char key[] = "BILLING_KEY", token[] = "TOKEN", *secrets[] = {key, token};

/* ---- the data port ---------------------------------------------------------------------------- */

START_TEST(data_port_is_descriptor_3)
{
    int pair[2];
    char said[64] = "";
    struct executor executor = gifts_start("");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                         0);
        struct request request = gifts_request(
            "bash", "read -r line <&3; echo \"$line $AUDITRUN_API_FD\"; echo said >&3\n"
                    "for n in {4..255}; do [ -e /proc/self/fd/$n ] && [ $n != 255 ] && "
                    "echo open $n; done; exit 0");
        struct executor_gifts gifts = {.data_port = pair[1], .secrets = -1};
        gifts_grant_port(&request);
        ck_assert_int_eq(write(pair[0], "heard\n", 6), 6);
        gifts_expect(&executor, &request, &gifts, OUTCOME_EXITED, "heard 3\n", NULL);
        (void)close(pair[1]);
        ck_assert_int_eq(read(pair[0], said, sizeof(said)), 5);
        ck_assert_int_eq(read(pair[0], said, sizeof(said)), 0); /* nobody has it any more */
        (void)close(pair[0]);
        ck_assert(executor_await_ready(&executor));
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(compiler_gets_neither_port_nor_variables)
{
    int pair[2];
    struct executor executor =
        gifts_start_language("[language any]\nfile = main.sh\ncompile = /bin/bash {file}\n"
                             "run = /bin/bash {file} run\nsample = exit 0\n");
    struct request request =
        gifts_request("any", "n=0; [ -e /proc/self/fd/3 ] && n=1; v=$AUDITRUN_API_FD$TOKEN\n"
                             "[ \"$1$n$v\" = run13t ] || [ \"$1$n$v\" = 0 ] || exit 9\n"
                             "[ \"$1\" = run ] && echo ran; exit 0");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct executor_gifts gifts = {.data_port = pair[1], .secrets = gifts_secrets("t", 1)};
    gifts_grant_port(&request);
    gifts_grant_secrets(&request);
    gifts_expect(&executor, &request, &gifts, OUTCOME_EXITED, "ran\n", NULL);
    gifts_expect_wiped(gifts.secrets);
    (void)close(gifts.secrets);
    (void)close(pair[0]);
    (void)close(pair[1]);
    ck_assert(executor_stop(&executor));
}
END_TEST

/* Sockets that the code sends along wait at the daemon's end, and leave with it. */
START_TEST(descriptors_on_the_data_port_end_the_slot)
{
    int pair[2];
    struct executor executor = gifts_start("");
    struct request request =
        gifts_request("python", "import socket, array\n"
                                "port = socket.socket(fileno=3)\n"
                                "a, b = socket.socketpair()\n"
                                "port.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
                                "array.array('i', [a.fileno()]))])\n");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct executor_gifts gifts = {.data_port = pair[1], .secrets = -1};
    gifts_grant_port(&request);
    gifts_expect(&executor, &request, &gifts, OUTCOME_EXITED, "", NULL);
    ck_assert(executor_ended(&executor));
    (void)close(pair[0]);
    (void)close(pair[1]);
    ck_assert(executor_stop(&executor));
}
END_TEST

/* ---- secrets ---------------------------------------------------------------------------------- */

START_TEST(secrets_are_files_and_variables)
{
    struct executor executor = gifts_start("");
    struct request request = gifts_request(
        "bash",
        "cd /run/secrets; cat *; echo; echo \"$TOKEN ${BILLING_KEY-none}\"\n"
        "stat -c '%a %u %F' *; stat -f -c %T .\n"
        "(echo x >BILLING_KEY) 2>/dev/null && echo wrote; (: >new) 2>/dev/null && echo made\n"
        "chmod 644 TOKEN 2>/dev/null && echo opened; exit 0");
    struct request later = gifts_request(
        "bash",
        "ls -A /run/secrets; echo ${TOKEN-none}; cat /proc/self/mountinfo | grep -c secrets");
    struct request_variable variable = {.name = token, .value = key};
    for (int i = 0; i < 2; i++) {
        int fd = gifts_secrets("t", 1);
        struct executor_gifts gifts = {.data_port = -1, .secrets = fd};
        gifts_grant_secrets(&request);
        request.env = &variable; /* what is granted comes over it */
        request.env_count = 1;
        gifts_expect(&executor, &request, &gifts, OUTCOME_EXITED,
                     GIFTS_VALUE "t\nt none\n400 1000 regular file\n400 1000 regular file\ntmpfs\n",
                     NULL);
        gifts_expect_wiped(fd);
        (void)close(fd);
        ck_assert(executor_await_ready(&executor));
        later.env_count = 0;
        struct executor_result result;
        ck_assert(executor_do(&executor, &later, &result));
        ck_assert_str_eq(gifts_text(&result.out), "none\n0\n");
        executor_result_free(&result);
        ck_assert(executor_await_ready(&executor));
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

/* A process of ours still has memory that the code may have read from: none of it may hold a value. */
static size_t count_in_memory(pid_t pid, const char *value)
{
    char path[64], line[512];
    size_t found = 0, length = strlen(value);
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    AR_AUTO_CLOSE int memory = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert(maps && memory >= 0);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx rw", &from, &to) != 2 || strstr(line, "[v") ||
            to - from > (64ul << 20))
            continue;
        char *text = malloc(to - from);
        ssize_t got = pread(memory, text, to - from, (off_t)from);
        for (ssize_t i = 0; got > 0 && i + (ssize_t)length <= got; i++)
            found += memcmp(text + i, value, length) == 0;
        free(text);
    }
    (void)fclose(maps);
    return found;
}

START_TEST(values_are_wiped_when_the_code_has_them)
{
    struct executor executor = gifts_start("");
    struct executor_run run;
    struct executor_result result;
    struct request request = gifts_request("bash", "echo \"got $TOKEN\"; read -r line <&3; exit 0");
    int pair[2];
    if (geteuid() != 0)
        return; /* nobody else may look into the launcher */
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int fd = gifts_secrets(GIFTS_VALUE, strlen(GIFTS_VALUE));
    struct executor_gifts gifts = {.data_port = pair[1], .secrets = fd};
    gifts_grant_secrets(&request);
    gifts_grant_port(&request);
    ck_assert(executor_send_with(&executor, &request, &gifts, &result, &run));
    ck_assert(executor_await_output(&executor, &run, "got " GIFTS_VALUE));
    /* The launcher's memory is the first process's, too. */
    ck_assert_uint_eq(count_in_memory(executor.pid, GIFTS_VALUE), 0);
    ck_assert_uint_gt(count_in_memory(executor.pid, "AUDITRUN_API_FD=3"), 0);
    gifts_expect_wiped(fd);
    ck_assert_int_eq(write(pair[0], "go\n", 3), 3);
    ck_assert(executor_finish(&executor, &run));
    executor_run_close(&run);
    executor_result_free(&result);
    (void)close(fd);
    (void)close(pair[0]);
    (void)close(pair[1]);
    ck_assert(executor_stop(&executor));
}
END_TEST

START_TEST(secrets_that_are_none_do_not_run)
{
    static const char *const files[] = {
        "BILLING_KEY 5\nvalueTOKEN 9\nshort",      "BILLING_KEY 5\nvalue",
        "BILLING_KEY 5\nvalueTOKEN 1\nxMORE 1\nx", "BILLING_KEY 5\nvalueBILLING_KEY 1\nx",
        "BILLING_KEY 5\nvalue../TOKEN 1\nx",       "nothing"};
    struct executor executor = gifts_start("");
    struct request request = gifts_request("bash", "echo ran");
    gifts_grant_secrets(&request);
    for (size_t i = 0; i < AR_COUNT(files); i++) {
        int fd = memfd_create("secrets", MFD_CLOEXEC);
        ck_assert_int_gt(write(fd, files[i], strlen(files[i])), 0);
        struct executor_gifts gifts = {.data_port = -1, .secrets = fd};
        gifts_expect(&executor, &request, &gifts, OUTCOME_SETUP_FAILED, "", NULL);
        gifts_expect_wiped(fd);
        (void)close(fd);
        ck_assert(executor_await_ready(&executor));
    }
    /* A variable cannot have a NUL byte in it; a file can. */
    int fd = gifts_secrets("a\0b", 3);
    struct executor_gifts gifts = {.data_port = -1, .secrets = fd};
    gifts_expect(&executor, &request, &gifts, OUTCOME_SETUP_FAILED, "", NULL);
    gifts_expect_wiped(fd);
    (void)close(fd);
    ck_assert(executor_await_ready(&executor));
    gifts.secrets = gifts_secrets("a\0b", 3);
    struct request binary = gifts_request("bash", "cat /run/secrets/TOKEN | tr '\\0' 0");
    binary.grant.secrets = gifts_list(secrets, 2);
    gifts_expect(&executor, &binary, &gifts, OUTCOME_EXITED, "a0b", NULL);
    (void)close(gifts.secrets);
    ck_assert(executor_stop(&executor));
}
END_TEST

/* ---- orders that are not whole ---------------------------------------------------------------- */

START_TEST(orders_have_what_is_granted)
{
    static char path[] = "/srv/x", *paths[] = {path};
    int pair[2];
    struct executor executor = gifts_start("");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int fd = gifts_secrets("t", 1);
    for (int i = 0; i < 7; i++) {
        struct request request = gifts_request("bash", "echo ran");
        struct executor_gifts gifts = EXECUTOR_NO_GIFTS;
        if (i == 0)
            gifts.data_port = pair[1];
        if (i == 1)
            gifts_grant_port(&request);
        if (i == 2)
            gifts.secrets = fd;
        if (i == 3)
            request.grant.secrets = gifts_list(secrets, 2);
        if (i == 4)
            request.grant.read = gifts_list(paths, 1);
        if (i == 5)
            gifts = (struct executor_gifts){
                .data_port = -1, .secrets = -1, .paths = &fd, .path_count = 1};
        if (i == 6)
            request.grant.network = NETWORK_OPEN;
        gifts_expect(&executor, &request, &gifts, OUTCOME_SETUP_FAILED, "", NULL);
        ck_assert(executor_await_ready(&executor));
    }
    ck_assert(executor_stop(&executor));
    (void)close(fd);
    (void)close(pair[0]);
    (void)close(pair[1]);
}
END_TEST

/* And a slot that reaches something is for such runs only. */
START_TEST(slots_are_for_what_they_reach)
{
    static const char *const reaches[] = {"network", "files", "network files"};
    for (size_t i = 0; i < AR_COUNT(reaches); i++) {
        struct executor executor = gifts_start(reaches[i]);
        struct request request = gifts_request("bash", "echo ran");
        gifts_expect(&executor, &request, &EXECUTOR_NO_GIFTS, OUTCOME_SETUP_FAILED, "", NULL);
        (void)executor_stop(&executor);
    }
}
END_TEST

/* ---- the network ------------------------------------------------------------------------------ */

#define SHOW_NETWORK                                                                      \
    "import os, socket, errno\n"                                                          \
    "def no(what, f):\n"                                                                  \
    "    try: f()\n"                                                                      \
    "    except OSError: return\n"                                                        \
    "    print(what)\n"                                                                   \
    "def connect(family, to):\n"                                                          \
    "    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(5); s.connect(to)\n" \
    "no('port', lambda: connect(socket.AF_INET, ('127.0.0.1', 3129)))\n"                  \
    "no('other', lambda: connect(socket.AF_INET, ('127.0.0.2', 80)))\n"                   \
    "no('v6', lambda: connect(socket.AF_INET6, ('::1', 3128)))\n"                         \
    "no('out', lambda: connect(socket.AF_INET, ('192.0.2.1', 3128)))\n"                   \
    "no('out 80', lambda: connect(socket.AF_INET, ('192.0.2.1', 80)))\n"                  \
    "no('metadata', lambda: connect(socket.AF_INET, ('169.254.169.254', 80)))\n"          \
    "no('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n"               \
    "no('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))\n"              \
    "no('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))\n"          \
    "no('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))\n"            \
    "no('listen', lambda: socket.create_server(('127.0.0.1', 8080)))\n"                   \
    "no('steal', lambda: socket.create_server(('127.0.0.1', 3128), reuse_port=True))\n"   \
    "no('name', lambda: socket.getaddrinfo('ok.t.test', 443))\n"                          \
    "print(*[l.split(':')[0].strip() for l in open('/proc/self/net/dev') if ':' in l "    \
    "and 'lo' not in l.split(':')[0] and int(l.split(':')[1].split()[0]) > 0])\n"

START_TEST(network_has_one_way_out)
{
    struct executor executor = gifts_start("network");
    struct request request = gifts_network_request("python", SHOW_NETWORK);
    for (int i = 0; i < 3; i++) {
        int listener = -1;
        gifts_expect(&executor, &request, &EXECUTOR_NO_GIFTS, OUTCOME_EXITED, "\n", &listener);
        gifts_expect_listener(listener);
        (void)close(listener);
        ck_assert(executor_await_ready(&executor));
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

/* Serves one connection with this answer, as the daemon would. */
static void serve_one(int listener, const char *answer)
{
    char asked[4096];
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, EXECUTOR_WAIT_MS), 1);
    AR_AUTO_CLOSE int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, asked, sizeof(asked)), 0);
    ck_assert_int_eq(write(fd, answer, strlen(answer)), (ssize_t)strlen(answer));
}

/* Reads until the listener has come; the harness has no wait for that alone. */
static void run_with_proxy(const char *language, const char *code, const char *out)
{
    struct executor executor = gifts_start("network");
    struct executor_result result;
    struct executor_run run;
    struct request request = gifts_network_request(language, code);
    ck_assert(executor_send(&executor, &request, &result, &run));
    ck_assert(executor_await_output(&executor, &run, "begun"));
    gifts_expect_listener(result.listener);
    serve_one(result.listener,
              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    ck_assert(executor_finish(&executor, &run));
    ck_assert_msg(result.reported && result.report.outcome == OUTCOME_EXITED, "stderr: %.900s",
                  gifts_text(&result.err));
    ck_assert_str_eq(gifts_text(&result.out), out);
    executor_run_close(&run);
    executor_result_free(&result);
    ck_assert(executor_await_ready(&executor));
    ck_assert(executor_stop(&executor));
}

/* The variables are what programs look for. */
START_TEST(programs_find_the_proxy)
{
    run_with_proxy("python",
                   "import urllib.request\nprint('begun', flush=True)\n"
                   "print(urllib.request.urlopen('http://a.t.test/').read().decode())\n",
                   "begun\nhello\n");
    run_with_proxy("bash",
                   "echo begun; exec 4<>/dev/tcp/127.0.0.1/3128; echo GET >&4; "
                   "tail -c 5 <&4; echo\n"
                   "echo $http_proxy $HTTPS_PROXY $all_proxy \"[$NO_PROXY]\" $NODE_USE_ENV_PROXY",
                   "begun\nhello\nhttp://127.0.0.1:3128 http://127.0.0.1:3128 "
                   "socks5h://127.0.0.1:3128 [] 1\n");
}
END_TEST

/* Without the host's authorities no client could check a certificate; without a network they are of no
 * use. Keys are never shown. */
START_TEST(authorities_are_shown_with_a_network)
{
    const char *code = "[ -e /etc/ssl/certs ] && echo certs; [ -e /etc/ssl/private ] && echo keys\n"
                       "(: >/etc/ssl/certs/x) 2>/dev/null && echo wrote; exit 0";
    struct executor executor = gifts_start("network");
    struct request request = gifts_network_request("bash", code);
    if (access("/etc/ssl/certs", F_OK) < 0)
        return;
    gifts_expect(&executor, &request, &EXECUTOR_NO_GIFTS, OUTCOME_EXITED, "certs\n", NULL);
    ck_assert(executor_stop(&executor));
    executor = gifts_start("");
    struct request plain = gifts_request("bash", code);
    gifts_expect(&executor, &plain, &EXECUTOR_NO_GIFTS, OUTCOME_EXITED, "", NULL);
    ck_assert(executor_stop(&executor));
}
END_TEST

/* Nothing of a run is in the network of the next: neither sockets nor counters. */
START_TEST(each_run_has_a_network_of_its_own)
{
    struct executor executor = gifts_start("network");
    struct request leaving = gifts_network_request(
        "python", "import socket, array\n"
                  "a, b = socket.socketpair()\n"
                  "for s, t in ((a, b), (b, a)):\n"
                  "    s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
                  "array.array('i', [t.fileno()]))])\n"
                  "for i in range(100):\n"
                  "    try: socket.create_connection(('127.0.0.1', 3128))\n"
                  "    except OSError as e: print(e)\n");
    struct request looking = gifts_network_request(
        "bash", "tail -n +2 /proc/self/net/unix; grep -c 0100007F:0C38 /proc/self/net/tcp\n"
                "grep ^Tcp: /proc/self/net/snmp | tail -1 | cut -d' ' -f 6,7");
    for (int i = 0; i < 2; i++) {
        gifts_expect(&executor, &leaving, &EXECUTOR_NO_GIFTS, OUTCOME_EXITED, "", NULL);
        ck_assert(executor_await_ready(&executor));
        gifts_expect(&executor, &looking, &EXECUTOR_NO_GIFTS, OUTCOME_EXITED, "1\n0 0\n", NULL);
        ck_assert(executor_await_ready(&executor));
    }
    ck_assert(executor_stop(&executor));
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

static Suite *make_suite(void)
{
    static const TTest *const *const tests[] = {
        &data_port_is_descriptor_3,
        &compiler_gets_neither_port_nor_variables,
        &descriptors_on_the_data_port_end_the_slot,
        &secrets_are_files_and_variables,
        &values_are_wiped_when_the_code_has_them,
        &secrets_that_are_none_do_not_run,
        &orders_have_what_is_granted,
        &slots_are_for_what_they_reach,
        &network_has_one_way_out,
        &programs_find_the_proxy,
        &authorities_are_shown_with_a_network,
        &each_run_has_a_network_of_its_own,
    };
    Suite *suite = suite_create("grants");
    TCase *tcase = tcase_create("grants");
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    gifts_find_program();
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
