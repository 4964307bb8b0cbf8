# Hostile probe mem-many-children (memory).
# Twelve children with 32 MiB each at the same time: each is below the limit, together they
# are three times above it.
# Contained when it is refused more, or is ended, before it gets there.
import os
import time

from probe import say

CHILDREN, EACH, ALLOWED = 12, 32, 128
say("START", "mem-many-children")
read_end, write_end = os.pipe()
made = 0
for _ in range(CHILDREN):
    try:
        pid = os.fork()
    except OSError as error:
        say("INFO", f"fork: {error.strerror}")
        break
    if pid == 0:
        try:
            block = bytearray(EACH << 20)
            for i in range(0, len(block), 4096):
                block[i] = 1
            os.write(write_end, b"+")
            time.sleep(2)
        except MemoryError:
            pass
        os._exit(0)
    made += 1
os.close(write_end)
time.sleep(1.5)
os.set_blocking(read_end, False)
try:
    held = len(os.read(read_end, 100))
except BlockingIOError:
    held = 0
alive = 0
for _ in range(made):
    try:
        if os.waitpid(-1, os.WNOHANG)[0] == 0:
            break
        alive -= 1
    except ChildProcessError:
        break
alive += made
together = min(held, alive) * EACH
if together > 2 * ALLOWED:
    say("ESCAPED", f"children hold {together} MiB together, {ALLOWED} granted")
else:
    say("CONTAINED", f"{held} of {made} children got their {EACH} MiB, {alive} still alive")
