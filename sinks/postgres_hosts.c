/*
 * postgres_hosts.c - see postgres_hosts.h.
 *
 * Loop and thread share the struct lookup, which whoever lets go of it last frees. The thread writes
 * its lists before it wakes the loop, and nothing afterwards.
 */
#include "sinks/postgres_hosts.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define MAX_HOSTS     16 /* in a connection string; more are left to libpq */
#define MAX_ADDRESSES 32 /* of all of them */

struct lookup {
    unsigned holders; /* atomic */
    int wake;         /* eventfd: the lists are there */
    char *hosts, *ports;
    /* Written by the thread: */
    char *host, *hostaddr, *port;
    size_t addresses; /* atomic, written last */
};

struct postgres_hosts {
    struct lookup *lookup;
    struct event *woken;
    postgres_hosts_fn *done;
    void *context;
};

static void lookup_release(struct lookup *lookup)
{
    if (__atomic_sub_fetch(&lookup->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (lookup->wake >= 0)
        (void)close(lookup->wake);
    free(lookup->hosts);
    free(lookup->ports);
    free(lookup->host);
    free(lookup->hostaddr);
    free(lookup->port);
    free(lookup);
}

/* ---- the thread ----------------------------------------------------------------------------- */

struct lists {
    FILE *host, *hostaddr, *port;
    size_t count;
};

static void add(struct lists *lists, const char *host, const char *address, const char *port)
{
    const char *comma = lists->count > 0 ? "," : "";
    if (lists->count == MAX_ADDRESSES)
        return;
    (void)fprintf(lists->host, "%s%s", comma, host);
    (void)fprintf(lists->hostaddr, "%s%s", comma, address);
    (void)fprintf(lists->port, "%s%s", comma, port);
    lists->count++;
}

/* A path of a socket, or an address: nothing to ask for. */
static bool is_no_name(const char *host)
{
    struct in6_addr any;
    return host[0] == '\0' || host[0] == '/' || host[0] == '@' ||
           inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static void resolve(struct lists *lists, const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char address[NI_MAXHOST];
    if (is_no_name(host)) {
        add(lists, host, "", port);
        return;
    }
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return;
    for (const struct addrinfo *one = found; one; one = one->ai_next)
        if (getnameinfo(one->ai_addr, one->ai_addrlen, address, sizeof(address), NULL, 0,
                        NI_NUMERICHOST) == 0)
            add(lists, host, address, port);
    freeaddrinfo(found);
}

/* Each host with its port; one port alone is that of all hosts. */
static void resolve_all(struct lists *lists, char *hosts, char *ports)
{
    char *host;
    const char *port = strsep(&ports, ",");
    while ((host = strsep(&hosts, ","))) {
        resolve(lists, host, port);
        if (ports)
            port = strsep(&ports, ",");
    }
}

static void *thread_main(void *context)
{
    struct lookup *lookup = context;
    size_t length[3];
    struct lists lists = {.host = open_memstream(&lookup->host, &length[0]),
                          .hostaddr = open_memstream(&lookup->hostaddr, &length[1]),
                          .port = open_memstream(&lookup->port, &length[2])};
    if (lists.host && lists.hostaddr && lists.port)
        resolve_all(&lists, lookup->hosts, lookup->ports);
    FILE *const streams[] = {lists.host, lists.hostaddr, lists.port};
    bool whole = true;
    for (size_t i = 0; i < AR_COUNT(streams); i++)
        if (!streams[i] || fclose(streams[i]) != 0)
            whole = false;
    __atomic_store_n(&lookup->addresses, whole ? lists.count : 0, __ATOMIC_RELEASE);
    uint64_t one = 1;
    ssize_t written = write(lookup->wake, &one, sizeof(one));
    (void)written; /* it cannot fail: the counter is 0 */
    lookup_release(lookup);
    return NULL;
}

/* Signals are the loop's: the thread blocks them all. */
static int start_thread(struct lookup *lookup)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0)
        return -rc;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)__atomic_add_fetch(&lookup->holders, 1, __ATOMIC_ACQ_REL);
    rc = pthread_create(&thread, &attributes, thread_main, lookup);
    if (rc != 0)
        lookup_release(lookup);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return -rc;
}

