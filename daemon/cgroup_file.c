/*
 * cgroup_file.c - reading and writing the small files of control groups, and where they are.
 *
 * Layout, below the group in which the daemon was started: auditrund.PID/slot.N. The pid in the name
 * lets the next start tell what a killed daemon left behind from what another daemon is using.
 */
#include "daemon/cgroup_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* How long the start waits for the processes of a killed daemon to end, and the end for its own. */
#define STALE_TRIES    200
#define STALE_PAUSE_MS 5

/* ---- files ------------------------------------------------------------------------------------ */

int cgroup_file_write(int directory, const char *name, const char *text)
{
    AR_AUTO_CLOSE int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

int cgroup_file_write_number(int directory, const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    return cgroup_file_write(directory, name, text);
}

void cgroup_file_read(int directory, const char *name, char text[CGROUP_TEXT_BYTES])
{
    AR_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, CGROUP_TEXT_BYTES - 1) : -1;
    text[n > 0 ? n : 0] = 0;
}

int64_t cgroup_file_number(const char *text, const char *key)
{
    const char *found = *text ? strstr(text, key) : NULL;
    return found ? strtoll(found + strlen(key), NULL, 10) : -1;
}

int64_t cgroup_file_read_number(int directory, const char *name)
{
    char text[CGROUP_TEXT_BYTES];
    cgroup_file_read(directory, name, text);
    return cgroup_file_number(text, "");
}

void cgroup_file_each_process(int directory, void (*visit)(void *context, pid_t pid), void *context)
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

/* ---- where they are --------------------------------------------------------------------------- */

bool cgroup_file_has_item(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += length)
        if ((p == list || strchr(", ", p[-1])) && strchr(", \n", p[length]))
            return true;
    return false;
}

bool cgroup_file_join(char out[CGROUP_PATH_BYTES], const char *path, const char *name)
{
    return snprintf(out, CGROUP_PATH_BYTES, "%s/%s", path, name) < CGROUP_PATH_BYTES;
}

/* The next line of a file, without its end. */
static bool next_line(FILE *file, char *line, size_t room)
{
    if (!file || !fgets(line, (int)room, file))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

/* The daemon's own group, as /proc/self/cgroup names it (cgroups(7)): "" for the topmost. */
static bool find_own_group(const char *controller, char path[CGROUP_PATH_BYTES])
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (!found && next_line(file, line, sizeof line)) {
        char *list = strchr(line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        found = (controller ? cgroup_file_has_item(list + 1, controller) : !list[1]) &&
                snprintf(path, CGROUP_PATH_BYTES, "%s", strcmp(group, "/") ? group : "") <
                    CGROUP_PATH_BYTES;
    }
    if (file)
        (void)fclose(file);
    return found;
}

/* Of a line of /proc/self/mountinfo (proc_pid_mountinfo(5)): the mount of that hierarchy? */
static bool read_mount(char *line, const char *controller, char root[256], char point[256])
{
    char options[256];
    char *tail = strstr(line, controller ? " - cgroup " : " - cgroup2 ");
    return tail && sscanf(line, "%*d %*d %*s %255s %255s", root, point) == 2 &&
           (!controller || (sscanf(tail, " - cgroup %*s %255s", options) == 1 &&
                            cgroup_file_has_item(options, controller)));
}

/* A mount may show a part of the hierarchy only, from root on, as in containers. */
static bool place_below(const char *root, const char *point, const char *group,
                        char out[CGROUP_PATH_BYTES])
{
    size_t length = strcmp(root, "/") ? strlen(root) : 0;
    if (strncmp(group, root, length) != 0 || (group[length] && group[length] != '/'))
        return false;
    return snprintf(out, CGROUP_PATH_BYTES, "%s%s", point, group + length) < CGROUP_PATH_BYTES;
}

bool cgroup_file_base(const char *controller, char out[CGROUP_PATH_BYTES])
{
    char group[CGROUP_PATH_BYTES], line[1024], root[256], point[256];
    if (!find_own_group(controller, group))
        return false;
    bool found = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (!found && next_line(file, line, sizeof line))
        found = read_mount(line, controller, root, point) && place_below(root, point, group, out);
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
static void remove_leaf(int parent, const char *name)
{
    AR_AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < STALE_TRIES; i++) {
        cgroup_file_each_process(fd, kill_process, NULL);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        (void)poll(NULL, 0, STALE_PAUSE_MS);
    }
}

static DIR *open_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory)
        base_close(&fd);
    return directory;
}

static void remove_group(int parent, const char *name)
{
    struct dirent *entry;
    DIR *directory = open_folder(parent, name);
    if (!directory)
        return;
    while ((entry = readdir(directory)))
        if (strncmp(entry->d_name, CGROUP_LEAF, strlen(CGROUP_LEAF)) == 0)
            remove_leaf(dirfd(directory), entry->d_name);
    (void)closedir(directory);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void cgroup_file_remove(const char *path)
{
    remove_group(AT_FDCWD, path);
}

void cgroup_file_sweep(const char *base)
{
    struct dirent *entry;
    DIR *directory = open_folder(AT_FDCWD, base);
    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        if (strncmp(entry->d_name, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) != 0)
            continue;
        long pid = strtol(entry->d_name + strlen(CGROUP_PREFIX), NULL, 10);
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            remove_group(dirfd(directory), entry->d_name);
    }
    (void)closedir(directory);
}
