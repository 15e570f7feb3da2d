"""The stores over which ranks on several nodes create their process groups: kept by the head, asked through the links.

torch's TCPStore would listen on every interface, without a password. A rank asks its node agent on a unix socket
(rank/collectives/linkstore.py), which asks here. A question that has to wait is answered when its key is set, or when
the store is broken, because a rank that it waits for is gone.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.stream import FrameStream, start_private_server

from .files import SharedParts

PREFIX = "link:"
MAX_STORES = 64
MAX_BYTES = 64 << 20  # of all keys, values, and questions that wait
MAX_NAME = 200
ITEM_BYTES = 128  # the size of each entry besides its text
NUMBER = re.compile(rb"-?\d{1,19}")
BROKEN = "The store was closed: Connection closed by peer"  # unhang.py knows the second half as torch's own words
FULL = f"The stores of this group hold more than {MAX_BYTES >> 20} MiB."

Answer = Callable[[Header, bytes], None]


@dataclass
class _StoreWait:
    asker: Hashable
    keys: list[str]
    wants_value: bool
    answer: Answer


@dataclass
class _Store:
    values: dict[str, bytes] = field(default_factory=dict)
    waiting: list[_StoreWait] = field(default_factory=list)
    is_broken: bool = False
    num_bytes: int = 0  # of all that it holds

    def put(self, key: str, value: bytes) -> None:
        self.pop(key)
        self.values[key] = value
        self.num_bytes += _size(key) + len(value)

    def pop(self, key: str) -> bool:
        """Remove a value; return whether there was one."""
        if (value := self.values.pop(key, None)) is not None:
            self.num_bytes -= _size(key) + len(value)
        return value is not None

    def lacks(self, waiting: _StoreWait) -> bool:
        """Whether a key that it waits for is not set."""
        return not all(key in self.values for key in waiting.keys)

    def wait(self, waiting: _StoreWait) -> None:
        self.waiting.append(waiting)
        self.num_bytes += _size(*waiting.keys)

    def take(self, is_due: Callable[[_StoreWait], bool]) -> list[_StoreWait]:
        """Remove the questions that are due, and return them."""
        due: list[_StoreWait] = []
        rest: list[_StoreWait] = []
        for waiting in self.waiting:
            (due if is_due(waiting) else rest).append(waiting)
        self.waiting = rest
        self.num_bytes -= sum(_size(*waiting.keys) for waiting in due)
        return due

    def close(self) -> None:
        """Drop all values, and answer all that wait."""
        self.is_broken = True
        self.values.clear()
        due, self.waiting, self.num_bytes = self.waiting, [], 0
        for waiting in due:
            waiting.answer({"ok": False, "error": BROKEN}, b"")


def _size(*keys: str) -> int:
    return sum(ITEM_BYTES + len(key) for key in keys)


class LinkStores:
    """Keys and values, by name of the store."""

    def __init__(self) -> None:
        self._number = 0
        self._stores: dict[str, _Store] = {}

    # -- for the group (as rejoin.Stores) -----------------------------------------------------------------

    def new(self) -> str:
        """Return a store that no process group has used; the one before is broken."""
        self.break_current()
        self._stores.pop(str(self._number - 1), None)
        self._number += 1
        return self.current()

    def current(self) -> str:
        """Return the store in use, or used last."""
        return f"{PREFIX}{self._number}"

    def break_current(self) -> None:
        """Make every wait in it fail, and every later one."""
        self._break(str(self._number))

    # -- for ranks ------------------------------------------------------------------------------------------

    def ask(self, asker: Hashable, question: Header, value: bytes, answer: Answer) -> None:
        """Answer the question of a rank, now or when the keys that it waits for are set."""
        name, do, key = str(question.get("store")), str(question.get("do")), str(question.get("key"))
        if len(name) > MAX_NAME:
            answer({"ok": False, "error": f"The name of a store has at most {MAX_NAME} characters."}, b"")
            return
        if do == "break":
            self._break(name)
            answer({"ok": True}, b"")
            return
        store = self._store(name)
        if store.is_broken:
            answer({"ok": False, "error": BROKEN}, b"")
        elif do in ("get", "wait"):
            keys = [key] if do == "get" else [str(key) for key in question.get("keys") or ()]
            waiting = _StoreWait(asker, keys, do == "get", answer)
            if store.lacks(waiting) and self._is_full(_size(*keys)):
                answer({"ok": False, "error": FULL}, b"")
                return
            store.wait(waiting)
            self._serve(store)
        else:
            self._change(store, question, value, answer)

    def forget(self, asker: Hashable) -> None:
        """Drop the questions of a rank that waits no longer."""
        for store in self._stores.values():
            store.take(lambda waiting: bool(waiting.asker == asker))

    def _error(self, do: str, key: str, there: bytes | None, value: bytes) -> str | None:
        """Return why a change is refused."""
        if do in ("set", "add", "compare_set") and self._is_full(_size(key) + len(value)):
            return FULL
        if do == "add" and there is not None and not NUMBER.fullmatch(there):
            return f"The value of '{key:.40}' is not a number."
        return None

    def _change(self, store: _Store, question: Header, value: bytes, answer: Answer) -> None:
        do, key = str(question.get("do")), str(question.get("key"))
        there = store.values.get(key)
        result: Header = {"ok": True}
        if (error := self._error(do, key, there, value)) is not None:
            answer({"ok": False, "error": error}, b"")
            return
        if do == "set":
            store.put(key, value)
        elif do == "add":
            number = int(there or b"0") + int(question.get("amount") or 0)
            store.put(key, str(number).encode())
            result["number"] = number
        elif do == "compare_set":
            length = int(question.get("expected") or 0)
            expected, value = value[:length], value[length:]
            if there == expected or (there is None and not expected):
                store.put(key, value)
                there = value
            answer(result, expected if there is None else there)
            self._serve(store)
            return
        elif do == "delete":
            result["deleted"] = store.pop(key)
        elif do == "check":
            result["found"] = all(str(name) in store.values for name in question.get("keys") or ())
        elif do == "num_keys":
            result["number"] = len(store.values)
        elif do == "peek":
            result["found"] = there is not None
            answer(result, there or b"")
            return
        else:
            result = {"ok": False, "error": f"A store cannot '{do:.40}'."}
        answer(result, b"")
        self._serve(store)

    def _serve(self, store: _Store) -> None:
        """Answer the questions whose keys are all set."""
        for waiting in store.take(lambda waiting: not store.lacks(waiting)):
            waiting.answer({"ok": True}, store.values[waiting.keys[0]] if waiting.wants_value else b"")

    def _store(self, name: str) -> _Store:
        while len(self._stores) >= MAX_STORES and name not in self._stores:
            self._stores.pop(next(iter(self._stores))).close()
        found = self._stores.pop(name, None) or _Store()
        self._stores[name] = found  # the one used last is dropped last
        return found

    def _break(self, name: str) -> None:
        self._store(name).close()

    def _is_full(self, num_bytes: int) -> bool:
        """Whether there is no room for this."""
        return sum(store.num_bytes for store in self._stores.values()) + num_bytes > MAX_BYTES


class StoreDoor:
    """The unix socket on which ranks ask the stores of their group; each connection asks one question."""

    def __init__(self, path: Path, send: Callable[[Header, bytes], None]) -> None:
        self.path = path
        self._send = send
        self._open: dict[int, FrameStream] = {}
        self._parts = SharedParts()
        self._number = 0
        self._server: asyncio.AbstractServer | None = None

    async def listen(self) -> None:
        """Open the socket."""
        self._server = await start_private_server(self._accept, self.path)

    def answer(self, number: int, header: Header, value: bytes) -> None:
        """Pass on the head's answer; dropped if the rank waits no longer."""
        if not self._parts.answered(number, header, value):
            self._pass_on(number, header, value)

    def _pass_on(self, number: int, header: Header, value: bytes) -> None:
        if (stream := self._open.get(number)) is not None:
            stream.send(header, value)

    async def close(self) -> None:
        """Close the socket and all its connections."""
        if self._server is not None:
            self._server.close()
        for stream in self._open.values():
            stream.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._number += 1
        number, stream = self._number, FrameStream(reader, writer)
        self._open[number] = stream
        try:
            while True:
                header, value = await stream.recv()
                pass_on = functools.partial(self._pass_on, number)
                is_part = header.get("do") == "fetch" and type(header.get("offset")) is int  # else the head refuses it
                if not is_part or self._parts.ask(number, header, pass_on):
                    self._ask_head(number, header, value)
        except (EOFError, OSError, ValueError, KeyError):
            self._send({"t": "store_left", "c": number}, b"")
        finally:
            del self._open[number]
            stream.abort()

    def _ask_head(self, number: int, question: Header, value: bytes) -> None:
        try:
            self._send({"t": "store", "c": number, "q": question}, value)
        except JupyterDistError as err:  # it is too large for the link
            self.answer(number, {"ok": False, "error": str(err)}, b"")
