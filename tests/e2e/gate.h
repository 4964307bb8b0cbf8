/*
 * gate.h - a daemon whose only executor notes each start of a provider, so that a test can say: this
 * run was not let in, has one row, and nothing was started for it.
 *
 * The executor is called "counted" and serves the language "fake" (tests/tools/fake_provider.c). Header
 * only, like e2e.h.
 */
#ifndef AUDITRUN_TESTS_E2E_GATE_H
#define AUDITRUN_TESTS_E2E_GATE_H

#include "tests/e2e/e2e.h"

struct gate {
    struct daemon *daemon;
    struct client *client;
    size_t rows;     /* that the ledger must have */
    json_int_t runs; /* that the daemon must have seen */
};

/* The configuration: the counted executor in place of the namespace one, and more; malloc'd. */
static inline char *gate_config(const struct daemon *daemon, const char *more)
{
    char *text = NULL;
    ck_assert_int_gt(asprintf(&text,
                              "[executor namespace]\n-\n"
                              "[executor counted]\nprogram = %s/counted\nslots = 1\n%s",
                              daemon_folder(daemon), more),
                     0);
    return text;
}

static inline void gate_write_program(const struct daemon *daemon)
{
    const char *build = getenv("AUDITRUN_BUILD");
    AR_AUTO_FREE char *path = daemon_path(daemon, "counted");
    AR_AUTO_FREE char *text = NULL;
    ck_assert_int_gt(asprintf(&text,
                              "#!/bin/sh\n[ \"$1\" = capabilities ] || echo start >>%s/starts\n"
                              "exec %s/tests/tools/fake_provider well \"$1\"\n",
                              daemon_folder(daemon), build ? build : "build"),
                     0);
    daemon_write_file(path, text, 0755);
}

static inline size_t gate_starts(const struct gate *gate)
{
    AR_AUTO_FREE char *path = daemon_path(gate->daemon, "starts");
    AR_AUTO_FREE char *text = access(path, F_OK) == 0 ? daemon_read_file(path) : strdup("");
    size_t lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    return lines;
}

/* The provider that stands ready ahead of demand is there. */
static inline bool gate_is_ready(void *context)
{
    struct gate *gate = context;
    AR_AUTO_JSON json_t *status = client_call(gate->client, "status", NULL);
    const json_t *executor = json_array_get(json_object_get(status, "executors"), 0);
    return !executor || json_integer_value(json_object_get(executor, "slots_idle")) == 1;
}

static inline struct gate gate_open(const char *more)
{
    struct gate gate = {0};
    gate.daemon = daemon_prepare(&(struct daemon_options){0});
    AR_AUTO_FREE char *config = gate_config(gate.daemon, more);
    gate_write_program(gate.daemon);
    daemon_configure(gate.daemon, config);
    daemon_start_again(gate.daemon);
    gate.client = daemon_connect(gate.daemon);
    ck_assert_msg(processes_wait(gate_is_ready, &gate, 10000), "no provider is ready");
    return gate;
}

static inline void gate_close(struct gate *gate)
{
    ck_assert_int_eq(e2e_status(gate->client, "runs", "total"), gate->runs);
    rows_expect(daemon_ledger(gate->daemon), gate->rows);
    client_disconnect(gate->client);
    daemon_free(gate->daemon);
}

/* The result of a run that must end so, with one row that says the same. Owned. */
static inline json_t *gate_run(struct gate *gate, json_t *params, const char *status,
                               const char *reason)
{
    json_t *result = client_call(gate->client, "run", params);
    client_expect(result, status, reason);
    rows_expect_result(daemon_ledger(gate->daemon), result);
    rows_expect(daemon_ledger(gate->daemon), ++gate->rows);
    gate->runs++;
    return result;
}

static inline void gate_served(struct gate *gate, json_t *params)
{
    json_decref(gate_run(gate, params, "succeeded", "exit_zero"));
}

/* The same for one that must not be let in: nothing is started for it, and it never began. */
static inline json_t *gate_refuse(struct gate *gate, json_t *params, const char *status,
                                  const char *reason)
{
    struct processes before = daemon_processes(gate->daemon);
    size_t starts = gate_starts(gate);
    json_t *result = gate_run(gate, params, status, reason);
    struct processes after = daemon_processes(gate->daemon);
    ck_assert_uint_eq(gate_starts(gate), starts);
    ck_assert_uint_eq(after.count, before.count);
    ck_assert_uint_eq(processes_alive(&before), before.count);
    struct rows rows = rows_read(daemon_ledger(gate->daemon));
    ck_assert_int_eq(rows.items[0]->started_at, ROW_NULL);
    ck_assert_str_eq(e2e_stdout(result), "");
    rows_free(&rows);
    processes_free(&before);
    processes_free(&after);
    return result;
}

static inline void gate_refused(struct gate *gate, json_t *params, const char *status,
                                const char *reason)
{
    AR_AUTO_JSON json_t *result = gate_refuse(gate, params, status, reason);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "denials")), 0);
}

/* Params that are no run: an error at this place. There is no row; gate_close() counts. */
static inline void gate_fault(struct gate *gate, json_t *params, const char *path,
                              const char *problem)
{
    AR_AUTO_JSON json_t *error = client_fail(gate->client, "run", params);
    client_expect_error(error, -32602, path, problem);
}

/* A plain run with more params. */
static inline json_t *gate_params(const char *more)
{
    return client_params("fake", "print 1", more);
}

#endif
