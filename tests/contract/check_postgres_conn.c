/*
 * check_postgres_conn.c - connecting to PostgreSQL: hosts that drop packets, refuse, say nothing or
 * take no writes; resolvers that hang; TLS, passwords, and the word for what is wrong.
 *
 * The names that end with ".test" are this program's: it has a getaddrinfo() of its own.
 */
#include "tests/lib/line.h"
#include "tests/lib/pair.h"
#include "tests/lib/processes.h"
#include "tests/lib/tls.h"
#include "tests/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <dlfcn.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define PASSWORD     "correct-horse"
#define PASSWORD_SQL "ALTER ROLE tester PASSWORD '" PASSWORD "'"

/* ---- names ---------------------------------------------------------------------------------- */

/* hang.test: no answer until the test lets go. here.test: this machine. two.test: an address where
 * nobody listens, and then this machine. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool let_go;
    unsigned hanging; /* how often it was asked for hang.test */
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static void hang(void)
{
    (void)pthread_mutex_lock(&names.lock);
    names.hanging++;
    while (!names.let_go)
        (void)pthread_cond_wait(&names.changed, &names.lock);
    (void)pthread_mutex_unlock(&names.lock);
}

static void let_go(void)
{
    (void)pthread_mutex_lock(&names.lock);
    names.let_go = true;
    (void)pthread_cond_broadcast(&names.changed);
    (void)pthread_mutex_unlock(&names.lock);
}

static int resolve_two(getaddrinfo_fn *real, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    struct addrinfo *second = NULL;
    int rc = real("127.0.0.9", service, hints, out);
    if (rc == 0)
        rc = real("127.0.0.1", service, hints, &second);
    if (rc == 0)
        (*out)->ai_next = second;
    return rc;
}

/* The C library's own names of the parameters are reserved. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict out)
{
    getaddrinfo_fn *real = NULL;
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&real, &found, sizeof(real));
    if (name && strcmp(name, "hang.test") == 0)
        hang();
    if (name && strcmp(name, "two.test") == 0)
        return resolve_two(real, service, hints, out);
    if (name && (strcmp(name, "hang.test") == 0 || strcmp(name, "here.test") == 0))
        name = "127.0.0.1";
    return real(name, service, hints, out);
}

/* ---- places --------------------------------------------------------------------------------- */

static struct tls tls;
static struct postgres_server *server; /* TCP, TLS; passwords and certificates on TCP */
static struct postgres_server *plain;  /* TCP, without TLS */
static struct pair pair;

static void start_servers(void)
{
    char certificate[TLS_PATH_BYTES], key[TLS_PATH_BYTES], authority[TLS_PATH_BYTES];
    ck_assert(tls_begin(&tls));
    tls_path(&tls, "server.crt", certificate);
    tls_path(&tls, "server.key", key);
    tls_path(&tls, "ca.crt", authority);
    AR_AUTO_FREE char *settings =
        line_text("ssl = on\nssl_cert_file = '%s'\nssl_key_file = '%s'\nssl_ca_file = '%s'\n",
                  certificate, key, authority);
    const struct postgres_options options = {
        .tcp = true,
        .settings = settings,
        .hba = "hostssl template1 all all cert\nhost all all all scram-sha-256"};
    const struct postgres_options none = {.tcp = true};
    server = postgres_start_with(&options);
    plain = postgres_start_with(&none);
    ck_assert(server && plain);
    ck_assert(postgres_run(postgres_url(server), PASSWORD_SQL));
}

static void stop_servers(void)
{
    postgres_free(server);
    postgres_free(plain);
    tls_end(&tls);
}

static void start_pair(void)
{
    ck_assert(pair_begin(&pair));
}

static void stop_pair(void)
{
    pair_end(&pair);
}

/* A port on 127.0.0.1: where nobody listens; where connections are taken but nothing is said; where
 * not even that is answered. */
