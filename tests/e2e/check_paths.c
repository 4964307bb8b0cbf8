/*
 * check_paths.c - folders and files of the host that are granted: C10, C16 and C18 of the cases from the
 * field, and links that are swapped while runs start.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/host.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#define OWNER     4711 /* of the outbox, on the host */
#define SWAP_RUNS 40

struct host {
    struct daemon *daemon;
    struct client *client;
    char *read, *write; /* the roots */
};

static char *below(const char *root, const char *name)
{
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/%s", root, name), 0);
    return path;
}

static void put(const char *root, const char *name, const char *text, mode_t mode)
{
    AR_AUTO_FREE char *path = below(root, name);
    daemon_write_file(path, text, mode);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static struct host begin(void)
{
    struct host host = {.daemon = daemon_prepare(&(struct daemon_options){0})};
    AR_AUTO_FREE char *config = NULL;
    host.read = daemon_path(host.daemon, "catalogue");
    host.write = daemon_path(host.daemon, "outbox");
    ck_assert_int_eq(chmod(daemon_folder(host.daemon), 0755), 0);
    ck_assert_int_eq(mkdir(host.read, 0755), 0);
    ck_assert_int_eq(mkdir(host.write, 0700), 0);
    ck_assert_int_eq(chown(host.write, OWNER, OWNER), 0);
    put(host.read, "prices", "apples 3\n", 0644);
    ck_assert_int_gt(
        asprintf(&config, "[company acme]\nread = %s\nwrite = %s\n", host.read, host.write), 0);
    daemon_configure(host.daemon, config);
    daemon_start_again(host.daemon);
    host.client = daemon_connect(host.daemon);
    return host;
}

static void end(struct host *host)
{
    client_disconnect(host->client);
    daemon_free(host->daemon);
    free(host->read);
    free(host->write);
}

static json_t *params(const char *language, const char *code, const char *read, const char *write)
{
    json_t *params = client_params(language, code, NULL);
    json_t *grant = json_pack("{s:{s:[s*], s:[s*]}}", "filesystem", "read", read, "write", write);
    ck_assert_ptr_nonnull(grant);
    ck_assert_int_eq(json_object_set_new(params, "grant", grant), 0);
    return params;
}

/* Runs it with both roots, in which the code goes to by $1 and $2. */
static json_t *run(const struct host *host, const char *language, const char *code)
{
    json_t *both = params(language, code, host->read, host->write);
    json_t *args = json_pack("[s, s]", host->read, host->write);
    ck_assert_int_eq(json_object_set_new(both, "args", args), 0);
    return client_call(host->client, "run", both);
}

static void expect_output(const struct host *host, const char *language, const char *code,
                          const char *output)
{
    AR_AUTO_JSON json_t *result = run(host, language, code);
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_msg(strcmp(e2e_stdout(result), output) == 0, "%.3000s\n%.2000s", e2e_stdout(result),
                  e2e_text(result, "stderr"));
    rows_expect_result(daemon_ledger(host->daemon), result);
}

/* ---- reading and writing ---------------------------------------------------------------------- */

static const char using_code[] =
    "cat \"$1/prices\"; ls \"$1\"\n"
    "(echo more >>\"$1/prices\") 2>/dev/null || echo read-only\n"
    "rm -f \"$1/prices\" 2>/dev/null; touch \"$1/new\" 2>/dev/null || echo as well\n"
    "echo mine >\"$2/order\"; cat \"$2/order\"; mkdir -p \"$2/a/b\"; echo deep >\"$2/a/b/c\"\n"
    "stat -c '%U %a' \"$2/order\"\n"
    "cp /bin/true \"$2/tool\"; chmod 755 \"$2/tool\"; \"$2/tool\" 2>/dev/null || echo not run\n"
    "sync \"$2/order\" && echo on the disk\n";

START_TEST(read_and_written)
{
    struct host host = begin();
    expect_output(
        &host, "bash", using_code,
        "apples 3\nprices\nread-only\nas well\nmine\nsandbox 644\nnot run\non the disk\n");
    struct stat status;
    AR_AUTO_FREE char *order = below(host.write, "order");
    AR_AUTO_FREE char *deep = below(host.write, "a/b/c");
    AR_AUTO_FREE char *text = daemon_read_file(deep);
    ck_assert_int_eq(stat(order, &status), 0);
    ck_assert_uint_eq(status.st_uid, OWNER); /* as the folder's, on the disk */
    ck_assert_uint_eq(status.st_gid, OWNER);
    ck_assert_str_eq(text, "deep\n");
    /* The next run sees what is on the disk, and none of the places of the last. */
    AR_AUTO_JSON json_t *plain = client_call(
        host.client, "run", client_params("bash", "ls -d /tmp/* /srv 2>/dev/null; true", NULL));
    client_expect(plain, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(plain), "");
    end(&host);
}
END_TEST

START_TEST(one_file_alone)
{
    struct host host = begin();
    AR_AUTO_FREE char *prices = below(host.read, "prices");
    put(host.read, "other", "secret\n", 0644);
    json_t *one = params("bash", "cat \"$1\"; ls \"${1%/*}\"", prices, NULL);
    ck_assert_int_eq(json_object_set_new(one, "args", json_pack("[s]", prices)), 0);
    AR_AUTO_JSON json_t *result = client_call(host.client, "run", one);
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "apples 3\nprices\n");
    end(&host);
}
END_TEST

