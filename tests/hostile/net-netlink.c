/*
 * Hostile probe net-netlink (network).
 * Asks the kernel for links, routes and neighbours.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

/* Asks for a whole table and counts what is no loopback entry. */
static int dump(int type, int *why)
{
    struct {
        struct nlmsghdr h;
        union {
            struct rtmsg r;
            struct ifinfomsg i;
            char room[64];
        } u;
    } ask;
    char buf[65536];
    memset(&ask, 0, sizeof ask);
    ask.h.nlmsg_len = sizeof ask;
    ask.h.nlmsg_type = (unsigned short)type;
    ask.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), n = 0;
    if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0) {
        *why = errno;
        return -1;
    }
    for (;;) {
        ssize_t len = recv(fd, buf, sizeof buf, 0);
        if (len <= 0) {
            *why = errno;
            break;
        }
        for (struct nlmsghdr *h = (struct nlmsghdr *)buf; NLMSG_OK(h, (unsigned)len);
             h = NLMSG_NEXT(h, len)) {
            if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
                close(fd);
                return n;
            }
            if (type == RTM_GETLINK) {
                struct ifinfomsg *i = NLMSG_DATA(h);
                n += !(i->ifi_flags & IFF_LOOPBACK) && (i->ifi_flags & IFF_UP);
            } else if (type == RTM_GETROUTE) {
                struct rtmsg *r = NLMSG_DATA(h);
                n += r->rtm_table == RT_TABLE_MAIN && r->rtm_type == RTN_UNICAST;
            } else {
                n++;
            }
        }
    }
    close(fd);
    return n;
}

int main(void)
{
    say("START", "net-netlink");
    static const struct {
        int type;
        const char *what;
    } tables[] = {
        {RTM_GETLINK, "links that are up, besides loopback"},
        {RTM_GETROUTE, "routes in the main table"},
        {RTM_GETNEIGH, "neighbours"},
    };
    for (int i = 0; i < 3; i++) {
        int why = 0, n = dump(tables[i].type, &why);
        if (n > 0)
            say("ESCAPED", "sees %d %s", n, tables[i].what);
        else if (n == 0)
            say("CONTAINED", "no %s", tables[i].what);
        else
            say("CONTAINED", "%s: %s", tables[i].what, strerror(why));
    }
    static const struct {
        int family;
        const char *what;
    } more[] = {
        {NETLINK_AUDIT, "audit"},         {NETLINK_KOBJECT_UEVENT, "device events"},
        {NETLINK_NETFILTER, "netfilter"}, {NETLINK_XFRM, "xfrm"},
        {NETLINK_CONNECTOR, "connector"}, {NETLINK_SOCK_DIAG, "socket diag"},
    };
    for (int i = 0; i < 6; i++) {
        int fd = socket(AF_NETLINK, SOCK_RAW, more[i].family);
        say("INFO", "netlink %s: %s", more[i].what, fd < 0 ? strerror(errno) : "opened");
        if (fd >= 0)
            close(fd);
    }
    return 0;
}
