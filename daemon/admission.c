/*
 * admission.c - the one check that every run passes.
 *
 * A flat list of named steps in the order in which they are reported: what the client may do, what is
 * switched off, which executor covers what is asked. The first step that ends the run is its answer,
 * save that all demands that an envelope does not cover are listed together. Nothing else in the
 * daemon admits a run, and nothing starts a provider for a run that was not admitted.
 */
#include "daemon/admission.h"

#include "daemon/config.h"
#include "daemon/paths.h"
#include "daemon/policy.h"
#include "daemon/registry.h"
#include "daemon/secrets.h"
#include "daemon/switches.h"

#include <string.h>

/* Steps return 0: go on, 1: the run has ended, -ENOMEM. */
typedef int admission_step(struct run *run);

static int check_drain(struct run *run)
{
    if (!run->line->draining)
        return 0;
    run_end(run, REASON_DRAINING);
    return 1;
}

static int check_company(struct run *run)
{
    if (config_names_allow(&run->client.policy->companies, run->request->company))
        return 0;
    run_end(run, REASON_COMPANY_NOT_ALLOWED);
    return 1;
}

static int check_executor(struct run *run)
{
    const struct request *request = run->request;
    const struct config_client *policy = run->client.policy;
    bool allowed =
        config_names_allow(&policy->languages, request->language) &&
        (!request->executor || config_names_allow(&policy->executors, request->executor));
    if (allowed)
        return 0;
    run_end(run, REASON_EXECUTOR_NOT_ALLOWED);
    return 1;
}

static int check_purpose(struct run *run)
{
    if (config_names_allow(&run->client.policy->purposes, run->request->purpose))
        return 0;
    run_end(run, REASON_GRANT_NOT_ALLOWED);
    return 1;
}

static int check_ceilings(struct run *run)
{
    if (policy_allows_grant(&run->client.policy->ceilings, &run->request->grant))
        return 0;
    run_end(run, REASON_GRANT_NOT_ALLOWED);
    return 1;
}

static bool paths_are_below(const struct text_list *paths, const struct text_list *roots)
{
    for (size_t i = 0; i < paths->count; i++) {
        bool below = false;
        for (size_t k = 0; k < roots->count && !below; k++)
            below = text_path_is_below(paths->items[i], roots->items[k]);
        if (!below)
            return false;
    }
    return true;
}

/* Host paths only below the roots that the configuration allows for this company. */
static int check_paths(struct run *run)
{
    static const struct config_company none;
    const struct grant *grant = &run->request->grant;
    const struct config_company *company = config_company(run->config, run->request->company);
    if (!company)
        company = &none;
    if (paths_are_below(&grant->read, &company->read) &&
        paths_are_below(&grant->write, &company->write))
        return 0;
    run_end(run, REASON_GRANT_NOT_ALLOWED);
    return 1;
}

/* Is this executor the one that is named, or one of those that the client may use? */
static bool is_eligible(const struct run *run, const struct config_executor *executor)
{
    if (run->request->executor)
        return strcmp(executor->name, run->request->executor) == 0;
    return config_names_allow(&run->client.policy->executors, executor->name);
}

/* There are executors for this run, and all of them are switched off. */
static bool executors_are_off(const struct run *run)
{
    const struct config *config = run->config;
    size_t off = 0;
    for (size_t i = 0; i < config->executor_count; i++) {
        if (!is_eligible(run, &config->executors[i]))
            continue;
        if (!switches_executor_is_off(run, config->executors[i].name))
            return false;
        off++;
    }
    return off > 0;
}

static int check_switches(struct run *run)
{
    enum reason off = switches_forbid(run);
    if (!off && executors_are_off(run))
        off = REASON_EXECUTOR;
    if (!off)
        return 0;
    run_end(run, off);
    return 1;
}

/* May this executor be tried for this run at all? */
static bool is_candidate(const struct run *run, const struct executor *executor)
{
    const struct config_executor *config = executor_config(executor);
    return executor_envelope(executor) && !switches_executor_is_off(run, config->name) &&
           is_eligible(run, config);
}

/* What a limit that is not asked for is: its default, lowered to the client's ceiling. */
static struct limits defaults_for(const struct run *run)
{
    struct limits defaults = run->config->limits;
    policy_lower(&run->client.policy->ceilings, &defaults);
    return defaults;
}

