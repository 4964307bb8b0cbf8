/*
 * tls.c - see tls.h.
 */
#include "tests/lib/tls.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ARGUMENTS 32

void tls_path(const struct tls *tls, const char *name, char path[TLS_PATH_BYTES])
{
    (void)snprintf(path, TLS_PATH_BYTES, "%s/%s", tls->folder, name);
}

static void become_openssl(const struct tls *tls, const char *const *arguments)
{
    int fd = -1;
    if (chdir(tls->folder) == 0)
        fd = open("log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(126);
    (void)execvp("openssl", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static bool run(const struct tls *tls, const char *const *arguments)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        become_openssl(tls, arguments);
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    (void)fprintf(stderr, "test certificates: openssl %s has failed\n", arguments[1]);
    return false;
}

/* name.crt and name.key: signed by the authority, or by itself where there is none. */
static bool make(const struct tls *tls, const char *name, const char *subject, const char *names,
                 const char *authority)
{
    char certificate[32], key[32], by_certificate[32], by_key[32];
    (void)snprintf(certificate, sizeof(certificate), "%s.crt", name);
    (void)snprintf(key, sizeof(key), "%s.key", name);
    (void)snprintf(by_certificate, sizeof(by_certificate), "%s.crt", authority ? authority : "");
    (void)snprintf(by_key, sizeof(by_key), "%s.key", authority ? authority : "");
    const char *const arguments[ARGUMENTS] = {"openssl",
                                              "req",
                                              "-x509",
                                              "-newkey",
                                              "ec",
                                              "-pkeyopt",
                                              "ec_paramgen_curve:prime256v1",
                                              "-nodes",
                                              "-days",
                                              "2",
                                              "-subj",
                                              subject,
                                              "-out",
                                              certificate,
                                              "-keyout",
                                              key,
                                              "-addext",
                                              names,
                                              "-config",
                                              "config",
                                              authority ? "-CA" : NULL,
                                              by_certificate,
                                              "-CAkey",
                                              by_key,
                                              NULL};
    return run(tls, arguments);
}

/* The server runs as postgres when the test is root. */
static bool give_keys_away(const struct tls *tls)
{
    const struct passwd *user = getuid() == 0 ? getpwnam("postgres") : NULL;
    static const char *const names[] = {"server.key", "client.key", "other.key"};
    for (size_t i = 0; i < AR_COUNT(names); i++) {
        char path[TLS_PATH_BYTES];
        tls_path(tls, names[i], path);
        if (chmod(path, user ? 0640 : 0600) != 0 || (user && chown(path, 0, user->pw_gid) != 0))
            return false;
    }
    return chmod(tls->folder, 0711) == 0;
}

/* So that nothing of the machine's own settings is in the certificates. */
static bool write_config(const struct tls *tls)
{
    char path[TLS_PATH_BYTES];
    tls_path(tls, "config", path);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fputs("[req]\ndistinguished_name = name\n[name]\n", file) >= 0;
    return fclose(file) == 0 && written;
}

bool tls_begin(struct tls *tls)
{
    static const char is_authority[] = "basicConstraints=critical,CA:TRUE";
    static const char is_leaf[] = "subjectAltName=DNS:localhost";
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    (void)snprintf(tls->folder, sizeof(tls->folder), "%s/auditrun-tls-XXXXXX", base);
    if (!mkdtemp(tls->folder)) {
        tls->folder[0] = '\0';
        return false;
    }
    return write_config(tls) && make(tls, "ca", "/CN=test authority", is_authority, NULL) &&
           make(tls, "other-ca", "/CN=other authority", is_authority, NULL) &&
           make(tls, "server", "/CN=localhost", is_leaf, "ca") &&
           make(tls, "client", "/CN=tester", is_leaf, "ca") &&
           make(tls, "other", "/CN=tester", is_leaf, "other-ca") && give_keys_away(tls);
}

void tls_end(struct tls *tls)
{
    char pattern[TLS_PATH_BYTES];
    glob_t found;
    if (!tls->folder[0])
        return;
    tls_path(tls, "*", pattern);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            (void)unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    (void)rmdir(tls->folder);
}
