# Hostile probe net-abstract-unix (network).
# Connects to an abstract socket of the host, and looks for others' sockets in /proc/net/unix.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import socket

from probe import say

say("START", "net-abstract-unix")
for kind, name in ((socket.SOCK_STREAM, "stream"), (socket.SOCK_DGRAM, "datagram"), (socket.SOCK_SEQPACKET, "packet")):
    try:
        with socket.socket(socket.AF_UNIX, kind) as s:
            s.settimeout(1)
            s.connect("\0hostile-canary")
        say("ESCAPED", f"connected to the host's abstract {name} socket")
    except OSError as error:
        say("CONTAINED", f"abstract {name} socket: {error.strerror}")
others = 0
try:
    with open("/proc/net/unix") as f:
        for line in f.readlines()[1:]:
            fields = line.split()
            if len(fields) > 7:
                others += 1
    if others:
        say("ESCAPED", f"/proc/net/unix names {others} sockets of others")
except OSError as error:
    say("INFO", f"/proc/net/unix: {error.strerror}")