/* What the executor has to cover. A ceiling holds for limits that are not asked for, too: so they are
 * demanded of an executor that cannot enforce them. Lists stay the request's own. */
static struct grant demanded_of(const struct run *run, const struct envelope *envelope)
{
    const struct config_ceilings *ceilings = &run->client.policy->ceilings;
    struct limits defaults = defaults_for(run);
    struct grant demanded = run->request->grant;
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (ceilings->limits[i] == 0 || demanded.limits.has[i] || envelope->limits.has[i])
            continue;
        demanded.limits.has[i] = true;
        demanded.limits.value[i] = defaults.value[i];
    }
    return demanded;
}

/* Compares with one executor. 0: it covers all and is chosen; 1: it does not, and its denials stay
 * with the run if they are the first or fewer; -ENOMEM. */
static int try_executor(struct run *run, struct executor *executor)
{
    struct denials denials;
    const struct envelope *envelope = executor_envelope(executor);
    const struct grant demanded = demanded_of(run, envelope);
    int rc = envelope_compare(envelope, run->request->language, &demanded, &denials);
    if (rc < 0)
        return rc;
    if (run->executor && denials.count >= run->denials.count) {
        denials_free(&denials);
        return 1;
    }
    denials_free(&run->denials);
    run->denials = denials;
    run_choose(run, executor);
    memcpy(run->envelope_sha256, envelope->sha256, DIGEST_HEX_BYTES);
    return denials.count ? 1 : 0;
}

static int check_envelope(struct run *run)
{
    struct executor *executor = NULL;
    while ((executor = registry_next(run->line->registry, executor))) {
        if (!is_candidate(run, executor))
            continue;
        int rc = try_executor(run, executor);
        if (rc <= 0)
            return rc;
    }
    run_end(run, run->executor ? REASON_NOT_ENFORCEABLE : REASON_NO_EXECUTOR);
    return 1;
}

/* Of the paths of one kind those that are not there. 0, 1: the run has denials now; negative. */
static int deny_missing_paths(struct run *run, enum demand demand, const struct text_list *paths,
                              const struct text_list *roots)
{
    AR_CLEANUP(text_list_free) struct text_list missing = {0};
    int rc = paths_check(paths, roots, demand == DEMAND_FILESYSTEM_WRITE, &missing);
    return rc > 0 && denials_add_list(&run->denials, demand, &missing) < 0 ? -ENOMEM : rc;
}

/* The host paths are there, without a link on the way. */
static int check_paths_exist(struct run *run)
{
    const struct grant *grant = &run->request->grant;
    const struct config_company *company = config_company(run->config, run->request->company);
    if (!company)
        return 0;
    int read = deny_missing_paths(run, DEMAND_FILESYSTEM_READ, &grant->read, &company->read);
    int write =
        read < 0 ? read
                 : deny_missing_paths(run, DEMAND_FILESYSTEM_WRITE, &grant->write, &company->write);
    if (write < 0 || (read == 0 && write == 0))
        return write;
    run_end(run, REASON_NOT_ENFORCEABLE);
    return 1;
}

static int check_secrets(struct run *run)
{
    const struct request *request = run->request;
    AR_CLEANUP(text_list_free) struct text_list missing = {0};
    if (request->grant.secrets.count == 0)
        return 0;
    int rc = secrets_load(&run->config->secrets, request->company, &request->grant.secrets,
                          &run->secrets, &missing);
    if (rc <= 0)
        return rc;
    if (denials_add_list(&run->denials, DEMAND_SECRETS, &missing) < 0)
        return -ENOMEM;
    run_end(run, REASON_NO_SUCH_SECRET);
    return 1;
}

/* From here on the grant is the effective one: enforced, recorded, returned. A run that is denied is
 * recorded with the grant that it would have had. */
static void fill_grant(struct run *run)
{
    struct limits defaults = defaults_for(run);
    if (run->executor)
        grant_fill(&run->request->grant, &defaults, &executor_envelope(run->executor)->limits);
}

void admission_stage(struct run *run, run_done_fn *done)
{
    static admission_step *const steps[] = {
        check_drain, check_company,  check_purpose,  check_executor,    check_ceilings,
        check_paths, check_switches, check_envelope, check_paths_exist, check_secrets};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < AR_COUNT(steps); i++)
        rc = steps[i](run);
    if (rc < 0)
        run_end(run, REASON_OVERLOADED);
    fill_grant(run);
    done(run);
}
