#!/usr/bin/env python3
"""The unit and its socket, as the unprivileged service user, on a machine of their own.

What systemd-analyze has to say is what docs/security-model.md explains; the daemon is powerless and its slots
are somebody else each; a connection starts it; a broken configuration never takes the socket down (C33); a
loop that stands still is ended by the watchdog, and the daemon comes back (C34).
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from machine import Client, expect, show
from unit import call, expect_socket, is_active, journal, verify, wait, CONF, SOCKET_UNIT

DROP_IN = "/run/systemd/system/auditrund.service.d/watchdog.conf"
FIRST_ID = 2100000000
BROKEN = "\n[nonsense]\nkey = 1\n"


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def python(client, number, code, **more):
    client.run(number, code, **more)
    return client.result(number)


def check_exposure():
    """Each point that is left is explained, and nothing is explained that is not there."""
    # Width: names are not to be cut off.
    environment = {**os.environ, "SYSTEMD_COLORS": "0", "COLUMNS": "400"}
    text = subprocess.run(["systemd-analyze", "security", "--no-pager", "auditrund.service"],
                          check=True, capture_output=True, text=True, env=environment).stdout
    found = {line.split()[1] for line in text.splitlines() if line.startswith("✗")}
    with open("source/docs/security-model.md", encoding="utf-8") as file:
        section = file.read().split("\n## The unit\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    explained = {name.replace("\\|", "|") for row in rows
                 for name in re.findall("`([^`]+)`", re.split(r"(?<!\\)\|", row)[1])}
    assert found == explained, f"not explained: {found - explained}; not there: {explained - found}"
    level = re.search(r"exposure level for auditrund.service: ([0-9.]+)", text).group(1)
    assert f"says {level} " in section, level
    print(f"# systemd-analyze security: {level}")


def check_activation():
    assert is_active(SOCKET_UNIT) and not is_active("auditrund.service")
    with_socket = os.stat("/run/auditrun/auditrun.sock")
    assert with_socket.st_mode & 0o777 == 0o660
    client = Client()
    expect(python(client, 1, "print(1)"), "succeeded", "exit_zero")
    assert is_active("auditrund.service")
    call("systemctl", "restart", "auditrund.service")
    assert os.stat("/run/auditrun/auditrun.sock").st_ino == with_socket.st_ino
    expect(python(Client(), 1, "print(1)"), "succeeded", "exit_zero")


def check_user():
    pid = show("MainPID")
    status = status_of(pid)
    user = int(call("id", "-u", "auditrun"))
    assert status["Uid"].split() == [str(user)] * 4, status["Uid"]
    assert status["NoNewPrivs"] == "1"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, f"{name} {status[name]}"
    assert "slots get ids of their own: there are 65536" in journal()
    client = Client()
    result = python(client, 2, "import os\nprint(os.environ)\nprint(open('/proc/self/uid_map').read())")
    expect(result, "succeeded", "exit_zero")
    for word in ("NOTIFY", "WATCHDOG", "LISTEN_", "CREDENTIALS", "INVOCATION", "JOURNAL"):
        assert word not in result["stdout"]["text"], result["stdout"]["text"]
    slots = [status_of(child)["Uid"].split()[0]
             for child in open(f"/proc/{pid}/task/{pid}/children", encoding="ascii").read().split()]
    assert slots, "there is no provider"
    assert all(FIRST_ID <= int(slot) < FIRST_ID + 65536 for slot in slots), slots
    assert len(set(slots)) == len(slots), slots


def check_journal_fields():
    """A run is found by its id, and by how it ended; an operator needs no regular expression."""
    result = python(Client(), 3, "raise SystemExit(3)")
    expect(result, "failed", "exit_nonzero")
    wait(lambda: call("journalctl", "-o", "cat", "_SYSTEMD_UNIT=auditrund.service",
                      f"AUDITRUN_RUN_ID={result['run_id']}"))
    fields = json.loads(call("journalctl", "-o", "json", f"AUDITRUN_RUN_ID={result['run_id']}"))
    assert fields["AUDITRUN_STATUS"] == "failed" and fields["AUDITRUN_REASON"] == "exit_nonzero", fields
    assert fields["AUDITRUN_SEQ"] == str(result["record"]["seq"]) and fields["PRIORITY"] == "6", fields


def check_broken_configuration():
    """60 clients come while it cannot start; they are served when it can."""
    call("systemctl", "stop", "auditrund.service")
    with open(CONF, encoding="utf-8") as file:
        good = file.read()
    with open(CONF, "a", encoding="utf-8") as file:
        file.write(BROKEN)
    before = int(show("NRestarts"))
    clients = []
    for _ in range(60):
        clients.append(Client())
        clients[-1].run(1, "print(1)")
        time.sleep(0.03)
    wait(lambda: int(show("NRestarts")) >= before + 3)
    assert is_active(SOCKET_UNIT)
    assert re.search(r"auditrun\.conf:[0-9]+:", journal())
    with open(CONF, "w", encoding="utf-8") as file:
        file.write(good)
    call("systemctl", "start", "auditrund.service")
    for client in clients:
        expect(client.result(1), "succeeded", "exit_zero")
    assert is_active(SOCKET_UNIT)


def check_watchdog():
    """A loop that stands still is ended within the interval; what it did is told."""
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w", encoding="ascii") as file:
        file.write("[Service]\nWatchdogSec=2\n")
    call("systemctl", "daemon-reload")
    call("systemctl", "restart", "auditrund.service")
    pid = int(show("MainPID"))
    client = Client()
    client.run(1, "import time\nprint('here', flush=True)\ntime.sleep(1000)\n", stream=True)
    assert client.read()["method"] == "output"
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    wait(lambda: not os.path.exists(f"/proc/{pid}"))
    took = time.monotonic() - began
    print(f"# the watchdog took {took:.1f} s")
    assert took < 10, took
    assert client.lines.readline() == "", "the killed daemon has answered"
    expect(python(Client(), 1, "print(1)"), "succeeded", "exit_zero")
    assert "recovered from the journal: 1 interrupted" in journal()
    os.unlink(DROP_IN)
    call("systemctl", "daemon-reload")
    call("systemctl", "restart", "auditrund.service")
    expect_socket()


def main():
    call("systemctl", "start", SOCKET_UNIT)
    for step in (check_exposure, check_activation, check_user, check_journal_fields,
                 check_broken_configuration, check_watchdog):
        step()
        print(f"# {step.__name__}: good", flush=True)
    print("# " + verify())


if __name__ == "__main__":
    sys.exit(main())
