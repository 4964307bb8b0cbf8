/*
 * check_schema_guards.c - what the PostgreSQL schema refuses, and to whom: changes of rows and of
 * structure to everybody, and to each role what is not its work. On a real server, in plain SQL.
 */
#include "tests/lib/database.h"
#include "tests/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define NOT_ALLOWED   "42501"
#define DEPENDENT     "2BP01"
#define INVALID_TABLE "42P16"
#define LOGIN_ROLES_SQL                                         \
    "CREATE ROLE a_writer LOGIN IN ROLE auditrun_writer;"       \
    "CREATE ROLE an_auditor LOGIN IN ROLE auditrun_auditor;"    \
    "CREATE ROLE a_reader LOGIN IN ROLE auditrun_reader;"       \
    "CREATE ROLE another_reader LOGIN IN ROLE auditrun_reader;" \
    "CREATE ROLE nobody_special LOGIN"

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

/* ---- what is refused ------------------------------------------------------------------------ */

static const char *const changes_of_rows[] = {
    "UPDATE %s SET writer = writer",
    "DELETE FROM %s",
    "TRUNCATE %s CASCADE",
    "SET session_replication_role = replica; DELETE FROM %s",
};

START_TEST(test_changes_of_rows_are_refused)
{
    static const char *const tables[] = {"runs", "runs_19700105", "runs_default", "events",
                                         "checkpoints"};
    static const char *const others[] = {
        "UPDATE keys SET company = ''",
        "DELETE FROM keys",
        "TRUNCATE keys",
        "UPDATE checkpoint_keys SET registered_at = now()",
        "DELETE FROM checkpoint_keys",
        "TRUNCATE checkpoint_keys CASCADE",
        "UPDATE migrations SET version = 0",
        "DELETE FROM migrations",
        "TRUNCATE migrations",
        "DELETE FROM writers",
        "TRUNCATE writers",
        "DELETE FROM settings",
        "TRUNCATE settings",
        "UPDATE readers SET company = ''",
        "TRUNCATE readers",
        "DELETE FROM auditrun_guard.seals",
        "UPDATE auditrun_guard.seals SET form = ''",
        "TRUNCATE auditrun_guard.seals",
        "TRUNCATE runs, events, writers, keys",
        ("INSERT INTO keys VALUES ('a', 'k', pg_catalog.sha256(''), gen_random_uuid()) "
         "ON CONFLICT (company, idempotency_key) DO UPDATE SET run_id = EXCLUDED.run_id")};
    struct database database;
    database_begin(&database, server);
    database_run(database.pg, "SELECT auditrun.make_partitions('1 day', '1970-01-06Z')");
    database_run(database.pg, "SET search_path = auditrun");
    for (int as_owner = 0; as_owner < 2; as_owner++) {
        for (size_t i = 0; i < AR_COUNT(tables); i++)
            for (size_t k = 0; k < AR_COUNT(changes_of_rows) - (size_t)as_owner; k++) {
                char sql[160];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void)snprintf(sql, sizeof(sql), changes_of_rows[k], tables[i]);
#pragma GCC diagnostic pop
                database_refused(database.pg, sql, NOT_ALLOWED, NULL);
                if (!as_owner)
                    database_run(database.pg, "RESET session_replication_role");
            }
        for (size_t i = 0; i < AR_COUNT(others); i++)
            database_refused(database.pg, others[i], NOT_ALLOWED, NULL);
        database_run(database.pg, "SET ROLE auditrun_owner");
    }
    database_end(&database);
}
END_TEST

