/*
 * canaries.c - see canaries.h. Programs look for the mark (HOSTILE-CANARY-...), for the port and for the
 * names that are here. A name or port that another test has at the same time is left to it: what
 * listens there is as good a thing to reach.
 */
#include "tests/lib/canaries.h"

#include "tests/lib/daemon.h"
#include "tests/lib/hostile.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define MARK  \
    "HOSTILE" \
    "-CANARY-"
#define PORT          47391
#define LENT_FD       77
#define ABSTRACT_NAME "hostile-canary"
#define MAX_SOCKETS   8
#define MAX_FILES     8

struct canaries {
    char value[64], variable[96];
    const char *environment[2];
    pid_t process;
    int sockets[MAX_SOCKETS];
    const char *names[MAX_SOCKETS];
    size_t socket_count;
    const char *files[MAX_FILES]; /* to be removed, folders after what is in them */
    size_t file_count;
};

/* ---- the process ------------------------------------------------------------------------------ */

static void become_canary(const struct canaries *canaries, uid_t uid, pid_t parent)
{
    const char *const words[] = {canaries->value, "1000000", NULL};
    const char *const environment[] = {"PATH=/usr/bin:/bin", canaries->variable, NULL};
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0))
        _exit(126);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(126);
    (void)execve("/usr/bin/sleep", (char *const *)(uintptr_t)words,
                 (char *const *)(uintptr_t)environment);
    _exit(127);
}

static void start_process(struct canaries *canaries, uid_t uid)
{
    pid_t parent = getpid();
    canaries->process = fork();
    if (canaries->process == 0)
        become_canary(canaries, uid, parent);
    ck_assert_int_gt(canaries->process, 0);
}

/* ---- sockets ---------------------------------------------------------------------------------- */

static void keep_socket(struct canaries *canaries, int fd, const char *name)
{
    ck_assert_uint_lt(canaries->socket_count, MAX_SOCKETS);
    canaries->names[canaries->socket_count] = name;
    canaries->sockets[canaries->socket_count++] = fd;
}

static bool listen_at(struct canaries *canaries, int type, const void *address, socklen_t length,
                      const char *name)
{
    const int family = ((const struct sockaddr *)address)->sa_family, yes = 1;
    AR_AUTO_CLOSE int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        (family != AF_UNIX && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0))
        return false;
    if (bind(fd, address, length) < 0 || (type == SOCK_STREAM && listen(fd, 8) < 0))
        return false;
    keep_socket(canaries, base_take_fd(&fd), name);
    return true;
}

static void listen_at_loopback(struct canaries *canaries)
{
    const struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(PORT), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    (void)listen_at(canaries, SOCK_STREAM, &four, sizeof(four), "TCP at 127.0.0.1");
    (void)listen_at(canaries, SOCK_DGRAM, &four, sizeof(four), "UDP at 127.0.0.1");
    (void)listen_at(canaries, SOCK_STREAM, &six, sizeof(six), "TCP at ::1");
}

static void keep_file(struct canaries *canaries, const char *path)
{
    ck_assert_uint_lt(canaries->file_count, MAX_FILES);
    canaries->files[canaries->file_count++] = path;
}

static void listen_in_files(struct canaries *canaries)
{
    static const char *const paths[] = {"/tmp/hostile-canary.sock", "/var/tmp/hostile-canary.sock",
                                        "/run/hostile-canary.sock"};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, ABSTRACT_NAME, strlen(ABSTRACT_NAME));
    (void)listen_at(canaries, SOCK_STREAM, &address,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ABSTRACT_NAME)),
                    "the abstract socket");
    for (size_t i = 0; i < AR_COUNT(paths); i++) {
        address = (struct sockaddr_un){.sun_family = AF_UNIX};
        memcpy(address.sun_path, paths[i], strlen(paths[i]));
        (void)unlink(paths[i]); /* of a test that was killed */
        if (!listen_at(canaries, SOCK_STREAM, &address, sizeof(address), paths[i]))
            continue;
        (void)chmod(paths[i], 0777);
        keep_file(canaries, paths[i]);
    }
}

/* ---- files ------------------------------------------------------------------------------------ */

static void make_files(struct canaries *canaries)
{
    static const char *const folders[] = {"/tmp/hostile-canary-tenant",
                                          "/tmp/hostile-canary-tenant/secrets"};
    static const char *const files[] = {"/tmp/hostile-canary-tenant/secrets/token",
                                        "/dev/shm/hostile-canary"};
    for (size_t i = 0; i < AR_COUNT(folders); i++)
        (void)mkdir(folders[i], 0755);
    for (size_t i = 0; i < AR_COUNT(files); i++) {
        daemon_write_file(files[i], canaries->value, 0644);
        keep_file(canaries, files[i]);
    }
    for (size_t i = AR_COUNT(folders); i > 0; i--)
        keep_file(canaries, folders[i - 1]);
}

/* ---- all -------------------------------------------------------------------------------------- */

struct canaries *canaries_start(uid_t uid)
{
    struct canaries *canaries = calloc(1, sizeof(*canaries));
    ck_assert_ptr_nonnull(canaries);
    (void)snprintf(canaries->value, sizeof(canaries->value), MARK "%d-%lld", (int)getpid(),
                   (long long)processes_now_ms());
    (void)snprintf(canaries->variable, sizeof(canaries->variable), "HOSTILE_CANARY_ENV=%s",
                   canaries->value);
    canaries->environment[0] = canaries->variable;
    start_process(canaries, uid);
    listen_at_loopback(canaries);
    listen_in_files(canaries);
    make_files(canaries);
    return canaries;
}

void canaries_end(struct canaries *canaries)
{
    (void)kill(canaries->process, SIGKILL);
    (void)waitpid(canaries->process, NULL, 0);
    for (size_t i = 0; i < canaries->socket_count; i++)
        (void)close(canaries->sockets[i]);
    for (size_t i = 0; i < canaries->file_count; i++)
        (void)remove(canaries->files[i]);
    free(canaries);
}

const char *const *canaries_environment(const struct canaries *canaries)
{
    return canaries->environment;
}

void canaries_lend(struct canaries *canaries)
{
    AR_AUTO_CLOSE int fd = memfd_create("hostile-canary", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(write(fd, canaries->value, strlen(canaries->value)), 0);
    ck_assert_int_eq(dup2(fd, LENT_FD), LENT_FD); /* which is inherited */
}

void canaries_take_back(struct canaries *canaries)
{
    (void)canaries;
    (void)close(LENT_FD);
}

/* Runs it, neither stopped nor ended? */
static bool is_running(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void canaries_judge(struct canaries *canaries, struct text_list *wrong)
{
    char byte;
    if (!is_running(canaries->process))
        hostile_tell(wrong, "the canary process was ended or stopped");
    for (size_t i = 0; i < canaries->socket_count; i++) {
        AR_AUTO_CLOSE int fd =
            accept4(canaries->sockets[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0 || recv(canaries->sockets[i], &byte, 1, MSG_DONTWAIT) >= 0)
            hostile_tell(wrong, "somebody has come to %s", canaries->names[i]);
    }
}
