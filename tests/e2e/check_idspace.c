/*
 * check_idspace.c - a daemon that is not root, with the two capabilities of its unit: its slots have ids
 * of their own, and it has no privilege left.
 *
 * Root has to start it. In a mount namespace of its own it lays other files over /etc/passwd,
 * /etc/subuid and /etc/subgid, and each test becomes one of the users that are only there. The machine is
 * not changed. Where that cannot be done it says why and exits with 77.
 */
#include "tests/e2e/e2e.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define USER      59880u /* has ids, in two pieces */
#define NOBODY    59881u /* has none */
#define ROOTED    59882u /* was given root's */
#define SHORT     59883u /* has one */
#define FIRST_UID 1920000000u
#define FIRST_GID 1930000000u
#define CANNOT    77

static char folder[] = "/tmp/check-idspace.XXXXXX";

/* ---- the host as this test sees it -------------------------------------------------------------- */

static int cannot(const char *what)
{
    (void)printf("1..0 # SKIP the ids of an unprivileged daemon cannot be tried: %s\n", what);
    (void)fprintf(stderr, "check_idspace: SKIPPED: %s\n", what);
    return CANNOT;
}

/* What is there now and this text, in place of the file. */
static bool cover(const char *path, bool append, const char *text)
{
    static char whole[1 << 20];
    char cover_path[128];
    size_t length = 0;
    FILE *file = append ? fopen(path, "re") : NULL;
    if (file) {
        length = fread(whole, 1, sizeof(whole) - 4096, file);
        (void)fclose(file);
    }
    (void)snprintf(whole + length, sizeof(whole) - length, "%s", text);
    (void)snprintf(cover_path, sizeof(cover_path), "%s%s", folder, strrchr(path, '/'));
    AR_AUTO_CLOSE int fd = open(cover_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && write(fd, whole, strlen(whole)) == (ssize_t)strlen(whole) &&
           fchmod(fd, 0644) == 0 && mount(cover_path, path, NULL, MS_BIND, NULL) == 0;
}

static bool lay_out(void)
{
    char users[256], uids[256], gids[256];
    (void)snprintf(users, sizeof(users), "ar-ids:x:%u:%u::/:/bin/sh\n", USER, USER);
    (void)snprintf(uids, sizeof(uids), "root:1:9\n%u:%u:1\nar-ids:%u:50\n%u:0:1\n%u:%u:1\n", USER,
                   FIRST_UID, FIRST_UID + 100, ROOTED, SHORT, FIRST_UID + 500);
    (void)snprintf(gids, sizeof(gids), "ar-ids:%u:60\n%u:0:1\n%u:%u:1\n", FIRST_GID, ROOTED, SHORT,
                   FIRST_GID + 500);
    return chmod(folder, 0755) == 0 && mount("none", folder, "tmpfs", 0, "mode=755") == 0 &&
           cover("/etc/passwd", true, users) && cover("/etc/subuid", false, uids) &&
           cover("/etc/subgid", false, gids);
}

/* As systemd does it for User= and AmbientCapabilities=. */
static void become(uid_t id)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const uint32_t two = 1U << CAP_SETUID | 1U << CAP_SETGID;
    struct __user_cap_data_struct data[2] = {
        {.effective = two, .permitted = two, .inheritable = two}};
    traffic_hand_over(id);
    ck_assert_int_eq(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(setgroups(0, NULL), 0);
    ck_assert_int_eq(setresgid(id, id, id), 0);
    ck_assert_int_eq(setresuid(id, id, id), 0);
    ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
    ck_assert_int_eq(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETUID, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETGID, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

/* ---- helpers ------------------------------------------------------------------------------------ */

/* What follows this word at the beginning of a line of a file of the process. */
static void read_line(pid_t pid, const char *name, const char *begin, char line[256])
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    line[0] = '\0';
    while (fgets(line, 256, file) && strncmp(line, begin, strlen(begin)) != 0)
        line[0] = '\0';
    (void)fclose(file);
    size_t length = strlen(begin);
    ck_assert_uint_ge(strlen(line), length);
    memmove(line, line + length, strlen(line + length) + 1);
}

static void expect_ids(pid_t pid, const char *begin, unsigned id)
{
    char line[256];
    unsigned ids[4];
    read_line(pid, "status", begin, line);
    ck_assert_int_eq(sscanf(line, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(ids[i] == id, "%s %s", begin, line);
}

static void expect_map(pid_t pid, const char *name, unsigned id)
{
    char line[256];
    unsigned inside, outside, count;
    read_line(pid, name, "", line);
    ck_assert_int_eq(sscanf(line, "%u %u %u", &inside, &outside, &count), 3);
    ck_assert_uint_eq(inside, 1000);
    ck_assert_uint_eq(outside, id);
    ck_assert_uint_eq(count, 1);
}

static void expect_powerless(pid_t pid)
{
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
    char line[256];
    for (size_t i = 0; i < AR_COUNT(sets); i++) {
        read_line(pid, "status", sets[i], line);
        ck_assert_msg(strtoull(line, NULL, 16) == 0, "%s %s", sets[i], line);
    }
    read_line(pid, "status", "NoNewPrivs:", line);
    ck_assert_int_eq(strtol(line, NULL, 10), 1);
}

static void expect_log(const struct daemon *daemon, const char *words)
{
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    ck_assert_msg(strstr(log, words) != NULL, "%s", log);
}

/* Two runs that go on at the same time, each of which has said so. */
static void start_two(struct client *client)
{
    for (json_int_t id = 1; id <= 2; id++) {
        client_request(client, id, "run",
                       client_params("bash", "echo here; exec sleep 1000",
                                     "{'stream':true,'grant':{'limits':{'wall_ms':100000}}}"));
        AR_AUTO_JSON json_t *message = client_next(client);
        ck_assert_str_eq(json_string_value(json_object_get(message, "method")), "output");
    }
}

/* ---- tests -------------------------------------------------------------------------------------- */

/* Each is somebody else, in and out of its namespace, and can be ended by the daemon. */
START_TEST(each_slot_has_an_id_of_its_own)
{
    become(USER);
    struct daemon *daemon = daemon_new(&(struct daemon_options){0});
    expect_powerless(daemon_pid(daemon));
    expect_log(daemon, "slots get ids of their own: there are 51");
    struct client *client = daemon_connect(daemon);
    start_two(client);
    struct processes children = processes_children(daemon_pid(daemon));
    unsigned seen = 0;
    for (size_t i = 0; i < children.count; i++) {
        char line[256];
        const pid_t pid = children.items[i].pid;
        read_line(pid, "status", "Uid:", line);
        const unsigned uid = (unsigned)strtoul(line, NULL, 10);
        const unsigned slot = uid == FIRST_UID ? 0 : 1;
        expect_ids(pid, "Uid:", slot == 0 ? FIRST_UID : FIRST_UID + 100);
        expect_ids(pid, "Gid:", FIRST_GID + slot);
        expect_map(pid, "uid_map", uid);
        expect_map(pid, "gid_map", FIRST_GID + slot);
        seen |= 1U << slot;
    }
    ck_assert_uint_eq(seen, 3);
    processes_free(&children);
    for (json_int_t id = 1; id <= 2; id++)
        client_request(client, 10 + id, "cancel", json_pack("{s:I}", "request_id", id));
    for (json_int_t id = 1; id <= 2; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        client_expect(result, "cancelled", "client_cancelled");
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* It serves all the same, and says that runs are not apart from it. */
static void expect_without(uid_t user, const char *why)
{
    become(user);
    struct daemon *daemon = daemon_new(&(struct daemon_options){0});
    expect_powerless(daemon_pid(daemon));
    expect_log(daemon, why);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result = client_call(client, "run", client_params("bash", ":", NULL));
    client_expect(result, "succeeded", "exit_zero");
    AR_AUTO_JSON json_t *executors = client_call(client, "executors", NULL);
    AR_AUTO_FREE char *text = json_dumps(executors, JSON_COMPACT);
    ck_assert_msg(strstr(text, "\"host_uid\":\"the daemon's\"") != NULL, "%s", text);
    client_disconnect(client);
    daemon_free(daemon);
}

START_TEST(a_user_without_ids)
{
    expect_without(NOBODY, "/etc/subuid and /etc/subgid give its user no ids");
}
END_TEST

START_TEST(an_id_of_root_is_not_taken)
{
    expect_without(ROOTED, "gives it an id of root");
}
END_TEST

/* There is no second id: that slot is not filled, rather than by somebody else. */
START_TEST(a_slot_beyond_the_ids)
{
    become(SHORT);
    struct daemon *daemon = daemon_new(&(struct daemon_options){0});
    expect_log(daemon, "there are 1\n");
    struct client *client = daemon_connect(daemon);
    for (int i = 0; i < 4; i++) {
        AR_AUTO_JSON json_t *result = client_call(client, "run", client_params("bash", ":", NULL));
        const char *status = json_string_value(json_object_get(result, "status"));
        ck_assert_msg(strcmp(status, "succeeded") == 0 || strcmp(status, "provider_failed") == 0,
                      "%s", status);
        struct processes children = processes_children(daemon_pid(daemon));
        for (size_t j = 0; j < children.count; j++) {
            char line[256];
            read_line(children.items[j].pid, "status", "Uid:", line);
            const unsigned long uid = strtoul(line, NULL, 10);
            ck_assert_msg(uid == FIRST_UID + 500 || uid == SHORT || uid == 65534, "%s", line);
        }
        processes_free(&children);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

static int run_suite(void)
{
    static const TTest **const tests[] = {&each_slot_has_an_id_of_its_own, &a_user_without_ids,
                                          &an_id_of_root_is_not_taken, &a_slot_beyond_the_ids,
                                          NULL};
    return e2e_main("idspace", tests);
}

int main(void)
{
    if (geteuid() != 0)
        return cannot("it takes root");
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return cannot("there is no mount namespace to be had");
    if (!mkdtemp(folder))
        return cannot("there is no folder to be had");
    int status = lay_out() ? run_suite() : cannot("files cannot be covered");
    (void)umount2("/etc/passwd", MNT_DETACH);
    (void)umount2("/etc/subuid", MNT_DETACH);
    (void)umount2("/etc/subgid", MNT_DETACH);
    (void)umount2(folder, MNT_DETACH);
    (void)rmdir(folder);
    return status;
}
