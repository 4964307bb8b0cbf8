/*
 * proofs.c - a slot of each kind, with a sandbox in it that attacks itself.
 *
 * The mounts that host paths are tried with are memory file systems of our own, which nobody else sees:
 * the host's files are not touched.
 */
#include "executors/namespace/proofs.h"

#include "executors/namespace/attack.h"
#include "executors/namespace/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

#define ONE_MS     2500
#define NOT_TRIED  2 /* an exit status */
#define EVERY_MODE "777"

/* ---- mounts to try with ----------------------------------------------------------------------- */

/* A detached memory file system, owned; or -errno. */
static int make_tree(void)
{
    AR_AUTO_CLOSE int context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    if (context < 0 ||
        syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "mode", EVERY_MODE, 0) < 0 ||
        syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int tree = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
    return tree < 0 ? -errno : tree;
}

/* A file, and a FIFO with a reader, that anybody may write as far as their modes say. */
static int fill_tree(int tree)
{
    const char byte = ATTACK_BYTE;
    AR_AUTO_CLOSE int data = openat(tree, "data", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (data < 0 || write(data, &byte, 1) != 1 || fchmod(data, 0666) < 0 ||
        mkfifoat(tree, "fifo", 0600) < 0 || fchmodat(tree, "fifo", 0666, 0) < 0)
        return -errno;
    return openat(tree, "fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
}

static int make_trees(int trees[2])
{
    for (int i = 0; i < 2; i++)
        if ((trees[i] = make_tree()) < 0)
            return trees[i];
    return fill_tree(trees[0]);
}

/* ---- a helper --------------------------------------------------------------------------------- */

static const char *reach_word(unsigned reach)
{
    static const char *const words[] = {[REACH_NETWORK] = "network",
                                        [REACH_FILES] = "filesystem",
                                        [REACH_NETWORK | REACH_FILES] = "network and filesystem"};
    return words[reach];
}

static void tell(unsigned reach, const char *why)
{
    (void)fprintf(stderr, "auditrun-executor-namespace: not offered: %s: %s\n", reach_word(reach),
                  why);
}

/* Changing the ids took the first one away. */
static bool end_with(pid_t caller)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == caller;
}

/* The exit status: 0 when all walls held. */
static int prove(const struct slot_options *options, int program, pid_t caller)
{
    struct slot slot;
    struct failure failure = {0};
    int trees[2] = {-1, -1};

    if (!end_with(caller))
        return 1;
    if (options->reach & REACH_FILES && make_trees(trees) < 0)
        return NOT_TRIED;
    if (slot_enter(&slot, options, &failure) < 0) {
        tell(options->reach, step_word(failure.step));
        return 1;
    }
    struct trial trial = {.slot = &slot, .program = program, .trees = trees};
    const char *why = end_with(caller) ? trial_walls(&trial, ONE_MS, &failure) : "it is late";
    if (why)
        tell(options->reach, why);
    return why != NULL;
}

/* ---- the caller ------------------------------------------------------------------------------- */

void proofs_start(struct proofs *proofs, const struct slot_options *options, int program)
{
    const pid_t caller = getpid();
    for (unsigned i = 0; i < PROOFS_COUNT; i++) {
        struct slot_options reaching = *options;
        reaching.reach = i + 1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(prove(&reaching, program, caller));
        proofs->helpers[i] = pid > 0 ? pid : 0;
        proofs->ends[i] = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    }
}

/* Waits for one. Has it proved what it is for? */
static bool reap(struct proofs *proofs, unsigned index, int64_t wait_ms)
{
    struct pollfd end = {.fd = proofs->ends[index], .events = POLLIN};
    int status = -1;
    if (proofs->helpers[index] == 0)
        return false;
    if (end.fd < 0 || poll(&end, 1, wait_ms > 0 ? (int)wait_ms : 0) != 1)
        (void)kill(proofs->helpers[index], SIGKILL);
    while (waitpid(proofs->helpers[index], &status, 0) < 0 && errno == EINTR)
        continue;
    base_close(&proofs->ends[index]);
    if (!WIFEXITED(status))
        tell(index + 1, "the trial took too long");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

unsigned proofs_end(struct proofs *proofs, int64_t wait_ms)
{
    const int64_t until_ms = board_now_us() / 1000 + wait_ms;
    bool held[PROOFS_COUNT];
    for (unsigned i = 0; i < PROOFS_COUNT; i++)
        held[i] = reap(proofs, i, until_ms - board_now_us() / 1000);
    const bool network = held[REACH_NETWORK - 1];
    const bool files = held[REACH_FILES - 1] && (!network || held[PROOFS_COUNT - 1]);
    return (network ? REACH_NETWORK : 0u) | (files ? REACH_FILES : 0u);
}
