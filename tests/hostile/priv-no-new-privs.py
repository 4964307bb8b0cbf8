# Hostile probe priv-no-new-privs (privileges).
# Looks whether no_new_privs and a seccomp filter are in force, and tries to take the first
# back.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import ctypes

from probe import say

say("START", "priv-no-new-privs")
status = {}
with open("/proc/self/status") as f:
    for line in f:
        key, _, value = line.partition(":")
        status[key] = value.strip()
if status.get("NoNewPrivs") == "1":
    say("CONTAINED", "no_new_privs is set")
else:
    say("ESCAPED", "no_new_privs is not set")
if status.get("Seccomp") == "2":
    say("CONTAINED", f"{status.get('Seccomp_filters', '?')} seccomp filters")
else:
    say("ESCAPED", "no seccomp filter")
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 0, 0, 0, 0) == 0 or libc.prctl(39, 0, 0, 0, 0) == 0 and status.get("NoNewPrivs") == "1":
    say("ESCAPED", "no_new_privs could be taken back")
else:
    say("CONTAINED", "no_new_privs stays")
say("INFO", f"dumpable {libc.prctl(3, 0, 0, 0, 0)}, speculation {status.get('Speculation_Store_Bypass', '?')}")
