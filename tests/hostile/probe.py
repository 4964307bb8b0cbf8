# What the hostile programs in Python share. The test puts it in the place of the line that imports
# it (tests/lib/hostile.c), because a run's code is one file.
import ctypes
import os


def say(word, text):
    """One line, in one piece: a word (START, ESCAPED, CONTAINED, INFO) and what it is about."""
    os.write(1, f"{word} {text}\n".encode("utf-8", "backslashreplace"))


def to_scratch():
    """Goes to a directory that can be written: the current one, or the usual others."""
    for d in (".", os.environ.get("TMPDIR"), os.environ.get("HOME"), "/tmp"):
        if d and os.path.isdir(d) and os.access(d, os.W_OK):
            os.chdir(d)
            return d
    say("INFO", "no directory can be written")
    return None


def take_name(name):
    """The name by which the test finds this process on the host."""
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
