/*
 * check_unit.c - the unit of a process, from the text of its control groups and from a connection.
 */
#include "daemon/unit.h"
#include "tests/unit/unit.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static const struct {
    const char *groups, *unit; /* NULL: none, or it cannot be told */
} cases[] = {
    {"0::/system.slice/billing.service\n", "billing.service"},
    {"0::/system.slice/system-pay.slice/pay@7.service\n", "pay@7.service"},
    {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/billing.service\n",
     "user@1000.service"},
    {"0::/user.slice/user-1000.slice/session-4.scope\n", "session-4.scope"},
    {"0::/system.slice/auditrund.service/supervisor/billing.service\n", "auditrund.service"},
    {"0::/init.scope\n", "init.scope"},
    {"0::/billing.service\n", "billing.service"},
    {"0::/system.slice/_cpu.service\n", "cpu.service"},
    {"0::/_cpu.slice/_memory.service/x\n", "memory.service"},
    {"0::/system.slice/a\\x2db.service\n", "a\\x2db.service"},
    {"0::/system.slice/foo.service.slice/bar.service\n", "bar.service"},
    /* version 1, alone, with an empty unified hierarchy, and with one that says the same */
    {"3:cpu:/user.slice\n1:name=systemd:/system.slice/billing.service\n", "billing.service"},
    {"1:name=systemd:/system.slice/billing.service\n0::/\n", "billing.service"},
    {"1:name=systemd:/system.slice/a.service/below\n0::/system.slice/a.service\n", "a.service"},
    {"1:name=systemd:/system.slice/a.service\n0::/system.slice/b.service\n", NULL},
    {"1:name=systemd:/\n0::/system.slice/b.service\n", "b.service"},
    /* other hierarchies say nothing, whatever they are called */
    {"4:memory:/system.slice/billing.service\n0::/\n", NULL},
    {"4:name=other:/system.slice/billing.service\n0::/\n", NULL},
    {"4:name=systemd,x:/system.slice/billing.service\n0::/\n", NULL},
    {"10::/system.slice/billing.service\n", NULL},
    {"4:memory:/0::/billing.service\n0::/\n", NULL},
    /* no unit, or not to be told */
    {"", NULL},
    {"0::/\n", NULL},
    {"0::\n", NULL},
    {"0::relative.service\n", NULL},
    {"0::/system.slice\n", NULL},
    {"0::/system.slice/billing.service", NULL}, /* cut off */
    {"0::/docker/billing.service\n", NULL},
    {"0::/system.slice/run.mount/billing.service\n", NULL},
    {"0::/../billing.service\n", NULL},
    {"0::/../../system.slice/billing.service\n", NULL},
    {"0::/system.slice/billing.service/..\n", NULL},
    {"0::/system.slice/billing.service (deleted)\n", NULL},
    {"0::/system.slice/billing.service/x (deleted)\n", NULL},
    {"1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service (deleted)\n", NULL},
    {"0::/system.slice//billing.service\n", NULL},
    {"0::/system.slice/.service\n", NULL},
    {"0::/system.slice/_.service\n", NULL},
    {"0::/system.slice/bill ing.service\n", NULL},
    {"0::/.slice/billing.service\n", NULL},
};

START_TEST(test_groups)
{
    char unit[UNIT_NAME_BYTES];
    for (size_t i = 0; i < AR_COUNT(cases); i++) {
        int rc = unit_from_groups(cases[i].groups, unit);
        ck_assert_msg(rc == (cases[i].unit ? 0 : 1), "%s gives %d", cases[i].groups, rc);
        if (rc == 0)
            ck_assert_str_eq(unit, cases[i].unit);
    }
}
END_TEST

START_TEST(test_long_names)
{
    char unit[UNIT_NAME_BYTES];
    AR_AUTO_FREE char *longest = unit_repeat("0::/system.slice/", "a", 255 - 8, ".service\n");
    AR_AUTO_FREE char *longer = unit_repeat("0::/system.slice/", "a", 255 - 7, ".service\n");
    ck_assert_int_eq(unit_from_groups(longest, unit), 0);
    ck_assert_uint_eq(strlen(unit), 255);
    ck_assert(unit_is_name(unit));
    ck_assert_int_eq(unit_from_groups(longer, unit), 1);
}
END_TEST

START_TEST(test_names)
{
    static const char *const right[] = {"a.service", "user@1000.service", "run-u1.scope",
                                        "a\\x2db.service", "x.y.service"};
    static const char *const wrong[] = {"",          "billing",      ".service",    "a.slice",
                                        "a.socket",  "a.service ",   "a/b.service", "*.service",
                                        "a.Service", "../x.service", "a.service\n"};
    for (size_t i = 0; i < AR_COUNT(right); i++)
        ck_assert_msg(unit_is_name(right[i]), "%s", right[i]);
    for (size_t i = 0; i < AR_COUNT(wrong); i++)
        ck_assert_msg(!unit_is_name(wrong[i]), "%s", wrong[i]);
}
END_TEST

/* ---- a real peer -------------------------------------------------------------------------------- */

/* An accepted connection that a child has opened, who waits until *hold is closed. */
static int accept_child(pid_t *pid, int *hold)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX}; /* the kernel finds an abstract name */
    socklen_t length = sizeof(sa_family_t);
    int gate[2];
    char byte;
    AR_AUTO_CLOSE int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    length = sizeof address;
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(pipe(gate), 0);
    *pid = fork();
    if (*pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)close(gate[1]);
        if (connect(fd, (struct sockaddr *)&address, length) != 0)
            _exit(1);
        _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(gate[0]);
    *hold = gate[1];
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

/* The unit that our own control groups say, "" for none: a child has the same. */
static void own_unit(char unit[UNIT_NAME_BYTES])
{
    char text[8192];
    FILE *file = fopen("/proc/self/cgroup", "re");
    ck_assert_ptr_nonnull(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    ck_assert_int_eq(fclose(file), 0);
    if (unit_from_groups(text, unit) != 0)
        unit[0] = '\0';
}

START_TEST(test_peer)
{
    char expected[UNIT_NAME_BYTES], unit[UNIT_NAME_BYTES] = "";
    pid_t pid;
    int hold;
    if (unit_try() == -ENOPROTOOPT)
        return; /* before Linux 6.5 */
    ck_assert_int_eq(unit_try(), 0);
    AR_AUTO_CLOSE int fd = accept_child(&pid, &hold);
    own_unit(expected);
    ck_assert_int_eq(unit_of_peer(fd, unit), expected[0] ? 0 : 1);
    ck_assert_str_eq(unit, expected);
    /* It has ended: first a zombie, then reaped. */
    siginfo_t info;
    (void)close(hold);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(info.si_status, 0);
    ck_assert_int_eq(unit_of_peer(fd, unit), 1);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(unit_of_peer(fd, unit), 1);
}
END_TEST

START_TEST(test_no_peer)
{
    char unit[UNIT_NAME_BYTES];
    ck_assert_int_lt(unit_of_peer(-1, unit), 0);
}
END_TEST

static const TTest **const texts[] = {&test_groups, &test_long_names, &test_names, NULL};
static const TTest **const peers[] = {&test_peer, &test_no_peer, NULL};
static const struct unit_case suites[] = {{"texts", texts}, {"peers", peers}};

int main(void)
{
    return unit_main("unit", suites, AR_COUNT(suites));
}
