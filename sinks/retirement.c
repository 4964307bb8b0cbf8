/*
 * retirement.c - see retirement.h. The store checks again, under its lock, that the event tells exactly
 * what goes: a late row that came between plan and drop makes it refuse.
 */
#include "sinks/retirement.h"

#include "sinks/postgres_result.h"
#include "sinks/url.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#define LIST_SQL                                                                                \
    "SELECT p.partition FROM auditrun.partitions() AS p WHERE p.until_time <= $1::timestamptz " \
    "AND p.until_time <= now() ORDER BY p.from_time"
#define PLAN_SQL "SELECT auditrun.retirement_plan($1::text)"
#define RETIRE_SQL                                                                            \
    "SELECT auditrun.retire_partition($1::text, ROW($2::uuid, $3::uuid, $4::int8, $5::int8, " \
    "$6::auditrun.event_kind, $7::json, $8::timestamptz, $9::timestamptz, $10::boolean, "     \
    "decode($11::text, 'hex'), decode($12::text, 'hex'))::auditrun.events, "                  \
    "decode($13::text, 'hex'), $14::timestamptz, decode($15::text, 'hex'))"

enum { EVENT_FIRST = 1, EVENT_COLUMNS = 11, PARAMETERS = 15 };

struct retirement {
    PGconn *pg;
    char message[RETIREMENT_MESSAGE_BYTES];
};

static int say(char message[RETIREMENT_MESSAGE_BYTES], const char *text)
{
    postgres_result_say(message, RETIREMENT_MESSAGE_BYTES, text);
    return 1;
}

/* Rows of a statement; NULL with the message when it failed. */
static PGresult *ask(struct retirement *retirement, const char *sql, const char *const *values,
                     int count)
{
    PGresult *result = PQexecParams(retirement->pg, sql, count, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        return result;
    (void)say(retirement->message, PQerrorMessage(retirement->pg));
    PQclear(result);
    return NULL;
}

const char *retirement_message(const struct retirement *retirement)
{
    return retirement->message;
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

int retirement_open(const char *url, struct retirement **out,
                    char message[RETIREMENT_MESSAGE_BYTES])
{
    const char *const names[] = {"dbname", "client_encoding", "fallback_application_name", NULL};
    const char *rest;
    message[0] = '\0';
    if (url_parse(url, &rest) != URL_POSTGRES)
        return 2;
    const char *const values[] = {rest, "UTF8", "auditrun", NULL};
    AR_CLEANUP(retirement_cleanup) struct retirement *retirement = calloc(1, sizeof(*retirement));
    if (!retirement || !(retirement->pg = PQconnectdbParams(names, values, 1)))
        return -ENOMEM;
    if (PQstatus(retirement->pg) != CONNECTION_OK)
        return say(message, PQerrorMessage(retirement->pg));
    (void)PQsetNoticeReceiver(retirement->pg, ignore_notice, NULL);
    AUTO_RESULT PGresult *path = ask(
        retirement, "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)", NULL, 0);
    if (!path)
        return say(message, retirement->message);
    *out = AR_TAKE(retirement);
    return 0;
}

void retirement_close(struct retirement *retirement)
{
    if (!retirement)
        return;
    PQfinish(retirement->pg);
    free(retirement);
}

int retirement_list(struct retirement *retirement, int64_t before, struct text_list *partitions)
{
    char time[ROW_TIME_BYTES];
    const char *const values[] = {time};
    row_time_text(before, time);
    AUTO_RESULT PGresult *result = ask(retirement, LIST_SQL, values, 1);
    int rc = result ? 0 : 1;
    for (int i = 0; rc == 0 && i < PQntuples(result); i++)
        rc = text_list_add(partitions, PQgetvalue(result, i, 0));
    return rc;
}

int retirement_plan(struct retirement *retirement, const char *partition, json_t **plan)
{
    AUTO_RESULT PGresult *result = ask(retirement, PLAN_SQL, &partition, 1);
    if (!result)
        return 1;
    *plan = PQntuples(result) == 1 ? json_loads(PQgetvalue(result, 0, 0), 0, NULL) : NULL;
    return json_is_object(*plan) ? 0 : say(retirement->message, "the plan cannot be read");
}

static int sign(const struct chain_event *event, int64_t now, const struct checkpoint_key *key,
                struct checkpoint *checkpoint)
{
    *checkpoint = (struct checkpoint){.seq = event->seq, .made_at = now};
    memcpy(checkpoint->writer, event->writer, sizeof(checkpoint->writer));
    memcpy(checkpoint->row_hash, event->row_hash, sizeof(checkpoint->row_hash));
    return checkpoint_sign(checkpoint, key);
}

static int retire(struct retirement *retirement, const char *partition,
                  const struct chain_event *event, const struct checkpoint *checkpoint)
{
    char scratch[EVENT_COLUMNS][ROW_SCRATCH_BYTES], made_at[ROW_TIME_BYTES],
        public_key[2 * CHECKPOINT_KEY_BYTES + 1], signature[2 * CHECKPOINT_SIGNATURE_BYTES + 1];
    const char *values[PARAMETERS] = {partition};
    for (size_t i = 0; i < EVENT_COLUMNS; i++)
        values[EVENT_FIRST + i] = row_text(&chain_event_layout, event, i, scratch[i]);
    text_to_hex(checkpoint->public_key, sizeof(checkpoint->public_key), public_key);
    text_to_hex(checkpoint->signature, sizeof(checkpoint->signature), signature);
    row_time_text(checkpoint->made_at, made_at);
    values[EVENT_FIRST + EVENT_COLUMNS] = public_key;
    values[EVENT_FIRST + EVENT_COLUMNS + 1] = made_at;
    values[EVENT_FIRST + EVENT_COLUMNS + 2] = signature;
    AUTO_RESULT PGresult *result = ask(retirement, RETIRE_SQL, values, PARAMETERS);
    return result ? 0 : 1;
}

int retirement_carry_out(struct retirement *retirement, const json_t *plan, const char *writer,
                         const char *event_id, int64_t now, const struct checkpoint_key *key,
                         struct checkpoint *checkpoint)
{
    const char *partition = json_string_value(json_object_get(plan, "partition"));
    AR_CLEANUP(chain_event_cleanup)
    struct chain_event *event =
        chain_event_new(event_id, EVENT_PARTITION_RETIRED, json_deep_copy(plan), now);
    if (!event || !partition)
        return event ? -EINVAL : -ENOMEM;
    int rc = chain_event_seal(event, writer, 1, digest_zero, now, false);
    if (rc == 0)
        rc = sign(event, now, key, checkpoint);
    return rc == 0 ? retire(retirement, partition, event, checkpoint) : rc;
}
