/*
 * main.c - auditrund: options, configuration, then service.c.
 *
 * Privileges that it was started with are turned into ids for slots and given up before anything else.
 *
 * Exit codes: 0 ended as told, 1 could not start, or what was to be checked is wrong, 2 bad usage.
 */
#include "daemon/config.h"
#include "daemon/idspace.h"
#include "daemon/journal_repair.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/service.h"

#include <stdio.h>
#include <string.h>

static void tell_ids(const struct idspace *space)
{
    if (space->why)
        log_warning("slots get no ids of their own, code runs as the daemon's user: %s",
                    space->why);
    else if (space->asked)
        log_info("slots get ids of their own: there are %u", space->count);
}

static int serve(const struct config *config, const char *path, const struct idspace *space)
{
    struct service *service;
    log_open(LOG_JOURNAL);
    log_set_level((enum log_level)config->log_level);
    tell_ids(space);
    int rc = service_start(config, path, space->fd, &service);
    if (rc < 0)
        log_error("cannot start: %s", strerror(-rc));
    if (rc != 0)
        return 1;
    rc = service_run(service);
    service_free(service);
    log_info("ended");
    return rc;
}

static int do_task(const struct options *options, const struct config *config,
                   const struct idspace *space)
{
    switch (options->task) {
    case OPTIONS_CHECK_CONFIG:
        (void)printf("%s: good\n", options->config_path);
        return 0;
    case OPTIONS_CHECK_JOURNAL:
        return journal_repair_check(config->journal_directory, stdout);
    case OPTIONS_REPAIR_JOURNAL:
        return journal_repair_mend(config->journal_directory, stdout);
    default:
        return serve(config, options->config_path, space);
    }
}

int main(int argc, char **argv)
{
    struct options options;
    const struct config *config;
    struct idspace space;
    char message[CONFIG_MESSAGE_BYTES];
    int rc = idspace_take(&space);
    if (rc < 0) {
        (void)fprintf(stderr, "auditrund: privileges cannot be dropped: %s\n", strerror(-rc));
        return 1;
    }
    rc = options_parse(argc, argv, &options);
    if (rc != 0)
        return rc == 1 ? 0 : 2;
    rc = config_load(options.config_path, &config, message);
    if (rc != 0) {
        (void)fprintf(stderr, "auditrund: %s\n", rc > 0 ? message : strerror(-rc));
        return 1;
    }
    rc = do_task(&options, config, &space);
    config_release(config);
    idspace_close(&space);
    return rc;
}
