/*
 * postgres.c - see postgres.h. The server is a child of the test itself, not of pg_ctl, so that its
 * pid is known for certain and PR_SET_PDEATHSIG can tie its life to the test's.
 */
#include "tests/lib/postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define PATH_BYTES     96
#define START_SECONDS  60
#define START_TRIES    200
#define POLL_MS        10
#define FIRST_DATABASE "postgres"
#define FIRST_PORT     5432

struct postgres_server {
    char folder[PATH_BYTES]; /* holds data/, the socket and the log */
    char programs[PATH_BYTES];
    char url[POSTGRES_URL_BYTES];
    pid_t pid; /* 0: not running */
    uid_t uid;
    gid_t gid;
    int port;
    bool tcp, has_disk;
    bool killed; /* the last postmaster, whose backends may be there still */
};

static void say(const char *what, const char *why)
{
    (void)fprintf(stderr, "test server: %s: %s\n", what, why);
}

/* ---- programs ------------------------------------------------------------------------------- */

static bool has_server(const char *folder)
{
    char path[PATH_BYTES + 16];
    (void)snprintf(path, sizeof(path), "%s/postgres", folder);
    return access(path, X_OK) == 0;
}

static void use_newest(const char *pattern, struct postgres_server *server)
{
    glob_t found;
    int best = 0;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int version = 0;
        (void)sscanf(found.gl_pathv[i], "/usr/lib/postgresql/%d/", &version);
        if (version < best || !has_server(found.gl_pathv[i]))
            continue;
        best = version;
        (void)snprintf(server->programs, sizeof(server->programs), "%s", found.gl_pathv[i]);
    }
    globfree(&found);
}

/* For systems with another layout than Debian's. */
static void use_path(struct postgres_server *server)
{
    const char *given = getenv("PATH");
    AR_AUTO_FREE char *path = given ? strdup(given) : NULL;
    char *rest = path;
    char *folder;
    while (rest && (folder = strsep(&rest, ":")))
        if (!server->programs[0] && has_server(folder))
            (void)snprintf(server->programs, sizeof(server->programs), "%s", folder);
}

static bool find_programs(struct postgres_server *server)
{
    use_newest("/usr/lib/postgresql/*/bin", server);
    if (!server->programs[0])
        use_path(server);
    if (!server->programs[0])
        say("PostgreSQL is missing", "apt-get install postgresql");
    return server->programs[0] != '\0';
}

/* ---- processes ------------------------------------------------------------------------------ */

static void become_server(const struct postgres_server *server)
{
    char log[PATH_BYTES + 16];
    (void)snprintf(log, sizeof(log), "%s/log", server->folder);
    if (getuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(server->gid) != 0 || setuid(server->uid) != 0))
        _exit(126);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 ||
        chdir(server->folder) != 0)
        _exit(126);
}

