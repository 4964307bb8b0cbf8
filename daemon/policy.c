/*
 * policy.c - whether what is asked is within what the configuration lets a client ask.
 *
 * What a request leaves out is the least and within every ceiling, save the limits: their defaults are
 * lowered to the ceilings by admission.c.
 */
#include "daemon/policy.h"

#include "protocol/target.h"

#include <string.h>

typedef bool covers_fn(const char *allowed, const char *asked);

static bool is_same(const char *allowed, const char *asked)
{
    return strcmp(allowed, asked) == 0;
}

static bool covers_all(const struct config_names *allowed, const struct text_list *asked,
                       covers_fn *covers)
{
    for (size_t i = 0; !allowed->all && i < asked->count; i++) {
        bool covered = false;
        for (size_t k = 0; k < allowed->list.count && !covered; k++)
            covered = covers(allowed->list.items[k], asked->items[i]);
        if (!covered)
            return false;
    }
    return true;
}

static bool allows_network(const struct config_ceilings *ceilings, const struct grant *grant)
{
    if (grant->network > ceilings->network)
        return false;
    if (grant->network == NETWORK_OPEN)
        return ceilings->hosts.all;
    return covers_all(&ceilings->hosts, &grant->hosts, target_pattern_covers);
}

static bool allows_files(enum config_files most, const struct grant *grant)
{
    return (grant->read.count == 0 || most >= CONFIG_FILES_READ) &&
           (grant->write.count == 0 || most >= CONFIG_FILES_WRITE);
}

static bool allows_limits(const int64_t most[LIMIT_COUNT], const struct limits *asked)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if (most[i] > 0 && asked->has[i] && asked->value[i] > most[i])
            return false;
    return true;
}

bool policy_allows_grant(const struct config_ceilings *ceilings, const struct grant *grant)
{
    return allows_network(ceilings, grant) && allows_files(ceilings->files, grant) &&
           covers_all(&ceilings->data_api, &grant->data_api, text_api_method_covers) &&
           covers_all(&ceilings->secrets, &grant->secrets, is_same) &&
           allows_limits(ceilings->limits, &grant->limits);
}

void policy_lower(const struct config_ceilings *ceilings, struct limits *limits)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if (ceilings->limits[i] > 0 && limits->has[i] && limits->value[i] > ceilings->limits[i])
            limits->value[i] = ceilings->limits[i];
}

static bool allows_any(const struct config_names *names)
{
    return names->all || names->list.count > 0;
}

static void cut_down(const struct config_ceilings *ceilings, struct envelope *envelope)
{
    for (int mode = NETWORK_NONE + 1; mode < NETWORK_MODE_COUNT; mode++)
        envelope->network[mode] &= mode <= (int)ceilings->network && allows_any(&ceilings->hosts);
    envelope->network[NETWORK_OPEN] &= ceilings->hosts.all;
    envelope->data_api &= allows_any(&ceilings->data_api);
    envelope->secrets &= allows_any(&ceilings->secrets);
    envelope->filesystem_read &= ceilings->files >= CONFIG_FILES_READ;
    envelope->filesystem_write &= ceilings->files >= CONFIG_FILES_WRITE;
    policy_lower(ceilings, &envelope->limits);
}

static int drop_languages(json_t *languages, const struct config_names *allowed)
{
    int rc = 0;
    for (size_t i = json_array_size(languages); rc == 0 && i-- > 0;) {
        const json_t *name = json_object_get(json_array_get(languages, i), "name");
        if (!config_names_allow(allowed, json_string_value(name)))
            rc = json_array_remove(languages, i);
    }
    return rc;
}

json_t *policy_show(const struct config_client *client, const struct envelope *envelope)
{
    struct envelope view = *envelope; /* borrows */
    cut_down(&client->ceilings, &view);
    json_t *value = envelope_to_json(&view);
    json_t *unavailable = json_object_get(value, "unavailable");
    if (!value || drop_languages(json_object_get(value, "languages"), &client->languages) != 0 ||
        drop_languages(unavailable, &client->languages) != 0) {
        json_decref(value);
        return NULL;
    }
    if (unavailable && json_array_size(unavailable) == 0)
        (void)json_object_del(value, "unavailable");
    return value;
}