/* In whatever order they are asked for. */
START_TEST(each_is_where_it_is_named)
{
    static const char *const names[] = {"b", "c", "a"};
    struct host host = begin();
    json_t *list = json_array();
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        AR_AUTO_FREE char *path = below(host.read, names[i]);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        put(path, "name", names[i], 0644);
        ck_assert_int_eq(json_array_append_new(list, json_string(path)), 0);
    }
    json_t *three = client_params("bash", "cat \"$1\"/{a,b,c}/name", NULL);
    json_t *grant = json_pack("{s:{s:o}}", "filesystem", "read", list);
    ck_assert_int_eq(json_object_set_new(three, "grant", grant), 0);
    ck_assert_int_eq(json_object_set_new(three, "args", json_pack("[s]", host.read)), 0);
    AR_AUTO_JSON json_t *result = client_call(host.client, "run", three);
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "abc");
    end(&host);
}
END_TEST

/* ---- what is not there (admission) ------------------------------------------------------------ */

START_TEST(what_is_not_there_is_denied)
{
    static const char *const names[] = {"missing", "link", "up/passwd", "fifo", "socket"};
    struct host host = begin();
    AR_AUTO_FREE char *link = below(host.read, "link");
    AR_AUTO_FREE char *up = below(host.read, "up");
    AR_AUTO_FREE char *fifo = below(host.read, "fifo");
    ck_assert_int_eq(symlink("prices", link), 0);
    ck_assert_int_eq(symlink("/etc", up), 0);
    ck_assert_int_eq(mkfifo(fifo, 0666), 0);
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        AR_AUTO_FREE char *path = below(host.read, names[i]);
        AR_AUTO_JSON json_t *result =
            client_call(host.client, "run", params("bash", "true", path, NULL));
        AR_AUTO_JSON json_t *expected = json_pack("[{s:s, s:[s], s:n}]", "demand",
                                                  "filesystem.read", "requested", path, "offered");
        client_expect(result, "capability_denied", "not_enforceable");
        ck_assert(json_equal(json_object_get(result, "denials"), expected));
        rows_expect_result(daemon_ledger(host.daemon), result);
    }
    end(&host);
}
END_TEST

/* Its owner is who the code is there; the group may be any, and a folder of root's is nobody's. */
START_TEST(written_by_its_owner_or_not_at_all)
{
    struct host host = begin();
    struct stat status;
    AR_AUTO_FREE char *group = below(host.write, "group");
    AR_AUTO_FREE char *roots = below(host.write, "roots");
    AR_AUTO_FREE char *made = below(group, "made");
    ck_assert_int_eq(mkdir(group, 0700), 0);
    ck_assert_int_eq(chown(group, OWNER, 0), 0);
    ck_assert_int_eq(mkdir(roots, 0777), 0);
    ck_assert_int_eq(chmod(roots, 01777), 0);
    json_t *write = params("bash", "echo x >\"$1/made\"", NULL, group);
    ck_assert_int_eq(json_object_set_new(write, "args", json_pack("[s]", group)), 0);
    AR_AUTO_JSON json_t *result = client_call(host.client, "run", write);
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_int_eq(stat(made, &status), 0);
    ck_assert_uint_eq(status.st_uid, OWNER);
    AR_AUTO_JSON json_t *denied =
        client_call(host.client, "run", params("bash", "true", NULL, roots));
    AR_AUTO_JSON json_t *expected = json_pack("[{s:s, s:[s], s:n}]", "demand", "filesystem.write",
                                              "requested", roots, "offered");
    client_expect(denied, "capability_denied", "not_enforceable");
    ck_assert(json_equal(json_object_get(denied, "denials"), expected));
    end(&host);
}
END_TEST

