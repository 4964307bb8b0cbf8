# Hostile probe proc-kill-all (processes).
# Sends SIGTERM and SIGKILL to every process it may reach.
# Contained when nothing outside the run is hit, which is seen from the host.
import os
import signal
import time

from probe import say

say("START", "proc-kill-all")
for number in (signal.SIGTERM, signal.SIGKILL):
    if number == signal.SIGTERM:
        signal.signal(number, signal.SIG_IGN)
    try:
        os.kill(-1, number)
        say("INFO", f"kill(-1, {number}) reached something")
    except OSError as error:
        say("INFO", f"kill(-1, {number}): {error.strerror}")
time.sleep(0.3)
say("CONTAINED", "still here; what it ended outside is seen from the host")
