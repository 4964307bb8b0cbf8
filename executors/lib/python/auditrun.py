"""Calls to the deployment's own API from a run of auditrun.

    import auditrun
    auditrun.call("invoices.read", {"year": 2026})

The calls that are granted are answered by the deployment; every other one raises auditrun.Error.
"""

import json
import os
import threading

__all__ = ["call", "Error"]


class Error(Exception):
    """The call was refused, or failed: code (a number), message and data (or None)."""

    def __init__(self, code, message, data=None):
        super().__init__("%s (%d)" % (message, code))
        self.code = code
        self.message = message
        self.data = data


class _Port:
    """The connection that the run was given, one call at a time."""

    def __init__(self, fd):
        self._lock = threading.Lock()
        self._number = 0
        self._fd = fd
        self._lines = open(fd, "rb", closefd=False)

    def _send(self, line):
        while line:
            line = line[os.write(self._fd, line):]

    def call(self, method, params):
        with self._lock:
            self._number += 1
            request = {"jsonrpc": "2.0", "id": self._number, "method": method}
            if params is not None:
                request["params"] = params
            text = json.dumps(request, allow_nan=False, separators=(",", ":"))
            try:
                self._send(text.encode() + b"\n")
                return self._answer()
            except OSError as error:
                raise Error(-32015, "unavailable") from error

    def _answer(self):
        while True:
            line = self._lines.readline()
            if not line.endswith(b"\n"):
                raise Error(-32015, "unavailable")
            answer = json.loads(line)
            # An answer to a call that was interrupted may still come; one without an id is to a line
            # that could not be read, which is ours.
            if answer["id"] in (self._number, None):
                break
        if "error" in answer:
            error = answer["error"]
            raise Error(error["code"], error["message"], error.get("data"))
        return answer["result"]


_port = None
_opening = threading.Lock()


def call(method, params=None):
    """Calls a method with an object or a list of parameters; returns its result or raises Error."""
    global _port
    with _opening:
        if _port is None:
            fd = os.environ.get("AUDITRUN_API_FD")
            if fd is None:
                raise Error(-32601, "method_not_granted")
            _port = _Port(int(fd))
    return _port.call(method, params)
