/*
 * proxy.c - see proxy.h.
 *
 * One thread waits for all sockets. What a client sends is cut into messages, which are passed on
 * whole; COMMIT is told by its text, or by the name under which it was prepared. What the server
 * sends goes through as it is, but for the answer of a COMMIT that is being acted on.
 */
#include "tests/lib/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#define MAX_LINKS     128
#define CHUNK_BYTES   65536
#define SOCKET_PORT   5432
#define WAIT_SECONDS  60
#define WRITE_SECONDS 20
#define NAME_BYTES    64
#define SSL_REQUEST   80877103u
#define GSS_REQUEST   80877104u

/* One client and its connection to the server. */
struct link {
    int client, server; /* -1: the slot is free */
    char *bytes;        /* of the client, not yet passed on */
    size_t length, room;
    bool started;  /* the first message, which has no type, is over */
    bool asked;    /* for encryption: the answer is one byte */
    bool opaque;   /* encrypted: all is passed on */
    bool holding;  /* what the client sends stays here */
    bool awaiting; /* a COMMIT that is acted on has been passed on */
    bool answered; /* and something has come back for it */
    bool gone;     /* the client has left while a COMMIT was held: it is still on its way */
    enum proxy_act act;
    char prepared[NAME_BYTES]; /* the name of a prepared COMMIT */
};

struct proxy {
    pthread_t thread;
    int listener, wake;
    int port;
    char folder[64];              /* "" with TCP */
    struct link links[MAX_LINKS]; /* the thread's */
    pthread_mutex_t lock;         /* of all that follows */
    pthread_cond_t changed;
    char upstream[sizeof(((struct sockaddr_un *)0)->sun_path)];
    enum proxy_act act;
    unsigned left, acted, connections;
    bool releasing, cutting, ending;
};

/* ---- links ---------------------------------------------------------------------------------- */

static void cut(struct link *link)
{
    if (link->client < 0)
        return;
    (void)close(link->client);
    (void)close(link->server);
    free(link->bytes);
    *link = (struct link){.client = -1, .server = -1};
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = send(fd, bytes, length, MSG_NOSIGNAL);
        if (written <= 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

static int connect_upstream(struct proxy *proxy)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)pthread_mutex_lock(&proxy->lock);
    memcpy(address.sun_path, proxy->upstream, sizeof(address.sun_path));
    (void)pthread_mutex_unlock(&proxy->lock);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    return base_take_fd(&fd);
}

static struct link *free_slot(struct proxy *proxy)
{
    for (size_t i = 0; i < MAX_LINKS; i++)
        if (proxy->links[i].client < 0)
            return &proxy->links[i];
    return NULL;
}

