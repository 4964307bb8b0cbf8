/*
 * names.c - the scripted name server, over libevent's own.
 */
#include "tests/lib/names.h"

#include "protocol/address.h"
#include "protocol/base.h"
#include "tests/lib/network.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAMES 64

struct name {
    const char *name;
    const char *next; /* of its answers */
    size_t asked;
};

struct names {
    struct evdns_server_port *port;
    char server[32];
    struct name list[MAX_NAMES];
    size_t count, asked;
};

static struct name *find(struct names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcasecmp(names->list[i].name, text) == 0)
            return &names->list[i];
    return NULL;
}

/* One item of an answer. */
static void add(struct evdns_server_request *request, const char **name, const char *item, bool v6)
{
    struct address address;
    if (item[0] == '@') {
        (void)evdns_server_request_add_cname_reply(request, *name, item + 1, 0);
        *name = item + 1;
    } else if (address_parse(item, &address) && address.is_v6 == v6) {
        if (v6)
            (void)evdns_server_request_add_aaaa_reply(request, *name, 1, address.bytes, 0);
        else
            (void)evdns_server_request_add_a_reply(request, *name, 1, address.bytes, 0);
    }
}

static void answer(struct evdns_server_request *request, const char *name, const char *word,
                   size_t length, bool v6)
{
    char items[256], *state = NULL;
    if (length >= sizeof items || word[0] == '?') {
        (void)evdns_server_request_drop(request);
        return;
    }
    memcpy(items, word, length);
    items[length] = '\0';
    if (word[0] == '-' || word[0] == '!') {
        (void)evdns_server_request_respond(request, word[0] == '-' ? DNS_ERR_NOTEXIST
                                                                   : DNS_ERR_SERVERFAILED);
        return;
    }
    for (const char *item = strtok_r(items, ",", &state); item; item = strtok_r(NULL, ",", &state))
        add(request, &name, item, v6);
    (void)evdns_server_request_respond(request, 0);
}

/* A question for IPv6 addresses gets what the one for IPv4 addresses gets, before or after. */
static void asked(struct evdns_server_request *request, void *context)
{
    struct names *names = context;
    const struct evdns_server_question *question = request->questions[0];
    struct name *name = find(names, question->name);
    bool v6 = question->type == EVDNS_TYPE_AAAA;
    names->asked += v6 ? 0 : 1;
    if (!name) {
        answer(request, question->name, "-", 1, v6);
        return;
    }
    const char *word = name->next;
    size_t length = strcspn(word, " ");
    if (!v6) {
        name->asked++;
        if (word[length] != '\0')
            name->next = word + length + 1;
    }
    answer(request, question->name, word, length, v6);
}

struct names *names_start(struct event_base *base)
{
    struct names *names = calloc(1, sizeof *names);
    struct sockaddr_in address = network_address("127.0.0.1", 0);
    socklen_t length = sizeof address;
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!names || fd < 0 || bind(fd, (const struct sockaddr *)&address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        free(names);
        return NULL;
    }
    (void)snprintf(names->server, sizeof names->server, "127.0.0.1:%u",
                   (unsigned)ntohs(address.sin_port));
    names->port = evdns_add_server_port_with_base(base, base_take_fd(&fd), 0, asked, names);
    return names;
}

void names_stop(struct names *names)
{
    if (names->port)
        evdns_close_server_port(names->port);
    free(names);
}

const char *names_server(const struct names *names)
{
    return names->server;
}

void names_set(struct names *names, const char *name, const char *answers)
{
    struct name *old = find(names, name);
    if (!old && names->count < MAX_NAMES)
        old = &names->list[names->count++];
    if (old)
        *old = (struct name){name, answers, 0};
}

size_t names_asked(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcasecmp(names->list[i].name, name) == 0)
            return names->list[i].asked;
    return 0;
}

size_t names_asked_all(const struct names *names)
{
    return names->asked;
}
