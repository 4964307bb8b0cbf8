/*
 * resolver.c - names to addresses by libevent's resolver.
 *
 * A query has an owner until it is answered or cancelled, and is known to libevent until that has told
 * its end, which it does from the loop even for what was cancelled: the query lives for both. The same
 * holds for the whole: it is freed when nothing of it is out any more. All queries of all runs go out
 * at once, since a queue would let one run's slow names hold up the others; a name server is not given
 * up because of names that it is slow to find. One that libevent does hold for broken (it says so of
 * any name that ends in a server's failure) is still asked when there is no better one, and good again with
 * its next answer; libevent's own question to find that out is put off, since nobody asked for it.
 */
#include "daemon/resolver.h"

#include "daemon/deadline.h"
#include "daemon/log.h"

#include <event2/dns.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <string.h>

struct resolver {
    struct event_base *base;
    struct evdns_base *dns;
    size_t out; /* queries that libevent knows */
    bool closed;
};

struct resolver_query {
    struct resolver *resolver;
    struct evdns_getaddrinfo_request *request; /* NULL: libevent is through with it */
    resolver_fn *answer;                       /* NULL: nobody waits for it any more */
    void *context;
    struct deadline deadline;
    bool is_starting, is_out;
    enum resolver_outcome outcome;
    struct address addresses[RESOLVER_MAX_ADDRESSES];
    size_t count;
};

/* In our own words, and for the curious only: code can have this said as often as it likes. */
static void hear(int is_warning, const char *message)
{
    (void)message;
    if (is_warning)
        log_debug("the state of a name server has changed");
}

static int configure(struct evdns_base *dns)
{
    static const struct {
        const char *name, *value;
    } options[] = {
        {"max-inflight", "16384"},
        {"max-timeouts", "255"},
        {"timeout", "2"},
        {"attempts", "3"},
        {"initial-probe-timeout", "3600"},
        {"getaddrinfo-allow-skew", "1"},
    };
    for (size_t i = 0; i < AR_COUNT(options); i++)
        if (evdns_base_set_option(dns, options[i].name, options[i].value) != 0)
            return -EINVAL;
    return 0;
}

static int add_servers(struct evdns_base *dns, const struct text_list *servers)
{
    for (size_t i = 0; i < servers->count; i++)
        if (evdns_base_nameserver_ip_add(dns, servers->items[i]) != 0)
            return -EINVAL;
    /* A host without a readable file has its server on itself, as the C library has it. */
    if (servers->count == 0)
        (void)evdns_base_resolv_conf_parse(dns, DNS_OPTION_NAMESERVERS | DNS_OPTION_HOSTSFILE,
                                           "/etc/resolv.conf");
    return 0;
}

int resolver_new(struct event_base *base, const struct config_network *config,
                 struct resolver **out)
{
    struct resolver *resolver = calloc(1, sizeof *resolver);
    if (!resolver)
        return -ENOMEM;
    resolver->base = base;
    evdns_set_log_fn(hear);
    resolver->dns = evdns_base_new(base, 0);
    int rc = resolver->dns ? configure(resolver->dns) : -ENOMEM;
    if (rc == 0)
        rc = add_servers(resolver->dns, &config->nameservers);
    if (rc < 0)
        resolver_free(resolver);
    else
        *out = resolver;
    return rc;
}

static void free_if_over(struct resolver *resolver)
{
    if (!resolver->closed || resolver->out > 0)
        return;
    if (resolver->dns)
        evdns_base_free(resolver->dns, 0);
    free(resolver);
}

void resolver_free(struct resolver *resolver)
{
    if (!resolver)
        return;
    resolver->closed = true;
    free_if_over(resolver);
}

/* Frees it when nobody waits for it and libevent has let go of it. */
static void let_go(struct resolver_query *query)
{
    if (query->answer || query->is_out)
        return;
    deadline_free(&query->deadline);
    free(query);
}

static void tell(struct resolver_query *query)
{
    resolver_fn *answer = query->answer;
    query->answer = NULL;
    deadline_stop(&query->deadline);
    answer(query->context, query->outcome, query->addresses, query->count);
}

/* libevent does not tell a name without addresses from a server's failure. */
static enum resolver_outcome outcome_of(int error, size_t count)
{
    if (count > 0)
        return RESOLVER_FOUND;
    return error == EVUTIL_EAI_NONAME ? RESOLVER_NOT_FOUND : RESOLVER_FAILED;
}

static void take_addresses(struct resolver_query *query, const struct evutil_addrinfo *list)
{
    for (; list && query->count < RESOLVER_MAX_ADDRESSES; list = list->ai_next)
        if (address_from_sockaddr(list->ai_addr, &query->addresses[query->count]))
            query->count++;
}

/* libevent's last word. A name of hosts(5) is found before the asking has returned. */
static void found(int error, struct evutil_addrinfo *list, void *context)
{
    struct resolver_query *query = context;
    struct resolver *resolver = query->resolver;
    query->request = NULL;
    query->is_out = false;
    resolver->out--;
    take_addresses(query, list);
    query->outcome = outcome_of(error, query->count);
    if (list)
        evutil_freeaddrinfo(list);
    if (query->is_starting) {
        deadline_start(&query->deadline, 0);
        return;
    }
    if (query->answer)
        tell(query);
    let_go(query);
    free_if_over(resolver);
}

/* What is out is taken back: libevent tells that from the loop. */
static void take_back(struct resolver_query *query)
{
    if (query->request)
        evdns_getaddrinfo_cancel(query->request);
    query->request = NULL;
}

static void passed(void *context)
{
    struct resolver_query *query = context;
    take_back(query);
    tell(query);
    let_go(query);
}

int resolver_lookup(struct resolver *resolver, const char *name, int64_t timeout_ms,
                    resolver_fn *answer, void *context, struct resolver_query **out)
{
    const struct evutil_addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
    struct resolver_query *query = calloc(1, sizeof *query);
    if (!query)
        return -ENOMEM;
    *query = (struct resolver_query){.resolver = resolver,
                                     .answer = answer,
                                     .context = context,
                                     .outcome = RESOLVER_FAILED,
                                     .is_starting = true,
                                     .is_out = true};
    if (deadline_init(&query->deadline, resolver->base, passed, query) < 0) {
        free(query);
        return -ENOMEM;
    }
    resolver->out++;
    deadline_start(&query->deadline, timeout_ms);
    struct evdns_getaddrinfo_request *request =
        evdns_getaddrinfo(resolver->dns, name, NULL, &hints, found, query);
    query->request = query->is_out ? request : NULL;
    query->is_starting = false;
    *out = query;
    return 0;
}

void resolver_cancel(struct resolver_query *query)
{
    if (!query)
        return;
    query->answer = NULL;
    deadline_stop(&query->deadline);
    take_back(query);
    let_go(query);
}
