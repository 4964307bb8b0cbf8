/*
 * pair.c - see pair.h. Each server is known to the other by the name of its place.
 */
#include "tests/lib/pair.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 30000
#define POLL_MS 20

static const char *const names[PAIR_SERVERS] = {"server_one", "server_two"};

static int other(int which)
{
    return PAIR_SERVERS - 1 - which;
}

const char *pair_url_of(const struct pair *pair, int which)
{
    return postgres_url(pair->servers[which]);
}

void pair_url(const struct pair *pair, char url[2 * POSTGRES_URL_BYTES])
{
    (void)snprintf(
        url, 2 * (size_t)POSTGRES_URL_BYTES,
        "postgres:host=%s,%s port=%d,%d user=tester dbname=postgres",
        postgres_folder(pair->servers[PAIR_FIRST]), postgres_folder(pair->servers[PAIR_SECOND]),
        postgres_port(pair->servers[PAIR_FIRST]), postgres_port(pair->servers[PAIR_SECOND]));
}

static bool wait_until(const char *url, const char *question)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    for (int waited = 0; waited < WAIT_MS; waited += POLL_MS) {
        AR_AUTO_FREE char *answer = postgres_sql(url, question);
        if (answer && strcmp(answer, "t") == 0)
            return true;
        (void)nanosleep(&pause, NULL);
    }
    (void)fprintf(stderr, "test pair: in vain: %s\n", question);
    return false;
}

/* "" for nobody. The setting is read anew by a signal, which has to have arrived. */
static bool wait_for_standby(const struct pair *pair, int primary, const char *name)
{
    char sql[160], question[160];
    const char *url = pair_url_of(pair, primary);
    (void)snprintf(sql, sizeof(sql), "ALTER SYSTEM SET synchronous_standby_names = '%s'", name);
    (void)snprintf(question, sizeof(question),
                   "SELECT current_setting('synchronous_standby_names') = '%s'", name);
    return postgres_run(url, sql) && postgres_run(url, "SELECT pg_reload_conf()") &&
           wait_until(url, question);
}

static bool wait_until_synchronous(const struct pair *pair, int primary)
{
    return wait_until(pair_url_of(pair, primary), "SELECT EXISTS (SELECT FROM pg_stat_replication "
                                                  "WHERE sync_state = 'sync')");
}

bool pair_begin(struct pair *pair)
{
    return pair_begin_with(pair, 0);
}

bool pair_begin_with(struct pair *pair, size_t disk_bytes)
{
    const struct postgres_options options = {.disk_bytes = disk_bytes,
                                             .settings = "wal_level = replica\n"
                                                         "hot_standby = on\n"
                                                         "wal_keep_size = 64MB\n"
                                                         "wal_sender_timeout = 0\n"
                                                         "wal_retrieve_retry_interval = 100ms\n"};
    *pair = (struct pair){.servers = {NULL}};
    pair->servers[PAIR_FIRST] = postgres_start_with(&options);
    if (!pair->servers[PAIR_FIRST])
        return false;
    pair->servers[PAIR_SECOND] =
        postgres_start_standby(pair->servers[PAIR_FIRST], names[PAIR_SECOND]);
    return pair->servers[PAIR_SECOND] && wait_for_standby(pair, PAIR_FIRST, names[PAIR_SECOND]) &&
           wait_until_synchronous(pair, PAIR_FIRST);
}

void pair_end(struct pair *pair)
{
    for (int i = 0; i < PAIR_SERVERS; i++)
        postgres_free(pair->servers[i]);
}

void pair_stop_standby(struct pair *pair, int standby)
{
    postgres_stop_immediate(pair->servers[standby]);
}

bool pair_start_standby(struct pair *pair, int standby)
{
    return postgres_start_again(pair->servers[standby]) &&
           wait_until_synchronous(pair, other(standby));
}

/* The standby has the setting of the primary, and nobody to wait for. */
bool pair_fail_over(struct pair *pair, int to)
{
    postgres_kill(pair->servers[other(to)]);
    if (postgres_pid(pair->servers[to]) == 0 && !postgres_start_again(pair->servers[to]))
        return false;
    return postgres_promote(pair->servers[to]) && wait_for_standby(pair, to, "");
}

bool pair_rejoin(struct pair *pair, int old)
{
    int primary = other(old);
    return postgres_follow(pair->servers[old], pair->servers[primary], names[old]) &&
           wait_for_standby(pair, primary, names[old]) && wait_until_synchronous(pair, primary);
}
