/*
 * check_postgres_settings.c - what a connection string says of its hosts, and that connecting to one
 * of them keeps to it.
 */
#include "sinks/postgres_settings.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#define MOST_HOSTS 3

static struct postgres_settings *read_settings(const char *conninfo)
{
    struct postgres_settings *settings = NULL;
    ck_assert_int_eq(postgres_settings_new(conninfo, &settings), 0);
    return settings;
}

/* Without what the surroundings of the test say. */
static void clear_environment(void)
{
    static const char *const names[] = {"PGHOST", "PGHOSTADDR",        "PGPORT",
                                        "PGUSER", "PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS"};
    for (size_t i = 0; i < AR_COUNT(names); i++)
        ck_assert_int_eq(unsetenv(names[i]), 0);
}

static const struct {
    const char *conninfo;
    size_t count;
    struct postgres_host hosts[MOST_HOSTS];
    const char *names[MOST_HOSTS];
} strings[] = {
    {"host=a,b port=1,2", 2, {{"a", "", "1"}, {"b", "", "2"}}, {"a", "b"}},
    {"host=a,b,c port=7", 3, {{"a", "", "7"}, {"b", "", "7"}, {"c", "", "7"}}, {"a", "b", "c"}},
    {"postgresql://a:1,192.0.2.7:2/db", 2, {{"a", "", "1"}, {"192.0.2.7", "", "2"}}, {"a", NULL}},
    {"host=/run/a,@b,::1 port=1,2,3",
     3,
     {{"/run/a", "", "1"}, {"@b", "", "2"}, {"::1", "", "3"}},
     {NULL, NULL, NULL}},
    {"host=a,b hostaddr=192.0.2.1, port=4",
     2,
     {{"a", "192.0.2.1", "4"}, {"b", "", "4"}},
     {NULL, "b"}},
    {"hostaddr=192.0.2.1,192.0.2.2 port=4",
     2,
     {{"", "192.0.2.1", "4"}, {"", "192.0.2.2", "4"}},
     {NULL, NULL}},
    {"host=a,b port=,2", 2, {{"a", "", ""}, {"b", "", "2"}}, {"a", "b"}},
    {"dbname=x port=5", 1, {{"", "", "5"}}, {NULL}},
};

static void check_hosts(const struct postgres_settings *settings, size_t at)
{
    ck_assert_uint_eq(postgres_settings_hosts(settings), strings[at].count);
    for (size_t i = 0; i < strings[at].count; i++) {
        const struct postgres_host *host = postgres_settings_host(settings, i);
        ck_assert_str_eq(host->host, strings[at].hosts[i].host);
        ck_assert_str_eq(host->hostaddr, strings[at].hosts[i].hostaddr);
        ck_assert_str_eq(host->port, strings[at].hosts[i].port);
        ck_assert_pstr_eq(postgres_settings_name(settings, i), strings[at].names[i]);
    }
}

START_TEST(test_hosts)
{
    clear_environment();
    for (size_t i = 0; i < AR_COUNT(strings); i++) {
        struct postgres_settings *settings = read_settings(strings[i].conninfo);
        check_hosts(settings, i);
        postgres_settings_free(settings);
    }
}
END_TEST

START_TEST(test_hosts_of_the_surroundings)
{
    clear_environment();
    ck_assert_int_eq(setenv("PGHOST", "one,two", 1), 0);
    ck_assert_int_eq(setenv("PGPORT", "8", 1), 0);
    struct postgres_settings *settings = read_settings("dbname=x");
    ck_assert_uint_eq(postgres_settings_hosts(settings), 2);
    ck_assert_str_eq(postgres_settings_name(settings, 1), "two");
    ck_assert_str_eq(postgres_settings_host(settings, 1)->port, "8");
    postgres_settings_free(settings);
}
END_TEST

