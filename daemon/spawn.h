/*
 * spawn.h - starts a provider program: no fork of the daemon's memory, a pidfd instead of a pid.
 */
#ifndef AUDITRUN_DAEMON_SPAWN_H
#define AUDITRUN_DAEMON_SPAWN_H

#include "protocol/text.h"

#include <sys/types.h>

#define SPAWN_DESCRIPTORS 5
/* What the kernel is told of the daemon and of all that it starts, for a machine without memory: the
 * runs go first. */
#define SPAWN_OWN_OOM_SCORE   "-900"
#define SPAWN_CHILD_OOM_SCORE "500"
/* Tells a program that descriptor 4 is the user namespace with the ids of slots (daemon/idspace.h). */
#define SPAWN_ID_SPACE "AUDITRUN_ID_SPACE=4"
#define SPAWN_PATH     "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct spawn {
    const char *program;
    char *const *arguments;   /* argv, NULL-terminated */
    char *const *environment; /* likewise */
    /* What becomes descriptor 0 to 4; -1: /dev/null (0 to 2) or closed (3, 4). Everything else is closed
     * in the program. What becomes 4 must be above that. */
    int descriptors[SPAWN_DESCRIPTORS];
};

/* Fills argv in: program, arguments, verb, NULL. malloc'd (the words are borrowed), NULL when out of
 * memory. */
char **spawn_arguments(const char *program, const struct text_list *arguments,
                       const char *verb) AR_MUST_CHECK;

/* Starts it in a session of its own with all signals at their defaults. posix_spawn shares the memory
 * until exec, so the size of the daemon costs nothing. 0 with *pid and *pidfd (owned, close-on-exec),
 * or -errno. The child must be reaped through the pidfd. It, and what it starts, is killed before the
 * daemon when the machine has no memory left, and can change that only to its disadvantage. */
int spawn_start(const struct spawn *spawn, pid_t *pid, int *pidfd) AR_MUST_CHECK;

/* Reaps a child that has ended: 0 with *status as from waitid (si_code in *code), 1 when it still
 * runs, -errno. The caller closes the pidfd and forgets the pid in the same breath. */
int spawn_reap(int pidfd, int *code, int *status) AR_MUST_CHECK;

/* Sends a signal through the pidfd; errors mean that it has gone. */
void spawn_signal(int pidfd, int signal);

/* Asks the kernel to spare the daemon when memory is short, as far as it may (CAP_SYS_RESOURCE): did
 * it? */
bool spawn_protect_daemon(void);
/* Makes the daemon the one that orphans of providers are given to. 0 or -errno. */
int spawn_become_subreaper(void) AR_MUST_CHECK;
/* Reaps, and kills if asked to, the daemon's children that it did not start itself: what left a
 * provider by double forking. is_known(context, pid): one of ours. Returns how many are still there. */
size_t spawn_sweep_orphans(bool (*is_known)(void *context, pid_t pid), void *context,
                           bool must_die);

#endif
