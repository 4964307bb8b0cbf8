# Hostile probe info-env (information).
# Looks for variables of the host in its own environment and in that of every process in
# sight.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import glob
import os
import re

from probe import say

MARK = "HOSTILE" + "-CANARY-"
say("START", "info-env")
# Names only: no value is ever printed.
names = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|KEY|CREDENTIALS?)$|^(AWS|PG|DATABASE|SSH|SUDO|AUDITRUN)_?",
                   re.IGNORECASE)
for name, value in sorted(os.environ.items()):
    if MARK in value:
        say("ESCAPED", f"a variable of the host came in: {name}")
    elif names.search(name):
        say("ESCAPED", f"a variable that looks like a secret or like the host's own: {name}")
tries = 0
for path in glob.glob("/proc/[0-9]*/environ"):
    tries += 1
    try:
        with open(path, "rb") as f:
            text = f.read()
    except OSError:
        continue
    if MARK.encode() in text and path != f"/proc/{os.getpid()}/environ":
        say("ESCAPED", f"the host's environment is in {path}")
say("CONTAINED", f"the rest of {len(os.environ)} variables and of {tries} processes")
