/*
 * host.c - see host.h. Everything is read from /proc, /sys and the folders that anybody may write to;
 * what goes away while it is looked at is not there.
 */
#include "tests/lib/host.h"

#include "tests/lib/hostile.h"
#include "tests/lib/keeper.h"

#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define GIVEN_MS       2000
#define CLOCK_SLACK_S  2
#define MAX_DEPTH      4 /* of folders that are searched for files by name */
#define MAX_NAMESPACES 256
#define EXECUTOR       "auditrun-executor-namespace"
#define EXECUTOR_NAME  "auditrun-execut" /* as much of it as a process's name holds */

/* ---- looking ---------------------------------------------------------------------------------- */

static void look_at_lines(struct text_list *lines, const char *path, const char *kind,
                          void (*take)(struct text_list *lines, const char *kind, char *line))
{
    AR_AUTO_FREE char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &room, file) > 0)
        take(lines, kind, line);
    if (file)
        (void)fclose(file);
}

/* Place, kind and source; neither the number nor the options, which differ between looks. */
static void take_mount(struct text_list *lines, const char *kind, char *line)
{
    char place[512], type[64], source[512];
    const char *rest = strstr(line, " - ");
    if (rest && sscanf(line, "%*s %*s %*s %*s %511s", place) == 1 &&
        sscanf(rest, " - %63s %511s", type, source) == 2)
        hostile_tell(lines, "%s %s %s %s", kind, place, type, source);
}

/* Number and owner of what a line of /proc/sysvipc is about; the heading has no number. */
static void take_ipc(struct text_list *lines, const char *kind, char *line)
{
    enum { ID = 1, SEM_OWNER = 4, OWNER = 7, FIELDS };
    const char *fields[FIELDS] = {0};
    char *rest = line;
    for (size_t i = 0; i < FIELDS && rest; i++) {
        rest += strspn(rest, " ");
        fields[i] = strsep(&rest, " \n");
    }
    const char *text = fields[strcmp(kind, "sem") == 0 ? SEM_OWNER : OWNER];
    if (!text || !isdigit((unsigned char)*text))
        return;
    uid_t owner = (uid_t)strtoul(text, NULL, 10);
    if (!getpwuid(owner) || owner == geteuid())
        hostile_tell(lines, "%s %s of %u", kind, fields[ID], owner);
}

static void look_at_folder(struct text_list *lines, const char *folder, const char *pattern)
{
    struct dirent *entry;
    DIR *directory = opendir(folder);
    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.' && fnmatch(pattern, entry->d_name, 0) == 0)
            hostile_tell(lines, "file %s/%s", folder, entry->d_name);
    if (directory)
        (void)closedir(directory);
}

static bool is_left_by_name(const char *name)
{
    return fnmatch("hostile-left-*", name, 0) == 0 || fnmatch("hostile-link-*", name, 0) == 0;
}

static void look_at_tree(struct text_list *lines, const char *folder)
{
    char *const paths[] = {(char *)(uintptr_t)folder, NULL};
    FTSENT *entry;
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT | FTS_XDEV, NULL);
    while (tree && (entry = fts_read(tree))) {
        if (entry->fts_info != FTS_DP && is_left_by_name(entry->fts_name))
            hostile_tell(lines, "file %s", entry->fts_path);
        if (entry->fts_level >= MAX_DEPTH)
            (void)fts_set(tree, entry, FTS_SKIP);
    }
    if (tree)
        (void)fts_close(tree);
}

static void look_at_files(struct text_list *lines)
{
    static const char *const trees[] = {"/tmp", "/var/tmp", "/dev/shm"};
    static const char *const folders[][2] = {
        {"/", "core*"},      {"/tmp", "core*"},         {"/var/crash", "*"},
        {"/", "hostile-*"},  {"/usr", "hostile-left*"}, {"/etc", "hostile-left*"},
        {"/dev/mqueue", "*"}};
    for (size_t i = 0; i < AR_COUNT(trees); i++)
        look_at_tree(lines, trees[i]);
    for (size_t i = 0; i < AR_COUNT(folders); i++)
        look_at_folder(lines, folders[i][0], folders[i][1]);
}

static long long clock_offset(void)
{
    struct timespec real, monotonic;
    (void)clock_gettime(CLOCK_REALTIME, &real);
    (void)clock_gettime(CLOCK_MONOTONIC, &monotonic);
    return (long long)real.tv_sec - monotonic.tv_sec;
}

