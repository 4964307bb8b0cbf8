/*
 * gifts.c - runs of the namespace executor with what a grant can give, handed over by the test itself.
 */
#include "tests/lib/gifts.h"

#include "protocol/secret_file.h"

#include <arpa/inet.h>
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static char program[PATH_MAX], languages[PATH_MAX];

void gifts_find_program(void)
{
    const char *build = getenv("AUDITRUN_BUILD"), *source = getenv("AUDITRUN_SOURCE");
    (void)snprintf(program, sizeof(program), "%s/auditrun-executor-namespace",
                   build ? build : "build");
    (void)snprintf(languages, sizeof(languages), "%s/etc/languages.d", source ? source : ".");
}

struct text_list gifts_list(char **items, size_t count)
{
    return (struct text_list){.items = items, .count = count};
}

struct request gifts_request(const char *language, const char *code)
{
    return (struct request){.language = (char *)(uintptr_t)language,
                            .code = {.data = (char *)(uintptr_t)code, .length = strlen(code)},
                            .grant = {.network = NETWORK_NONE}};
}

static struct executor start(const char *reach, const char *directory)
{
    const char *words[] = {program, "--uid-base", GIFTS_UID_BASE, "--languages", directory, NULL};
    struct executor executor;
    ck_assert_msg(executor_start_reaching(&executor, words, GIFTS_SLOT, reach),
                  "the provider is not ready");
    return executor;
}

struct executor gifts_start(const char *reach)
{
    return start(reach, languages);
}

struct executor gifts_start_language(const char *section)
{
    char directory[] = "/tmp/auditrun-languages-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/one.conf", directory);
    FILE *file = fopen(path, "we");
    ck_assert(file && fputs(section, file) >= 0 && fclose(file) == 0);
    struct executor executor = start("", directory);
    ck_assert(unlink(path) == 0 && rmdir(directory) == 0);
    return executor;
}

const char *gifts_text(const struct bytes *bytes)
{
    return bytes->data ? bytes->data : "";
}

/* Does a run, and checks its end and what it printed. *listener: as handed over, owned (or -1). */
void gifts_expect(struct executor *executor, const struct request *request,
                  const struct executor_gifts *gifts, enum outcome outcome, const char *out,
                  int *listener)
{
    struct executor_result result;
    ck_assert_msg(executor_do_with(executor, request, gifts, &result),
                  "there is no report in time");
    ck_assert_msg(result.report.outcome == outcome, "%s, not %s; stderr: %.900s",
                  outcome_word(result.report.outcome), outcome_word(outcome),
                  gifts_text(&result.err));
    ck_assert_msg(outcome != OUTCOME_EXITED || result.report.exit_code == 0,
                  "exit %d, stderr: %.900s", result.report.exit_code, gifts_text(&result.err));
    ck_assert_str_eq(gifts_text(&result.out), out);
    if (listener) {
        *listener = result.listener;
        result.listener = -1;
    }
    executor_result_free(&result);
}

static char method[] = "invoices.read", *methods[] = {method};

void gifts_grant_port(struct request *request)
{
    request->grant.data_api = gifts_list(methods, 1);
}

static char key[] = "BILLING_KEY", token[] = "TOKEN", *secrets[] = {key, token},
            *env_secrets[] = {token};

/* A memory file with these two; the value of the second is of this length. */
int gifts_secrets(const char *value, size_t length)
{
    char head[SECRET_HEAD_BYTES];
    int fd = memfd_create("secrets", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    secret_file_head(key, strlen(GIFTS_VALUE), head);
    ck_assert_int_gt(write(fd, head, strlen(head)), 0);
    ck_assert_int_gt(write(fd, GIFTS_VALUE, strlen(GIFTS_VALUE)), 0);
    secret_file_head(token, length, head);
    ck_assert_int_gt(write(fd, head, strlen(head)), 0);
    ck_assert_int_eq(write(fd, value, length), (ssize_t)length);
    return fd;
}

void gifts_expect_wiped(int fd)
{
    char text[4096];
    ssize_t length = pread(fd, text, sizeof(text), 0);
    ck_assert_int_ge(length, 0);
    for (ssize_t i = 0; i < length; i++)
        ck_assert_msg(text[i] == '\0', "byte %zd is there", i);
}

void gifts_grant_secrets(struct request *request)
{
    request->grant.secrets = gifts_list(secrets, 2);
    request->grant.secrets_env = gifts_list(env_secrets, 1);
}

void gifts_expect_listener(int listener)
{
    int value = 0;
    struct sockaddr_in here = {0};
    socklen_t length = sizeof(value);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &value, &length), 0);
    ck_assert_int_eq(value, 1);
    length = sizeof(here);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&here, &length), 0);
    ck_assert_int_eq(ntohs(here.sin_port), 3128);
    ck_assert_uint_eq(ntohl(here.sin_addr.s_addr), INADDR_LOOPBACK);
}

struct request gifts_network_request(const char *language, const char *code)
{
    struct request request = gifts_request(language, code);
    request.grant.network = NETWORK_OPEN;
    return request;
}