static void accept_client(struct proxy *proxy)
{
    const struct timeval limit = {.tv_sec = WRITE_SECONDS};
    AR_AUTO_CLOSE int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    AR_AUTO_CLOSE int server = client >= 0 ? connect_upstream(proxy) : -1;
    struct link *link = free_slot(proxy);
    if (client < 0 || server < 0 || !link)
        return;
    (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    (void)setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    *link = (struct link){.client = base_take_fd(&client), .server = base_take_fd(&server)};
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->connections++;
    (void)pthread_mutex_unlock(&proxy->lock);
}

/* ---- messages of a client ------------------------------------------------------------------- */

static uint32_t number(const char *bytes)
{
    uint32_t big;
    memcpy(&big, bytes, sizeof(big));
    return ntohl(big);
}

/* The length of the first message in the bytes, or 0 as long as it is not whole. */
static size_t message_length(const struct link *link, size_t at)
{
    size_t head = link->started ? 1 : 0;
    if (link->length - at < head + 4)
        return 0;
    size_t length = head + number(link->bytes + at + head);
    return link->length - at < length ? 0 : length;
}

static bool is_text(const char *bytes, size_t length, const char *text)
{
    return length > strlen(text) && memcmp(bytes, text, strlen(text) + 1) == 0;
}

/* Parse has a name and a text, Bind the name of a portal and of a statement, Query a text. */
static bool begins_commit(struct link *link, const char *message, size_t length)
{
    const char *first = message + 5, *end = message + length;
    size_t first_length = strnlen(first, (size_t)(end - first));
    const char *second = first + first_length + 1;
    size_t rest = second < end ? (size_t)(end - second) : 0;
    if (message[0] == 'Q')
        return is_text(first, length - 5, "COMMIT");
    if (message[0] == 'P' && is_text(second, rest, "COMMIT")) {
        if (first_length > 0) /* it is prepared, for later */
            (void)snprintf(link->prepared, sizeof(link->prepared), "%s", first);
        return first_length == 0;
    }
    return message[0] == 'B' && link->prepared[0] && is_text(second, rest, link->prepared);
}

static void take_startup(struct link *link, const char *message)
{
    uint32_t code = number(message + 4);
    if (code == SSL_REQUEST || code == GSS_REQUEST)
        link->asked = true;
    else
        link->started = true;
}

static void count_act(struct proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->acted++;
    (void)pthread_cond_broadcast(&proxy->changed);
    (void)pthread_mutex_unlock(&proxy->lock);
}

static enum proxy_act next_act(struct proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    enum proxy_act act = proxy->left > 0 ? proxy->act : PROXY_PASS;
    if (proxy->left > 0)
        proxy->left--;
    (void)pthread_mutex_unlock(&proxy->lock);
    return act;
}

/* True when the message may be passed on. */
static bool take_commit(struct proxy *proxy, struct link *link)
{
    link->act = next_act(proxy);
    if (link->act == PROXY_CUT_AFTER || link->act == PROXY_HOLD_AFTER)
        link->awaiting = true;
    if (link->act != PROXY_CUT_BEFORE && link->act != PROXY_HOLD_BEFORE)
        return true;
    count_act(proxy); /* before the client can know */
    if (link->act == PROXY_CUT_BEFORE)
        cut(link);
    else
        link->holding = true;
    return false;
}

/* Looks at whole messages and says how many bytes of them may be passed on. */
static size_t look_at_messages(struct proxy *proxy, struct link *link)
{
    size_t at = 0, length;
    while ((length = message_length(link, at)) > 0) {
        const char *message = link->bytes + at;
        if (!link->started)
            take_startup(link, message);
        else if (!link->awaiting && begins_commit(link, message, length) &&
                 !take_commit(proxy, link))
            return at;
        at += length;
    }
    return at;
}

static void pass_on(struct proxy *proxy, struct link *link)
{
    if (link->holding)
        return;
    size_t whole = link->opaque ? link->length : look_at_messages(proxy, link);
    if (link->client < 0)
        return; /* it was cut */
    if (!write_all(link->server, link->bytes, whole)) {
        cut(link);
        return;
    }
    memmove(link->bytes, link->bytes + whole, link->length - whole);
    link->length -= whole;
}

static void read_client(struct proxy *proxy, struct link *link)
{
    if (link->room - link->length < CHUNK_BYTES) {
        char *grown = realloc(link->bytes, link->room + 2 * (size_t)CHUNK_BYTES);
        if (!grown)
            abort();
        link->bytes = grown;
        link->room += 2 * (size_t)CHUNK_BYTES;
    }
    ssize_t count = recv(link->client, link->bytes + link->length, CHUNK_BYTES, 0);
    if (count <= 0) {
        link->gone = link->holding;
        if (!link->gone)
            cut(link);
        return;
    }
    link->length += (size_t)count;
    pass_on(proxy, link);
}

/* ---- answers of the server ------------------------------------------------------------------ */

static void take_answer(struct proxy *proxy, struct link *link)
{
    if (link->answered)
        return;
    link->answered = true;
    count_act(proxy);
    if (link->act == PROXY_CUT_AFTER)
        cut(link);
}

static void read_server(struct proxy *proxy, struct link *link)
{
    char bytes[CHUNK_BYTES];
    if (link->awaiting) {
        take_answer(proxy, link);
        return;
    }
    ssize_t count = recv(link->server, bytes, sizeof(bytes), 0);
    if (count > 0 && link->asked) {
        link->asked = false;
        link->opaque = bytes[0] == 'S' || bytes[0] == 'G';
    }
    if (count <= 0 || (!link->gone && !write_all(link->client, bytes, (size_t)count)))
        cut(link);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void release(struct proxy *proxy, struct link *link)
{
    link->awaiting = false;
    link->answered = false;
    if (!link->holding)
        return;
    link->holding = false;
    size_t whole = 0, length;
    /* This COMMIT has had its turn: the next ones are looked at again. */
    if ((length = message_length(link, 0)) > 0)
        whole = length;
    if (!write_all(link->server, link->bytes, whole)) {
        cut(link);
        return;
    }
    memmove(link->bytes, link->bytes + whole, link->length - whole);
    link->length -= whole;
    pass_on(proxy, link);
    if (link->client >= 0 && link->gone)
        (void)shutdown(link->server, SHUT_WR);
}

/* False at the end. */
static bool follow_orders(struct proxy *proxy)
{
    uint64_t ignored;
    ssize_t taken = read(proxy->wake, &ignored, sizeof(ignored));
    (void)taken; /* it may have been taken before */
    (void)pthread_mutex_lock(&proxy->lock);
    bool releasing = proxy->releasing, cutting = proxy->cutting, ending = proxy->ending;
    proxy->releasing = false;
    proxy->cutting = false;
    (void)pthread_cond_broadcast(&proxy->changed);
    (void)pthread_mutex_unlock(&proxy->lock);
    for (size_t i = 0; i < MAX_LINKS; i++) {
        if (proxy->links[i].client >= 0 && releasing)
            release(proxy, &proxy->links[i]);
        if (cutting || ending)
            cut(&proxy->links[i]);
    }
    return !ending;
}

enum { POLL_WAKE, POLL_LISTENER, POLL_LINKS };

/* An answer that is held back stays in its socket. */
static void fill(const struct proxy *proxy, struct pollfd *polled)
{
    polled[POLL_WAKE] = (struct pollfd){.fd = proxy->wake, .events = POLLIN};
    polled[POLL_LISTENER] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    for (size_t i = 0; i < MAX_LINKS; i++) {
        const struct link *link = &proxy->links[i];
        polled[POLL_LINKS + 2 * i] =
            (struct pollfd){.fd = link->gone ? -1 : link->client, .events = POLLIN};
        polled[POLL_LINKS + 2 * i + 1] =
            (struct pollfd){.fd = link->answered ? -1 : link->server, .events = POLLIN};
    }
}

static void serve(struct proxy *proxy, const struct pollfd *polled)
{
    for (size_t i = 0; i < MAX_LINKS; i++) {
        struct link *link = &proxy->links[i];
        if (link->client >= 0 && polled[POLL_LINKS + 2 * i].revents)
            read_client(proxy, link);
        if (link->client >= 0 && polled[POLL_LINKS + 2 * i + 1].revents)
            read_server(proxy, link);
    }
    if (polled[POLL_LISTENER].revents)
        accept_client(proxy);
}

static void *thread_main(void *context)
{
    struct proxy *proxy = context;
    struct pollfd polled[POLL_LINKS + 2 * MAX_LINKS];
    bool going = true;
    while (going) {
        fill(proxy, polled);
        if (poll(polled, AR_COUNT(polled), -1) < 0 && errno != EINTR)
            abort();
        serve(proxy, polled);
        if (polled[POLL_WAKE].revents)
            going = follow_orders(proxy);
    }
    return NULL;
}

/* ---- orders --------------------------------------------------------------------------------- */

static void wake(struct proxy *proxy)
{
    uint64_t one = 1;
    if (write(proxy->wake, &one, sizeof(one)) < 0)
        abort();
}

static struct timespec deadline(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    return until;
}

/* Sets the flag and waits until the thread has taken it. */
static void order(struct proxy *proxy, bool *flag)
{
    struct timespec until = deadline();
    (void)pthread_mutex_lock(&proxy->lock);
    *flag = true;
    wake(proxy);
    while (*flag && pthread_cond_timedwait(&proxy->changed, &proxy->lock, &until) == 0)
        ;
    (void)pthread_mutex_unlock(&proxy->lock);
}

void proxy_release(struct proxy *proxy)
{
    order(proxy, &proxy->releasing);
}

void proxy_cut(struct proxy *proxy)
{
    order(proxy, &proxy->cutting);
}

void proxy_set(struct proxy *proxy, enum proxy_act act, unsigned count)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->act = act;
    proxy->left = count;
    (void)pthread_mutex_unlock(&proxy->lock);
}

bool proxy_wait(struct proxy *proxy, unsigned count)
{
    struct timespec until = deadline();
    int rc = 0;
    (void)pthread_mutex_lock(&proxy->lock);
    while (proxy->acted < count && rc == 0)
        rc = pthread_cond_timedwait(&proxy->changed, &proxy->lock, &until);
    (void)pthread_mutex_unlock(&proxy->lock);
    return rc == 0;
}

void proxy_retarget(struct proxy *proxy, const char *upstream)
{
    (void)pthread_mutex_lock(&proxy->lock);
    (void)snprintf(proxy->upstream, sizeof(proxy->upstream), "%s", upstream);
    (void)pthread_mutex_unlock(&proxy->lock);
}

static unsigned read_count(struct proxy *proxy, const unsigned *count)
{
    (void)pthread_mutex_lock(&proxy->lock);
    unsigned value = *count;
    (void)pthread_mutex_unlock(&proxy->lock);
    return value;
}

unsigned proxy_acted(struct proxy *proxy)
{
    return read_count(proxy, &proxy->acted);
}

unsigned proxy_connections(struct proxy *proxy)
{
    return read_count(proxy, &proxy->connections);
}

void proxy_host(const struct proxy *proxy, char host[PROXY_HOST_BYTES])
{
    (void)snprintf(host, PROXY_HOST_BYTES, "host=%s port=%d",
                   proxy->folder[0] ? proxy->folder : "127.0.0.1", proxy->port);
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

/* ---- begin and end -------------------------------------------------------------------------- */

static int listen_tcp(struct proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, MAX_LINKS) < 0 || getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return -1;
    proxy->port = ntohs(address.sin_port);
    return base_take_fd(&fd);
}

static int listen_unix(struct proxy *proxy)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(proxy->folder, sizeof(proxy->folder), "/tmp/auditrun-proxy-XXXXXX");
    if (!mkdtemp(proxy->folder)) {
        proxy->folder[0] = '\0';
        return -1;
    }
    proxy->port = SOCKET_PORT;
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.%d", proxy->folder,
                   proxy->port);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, MAX_LINKS) < 0)
        return -1;
    return base_take_fd(&fd);
}

