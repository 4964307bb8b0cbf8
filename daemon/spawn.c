/*
 * spawn.c - starts a provider program.
 *
 * The pidfd is opened on a child that has not been reaped, so its number cannot mean anybody else.
 * The same holds for orphans: a child of ours that we did not start and did not reap is an orphan,
 * whatever its number was before.
 */
#include "daemon/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* pidfd_open(2) is in glibc since 2.36. */

static int add_descriptors(const struct spawn *spawn, posix_spawn_file_actions_t *actions)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < SPAWN_DESCRIPTORS; i++) {
        if (spawn->descriptors[i] >= 0)
            rc = posix_spawn_file_actions_adddup2(actions, spawn->descriptors[i], i);
        else if (i < 3)
            rc = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
        else
            rc = posix_spawn_file_actions_addclose(actions, i);
    }
    return rc ? rc : posix_spawn_file_actions_addclosefrom_np(actions, SPAWN_DESCRIPTORS);
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int rc = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attributes, &none);
    return rc ? rc : posix_spawnattr_setsigdefault(attributes, &all);
}

char **spawn_arguments(const char *program, const struct text_list *arguments, const char *verb)
{
    /* execve(2) takes words that it does not change as char *. */
    char **argv = calloc(arguments->count + 3, sizeof(char *));
    if (!argv)
        return NULL;
    argv[0] = (char *)(uintptr_t)program;
    for (size_t i = 0; i < arguments->count; i++)
        argv[i + 1] = arguments->items[i];
    argv[arguments->count + 1] = (char *)(uintptr_t)verb;
    return argv;
}

/* proc_pid_oom_score_adj(5). What somebody with the privilege to lower it has set, those without cannot
 * lower any more. */
static bool set_oom_score(pid_t pid, const char *score)
{
    char path[48];
    (void)snprintf(path, sizeof path, "/proc/%ld/oom_score_adj", (long)pid);
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, score, strlen(score)) == (ssize_t)strlen(score);
}

bool spawn_protect_daemon(void)
{
    return set_oom_score(getpid(), SPAWN_OWN_OOM_SCORE);
}

int spawn_start(const struct spawn *spawn, pid_t *pid, int *pidfd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return -rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = add_descriptors(spawn, &actions);
        if (rc == 0)
            rc = set_attributes(&attributes);
        if (rc == 0)
            rc = posix_spawn(pid, spawn->program, &actions, &attributes, spawn->arguments,
                             spawn->environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return -rc;
    (void)set_oom_score(*pid, SPAWN_CHILD_OOM_SCORE);
    *pidfd = pidfd_open(*pid, 0);
    if (*pidfd >= 0)
        return 0;
    rc = -errno;
    (void)kill(*pid, SIGKILL);
    (void)waitpid(*pid, NULL, 0);
    return rc;
}

int spawn_reap(int pidfd, int *code, int *status)
{
    siginfo_t info = {0};
    if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) != 0)
        return -errno;
    if (info.si_pid == 0)
        return 1;
    *code = info.si_code;
    *status = info.si_status;
    return 0;
}

void spawn_signal(int pidfd, int signal)
{
    if (pidfd >= 0)
        (void)pidfd_send_signal(pidfd, signal, NULL, 0);
}

int spawn_become_subreaper(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? 0 : -errno;
}

size_t spawn_sweep_orphans(bool (*is_known)(void *context, pid_t pid), void *context, bool must_die)
{
    size_t left = 0;
    int pid;
    FILE *children = fopen("/proc/thread-self/children", "re");
    if (!children)
        return 0;
    while (fscanf(children, "%d", &pid) == 1) {
        if (is_known(context, pid))
            continue;
        if (must_die)
            (void)kill(pid, SIGKILL);
        if (waitpid(pid, NULL, WNOHANG) != pid)
            left++;
    }
    (void)fclose(children);
    return left;
}
