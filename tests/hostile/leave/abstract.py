# Listening abstract sockets, held by a process that does all it can to outlive its run.
def leave():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
                    signal.signal(number, signal.SIG_IGN)
            keep = [socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM)]
            for number, one in enumerate(keep):
                one.bind(f"\0left-{number}")
                if number < 2:
                    one.listen()
            os.write(ready[1], b"x")
            for fd in range(3):
                os.close(fd)
            time.sleep(30)
        os._exit(0)
    os.read(ready[0], 1)


ready = os.pipe()


def connect(kind, number):
    with socket.socket(socket.AF_UNIX, kind) as one:
        one.settimeout(1)
        one.connect(f"\0left-{number}")
    return "connected"


def look():
    seen = [word(lambda: connect(socket.SOCK_STREAM, 0)), word(lambda: connect(socket.SOCK_SEQPACKET, 1)),
            word(lambda: connect(socket.SOCK_DGRAM, 2))]
    return seen + [word(lambda: open("/proc/net/unix").read().count("left-"))]