START_TEST(test_a_head_only_moves_forward)
{
    struct database database;
    struct records_chain chain;
    database_begin(&database, server);
    records_begin(&chain, 7);
    database_grow(database.pg, &chain, 3);
    database_run(database.pg, "SET search_path = auditrun");
    database_run(database.pg, "UPDATE writers SET seq = seq, hash = hash");
    database_refused(database.pg, "UPDATE writers SET seq = seq - 1", NOT_ALLOWED, "forward");
    database_refused(database.pg, "UPDATE writers SET hash = pg_catalog.sha256('')", NOT_ALLOWED,
                     "forward");
    database_refused(database.pg, "UPDATE writers SET writer = gen_random_uuid(), seq = seq + 1",
                     NOT_ALLOWED, "forward");
    database_run(database.pg, "UPDATE writers SET seq = seq + 1, hash = pg_catalog.sha256('')");
    database_end(&database);
}
END_TEST

static const struct {
    const char *sql, *state;
} changes_of_structure[] = {
    {"ALTER TABLE runs DISABLE TRIGGER ALL", NOT_ALLOWED},
    {"ALTER TABLE runs DISABLE TRIGGER refuse_change", NOT_ALLOWED},
    {"ALTER TABLE runs_19700105 DISABLE TRIGGER refuse_change", NOT_ALLOWED},
    {"ALTER TABLE runs_default ENABLE REPLICA TRIGGER refuse_change", NOT_ALLOWED},
    {"ALTER TABLE writers DISABLE TRIGGER refuse_step_back", NOT_ALLOWED},
    {"ALTER TABLE auditrun_guard.seals DISABLE TRIGGER ALL", NOT_ALLOWED},
    {"DROP TRIGGER refuse_change ON runs", NOT_ALLOWED},
    {"DROP TRIGGER refuse_change ON runs_19700105", NOT_ALLOWED},
    {"ALTER TRIGGER refuse_change ON events RENAME TO x", NOT_ALLOWED},
    {"CREATE TRIGGER x BEFORE INSERT ON runs FOR EACH ROW "
     "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
     NOT_ALLOWED},
    {"DROP TABLE runs", DEPENDENT},
    {"DROP TABLE runs CASCADE", NOT_ALLOWED},
    {"DROP TABLE runs_19700105", NOT_ALLOWED},
    {"DROP TABLE runs_default", NOT_ALLOWED},
    {"DROP TABLE keys", NOT_ALLOWED},
    {"ALTER TABLE runs DETACH PARTITION runs_19700105", NOT_ALLOWED},
    {"ALTER TABLE runs DETACH PARTITION runs_default", NOT_ALLOWED},
    {"CREATE TABLE runs_20990101 PARTITION OF runs FOR VALUES FROM "
     "('f0000000-0000-0000-0000-000000000000') TO ('f1000000-0000-0000-0000-000000000000')",
     NOT_ALLOWED},
    {"ALTER TABLE runs ADD COLUMN x integer", NOT_ALLOWED},
    {"ALTER TABLE events DROP COLUMN late", NOT_ALLOWED},
    {"ALTER TABLE runs DROP COLUMN late", DEPENDENT},
    {"ALTER TABLE runs DROP COLUMN late CASCADE", NOT_ALLOWED},
    {"ALTER TABLE keys ALTER COLUMN company DROP NOT NULL", INVALID_TABLE},
    {"ALTER TABLE runs ALTER COLUMN purpose DROP NOT NULL", NOT_ALLOWED},
    {"ALTER TABLE keys ALTER COLUMN idempotency_key TYPE varchar(300)", NOT_ALLOWED},
    {"ALTER TABLE runs RENAME COLUMN purpose TO why", NOT_ALLOWED},
    {"ALTER TABLE runs RENAME TO x", NOT_ALLOWED},
    {"ALTER TABLE writers SET SCHEMA public", NOT_ALLOWED},
    {"ALTER TABLE runs DISABLE ROW LEVEL SECURITY", NOT_ALLOWED},
    {"ALTER TABLE runs NO FORCE ROW LEVEL SECURITY", NOT_ALLOWED},
    {"ALTER TABLE runs DROP CONSTRAINT runs_status_reason_check", NOT_ALLOWED},
    {"ALTER TABLE writers DROP CONSTRAINT writers_pkey", NOT_ALLOWED},
    {"DROP POLICY own_companies ON runs", NOT_ALLOWED},
    {"ALTER POLICY own_companies ON runs USING (true)", NOT_ALLOWED},
    {"CREATE POLICY x ON runs FOR SELECT USING (true)", NOT_ALLOWED},
    {"CREATE RULE x AS ON UPDATE TO writers DO INSTEAD NOTHING", NOT_ALLOWED},
    {"CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
     "'BEGIN RETURN NULL; END'",
     NOT_ALLOWED},
    {"ALTER FUNCTION make_partitions SECURITY INVOKER", NOT_ALLOWED},
    {"ALTER FUNCTION verify RESET ALL", NOT_ALLOWED},
    {"ALTER FUNCTION verify RENAME TO x", NOT_ALLOWED},
    {"DROP FUNCTION verify", NOT_ALLOWED},
    {"DROP FUNCTION refuse_change() CASCADE", NOT_ALLOWED},
    {"CREATE OR REPLACE VIEW late_records AS SELECT * FROM late_records WHERE false", NOT_ALLOWED},
    {"DROP VIEW denials", NOT_ALLOWED},
    {"ALTER DOMAIN sha256 DROP CONSTRAINT sha256_form", NOT_ALLOWED},
    {"ALTER TYPE run_status ADD VALUE 'fine'", NOT_ALLOWED},
    {"DROP TYPE run_status CASCADE", NOT_ALLOWED},
    {"DROP SCHEMA auditrun CASCADE", NOT_ALLOWED},
    {"DROP OWNED BY auditrun_owner CASCADE", NOT_ALLOWED},
};

