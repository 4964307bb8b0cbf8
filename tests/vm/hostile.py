#!/usr/bin/env python3
"""Every hostile program of tests/hostile through the installed daemon, which runs as the service user.

Programs in C are brought as built by the host, because there is no compiler in the machine; those whose
language is not there at all are named. The machine is emulated and slow: a program that may not run into
its time gets more of it.
"""
import base64
import json
import os
import pwd
import re
import sys
import time

from machine import Client
from unit import call, expect_socket, pid, rows, verify, wait, SOCKET_UNIT, UNIT

CORPUS = "source/tests/hostile"
BUILT = "build/hostile"
SLOWER = 6
IN_FLIGHT = 2
FIRST_ID, IDS = 2100000000, 65536
PER_SLOT = 2  # a provider and its launcher
HAVE = ("python", "bash", "perl")
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lib/auditrun", "/var/crash", "/")
CANARIES = ("/tmp/canary", "/var/tmp/canary", "/root/canary", "/dev/shm/canary")


def read(name):
    with open(os.path.join(CORPUS, name), encoding="utf-8") as file:
        return file.read()


def source(name):
    """With the text of what programs share in the place of the line that asks for it."""
    text = read(name)
    return re.sub(r"^from probe import .*$", lambda _: read("probe.py"), text, count=1, flags=re.M)


def programs():
    listed = json.loads(read("programs.json"))
    for category, entries in listed["categories"].items():
        for entry in entries:
            yield {**entry, "category": category, "limits": {**listed["limits"], **entry.get("limits", {})}}


def params(program):
    limits = dict(program["limits"])
    if "timed_out" not in program.get("status", []):
        limits["wall_ms"] *= SLOWER
        if program["category"] != "cpu":
            limits["cpu_ms"] *= SLOWER
    common = {"company": "acme", "actor": program["file"], "purpose": "hostile", "grant": {"limits": limits}}
    if program["language"] != "c":
        return {**common, "language": program["language"], "code": source(program["file"])}
    built = os.path.join(BUILT, program["file"] + ".base64")
    with open(built, encoding="ascii") as file:
        return {**common, "language": "bash", "code": "chmod 700 program && exec ./program",
                "files": [{"path": "program", "base64": file.read()}]}


def text_of(result, stream):
    part = result[stream]
    return part["text"] if "text" in part else base64.b64decode(part["base64"]).decode("utf-8", "replace")


def judge(program, result, took_s):
    """What is wrong with it, as a list."""
    wrong = []
    out, err = text_of(result, "stdout"), text_of(result, "stderr")
    if result["status"] not in program.get("status", ["succeeded"]):
        wrong.append(f"ended as {result['status']}, {result['reason']}; its stderr: {err[:300]}")
    wrong += re.findall(r"ESCAPED.*", out)
    if f"START {program['file'].split('.')[0]}\n" not in out:
        wrong.append("did not start")
    if result["reason"] == "exit_zero":
        wrong += [f"does not say {text}" for text in program.get("prints", ["CONTAINED"]) if text not in out]
    if program.get("hides_host"):
        with open("/etc/machine-id", encoding="ascii") as file:
            wrong += [f"prints {word}" for word in (os.uname().nodename, file.read().strip()) if word in out]
    if took_s * 1000 > program.get("within_ms", 60000) * SLOWER:
        wrong.append(f"took {took_s:.1f} s")
    if len(out) + len(err) > program.get("output_under_bytes", 1 << 30):
        wrong.append(f"{len(out) + len(err)} bytes came out")
    return [f"{program['file']}: {line}" for line in wrong]


# ---- what is left ----

