"""Clients that send runs without end, come again when a daemon has gone, and know what became of each run.

Each request has an actor of its own, so that it can be found in the ledger also where no answer came.
"""
import json
import socket
import sys
import threading
import time

from machine import SOCKET, WAIT_S
from unit import rows, wait

CODES = ("true", "sleep 0.3", "echo here; sleep 0.1", "exit 3")
BREATH_S = 0.05


class Request:
    def __init__(self, actor):
        self.actor = actor
        self.started = None  # the run of which output came: its intent is durable
        self.run_id = self.status = self.reason = None  # as it was answered


class Connection(threading.Thread):
    """One client with so many requests in flight."""

    def __init__(self, load, number):
        super().__init__(daemon=True)
        self.load, self.number = load, number
        self.sent = 0
        self.waiting = {}
        self.problem = None

    def run(self):
        try:
            while not self.load.stopping:
                self.converse()
        except Exception as error:  # told by Load.stop()
            self.problem = error

    def converse(self):
        """Until the daemon, or the load, ends. A daemon that is not there yet is waited for."""
        with socket.socket(socket.AF_UNIX) as self.socket:
            self.socket.settimeout(WAIT_S)
            self.socket.connect(SOCKET)
            lines = self.socket.makefile("rb")
            while self.fill() or self.waiting:
                try:
                    line = lines.readline()
                except ConnectionResetError:
                    line = b""
                if not line:
                    break
                assert line.endswith(b"\n"), f"half an answer: {line}"
                self.take(json.loads(line))
        self.waiting.clear()

    def fill(self):
        """Sends what there is room for. False: nothing more can be, or shall be, sent."""
        while not self.load.stopping and len(self.waiting) < self.load.depth:
            self.sent += 1
            request = Request(f"{self.load.purpose}-{self.number}-{self.sent}")
            params = {"company": "acme", "actor": request.actor, "purpose": self.load.purpose,
                      "language": "bash", "code": self.load.codes[self.sent % len(self.load.codes)],
                      "stream": True, "grant": {"limits": {"wall_ms": 60000}}}
            message = {"jsonrpc": "2.0", "id": self.sent, "method": "run", "params": params}
            self.waiting[self.sent] = request
            self.load.requests.append(request)
            try:
                self.socket.sendall(json.dumps(message).encode() + b"\n")
            except (BrokenPipeError, ConnectionResetError):
                return False
        return not self.load.stopping

    def take(self, message):
        if "id" not in message:
            params = message["params"]
            request = self.waiting[params["request_id"]]
            if not request.started:
                request.started = params["run_id"]
                self.load.tell("started", request.started)
            return
        request = self.waiting.pop(message["id"])
        assert "result" in message, message
        result = message["result"]
        request.run_id, request.status, request.reason = (
            result["run_id"], result["status"], result["reason"])
        self.load.tell("answered", request.run_id, request.status, request.reason)
        self.load.answers += 1
        if request.status == "refused":
            time.sleep(BREATH_S)  # or it would do nothing else while a daemon drains


class Load:
    def __init__(self, purpose, connections=4, depth=3, codes=CODES, tells=False):
        self.purpose, self.depth, self.codes, self.tells = purpose, depth, codes, tells
        self.requests, self.answers, self.stopping = [], 0, False
        self.connections = [Connection(self, number) for number in range(connections)]
        for connection in self.connections:
            connection.start()

    def tell(self, *words):
        if self.tells:
            sys.stdout.write(" ".join(words) + "\n")
            sys.stdout.flush()

    def wait_for(self, more):
        """Until so many more have been answered."""
        aim = self.answers + more
        wait(lambda: self.answers >= aim or any(c.problem for c in self.connections), WAIT_S, "load")
        self.expect_no_problem()

    def expect_no_problem(self):
        for connection in self.connections:
            if connection.problem:
                raise connection.problem

    def stop(self):
        """No more is sent, and what has been is answered."""
        self.stopping = True
        for connection in self.connections:
            connection.join(WAIT_S)
            assert not connection.is_alive(), "an answer does not come"
        self.expect_no_problem()

    def judge(self, unanswered_have_rows):
        """Each run that was answered has one row, of the same end. What had no answer has none, or, where
        daemons were killed, at most one. Returns the rows, by actor."""
        found = {}
        for row in rows():
            if row["purpose"] == self.purpose:
                assert row["actor"] not in found, f"two rows: {row}, {found[row['actor']]}"
                found[row["actor"]] = row
        for request in self.requests:
            row = found.get(request.actor)
            if request.run_id:
                assert row, f"no row: {vars(request)}"
                told = (request.run_id, request.status, request.reason)
                assert (row["run_id"], row["status"], row["reason"]) == told, f"{told}, but {row}"
            elif not unanswered_have_rows:
                assert not row, f"was not answered: {row}"
            if request.started:
                assert row and row["run_id"] == request.started, f"began, but: {row}"
        strangers = set(found) - {request.actor for request in self.requests}
        assert not strangers, strangers
        return found

    def count(self, status):
        return sum(request.status == status for request in self.requests)
