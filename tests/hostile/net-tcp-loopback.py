# Hostile probe net-tcp-loopback (network).
# Connects to the loopback addresses, where the test and other servers of the host listen.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import errno
import socket

from probe import say

say("START", "net-tcp-loopback")
# 47391 is where the test listens on the host; the others are what hosts often run.
tries = 0
for address in ("127.0.0.1", "127.0.0.2", "0.0.0.0"):
    for port in (47391, 22, 53, 80, 443, 631, 2375, 3306, 5432, 6379, 8080, 9090):
        tries += 1
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
                s.settimeout(0.5)
                s.connect((address, port))
            say("ESCAPED", f"connected to {address} port {port}")
        except OSError as error:
            if error.errno not in (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EPERM, errno.EACCES,
                                   errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EHOSTUNREACH, errno.ENETDOWN):
                say("ESCAPED", f"{address} port {port}: {error}")
say("CONTAINED", f"the rest of {tries} loopback ports")
