#!/usr/bin/env python3
"""The daemon is restarted, and killed, while clients send runs without end.

Over a restart each run that was received has its answer, which may be that the daemon drains, and its row;
who connects meanwhile is the next daemon's. Over a kill each run that had begun has its row. The socket
never fails (C33).
"""
import json
import os
import signal
import subprocess
import sys
import time

from load import Load
from machine import Client, expect, show
from unit import call, expect_socket, is_active, pid, rows, status, verify, wait, SOCKET_UNIT, UNIT

RESTARTS, KILLS = 3, 10
WAITING = 200


def run_of(client, number, purpose, code):
    client.send(number, "run", {"company": "acme", "actor": f"{purpose}-{id(client)}", "purpose": purpose,
                                "language": "bash", "code": code, "stream": True, "grant": {}})


def begin(seconds, purpose):
    """A run that keeps the daemon from ending for so long."""
    client = Client()
    run_of(client, 1, purpose, f"echo here; sleep {seconds}")
    assert client.read()["method"] == "output"
    return client


def check_restarts():
    load = Load("restart")
    for _ in range(RESTARTS):
        load.wait_for(15)
        long_run = begin(3, "holds")
        before = pid()
        call("systemctl", "restart", UNIT)
        assert pid() != before
        expect(long_run.result(1), "succeeded", "exit_zero")
    load.wait_for(15)
    load.stop()
    found = load.judge(unanswered_have_rows=False)
    refused = [row for row in found.values() if row["status"] == "refused"]
    assert refused and all(row["reason"] == "draining" for row in refused), refused
    assert load.count("cancelled") == 0
    print(f"# {len(load.requests)} requests, {len(found)} rows, {len(refused)} refused as draining")


def read_whole(client):
    """Its answer, or None if it was closed without one."""
    while True:
        try:
            line = client.lines.readline()
        except ConnectionResetError:
            return None
        if not line:
            return None
        assert line.endswith("\n"), f"half an answer: {line}"
        message = json.loads(line)
        if "id" in message:
            return message


def check_waiting():
    """200 come while it drains, and some were there before and say nothing until then."""
    early = [Client() for _ in range(20)]
    for client in early:
        client.send(1, "status", {})
        assert read_whole(client)["result"]["draining"] is False
    long_run = begin(5, "waits")
    restart = subprocess.Popen(["systemctl", "restart", UNIT])
    wait(lambda: show("ActiveState") == "deactivating")
    late = [Client() for _ in range(WAITING)]
    for number, client in enumerate(early + late):
        if number % 4 == 0:
            run_of(client, 2, "waits", "echo here")
        else:
            client.send(2, "status", {})
    assert restart.poll() is None, "it was too quick for this test"
    answers = [read_whole(client) for client in early + late]
    assert restart.wait() == 0
    expect(long_run.result(1), "succeeded", "exit_zero")
    assert all(answers), "closed without an answer"
    runs = [answer["result"] for answer in answers if "run_id" in answer["result"]]
    states = [answer["result"] for answer in answers if "draining" in answer["result"]]
    assert len(runs) + len(states) == len(answers) == WAITING + 20
    assert {run["reason"] for run in runs} <= {"exit_zero", "draining"}
    by_id = {row["run_id"]: row for row in rows() if row["purpose"] == "waits"}
    assert len(by_id) == len(runs) + 1
    assert all(by_id[run["run_id"]]["status"] == run["status"] for run in runs)
    served = sum(run["status"] == "succeeded" for run in runs) + sum(not s["draining"] for s in states)
    assert served >= WAITING, f"the next daemon has served {served}"
    print(f"# of {WAITING} that waited and 20 that were there the next daemon has served {served}")


def check_kills():
    load = Load("kill", connections=6)
    before = int(show("NRestarts"))
    for number in range(KILLS):
        load.wait_for(10)
        killed = pid()
        os.kill(killed, signal.SIGKILL)
        wait(lambda killed=killed: pid() not in (0, killed))
        assert is_active(SOCKET_UNIT), f"after kill {number + 1}"
    load.wait_for(10)
    load.stop()
    assert int(show("NRestarts")) == before + KILLS
    found = load.judge(unanswered_have_rows=True)
    interrupted = [row for row in found.values() if row["status"] == "interrupted"]
    assert interrupted and all(row["reason"] == "host_restarted" for row in interrupted)
    lost = sum(request.run_id is None for request in load.requests)
    assert status()["journal"]["open_intents"] == 0
    print(f"# {len(load.requests)} requests, {lost} without an answer, {len(found)} rows, "
          f"{len(interrupted)} interrupted")


def main():
    began = time.monotonic()
    call("systemctl", "start", SOCKET_UNIT)
    for step in (check_restarts, check_waiting, check_kills):
        step()
        expect_socket()
        print(f"# {step.__name__}: good, {time.monotonic() - began:.0f} s", flush=True)
    print("# " + verify())


if __name__ == "__main__":
    sys.exit(main())
