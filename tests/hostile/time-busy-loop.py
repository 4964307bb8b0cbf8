# Hostile probe time-busy-loop (time).
# Spins for 30 s; the wall-clock limit has to end it.
# Contained when the run is ended from outside in time and nothing stays behind.
import time

from probe import say

say("START", "time-busy-loop")
end = time.monotonic() + 30
while time.monotonic() < end:
    pass
say("ESCAPED", "spun for 30 s")
