#!/usr/bin/env python3
"""What must not look like a loop that stands still, and what nobody but the daemon may say (C34).

With WatchdogSec=2, a ledger that does not answer for five seconds (SQLite locked by another, PostgreSQL's
backends stopped) is survived by the same process; messages to the service manager that code sends, or a process
of the unit's own group, change nothing. A client by unit matches nobody where the kernel cannot tell.
"""
import json
import os
import pwd
import signal
import socket
import sqlite3
import sys
import time

from load import Load
from machine import Client, SOCKET, expect, show
from unit import (call, configured, drop_in, expect_socket, journal, pid, read_configuration, verify, wait,
                  write_configuration, SOCKET_UNIT, UNIT)

STALL_S = 5
LEDGER = "/var/lib/auditrun/ledger.db"
DATABASE = "postgres:host=/var/run/postgresql dbname=audit"
NOTIFY = "/run/systemd/notify"
FORGED = ("READY=1\nSTATUS=forged", "RELOADING=1", "STOPPING=1", "MAINPID=1", "WATCHDOG=trigger", "WATCHDOG_USEC=1",
          "ERRNO=5")
FORGER = f"""
import os, socket
places = [os.environ.get("NOTIFY_SOCKET"), "{NOTIFY}", "/proc/1/root{NOTIFY}", "\\0/org/freedesktop/systemd1/notify"]
for place in filter(None, places):
    for message in {FORGED!r}:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            try:
                out.sendto(message.encode(), place)
                print("sent to", repr(place))
            except OSError as error:
                print(error.strerror)
"""


def unit_state():
    names = ("ActiveState", "SubState", "MainPID", "NRestarts", "StatusText", "WatchdogUSec", "StatusErrno")
    return {name: show(name) for name in names}


def postgres(text, database="postgres"):
    return call("runuser", "-u", "postgres", "--", "psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-d", database,
                "-c", text).strip()


def survive(name, stall, resume):
    """Under load; the loop goes round all the time, which status shows."""
    load = Load(name, connections=2, depth=2)
    load.wait_for(8)
    before = unit_state()
    held = stall()
    end, worst = time.monotonic() + STALL_S, 0.0
    while time.monotonic() < end:
        began = time.monotonic()
        client = Client()
        client.send(1, "status", {})
        client.result(1)
        worst = max(worst, time.monotonic() - began)
        time.sleep(0.2)
    resume(held)
    load.wait_for(8)
    load.stop()
    load.judge(unanswered_have_rows=False)
    assert all(request.run_id for request in load.requests)
    assert unit_state() == before, f"{unit_state()}, was {before}"
    print(f"# {name}: {STALL_S} s without a ledger, status in {worst:.2f} s at the worst")


def lock_sqlite():
    connection = sqlite3.connect(LEDGER, isolation_level=None, timeout=60)
    connection.execute("BEGIN IMMEDIATE")
    return connection


def unlock_sqlite(connection):
    connection.execute("ROLLBACK")
    connection.close()


def stop_backends():
    pids = [int(word) for word in
            postgres("SELECT pid FROM pg_stat_activity WHERE usename = 'auditrun'").split()]
    assert pids
    for backend in pids:
        os.kill(backend, signal.SIGSTOP)
    return pids


def resume_backends(pids):
    for backend in pids:
        os.kill(backend, signal.SIGCONT)


def check_sqlite():
    with configured(("ledger", "deadline", "60s")):
        survive("sqlite", lock_sqlite, unlock_sqlite)


def prepare_postgres():
    call("systemctl", "start", "postgresql@15-main.service")
    call("runuser", "-u", "postgres", "--", "createdb", "audit")
    call("runuser", "-u", "postgres", "--", "auditrun", "ledger", "init", "--ledger", DATABASE + " user=postgres")
    postgres("CREATE ROLE auditrun LOGIN IN ROLE auditrun_writer; CREATE ROLE root LOGIN IN ROLE auditrun_auditor")


def check_postgres():
    prepare_postgres()
    with configured(("ledger", "deadline", "60s"), ("ledger", "url", DATABASE)):
        survive("postgres", stop_backends, resume_backends)
        print("# " + verify())
    call("systemctl", "stop", "postgresql@15-main.service")


def forge_beside_the_daemon():
    """As its user, in its control group."""
    with open(f"/proc/{pid()}/cgroup", encoding="ascii") as file:
        group = file.read().strip().removeprefix("0::")
    user = pwd.getpwnam("auditrun")
    child = os.fork()
    if child == 0:
        with open(f"/sys/fs/cgroup{group}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            for message in FORGED:
                out.sendto(message.encode(), NOTIFY)
        time.sleep(2)  # so that the manager can see whose they are
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def check_forgery():
    before = unit_state()
    client = Client()
    client.run(1, FORGER)
    result = client.result(1)
    expect(result, "succeeded", "exit_zero")
    assert result["stdout"]["text"] and "sent" not in result["stdout"]["text"], result["stdout"]
    forge_beside_the_daemon()
    wait(lambda: "reception only permitted for main PID" in journal(), what="a message that was not heeded")
    assert unit_state() == before, f"{unit_state()}, was {before}"


def check_client_by_unit():
    """Linux 6.1 cannot tell of which unit a peer is: said at the start, and nobody matches."""
    good = read_configuration()
    head, _, rest = good.partition("\n[client ")
    tail = [part for part in rest.split("\n[") if not part.startswith("client ")][1:]
    text = head + "\n[client billing]\nuid = root\nunit = billing.service\ncompanies = *\n"
    text += "".join("\n[" + part for part in tail)
    write_configuration(text)
    call("systemctl", "restart", UNIT)
    assert os.uname().release.startswith("6.1"), "this test is for a kernel without SO_PEERPIDFD"
    assert "Linux 6.5" in journal(), journal()
    asker = ("import socket\ns = socket.socket(socket.AF_UNIX)\n"
             f"s.connect('{SOCKET}')\nprint(s.makefile().readline())")
    answer = json.loads(call("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--unit=billing",
                             "python3", "-c", asker))
    assert answer["error"]["code"] == -32002, answer
    write_configuration(good)
    call("systemctl", "restart", UNIT)
    client = Client()
    client.send(1, "status", {})
    client.result(1)


def main():
    call("systemctl", "start", SOCKET_UNIT, UNIT)
    began = time.monotonic()
    with drop_in("watchdog", "[Service]\nWatchdogSec=2\n"):
        for step in (check_sqlite, check_postgres, check_forgery):
            step()
            print(f"# {step.__name__}: good, {time.monotonic() - began:.0f} s", flush=True)
    check_client_by_unit()
    expect_socket()
    print("# " + verify())


if __name__ == "__main__":
    sys.exit(main())
