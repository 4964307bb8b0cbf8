/*
 * attack.c - the executor's attacks on its own sandbox.
 *
 * They run as the code does: the same binary, executed behind all walls. Each does harm to nobody if
 * it gets through; the point is that the envelope is written from what was seen and not from hope.
 */
#include "executors/namespace/attack.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define DOCUMENTATION_ADDRESS 0xc0000201u /* 192.0.2.1 */
#define SPIN_MS               2
#define ATTACK_SECONDS        10

/* ---- the walls -------------------------------------------------------------------------------- */

/* One line of /proc/self/status, as a number in base 16; ~0 when it is not there. */
static unsigned long long status_value(const char *name)
{
    char line[256];
    unsigned long long value = ~0ull;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            value = strtoull(line + strlen(name) + 1, NULL, 16);
    if (file)
        (void)fclose(file);
    return value;
}

static bool holds_capabilities(void)
{
    return status_value("CapEff") != 0 || status_value("CapPrm") != 0 ||
           status_value("CapInh") != 0 || status_value("CapBnd") != 0 ||
           status_value("CapAmb") != 0;
}

static bool gains_privileges(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || setuid(0) == 0 || setgid(0) == 0;
}

static bool lacks_filter(void)
{
    return status_value("Seccomp") != 2;
}

static bool makes_namespaces(void)
{
    long made = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (made == 0)
        _exit(0);
    return made > 0 || unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0;
}

static bool mounts_something(void)
{
    return mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || umount2("/proc", MNT_DETACH) == 0 ||
           chroot("/tmp") == 0;
}

static bool writes_outside_scratch(void)
{
    static const char *const paths[] = {"/x", "/usr/x", "/etc/x", "/dev/x", "/code/x", "/proc/x"};
    for (size_t i = 0; i < AR_COUNT(paths); i++)
        if (open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0)
            return true;
    return false;
}

static bool sees_host_files(void)
{
    static const char *const paths[] = {"/etc/shadow", "/root", "/home",    "/sys",
                                        "/run/user",   "/boot", "/scratch", "/run/systemd"};
    for (size_t i = 0; i < AR_COUNT(paths); i++)
        if (access(paths[i], F_OK) == 0)
            return true;
    return false;
}

static bool holds_descriptors(void)
{
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return true;
    return false;
}

static bool reaches_first_process(void)
{
    static const char *const paths[] = {"/proc/1/mem", "/proc/1/maps", "/proc/1/environ",
                                        "/proc/1/fd/3"};
    const struct rlimit none = {0, 0};
    for (size_t i = 0; i < AR_COUNT(paths); i++)
        if (open(paths[i], O_RDONLY | O_CLOEXEC) >= 0)
            return true;
    (void)kill(1, SIGKILL); /* if it worked, nobody would live to tell: the run is lost */
    (void)kill(1, SIGSTOP);
    return ptrace(PTRACE_ATTACH, 1, NULL, NULL) == 0 || prlimit(1, RLIMIT_CPU, &none, NULL) == 0 ||
           setpriority(PRIO_PROCESS, 1, 19) == 0;
}

static bool sees_processes(void)
{
    return getpid() > 2 || getppid() > 1 || kill(getpid() + 1, 0) == 0;
}

/* Is there a way to this address? Nothing is sent. */
static bool has_route(uint32_t address)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(address)};
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
}

static bool has_network(void)
{
    return has_route(INADDR_LOOPBACK) || has_route(DOCUMENTATION_ADDRESS) ||
           socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0 ||
           socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 ||
           socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0;
}

static bool makes_unreadable_program(void)
{
    int fd = open("/tmp/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0111);
    return fd >= 0 || chmod("/tmp", 0111) == 0;
}

static const struct {
    bool (*got_through)(void);
    const char *word;
} walls[] = {
    {holds_capabilities, "it holds capabilities"},
    {gains_privileges, "it can gain privileges"},
    {lacks_filter, "there is no filter of system calls"},
    {makes_namespaces, "it can make namespaces"},
    {mounts_something, "it can change mounts"},
    {writes_outside_scratch, "it can write outside its scratch"},
    {sees_host_files, "it can see files of the host"},
    {holds_descriptors, "it has inherited descriptors"},
    {reaches_first_process, "it can reach the first process of its sandbox"},
    {sees_processes, "it can see processes that are not its own"},
    {has_network, "it has a network"},
    {makes_unreadable_program, "it can hide from the counter of processor time"},
};

int attack_walls(void)
{
    for (size_t i = 0; i < AR_COUNT(walls); i++)
        if (walls[i].got_through())
            return ATTACK_THROUGH + (int)i;
    return 0;
}

const char *attack_word(int code)
{
    size_t index = (size_t)(code - ATTACK_THROUGH);
    return code >= ATTACK_THROUGH && index < AR_COUNT(walls) ? walls[index].word
                                                             : "the attack did not end by itself";
}

/* ---- the limits ------------------------------------------------------------------------------- */

int attack_processes(long granted)
{
    long count = 1; /* this one */
    while (count <= granted + 1) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0) {
            (void)pause();
            _exit(0);
        }
        count++;
    }
    return count == granted ? 0 : 1;
}

int attack_open_files(long granted)
{
    long count = 3;
    while (count <= granted && dup(STDOUT_FILENO) >= 0)
        count++;
    return count == granted ? 0 : 1;
}

/* Fills both folders of the scratch, and small files too. */
int attack_scratch(long granted_bytes)
{
    static const char *const paths[] = {"/work/x", "/tmp/x"};
    static const char block[65536];
    long long written = 0;
    for (size_t i = 0; i < AR_COUNT(paths); i++) {
        int fd = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ssize_t got;
        while (fd >= 0 && written <= 2ll * granted_bytes &&
               (got = write(fd, block, sizeof(block))) > 0)
            written += got;
    }
    return written >= granted_bytes / 2 && written <= granted_bytes ? 0 : 1;
}

static void spin(void)
{
    struct timespec used;
    do
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < SPIN_MS * 1000000L);
}

/* Children that live for two milliseconds, and whose time no parent is ever told. */
int attack_processor(void)
{
    struct timespec start, now;
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    (void)sigaction(SIGCHLD, &ignore, NULL);
    do {
        pid_t pid = fork();
        if (pid == 0) {
            spin();
            _exit(0);
        }
        (void)waitpid(pid, NULL, 0); /* comes back when all are gone, with nothing */
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < ATTACK_SECONDS);
    return 0;
}