static void remove_folder(const struct proxy *proxy)
{
    char path[sizeof(proxy->folder) + 32];
    if (!proxy->folder[0])
        return;
    (void)snprintf(path, sizeof(path), "%s/.s.PGSQL.%d", proxy->folder, proxy->port);
    (void)unlink(path);
    (void)rmdir(proxy->folder);
}

static void close_all(struct proxy *proxy)
{
    base_close(&proxy->listener);
    base_close(&proxy->wake);
    remove_folder(proxy);
    free(proxy);
}

struct proxy *proxy_start(const char *upstream, bool tcp)
{
    struct proxy *proxy = calloc(1, sizeof(*proxy));
    if (!proxy)
        return NULL;
    for (size_t i = 0; i < MAX_LINKS; i++)
        proxy->links[i] = (struct link){.client = -1, .server = -1};
    (void)snprintf(proxy->upstream, sizeof(proxy->upstream), "%s", upstream);
    (void)pthread_mutex_init(&proxy->lock, NULL);
    (void)pthread_cond_init(&proxy->changed, NULL);
    proxy->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    proxy->listener = tcp ? listen_tcp(proxy) : listen_unix(proxy);
    if (proxy->wake >= 0 && proxy->listener >= 0 &&
        pthread_create(&proxy->thread, NULL, thread_main, proxy) == 0)
        return proxy;
    (void)fprintf(stderr, "test proxy: %s\n", strerror(errno));
    close_all(proxy);
    return NULL;
}

void proxy_free(struct proxy *proxy)
{
    if (!proxy)
        return;
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->ending = true;
    wake(proxy);
    (void)pthread_mutex_unlock(&proxy->lock);
    (void)pthread_join(proxy->thread, NULL);
    (void)pthread_cond_destroy(&proxy->changed);
    (void)pthread_mutex_destroy(&proxy->lock);
    close_all(proxy);
}
