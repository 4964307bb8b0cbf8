/*
 * check_schema.c - the PostgreSQL schema itself: how it is made and brought up to date, and its
 * partitions. On a real server.
 */
#include "sinks/schema.h"
#include "tests/lib/database.h"
#include "tests/suite.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NOT_ALLOWED   "42501"
#define DEPENDENT     "2BP01"
#define NOT_SUPPORTED "0A000"
#define INVALID_TABLE "42P16"
#define NEWEST        9
#define THREADS       6
#define LOGIN_ROLES_SQL                            \
    "CREATE ROLE may_make_roles LOGIN CREATEROLE;" \
    "CREATE ROLE may_make_nothing LOGIN"

static struct postgres_server *server; /* one for all tests of this program */

static void start_server(void)
{
    struct database database;
    server = postgres_start();
    ck_assert_ptr_nonnull(server);
    database_begin(&database, server);
    database_run(database.pg, LOGIN_ROLES_SQL);
    database_end(&database);
}

static void stop_server(void)
{
    postgres_free(server);
    server = NULL;
}

static struct schema_status status_of(const char *url)
{
    struct schema_status status;
    char message[SCHEMA_MESSAGE_BYTES];
    int rc = schema_status(url, &status, message);
    ck_assert_msg(rc == 0, "schema_status: %d, %s", rc, message);
    return status;
}

/* ---- init and status ------------------------------------------------------------------------ */

START_TEST(test_init_again_changes_nothing)
{
    struct database database;
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    database_begin(&database, server);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(schema_init(database.url, &applied, message), 0);
        ck_assert_int_eq(applied, 0);
        ck_assert_str_eq(message, "");
    }
    struct schema_status status = status_of(database.url);
    ck_assert_int_eq(status.version, NEWEST);
    ck_assert_int_eq(status.newest, NEWEST);
    ck_assert(!status.differs);
    ck_assert(status.has_partitions);
    ck_assert_str_eq(status.partition_width, "week");
    ck_assert_int_eq(status.partitions, 5);
    ck_assert_uint_eq(strlen(status.partitions_until), ROW_TIME_BYTES - 1);
    ck_assert_int_eq(status.rows_in_default, 0);
    ck_assert_uint_eq(status.roles_missing.count, 0);
    ck_assert_uint_eq(status.event_triggers_missing.count, 0);
    ck_assert_uint_eq(status.changes.count, 0);
    schema_status_free(&status);
    database_end(&database);
}
END_TEST

START_TEST(test_status_of_nothing)
{
    struct database database;
    struct schema_status status;
    char message[SCHEMA_MESSAGE_BYTES];
    database_begin_empty(&database, server);
    status = status_of(database.url);
    ck_assert_int_eq(status.version, 0);
    ck_assert_int_eq(status.newest, NEWEST);
    ck_assert(!status.has_partitions);
    schema_status_free(&status);
    database_end(&database);
    ck_assert_int_eq(schema_status("postgres:host=/nowhere", &status, message), 1);
    ck_assert_str_ne(message, "");
    ck_assert_int_eq(schema_status("sqlite:/nowhere/at/all.db", &status, message), 1);
    ck_assert_str_ne(message, "");
    ck_assert_int_eq(schema_status("mysql:x", &status, message), 2);
}
END_TEST

