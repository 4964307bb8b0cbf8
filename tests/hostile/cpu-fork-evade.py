# Hostile probe cpu-fork-evade (cpu).
# A row of short processes, each far below the 1 s of processor time that is granted, together
# above it.
# Contained when it is refused more, or is ended, before it gets there.
import os
import time

from probe import say

GRANTED = 1.0
say("START", "cpu-fork-evade")
# No process of the row comes near a limit that is counted for each one alone.
end = time.monotonic() + 12
while time.monotonic() < end:
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.4:
            pass
        os._exit(0)
    os.waitpid(pid, 0)
    used = os.times()
    total = used.user + used.system + used.children_user + used.children_system
    if total >= 4 * GRANTED:
        say("ESCAPED", f"{total:.1f} s of processor time in short processes, {GRANTED:.1f} s granted")
        break
