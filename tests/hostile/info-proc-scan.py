# Hostile probe info-proc-scan (information).
# Looks for processes of the host in /proc, listed or hidden.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import os

from probe import say

MARK = "HOSTILE" + "-CANARY-"
say("START", "info-proc-scan")
pids = [int(d) for d in os.listdir("/proc") if d.isdigit()]
kernel = 0
for pid in pids:
    if pid == os.getpid():
        continue
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            line = f.read()
        if MARK.encode() in line:
            say("ESCAPED", f"sees a process of the host: {pid}")
    except OSError:
        pass
    try:
        with open(f"/proc/{pid}/stat") as f:
            if f.read().rpartition(")")[2].split()[1] == "2":
                kernel += 1
    except (OSError, IndexError):
        pass
    for leaf in ("cwd", "root", "exe"):
        try:
            to = os.readlink(f"/proc/{pid}/{leaf}")
            say("INFO", f"process {pid} {leaf} {to}")
        except OSError:
            pass
if kernel:
    say("ESCAPED", f"sees {kernel} threads of the kernel: the host's own /proc")
# Processes that a number leads to although the listing does not show them.
hidden = 0
for pid in range(1, 5000):
    if pid not in pids and pid != os.getpid():
        try:
            os.kill(pid, 0)
            hidden += 1
        except ProcessLookupError:
            pass
        except PermissionError:
            hidden += 1
if hidden > 2:
    say("ESCAPED", f"{hidden} processes answer to a signal though the listing hides them")
say("CONTAINED", f"{len(pids)} processes in sight")
