# Sockets in nobody's hands: a listening abstract socket, bound ports and a pipe with something in it,
# sent over a pair of sockets that is itself on its way. Such a circle outlives every process.
def leave():
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0left")
    listening.listen()
    waiting = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    waiting.bind("\0left-datagrams")
    kept = [listening, waiting]
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            kept.append(socket.socket(socket.AF_INET, kind))
            kept[-1].bind(("0.0.0.0", 4000))
        except OSError:
            pass
    for _ in range(20):
        keep_in_flight([one.fileno() for one in kept])
    for one in kept:
        one.close()


def connect(kind, name):
    with socket.socket(socket.AF_UNIX, kind) as one:
        one.connect(name)
    return "connected"


def bind(family, kind, address):
    with socket.socket(family, kind) as one:
        one.bind(address)
    return "bound"


def look():
    return [word(lambda: connect(socket.SOCK_STREAM, "\0left")), word(lambda: connect(socket.SOCK_DGRAM, "\0left-datagrams")),
            word(lambda: bind(socket.AF_UNIX, socket.SOCK_STREAM, "\0left")),
            word(lambda: bind(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 4000))),
            word(lambda: bind(socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 4000)))]
