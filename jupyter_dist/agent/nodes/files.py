"""Files of this machine that clients exchange with ranks (push, pull, launch), for ranks that are on other machines.

Only files of a call that is running are read, and only its folders are written to: a node is trusted with its own
ranks, not with the files of the head's machine.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from jupyter_dist.protocol.wire.requests import CHUNK_BYTES
from jupyter_dist.transport.frames import Header

Answer = Callable[[Header, bytes], None]

KEPT_PARTS = 16  # of a file on its way to the ranks of a node: a slow rank finds what a fast one has fetched
KEEP_SECONDS = 10.0


class FileDoor:
    """Answers the questions of ranks, a part of a file each."""

    def __init__(self, running_calls: Callable[[], Iterable[dict[str, Any]]]) -> None:
        self._running_calls = running_calls

    def ask(self, ranks: range, question: Header, data: bytes, answer: Answer) -> None:
        """Answer a question of one of these ranks."""
        try:
            if question["do"] == "fetch":
                answer(*self._fetched(str(question["path"]), int(question["offset"])))
            else:
                self._deliver(ranks, question, data)
                answer({"ok": True}, b"")
        except OSError as err:
            answer({"ok": False, "error": f"{err.strerror or err}", "errno": err.errno}, b"")

    def _fetched(self, path: str, offset: int) -> tuple[Header, bytes]:
        if not any(path in (call.get("files") or {}).values() for call in self._running_calls()):
            raise PermissionError(1, f"{path} belongs to no running call")
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return {"ok": True, "size": os.fstat(fd).st_size}, os.pread(fd, CHUNK_BYTES, offset)
        finally:
            os.close(fd)

    def _deliver(self, ranks: range, question: Header, data: bytes) -> None:
        folder, rank, offset = str(question["folder"]), int(question["rank"]), int(question["offset"])
        known = any(folder in (call.get("folders") or ()) for call in self._running_calls())
        if not known or rank not in ranks:
            raise PermissionError(1, f"{folder} belongs to no running call of rank {rank}")
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if offset else os.O_CREAT | os.O_EXCL)
        fd = os.open(os.path.join(folder, str(rank)), flags, 0o600)
        try:
            if os.pwrite(fd, data, offset) < len(data):
                raise OSError(28, "No space left on device")
        except OSError:
            os.unlink(os.path.join(folder, str(rank)))
            raise
        finally:
            os.close(fd)


class SharedParts:
    """Parts of files for the ranks of one node, each asked for once: ranks that are given the same fetch the same.

    A path is of one call only (client/asynchronous/exchange.py), so the file behind it does not change.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], tuple[Header, bytes]] = OrderedDict()
        self._waiting: dict[tuple[str, int], list[Answer]] = {}
        self._asked: dict[int, tuple[str, int]] = {}  # by the connection whose question went to the head
        self._forgetting: asyncio.TimerHandle | None = None

    def ask(self, number: int, question: Header, answer: Answer) -> bool:
        """Answer the question of a connection, now or with another one's; return whether the head must be asked."""
        part = str(question["path"]), int(question["offset"])
        if part in self._kept:
            answer(*self._kept[part])
            return False
        is_first = part not in self._waiting
        self._waiting.setdefault(part, []).append(answer)
        if is_first:
            self._asked[number] = part
        return is_first

    def answered(self, number: int, header: Header, data: bytes) -> bool:
        """Send the head's answer to all connections that wait; return False if this one had not asked for a part."""
        part = self._asked.pop(number, None)
        if part is None:
            return False
        if header.get("ok"):
            self._keep(part, (header, data))
        for answer in self._waiting.pop(part, ()):
            answer(header, data)
        return True

    def _keep(self, part: tuple[str, int], content: tuple[Header, bytes]) -> None:
        self._kept[part] = content
        if len(self._kept) > KEPT_PARTS:
            self._kept.popitem(last=False)
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = asyncio.get_running_loop().call_later(KEEP_SECONDS, self._kept.clear)
