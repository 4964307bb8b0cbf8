/*
 * filtered.c - makes calls behind the filter, and runs its programs.
 */
#include "tests/lib/filtered.h"

#include "executors/namespace/filter.h"

#include <check.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* In the child: 0, or 1 when a call did not give what it must. */
static int try_calls(unsigned reach, const struct filtered_call *list, size_t count)
{
    struct filter filter;
    if (filter_compile(FILTERED_TOKEN, reach, &filter) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(&filter) < 0)
        return 255;
    for (size_t i = 0; i < count; i++) {
        const long *a = list[i].arguments;
        errno = 0;
        long result = syscall(list[i].number, a[0], a[1], a[2], a[3], a[4]);
        int got = result < 0 ? errno : -1;
        if (got != list[i].expected) {
            (void)fprintf(stderr, "call %zu of the list for %u: number %ld gave %d, not %d\n", i,
                          reach, list[i].number, got, list[i].expected);
            return 1;
        }
    }
    return 0;
}

void filtered_expect(unsigned reach, const struct filtered_call *calls, size_t count)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_calls(reach, calls, count));
    ck_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "status %d", WEXITSTATUS(status));
}

/* Runs a program as the kernel does; these instructions are all that libseccomp uses. */
uint32_t filtered_decide(const struct sock_fprog *program, const struct seccomp_data *data)
{
    uint32_t accumulator = 0;
    for (size_t i = 0; i < program->len; i++) {
        const struct sock_filter *op = &program->filter[i];
        bool jumps = false;
        switch (op->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (op->k > sizeof(*data) - sizeof(accumulator))
                ck_abort_msg("a load from outside");
            memcpy(&accumulator, (const char *)data + op->k, sizeof(accumulator));
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            accumulator &= op->k;
            continue;
        case BPF_RET | BPF_K:
            return op->k;
        case BPF_JMP | BPF_JA:
            i += op->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            jumps = accumulator == op->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            jumps = accumulator > op->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            jumps = accumulator >= op->k;
            break;
        default:
            ck_abort_msg("an instruction of another kind: %x", op->code);
        }
        i += jumps ? op->jt : op->jf;
    }
    ck_abort_msg("a program without an end");
}

bool filtered_is_possible(void)
{
    const uint32_t action = SECCOMP_RET_KILL_PROCESS;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}
