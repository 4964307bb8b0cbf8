# Hostile probe mem-huge-argv (memory).
# Starts programs with up to 32 MiB of arguments, with the stack limit raised as far as it
# goes.
# Contained when it is refused more, or is ended, before it gets there.
import resource
import subprocess

from probe import say

say("START", "mem-huge-argv")
hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))
word = "x" * 131000
went = 0
for mib in (1, 2, 4, 8, 16, 32):
    try:
        subprocess.run(["/bin/true"] + [word] * (8 * mib), check=True, stdin=subprocess.DEVNULL)
        went = mib
    except (OSError, subprocess.SubprocessError, MemoryError) as error:
        say("INFO", f"{mib} MiB: {error.__class__.__name__}")
        break
if went >= 16:
    say("ESCAPED", f"started a program with {went} MiB of arguments")
else:
    say("CONTAINED", f"{went} MiB of arguments at most")
