/*
 * internet.c - two network namespaces with a wire in between.
 *
 * The other side is a process: the wire's end is moved into its namespace by its pid, and goes with it.
 */
#include "tests/lib/internet.h"

#include "tests/lib/daemon.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct internet {
    char folder[64];
    pid_t pid;
    int input;  /* of the other side: its end is the end of it */
    int output; /* of the other side: says when it is ready */
};

/* In the other namespace, when the wire is there. */
static const char other_side[] =
    "set -e; read go; ip link set lo up; ip link set in up; ip addr add 10.9.0.2/24 dev in\n"
    "ip addr add 93.184.216.34/32 dev lo; ip addr add 93.184.216.35/32 dev lo\n"
    "exec /usr/bin/python3 \"$SOURCE/tests/tools/internet.py\" \"$FOLDER\"\n";

static const char certificate[] =
    "set -e; cd \"$FOLDER\"\n"
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca "
    "-keyout ca.key -out ca.crt\n"
    "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=ok.t.test "
    "-keyout server.key -out server.csr\n"
    "printf 'subjectAltName=DNS:ok.t.test,DNS:other.t.test,DNS:api.w.t.test' >ext\n"
    "openssl x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial "
    "-extfile ext -out server.crt\n";

static void shell(const char *script)
{
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", script);
}

/* A word that the other side says, up to its line end. */
static void expect_word(const struct internet *internet, const char *word)
{
    char text[16] = "";
    for (size_t length = 0; length < sizeof text - 1; length++) {
        ck_assert_int_eq(read(internet->output, text + length, 1), 1);
        if (text[length] == '\n') {
            text[length] = '\0';
            break;
        }
    }
    ck_assert_str_eq(text, word);
}

static void start_other_side(struct internet *internet)
{
    int input[2], output[2];
    ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    internet->pid = fork();
    if (internet->pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWNET) < 0 ||
            dup2(input[0], STDIN_FILENO) < 0 || dup2(output[1], STDOUT_FILENO) < 0 ||
            write(STDOUT_FILENO, "apart\n", 6) != 6)
            _exit(1);
        (void)execl("/bin/sh", "sh", "-c", other_side, NULL);
        _exit(127);
    }
    ck_assert_int_gt(internet->pid, 0);
    (void)close(input[0]);
    (void)close(output[1]);
    internet->input = input[1];
    internet->output = output[0];
    expect_word(internet, "apart");
}

static void lay_wire(const struct internet *internet)
{
    char script[256];
    (void)snprintf(script, sizeof script,
                   "set -e; ip link set lo up; ip link add out type veth peer name in netns %d\n"
                   "ip addr add 10.9.0.1/24 dev out; ip link set out up\n"
                   "ip route add default via 10.9.0.2",
                   internet->pid);
    shell(script);
}

struct internet *internet_start(void)
{
    struct internet *internet = calloc(1, sizeof *internet);
    const char *source = getenv("AUDITRUN_SOURCE");
    ck_assert_ptr_nonnull(internet);
    (void)snprintf(internet->folder, sizeof internet->folder, "/tmp/auditrun-net.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(internet->folder));
    ck_assert_int_eq(setenv("FOLDER", internet->folder, 1), 0);
    ck_assert_int_eq(setenv("SOURCE", source ? source : ".", 1), 0);
    shell(certificate);
    ck_assert_msg(unshare(CLONE_NEWNET) == 0, "no network namespace can be made: %s",
                  strerror(errno));
    start_other_side(internet);
    lay_wire(internet);
    ck_assert_int_eq(write(internet->input, "go\n", 3), 3);
    expect_word(internet, "ready");
    return internet;
}

static char *read_note(const struct internet *internet, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", internet->folder, name);
    return access(path, F_OK) == 0 ? daemon_read_file(path) : strdup("");
}

char *internet_authority(const struct internet *internet)
{
    return read_note(internet, "ca.crt");
}

char *internet_notes(const struct internet *internet, const char *name)
{
    return read_note(internet, name);
}

void internet_end(struct internet *internet)
{
    (void)close(internet->input);
    (void)close(internet->output);
    ck_assert_int_eq(waitpid(internet->pid, NULL, 0), internet->pid);
    shell("rm -r \"$FOLDER\"");
    free(internet);
}
