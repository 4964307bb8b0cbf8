/*
 * switch.h - a throw of a switch as a checked struct: params of `disable` and `enable`, and what the
 * journal keeps of what is switched off.
 */
#ifndef AUDITRUN_PROTOCOL_SWITCH_H
#define AUDITRUN_PROTOCOL_SWITCH_H

#include "protocol/json.h"

#define SWITCH_NAME_BYTES 200
#define SWITCH_WHY_BYTES  200

/* Which switch. name is "" with SWITCH_ALL; of an executor or a language it is a name of the
 * configuration's form. */
struct switch_key {
    enum switch_scope scope;
    char name[SWITCH_NAME_BYTES + 1];
};

struct switch_order {
    struct switch_key key;
    char why[SWITCH_WHY_BYTES + 1];
    bool now; /* disable: what is under way is cancelled */
};

/* Members: scope, name (where the scope has one), why; and now, where `disable` is asked for. 0, or 1 with
 * the fault set. */
int switch_order_parse(const json_t *params, bool disable, struct switch_order *out,
                       struct fault *fault) AR_MUST_CHECK;

bool switch_key_equal(const struct switch_key *one, const struct switch_key *other);
/* The name as JSON: null where the scope has none. Owned; NULL when out of memory. */
json_t *switch_key_name(const struct switch_key *key) AR_MUST_CHECK;

/* One thing that an operator has switched off. */
struct switch_off {
    struct switch_key key;
    char why[SWITCH_WHY_BYTES + 1];
    char client[33]; /* the [client] who did it */
    int64_t uid;
    int64_t since_us; /* wall clock */
};

/* The journal's text of it: malloc'd, NULL when out of memory; and back: 0, 1 when it is no such text, or
 * -ENOMEM. */
char *switch_off_text(const struct switch_off *off) AR_MUST_CHECK;
int switch_off_parse(const char *text, struct switch_off *out) AR_MUST_CHECK;

#endif
