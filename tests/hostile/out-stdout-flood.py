# Hostile probe out-stdout-flood (output).
# Writes 256 MiB to the standard output; 64 KiB are granted.
# Contained when the output is cut off and nothing else suffers.
import os

from probe import say

say("START", "out-stdout-flood")
block = (b"the same line over and over again, to fill whatever keeps it\n" * 1100)[:65536]
left = 256 << 20
while left > 0:
    left -= os.write(1, block)
