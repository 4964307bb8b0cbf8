#!/usr/bin/env python3
"""The power is cut under load, and the machine comes up again with what its disk had been told to keep.

usage: power.py load              serves clients until the cut, which may come when it says so; prints each run
                                  that began or was answered
       power.py check FILE...     after it; FILEs are what was printed
"""
import sys

from load import Load
from unit import call, is_active, rows, status, verify, wait, SOCKET_UNIT, UNIT

ANSWERS = 40


def serve():
    call("systemctl", "start", SOCKET_UNIT, UNIT)
    load = Load(f"cut-{len(rows())}", connections=4, tells=True)
    load.wait_for(ANSWERS)
    print("the power may go", flush=True)
    load.wait_for(1 << 30)


def read(paths):
    """What clients were told: runs that had begun, and how runs had ended."""
    began, ended = set(), {}
    for path in paths:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file.read().split("\n")[:-1]:
                words = line.split()
                if words[:1] == ["started"]:
                    began.add(words[1])
                elif words[:1] == ["answered"]:
                    ended[words[1]] = tuple(words[2:])
    return began, ended


def check(paths):
    wait(lambda: is_active(UNIT), what="the daemon")
    began, ended = read(paths)
    found = {}
    for row in rows():
        assert row["run_id"] not in found, f"two rows: {row}"
        found[row["run_id"]] = row
    for run_id, end in ended.items():
        assert run_id in found, f"was answered, and has no row: {run_id} {end}"
        row = found[run_id]
        assert (row["status"], row["reason"]) == end, f"was answered as {end}: {row}"
    for run_id in began:
        assert run_id in found, f"had begun, and has no row: {run_id}"
    cut = {run_id for run_id, row in found.items() if row["reason"] == "host_restarted"}
    assert not cut & set(ended)
    journal = status()["journal"]
    assert journal["open_intents"] == 0 and journal["kept"] == 0, journal
    print(f"# {len(ended)} answered, {len(began - set(ended))} more had begun, {len(found)} rows, "
          f"{len(cut)} interrupted; {verify()}")


def main():
    if sys.argv[1] == "load":
        serve()
    else:
        check(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
