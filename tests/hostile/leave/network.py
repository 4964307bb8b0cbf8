# What a network namespace keeps: ports, addresses, interfaces, settings, counters.
FILES = ["tcp", "tcp6", "udp", "udp6", "raw", "unix", "packet", "sockstat", "sockstat6", "snmp", "snmp6", "netstat", "dev",
         "route", "arp", "if_inet6", "igmp", "mcfilter", "protocols", "ptype"]


def bind(family, kind, address):
    one = socket.socket(family, kind)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.bind((address, 4001))
    return one


def leave():
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                KEPT.append(bind(family, kind, address))
            except OSError:
                pass
            for target in ("127.0.0.1", "192.0.2.1") if family == socket.AF_INET else ("::1", "2001:db8::1"):
                other = socket.socket(family, kind)
                other.setblocking(False)
                word(lambda: other.connect((target, 4001)))
                word(lambda: other.sendto(b"x", (target, 4001)))
    for request in (0x8914, 0x8916, 0x8924):  # flags, address, hardware address of lo
        word(lambda: fcntl.ioctl(other.fileno(), request, struct.pack("16sHHI16x", b"lo", 0x49, 0, 0x0100007f)))
    group = struct.pack("4s4s", socket.inet_aton("224.0.0.251"), socket.inet_aton("0.0.0.0"))
    word(lambda: other.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group))


KEPT = []


def look():
    flags = word(lambda: fcntl.ioctl(socket.socket(), 0x8913, struct.pack("16sH22x", b"lo", 0)))
    seen = [word(lambda: bind(family, kind, address) and "bound") for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"))
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    seen += [flags, word(socket.if_nameindex)]
    return seen + [f"{name} {word(lambda: open(f'/proc/self/net/{name}').read())!r}" for name in FILES]
