/*
 * cgroup.c - a control group for each slot, v1 hierarchies.
 *
 * Layout, below the daemon's own group in each hierarchy: auditrund.PID/slot.N. The pid in the name
 * lets the next start tell what a killed daemon left behind from what another daemon is using.
 * (Files: Documentation/admin-guide/cgroup-v1/memory.rst and pids.rst of the kernel.)
 */
#include "daemon/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CGROUP_PATH_BYTES 512
#define CGROUP_PREFIX     "auditrund."
/* How long the start waits for the processes of a killed daemon to end, and the end for its own. */
#define CGROUP_STALE_TRIES    200
#define CGROUP_STALE_PAUSE_MS 5
/* Launcher and first process of the sandbox are in the leaf too. */
#define CGROUP_OWN_PROCESSES 4

enum controller { CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_COUNT };
static const char *const controller_names[] = {"memory", "pids"};

struct cgroup_root {
    char path[CONTROLLER_COUNT][CGROUP_PATH_BYTES]; /* of auditrund.PID */
    struct limits offers;
};

struct cgroup {
    int fd[CONTROLLER_COUNT]; /* the leaf's folders */
    char path[CONTROLLER_COUNT][CGROUP_PATH_BYTES];
    int64_t kills; /* oom_kill when the run began */
    int64_t limit[CONTROLLER_COUNT];
};

/* ---- files ------------------------------------------------------------------------------------ */

static int write_number(int directory, const char *name, int64_t value)
{
    char text[24];
    AR_AUTO_CLOSE int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int n = snprintf(text, sizeof text, "%lld", (long long)value);
    return write(fd, text, (size_t)n) == n ? 0 : -errno;
}

/* The number behind key in a small file, or the whole file's number when key is "". -1: not there. */
static int64_t read_number(int directory, const char *name, const char *key)
{
    char text[256];
    AR_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return -1;
    text[n] = 0;
    const char *found = strstr(text, key);
    return found ? strtoll(found + strlen(key), NULL, 10) : -1;
}

/* Calls visit for each process in a group. */
static void each_process(int directory, void (*visit)(void *context, pid_t pid), void *context)
{
    int pid;
    int fd = openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file) {
        base_close(&fd);
        return;
    }
    while (fscanf(file, "%d", &pid) == 1)
        visit(context, pid);
    (void)fclose(file);
}

/* ---- finding the hierarchies ------------------------------------------------------------------ */

/* Is word one of the comma-separated items of list? */
static bool has_item(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += length)
        if ((p == list || p[-1] == ',') && (p[length] == ',' || p[length] == 0))
            return true;
    return false;
}

/* The daemon's own group in the v1 hierarchy of a controller (proc_pid_cgroup(5)). */
static bool find_own_group(const char *controller, char *path, size_t room)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        found = has_item(list + 1, controller) &&
                snprintf(path, room, "%s", strcmp(group, "/") ? group : "") < (int)room;
    }
    if (file)
        (void)fclose(file);
    return found;
}

/* Where the v1 hierarchy of a controller is mounted (proc_pid_mountinfo(5)). */
static bool find_mount(const char *controller, char *path, size_t room)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char root[256], point[256], options[256];
        line[strcspn(line, "\n")] = 0;
        char *tail = strstr(line, " - cgroup ");
        if (!tail || sscanf(line, "%*d %*d %*s %255s %255s", root, point) != 2 ||
            sscanf(tail, " - cgroup %*s %255s", options) != 1)
            continue;
        found = has_item(options, controller) && strcmp(root, "/") == 0 &&
                snprintf(path, room, "%s", point) < (int)room;
    }
    if (file)
        (void)fclose(file);
    return found;
}

/* ---- what killed daemons left ----------------------------------------------------------------- */

static void kill_process(void *context, pid_t pid)
{
    (void)context;
    (void)kill(pid, SIGKILL);
}

