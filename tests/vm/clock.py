#!/usr/bin/env python3
"""The clock is set, an hour to ten years off, while runs go on (C35).

No deadline moves with it, usage is never negative, ids rise strictly and do not follow a leap into the
future, and each step is an event.
"""
import sys
import threading
import time
import uuid

from machine import Client, expect
from unit import call, events, expect_socket, pid, rows, verify, wait, SOCKET_UNIT, UNIT

HOUR, DAY = 3600, 86400
GLANCE_S = 2
WALL_MS = 3000
# (seconds, and whether it is taken back after two)
STEPS = ((HOUR, False), (-HOUR, False), (-30 * DAY, False), (400 * DAY, True), (3653 * DAY, False))


def set_clock(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + seconds)


class Load(threading.Thread):
    """One run after the other, until it is told to stop: each is judged as it is answered."""

    def __init__(self, code, end, least_s, most_s):
        super().__init__(daemon=True)
        self.code, self.end, self.least_s, self.most_s = code, end, least_s, most_s
        self.ids, self.stopping, self.problem = [], False, None

    def run(self):
        try:
            client = Client()
            while not self.stopping:
                self.ids.append(self.one(client, len(self.ids) + 1))
        except Exception as error:  # told by stop()
            self.problem = error

    def one(self, client, number):
        began = time.monotonic()
        client.send(number, "run", {"company": "acme", "actor": "actor-1", "purpose": "clock",
                                    "language": "bash", "code": self.code,
                                    "grant": {"limits": {"wall_ms": WALL_MS}}})
        result = client.result(number)
        took = time.monotonic() - began
        expect(result, *self.end)
        assert self.least_s <= took <= self.most_s, f"{took:.2f} s: {result}"
        usage = result["usage"]
        assert all(value >= 0 for value in usage.values()), usage
        assert self.least_s * 1e6 * 0.9 <= usage["wall_us"] <= took * 1e6, usage
        return result["run_id"]

    def stop(self):
        self.stopping = True
        self.join(60)
        if self.problem:
            raise self.problem
        assert self.ids == sorted(set(self.ids)), f"ids do not rise: {self.ids}"


def loads():
    return [Load("true", ("succeeded", "exit_zero"), 0, 30),
            Load("sleep 1", ("succeeded", "exit_zero"), 1, 30),
            Load("sleep 10", ("timed_out", "wall_clock"), WALL_MS / 1000, 8)]


def under_load(step):
    """Returns the ids, each list of which rises."""
    all_loads = loads()
    for load in all_loads:
        load.start()
    wait(lambda: all_loads[0].ids or all_loads[0].problem, what="a first run")
    step()
    for load in all_loads:
        load.stop()
    assert all(load.ids for load in all_loads)
    return [run_id for load in all_loads for run_id in load.ids]


def await_events(count):
    wait(lambda: len(events("clock_stepped")) >= count, what="clock_stepped")
    assert len(events("clock_stepped")) == count


def seconds_of(run_id):
    return (uuid.UUID(run_id).int >> 80) / 1000


def check_steps():
    """Returns all ids; the clock is ten years ahead after it."""
    true_offset, wanted, ids = time.time() - time.monotonic(), [], []

    def step_all():
        for seconds, is_glance in STEPS:
            set_clock(seconds)
            wanted.append(seconds)
            await_events(len(wanted))
            if is_glance:
                time.sleep(GLANCE_S)
                set_clock(-seconds)
                wanted.append(-seconds)
                await_events(len(wanted))
            time.sleep(1)

    ids += under_load(step_all)
    found = [event["detail"]["step_ms"] / 1000 for event in events("clock_stepped")]
    assert all(abs(a - b) < 2 for a, b in zip(found, wanted, strict=True)), f"{found}, not {wanted}"
    latest = max(ids)
    ahead = seconds_of(latest) - (true_offset + time.monotonic())
    print(f"# {len(ids)} runs over {len(wanted)} steps; the latest id is {ahead:.0f} s ahead of the true time")
    assert ahead < HOUR + 60
    return ids


def check_restart(ids):
    """With the clock ten years ahead: ids go on from where they were."""
    before = pid()
    call("systemctl", "restart", UNIT)
    assert pid() != before
    more = under_load(lambda: time.sleep(1))
    assert min(more) > max(ids)
    ahead = seconds_of(max(more)) - seconds_of(max(ids))
    assert ahead < HOUR, ahead
    return ids + more


def check_first_day(ids, true_offset):
    """A machine whose clock has no battery, and then learns the time."""
    set_clock(DAY - time.time())
    call("systemctl", "restart", UNIT)
    stepped = len(events("clock_stepped"))
    more = under_load(lambda: (set_clock(true_offset + time.monotonic() - time.time()),
                               await_events(stepped + 1)))
    assert min(more) > max(ids)
    return ids + more


def check_rows(ids):
    """By seq each is where it was put; no row was refused for its date."""
    found = [row for row in rows() if row["purpose"] == "clock"]
    assert {row["run_id"] for row in found} == set(ids) and len(found) == len(ids)
    first = [row for row in found if row["received_at"] < "1971"]
    far = [row for row in found if row["received_at"] > "2035"]
    assert first and far, "no row has the time that the clock said"
    assert all(row["client_name"] and row["seq"] > 0 and not row["late"] for row in found)


def main():
    call("systemctl", "start", SOCKET_UNIT, UNIT)
    true_offset = time.time() - time.monotonic()
    ids = check_steps()
    ids = check_restart(ids)
    ids = check_first_day(ids, true_offset)
    check_rows(ids)
    expect_socket()
    print("# " + verify())


if __name__ == "__main__":
    sys.exit(main())