struct text_list host_look(void)
{
    struct text_list lines = {0};
    char name[256] = "";
    (void)gethostname(name, sizeof(name) - 1);
    hostile_tell(&lines, "%lld", clock_offset()); /* the first one */
    hostile_tell(&lines, "name %s", name);
    look_at_lines(&lines, "/proc/self/mountinfo", "mount", take_mount);
    look_at_lines(&lines, "/proc/sysvipc/shm", "shm", take_ipc);
    look_at_lines(&lines, "/proc/sysvipc/msg", "msg", take_ipc);
    look_at_lines(&lines, "/proc/sysvipc/sem", "sem", take_ipc);
    look_at_files(&lines);
    return lines;
}

/* ---- comparing -------------------------------------------------------------------------------- */

struct comparison {
    const struct text_list *before;
    struct text_list more;
};

static size_t count_of(const struct text_list *lines, const char *line)
{
    size_t count = 0;
    for (size_t i = 1; i < lines->count; i++)
        count += strcmp(lines->items[i], line) == 0;
    return count;
}

static bool nothing_is_more(void *context)
{
    struct comparison *comparison = context;
    struct text_list now = host_look();
    text_list_free(&comparison->more);
    for (size_t i = 1; i < now.count; i++)
        if (count_of(&now, now.items[i]) > count_of(comparison->before, now.items[i]))
            hostile_tell(&comparison->more, "left on the host: %s", now.items[i]);
    text_list_free(&now);
    return comparison->more.count == 0;
}

static void take_over(struct text_list *from, struct text_list *wrong)
{
    for (size_t i = 0; i < from->count; i++)
        hostile_tell(wrong, "%s", from->items[i]);
    text_list_free(from);
}

void host_compare(const struct text_list *before, struct text_list *wrong)
{
    struct comparison comparison = {.before = before};
    long long moved = clock_offset() - strtoll(before->items[0], NULL, 10);
    if (moved > CLOCK_SLACK_S || moved < -CLOCK_SLACK_S)
        hostile_tell(wrong, "the host's clock was set by %lld s", moved);
    (void)!processes_wait(nothing_is_more, &comparison, GIVEN_MS);
    take_over(&comparison.more, wrong);
}

/* ---- a daemon without runs -------------------------------------------------------------------- */

struct idle {
    const struct daemon *daemon;
    size_t slots;
    struct text_list wrong;
    struct processes below;
    char group[64]; /* the name of its control group */
    size_t leaves;  /* in the hierarchy that is walked */
};

bool host_has_name(pid_t pid, const char *name)
{
    char path[64], text[32] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file) {
        (void)!fgets(text, sizeof(text), file);
        (void)fclose(file);
    }
    text[strcspn(text, "\n")] = '\0';
    return strncmp(text, name, 15) == 0;
}

static bool is_of_the_executor(pid_t pid)
{
    AR_AUTO_FREE char *program = keeper_program_of(pid);
    return program ? strcmp(program, EXECUTOR) == 0 : host_has_name(pid, EXECUTOR_NAME);
}

static void judge_processes(struct idle *idle)
{
    const pid_t own = daemon_pid(idle->daemon);
    size_t providers = 0, ahead = 0;
    idle->below = processes_below(own);
    for (size_t i = 0; i < idle->below.count; i++) {
        const struct process *process = &idle->below.items[i];
        AR_AUTO_FREE char *program = keeper_program_of(process->pid);
        if (!is_of_the_executor(process->pid))
            hostile_tell(&idle->wrong, "process %d (%s) is left", (int)process->pid,
                         program ? program : "gone");
        providers += process->parent == own;
        ahead += process->parent != own;
    }
    if (providers > idle->slots || ahead > providers)
        hostile_tell(&idle->wrong, "%zu providers with %zu processes below them, for %zu slots",
                     providers, ahead, idle->slots);
}

static void judge_members(struct idle *idle, const char *path)
{
    char name[PATH_MAX];
    int pid;
    (void)snprintf(name, sizeof(name), "%s/cgroup.procs", path);
    FILE *file = fopen(name, "re");
    while (file && fscanf(file, "%d", &pid) == 1)
        if (pid != daemon_pid(idle->daemon) && processes_runs(pid) &&
            !processes_has(&idle->below, pid))
            hostile_tell(&idle->wrong, "process %d is left in %s", pid, path);
    if (file)
        (void)fclose(file);
}

