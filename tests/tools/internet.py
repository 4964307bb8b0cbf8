#!/usr/bin/env python3
"""A small internet for a test, to be run in a network namespace of its own: name server, web servers.

internet.py FOLDER: FOLDER has server.crt and server.key. Prints "ready" when it listens, and notes in
FOLDER/questions each name that is looked up, in FOLDER/requests each request that arrives. Ends at the
end of its standard input.

Names (all below t.test): ok and other are public addresses, with HTTP on 80 and HTTPS on 443; both also
has ok's address behind a private one; private, loop, meta, mapped are what nobody should reach; turns
answers public and loopback in turns; slow never answers; alias is a CNAME to loop.
"""
import http.server
import os
import socket
import ssl
import struct
import sys
import threading

OK, OTHER, PRIVATE = "93.184.216.34", "93.184.216.35", "10.9.0.2"
NAMES = {
    "ok.t.test": [OK],
    "api.w.t.test": [OK],
    "other.t.test": [OTHER],
    "both.t.test": [PRIVATE, OK],
    "private.t.test": [PRIVATE],
    "loop.t.test": ["127.0.0.1"],
    "meta.t.test": ["169.254.169.254"],
}
FOLDER = sys.argv[1]
LOCK = threading.Lock()


def note(name, text):
    with LOCK, open(f"{FOLDER}/{name}", "a", encoding="utf-8") as file:
        file.write(text + "\n")


# ---- names ----------------------------------------------------------------------------------------------

A, CNAME, AAAA = 1, 5, 28
turn = 0


def addresses(name):
    global turn
    if name == "turns.t.test":
        turn += 1
        return [OK] if turn % 2 else ["127.0.0.1"]
    return NAMES.get(name)


def encode(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def records(name, kind):
    """[(type, data)] or None when there is no such name."""
    if name == "alias.t.test":
        return [(CNAME, encode("loop.t.test")), (A, socket.inet_aton("127.0.0.1"))]
    if name == "mapped.t.test":
        return [(AAAA, socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"))] if kind == AAAA else []
    found = addresses(name) if kind == A else [] if name in NAMES or name == "turns.t.test" else None
    return None if found is None else [(A, socket.inet_aton(address)) for address in found]


def answer(question):
    at, labels = 12, []
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode("latin-1").lower())
        at += 1 + question[at]
    name, kind = ".".join(labels), struct.unpack("!H", question[at + 1:at + 3])[0]
    note("questions", name)
    if name == "slow.t.test":
        return None
    found = records(name, kind)
    flags = 0x8180 if found is not None else 0x8183
    text = question[:2] + struct.pack("!5H", flags, 1, len(found or []), 0, 0) + question[12:at + 5]
    for kind, data in found or []:
        text += b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(data)) + data
    return text


def serve_names(server):
    while True:
        question, peer = server.recvfrom(1500)
        text = answer(question)
        if text:
            server.sendto(text, peer)


# ---- the web --------------------------------------------------------------------------------------------


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        note("requests", f"{self.command} {self.headers['Host']} {self.path}")
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "http://loop.t.test/")
            text = b""
        else:
            self.send_response(200)
            text = b"hello from the net\n" + body
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


def serve_web(address, port, context=None):
    server = http.server.ThreadingHTTPServer((address, port), Page)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((PRIVATE, 53))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{FOLDER}/server.crt", f"{FOLDER}/server.key")
    for address in (OK, OTHER, PRIVATE):
        serve_web(address, 80)
        serve_web(address, 443, context)
    serve_web(OK, 8080)
    threading.Thread(target=serve_names, args=(names,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
