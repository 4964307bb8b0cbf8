# What the programs of this folder have around them. Each defines leave(), which leaves something that
# a later run in the same slot could find, and look(), which gives a list of all that it can see of
# such things. With the arguments "leave" and "look" one run does both, and so shows that look() sees
# what leave() leaves; "flood" ends the run by its limit on output, that is, by force.
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    """The result of a call of the C library; its error is raised."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def word(act):
    """What the act gives, or the name of its error."""
    try:
        return str(act())
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")


def keep_in_flight(descriptors):
    """Sends descriptors over a pair of sockets, and that pair over itself: when all is closed they live
    on, in nobody's hands, until the kernel collects such circles."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    everything = [*descriptors, one.fileno(), other.fileno()]
    socket.send_fds(one, [b"x"], everything)
    socket.send_fds(other, [b"x"], everything)
    one.close()
    other.close()


def main():
    for step in sys.argv[1:]:
        if step == "leave":
            try:
                leave()
                print("left")
            except OSError as error:
                print("refused", errno.errorcode.get(error.errno, "?"))
        elif step == "look":
            for line in look():
                print("sees", line)
        elif step == "flood":
            sys.stdout.flush()
            while True:
                os.write(1, b"x" * 65536)
        sys.stdout.flush()