/* Folders below the daemon's own group are its leaves, and folders below these should not be. */
static void judge_group(struct idle *idle, const char *path)
{
    const char *inside = strstr(path, idle->group);
    if (!inside)
        return;
    inside += strlen(idle->group);
    if (*inside != '\0' && *inside != '/')
        return;
    judge_members(idle, path);
    if (*inside == '/' && strchr(inside + 1, '/'))
        hostile_tell(&idle->wrong, "control group %s is left", path);
    idle->leaves += *inside == '/' && strcmp(inside, "/supervisor") != 0;
}

static void judge_groups(struct idle *idle)
{
    char *const paths[] = {(char *)(uintptr_t) "/sys/fs/cgroup", NULL};
    FTSENT *entry;
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    (void)snprintf(idle->group, sizeof(idle->group), "/auditrund.%d",
                   (int)daemon_pid(idle->daemon));
    while (tree && (entry = fts_read(tree))) {
        if (entry->fts_level <= 1)
            idle->leaves = 0; /* another hierarchy */
        if (entry->fts_info == FTS_D)
            judge_group(idle, entry->fts_path);
        if (entry->fts_info == FTS_D && idle->leaves > idle->slots)
            hostile_tell(&idle->wrong, "%s is one control group too many for %zu slots",
                         entry->fts_path, idle->slots);
    }
    if (tree)
        (void)fts_close(tree);
}

static bool is_idle(void *context)
{
    struct idle *idle = context;
    text_list_free(&idle->wrong);
    processes_free(&idle->below);
    judge_processes(idle);
    if (idle->wrong.count == 0)
        judge_groups(idle);
    return idle->wrong.count == 0;
}

void host_judge_daemon(const struct daemon *daemon, size_t slots, struct text_list *wrong)
{
    struct idle idle = {.daemon = daemon, .slots = slots};
    (void)!processes_wait(is_idle, &idle, GIVEN_MS);
    take_over(&idle.wrong, wrong);
    processes_free(&idle.below);
}

/* ---- counting --------------------------------------------------------------------------------- */

struct numbers {
    ino_t items[MAX_NAMESPACES];
    size_t count;
};

static void add_number(struct numbers *numbers, ino_t number)
{
    for (size_t i = 0; i < numbers->count; i++)
        if (numbers->items[i] == number)
            return;
    if (numbers->count < MAX_NAMESPACES)
        numbers->items[numbers->count++] = number;
}

static void add_namespaces(struct numbers *numbers, pid_t pid, const char *kind)
{
    char path[512], target[128], wanted[32];
    struct stat status;
    struct dirent *entry;
    (void)snprintf(wanted, sizeof(wanted), "%s:[", kind);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
    if (stat(path, &status) == 0)
        add_number(numbers, status.st_ino);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(path);
    while (directory && (entry = readdir(directory))) {
        ssize_t n = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strncmp(target, wanted, strlen(wanted)) == 0 &&
            fstatat(dirfd(directory), entry->d_name, &status, 0) == 0)
            add_number(numbers, status.st_ino);
    }
    if (directory)
        (void)closedir(directory);
}

size_t host_namespaces(const struct daemon *daemon, const char *kind)
{
    struct numbers numbers = {0};
    struct processes below = daemon_processes(daemon);
    add_namespaces(&numbers, getpid(), kind);
    size_t own = numbers.count;
    for (size_t i = 0; i < below.count; i++)
        add_namespaces(&numbers, below.items[i].pid, kind);
    processes_free(&below);
    return numbers.count - own;
}

size_t host_descriptors(pid_t pid)
{
    char path[64];
    size_t count = 0;
    const struct dirent *entry;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(path);
    while (directory && (entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    if (directory)
        (void)closedir(directory);
    return count;
}

/* The first number behind a key of /proc/PID/status; -1: gone. */
static long status_number(pid_t pid, const char *key)
{
    char path[64], line[256];
    long value = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && value < 0 && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtol(line + strlen(key), NULL, 10);
    if (file)
        (void)fclose(file);
    return value;
}

long host_resident_kb(pid_t pid)
{
    return status_number(pid, "VmRSS:");
}

long host_uid_of(pid_t pid)
{
    return status_number(pid, "Uid:");
}

bool host_file_has(const char *path, const char *mark)
{
    char text[65536 + 64];
    size_t kept = 0;
    bool found = false;
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    for (ssize_t got; fd >= 0 && !found && (got = read(fd, text + kept, 65536)) > 0;) {
        size_t length = kept + (size_t)got;
        found = memmem(text, length, mark, strlen(mark)) != NULL;
        kept = length < 32 ? length : 32;
        memmove(text, text + length - kept, kept);
    }
    return found;
}
