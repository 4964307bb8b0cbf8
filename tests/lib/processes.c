/*
 * processes.c - see processes.h. Everything is read from /proc (proc_pid_stat(5)); a process that ends
 * while it is looked at is one that is not there.
 */
#include "tests/lib/processes.h"

#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define POLL_MS       5
#define MAX_PROCESSES 65536

int64_t processes_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool processes_wait(bool (*holds)(void *context), void *context, int64_t ms)
{
    int64_t deadline = processes_now_ms() + ms;
    while (!holds(context)) {
        if (processes_now_ms() > deadline)
            return false;
        (void)poll(NULL, 0, POLL_MS);
    }
    return true;
}

/* malloc'd, NUL-terminated; NULL when the process is gone. */
static char *read_file(pid_t pid, const char *name, size_t room, size_t *length)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    AR_AUTO_FREE char *text = fd >= 0 ? calloc(1, room + 1) : NULL;
    ssize_t n;
    *length = 0;
    if (!text)
        return NULL;
    while (*length < room && (n = read(fd, text + *length, room - *length)) > 0)
        *length += (size_t)n;
    return AR_TAKE(text);
}

/* Fields 3 (state), 4 (parent) and 22 (start), behind the name, which may hold anything. False for
 * one that is gone or has ended. */
static bool look_at(pid_t pid, struct process *out)
{
    char state = 'X';
    int parent = 0;
    unsigned long long start = 0;
    size_t length;
    AR_AUTO_FREE char *text = read_file(pid, "stat", 1024, &length);
    const char *rest = text ? strrchr(text, ')') : NULL;
    if (!rest || sscanf(rest,
                        ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                        "%*d %*d %llu",
                        &state, &parent, &start) != 3)
        return false;
    *out = (struct process){.pid = pid, .parent = parent, .start = start};
    return state != 'Z' && state != 'X';
}

static void add(struct processes *list, const struct process *process)
{
    ck_assert_uint_lt(list->count, MAX_PROCESSES);
    struct process *grown = reallocarray(list->items, list->count + 1, sizeof(*grown));
    ck_assert_ptr_nonnull(grown);
    list->items = grown;
    grown[list->count++] = *process;
}

static struct processes all_processes(void)
{
    struct processes list = {0};
    struct process process;
    struct dirent *entry;
    DIR *directory = opendir("/proc");
    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)))
        if (isdigit((unsigned char)entry->d_name[0]) &&
            look_at((pid_t)strtol(entry->d_name, NULL, 10), &process))
            add(&list, &process);
    (void)closedir(directory);
    return list;
}

bool processes_has(const struct processes *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].pid == pid)
            return true;
    return false;
}

struct processes processes_children(pid_t pid)
{
    struct processes all = all_processes();
    struct processes children = {0};
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i].parent == pid)
            add(&children, &all.items[i]);
    processes_free(&all);
    return children;
}

struct processes processes_below(pid_t pid)
{
    struct processes all = all_processes();
    struct processes below = {0};
    size_t before;
    do {
        before = below.count;
        for (size_t i = 0; i < all.count; i++)
            if ((all.items[i].parent == pid || processes_has(&below, all.items[i].parent)) &&
                !processes_has(&below, all.items[i].pid))
                add(&below, &all.items[i]);
    } while (below.count > before);
    processes_free(&all);
    return below;
}

void processes_free(struct processes *list)
{
    free(list->items);
    *list = (struct processes){0};
}

bool processes_runs(pid_t pid)
{
    struct process now;
    return look_at(pid, &now);
}

bool processes_is_alive(const struct process *process)
{
    struct process now;
    return look_at(process->pid, &now) && now.start == process->start;
}

size_t processes_alive(const struct processes *list)
{
    size_t alive = 0;
    for (size_t i = 0; i < list->count; i++)
        alive += processes_is_alive(&list->items[i]);
    return alive;
}

static bool mentions(pid_t pid, const char *name, const char *marker)
{
    size_t length;
    AR_AUTO_FREE char *text = read_file(pid, name, 1 << 20, &length);
    return text && memmem(text, length, marker, strlen(marker));
}

size_t processes_marked(const char *marker)
{
    struct processes all = all_processes();
    size_t found = 0;
    for (size_t i = 0; i < all.count; i++)
        found += all.items[i].pid != getpid() && (mentions(all.items[i].pid, "cmdline", marker) ||
                                                  mentions(all.items[i].pid, "environ", marker));
    processes_free(&all);
    return found;
}
