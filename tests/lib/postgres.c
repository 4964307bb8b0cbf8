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
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define PATH_BYTES     128
#define START_SECONDS  60
#define POLL_MS        10
#define FIRST_DATABASE "postgres"
#define SUPERUSER      "tester"

struct postgres_server {
    char folder[PATH_BYTES]; /* holds data/, the socket and the log */
    char programs[PATH_BYTES];
    char url[POSTGRES_URL_BYTES];
    pid_t pid; /* 0: not running */
    uid_t uid;
    gid_t gid;
    unsigned databases;
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

static bool make_cluster(struct postgres_server *server)
{
    const char *const arguments[] = {
        "initdb",          "--no-sync",        "--pgdata=data",         "--auth=trust",
        "--encoding=UTF8", "--locale=C.UTF-8", "--username=" SUPERUSER, NULL};
    pid_t pid = spawn(server, "initdb", arguments);
    if (pid > 0 && wait_for(pid))
        return true;
    show_log(server);
    return false;
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
    const char *const arguments[] = {
        "postgres",           "-D", "data",          "-k", server->folder,         "-c",
        "listen_addresses=",  "-c", "fsync=off",     "-c", "full_page_writes=off", "-c",
        "max_connections=60", "-c", "lc_messages=C", NULL};
    server->pid = spawn(server, "postgres", arguments);
    if (server->pid > 0 && wait_until_up(server))
        return true;
    show_log(server);
    return false;
}

void postgres_stop_immediate(struct postgres_server *server)
{
    if (server->pid <= 0)
        return;
    (void)kill(server->pid, SIGQUIT);
    (void)wait_for(server->pid);
    server->pid = 0;
}

static void remove_folder(const struct postgres_server *server)
{
    const char *const arguments[] = {"rm", "-rf", "--", server->folder, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        (void)execv("/bin/rm", (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    if (pid > 0)
        (void)wait_for(pid);
}

struct postgres_server *postgres_start(void)
{
    struct postgres_server *server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    if (find_programs(server) && make_folder(server)) {
        (void)snprintf(server->url, sizeof(server->url),
                       "postgres:host=%s user=" SUPERUSER " dbname=" FIRST_DATABASE,
                       server->folder);
        if (make_cluster(server) && postgres_start_again(server))
            return server;
    }
    postgres_free(server);
    return NULL;
}

void postgres_free(struct postgres_server *server)
{
    if (!server)
        return;
    postgres_stop_immediate(server);
    if (server->folder[0])
        remove_folder(server);
    free(server);
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

/* ---- SQL ------------------------------------------------------------------------------------ */

char *postgres_sql(const char *url, const char *sql)
{
    PGconn *pg = PQconnectdb(url + strlen("postgres:"));
    PGresult *result = PQstatus(pg) == CONNECTION_OK ? PQexec(pg, sql) : NULL;
    ExecStatusType status = PQresultStatus(result);
    char *value = NULL;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        value = strdup(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    else
        say(sql, PQerrorMessage(pg));
    PQclear(result);
    PQfinish(pg);
    return value;
}

bool postgres_run(const char *url, const char *sql)
{
    AR_AUTO_FREE char *value = postgres_sql(url, sql);
    return value != NULL;
}

bool postgres_new_database(struct postgres_server *server, char url[POSTGRES_URL_BYTES])
{
    char sql[64];
    /* The pid keeps apart what processes that share the server make. */
    unsigned number = server->databases++;
    (void)snprintf(sql, sizeof(sql), "CREATE DATABASE test_%d_%u", (int)getpid(), number);
    (void)snprintf(url, POSTGRES_URL_BYTES, "postgres:host=%s user=" SUPERUSER " dbname=test_%d_%u",
                   server->folder, (int)getpid(), number);
    return postgres_run(server->url, sql);
}
