/*
 * attack.c - the executor's attacks on its own sandbox.
 *
 * They run as the code does: the same binary, executed behind all walls. Each does harm to nobody if
 * it gets through; the point is that the envelope is written from what was seen and not from hope.
 */
#include "executors/namespace/attack.h"

#include "executors/namespace/reach.h"
#include "executors/namespace/vault.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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

static bool holds_more_than(int last)
{
    for (int fd = last + 1; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return true;
    return false;
}

static bool holds_descriptors(void)
{
    return holds_more_than(STDERR_FILENO);
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

/* ---- what a grant gives ------------------------------------------------------------------------- */

/* Does a variable have this value (NULL: is it there)? */
static bool has_variable(const char *name, const char *value)
{
    const char *found = getenv(name);
    return found && (!value || strcmp(found, value) == 0);
}

static bool lacks_port(void)
{
    char byte = 0;
    return recv(STDERR_FILENO + 1, &byte, 1, MSG_DONTWAIT) != 1 || byte != ATTACK_BYTE ||
           !has_variable("AUDITRUN_API_FD", "3") || holds_more_than(STDERR_FILENO + 1);
}

static bool finds_secrets(void)
{
    size_t count = 0;
    DIR *folder = opendir(VAULT_FOLDER);
    while (folder && readdir(folder))
        count++;
    if (folder)
        (void)closedir(folder);
    return count > 2 || has_variable(ATTACK_SECRET, NULL) || has_variable("AUDITRUN_API_FD", NULL);
}

static bool lacks_secret(void)
{
    char text[sizeof(ATTACK_VALUE)] = "";
    struct stat status;
    AR_AUTO_CLOSE int fd = open(VAULT_FOLDER "/" ATTACK_SECRET, O_RDONLY | O_CLOEXEC);
    return fd < 0 || read(fd, text, sizeof(text)) != strlen(ATTACK_VALUE) ||
           strcmp(text, ATTACK_VALUE) != 0 || fstat(fd, &status) < 0 ||
           (status.st_mode & 07777) != 0400 || status.st_uid != getuid() ||
           !has_variable(ATTACK_SECRET, ATTACK_VALUE);
}

static bool changes_secret(void)
{
    return chmod(VAULT_FOLDER "/" ATTACK_SECRET, 0600) == 0 ||
           unlink(VAULT_FOLDER "/" ATTACK_SECRET) == 0 ||
           open(VAULT_FOLDER "/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
}

static bool connects(uint32_t address, uint16_t port, int flags)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    return fd >= 0 &&
           (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS);
}

static bool lacks_listener(void)
{
    return !connects(INADDR_LOOPBACK, REACH_PORT, 0) || !has_variable("HTTP_PROXY", NULL);
}

/* An interface that is up, beside the loopback. */
static bool has_interface(void)
{
    char line[256];
    bool found = false;
    FILE *file = fopen("/proc/self/net/dev", "re");
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (file && fgets(line, sizeof(line), file)) {
        struct ifreq request = {0};
        const char *name = line + strspn(line, " ");
        const char *end = strchr(name, ':');
        if (!end || (size_t)(end - name) >= sizeof(request.ifr_name))
            continue;
        memcpy(request.ifr_name, name, (size_t)(end - name));
        found = found || (strcmp(request.ifr_name, "lo") != 0 &&
                          ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP);
    }
    if (file)
        (void)fclose(file);
    return !file || fd < 0 || found;
}

static bool has_other_way_out(void)
{
    return has_interface() || connects(INADDR_LOOPBACK, REACH_PORT + 1, 0) ||
           connects(DOCUMENTATION_ADDRESS, REACH_PORT, SOCK_NONBLOCK) ||
           connects(DOCUMENTATION_ADDRESS, 80, SOCK_NONBLOCK) || has_route(INADDR_LOOPBACK) ||
           socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP) >= 0 ||
           socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0 ||
           socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 ||
           socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0;
}

static bool lacks_paths(void)
{
    char byte = 0;
    AR_AUTO_CLOSE int data = open(ATTACK_READ "/data", O_RDONLY | O_CLOEXEC);
    AR_AUTO_CLOSE int made = open(ATTACK_WRITE "/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return data < 0 || read(data, &byte, 1) != 1 || byte != ATTACK_BYTE || made < 0 ||
           write(made, &byte, 1) != 1 || fsync(made) < 0 || chmod(ATTACK_WRITE "/x", 0700) < 0;
}

static bool changes_what_it_may_read(void)
{
    return open(ATTACK_READ "/data", O_WRONLY | O_CLOEXEC) >= 0 ||
           open(ATTACK_READ "/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 ||
           unlink(ATTACK_READ "/data") == 0 || truncate(ATTACK_READ "/data", 0) == 0;
}

static bool reaches_services(void)
{
    int pair[2];
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 ||
           socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0 ||
           socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0 ||
           open(ATTACK_READ "/fifo", O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0;
}

static bool leaves_programs(void)
{
    return chmod(ATTACK_WRITE "/x", 04755) == 0 || chmod(ATTACK_WRITE "/x", 02755) == 0 ||
           open(ATTACK_WRITE "/y", O_WRONLY | O_CREAT | O_CLOEXEC, 04755) >= 0 ||
           mknod(ATTACK_WRITE "/z", S_IFREG | 04755, 0) == 0 ||
           mknod(ATTACK_WRITE "/d", S_IFCHR | 0600, 0x103) == 0 ||
           mknod(ATTACK_WRITE "/s", S_IFSOCK | 0600, 0) == 0;
}

/* ---- all of them ------------------------------------------------------------------------------ */

/* Each is tried in sandboxes that are given all of `with` and nothing of `without`. */
static const struct {
    bool (*got_through)(void);
    const char *word;
    unsigned with, without;
} walls[] = {
    {holds_capabilities, "it holds capabilities", 0, 0},
    {gains_privileges, "it can gain privileges", 0, 0},
    {lacks_filter, "there is no filter of system calls", 0, 0},
    {makes_namespaces, "it can make namespaces", 0, 0},
    {mounts_something, "it can change mounts", 0, 0},
    {writes_outside_scratch, "it can write outside its scratch", 0, 0},
    {sees_host_files, "it can see files of the host", 0, 0},
    {holds_descriptors, "it has inherited descriptors", 0, ATTACK_PORT},
    {reaches_first_process, "it can reach the first process of its sandbox", 0, 0},
    {sees_processes, "it can see processes that are not its own", 0, 0},
    {has_network, "it has a network", 0, REACH_NETWORK},
    {makes_unreadable_program, "it can hide from the counter of processor time", 0, 0},
    {finds_secrets, "it finds what another run was given", 0, ATTACK_PORT | ATTACK_SECRETS},
    {lacks_port, "its data port is not descriptor 3 and nothing else", ATTACK_PORT, 0},
    {lacks_secret, "its secret is not where it must be", ATTACK_SECRETS, 0},
    {changes_secret, "it can change its secrets", ATTACK_SECRETS, 0},
    {lacks_listener, "it cannot connect to the listener", REACH_NETWORK, 0},
    {has_other_way_out, "it has another way out than the listener", REACH_NETWORK, 0},
    {lacks_paths, "its host paths are not where they must be", REACH_FILES, 0},
    {changes_what_it_may_read, "it can change what it may only read", REACH_FILES, 0},
    {reaches_services, "it can reach services of the host by their files", REACH_FILES, 0},
    {leaves_programs, "it can leave more than data in a path of the host", REACH_FILES, 0},
};

int attack_walls(unsigned given)
{
    for (size_t i = 0; i < AR_COUNT(walls); i++)
        if ((given & walls[i].with) == walls[i].with && !(given & walls[i].without) &&
            walls[i].got_through())
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
