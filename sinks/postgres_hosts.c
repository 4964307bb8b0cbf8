/*
 * postgres_hosts.c - see postgres_hosts.h.
 *
 * Loop and thread share the struct lookup, which whoever lets go of it last frees. The thread writes
 * its answer before it wakes the loop, and nothing afterwards.
 */
#include "sinks/postgres_hosts.h"

#include <event2/event.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

struct lookup {
    unsigned holders; /* atomic */
    int wake;         /* eventfd: the answer is there */
    char *name;
    bool answered;                       /* atomic, written last */
    struct postgres_hosts_answer answer; /* the thread's, until then */
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
    free(lookup->name);
    free(lookup);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void resolve(const char *name, struct postgres_hosts_answer *answer)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return;
    for (const struct addrinfo *one = found; one && answer->count < POSTGRES_HOSTS_ADDRESSES;
         one = one->ai_next)
        if (getnameinfo(one->ai_addr, one->ai_addrlen, answer->addresses[answer->count],
                        POSTGRES_HOSTS_BYTES, NULL, 0, NI_NUMERICHOST) == 0)
            answer->count++;
    freeaddrinfo(found);
}

static void *thread_main(void *context)
{
    struct lookup *lookup = context;
    uint64_t one = 1;
    resolve(lookup->name, &lookup->answer);
    __atomic_store_n(&lookup->answered, true, __ATOMIC_RELEASE);
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

/* ---- the loop's side ------------------------------------------------------------------------ */

static void woken(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_hosts *hosts = context;
    hosts->done(hosts->context, hosts);
}

static int make_lookup(struct postgres_hosts *hosts, const char *name)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    hosts->lookup = lookup;
    if (!lookup)
        return -ENOMEM;
    lookup->holders = 1;
    lookup->name = strdup(name);
    lookup->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lookup->wake < 0)
        return -errno;
    return lookup->name ? 0 : -ENOMEM;
}

static int connect_to_loop(struct postgres_hosts *hosts, struct event_base *base)
{
    hosts->woken = event_new(base, hosts->lookup->wake, EV_READ, woken, hosts);
    return hosts->woken && event_add(hosts->woken, NULL) == 0 ? 0 : -ENOMEM;
}

int postgres_hosts_ask(struct event_base *base, const char *name, postgres_hosts_fn *done,
                       void *context, struct postgres_hosts **out)
{
    struct postgres_hosts *hosts = calloc(1, sizeof(*hosts));
    if (!hosts)
        return -ENOMEM;
    hosts->done = done;
    hosts->context = context;
    int rc = make_lookup(hosts, name);
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

const struct postgres_hosts_answer *postgres_hosts_answer(const struct postgres_hosts *hosts)
{
    bool answered = __atomic_load_n(&hosts->lookup->answered, __ATOMIC_ACQUIRE);
    return answered ? &hosts->lookup->answer : NULL;
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
