/*
 * grant.h - what a request asks that the code may do, as a checked struct.
 *
 * What is left out is the least: no network, no data API, no secret, no host path. Limits that are
 * left out are filled in by grant_fill() before the grant is enforced and recorded: the result is
 * the effective grant.
 */
#ifndef AUDITRUN_PROTOCOL_GRANT_H
#define AUDITRUN_PROTOCOL_GRANT_H

#include "protocol/json.h"
#include "protocol/text.h"

#define GRANT_MAX_HOSTS   64
#define GRANT_MAX_METHODS 64
#define GRANT_MAX_SECRETS 32
#define GRANT_MAX_PATHS   32

struct limits {
    bool has[LIMIT_COUNT];
    int64_t value[LIMIT_COUNT];
};

struct grant {
    enum network_mode network;
    struct text_list hosts; /* only with NETWORK_ALLOWLIST, where it is not empty */
    struct text_list data_api;
    struct text_list secrets;
    struct text_list secrets_env; /* those of them that are environment variables too */
    struct text_list read;
    struct text_list write;
    struct limits limits;
};

/* Reads a grant (value may be NULL: nothing asked). Ranges of limits: each 1..2^53-1; wall_ms at
 * most 86,400,000. The same path in read and in write is a conflict, and so is one of secrets_env that
 * is not in secrets. Returns 0 with *out owned by
 * the caller (grant_free), 1 with the fault set, or -ENOMEM. */
int grant_parse(const json_t *value, const struct json_place *place, struct grant *out,
                struct fault *fault) AR_MUST_CHECK;
void grant_free(struct grant *grant);

/* Makes the grant the effective one. Its lists are sorted, as they are recorded and handed on. For each
 * limit that it leaves out: the default, lowered to what is offered; a limit that
 * is not offered stays out (the record then says honestly that there was none). */
void grant_fill(struct grant *grant, const struct limits *defaults, const struct limits *offered);

/* The effective grant as it is recorded and returned: every member present (hosts only with an
 * allow-list, secrets_env only where it is not empty), lists sorted and without repetition, limits
 * that are set. NULL when out of memory. */
json_t *grant_to_json(const struct grant *grant) AR_MUST_CHECK;

/* limits alone, {"wall_ms": ...}; NULL when out of memory. */
json_t *limits_to_json(const struct limits *limits) AR_MUST_CHECK;

#endif