START_TEST(test_sqlite_has_a_status)
{
    static const char *const files[] = {"ledger.db", "ledger.db-wal", "ledger.db-shm"};
    char folder[] = "/tmp/auditrun-schema-XXXXXX", path[64], url[80];
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/ledger.db", folder);
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    ck_assert_int_eq(schema_init(url, &applied, message), 0);
    ck_assert_int_gt(applied, 0);
    struct schema_status status = status_of(url);
    ck_assert_int_eq(status.version, status.newest);
    ck_assert_int_eq(status.version, applied);
    ck_assert(!status.differs && !status.has_partitions);
    schema_status_free(&status);
    for (size_t i = 0; i < AR_COUNT(files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        ck_assert(unlink(path) == 0 || errno == ENOENT);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

static void expect_foreign(const struct database *database, const char *words)
{
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    ck_assert_int_eq(schema_init(database->url, &applied, message), 1);
    ck_assert_msg(strstr(message, words) != NULL, "%s", message);
    ck_assert_int_eq(applied, 0);
    struct schema_status status = status_of(database->url);
    ck_assert(status.differs);
    schema_status_free(&status);
}

START_TEST(test_a_store_of_other_migrations_is_left_alone)
{
    struct database database;
    database_begin_empty(&database, server);
    database_run(database.pg, "CREATE SCHEMA auditrun; CREATE TABLE auditrun.migrations (version "
                              "integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz)");
    expect_foreign(&database, "older than the first release");
    database_end(&database);

    database_begin(&database, server);
    database_open_guards(database.pg);
    database_run(database.pg,
                 "UPDATE auditrun.migrations SET sha256 = sha256('') WHERE version = 3");
    expect_foreign(&database, "migration 3 (guards)");
    database_end(&database);

    database_begin(&database, server);
    database_run(database.pg, "INSERT INTO auditrun.migrations VALUES (10, 'later', sha256(''))");
    expect_foreign(&database, "newer than this program");
    database_end(&database);
}
END_TEST

struct thread {
    pthread_t id;
    const char *url;
    int result;
    int made;
};

static void *init_in_thread(void *argument)
{
    struct thread *thread = argument;
    char message[SCHEMA_MESSAGE_BYTES];
    thread->result = schema_init(thread->url, &thread->made, message);
    return NULL;
}

static int run_threads(void *(*function)(void *), const char *url)
{
    struct thread threads[THREADS];
    int sum = 0;
    for (size_t i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.url = url};
        ck_assert_int_eq(pthread_create(&threads[i].id, NULL, function, &threads[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i].id, NULL), 0);
        ck_assert_int_eq(threads[i].result, 0);
        sum += threads[i].made;
    }
    return sum;
}

START_TEST(test_many_may_init_at_once)
{
    struct database database;
    database_begin_empty(&database, server);
    ck_assert_int_eq(run_threads(init_in_thread, database.url), NEWEST);
    database_end(&database);
}
END_TEST

static void own_database(const struct database *database, const char *role)
{
    database_runf(database->pg,
                  "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I OWNER TO %s', "
                  "current_database()); END $$",
                  role);
}

START_TEST(test_init_without_a_superuser)
{
    struct database database;
    char url[POSTGRES_URL_BYTES + 64], message[SCHEMA_MESSAGE_BYTES];
    const char *role = _i == 0 ? "may_make_roles" : "may_make_nothing";
    int applied;
    database_begin_empty(&database, server);
    own_database(&database, role);
    /* From 16 on, who may make roles may not give himself one that somebody else has made. */
    bool may_become_owner = _i == 0 && PQserverVersion(database.pg) < 160000;
    database_url_as(&database, role, url);
    int rc = schema_init(url, &applied, message);
    ck_assert_msg(rc == 0, "%s", message);
    ck_assert_int_eq(applied, NEWEST);
    ck_assert_ptr_nonnull(strstr(message, "auditrun_refuse_ddl, auditrun_refuse_drop"));
    database_expect(database.pg,
                    "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = "
                    "'auditrun.runs'::regclass",
                    may_become_owner ? "auditrun_owner" : role);

    PGconn *pg = database_as(&database, role);
    struct records_chain chain;
    records_begin(&chain, 5);
    database_grow(pg, &chain, 3);
    database_expect(pg, "SELECT finding || rows FROM auditrun.verify()", "ok3");
    database_expect(pg, "SELECT count(*) FROM auditrun.run_list", "3");
    database_refused(pg, "DELETE FROM auditrun.runs", NOT_ALLOWED, "append-only");
    PQfinish(pg);

    /* A superuser makes up for it. */
    ck_assert_int_eq(schema_init(database.url, &applied, message), 0);
    ck_assert_str_eq(message, "");
    database_end(&database);
}
END_TEST

/* ---- partitions ----------------------------------------------------------------------------- */

START_TEST(test_widths)
{
    static const struct {
        const char *width, *found;
    } widths[] = {{"day", "1 day"}, {"week", "7 days"}, {"month", "1 mon"}};
    struct database database;
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    for (size_t i = 0; i < AR_COUNT(widths); i++) {
        struct schema_options options = {.partition_width = widths[i].width};
        database_begin_empty(&database, server);
        ck_assert_int_eq(schema_init_with(database.url, &options, &applied, message), 0);
        database_expect(database.pg, "SELECT partition_width FROM auditrun.settings",
                        widths[i].width);
        database_expect(database.pg,
                        "SELECT string_agg(DISTINCT age(until_time AT TIME ZONE 'UTC', "
                        "from_time AT TIME ZONE 'UTC')::text, ',') FROM auditrun.partitions()",
                        widths[i].found);
        database_expect(database.pg, "SELECT auditrun.make_partitions()", "0");
        database_end(&database);
    }
    struct schema_options wrong = {.partition_width = "year"};
    database_begin_empty(&database, server);
    ck_assert_int_eq(schema_init_with(database.url, &wrong, &applied, message), 1);
    ck_assert_ptr_nonnull(strstr(message, "settings_partition_width_check"));
    database_expect(database.pg, "SELECT to_regnamespace('auditrun') IS NULL", "t");
    database_end(&database);
}
END_TEST

/* Another width is for what comes later; what is there stays, and nothing overlaps or is left out. */
START_TEST(test_another_width_goes_on_where_the_old_one_ends)
{
    static const char *const widths[] = {"day", "month", "week", "day"};
    struct database database;
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    database_begin(&database, server);
    for (size_t i = 0; i < AR_COUNT(widths); i++) {
        struct schema_options options = {.partition_width = widths[i]};
        ck_assert_int_eq(schema_init_with(database.url, &options, &applied, message), 0);
        database_runf(database.pg, "SELECT auditrun.make_partitions('%zu days')", 60 * (i + 1));
        database_expect(database.pg,
                        "SELECT count(*) FROM (SELECT until_id <> lead(from_id) OVER (ORDER BY "
                        "from_id) AS apart FROM auditrun.partitions() WHERE from_id IS NOT NULL) "
                        "AS p WHERE apart",
                        "0");
    }
    database_end(&database);
}
END_TEST

static void insert_id(PGconn *pg, struct records_chain *chain, const char *id)
{
    AR_CLEANUP(record_cleanup) struct record *record = records_plain(chain);
    (void)snprintf(record->run_id, sizeof(record->run_id), "%s", id);
    records_seal(chain, record);
    database_insert(pg, &record_layout, record);
    database_head(pg, chain);
}

START_TEST(test_every_id_has_a_place)
{
    static const struct {
        const char *id, *partition;
    } places[] = {
        {"00000000-0000-7000-8000-000000000000", "runs_19700101"},
        {"00001499-6fff-7fff-bfff-ffffffffffff", "runs_19700101"},
        {"00001499-7000-7000-8000-000000000000", "runs_19700105"},
        {"019b8b74-17ff-7fff-bfff-ffffffffffff", "runs_default"},
        {"019b8b74-1800-7000-8000-000000000000", "runs_20260105"},
        {"019baf80-9bff-7fff-bfff-ffffffffffff", "runs_20260105"},
        {"019baf80-9c00-7000-8000-000000000000", "runs_20260112"},
        {"e677d21f-dbff-7000-8000-000000000000", "runs_default"}, /* the end of 9999 */
        {"ffffffff-ffff-7fff-bfff-ffffffffffff", "runs_default"},
    };
    struct database database;
    struct records_chain chain;
    database_begin(&database, server);
    records_begin(&chain, 7);
    database_expect(database.pg, "SELECT auditrun.make_partitions('7 days', '1970-01-01Z')", "2");
    database_expect(database.pg, "SELECT auditrun.make_partitions('7 days', '2026-01-11Z')", "2");
    for (size_t i = 0; i < AR_COUNT(places); i++) {
        char sql[256];
        insert_id(database.pg, &chain, places[i].id);
        (void)snprintf(sql, sizeof(sql),
                       "SELECT relname FROM auditrun.runs AS r JOIN pg_class AS c "
                       "ON c.oid = r.tableoid WHERE run_id = '%s'",
                       places[i].id);
        database_expect(database.pg, sql, places[i].partition);
    }
    database_expect(database.pg, "SELECT finding || rows FROM auditrun.verify()", "ok9");
    struct schema_status status = status_of(database.url);
    ck_assert_int_eq(status.rows_in_default, 3);
    schema_status_free(&status);
    database_end(&database);
}
END_TEST

START_TEST(test_ids_and_times)
{
    static const struct {
        const char *time, *id;
    } pairs[] = {{"1970-01-01 00:00:00+00", "00000000-0000-0000-0000-000000000000"},
                 {"2026-01-05 12:00:00.123+00", "019b8e07-467b-0000-0000-000000000000"},
                 {"9999-12-31 23:59:59.999+00", "e677d21f-dbff-0000-0000-000000000000"}};
    struct database database;
    database_begin(&database, server);
    database_run(database.pg, "SET timezone = 'Asia/Kathmandu'");
    for (size_t i = 0; i < AR_COUNT(pairs); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof(sql), "SELECT auditrun.uuid7_floor('%s')", pairs[i].time);
        database_expect(database.pg, sql, pairs[i].id);
        (void)snprintf(sql, sizeof(sql), "SELECT auditrun.uuid7_time('%s') = '%s'", pairs[i].id,
                       pairs[i].time);
        database_expect(database.pg, sql, "t");
    }
    database_expect(database.pg, "SELECT auditrun.uuid7_floor('1969-07-20Z')", pairs[0].id);
    database_expect(database.pg, "SELECT auditrun.uuid7_floor('infinity')",
                    "ffffffff-ffff-0000-0000-000000000000");
    database_expect(database.pg, "SELECT auditrun.uuid7_floor(NULL) IS NULL", "t");
    database_end(&database);
}
END_TEST

START_TEST(test_partitions_are_not_made_over_rows)
{
    struct database database;
    struct records_chain chain;
    database_begin(&database, server);
    records_begin(&chain, 7);
    insert_id(database.pg, &chain, "019b8b74-1800-7000-8000-000000000000"); /* 2026-01-05 */
    database_expect(database.pg, "SELECT auditrun.make_partitions('14 days', '2026-01-01Z')", "2");
    database_expect(database.pg, "SELECT auditrun.make_partitions('14 days', '2026-01-01Z')", "0");
    database_expect(database.pg, "SELECT to_regclass('auditrun.runs_20260105') IS NULL", "t");
    database_refused(database.pg, "SELECT auditrun.make_partitions('100 years')", "54000", "500");
    database_refused(database.pg, "SELECT auditrun.make_partitions(NULL, '9999-06-01Z')", "22008",
                     NULL);
    database_refused(database.pg, "SELECT auditrun.make_partitions(NULL, '1960-01-01Z')", "22008",
                     NULL);
    database_refused(database.pg, "SELECT auditrun.make_partitions(NULL, 'infinity')", "22008",
                     NULL);
    database_end(&database);
}
END_TEST

static void *make_in_thread(void *argument)
{
    struct thread *thread = argument;
    AR_AUTO_FREE char *made =
        postgres_sql(thread->url, "SELECT auditrun.make_partitions('25 weeks')");
    thread->result = made ? 0 : 1;
    thread->made = made ? (int)strtol(made, NULL, 10) : 0;
    return NULL;
}

START_TEST(test_many_may_make_partitions_at_once)
{
    struct database database;
    char expected[16];
    database_begin(&database, server);
    (void)snprintf(expected, sizeof(expected), "%d", 5 + run_threads(make_in_thread, database.url));
    database_expect(database.pg,
                    "SELECT count(*) FROM auditrun.partitions() WHERE from_id IS NOT NULL",
                    expected);
    ck_assert_int_ge(strtol(expected, NULL, 10), 25);
    database_expect(database.pg, "SELECT count(*) FROM auditrun_guard.structure_changes()", "0");
    database_end(&database);
}
END_TEST

/* ---- what is missing ------------------------------------------------------------------------ */

START_TEST(test_missing_guards_are_told_and_made_again)
{
    struct database database;
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    database_begin(&database, server);
    database_run(database.pg, "ALTER EVENT TRIGGER auditrun_refuse_ddl DISABLE;"
                              "DROP EVENT TRIGGER auditrun_refuse_drop;"
                              "ALTER TABLE auditrun.runs DISABLE TRIGGER refuse_change;"
                              "DROP TRIGGER refuse_change ON auditrun.runs_default");
    struct schema_status status = status_of(database.url);
    ck_assert_uint_eq(status.event_triggers_missing.count, 2);
    ck_assert_uint_eq(status.changes.count, 3);
    ck_assert(text_list_has(&status.changes, "trigger refuse_change on auditrun.runs was changed"));
    schema_status_free(&status);
    ck_assert_int_eq(schema_init(database.url, &applied, message), 0);
    status = status_of(database.url);
    ck_assert_uint_eq(status.event_triggers_missing.count, 0);
    ck_assert_uint_ne(status.changes.count, 0);
    schema_status_free(&status);
    database_end(&database);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest **const tests[] = {
        &test_init_again_changes_nothing,
        &test_status_of_nothing,
        &test_sqlite_has_a_status,
        &test_a_store_of_other_migrations_is_left_alone,
        &test_many_may_init_at_once,
        &test_widths,
        &test_another_width_goes_on_where_the_old_one_ends,
        &test_every_id_has_a_place,
        &test_ids_and_times,
        &test_partitions_are_not_made_over_rows,
        &test_many_may_make_partitions_at_once,
        &test_missing_guards_are_told_and_made_again,
    };
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 300);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    tcase_add_loop_test(tcase, test_init_without_a_superuser, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("schema");
    TCase *tcase = tcase_create("schema");
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