START_TEST(test_changes_of_structure_are_refused)
{
    struct database database;
    database_begin(&database, server);
    database_run(database.pg, "SELECT auditrun.make_partitions('1 day', '1970-01-06Z')");
    database_run(database.pg, "SET search_path = auditrun");
    for (size_t i = 0; i < AR_COUNT(changes_of_structure); i++)
        database_refused(database.pg, changes_of_structure[i].sql, changes_of_structure[i].state,
                         NULL);
    database_refused(database.pg, "ALTER SCHEMA auditrun RENAME TO x", NOT_ALLOWED, "name");
    database_run(database.pg, "SET session_replication_role = replica");
    database_refused(database.pg, "DROP TABLE auditrun.runs_19700105", NOT_ALLOWED, NULL);
    database_run(database.pg, "RESET session_replication_role; SET ROLE auditrun_owner");
    database_refused(database.pg, "ALTER TABLE runs DISABLE TRIGGER ALL", NOT_ALLOWED, NULL);
    database_refused(database.pg, "DROP TABLE runs_19700105", NOT_ALLOWED, NULL);
    database_refused(database.pg, "ALTER EVENT TRIGGER auditrun_refuse_ddl DISABLE", NOT_ALLOWED,
                     "must be owner");
    database_refused(database.pg, "DROP SCHEMA auditrun_guard CASCADE", NOT_ALLOWED,
                     "must be owner");
    database_expect(database.pg, "SELECT structure_changes FROM auditrun.status()", "{}");
    database_end(&database);
}
END_TEST

START_TEST(test_what_is_not_the_ledgers_is_left_alone)
{
    struct database database;
    database_begin(&database, server);
    database_run(database.pg, "GRANT CREATE ON SCHEMA public TO nobody_special");
    PGconn *other = database_as(&database, "nobody_special");
    database_run(other, "CREATE TABLE public.runs_20260101 (a integer);"
                        "ALTER TABLE public.runs_20260101 ADD b integer;"
                        "CREATE TEMP TABLE runs AS SELECT 1 AS a; DROP TABLE runs;"
                        "DROP TABLE public.runs_20260101");
    PQfinish(other);
    database_run(database.pg, "CREATE INDEX more ON auditrun.runs (language);"
                              "DROP INDEX auditrun.more; DROP INDEX auditrun.runs_code;"
                              "ALTER TABLE auditrun.events SET (fillfactor = 90);"
                              "ALTER TABLE auditrun.runs ALTER company SET STATISTICS 500;"
                              "ANALYZE auditrun.runs");
    database_end(&database);
}
END_TEST