/* At the daemon's start and end only, which wait a little for what they have killed: a group can be
 * removed when its last process has ended. */
static void remove_group(int parent, const char *name)
{
    AR_AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < CGROUP_STALE_TRIES; i++) {
        each_process(fd, kill_process, NULL);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        (void)poll(NULL, 0, CGROUP_STALE_PAUSE_MS);
    }
}

static void remove_daemon_group(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    if (!directory) {
        base_close(&fd);
        return;
    }
    while ((entry = readdir(directory)))
        if (strncmp(entry->d_name, "slot.", 5) == 0)
            remove_group(dirfd(directory), entry->d_name);
    (void)closedir(directory);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Groups of daemons that are no more: their processes are killed, their folders taken away. */
static void remove_stale(const char *own)
{
    int fd = open(*own ? own : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    if (!directory) {
        base_close(&fd);
        return;
    }
    while ((entry = readdir(directory))) {
        if (strncmp(entry->d_name, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) != 0)
            continue;
        long pid = strtol(entry->d_name + strlen(CGROUP_PREFIX), NULL, 10);
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            remove_daemon_group(dirfd(directory), entry->d_name);
    }
    (void)closedir(directory);
}

/* ---- the daemon's group ----------------------------------------------------------------------- */

static bool open_controller(struct cgroup_root *root, enum controller controller)
{
    char mount[256], own[256], base[CGROUP_PATH_BYTES];
    char *path = root->path[controller];
    if (!find_mount(controller_names[controller], mount, sizeof mount) ||
        !find_own_group(controller_names[controller], own, sizeof own) ||
        snprintf(base, sizeof base, "%s%s", mount, own) >= (int)sizeof base)
        return false;
    remove_stale(base);
    if (snprintf(path, CGROUP_PATH_BYTES, "%s/%s%ld", base, CGROUP_PREFIX, (long)getpid()) >=
        CGROUP_PATH_BYTES)
        return false;
    return mkdir(path, 0755) == 0 || errno == EEXIST;
}

int cgroup_root_open(struct cgroup_root **out)
{
    struct cgroup_root *root = calloc(1, sizeof *root);
    struct cgroup *trial = NULL;
    if (!root)
        return -ENOMEM;
    for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
        if (open_controller(root, i))
            continue;
        root->path[i][0] = 0;
        cgroup_root_free(root);
        return 1;
    }
    root->offers.has[LIMIT_MEMORY_BYTES] = root->offers.has[LIMIT_PROCESSES] = true;
    root->offers.value[LIMIT_MEMORY_BYTES] = INT64_C(1) << 40;
    root->offers.value[LIMIT_PROCESSES] = 32768;
    struct limits limits = {.has[LIMIT_MEMORY_BYTES] = true,
                            .has[LIMIT_PROCESSES] = true,
                            .value[LIMIT_MEMORY_BYTES] = 1 << 26,
                            .value[LIMIT_PROCESSES] = 16};
    /* Offered only what was just done: a leaf with both limits. */
    int rc = cgroup_new(root, 0, &trial);
    if (rc == 0)
        rc = cgroup_begin(trial, &limits);
    cgroup_free(trial);
    if (rc < 0) {
        cgroup_root_free(root);
        return 1;
    }
    *out = root;
    return 0;
}

void cgroup_root_free(struct cgroup_root *root)
{
    if (!root)
        return;
    for (enum controller i = 0; i < CONTROLLER_COUNT; i++)
        if (root->path[i][0]) /* with leaves whose last process was still ending */
            remove_daemon_group(AT_FDCWD, root->path[i]);
    free(root);
}

const struct limits *cgroup_root_offers(const struct cgroup_root *root)
{
    static const struct limits none;
    return root ? &root->offers : &none;
}

/* ---- a leaf ----------------------------------------------------------------------------------- */

int cgroup_new(struct cgroup_root *root, int slot, struct cgroup **out)
{
    *out = NULL;
    if (!root)
        return 0;
    struct cgroup *cgroup = calloc(1, sizeof *cgroup);
    if (!cgroup)
        return -ENOMEM;
    *cgroup = (struct cgroup){.fd = {-1, -1}, .limit = {-1, -1}};
    for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
        int n = snprintf(cgroup->path[i], CGROUP_PATH_BYTES, "%s/slot.%d", root->path[i], slot);
        int rc = n < CGROUP_PATH_BYTES ? 0 : -ENAMETOOLONG;
        if (rc == 0 && mkdir(cgroup->path[i], 0755) != 0 && errno != EEXIST)
            rc = -errno;
        cgroup->fd[i] = rc == 0 ? open(cgroup->path[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (rc == 0 && cgroup->fd[i] < 0)
            rc = -errno;
        if (rc < 0) {
            cgroup_free(cgroup);
            return rc;
        }
    }
    *out = cgroup;
    return 0;
}

void cgroup_free(struct cgroup *cgroup)
{
    if (!cgroup)
        return;
    (void)cgroup_kill(cgroup, 0);
    for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
        base_close(&cgroup->fd[i]);
        (void)rmdir(cgroup->path[i]);
    }
    free(cgroup);
}

int cgroup_attach(struct cgroup *cgroup, pid_t pid)
{
    int rc = 0;
    for (enum controller i = 0; cgroup && rc == 0 && i < CONTROLLER_COUNT; i++)
        rc = write_number(cgroup->fd[i], "cgroup.procs", pid);
    return rc;
}

/* Writing a limit costs more than remembering it. */
static int set_limit(struct cgroup *cgroup, enum controller controller, const char *file,
                     int64_t value)
{
    if (cgroup->limit[controller] == value)
        return 0;
    int rc = write_number(cgroup->fd[controller], file, value);
    cgroup->limit[controller] = rc == 0 ? value : -1;
    return rc;
}

int cgroup_begin(struct cgroup *cgroup, const struct limits *limits)
{
    if (!cgroup)
        return 0;
    int rc = 0;
    if (limits->has[LIMIT_MEMORY_BYTES])
        rc = set_limit(cgroup, CONTROLLER_MEMORY, "memory.limit_in_bytes",
                       limits->value[LIMIT_MEMORY_BYTES]);
    if (rc == 0 && limits->has[LIMIT_PROCESSES])
        rc = set_limit(cgroup, CONTROLLER_PIDS, "pids.max",
                       limits->value[LIMIT_PROCESSES] + CGROUP_OWN_PROCESSES);
    if (rc == 0)
        rc = write_number(cgroup->fd[CONTROLLER_MEMORY], "memory.max_usage_in_bytes", 0);
    cgroup->kills = read_number(cgroup->fd[CONTROLLER_MEMORY], "memory.oom_control", "oom_kill ");
    return rc;
}

void cgroup_findings(struct cgroup *cgroup, struct cgroup_findings *out)
{
    *out = (struct cgroup_findings){.memory_peak_bytes = -1};
    if (!cgroup)
        return;
    int directory = cgroup->fd[CONTROLLER_MEMORY];
    out->memory_exceeded =
        read_number(directory, "memory.oom_control", "oom_kill ") > cgroup->kills;
    out->memory_peak_bytes = read_number(directory, "memory.max_usage_in_bytes", "");
}

struct killing {
    pid_t spare;
    size_t found;
};

static void kill_other(void *context, pid_t pid)
{
    struct killing *killing = context;
    if (pid == killing->spare)
        return;
    killing->found++;
    (void)kill(pid, SIGKILL);
}

size_t cgroup_kill(struct cgroup *cgroup, pid_t spare)
{
    struct killing killing = {.spare = spare};
    if (cgroup && cgroup->fd[CONTROLLER_PIDS] >= 0)
        each_process(cgroup->fd[CONTROLLER_PIDS], kill_other, &killing);
    return killing.found;
}
