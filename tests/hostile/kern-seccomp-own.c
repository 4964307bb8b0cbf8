/*
 * Hostile probe kern-seccomp-own (kernel).
 * Adds filters of its own that allow everything, one with a listener: what was refused must
 * stay refused.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* What is refused now, one bit for each; asked for in a child. */
static int refused_now(void)
{
    int st = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int bits = 0;
        bits |= unshare(CLONE_NEWUSER) < 0;
        bits |= (syscall(SYS_bpf, 0, NULL, 0) < 0 && (errno == EPERM || errno == ENOSYS)) << 1;
        bits |= (syscall(SYS_add_key, "user", "hostile-key", "x", 1UL, -2) < 0) << 2;
        bits |= (mount("none", "/tmp", "tmpfs", 0, NULL) < 0) << 3;
        bits |= (syscall(425, 1, NULL) < 0 && (errno == EPERM || errno == ENOSYS)) << 4;
        _exit(bits);
    }
    if (pid < 0 || waitpid(pid, &st, 0) < 0)
        return -1;
    return WIFEXITED(st) ? WEXITSTATUS(st) : 255;
}

int main(void)
{
    struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog all = {1, allow};
    say("START", "kern-seccomp-own");
    int before = refused_now();
    long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all);
    say("INFO", "a filter of its own: %s", r < 0 ? strerror(errno) : "taken");
    r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &all);
    say("INFO", "a listener of its own: %s", r < 0 ? strerror(errno) : "given");
    prctl(PR_SET_SECCOMP, 0);
    int after = refused_now();
    if (before >= 0 && (before & ~after))
        say("ESCAPED", "calls refused before are allowed now (%#x, then %#x)", before, after);
    else
        say("CONTAINED", "what was refused is refused still (%#x, then %#x)", before, after);
    return 0;
}
