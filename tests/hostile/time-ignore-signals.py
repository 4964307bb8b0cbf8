# Hostile probe time-ignore-signals (time).
# Ignores and blocks every signal that can be, in four processes, and sleeps for 30 s.
# Contained when the run is ended from outside in time and nothing stays behind.
import os
import signal
import time

from probe import say, take_name

say("START", "time-ignore-signals")
for number in range(1, signal.NSIG):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
for _ in range(3):
    if os.fork() == 0:
        take_name("hostile-left")
        break
end = time.monotonic() + 30
while time.monotonic() < end:
    time.sleep(1)
say("ESCAPED", "still here after 30 s")
