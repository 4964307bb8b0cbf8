# Hostile probe priv-host-uid (privileges).
# Takes a name by which the test finds it on the host: two runs at the same time must have
# different users there, neither of them 0.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import os
import time

from probe import say, take_name

say("START", "priv-host-uid")
# The user that a process has on the host cannot be told from inside for sure, so the test
# looks for this name among the host's processes, in two runs at the same time.
take_name("hostile-uid")
with open("/proc/self/uid_map") as f:
    first = f.readline().split()
if os.getuid() == 0 and first == ["0", "0", "4294967295"]:
    say("ESCAPED", "runs as user 0 of the host")
else:
    say("CONTAINED", "not in the host's own user namespace as user 0")
time.sleep(1)
