#!/usr/bin/env python3
"""The packaged unit, and runs that want more than they may have, on a machine of their own (C32).

Asserts that the unit stays active with the same main process: while runs go over their memory and over
their processes, and while the whole machine has no memory left, when runs go before the daemon and do
not say that they went over their own limit.
"""
import json
import socket
import subprocess
import sys
import time

UNIT = "auditrund.service"
SOCKET = "/run/auditrun/auditrun.sock"
WAIT_S = 300
MEMORY = {"memory_bytes": 64 << 20}
EATER = "b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\n"
BOMB = "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(1000)\n"
WAITER = "import time\nprint('here', flush=True)\ntime.sleep(100000)\n"
# Takes memory until the kernel has killed somebody for it.
HOG = """
def kills():
    with open("/proc/vmstat", encoding="ascii") as file:
        return [int(line.split()[1]) for line in file if line.startswith("oom_kill ")][0]
before, held = kills(), []
while kills() == before:
    held.append(bytearray(b"x" * (4 << 20)))
"""


class Client:
    """One connection; answers by id."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(SOCKET)
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.answers = {}
        self.started = set()

    def send(self, number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def run(self, number, code, limits=None, wall_ms=600000, stream=False):
        grant = {"limits": {"wall_ms": wall_ms, **(limits or {})}}
        self.send(number, "run", {"company": "acme", "actor": "actor-1", "purpose": "machine",
                                  "language": "python", "code": code, "grant": grant,
                                  "stream": stream})

    def read(self):
        message = json.loads(self.lines.readline())
        if "id" in message:
            self.answers[message["id"]] = message
        return message

    def answer(self, number):
        while number not in self.answers:
            self.read()
        return self.answers[number]

    def result(self, number):
        answer = self.answer(number)
        assert "result" in answer, answer
        return answer["result"]

    def status(self, number):
        """How the run ended, also where its record came too late: the machine is very slow then."""
        answer = self.answer(number)
        return (answer.get("result") or answer["error"]["data"]).get(
            "status" if "result" in answer else "terminal_status")


def show(name):
    """A property of the unit."""
    return subprocess.run(["systemctl", "show", UNIT, "--property", name, "--value"], check=True,
                          capture_output=True, text=True).stdout.strip()


def expect(result, status, reason):
    found = (result["status"], result["reason"])
    assert found == (status, reason), f"{found}, not {(status, reason)}: {result}"
    assert result["record"]["seq"] > 0


def expect_unit(main):
    assert show("ActiveState") == "active", show("ActiveState")
    assert show("MainPID") == main, "the daemon is another one"
    assert show("NRestarts") == "0"


def check_properties():
    wanted = {"Delegate": "yes", "OOMPolicy": "continue", "KillMode": "mixed",
              "MemoryMin": str(32 << 20), "OOMScoreAdjust": "-900"}
    for name, value in wanted.items():
        assert show(name) == value, f"{name} is {show(name)}"
    journal = subprocess.run(["journalctl", "-u", UNIT, "--no-pager", "-o", "cat"], check=True,
                             capture_output=True, text=True).stdout
    assert "control groups: v2" in journal, journal
    assert "do not hold" not in journal, journal
    with open(f"/proc/{show('MainPID')}/oom_score_adj", encoding="ascii") as file:
        assert file.read().strip() == "-900"


def check_own_limits(main):
    """Eight long runs, and beside them runs that go over their memory and their processes."""
    client = Client()
    for number in range(1, 9):
        client.run(number, "import time\nend = time.monotonic() + 60\n"
                           "while time.monotonic() < end: time.sleep(1)\n")
    for number in range(101, 121):
        client.run(number, EATER, MEMORY)
        result = client.result(number)
        expect(result, "limit_exceeded", "memory")
        assert result["usage"]["user_us"] + result["usage"]["system_us"] > 0
        expect_unit(main)
    for number in range(201, 204):
        client.run(number, BOMB, {"processes": 8})
        expect(client.result(number), "limit_exceeded", "processes")
    expect_unit(main)
    for number in range(1, 9):
        expect(client.result(number), "succeeded", "exit_zero")


def check_machine_without_memory(main):
    """Somebody outside of the unit takes all the memory that there is."""
    client = Client()
    for number in range(1, 4):
        client.run(number, WAITER, {"memory_bytes": 1 << 40}, stream=True)
    here = 0
    while here < 3:
        here += client.read().get("method") == "output"
    hog = subprocess.Popen(["systemd-run", "--quiet", "--wait", "--collect", "--unit=hog",
                            "--property=OOMScoreAdjust=-950", "--property=OOMPolicy=continue",
                            "python3", "-c", HOG])
    message = client.read()
    while "id" not in message:
        message = client.read()
    assert hog.wait(WAIT_S) == 0
    status = client.status(message["id"])
    assert status and status not in ("succeeded", "limit_exceeded"), message
    print(f"# a run that went for the machine's sake: {status}")
    expect_unit(main)
    number = 50
    client.run(number, "print(1)")
    expect(client.result(number), "succeeded", "exit_zero")
    for left in range(1, 4):
        client.send(60 + left, "cancel", {"request_id": left})
    for left in range(1, 4):
        assert client.status(left) != "limit_exceeded"


def check_ledger():
    subprocess.run(["auditrun", "verify"], check=True, stdout=subprocess.DEVNULL)


def main():
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("-999")  # it is not about this test
    pid = show("MainPID")
    began = time.monotonic()
    for step in (check_properties, lambda: check_own_limits(pid),
                 lambda: check_machine_without_memory(pid), check_ledger):
        step()
        print(f"# {time.monotonic() - began:.0f} s", flush=True)
    expect_unit(pid)


if __name__ == "__main__":
    sys.exit(main())
