/*
 * fake.c - see fake.h. The program is that of the build that is tested.
 */
#include "tests/lib/fake.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

char *fake_config(const char *const *modes, int slots, const char *more)
{
    const char *build = getenv("AUDITRUN_BUILD");
    char *text = NULL;
    ck_assert_int_gt(asprintf(&text, "[executor namespace]\n-\n"), 0);
    for (size_t i = 0; modes[i]; i++) {
        AR_AUTO_FREE char *before = text;
        ck_assert_int_gt(asprintf(&text,
                                  "%s[executor %s]\nprogram = %s/tests/tools/fake_provider\n"
                                  "args = %s\nslots = %d\n",
                                  before, modes[i], build ? build : "build", modes[i], slots),
                         0);
    }
    AR_AUTO_FREE char *before = text;
    ck_assert_int_gt(asprintf(&text, "%s%s", before, more ? more : ""), 0);
    return text;
}

struct daemon *fake_daemon(const char *const *modes, int slots, const char *more)
{
    AR_AUTO_FREE char *config = fake_config(modes, slots, more);
    struct daemon_options options = {.config = config};
    return daemon_new(&options);
}

json_t *fake_params(const char *mode, const char *code, const char *more)
{
    json_t *params = client_params("fake", code, more);
    ck_assert_int_eq(json_object_set_new(params, "executor", json_string(mode)), 0);
    return params;
}

json_t *fake_run(struct client *client, const char *mode, const char *code, const char *more)
{
    return client_call(client, "run", fake_params(mode, code, more));
}

void fake_expect(const struct daemon *daemon, struct client *client, const char *mode,
                 const char *code, const char *more, const char *status, const char *reason)
{
    AR_AUTO_JSON json_t *result = fake_run(client, mode, code, more);
    client_expect(result, status, reason);
    rows_expect_result(daemon_ledger(daemon), result);
}