/* ---- the connection string ------------------------------------------------------------------ */

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (; options && options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val && options->val[0] ? options->val : NULL;
    return NULL;
}

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

static bool has_name(const char *hosts)
{
    AR_AUTO_FREE char *copy = strdup(hosts);
    char *rest = copy;
    char *host;
    while (copy && (host = strsep(&rest, ",")))
        if (!is_no_name(host))
            return true;
    return false;
}

/* 0 with hosts and ports set, 1 when there is nothing to ask for, -ENOMEM. */
static int read_lists(struct lookup *lookup, const PQconninfoOption *given,
                      const PQconninfoOption *defaults)
{
    const char *hosts = value_of(given, "host");
    const char *ports = value_of(given, "port");
    hosts = hosts ? hosts : value_of(defaults, "host");
    ports = ports ? ports : value_of(defaults, "port");
    if (!hosts || !ports || value_of(given, "hostaddr") || value_of(given, "service"))
        return 1;
    if (count_items(hosts) > MAX_HOSTS || !has_name(hosts) ||
        (count_items(ports) != 1 && count_items(ports) != count_items(hosts)))
        return 1;
    lookup->hosts = strdup(hosts);
    lookup->ports = strdup(ports);
    return lookup->hosts && lookup->ports ? 0 : -ENOMEM;
}

static int read_conninfo(struct lookup *lookup, const char *conninfo)
{
    PQconninfoOption *given = PQconninfoParse(conninfo, NULL);
    PQconninfoOption *defaults = PQconndefaults();
    int rc = given ? read_lists(lookup, given, defaults) : 1;
    PQconninfoFree(given);
    PQconninfoFree(defaults);
    return rc;
}

/* ---- the loop's side ------------------------------------------------------------------------ */

static void woken(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_hosts *hosts = context;
    const struct lookup *lookup = hosts->lookup;
    size_t addresses = __atomic_load_n(&lookup->addresses, __ATOMIC_ACQUIRE);
    const struct postgres_hosts_lists lists = {
        .host = lookup->host, .hostaddr = lookup->hostaddr, .port = lookup->port};
    hosts->done(hosts->context, addresses > 0 ? &lists : NULL);
}

static int connect_to_loop(struct postgres_hosts *hosts, struct event_base *base)
{
    hosts->lookup->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (hosts->lookup->wake < 0)
        return -errno;
    hosts->woken = event_new(base, hosts->lookup->wake, EV_READ, woken, hosts);
    return hosts->woken && event_add(hosts->woken, NULL) == 0 ? 0 : -ENOMEM;
}

int postgres_hosts_find(struct event_base *base, const char *conninfo, postgres_hosts_fn *done,
                        void *context, struct postgres_hosts **out)
{
    struct postgres_hosts *hosts = calloc(1, sizeof(*hosts));
    if (!hosts)
        return -ENOMEM;
    hosts->done = done;
    hosts->context = context;
    hosts->lookup = calloc(1, sizeof(*hosts->lookup));
    int rc = hosts->lookup ? 0 : -ENOMEM;
    if (rc == 0) {
        hosts->lookup->holders = 1;
        hosts->lookup->wake = -1;
        rc = read_conninfo(hosts->lookup, conninfo);
    }
    if (rc == 0)
        rc = connect_to_loop(hosts, base);
    if (rc == 0)
        rc = start_thread(hosts->lookup);
    if (rc == 0)
        *out = hosts;
    else
        postgres_hosts_free(hosts);
    return rc;
}

void postgres_hosts_free(struct postgres_hosts *hosts)
{
    if (!hosts)
        return;
    if (hosts->woken)
        event_free(hosts->woken);
    if (hosts->lookup)
        lookup_release(hosts->lookup);
    free(hosts);
}