/* Somebody on the host swaps a granted folder for a link, over and over, while runs start. */
static pid_t swap(const char *folder, const char *aside, const char *link)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (;;)
        if (rename(folder, aside) < 0 || rename(link, folder) < 0 || rename(folder, link) < 0 ||
            rename(aside, folder) < 0)
            _exit(1);
}

START_TEST(a_swapped_link_gains_nothing)
{
    struct host host = begin();
    AR_AUTO_FREE char *folder = below(host.read, "folder");
    AR_AUTO_FREE char *aside = below(host.read, "aside");
    AR_AUTO_FREE char *link = below(host.read, "link");
    size_t read = 0;
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    put(folder, "passwd", "mine\n", 0644);
    ck_assert_int_eq(symlink("/etc", link), 0);
    pid_t swapper = swap(folder, aside, link);
    for (int i = 0; i < SWAP_RUNS; i++) {
        json_t *one = params("bash", "cat \"$1/passwd\"", folder, NULL);
        ck_assert_int_eq(json_object_set_new(one, "args", json_pack("[s]", folder)), 0);
        AR_AUTO_JSON json_t *result = client_call(host.client, "run", one);
        const char *status = json_string_value(json_object_get(result, "status"));
        if (strcmp(status, "succeeded") != 0)
            continue; /* it was a link, or nothing, at that moment */
        ck_assert_str_eq(e2e_stdout(result), "mine\n");
        read++;
    }
    ck_assert_int_eq(kill(swapper, SIGKILL), 0);
    ck_assert_int_eq(waitpid(swapper, NULL, 0), swapper);
    ck_assert_uint_gt(read, 0);
    end(&host);
}
END_TEST

/* ---- things in a granted folder (C18) --------------------------------------------------------- */

static int listen_at(const char *path, int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(chmod(path, 0777), 0);
    if (type == SOCK_STREAM)
        ck_assert_int_eq(listen(fd, 4), 0);
    return fd;
}

static const char knocking_code[] =
    "import os, socket, stat, sys\n"
    "def attempt(name, action):\n"
    "    try:\n        action()\n        print('through:', name)\n"
    "    except OSError:\n        pass\n"
    "def unix(kind, path, act):\n"
    "    return lambda: act(socket.socket(socket.AF_UNIX, kind), path)\n"
    "def pair(kind, path):\n"
    "    one, two = socket.socketpair(socket.AF_UNIX, kind)\n"
    "    one.sendto(b'x', path)\n"
    "for root in sys.argv[1:]:\n"
    "    for name in ('stream', 'datagram'):\n"
    "        path = root + '/' + name\n"
    "        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):\n"
    "            attempt('connect ' + path, unix(kind, path, lambda s, p: s.connect(p)))\n"
    "            attempt('sendto ' + path, unix(kind, path, lambda s, p: s.sendto(b'x', p)))\n"
    "        attempt('pair ' + path, lambda: pair(socket.SOCK_DGRAM, path))\n"
    "    attempt('fifo', lambda: os.open(root + '/fifo', os.O_WRONLY | os.O_NONBLOCK))\n"
    "    attempt('device', lambda: os.open(root + '/device', os.O_RDONLY))\n"
    "    attempt('suid', lambda: os.chmod(root + '/plain', 0o4755))\n"
    "    attempt('sgid', lambda: os.open(root + '/sgid', os.O_CREAT | os.O_WRONLY, 0o2755))\n"
    "    print(sorted(os.listdir(root + '/mounted')))\n"
    "    print(os.stat(root + '/suid').st_uid == os.getuid())\n"
    "one, two = socket.socketpair(); one.send(b'x'); print(two.recv(1))\n";

