/*
 * check_host_paths.c - paths of the host in the namespace executor, without the daemon: the test makes the
 * detached mounts itself, open as they come, and looks at what the code can do with them.
 *
 * Attacks print a word for each thing that worked, so that a sandbox that holds prints nothing.
 */
#include "tests/lib/gifts.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#ifndef MOUNT_ATTR_RDONLY /* a C library before glibc 2.36 */
#    include <linux/mount.h>
#endif

static char folder[64]; /* on the host; made by each test, removed by remove_folder() */

static const char *below(const char *name)
{
    static char path[4][256];
    static unsigned turn;
    char *here = path[turn++ % 4];
    (void)snprintf(here, sizeof(path[0]), "%s/%s", folder, name);
    return here;
}

static void put(const char *name, const char *text, mode_t mode)
{
    AR_AUTO_CLOSE int fd = open(below(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, mode), 0);
}

static void make(const char *name, bool theirs)
{
    ck_assert_int_eq(mkdir(below(name), 0755), 0);
    ck_assert_int_eq(theirs ? chown(below(name), GIFTS_UID, GIFTS_UID) : 0, 0);
}

static int listen_at(const char *name, int type)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    (void)snprintf(here.sun_path, sizeof(here.sun_path), "%s", below(name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    ck_assert_int_eq(chmod(here.sun_path, 0777), 0);
    ck_assert_int_eq(type == SOCK_STREAM ? listen(fd, 8) : 0, 0);
    return fd;
}

/* Everything that a folder should not let one do, in two folders. */
static void make_folder(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/auditrun-grants-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chmod(folder, 0755), 0);
    make("read", false);
    make("write", true);
    make("read/inner", false);
    make("write/inner", true);
    put("read/data", "data\n", 0644);
    put("write/data", "data\n", 0666);
    put("read/inner/data", "inner\n", 0666);
    put("note", "note\n", 0666);
    put("config", "config\n", 0666);
}