def slots():
    """Processes of ids that are the slots', by command."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/status", encoding="ascii", errors="replace") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            continue
        if any(FIRST_ID <= int(uid) < FIRST_ID + IDS for uid in status["Uid"].split()):
            found[int(entry)] = status["Name"]
    return found


def idle_state():
    """All that a run could have left, as one value that can be compared."""
    group = "/sys/fs/cgroup/system.slice/auditrund.service"
    groups = {folder for folder, _, _ in os.walk(group)}
    of_slots = {folder for folder in groups if re.fullmatch(r"/auditrund\.\d+/slot\.\d+", folder[len(group):])}
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = sorted(file)
    with open("/proc/sysvipc/shm", encoding="ascii") as shm, open("/proc/sysvipc/sem", encoding="ascii") as sem, \
            open("/proc/sysvipc/msg", encoding="ascii") as msg:
        ipc = [len(file.readlines()) for file in (shm, sem, msg)]
    files = {place: sorted(os.listdir(place)) for place in PLACES if os.path.isdir(place)}
    files["/var/lib/auditrun"] = [name for name in files["/var/lib/auditrun"] if not name.startswith("ledger")]
    owned = call("find", "/", "-xdev", "-uid", f"+{FIRST_ID - 1}", "-print").splitlines()
    return {"groups": sorted(groups - of_slots), "mounts": mounts, "ipc": ipc, "files": files, "owned": owned,
            "host": os.uname().nodename, "processes": len(slots()) - PER_SLOT * len(of_slots)}


def difference(before, after):
    """What is not as it was, as a list."""
    return [f"{key}: {after[key]}, was {before[key]}"[:2000] for key in before if before[key] != after[key]]


def providers_are_idle():
    names = set(slots().values())
    return all(name.startswith("auditrun") for name in names)


def put_canaries():
    for path in CANARIES:
        with open(path, "w", encoding="ascii") as file:
            file.write("untouched\n")


def expect_canaries():
    for path in CANARIES:
        with open(path, encoding="ascii") as file:
            assert file.read() == "untouched\n", path


# ---- all of them ----

def can_run(program):
    if program["language"] == "c":
        return os.path.exists(os.path.join(BUILT, program["file"] + ".base64"))
    return program["language"] in HAVE


def tell_skipped():
    skipped = [program["file"] for program in programs() if not can_run(program)]
    if skipped:
        print(f"# NOT TESTED, their language is not here: {' '.join(skipped)}")


def run_all(client, todo):
    """In flight at a time: IN_FLIGHT, and those that are meant to be together. Returns what is wrong."""
    wrong, waiting, sent, number = [], {}, 0, 0
    todo = list(todo)
    while todo or waiting:
        while todo and (not waiting or len(waiting) + todo[0].get("at_once", 1) <= IN_FLIGHT):
            program = todo.pop(0)
            for _ in range(program.get("at_once", 1)):
                number, sent = number + 1, sent + 1
                waiting[number] = (program, time.monotonic())
                client.send(number, "run", params(program))
        message = client.read()
        assert "result" in message, message
        program, began = waiting.pop(message["id"])
        wrong += judge(program, message["result"], time.monotonic() - began)
    return sent, wrong


def main():
    call("systemctl", "start", SOCKET_UNIT, UNIT)
    service = pwd.getpwnam("auditrun").pw_uid
    main_pid = pid()
    assert os.stat(f"/proc/{main_pid}").st_uid == service
    client = Client()
    client.run(1, "print(1)")
    client.result(1)
    put_canaries()
    wait(providers_are_idle, what="idleness")
    before = idle_state()
    tell_skipped()
    runnable = [program for program in programs() if can_run(program)
                for _ in range(program.get("times", 1))]
    sent, wrong = run_all(Client(), runnable)
    wait(providers_are_idle, what="idleness")
    end = time.monotonic() + 60
    while (left := difference(before, idle_state())) and time.monotonic() < end:
        time.sleep(1)
    wrong += [f"is left: {line}" for line in left]
    expect_canaries()
    for path in CANARIES:
        os.unlink(path)
    assert pid() == main_pid, "the daemon is another one"
    assert sum(row["purpose"] == "hostile" for row in rows()) == sent
    expect_socket()
    print(f"# {sent} runs of {len({p['file'] for p in runnable})} programs; {verify()}")
    for line in wrong:
        print(f"# {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
