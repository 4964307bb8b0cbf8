# Hostile probe net-udp-outbound (network).
# Asks for a way to a public address and to the metadata address of clouds without sending
# anything, and sends one DNS question to 192.0.2.1.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import socket

from probe import say

say("START", "net-udp-outbound")
# A connect of a UDP socket sends nothing: it only says whether there is a way to the address.
for name, address in (("a public address", "192.0.2.1"), ("the cloud's metadata address", "169.254.169.254"),
                      ("broadcast", "255.255.255.255"), ("multicast", "224.0.0.251")):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.connect((address, 53))
            own = s.getsockname()[0]
        say("ESCAPED", f"there is a way to {name} {address}, from {own}")
    except OSError as error:
        say("CONTAINED", f"{name} {address}: {error.strerror}")
query = bytes.fromhex("1234010000010000000000000765786d70616c6507696e76616c69640000010001")
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(query, ("192.0.2.1", 53))
    say("ESCAPED", "a DNS question went out to 192.0.2.1")
except OSError as error:
    say("CONTAINED", f"DNS question to 192.0.2.1: {error.strerror}")