/* What a host may have lying about. Returns how many sockets are listened on. */
static void lay_about(const char *root, int fds[3])
{
    AR_AUTO_FREE char *stream = below(root, "stream");
    AR_AUTO_FREE char *datagram = below(root, "datagram");
    AR_AUTO_FREE char *fifo = below(root, "fifo");
    AR_AUTO_FREE char *device = below(root, "device");
    AR_AUTO_FREE char *mounted = below(root, "mounted");
    fds[0] = listen_at(stream, SOCK_STREAM);
    fds[1] = listen_at(datagram, SOCK_DGRAM);
    ck_assert_int_eq(mkfifo(fifo, 0666), 0);
    ck_assert_int_eq(chmod(fifo, 0666), 0);
    fds[2] = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(mknod(device, S_IFCHR | 0666, makedev(1, 8)), 0);
    ck_assert_int_eq(chmod(device, 0666), 0);
    put(root, "suid", "#!/bin/sh\nid -u\n", 04755);
    put(root, "plain", "plain", 0666);
    ck_assert_int_eq(mkdir(mounted, 0755), 0);
    ck_assert_int_eq(mount("canary", mounted, "tmpfs", 0, "size=64k"), 0);
    put(mounted, "inner", "not granted", 0644);
}

static void take_away(const char *root, const int fds[3])
{
    AR_AUTO_FREE char *mounted = below(root, "mounted");
    char byte;
    ck_assert_int_lt(accept(fds[0], NULL, NULL), 0); /* nobody has come */
    ck_assert_int_lt(recv(fds[1], &byte, 1, 0), 0);
    ck_assert_int_le(read(fds[2], &byte, 1), 0);
    for (int i = 0; i < 3; i++)
        (void)close(fds[i]);
    ck_assert_int_eq(umount(mounted), 0);
}

START_TEST(data_only)
{
    struct host host = begin();
    int read[3], write[3];
    lay_about(host.read, read);
    lay_about(host.write, write);
    expect_output(&host, "python", knocking_code,
                  "[]\nFalse\n"
                  "[]\nFalse\n"
                  "b'x'\n");
    take_away(host.read, read);
    take_away(host.write, write);
    end(&host);
}
END_TEST

/* ---- what code leaves there (C16) ------------------------------------------------------------- */

static const char leaving_code[] =
    "import os, sys\n"
    "root = sys.argv[2]\n"
    "os.symlink('/etc/passwd', root + '/link'); os.symlink('/', root + '/top')\n"
    "os.symlink(sys.argv[1], root + '/catalogue')\n"
    "os.mkdir(root + '/shut'); open(root + '/shut/in', 'w').write('x'); os.chmod(root + '/shut', "
    "0)\n"
    "open(root + '/' + 'n' * 254 + '\\n', 'w')\n"
    "open(root + '/one', 'w').write('x'); os.link(root + '/one', root + '/two')\n"
    "print(len(os.listdir(root)))\n";

START_TEST(nothing_is_tidied_up_there)
{
    struct host host = begin();
    struct stat before, after, shut;
    AR_AUTO_FREE char *path = below(host.write, "shut");
    AR_AUTO_FREE char *two = below(host.write, "two");
    ck_assert_int_eq(stat("/etc/passwd", &before), 0);
    expect_output(&host, "python", leaving_code, "7\n");
    ck_assert_int_eq(stat("/etc/passwd", &after), 0);
    ck_assert_int_eq(memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim), 0);
    ck_assert_uint_eq(before.st_mode, after.st_mode);
    ck_assert_int_eq(stat(path, &shut), 0);
    ck_assert_uint_eq(shut.st_mode & 07777, 0);
    ck_assert_uint_eq(shut.st_uid, OWNER);
    ck_assert_int_eq(stat(two, &shut), 0);
    ck_assert_uint_eq(shut.st_nlink, 2);
    end(&host);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {
        &read_and_written,
        &one_file_alone,
        &each_is_where_it_is_named,
        &what_is_not_there_is_denied,
        &written_by_its_owner_or_not_at_all,
        &a_swapped_link_gains_nothing,
        &data_only,
        &nothing_is_tidied_up_there,
        NULL,
    };
    if (geteuid() != 0) {
        (void)fprintf(stderr, "SKIPPED: only root can give host paths\n");
        return 77;
    }
    return e2e_main("paths", tests);
}
