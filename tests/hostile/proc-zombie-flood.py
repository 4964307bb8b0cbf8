# Hostile probe proc-zombie-flood (processes).
# Keeps up to 300 children that have ended and are not waited for; each holds a place in the
# process table.
# Contained when it is refused more, or is ended, before it gets there.
import os
import time

from probe import say

CEILING, ALLOWED = 300, 32
say("START", "proc-zombie-flood")
made, why = 0, ""
while made < CEILING:
    try:
        pid = os.fork()
    except OSError as error:
        why = error.strerror
        break
    if pid == 0:
        os._exit(0)
    made += 1
time.sleep(0.3)
if made > 2 * ALLOWED:
    say("ESCAPED", f"{made} zombies kept, {ALLOWED} processes granted")
else:
    say("CONTAINED", f"{made} zombies ({why})")
