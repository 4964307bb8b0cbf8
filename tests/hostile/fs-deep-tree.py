# Hostile probe fs-deep-tree (filesystem).
# Leaves a tree of up to 2,000 directories with names of 243 bytes, far beyond the longest
# path, whose last ones cannot be read.
# Contained when it is refused more, or is ended, before it gets there.
import os

from probe import say, to_scratch

say("START", "fs-deep-tree")
to_scratch()
depth, why = 0, ""
name = "hostile-left-" + "d" * 230
# Far deeper than the longest path that one call takes.
while depth < 2000:
    try:
        os.mkdir(name, 0o700)
        os.chdir(name)
    except OSError as error:
        why = error.strerror
        break
    depth += 1
for act in (lambda: os.close(os.open("f" * 255, os.O_CREAT | os.O_WRONLY, 0)), lambda: os.mkdir("shut", 0),
            lambda: os.chmod(".", 0o500)):
    try:
        act()
    except OSError:
        pass
say("CONTAINED", f"left a tree {depth} deep ({why or 'no limit met'}); whether it goes is seen from the host")
