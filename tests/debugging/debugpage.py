"""What a page's debugger asks the ranks of a real agent."""

from __future__ import annotations

import itertools
import json

from waits import until

CODE = "def f(x):\n    y = x + 1\n    return y\na = f(rank * 10)\nb = a * 2\nprint(b)\n"


class Debugger:
    """What a page does: the same request for some ranks."""

    def __init__(self, client):
        self.client = client
        self._numbers = itertools.count(1)
        self._seen = {}

    def ask(self, rank, command, **arguments):
        message = {"type": "request", "seq": next(self._numbers), "command": command, "arguments": arguments}
        header, _ = self.client.request("debug", json.dumps(message).encode(), rank=rank)
        reply = header["reply"]
        assert (reply["type"], reply["request_seq"]) == ("response", message["seq"])
        return reply

    def done(self, rank, command, **arguments):
        reply = self.ask(rank, command, **arguments)
        assert reply["success"], reply
        return reply.get("body") or {}

    def wait_stopped(self, rank, line):
        def is_there():
            found = self.done(rank, "events", since=self._seen.get(rank, 0), wait=1)
            self._seen[rank] = found["seq"]
            return self.done(rank, "debugInfo")["stoppedThreads"] and self.stack(rank)[0]["line"] == line

        until(is_there)

    def stack(self, rank):
        return self.done(rank, "stackTrace", threadId=1)["stackFrames"]

    def attach(self, ranks):
        for rank in ranks:
            assert not self.done(rank, "debugInfo")["isStarted"]
            self.done(rank, "initialize", adapterID="jupyter-dist")
            self.done(rank, "attach")