/* ---- roles ----------------------------------------------------------------------------------- */

static void expect_all_refused(PGconn *pg, const char *const *sql, size_t count)
{
    for (size_t i = 0; i < count; i++)
        database_refused(pg, sql[i], NOT_ALLOWED, NULL);
}

/* Two rows of acme (the plain records' company), one of globex, an event, a key, a checkpoint. */
static void fill(struct database *database)
{
    struct records_chain chain;
    database_begin(database, server);
    records_begin(&chain, 11);
    database_grow(database->pg, &chain, 2);
    AR_CLEANUP(record_cleanup) struct record *record = records_plain(&chain);
    (void)snprintf(record->company, strlen("acme") + 1, "glob");
    records_seal(&chain, record);
    database_insert(database->pg, &record_layout, record);
    database_event(database->pg, &chain, EVENT_STARTED, "{}", 1769860800000000);
    database_run(database->pg,
                 "INSERT INTO auditrun.keys VALUES ('acme', 'k', sha256(''), gen_random_uuid());"
                 "INSERT INTO auditrun.checkpoint_keys SELECT sha256(k), k FROM "
                 "(SELECT sha256('key') AS k) AS k;"
                 "INSERT INTO auditrun.checkpoints SELECT writer, seq, hash, now(), "
                 "sha256(sha256('key')), sha256('') || sha256('') FROM auditrun.writers;"
                 "INSERT INTO auditrun.readers VALUES ('a_reader', 'acme'), "
                 "('another_reader', 'glob'), ('nobody_special', 'acme')");
}

static const char *const of_the_owner[] = {
    "UPDATE auditrun.runs SET company = ''",
    "DELETE FROM auditrun.runs",
    "TRUNCATE auditrun.runs",
    "DELETE FROM auditrun.events",
    "DELETE FROM auditrun.writers",
    "DELETE FROM auditrun.keys",
    "DELETE FROM auditrun.checkpoints",
    "UPDATE auditrun.settings SET partition_width = 'day'",
    "INSERT INTO auditrun.readers VALUES (current_user, 'acme')",
    "INSERT INTO auditrun.migrations VALUES (99, '', '')",
    "INSERT INTO auditrun_guard.seals VALUES (99, '', '')",
    "SELECT * FROM auditrun.runs_default",
    "INSERT INTO auditrun.runs_default SELECT * FROM auditrun.runs",
    "DROP TABLE auditrun.runs",
    "DROP TABLE auditrun.runs_default",
    "ALTER TABLE auditrun.runs DISABLE TRIGGER ALL",
    "CREATE TABLE auditrun.x (a integer)",
    "CREATE FUNCTION auditrun.x() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "SELECT auditrun.make_partition(now(), now())",
    "SELECT auditrun.retire_partition('runs_default', NULL, NULL, NULL, NULL)",
    "SELECT auditrun.complete(true)",
    "SELECT auditrun_guard.seal_structure()",
    "SET ROLE auditrun_owner",
    "ALTER ROLE auditrun_owner LOGIN",
};

