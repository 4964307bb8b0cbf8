/*
 * traffic.c - see traffic.h. The folder's name is handed on in the environment, since Check runs each
 * test in a process of its own.
 */
#include "tests/lib/traffic.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define TRAFFIC_VARIABLE "AUDITRUN_TEST_TRAFFIC"

void traffic_begin(void)
{
    char path[] = "/tmp/auditrun-traffic-XXXXXX";
    /* Not in a test: Check cannot assert here. */
    if (!mkdtemp(path) || setenv(TRAFFIC_VARIABLE, path, 1) != 0)
        abort();
}

void traffic_keep(const char *schema, const char *text)
{
    const char *folder = getenv(TRAFFIC_VARIABLE);
    AR_AUTO_FREE char *path = NULL;
    AR_AUTO_FREE char *line = NULL;
    if (!folder)
        return;
    ck_assert_int_gt(asprintf(&path, "%s/%s", folder, schema), 0);
    int length = asprintf(&line, "%s\n", text);
    ck_assert_int_gt(length, 0);
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, line, (size_t)length), length);
}

void traffic_keep_value(const char *schema, const json_t *value)
{
    AR_AUTO_FREE char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_ptr_nonnull(text);
    traffic_keep(schema, text);
}

/* The exit status of the validator, with the file as its input. */
static int validate(const char *path, const char *schema)
{
    AR_AUTO_FREE char *program = NULL;
    const char *source = getenv("AUDITRUN_SOURCE");
    int status = 0;
    AR_AUTO_CLOSE int input = open(path, O_RDONLY | O_CLOEXEC);
    if (input < 0 ||
        asprintf(&program, "%s/tests/tools/validate-schema", source ? source : ".") < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(input, 0) == 0)
            execl(program, program, schema, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Validates one file and removes it. */
static int check_file(const char *folder, const char *schema)
{
    AR_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, schema) < 0)
        return -1;
    int rc = validate(path, schema);
    if (rc != 0)
        (void)fprintf(stderr, "traffic: not all is as %s.schema.json says (%d)\n", schema, rc);
    (void)unlink(path);
    return rc;
}

void traffic_hand_over(uid_t user)
{
    const char *folder = getenv(TRAFFIC_VARIABLE);
    struct dirent *entry;
    DIR *directory = folder ? opendir(folder) : NULL;
    while (directory && (entry = readdir(directory)))
        if (strcmp(entry->d_name, "..") != 0)
            ck_assert_int_eq(
                fchownat(dirfd(directory), entry->d_name, user, (gid_t)-1, AT_SYMLINK_NOFOLLOW), 0);
    if (directory)
        (void)closedir(directory);
}

int traffic_check(void)
{
    const char *folder = getenv(TRAFFIC_VARIABLE);
    struct dirent *entry;
    int bad = 0, files = 0;
    DIR *directory = folder ? opendir(folder) : NULL;
    while (directory && (entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        files++;
        bad += check_file(folder, entry->d_name) != 0;
    }
    if (directory)
        (void)closedir(directory);
    if (folder)
        (void)rmdir(folder);
    return bad == 0 && files > 0 ? 0 : 1;
}
