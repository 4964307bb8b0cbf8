"""What the steps in the machine have in common: the unit of the daemon, its log, its configuration, its rows."""
import contextlib
import json
import os
import subprocess
import time

from machine import UNIT, show

SOCKET_UNIT = "auditrund.socket"
CONF = "/etc/auditrun/auditrun.conf"


def call(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def journal():
    return call("journalctl", "-u", UNIT, "--no-pager", "-o", "cat")


def wait(holds, seconds=120, what="it"):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what} does not come to hold"
        time.sleep(0.1)


def is_active(unit):
    return subprocess.run(["systemctl", "is-active", "--quiet", unit], check=False).returncode == 0


def expect_socket():
    """It has never failed, and listens."""
    assert is_active(SOCKET_UNIT)
    result = call("systemctl", "show", SOCKET_UNIT, "--property=Result", "--value").strip()
    assert result == "success", result


def pid():
    return int(show("MainPID"))


def rows():
    """All of the ledger, the oldest first."""
    lines = call("auditrun", "ledger", "list", "--json").splitlines()
    return [json.loads(line) for line in reversed(lines)]


def events(kind):
    lines = call("auditrun", "ledger", "events", "--json", "--kind", kind).splitlines()
    return [json.loads(line) for line in reversed(lines)]


def verify():
    """Raises if the ledger is not whole."""
    return call("auditrun", "verify").strip()


def status():
    return json.loads(call("auditrun", "status", "--json"))


def read_configuration():
    with open(CONF, encoding="utf-8") as file:
        return file.read()


def write_configuration(text):
    with open(CONF, "w", encoding="utf-8") as file:
        file.write(text)


def set_key(text, section, key, value):
    """The configuration with that key, in that section, which is there."""
    head = f"\n[{section}]\n"
    before, found, after = text.partition(head)
    assert found, section
    own, next_section, rest = after.partition("\n[")
    own = "\n".join(line for line in own.split("\n") if line.split(" = ")[0] != key)
    return before + head + f"{key} = {value}\n" + own + next_section + rest


@contextlib.contextmanager
def configured(*changes):
    """The daemon, restarted, with (section, key, value)...; and afterwards as it was."""
    good = read_configuration()
    text = good
    for change in changes:
        text = set_key(text, *change)
    write_configuration(text)
    call("systemctl", "restart", UNIT)
    try:
        yield
    finally:
        write_configuration(good)
        call("systemctl", "restart", UNIT)


@contextlib.contextmanager
def drop_in(name, text):
    """The unit, restarted, with this drop-in; and afterwards without it."""
    path = f"/run/systemd/system/{UNIT}.d/{name}.conf"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    call("systemctl", "daemon-reload")
    call("systemctl", "restart", UNIT)
    try:
        yield
    finally:
        os.unlink(path)
        call("systemctl", "daemon-reload")
        call("systemctl", "restart", UNIT)
