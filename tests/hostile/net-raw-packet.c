/*
 * Hostile probe net-raw-packet (network).
 * Opens raw, packet and ping sockets and a tunnel device.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static long raw4(void)
{
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static long raw_any(void)
{
    return socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
}
static long raw6(void)
{
    return socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}
static long packet(void)
{
    return socket(AF_PACKET, SOCK_RAW, htons(3));
}
static long packet_dgram(void)
{
    return socket(AF_PACKET, SOCK_DGRAM, htons(3));
}
static long ping(void)
{
    return socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static long tun(void)
{
    struct ifreq r = {0};
    int fd = open("/dev/net/tun", O_RDWR);
    if (fd < 0)
        return -1;
    r.ifr_flags = IFF_TUN;
    return ioctl(fd, TUNSETIFF, &r);
}

int main(void)
{
    say("START", "net-raw-packet");
    try_one("raw ICMP socket", raw4, 0);
    try_one("raw IP socket", raw_any, 0);
    try_one("raw ICMPv6 socket", raw6, 0);
    try_one("packet socket", packet, 0);
    try_one("cooked packet socket", packet_dgram, 0);
    try_one("ping socket", ping, 0);
    try_one("tun device", tun, 0);
    return 0;
}
