# Hostile probe out-rewrite-log (output).
# Tries to cut, overwrite or reread what it has written already, in case its output is a file
# of the record.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import os
import socket
import stat

from probe import say

say("START", "out-rewrite-log")
say("INFO", "this line must stay in the record")
for fd in (1, 2):
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        try:
            os.ftruncate(fd, 0)
            os.lseek(fd, 0, os.SEEK_SET)
            os.write(fd, b"START out-rewrite-log\n")
            say("ESCAPED", f"fd {fd} is a file; what was written before is gone from the record")
        except OSError as error:
            say("CONTAINED", f"fd {fd} is a file: {error.strerror}")
    elif stat.S_ISSOCK(kind):
        try:
            with socket.socket(fileno=os.dup(fd)) as s:
                s.recv(1, socket.MSG_DONTWAIT)
            say("INFO", f"fd {fd} is a socket with something to read")
        except OSError as error:
            say("CONTAINED", f"fd {fd} is a socket: {error.strerror}")
    else:
        say("CONTAINED", f"fd {fd} is no file")
    for mode, name in ((os.O_RDWR, "read and write"), (os.O_RDONLY, "read")):
        try:
            again = os.open(f"/proc/self/fd/{fd}", mode | os.O_NONBLOCK)
        except OSError as error:
            say("INFO", f"fd {fd} opened again to {name}: {error.strerror}")
            continue
        if stat.S_ISREG(os.fstat(again).st_mode):
            say("ESCAPED", f"fd {fd} opened again to {name}: the record's own file")
        os.close(again)
