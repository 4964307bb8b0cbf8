/*
 * keeper.c - see keeper.h.
 *
 * The test holds the only writing end of a pipe. Numbers that come are pids of daemons, 0 is "the test
 * went well"; the end of the pipe without it means that the test has failed or was killed.
 */
#include "tests/lib/keeper.h"

#include "tests/lib/delegation.h"
#include "tests/lib/processes.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define MAX_DAEMONS 1024
#define PATH_BYTES  512
#define LOG_TAIL    24000
#define TRIES       200
#define PAUSE_MS    10

struct keeper {
    pid_t pid;
    int pipe;
    char folder[64];
    pid_t daemons[MAX_DAEMONS];
    size_t count;
};

/* ---- control groups --------------------------------------------------------------------------- */

/* Calls visit with each path below /sys/fs/cgroup in which a daemon's own group would lie: our own
 * group in each hierarchy. */
static void each_group(const struct keeper *keeper, void (*visit)(const char *path, void *context),
                       void *context)
{
    char line[512], path[PATH_BYTES];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        for (size_t i = 0; i < keeper->count; i++) {
            int n =
                snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s/auditrund.%d", controllers + 1,
                         strcmp(group, "/") ? group : "", (int)keeper->daemons[i]);
            if (n > 0 && n < (int)sizeof(path) && access(path, F_OK) == 0)
                visit(path, context);
        }
    }
    if (file)
        (void)fclose(file);
    for (size_t i = 0; i < keeper->count; i++) {
        (void)snprintf(path, sizeof(path), "auditrund.%d", (int)keeper->daemons[i]);
        AR_AUTO_FREE char *delegated = delegation_path(keeper->daemons[i], path);
        if (delegated && access(delegated, F_OK) == 0)
            visit(delegated, context);
    }
}

static void count_group(const char *path, void *context)
{
    (void)path;
    ++*(size_t *)context;
}

size_t keeper_group_count(const struct keeper *keeper)
{
    size_t count = 0;
    each_group(keeper, count_group, &count);
    return count;
}

static void kill_members(const char *path)
{
    char name[PATH_BYTES + 300];
    int pid;
    (void)snprintf(name, sizeof(name), "%s/cgroup.procs", path);
    FILE *file = fopen(name, "re");
    while (file && fscanf(file, "%d", &pid) == 1)
        (void)kill(pid, SIGKILL);
    if (file)
        (void)fclose(file);
}

static void remove_group(const char *path, void *context)
{
    char leaf[PATH_BYTES + 272];
    struct dirent *entry;
    DIR *directory = opendir(path);
    (void)context;
    while (directory && (entry = readdir(directory))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        (void)snprintf(leaf, sizeof(leaf), "%s/%s", path, entry->d_name);
        kill_members(leaf);
        (void)rmdir(leaf);
    }
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}

/* Processes that were killed need a moment to leave their groups. */
static void remove_groups(const struct keeper *keeper)
{
    for (int i = 0; i < TRIES && keeper_group_count(keeper) > 0; i++) {
        each_group(keeper, remove_group, NULL);
        (void)poll(NULL, 0, i ? PAUSE_MS : 0);
    }
    for (size_t i = 0; i < keeper->count; i++)
        delegation_remove(keeper->daemons[i]);
}

/* ---- the folder ------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

static void remove_folder(const struct keeper *keeper)
{
    (void)nftw(keeper->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void show_log(const struct keeper *keeper)
{
    char path[PATH_BYTES], text[LOG_TAIL];
    (void)snprintf(path, sizeof(path), "%s/daemon.log", keeper->folder);
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (size <= 0)
        return;
    ssize_t n = pread(fd, text, sizeof(text), size > LOG_TAIL ? size - LOG_TAIL : 0);
    (void)fprintf(stderr, "---- the daemon's log\n%.*s----\n", n > 0 ? (int)n : 0, text);
}

/* ---- the process ------------------------------------------------------------------------------ */

static void wait_until_gone(pid_t pid)
{
    for (int i = 0; i < TRIES && processes_runs(pid); i++)
        (void)poll(NULL, 0, PAUSE_MS);
}

static void keep(struct keeper *keeper, int pipe)
{
    pid_t pid;
    while (read(pipe, &pid, sizeof(pid)) == (ssize_t)sizeof(pid)) {
        if (pid == 0)
            _exit(0);
        if (keeper->count < MAX_DAEMONS)
            keeper->daemons[keeper->count++] = pid;
    }
    for (size_t i = 0; i < keeper->count; i++)
        wait_until_gone(keeper->daemons[i]);
    show_log(keeper);
    remove_groups(keeper);
    remove_folder(keeper);
    _exit(0);
}

static void become_keeper(struct keeper *keeper, const int ends[2])
{
    (void)setsid(); /* Check kills the group of a test that has failed */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)close(ends[1]);
    keep(keeper, ends[0]);
}

struct keeper *keeper_start(const char *folder)
{
    int ends[2];
    struct keeper *keeper = calloc(1, sizeof(*keeper));
    ck_assert_ptr_nonnull(keeper);
    (void)snprintf(keeper->folder, sizeof(keeper->folder), "%s", folder);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    keeper->pid = fork();
    if (keeper->pid == 0)
        become_keeper(keeper, ends);
    ck_assert_int_gt(keeper->pid, 0);
    (void)close(ends[0]);
    keeper->pipe = ends[1];
    return keeper;
}

static void tell(const struct keeper *keeper, pid_t pid)
{
    ck_assert_int_eq(write(keeper->pipe, &pid, sizeof(pid)), (ssize_t)sizeof(pid));
}

void keeper_watch(struct keeper *keeper, pid_t pid)
{
    ck_assert_uint_lt(keeper->count, MAX_DAEMONS);
    keeper->daemons[keeper->count++] = pid;
    tell(keeper, pid);
}

void keeper_end(struct keeper *keeper)
{
    remove_groups(keeper);
    remove_folder(keeper);
    tell(keeper, 0);
    (void)close(keeper->pipe);
    (void)waitpid(keeper->pid, NULL, 0);
    free(keeper);
}

char *keeper_program_of(pid_t pid)
{
    char path[64], target[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0)
        return NULL;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    return strdup(slash ? slash + 1 : target);
}
