"""Traces of profiled cells, as ranks sent them: beside the journal, so that logs and views need not read them."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path
from typing import Any

from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.agent.processes import records
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.system.files.private import make_folder

from .models import MAX_RANK_TRACE_BYTES, TRACES

KEPT_BYTES = 512 << 20  # of all cells; the oldest go first

_CUT = f"The trace of this rank is longer than {MAX_RANK_TRACE_BYTES >> 20} MiB; its rest is not kept."


class ProfileAgent(AgentPart):
    """Keeps the traces of a group's cells."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._traces = Traces(core.group.directory / TRACES)

    def received(self, rank: RankProcess, content: dict[str, Any]) -> None:
        """Keep a part of the trace of the cell that the rank runs."""
        if rank.execution_id is None or content.get("execution_id") != rank.execution_id:
            return
        try:
            part, is_first = base64.b64decode(content["part"]), content["is_first"] is True
        except (KeyError, TypeError, ValueError):  # of code of the user
            return
        if sentence := self._traces.add(rank.execution_id, rank.rank, part, is_first):
            records.write(rank, sentence)


class Traces:
    """The traces of one group: a folder for each cell, and a file for each rank."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sizes: dict[str, dict[int, int]] = {}  # bytes by execution and rank, oldest first
        self._cut: set[tuple[str, int]] = set()

    def add(self, execution_id: str, rank: int, part: bytes, is_first: bool) -> str | None:
        """Append a part; return a sentence for the user when the rest of a trace is not kept."""
        sizes = self._sizes.setdefault(execution_id, {})
        if is_first:
            sizes[rank] = 0
            self._cut.discard((execution_id, rank))
            self._drop_oldest(execution_id)
        if (execution_id, rank) in self._cut:
            return None
        before = sizes.get(rank, 0)
        if before + len(part) > MAX_RANK_TRACE_BYTES:
            self._cut.add((execution_id, rank))
            return _CUT
        try:
            self._write(self._directory / execution_id, str(rank), part, before)
        except OSError as err:
            self._cut.add((execution_id, rank))
            return f"The trace of this rank is not kept: {err.strerror or err}."
        sizes[rank] = before + len(part)
        return None

    def _write(self, folder: Path, name: str, part: bytes, offset: int) -> None:
        make_folder(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if offset else os.O_TRUNC)
        fd = os.open(folder / name, flags, 0o600)
        try:
            if os.pwrite(fd, part, offset) < len(part):
                raise OSError(28, "No space left on device")
        finally:
            os.close(fd)

    def _drop_oldest(self, newest: str) -> None:
        while sum(sum(sizes.values()) for sizes in self._sizes.values()) > KEPT_BYTES:
            oldest = next(iter(self._sizes))
            if oldest == newest:
                return
            del self._sizes[oldest]
            shutil.rmtree(self._directory / oldest, ignore_errors=True)