START_TEST(test_a_writer_may_only_append)
{
    static const char *const more[] = {"SELECT * FROM auditrun.events",
                                       "SELECT detail FROM auditrun.events",
                                       "SELECT * FROM auditrun.checkpoints",
                                       "SELECT * FROM auditrun.run_list",
                                       "SELECT * FROM auditrun.verify()",
                                       "UPDATE auditrun.writers SET writer = writer",
                                       "UPDATE auditrun.checkpoints SET seq = seq",
                                       "SELECT auditrun.retirement_plan('runs_default')"};
    struct database database;
    struct records_chain chain;
    fill(&database);
    PGconn *pg = database_as(&database, "a_writer");
    records_begin(&chain, 12);
    database_grow(pg, &chain, 2);
    database_event(pg, &chain, EVENT_STOPPED, "{}", 1769860800000000);
    database_grow(pg, &chain, 1);
    database_run(pg, "INSERT INTO auditrun.keys VALUES ('acme', 'new', sha256(''), "
                     "gen_random_uuid()) ON CONFLICT DO NOTHING;"
                     "INSERT INTO auditrun.checkpoint_keys SELECT sha256(k), k FROM "
                     "(SELECT sha256('key') AS k) AS k ON CONFLICT DO NOTHING;"
                     "INSERT INTO auditrun.checkpoints SELECT writer, seq, hash, now(), "
                     "sha256(sha256('key')), sha256('') || sha256('') FROM auditrun.writers "
                     "ON CONFLICT DO NOTHING");
    database_expect(pg, "SELECT auditrun.make_partitions('5 weeks') >= 1", "t");
    database_expect(pg, "SELECT count(*) FROM auditrun.runs", "6");
    database_expect(pg, "SELECT count(*) FROM auditrun.readers", "0");
    database_expect(pg, "SELECT count(row_hash) FROM auditrun.events", "2");
    database_expect(pg, "SELECT max(version) > 0 FROM auditrun.migrations", "t");
    database_expect(pg, "SELECT rows_in_default FROM auditrun.status()", "6");
    expect_all_refused(pg, of_the_owner, AR_COUNT(of_the_owner));
    expect_all_refused(pg, more, AR_COUNT(more));
    PQfinish(pg);
    database_expect(database.pg, "SELECT finding || rows FROM auditrun.verify()", "ok8");
    database_end(&database);
}
END_TEST

