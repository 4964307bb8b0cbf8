#!/usr/bin/env python3
"""`systemctl reload` as the service user, and switches that outlive a restart."""
import json
import os
import signal
import sys

from load import Load
from machine import Client, expect, show
from unit import (call, events, expect_socket, is_active, journal, pid, read_configuration, set_key, verify,
                  wait, write_configuration, SOCKET_UNIT, UNIT)


def run(company="acme"):
    client = Client()
    client.send(1, "run", {"company": company, "actor": "actor-1", "purpose": "reload", "language": "bash",
                           "code": "true", "grant": {}})
    return client.result(1)


def taken():
    return [event["detail"]["taken"] for event in events("reloaded")]


def reload():
    """Until the daemon is through with it."""
    before = len(taken())
    call("systemctl", "reload", UNIT)
    wait(lambda: len(taken()) > before, what="a reload")
    wait(lambda: show("ActiveState") == "active", what="active")


def check_state():
    """reloading while it is under way, and then active, with the same process."""
    before, seen = pid(), []
    os.kill(before, signal.SIGHUP)
    while "reloading" not in seen or seen[-1] != "active":
        seen.append(show("ActiveState"))
        assert seen[-1] in ("active", "reloading") and len(seen) < 300, seen
    assert pid() == before
    assert taken()[-1] is True


def check_limits(good):
    """Under load; a run that was under way keeps what it had."""
    assert run()["grant"]["limits"]["wall_ms"] == 10000
    load = Load("reload-load", connections=2, depth=2)
    old = Client()
    old.send(1, "run", {"company": "acme", "actor": "actor-1", "purpose": "reload", "language": "bash",
                        "code": "echo here; sleep 6", "stream": True, "grant": {}})
    assert old.read()["method"] == "output"
    write_configuration(set_key(good, "limits", "wall", "5s"))
    before = pid()
    reload()
    assert taken()[-1] is True and pid() == before
    assert run()["grant"]["limits"]["wall_ms"] == 5000
    expect(old.result(1), "succeeded", "exit_zero")
    load.wait_for(5)
    load.stop()
    load.judge(unanswered_have_rows=False)
    assert all(request.run_id for request in load.requests), "a reload has cut somebody off"


def check_bad_file(good):
    """Changes nothing, and is told."""
    config = events("reloaded")[-1]["detail"]["config_sha256"]
    write_configuration(good + "\n[limits]\nwall = nonsense\n")
    reload()
    assert taken()[-1] is False
    assert events("reloaded")[-1]["detail"]["config_sha256"] == config
    assert "not reloaded, the configuration in force stays" in journal()
    assert run()["grant"]["limits"]["wall_ms"] == 5000
    write_configuration(good)
    reload()
    assert taken()[-1] is True
    assert run()["grant"]["limits"]["wall_ms"] == 10000


def check_switches():
    call("auditrun", "disable", "company", "acme", "--why", "a test")
    expect(run(), "disabled", "company")
    call("systemctl", "restart", UNIT)
    listed = json.loads(call("auditrun", "switches", "--json"))["switches"]
    assert [(s["scope"], s["name"], s["why"], s["source"]) for s in listed] == [
        ("company", "acme", "a test", "operator")], listed
    expect(run(), "disabled", "company")
    expect(run("globex"), "succeeded", "exit_zero")
    call("auditrun", "enable", "company", "acme", "--why", "it is over")
    expect(run(), "succeeded", "exit_zero")
    call("systemctl", "restart", UNIT)
    expect(run(), "succeeded", "exit_zero")
    assert [event["detail"]["off"] for event in events("switched")] == [True, False]


def main():
    call("systemctl", "start", SOCKET_UNIT, UNIT)
    good = read_configuration()
    for step in (check_state, lambda: check_limits(good), lambda: check_bad_file(good), check_switches):
        step()
        assert is_active(UNIT)
    expect_socket()
    print("# " + verify())


if __name__ == "__main__":
    sys.exit(main())