enum place { NOBODY, SILENT, DROPS };

struct hole {
    int listener, filler[8];
    int port;
};

static int connect_without_waiting(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(fd, 0);
    (void)connect(fd, (const struct sockaddr *)address, sizeof(*address));
    return fd;
}

static struct hole open_hole(enum place place)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct hole hole = {.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ck_assert_int_eq(bind(hole.listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(getsockname(hole.listener, (struct sockaddr *)&address, &length), 0);
    hole.port = ntohs(address.sin_port);
    if (place != NOBODY)
        ck_assert_int_eq(listen(hole.listener, place == SILENT ? 16 : 0), 0);
    /* The queue of a listener is full with this: the kernel drops what comes next. */
    for (size_t i = 0; i < AR_COUNT(hole.filler); i++)
        hole.filler[i] = place == DROPS ? connect_without_waiting(&address) : -1;
    return hole;
}

static void close_hole(struct hole *hole)
{
    base_close(&hole->listener);
    for (size_t i = 0; i < AR_COUNT(hole->filler); i++)
        base_close(&hole->filler[i]);
}

/* ---- one host at a time --------------------------------------------------------------------- */

/* Whatever the first host does, the second one serves: at once, or after the first one's limit. */
START_TEST(test_next_host)
{
    static const struct {
        enum place place;
        int64_t least_ms, most_ms;
        const char *problem;
    } holes[] = {{NOBODY, 0, 900, "unreachable"},
                 {SILENT, 900, 1900, "timed_out"},
                 {DROPS, 900, 1900, "timed_out"}};
    for (size_t i = 0; i < AR_COUNT(holes); i++) {
        struct hole hole = open_hole(holes[i].place);
        int64_t took = line_expect_ready(
            line_text("host=127.0.0.1,%s port=%d,%d user=tester dbname=postgres connect_timeout=1",
                      postgres_folder(plain), hole.port, postgres_port(plain)));
        ck_assert_int_ge(took, holes[i].least_ms);
        ck_assert_int_le(took, holes[i].most_ms);
        took = line_expect_problem(line_text("host=127.0.0.1 port=%d connect_timeout=1", hole.port),
                                   holes[i].problem);
        ck_assert_int_ge(took, holes[i].least_ms);
        ck_assert_int_le(took, holes[i].most_ms);
        close_hole(&hole);
    }
}
END_TEST

/* Of several problems the one is told of that an operator can do something about. */
START_TEST(test_worst_problem)
{
    struct hole hole = open_hole(NOBODY);
    line_expect_problem(line_text("host=%s,127.0.0.1 port=%d,%d user=tester dbname=absent",
                                  postgres_folder(plain), postgres_port(plain), hole.port),
                        "no_database");
    line_expect_problem(line_text("host=127.0.0.1,nowhere.invalid port=%d", hole.port),
                        "unreachable");
    line_expect_problem(line_text("host=nowhere.invalid port=%d", hole.port), "unknown_name");
    line_expect_problem(line_text("host=127.0.0.1 port=1 sslmode=perhaps"), "settings");
    line_expect_problem(line_text("host=127.0.0.1,127.0.0.2 port=1,2,3"), "settings");
    line_expect_problem(line_text("host=127.0.0.1 hots=x"), "settings");
    line_expect_problem(line_text("host=/nowhere-at-all"), "unreachable");
    close_hole(&hole);
}
END_TEST

/* Each address of a name has its turn; what is given as an address is not asked for. */
START_TEST(test_addresses)
{
    static const char rest[] = "user=tester dbname=postgres connect_timeout=1";
    int port = postgres_port(plain);
    line_expect_ready(line_text("host=two.test port=%d %s", port, rest));
    line_expect_ready(line_text("host=here.test port=%d %s", port, rest));
    line_expect_ready(line_text("host=hang.test hostaddr=127.0.0.1 port=%d %s", port, rest));
    line_expect_ready(line_text("hostaddr=127.0.0.9,127.0.0.1 port=%d %s", port, rest));
    line_expect_ready(
        line_text("host=a,here.test hostaddr=127.0.0.9, port=%d,%d %s", port, port, rest));
    line_expect_ready(
        line_text("postgresql://tester@127.0.0.9:%d,here.test:%d/postgres", port, port));
}
END_TEST

static void tick(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    int64_t *ticks = context;
    int64_t now = processes_now_ms();
    if (now - ticks[0] > ticks[1])
        ticks[1] = now - ticks[0];
    ticks[0] = now;
}

/* A resolver that hangs costs its host the limit; the loop goes on, and so does the search. It is
 * not asked again as long as it hangs, and its answer is used when it comes. */
START_TEST(test_resolver_that_hangs)
{
    struct line line;
    int64_t ticks[2] = {processes_now_ms(), 0};
    const struct timeval every = {.tv_usec = 10000};
    AR_AUTO_FREE char *conninfo =
        line_text("host=hang.test port=%d user=tester dbname=postgres connect_timeout=1",
                  postgres_port(plain));
    line_open(&line, conninfo);
    struct event *ticker = event_new(line.base, -1, EV_PERSIST, tick, ticks);
    ck_assert_int_eq(event_add(ticker, &every), 0);
    for (unsigned round = 1; round <= 3; round++) {
        line_wait(&line);
        ck_assert(!line.is_ready);
        ck_assert_str_eq(postgres_conn_problem(line.conn), "timed_out");
        postgres_conn_hurry(line.conn);
    }
    ck_assert_int_lt(ticks[1], 500);
    event_free(ticker);
    ck_assert_uint_eq(names.hanging, 1);
    int64_t took = line_expect_ready(
        line_text("host=hang.test,127.0.0.1 port=%d user=tester dbname=postgres connect_timeout=1",
                  postgres_port(plain)));
    ck_assert_int_ge(took, 900);
    let_go();
    while (!line.is_ready)
        line_wait(&line);
    ck_assert_uint_eq(names.hanging, 2);
    line_close(&line);
}
END_TEST

/* The pause comes after a whole round, and grows. */
START_TEST(test_pause)
{
    struct line line;
    struct hole hole = open_hole(NOBODY);
    AR_AUTO_FREE char *conninfo =
        line_text("host=127.0.0.1,127.0.0.1,127.0.0.1 port=%d", hole.port);
    int64_t begin = processes_now_ms();
    line_open(&line, conninfo);
    for (int i = 0; i < 5; i++)
        line_wait(&line);
    ck_assert_int_ge(processes_now_ms() - begin, (100 + 200 + 400 + 800) / 2);
    ck_assert_uint_eq(line.lost, 5);
    line_close(&line);
    close_hole(&hole);
}
END_TEST

/* ---- sessions ------------------------------------------------------------------------------- */

/* What is set for the role does not make a COMMIT less than it has to be. */
START_TEST(test_session)
{
    struct line line;
    ck_assert(postgres_run(postgres_url(plain), "ALTER ROLE tester SET synchronous_commit = off;"
                                                "ALTER ROLE tester SET statement_timeout = 77"));
    line_open(&line, postgres_conninfo(plain));
    line_wait(&line);
    ck_assert_str_eq(line_ask(&line, "SHOW synchronous_commit"), "on");
    ck_assert_str_eq(line_ask(&line, "SHOW statement_timeout"), "0");
    ck_assert_str_eq(line_ask(&line, "SHOW application_name"), "auditrund");
    ck_assert_str_eq(line_ask(&line, "SHOW client_encoding"), "UTF8");
    line_close(&line);
    ck_assert(postgres_run(postgres_url(plain), "ALTER ROLE tester RESET ALL"));
}
END_TEST

/* Why a connection was lost is known until there is another one. */
START_TEST(test_lost_and_found)
{
    struct line line;
    line_open(&line, postgres_conninfo(plain));
    line_wait(&line);
    ck_assert_uint_eq(postgres_signal_backends(postgres_url(plain), "auditrund", SIGTERM), 1);
    line_wait(&line);
    ck_assert(!line.is_ready);
    ck_assert_str_eq(postgres_conn_problem(line.conn), "unavailable");
    line_wait(&line);
    ck_assert(line.is_ready);
    ck_assert_ptr_null(postgres_conn_problem(line.conn));
    postgres_conn_drop(line.conn);
    ck_assert_str_eq(postgres_conn_problem(line.conn), "timed_out");
    line_close(&line);
}
END_TEST

/* A full disk is told of until something is committed again. */
START_TEST(test_full_until_commit)
{
    struct line line;
    line_open(&line, postgres_conninfo(plain));
    line_wait(&line);
    (void)line_ask(&line, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'disk_full'; END $$");
    postgres_conn_fail(line.conn);
    line_wait(&line);
    line_wait(&line);
    ck_assert(line.is_ready);
    (void)line_ask(&line, "SELECT 1");
    ck_assert_str_eq(postgres_conn_problem(line.conn), "full");
    (void)line_ask(&line, "BEGIN");
    (void)line_ask(&line, "COMMIT");
    ck_assert_ptr_null(postgres_conn_problem(line.conn));
    line_close(&line);
}
END_TEST

/* ---- TLS and passwords ---------------------------------------------------------------------- */

/* folder/name with one line for the server, which may be read as the mode says. */
static char *write_passfile(const char *host, const char *password, mode_t mode)
{
    char path[TLS_PATH_BYTES];
    tls_path(&tls, "passfile", path);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "%s:%d:*:tester:%s\n", host, postgres_port(server), password),
                     0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
    return strdup(path);
}

START_TEST(test_passwords)
{
    int port = postgres_port(server);
    static const struct {
        const char *host, *password;
        mode_t mode;
        const char *problem; /* NULL: none */
    } files[] = {
        {"here.test", PASSWORD, 0600, NULL},
        {"127.0.0.1", PASSWORD, 0600, "no_password"},
        {"here.test", PASSWORD, 0644, "no_password"},
        {"here.test", "wrong-horse", 0600, "authentication"},
    };
    for (size_t i = 0; i < AR_COUNT(files); i++) {
        AR_AUTO_FREE char *path = write_passfile(files[i].host, files[i].password, files[i].mode);
        char *conninfo =
            line_text("host=here.test port=%d user=tester dbname=postgres passfile=%s", port, path);
        if (files[i].problem)
            line_expect_problem(conninfo, files[i].problem);
        else
            line_expect_ready(conninfo);
    }
    line_expect_problem(
        line_text("host=127.0.0.1 port=%d user=tester dbname=postgres passfile=/nowhere", port),
        "no_password");
    line_expect_problem(
        line_text("host=127.0.0.1 port=%d user=nobody dbname=postgres password=x", port),
        "authentication");
}
END_TEST

static char *with_tls(const char *host, const char *database, const char *authority,
                      const char *client)
{
    char root[TLS_PATH_BYTES], certificate[TLS_PATH_BYTES], key[TLS_PATH_BYTES], name[32];
    tls_path(&tls, authority, root);
    (void)snprintf(name, sizeof(name), "%s.crt", client);
    tls_path(&tls, name, certificate);
    (void)snprintf(name, sizeof(name), "%s.key", client);
    tls_path(&tls, name, key);
    return line_text("host=%s hostaddr=127.0.0.1 port=%d user=tester dbname=%s password=" PASSWORD
                     " sslmode=verify-full sslrootcert=%s sslcert=%s sslkey=%s",
                     host, postgres_port(server), database, root, certificate, key);
}

START_TEST(test_tls)
{
    line_expect_ready(with_tls("localhost", "postgres", "ca.crt", "none"));
    line_expect_problem(with_tls("localhost", "postgres", "other-ca.crt", "none"), "tls");
    line_expect_problem(with_tls("other.test", "postgres", "ca.crt", "none"), "tls");
    line_expect_problem(with_tls("localhost", "postgres", "missing.crt", "none"), "tls_file");
    line_expect_ready(with_tls("localhost", "template1", "ca.crt", "client"));
    line_expect_problem(with_tls("localhost", "template1", "ca.crt", "none"), "authentication");
    line_expect_problem(with_tls("localhost", "template1", "ca.crt", "other"), "tls");
    line_expect_problem(
        line_text("host=127.0.0.1 port=%d user=tester dbname=postgres sslmode=require",
                  postgres_port(plain)),
        "tls");
}
END_TEST

/* Whatever goes wrong, nothing of the connection string is written anywhere. */
START_TEST(test_secrecy)
{
    char path[] = "/tmp/auditrun-stderr-XXXXXX", text[4096];
    int fd = mkstemp(path);
    AR_AUTO_CLOSE int before = dup(2);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dup2(fd, 2), 2);
    line_expect_problem(
        line_text("host=127.0.0.1 port=%d user=tester password=hushhush dbname=postgres",
                  postgres_port(server)),
        "authentication");
    line_expect_problem(line_text("host=127.0.0.1 port=1 password=hushhush sslmode=x"), "settings");
    line_expect_problem(line_text("host=/nowhere user=hushhush password=hushhush"), "unreachable");
    line_expect_problem(line_text("password=hushhush hushhush"), "settings");
    ck_assert_int_eq(dup2(before, 2), 2);
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    ck_assert_int_ge(length, 0);
    text[length] = '\0';
    ck_assert_msg(!strstr(text, "hush"), "%s", text);
    (void)close(fd);
    (void)unlink(path);
}
END_TEST

/* ---- a server that takes writes ------------------------------------------------------------- */

START_TEST(test_writable_server)
{
    struct line line;
    char url[2 * POSTGRES_URL_BYTES];
    const char *standby = postgres_conninfo(pair.servers[PAIR_SECOND]);
    pair_url(&pair, url);
    line_expect_problem(strdup(standby), "read_only");
    line_expect_problem(line_text("%s target_session_attrs=any", standby), "read_only");
    line_expect_problem(line_text("%s target_session_attrs=primary", standby), "read_only");
    line_expect_ready(line_text(
        "host=%s,%s port=%d user=tester dbname=postgres target_session_attrs=primary",
        postgres_folder(pair.servers[PAIR_SECOND]), postgres_folder(pair.servers[PAIR_FIRST]),
        postgres_port(pair.servers[PAIR_FIRST])));
    line_open(&line, url + strlen("postgres:"));
    line_wait(&line);
    ck_assert(line.is_ready);
    ck_assert(pair_fail_over(&pair, PAIR_SECOND));
    while (!line.is_ready || strcmp(line_ask(&line, "SELECT pg_is_in_recovery()"), "f") != 0)
        line_wait(&line);
    line_close(&line);
}
END_TEST

static void add(Suite *suite, const char *name, SFun begin, SFun end, const TTest **const *tests,
                size_t count)
{
    TCase *tcase = tcase_create(name);
    tcase_add_unchecked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

int main(void)
{
    static const TTest **const alone[] = {
        &test_next_host, &test_worst_problem, &test_addresses,      &test_resolver_that_hangs,
        &test_pause,     &test_session,       &test_lost_and_found, &test_full_until_commit,
        &test_passwords, &test_tls,           &test_secrecy};
    static const TTest **const two[] = {&test_writable_server};
    Suite *suite = suite_create("postgres_conn");
    add(suite, "connecting", start_servers, stop_servers, alone, AR_COUNT(alone));
    add(suite, "pair", start_pair, stop_pair, two, AR_COUNT(two));
    return suite_run(suite);
}