static void remove_folder(void)
{
    char command[128];
    const char *const words_of_rm[] = {"rm", "-rf", folder, NULL};
    (void)snprintf(command, sizeof(command), "%s", folder);
    ck_assert_int_eq(strncmp(command, "/tmp/auditrun-grants-", 21), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execvp("rm", (char *const *)(uintptr_t)words_of_rm);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* A detached mount, as the daemon makes them, but without an attribute. */
static int tree_of(const char *name)
{
    int tree =
        (int)syscall(SYS_open_tree, AT_FDCWD, below(name), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    ck_assert_msg(tree >= 0, "open_tree: %s", strerror(errno));
    return tree;
}

/* One run with these mounts in a slot of its own, which ends with it. */
static void run_with_paths(const char *reach, struct request *request, const int *trees,
                           size_t count, enum outcome outcome, const char *out)
{
    struct executor executor = gifts_start(reach);
    struct executor_gifts gifts = {
        .data_port = -1, .secrets = -1, .paths = trees, .path_count = count};
    gifts_expect(&executor, request, &gifts, outcome, out, NULL);
    ck_assert_msg(executor_ended(&executor), "the slot serves on");
    ck_assert(executor_stop(&executor));
    for (size_t i = 0; i < count; i++)
        (void)close(trees[i]);
}

#define WORDS_OF_ATTACKS                \
    "import ctypes, os, socket, stat\n" \
    "def no(what, f):\n"                \
    "    try: f()\n"                    \
    "    except OSError: return\n"      \
    "    print(what, flush=True)\n"

static char srv[] = "/srv/catalogue", out_box[] = "/srv/outbox/acme", conf[] = "/opt/tool/config",
            note[] = "/tmp/host/note";
static char *both_read[] = {conf, srv}, *both_written[] = {out_box, note};

START_TEST(paths_are_where_they_are_granted)
{
    struct request request = gifts_request(
        "python", WORDS_OF_ATTACKS
        "print(open('/srv/catalogue/data').read() + open('/opt/tool/config').read() + "
        "open('/srv/outbox/acme/data').read() + open('/tmp/host/note').read(), end='')\n"
        "for p in ('/srv/catalogue/data', '/opt/tool/config'):\n"
        "    no(p, lambda: open(p, 'r+')); no(p, lambda: os.chmod(p, 0o600))\n"
        "no('new', lambda: open('/srv/catalogue/new', 'w'))\n"
        "no('unlink', lambda: os.unlink('/srv/catalogue/data'))\n"
        "if not os.statvfs('/').f_flag & os.ST_RDONLY: print('the root is open')\n"
        "for p in ('/x', '/srv/x', '/opt/x', '/srv/outbox/x'): no(p, lambda: open(p, 'w'))\n"
        "with open('/srv/outbox/acme/made', 'w') as f: f.write('made'); f.flush(); os.fsync(f)\n"
        "with open('/tmp/host/note', 'w') as f: f.write('noted')\n"
        "os.mkdir('/srv/outbox/acme/folder'); os.rename('/srv/outbox/acme/made', "
        "'/srv/outbox/acme/folder/made')\n"
        "os.mkfifo('/srv/outbox/acme/fifo')\n"
        "open('/tmp/x', 'w').close(); open('/work/x', 'w').close()\n");
    struct stat status;
    char text[64] = "";
    make_folder();
    request.grant.read = gifts_list(both_read, 2);
    request.grant.write = gifts_list(both_written, 2);
    const int trees[] = {tree_of("config"), tree_of("read"), tree_of("write"), tree_of("note")};
    run_with_paths("files", &request, trees, 4, OUTCOME_EXITED, "data\nconfig\ndata\nnote\n");
    ck_assert_int_eq(stat(below("write/folder/made"), &status), 0);
    ck_assert_uint_eq(status.st_uid, GIFTS_UID);
    AR_AUTO_CLOSE int fd = open(below("note"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(read(fd, text, sizeof(text)), 5);
    ck_assert_str_eq(text, "noted");
    remove_folder();
}
END_TEST

/* C18: data only. */
START_TEST(folders_lead_to_no_service)
{
    static char *one[] = {srv}, *other[] = {out_box};
    struct request request = gifts_request(
        "python", WORDS_OF_ATTACKS
        "def connect(p, t):\n"
        "    s = socket.socket(socket.AF_UNIX, t); s.connect(p)\n"
        "def send(p):\n"
        "    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', p)\n"
        "def bind(p):\n"
        "    a, b = socket.socketpair(); a.bind(p)\n"
        "for d in ('/srv/catalogue', '/srv/outbox/acme'):\n"
        "    no('stream ' + d, lambda: connect(d + '/stream', socket.SOCK_STREAM))\n"
        "    no('datagrams ' + d, lambda: connect(d + '/datagram', socket.SOCK_DGRAM))\n"
        "    no('sendto ' + d, lambda: send(d + '/datagram'))\n"
        "    no('bind ' + d, lambda: bind(d + '/own'))\n"
        "    no('node ' + d, lambda: os.mknod(d + '/s', stat.S_IFSOCK | 0o600))\n"
        "    no('device ' + d, lambda: open(d + '/null', 'r+b', 0))\n"
        "    no('make device ' + d, lambda: os.mknod(d + '/d', stat.S_IFCHR | 0o600, 0x103))\n"
        "    no('exec ' + d, lambda: os.execv(d + '/program', ['program']))\n"
        "no('fifo', lambda: os.open('/srv/catalogue/fifo', os.O_WRONLY | os.O_NONBLOCK))\n"
        "w = '/srv/outbox/acme/'\n"
        "open(w + 'own', 'w').close()\n"
        "for m in (0o4755, 0o2755, 0o6711):\n"
        "    no('chmod', lambda: os.chmod(w + 'own', m))\n"
        "    no('create', lambda: os.open(w + 'new', os.O_CREAT | os.O_WRONLY, m))\n"
        "    no('unnamed', lambda: os.open(w, os.O_TMPFILE | os.O_WRONLY, m))\n"
        "os.chmod(w + 'own', 0o755)\n"
        "no('own program', lambda: os.execv(w + 'own', ['own']))\n");
    make_folder();
    for (int i = 0; i < 2; i++) {
        const char *const names[][2] = {{"read/stream", "write/stream"},
                                        {"read/datagram", "write/datagram"},
                                        {"read/fifo", "write/fifo"},
                                        {"read/null", "write/null"},
                                        {"read/program", "write/program"}};
        (void)listen_at(names[0][i], SOCK_STREAM);
        (void)listen_at(names[1][i], SOCK_DGRAM);
        ck_assert_int_eq(mkfifo(below(names[2][i]), 0666), 0);
        ck_assert_int_eq(chmod(below(names[2][i]), 0666), 0);
        ck_assert_int_ge(open(below(names[2][i]), O_RDONLY | O_NONBLOCK | O_CLOEXEC), 0);
        ck_assert_int_eq(mknod(below(names[3][i]), S_IFCHR | 0666, 0x103), 0);
        ck_assert_int_eq(chmod(below(names[3][i]), 0666), 0);
        put(names[4][i], "#!/bin/sh\necho ran\n", 06755);
    }
    request.grant.read = gifts_list(one, 1);
    request.grant.write = gifts_list(other, 1);
    const int trees[] = {tree_of("read"), tree_of("write")};
    run_with_paths("files", &request, trees, 2, OUTCOME_EXITED, "");
    remove_folder();
}
END_TEST

/* The inner path is what is said of it, whichever comes first. */
START_TEST(inner_paths_lie_over_outer_ones)
{
    static char outer[] = "/data", inner[] = "/data/inner", *one[] = {inner}, *other[] = {outer};
    struct request request = gifts_request("python", WORDS_OF_ATTACKS
                                           "print(open('/data/inner/data').read(), end='')\n"
                                           "no('inner', lambda: open('/data/inner/data', 'r+'))\n"
                                           "no('new', lambda: open('/data/inner/x', 'w'))\n"
                                           "open('/data/x', 'w').close()\n");
    make_folder();
    request.grant.read = gifts_list(one, 1);
    request.grant.write = gifts_list(other, 1);
    const int trees[] = {tree_of("read/inner"), tree_of("write")};
    run_with_paths("files", &request, trees, 2, OUTCOME_EXITED, "inner\n");
    remove_folder();
}
END_TEST

static size_t count_mounts(void)
{
    char line[1024];
    size_t count = 0;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file))
        count += strstr(line, folder) != NULL;
    (void)fclose(file);
    return count;
}

/* On most hosts mounts are shared: what is mounted on one appears on all of its clones. */
START_TEST(mounts_of_a_run_stay_in_it)
{
    static char outer[] = "/data", inner[] = "/data/inner", *one[] = {inner}, *other[] = {outer};
    struct request request = gifts_request("bash", "cat /data/inner/data");
    make_folder();
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0); /* the host of this test */
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mount(folder, folder, NULL, MS_BIND, NULL), 0);
    ck_assert_int_eq(mount(NULL, folder, NULL, MS_SHARED, NULL), 0);
    ck_assert_uint_eq(count_mounts(), 1);
    request.grant.read = gifts_list(one, 1);
    request.grant.write = gifts_list(other, 1);
    const int trees[] = {tree_of("read/inner"), tree_of("write")};
    run_with_paths("files", &request, trees, 2, OUTCOME_EXITED, "inner\n");
    ck_assert_uint_eq(count_mounts(), 1);
    ck_assert_int_eq(umount2(folder, MNT_DETACH), 0);
    remove_folder();
}
END_TEST

/* A link that has come to lie on the way is not followed, and nothing is made in a host's folder. */
START_TEST(ways_to_a_path_are_walked_without_links)
{
    static char outer[] = "/data", linked[] = "/data/link/x", missing[] = "/data/missing";
    static char *others[] = {outer}, *inners[] = {linked, missing};
    struct request request = gifts_request("bash", "echo ran");
    make_folder();
    ck_assert_int_eq(symlink("/etc", below("write/link")), 0);
    for (int i = 0; i < 2; i++) {
        const int trees[] = {tree_of("read"), tree_of("write")};
        request.grant.read = gifts_list(&inners[i], 1);
        request.grant.write = gifts_list(others, 1);
        run_with_paths("files", &request, trees, 2, OUTCOME_SETUP_FAILED, "");
        ck_assert_int_ne(access(below("write/missing"), F_OK), 0);
    }
    remove_folder();
}
END_TEST

START_TEST(own_places_are_refused)
{
    static const char *const own[] = {
        "/",       "/usr",  "/etc",    "/proc/x", "/dev/null", "/run/x", "/run", "/run/secrets",
        "/sys/fs", "/code", "/code/x", "/work",   "/tmp",      "/var",   "/lib", "/bin"};
    make_folder();
    for (size_t i = 0; i < AR_COUNT(own); i++) {
        char *path = (char *)(uintptr_t)own[i];
        struct request request = gifts_request("bash", "echo ran");
        const int tree = tree_of("read");
        request.grant.read = gifts_list(&path, 1);
        run_with_paths("files", &request, &tree, 1, OUTCOME_SETUP_FAILED, "");
    }
    remove_folder();
}
END_TEST

/* ---- all of it -------------------------------------------------------------------------------- */

START_TEST(everything_goes_together)
{
    static char *one[] = {srv};
    struct executor executor = gifts_start("network files");
    struct executor_result result;
    struct request request = gifts_network_request(
        "bash", "cat /srv/catalogue/data /run/secrets/TOKEN; read -r line <&3; echo \" $line\"\n"
                "(exec 4<>/dev/tcp/127.0.0.1/3128) && echo connected\n"
                "cat </dev/tcp/127.0.0.1/3129; ls /proc/self/fd | wc -l\n");
    int pair[2];
    make_folder();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const int tree = tree_of("read");
    struct executor_gifts gifts = {
        .data_port = pair[1], .secrets = gifts_secrets("t", 1), .paths = &tree, .path_count = 1};
    request.grant.read = gifts_list(one, 1);
    gifts_grant_port(&request);
    gifts_grant_secrets(&request);
    ck_assert_int_eq(write(pair[0], "heard\n", 6), 6);
    ck_assert(executor_do_with(&executor, &request, &gifts, &result));
    ck_assert_str_eq(gifts_text(&result.out), "data\nt heard\nconnected\n5\n");
    gifts_expect_listener(result.listener);
    executor_result_free(&result);
    ck_assert(executor_stop(&executor));
    remove_folder();
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

static Suite *make_suite(void)
{
    static const TTest *const *const tests[] = {
        &paths_are_where_they_are_granted,
        &folders_lead_to_no_service,
        &inner_paths_lie_over_outer_ones,
        &mounts_of_a_run_stay_in_it,
        &ways_to_a_path_are_walked_without_links,
        &own_places_are_refused,
        &everything_goes_together,
    };
    Suite *suite = suite_create("host_paths");
    TCase *tcase = tcase_create("host_paths");
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    if (geteuid() != 0) {
        (void)puts("1..0 # SKIP only root has mounts to hand over");
        return 77;
    }
    gifts_find_program();
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