START_TEST(test_an_auditor_may_only_read)
{
    static const char *const more[] = {
        "INSERT INTO auditrun.runs SELECT * FROM auditrun.runs",
        "INSERT INTO auditrun.events SELECT * FROM auditrun.events",
        "UPDATE auditrun.writers SET seq = seq",
        "INSERT INTO auditrun.keys VALUES ('', '', sha256(''), gen_random_uuid())",
        "SELECT auditrun.make_partitions()"};
    static const char *const counts[][2] = {
        {"runs", "3"},        {"events", "1"},          {"writers", "1"},  {"keys", "1"},
        {"checkpoints", "1"}, {"checkpoint_keys", "1"}, {"readers", "3"},  {"settings", "1"},
        {"run_list", "3"},    {"chain", "4"},           {"verify()", "1"}, {"status()", "1"}};
    struct database database;
    fill(&database);
    PGconn *pg = database_as(&database, "an_auditor");
    for (size_t i = 0; i < AR_COUNT(counts); i++) {
        char sql[128];
        (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM auditrun.%s", counts[i][0]);
        database_expect(pg, sql, counts[i][1]);
    }
    database_expect(pg, "SELECT finding || rows FROM auditrun.verify()", "ok4");
    for (size_t i = 0; i < AR_COUNT(of_the_owner); i++)
        if (strcmp(of_the_owner[i], "SELECT * FROM auditrun.runs_default") != 0)
            database_refused(pg, of_the_owner[i], NOT_ALLOWED, NULL);
    expect_all_refused(pg, more, AR_COUNT(more));
    PQfinish(pg);
    database_end(&database);
}
END_TEST

START_TEST(test_a_reader_sees_his_companies)
{
    static const char *const more[] = {"SELECT * FROM auditrun.events",
                                       "SELECT * FROM auditrun.writers",
                                       "SELECT * FROM auditrun.keys",
                                       "SELECT * FROM auditrun.chain",
                                       "SELECT * FROM auditrun.gaps",
                                       "SELECT * FROM auditrun.verify()",
                                       "SELECT * FROM auditrun.settings",
                                       "SELECT auditrun.make_partitions()",
                                       "INSERT INTO auditrun.runs SELECT * FROM auditrun.runs"};
    static const char *const everywhere[] = {
        "SELECT string_agg(DISTINCT company, ',') FROM auditrun.runs",
        "SELECT string_agg(DISTINCT company, ',') FROM auditrun.run_list",
        "SELECT string_agg(DISTINCT company, ',') FROM auditrun.runs_by_code",
        "SELECT string_agg(DISTINCT company, ',') FROM auditrun.usage_by_company_day",
        "SELECT string_agg(DISTINCT company, ',') FROM auditrun.readers",
        "SELECT string_agg(DISTINCT company, ',') FROM "
        "auditrun.actor_day('agent-000017', '2026-01-31')",
        "SELECT string_agg(DISTINCT r.company, ',') FROM auditrun.runs AS l "
        "CROSS JOIN LATERAL auditrun.who_ran(encode(l.code_sha256, 'hex')) AS r"};
    static const char *const users[][2] = {{"a_reader", "acme"}, {"another_reader", "glob"}};
    struct database database;
    fill(&database);
    for (size_t u = 0; u < AR_COUNT(users); u++) {
        PGconn *pg = database_as(&database, users[u][0]);
        for (size_t i = 0; i < AR_COUNT(everywhere); i++)
            database_expect(pg, everywhere[i], users[u][1]);
        database_expect(pg, "SELECT count(*) FROM auditrun.denials", "0");
        database_expect(pg,
                        "SELECT count(*) FROM auditrun.runs AS r WHERE auditrun.row_hash(r) <> "
                        "r.row_hash",
                        "0");
        expect_all_refused(pg, of_the_owner, AR_COUNT(of_the_owner));
        expect_all_refused(pg, more, AR_COUNT(more));
        PQfinish(pg);
    }
    database_run(database.pg, "DELETE FROM auditrun.readers WHERE role = 'a_reader'");
    PGconn *pg = database_as(&database, "a_reader");
    database_expect(pg, "SELECT count(*) FROM auditrun.runs", "0");
    PQfinish(pg);
    database_end(&database);
}
END_TEST

/* Also not when the table readers has it, or when it puts functions of its own in the way. */
START_TEST(test_everybody_else_sees_nothing)
{
    static const char *const more[] = {
        "SELECT * FROM auditrun.runs",        "SELECT * FROM auditrun.run_list",
        "SELECT * FROM auditrun.verify()",    "SELECT auditrun.make_partitions()",
        "SELECT * FROM auditrun.status()",    "SELECT * FROM auditrun.migrations",
        "SELECT auditrun.uuid7_floor(now())", "INSERT INTO auditrun.writers SELECT"};
    struct database database;
    fill(&database);
    PGconn *pg = database_as(&database, "nobody_special");
    expect_all_refused(pg, of_the_owner, AR_COUNT(of_the_owner));
    expect_all_refused(pg, more, AR_COUNT(more));
    PQfinish(pg);
    pg = database_as(&database, "a_writer");
    database_run(pg, "CREATE TEMP TABLE pg_inherits (inhrelid oid, inhparent oid);"
                     "CREATE TEMP TABLE pg_class (oid oid, relname text);"
                     "SET search_path = pg_temp, pg_catalog");
    database_expect(pg, "SELECT auditrun.make_partitions()", "0");
    database_expect(pg, "SELECT partitions FROM auditrun.status()", "5");
    PQfinish(pg);
    database_end(&database);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest **const tests[] = {
        &test_changes_of_rows_are_refused,      &test_a_head_only_moves_forward,
        &test_changes_of_structure_are_refused, &test_what_is_not_the_ledgers_is_left_alone,
        &test_a_writer_may_only_append,         &test_an_auditor_may_only_read,
        &test_a_reader_sees_his_companies,      &test_everybody_else_sees_nothing,
    };
    tcase_add_unchecked_fixture(tcase, start_server, stop_server);
    tcase_set_timeout(tcase, 300);
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
}

int main(void)
{
    Suite *suite = suite_create("schema_guards");
    TCase *tcase = tcase_create("schema_guards");
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
