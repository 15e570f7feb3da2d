"""The stores that ranks meet over: a FileStore on one machine; on several, a store behind the node agent.

torch's TCPStore would listen on every interface, without a password (docs/decisions/0016-head-and-node-agents.md).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed as dist

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.guard.own import os, socket, time
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame

INTERRUPTIBLE = True  # cells wait here for other ranks

PREFIX = "link:"
BREAK_SECONDS = 5.0
RECV_BYTES = 1 << 18
MAX_VALUE_BYTES = 8 << 20  # one message between machines takes a little more (agent/nodes/link/sockets.py)
# torch calls the methods below only as long as the Python object lives, and does not keep it alive itself.
_kept: list[dist.Store] = []


class LinkStore(dist.Store):
    """A store that the head keeps. Each request has a separate connection, so any thread may call."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__()
        self._path = path
        self._name = name.removeprefix(PREFIX)
        _kept.append(self)

    def set(self, key: str, value: Any) -> None:
        """Set a value."""
        self._ask({"do": "set", "key": key}, value)

    def get(self, key: str) -> bytes:
        """Return a value, as soon as it is set."""
        return self._ask({"do": "get", "key": key})[1]

    def peek(self, key: str) -> bytes | None:
        """Return a value; None if it is not set."""
        answer, value = self._ask({"do": "peek", "key": key})
        return value if answer["found"] else None

    def add(self, key: str, value: int) -> int:
        """Add to a number, and return it."""
        return int(self._ask({"do": "add", "key": key, "amount": value})[0]["number"])

    def check(self, keys: list[str]) -> bool:
        """Whether all of these are set."""
        return bool(self._ask({"do": "check", "keys": list(keys)})[0]["found"])

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Set a value if it is the expected one; return the value that is set then."""
        expected, desired = _bytes(expected_value), _bytes(desired_value)
        return self._ask({"do": "compare_set", "key": key, "expected": len(expected)}, expected + desired)[1]

    def delete_key(self, key: str) -> bool:
        """Delete a value; return whether there was one."""
        return bool(self._ask({"do": "delete", "key": key})[0]["deleted"])

    def num_keys(self) -> int:
        """Return how many values there are."""
        return int(self._ask({"do": "num_keys"})[0]["number"])

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all of these are set."""
        self._ask({"do": "wait", "keys": list(keys)}, seconds=timeout.total_seconds() if timeout else None)

    def clone(self) -> LinkStore:
        """Return another store over the same keys."""
        return LinkStore(self._path, self._name)

    def has_extended_api(self) -> bool:
        """Return False: there is no append, and there are no queues."""
        return False

    def close(self, seconds: float = BREAK_SECONDS) -> None:
        """Make all waits in the store fail, on every rank."""
        self._ask({"do": "break"}, seconds=seconds)

    def _ask(self, question: Header, value: Any = b"", seconds: float | None = None) -> tuple[Header, bytes]:
        """Return the answer.

        Raises:
            RuntimeError: the value is too large, the store was broken, the node agent is gone or silent.
        """
        sent = _bytes(value)
        if len(sent) > MAX_VALUE_BYTES:
            what = f"The value of '{question['key']:.40}' has {len(sent) / (1 << 20):.1f} MiB."
            most = f"A store of a group on several machines takes up to {MAX_VALUE_BYTES >> 20} MiB."
            raise dist.DistStoreError(f"{what} {most} Exchange it by a collective or a file.")
        limit = self.timeout.total_seconds() if seconds is None else seconds
        try:
            return ask(self._path, {**question, "store": self._name}, sent, limit)
        except (TimeoutError, socket.timeout) as err:
            what = question.get("key") or ", ".join(question.get("keys") or ())
            raise dist.DistStoreError(f"No other rank has set '{what}' within {limit:g} s.") from err


def ask(path: str, question: Header, value: bytes, seconds: float) -> tuple[Header, bytes]:
    """Ask the head through the node agent's socket.

    Raises:
        RuntimeError: the head refused, or the node agent is gone.
        OSError: what went wrong with a file of the head's machine; TimeoutError: there was no answer in time.
    """
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(seconds)
        sock.connect(path)
        sock.sendall(encode_frame(question, value))
        decoder = FrameDecoder()
        while True:
            sock.settimeout(max(0.001, deadline - time.monotonic()))
            if not (data := sock.recv(RECV_BYTES)):
                raise RuntimeError("Connection closed by peer: the node agent has ended.")
            for answer, found in decoder.feed(data):
                if answer.get("ok"):
                    return answer, found
                if "errno" in answer:
                    raise OSError(answer["errno"], answer["error"])
                raise RuntimeError(str(answer.get("error")))


def store_at(path: str, spec: RankSpec) -> dist.Store:
    """Return the store that the agent named."""
    return LinkStore(spec.store_socket, path) if path.startswith(PREFIX) else dist.FileStore(path, spec.world_size)


def check_reachable(path: str) -> None:
    """Raise FileNotFoundError if a FileStore cannot be there: torch would try to open it until the timeout."""
    folder = os.path.dirname(path)
    if not path.startswith(PREFIX) and not os.path.isdir(folder):
        raise FileNotFoundError(f"the folder of the store is gone: {folder}")


def _bytes(value: Any) -> bytes:
    """Return a value as bytes: torch passes bytes, text, or a list of numbers."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
