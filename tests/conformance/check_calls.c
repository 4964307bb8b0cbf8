/*
 * check_calls.c - the filter of system calls where it counts: around code in a sandbox of the
 * namespace executor.
 *
 * tests/unit/check_filter.c goes through the calls one by one; here are those that would reach the
 * host or another run, by programs that print a word for each thing that worked.
 */
#include "tests/lib/executor.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SLOT "63"

static char program[4096], languages[4096];
static const char *words[] = {program, "--uid-base", "210000", "--languages", languages, NULL};

static void expect(const char *language, const char *code, enum outcome outcome, int number,
                   const char *out)
{
    struct executor executor;
    struct executor_result result;
    struct request request = {.language = (char *)(uintptr_t)language,
                              .code = {.data = (char *)(uintptr_t)code, .length = strlen(code)},
                              .grant = {.network = NETWORK_NONE}};
    ck_assert(executor_start(&executor, words, SLOT));
    ck_assert(executor_do(&executor, &request, &result));
    ck_assert_msg(result.report.outcome == outcome, "%s; stderr: %.500s",
                  outcome_word(result.report.outcome), result.err.data ? result.err.data : "");
    ck_assert_int_eq(outcome == OUTCOME_SIGNALED ? result.report.signal : result.report.exit_code,
                     number);
    ck_assert_str_eq(result.out.data ? result.out.data : "", out);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}

#ifdef __x86_64__
/* By each entry that is not the native one: getpid, and one that the list does not have. */
static const char *const kills[] = {
    "#include <unistd.h>\nint main(void) { syscall(39 | 0x40000000); return 0; }",
    "#include <unistd.h>\nint main(void) { syscall(165 | 0x40000000, 0, 0, 0, 0, 0); return 0; }",
    "#include <unistd.h>\nint main(void) { syscall(0x7fffffffu); return 0; }",
    "int main(void) { long r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20L)); return 0; "
    "}",
    "int main(void) { long r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(21L)); return 0; "
    "}",
};

START_TEST(other_entries_kill)
{
    struct executor executor;
    struct executor_result result;
    static char language[] = "c";
    struct request request = {
        .language = language,
        .code = {.data = (char *)(uintptr_t)kills[_i], .length = strlen(kills[_i])},
        .grant = {.network = NETWORK_NONE}};
    ck_assert(executor_start(&executor, words, SLOT));
    ck_assert(executor_do(&executor, &request, &result));
    ck_assert_msg(result.report.outcome == OUTCOME_SIGNALED, "%s; stderr: %.500s",
                  outcome_word(result.report.outcome), result.err.data ? result.err.data : "");
    /* A kernel without the 32-bit entry faults. */
    bool interrupt = strstr(kills[_i], "0x80\"") != NULL;
    ck_assert(result.report.signal == SIGSYS || (interrupt && result.report.signal == SIGSEGV));
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
}
END_TEST
#endif

/* Threads are made by clone where there is no clone3; a filter of one's own takes nothing back. */
START_TEST(libraries_fall_back)
{
    expect("python",
           "import threading, subprocess, multiprocessing, ctypes, errno, os\n"
           "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
           "print(subprocess.run(['/bin/echo', 'process'], capture_output=True, text=True)"
           ".stdout, end='')\n"
           "libc = ctypes.CDLL(None, use_errno=True)\n"
           "print(libc.syscall(435, 0, 0), errno.errorcode[ctypes.get_errno()])\n"
           "f = open('x', 'w'); os.fsync(f.fileno()); os.fdatasync(f.fileno()); os.sync()\n"
           "os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)\n",
           OUTCOME_EXITED, 0, "thread\nprocess\n-1 ENOSYS\n");
}
END_TEST

/* What others do with the files that are shared with the host, and who the host is. */
START_TEST(shared_files_tell_nothing)
{
    expect("python",
           "import ctypes, fcntl, os, signal\n"
           "libc = ctypes.CDLL(None, use_errno=True)\n"
           "fd = os.open('/usr/bin', os.O_RDONLY)\n"
           "def refused(what, f):\n"
           "    try:\n"
           "        r = f()\n"
           "    except OSError: return\n"
           "    if r != -1: print(what)\n"
           "refused('inotify', libc.inotify_init)\n"
           "refused('fanotify', lambda: libc.fanotify_init(0x200, 0))\n"
           "refused('dnotify', lambda: fcntl.fcntl(fd, fcntl.F_NOTIFY, fcntl.DN_ACCESS))\n"
           "refused('uuid', lambda: fcntl.ioctl(fd, 0x80111500, bytes([16] + [0] * 16)))\n"
           "refused('extents', lambda: fcntl.ioctl(fd, 0xc020660b, bytes(32)))\n"
           "refused('handle', lambda: libc.syscall(303, fd, b'', 0, 0, 0x1000))\n"
           "refused('cachestat', lambda: libc.syscall(451, fd, bytes(16), bytes(40), 0))\n",
           OUTCOME_EXITED, 0, "");
}
END_TEST

/* There is no network to use, and asking for a socket of a family loads no module of the kernel. */
START_TEST(sockets_are_of_one_family)
{
    expect("python",
           "import socket\n"
           "for f in range(0, 64):\n"
           "    for t in range(0, 16):\n"
           "        for p in (0, 1, 2, 6, 17, 33, 58, 115, 132, 136, 262):\n"
           "            try:\n"
           "                socket.socket(f, t, p).close()\n"
           "            except OSError:\n"
           "                continue\n"
           "            if f != socket.AF_UNIX: print(f, t, p)\n"
           "for t in (1, 2, 5):\n"
           "    a, b = socket.socketpair(socket.AF_UNIX, t); a.send(b'x'); print(b.recv(1))\n",
           OUTCOME_EXITED, 0, "b'x'\nb'x'\nb'x'\n");
}
END_TEST

static Suite *make_suite(void)
{
    static const TTest *const *const tests[] = {&libraries_fall_back, &shared_files_tell_nothing,
                                                &sockets_are_of_one_family};
    Suite *suite = suite_create("calls");
    TCase *tcase = tcase_create("calls");
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
#ifdef __x86_64__
    tcase_add_loop_test(tcase, other_entries_kill, 0, AR_COUNT(kills));
#endif
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    const char *build = getenv("AUDITRUN_BUILD"), *source = getenv("AUDITRUN_SOURCE");
    (void)snprintf(program, sizeof(program), "%s/auditrun-executor-namespace",
                   build ? build : "build");
    (void)snprintf(languages, sizeof(languages), "%s/etc/languages.d", source ? source : ".");
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
