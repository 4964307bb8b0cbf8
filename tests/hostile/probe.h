/*
 * probe.h - what the hostile programs in C share. The test puts it in the place of the line that
 * includes it (tests/lib/hostile.c), because a run's code is one file.
 */
#ifndef AUDITRUN_TESTS_HOSTILE_PROBE_H
#define AUDITRUN_TESTS_HOSTILE_PROBE_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One line, in one piece: a word (START, ESCAPED, CONTAINED, INFO) and what it is about. */
static inline void say(const char *word, const char *text, ...)
{
    char line[600];
    int n = snprintf(line, sizeof line, "%s ", word);
    va_list list;
    va_start(list, text);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, text, list);
    va_end(list);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(1, line, (size_t)n) < 0)
        _exit(9);
}

static inline int refused(int error)
{
    return error == EPERM || error == EACCES || error == ENOSYS || error == EROFS;
}

/* Goes to a directory that can be written: the current one, or the usual others. */
static inline int to_scratch(void)
{
    const char *dirs[] = {".", getenv("TMPDIR"), getenv("HOME"), "/tmp"};
    for (int i = 0; i < 4; i++)
        if (dirs[i] && access(dirs[i], W_OK) == 0 && chdir(dirs[i]) == 0)
            return 0;
    say("INFO", "no directory can be written");
    return -1;
}

/* One try in a child of its own, so that a filter that kills is seen as well.
 * fn returns 0 or more when it got through, -1 with errno when it did not.
 * With deep set, an error other than a refusal means that the kernel went past
 * its permission check, which counts as through, too. */
static inline void try_one(const char *what, long (*fn)(void), int deep)
{
    int p[2], got[2] = {0, 0}, st = 0;
    if (pipe(p) < 0) {
        say("INFO", "%s: not tried, no pipe (%s)", what, strerror(errno));
        return;
    }
    pid_t pid = fork();
    if (pid < 0) {
        say("INFO", "%s: not tried, no child (%s)", what, strerror(errno));
        close(p[0]);
        close(p[1]);
        return;
    }
    if (pid == 0) {
        close(p[0]);
        alarm(5);
        errno = 0;
        long r = fn();
        got[0] = r >= 0;
        got[1] = errno;
        if (write(p[1], got, sizeof got) < 0)
            _exit(1);
        _exit(0);
    }
    close(p[1]);
    ssize_t n = read(p[0], got, sizeof got);
    close(p[0]);
    waitpid(pid, &st, 0);
    if (n != (ssize_t)sizeof got)
        say("CONTAINED", "%s: ended by signal %d", what, WIFSIGNALED(st) ? WTERMSIG(st) : 0);
    else if (got[0])
        say("ESCAPED", "%s: allowed", what);
    else if (deep && !refused(got[1]))
        say("ESCAPED", "%s: past the permission check (%s)", what, strerror(got[1]));
    else
        say("CONTAINED", "%s: %s", what, strerror(got[1]));
}

#endif