START_TEST(test_hosts_of_a_service)
{
    char path[] = "/tmp/auditrun-service-XXXXXX";
    static const char text[] = "[audit]\nhost=one,two\nport=1,2\nconnect_timeout=9\n";
    clear_environment();
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(setenv("PGSERVICEFILE", path, 1), 0);
    struct postgres_settings *settings = read_settings("service=audit");
    ck_assert_uint_eq(postgres_settings_hosts(settings), 2);
    ck_assert_str_eq(postgres_settings_name(settings, 1), "two");
    ck_assert_str_eq(postgres_settings_host(settings, 1)->port, "2");
    ck_assert_int_eq(postgres_settings_limit_ms(settings), 9000);
    postgres_settings_free(settings);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(test_limit)
{
    static const struct {
        const char *conninfo;
        int ms;
    } limits[] = {{"host=a", 3000},
                  {"host=a connect_timeout=1", 1000},
                  {"host=a connect_timeout=0", 3000},
                  {"host=a connect_timeout=-4", 3000},
                  {"host=a connect_timeout=99999999", 600000}};
    clear_environment();
    for (size_t i = 0; i < AR_COUNT(limits); i++) {
        struct postgres_settings *settings = read_settings(limits[i].conninfo);
        ck_assert_int_eq(postgres_settings_limit_ms(settings), limits[i].ms);
        postgres_settings_free(settings);
    }
}
END_TEST

/* What libpq does not understand fails when it is connected to, and not before. */
START_TEST(test_not_understood)
{
    static const char *const conninfos[] = {"not a connection string", "host=a,b,c port=1,2",
                                            "host=a hostaddr=1.2.3.4,1.2.3.5", "hots=a"};
    for (size_t i = 0; i < AR_COUNT(conninfos); i++) {
        struct postgres_settings *settings = read_settings(conninfos[i]);
        ck_assert_uint_eq(postgres_settings_hosts(settings), 1);
        ck_assert_ptr_null(postgres_settings_name(settings, 0));
        PGconn *pg = postgres_settings_start(settings, 0, NULL);
        ck_assert_int_eq(PQstatus(pg), CONNECTION_BAD);
        ck_assert_int_eq(PQsocket(pg), -1);
        PQfinish(pg);
        postgres_settings_free(settings);
    }
}
END_TEST

static void expect_option(PGconn *pg, const char *keyword, const char *value)
{
    PQconninfoOption *options = PQconninfo(pg);
    ck_assert_ptr_nonnull(options);
    for (const PQconninfoOption *one = options; one->keyword; one++)
        if (strcmp(one->keyword, keyword) == 0)
            ck_assert_msg(strcmp(one->val ? one->val : "", value) == 0, "%s: %s", keyword,
                          one->val);
    PQconninfoFree(options);
}

/* Of the string's hosts libpq is told of one; what must not be otherwise is not. */
START_TEST(test_start)
{
    clear_environment();
    struct postgres_settings *settings = read_settings(
        "host=a,/nowhere port=1,2 dbname=x user=u target_session_attrs=any keepalives_idle=5");
    PGconn *pg = postgres_settings_start(settings, 0, "127.0.0.1");
    expect_option(pg, "host", "a");
    expect_option(pg, "hostaddr", "127.0.0.1");
    expect_option(pg, "port", "1");
    expect_option(pg, "dbname", "x");
    expect_option(pg, "target_session_attrs", "read-write");
    expect_option(pg, "keepalives_idle", "5");
    expect_option(pg, "gssencmode", "disable");
    PQfinish(pg);
    pg = postgres_settings_start(settings, 1, NULL);
    expect_option(pg, "host", "/nowhere");
    expect_option(pg, "hostaddr", "");
    expect_option(pg, "port", "2");
    ck_assert_int_eq(PQstatus(pg), CONNECTION_BAD);
    PQfinish(pg);
    postgres_settings_free(settings);
    settings = read_settings("host=/nowhere target_session_attrs=primary");
    pg = postgres_settings_start(settings, 0, NULL);
    expect_option(pg, "target_session_attrs", "primary");
    PQfinish(pg);
    postgres_settings_free(settings);
}
END_TEST

static char *password_of(const char *passfile)
{
    char conninfo[256];
    (void)snprintf(conninfo, sizeof(conninfo), "host=/nowhere user=u dbname=d passfile=%s",
                   passfile);
    struct postgres_settings *settings = read_settings(conninfo);
    PGconn *pg = postgres_settings_start(settings, 0, NULL);
    const char *given = PQpass(pg);
    char *password = strdup(given ? given : "");
    PQfinish(pg);
    postgres_settings_free(settings);
    return password;
}

/* A file whose group may read it is refused, unless the service manager has put it there. */
START_TEST(test_password_of_the_service_manager)
{
    char folder[] = "/tmp/auditrun-credentials-XXXXXX", path[64];
    static const char text[] = "/nowhere:*:d:u:open sesame\n";
    clear_environment();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/passfile", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
    ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    AR_AUTO_FREE char *own = password_of(path);
    ck_assert_str_eq(own, "open sesame");
    ck_assert_int_eq(fchmod(fd, 0440), 0);
    AR_AUTO_FREE char *refused = password_of(path);
    ck_assert_str_eq(refused, "");
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
    AR_AUTO_FREE char *credential = password_of(path);
    ck_assert_str_eq(credential, "open sesame");
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", "/tmp/auditrun-cred", 1), 0);
    AR_AUTO_FREE char *other = password_of(path);
    ck_assert_str_eq(other, "");
    (void)close(fd);
    (void)unlink(path);
    (void)rmdir(folder);
}
END_TEST

static const TTest **const tests[] = {&test_hosts,
                                      &test_hosts_of_the_surroundings,
                                      &test_hosts_of_a_service,
                                      &test_limit,
                                      &test_not_understood,
                                      &test_start,
                                      &test_password_of_the_service_manager,
                                      NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"postgres_settings", tests}};
    return unit_main("postgres_settings", cases, AR_COUNT(cases));
}
