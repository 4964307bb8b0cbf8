# Hostile probe out-write-after-exit (output).
# Leaves a child in a session of its own that goes on writing to the output for 30 s.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import os
import signal
import time

from probe import say, take_name

say("START", "out-write-after-exit")
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    take_name("hostile-left")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        say("INFO", "late line")
        time.sleep(0.02)
    os._exit(0)
say("CONTAINED", "parent leaves; whether the child writes on is seen from the host")
os._exit(0)
