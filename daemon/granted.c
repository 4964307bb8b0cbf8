/*
 * granted.c - makes what a grant gives, and counts it.
 *
 * Each part has a file of its own; this one knows which of them a run has, in what order their
 * descriptors go to the provider, and that all of it ends with the run.
 */
#include "daemon/granted.h"

#include "daemon/config.h"
#include "daemon/dataport.h"
#include "daemon/egress.h"
#include "daemon/paths.h"
#include "daemon/provider.h"
#include "daemon/secrets.h"

unsigned granted_reach(const struct grant *grant)
{
    unsigned reach = 0;
    if (grant->network != NETWORK_NONE)
        reach |= PROVIDER_REACHES_NETWORK;
    if (grant->read.count > 0 || grant->write.count > 0)
        reach |= PROVIDER_REACHES_FILES;
    return reach;
}

static int open_data_port(struct granted *granted, struct spec_run *order, int *descriptors)
{
    const struct run *run = granted->run;
    const struct request *request = run->request;
    const struct dataport_start start = {.base = run->line->base,
                                         .config = &run->config->data_port,
                                         .methods = &request->grant.data_api,
                                         .company = request->company,
                                         .actor = request->actor,
                                         .purpose = request->purpose,
                                         .run_id = run->id};
    if (request->grant.data_api.count == 0)
        return 0;
    order->data_port = true;
    return dataport_open(&start, &granted->dataport, &descriptors[SPEC_DESCRIPTORS]);
}

static int open_secrets(const struct run *run, struct spec_run *order, int *descriptors)
{
    if (!run->secrets)
        return 0;
    order->secrets = true;
    return secrets_file(run->secrets, &descriptors[spec_run_secrets_place(order)]);
}

static int open_paths(const struct run *run, int64_t owner, struct spec_run *order,
                      int *descriptors)
{
    const struct grant *grant = &run->request->grant;
    const struct config_company *company = config_company(run->config, run->request->company);
    int *fds = &descriptors[spec_run_paths_place(order)];
    if (!company) /* then the grant has none */
        return 0;
    int rc = paths_open(&grant->read, &company->read, false, owner, fds);
    if (rc == 0)
        order->paths = grant->read.count;
    if (rc == 0)
        rc = paths_open(&grant->write, &company->write, true, owner, fds + order->paths);
    if (rc == 0)
        order->paths += grant->write.count;
    return rc;
}

static int open_network(struct granted *granted)
{
    const struct run *run = granted->run;
    const struct egress_start start = {.base = run->line->base,
                                       .resolver = run->line->resolver,
                                       .config = &run->config->network,
                                       .grant = &run->request->grant};
    return start.grant->network == NETWORK_NONE ? 0 : egress_new(&start, &granted->egress);
}

int granted_open(struct granted *granted, struct run *run, int64_t owner, struct spec_run *order,
                 int descriptors[SPEC_MAX_DESCRIPTORS])
{
    granted->run = run;
    int rc = open_data_port(granted, order, descriptors);
    if (rc == 0)
        rc = open_secrets(run, order, descriptors);
    if (rc == 0)
        rc = open_paths(run, owner, order, descriptors);
    return rc == 0 ? open_network(granted) : rc;
}

int granted_listen(struct granted *granted, int listener)
{
    if (granted->egress)
        return egress_listen(granted->egress, listener);
    base_close(&listener);
    return 1;
}

void granted_end(struct granted *granted)
{
    struct run *run = granted->run;
    if (granted->dataport)
        dataport_usage(granted->dataport, &run->usage.data_api);
    if (granted->egress) {
        egress_usage(granted->egress, &run->usage.network);
        if (run->request->grant.network == NETWORK_ALLOWLIST)
            run->network_hosts = egress_hosts(granted->egress);
    }
    dataport_free(AR_TAKE(granted->dataport));
    egress_free(AR_TAKE(granted->egress));
}