/* Starts a program of the server; it is told to stop when the test dies. */
static pid_t spawn(const struct postgres_server *server, const char *name,
                   const char *const *arguments)
{
    char path[PATH_BYTES + 16];
    pid_t parent = getpid();
    (void)snprintf(path, sizeof(path), "%s/%s", server->programs, name);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    become_server(server);
    if (prctl(PR_SET_PDEATHSIG, SIGQUIT) != 0 || getppid() != parent)
        _exit(126);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execv(path, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static bool wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void show_log(const struct postgres_server *server)
{
    char path[PATH_BYTES + 16], line[512];
    (void)snprintf(path, sizeof(path), "%s/log", server->folder);
    FILE *log = fopen(path, "re");
    while (log && fgets(line, sizeof(line), log))
        (void)fputs(line, stderr);
    if (log)
        (void)fclose(log);
}

/* ---- the cluster ---------------------------------------------------------------------------- */

static bool make_folder(struct postgres_server *server)
{
    const struct passwd *user = getuid() == 0 ? getpwnam("postgres") : NULL;
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    if (getuid() == 0 && !user) {
        say("cannot start as root", "there is no user postgres");
        return false;
    }
    (void)snprintf(server->folder, sizeof(server->folder), "%s/auditrun-pg-XXXXXX", base);
    if (!mkdtemp(server->folder)) {
        say(server->folder, strerror(errno));
        server->folder[0] = '\0';
        return false;
    }
    if (!user)
        return true;
    server->uid = user->pw_uid;
    server->gid = user->pw_gid;
    return chown(server->folder, user->pw_uid, user->pw_gid) == 0;
}

static bool run(const struct postgres_server *server, const char *name,
                const char *const *arguments)
{
    pid_t pid = spawn(server, name, arguments);
    if (pid > 0 && wait_for(pid))
        return true;
    show_log(server);
    return false;
}

static bool make_cluster(struct postgres_server *server)
{
    const char *const arguments[] = {"initdb",
                                     "--no-sync",
                                     "--pgdata=data",
                                     "--auth=trust",
                                     "--encoding=UTF8",
                                     "--locale=C.UTF-8",
                                     "--username=" POSTGRES_SUPERUSER,
                                     server->has_disk ? "--wal-segsize=1" : NULL,
                                     NULL};
    return run(server, "initdb", arguments);
}

/* Adds lines to a file of the cluster, or writes it anew. */
static bool write_file(const struct postgres_server *server, const char *name, const char *text,
                       bool anew)
{
    char path[POSTGRES_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/data/%s", server->folder, name);
    FILE *file = fopen(path, anew ? "we" : "ae");
    if (!file) {
        say(path, strerror(errno));
        return false;
    }
    bool written = fprintf(file, "%s\n", text) > 0;
    return fclose(file) == 0 && written;
}

static bool configure(const struct postgres_server *server, const struct postgres_options *options)
{
    if (options->settings && !write_file(server, "postgresql.conf", options->settings, false))
        return false;
    return !options->hba || (write_file(server, "pg_hba.conf", "local all all trust", true) &&
                             write_file(server, "pg_hba.conf", options->hba, false));
}

/* A port that nobody has now. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return 0;
    return ntohs(address.sin_port);
}

static bool is_up(const struct postgres_server *server)
{
    return PQping(postgres_conninfo(server)) == PQPING_OK;
}

static bool wait_until_up(struct postgres_server *server)
{
    struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    for (int waited = 0; waited < START_SECONDS * 1000; waited += POLL_MS) {
        int status;
        if (is_up(server))
            return true;
        if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
            server->pid = 0;
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

bool postgres_start_again(struct postgres_server *server)
{
    char port[16];
    const char *const arguments[] = {"postgres",
                                     "-D",
                                     "data",
                                     "-k",
                                     server->folder,
                                     "-c",
                                     server->tcp ? "listen_addresses=127.0.0.1"
                                                 : "listen_addresses=",
                                     "-p",
                                     port,
                                     "-c",
                                     "fsync=off",
                                     "-c",
                                     "full_page_writes=off",
                                     "-c",
                                     "jit=off", /* compiling takes longer than our few rows */
                                     "-c",
                                     "max_connections=60",
                                     "-c",
                                     "lc_messages=C",
                                     NULL};
    (void)snprintf(port, sizeof(port), "%d", server->port);
    for (int try = 0; try < (server->killed ? START_TRIES : 1); try++) {
        server->pid = spawn(server, "postgres", arguments);
        if (server->pid > 0 && wait_until_up(server)) {
            server->killed = false;
            return true;
        }
    }
    show_log(server);
    return false;
}

static void end(struct postgres_server *server, int number)
{
    if (server->pid <= 0)
        return;
    (void)kill(server->pid, number);
    (void)wait_for(server->pid);
    server->pid = 0;
}

void postgres_stop_immediate(struct postgres_server *server)
{
    end(server, SIGQUIT);
}

void postgres_kill(struct postgres_server *server)
{
    end(server, SIGKILL);
    server->killed = true;
}

static void remove_tree(const char *path)
{
    const char *const arguments[] = {"rm", "-rf", "--", path, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(2); /* a disk that is mounted there cannot go, only what is on it */
        (void)execv("/bin/rm", (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    if (pid > 0)
        (void)wait_for(pid);
}

/* ---- a disk of its own ---------------------------------------------------------------------- */

/* Mounts of this process alone, which go with it in any case. */
static bool make_mounts_private(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

bool postgres_has_disks(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(make_mounts_private() ? 0 : 1);
    return pid > 0 && wait_for(pid);
}

static bool make_disk(struct postgres_server *server, size_t bytes)
{
    char path[POSTGRES_PATH_BYTES], how[96];
    if (bytes == 0)
        return true;
    (void)snprintf(path, sizeof(path), "%s/data", server->folder);
    (void)snprintf(how, sizeof(how), "size=%zu,mode=0700,uid=%u,gid=%u", bytes,
                   (unsigned)server->uid, (unsigned)server->gid);
    if (mkdir(path, 0700) != 0 || !make_mounts_private() ||
        mount("auditrun-test", path, "tmpfs", MS_NOSUID | MS_NODEV, how) != 0) {
        say("cannot make a disk", strerror(errno));
        return false;
    }
    server->has_disk = true;
    return true;
}

static void name_ballast(const struct postgres_server *server, char path[POSTGRES_PATH_BYTES])
{
    (void)snprintf(path, POSTGRES_PATH_BYTES, "%s/data/ballast", server->folder);
}

bool postgres_fill_disk(struct postgres_server *server)
{
    static const char block[4096];
    char path[POSTGRES_PATH_BYTES];
    name_ballast(server, path);
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || !server->has_disk)
        return false;
    while (write(fd, block, sizeof(block)) > 0)
        ;
    return errno == ENOSPC;
}

void postgres_free_disk(struct postgres_server *server)
{
    char path[POSTGRES_PATH_BYTES];
    name_ballast(server, path);
    (void)unlink(path);
}

static void remove_disk(const struct postgres_server *server)
{
    char path[POSTGRES_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/data", server->folder);
    if (server->has_disk && umount2(path, MNT_DETACH) != 0)
        say(path, strerror(errno));
}

/* ---- begin and end -------------------------------------------------------------------------- */

static struct postgres_server *make_server(bool tcp)
{
    struct postgres_server *server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    server->tcp = tcp;
    server->port = tcp ? free_port() : FIRST_PORT;
    if (server->port > 0 && find_programs(server) && make_folder(server)) {
        (void)snprintf(server->url, sizeof(server->url),
                       "postgres:host=%s port=%d user=" POSTGRES_SUPERUSER
                       " dbname=" FIRST_DATABASE,
                       server->folder, server->port);
        return server;
    }
    postgres_free(server);
    return NULL;
}

struct postgres_server *postgres_start_with(const struct postgres_options *options)
{
    struct postgres_server *server = make_server(options->tcp);
    if (server && make_disk(server, options->disk_bytes) && make_cluster(server) &&
        configure(server, options) && postgres_start_again(server))
        return server;
    postgres_free(server);
    return NULL;
}

struct postgres_server *postgres_start(void)
{
    const struct postgres_options none = {.tcp = false};
    return postgres_start_with(&none);
}

void postgres_free(struct postgres_server *server)
{
    if (!server)
        return;
    postgres_stop_immediate(server);
    remove_disk(server);
    if (server->folder[0])
        remove_tree(server->folder);
    free(server);
}

/* ---- standbys ------------------------------------------------------------------------------- */

static bool copy_primary(const struct postgres_server *server,
                         const struct postgres_server *primary, const char *name)
{
    char from[POSTGRES_URL_BYTES];
    const char *const arguments[] = {"pg_basebackup",
                                     "--pgdata=data",
                                     "--write-recovery-conf",
                                     "--wal-method=stream",
                                     "--checkpoint=fast",
                                     "--no-sync",
                                     "--dbname",
                                     from,
                                     NULL};
    (void)snprintf(from, sizeof(from),
                   "host=%s port=%d user=" POSTGRES_SUPERUSER " application_name=%s",
                   primary->folder, primary->port, name);
    return run(server, "pg_basebackup", arguments);
}

struct postgres_server *postgres_start_standby(const struct postgres_server *primary,
                                               const char *name)
{
    struct postgres_server *server = make_server(primary->tcp);
    if (server && copy_primary(server, primary, name) && postgres_start_again(server))
        return server;
    postgres_free(server);
    return NULL;
}

bool postgres_follow(struct postgres_server *server, const struct postgres_server *primary,
                     const char *name)
{
    char path[POSTGRES_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/data", server->folder);
    remove_tree(path);
    return server->pid == 0 && copy_primary(server, primary, name) && postgres_start_again(server);
}

/* A question that waits on a standby is in the way of what it replays, and is cancelled for it: hence
 * many short ones. */
bool postgres_promote(struct postgres_server *server)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    bool asked = false;
    for (int waited = 0; waited < START_SECONDS * 1000; waited += POLL_MS) {
        asked = asked || postgres_run(server->url, "SELECT pg_promote(false)");
        AR_AUTO_FREE char *done = postgres_sql(server->url, "SELECT NOT pg_is_in_recovery()");
        if (done && strcmp(done, "t") == 0)
            return true;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

const char *postgres_url(const struct postgres_server *server)
{
    return server->url;
}

const char *postgres_conninfo(const struct postgres_server *server)
{
    return server->url + strlen("postgres:");
}

pid_t postgres_pid(const struct postgres_server *server)
{
    return server->pid;
}

const char *postgres_folder(const struct postgres_server *server)
{
    return server->folder;
}

void postgres_socket(const struct postgres_server *server, char path[POSTGRES_PATH_BYTES])
{
    (void)snprintf(path, POSTGRES_PATH_BYTES, "%s/.s.PGSQL.%d", server->folder, server->port);
}

int postgres_port(const struct postgres_server *server)
{
    return server->port;
}

/* ---- backups -------------------------------------------------------------------------------- */

bool postgres_dump(const struct postgres_server *server, const char *url)
{
    const char *const arguments[] = {"pg_dump",  "--format=custom",         "--file=dump",
                                     "--dbname", url + strlen("postgres:"), NULL};
    return run(server, "pg_dump", arguments);
}

bool postgres_restore(const struct postgres_server *server, const char *url)
{
    const char *name = strstr(url, "dbname=");
    char into[POSTGRES_URL_BYTES], drop[128], rename[128];
    const char *const arguments[] = {"pg_restore", "--exit-on-error", "--dbname", into, "dump",
                                     NULL};
    if (!name)
        return false;
    name += strlen("dbname=");
    (void)snprintf(drop, sizeof(drop), "DROP DATABASE %s WITH (FORCE)", name);
    (void)snprintf(rename, sizeof(rename), "ALTER DATABASE restored RENAME TO %s", name);
    (void)snprintf(into, sizeof(into),
                   "host=%s port=%d user=" POSTGRES_SUPERUSER " dbname=restored", server->folder,
                   server->port);
    return postgres_run(server->url, "CREATE DATABASE restored") &&
           run(server, "pg_restore", arguments) && postgres_run(server->url, drop) &&
           postgres_run(server->url, rename);
}
