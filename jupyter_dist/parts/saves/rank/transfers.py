"""This rank's part of saves and restores of its group: it prepares, and waits for the agent's decision.

The wait and the commit are our own code, which no interrupt reaches: the agent decides for all ranks alike, also when a
user interrupts. Preparing is interrupted where it reports its progress.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO

import torch

from jupyter_dist.parts.saves.folder.fitness import other_torch
from jupyter_dist.parts.saves.folder.layout import TOKEN, index_file
from jupyter_dist.parts.saves.folder.record import MAX_BYTES, digest_of, parsed_index
from jupyter_dist.parts.saves.transfer import TransferDecision
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.guard import usercode
from jupyter_dist.rank.guard.own import json, os, socket, threading, time
from jupyter_dist.rank.part import RankCore
from jupyter_dist.system.files.owned import OwnFolder

if TYPE_CHECKING:
    from jupyter_dist.rank.state.reading import GivenNames

PROGRESS_SECONDS = 0.2
MORE_SECONDS = 60.0  # how much longer than the agent's limit a rank waits for the decision
MAX_NAMES_CHARS = 4000

Counts = tuple[int, int, int]  # bytes: in all, handled, written


class RankTransfers:
    """The saves and restores of one rank; one at a time."""

    def __init__(self, core: RankCore) -> None:
        self._core = core
        self._spec = core.spec
        self._decisions: SimpleQueue[TransferDecision] = SimpleQueue()
        self._sent_at = 0.0

    def take_place(self, spec: RankSpec) -> None:
        """Have another number, or be in a group of another size."""
        self._spec = spec

    # -- main thread --------------------------------------------------------------------------------

    def save(self, call: Mapping[str, Any]) -> None:
        """Write the variables of this rank, and wait until all ranks have written theirs.

        Raises:
            JupyterDistError: `not_saved`, `bad_directory`.
        """
        from jupyter_dist.rank.state import writing

        content = str(call["content"])
        self._check_same_folder(content, call["token"])
        options = writing.WriteOptions(rank=self._spec.rank, world_size=self._spec.world_size, progress=self._progress)
        try:
            saved = usercode.call(writing.write_namespace, self._core.shell, call["folder"], content, options)
            found = saved.to_dict()
            report = {"digest": self._write_index(content, found), "num_names": found["num_names"]}
        except OSError as err:
            message = say("It cannot write in %1: %2.", call["folder"], err.strerror or err)
            raise JupyterDistError(
                "bad_directory", message, say("Free some space there, or choose another folder.")
            ) from err
        versions = {"python_version": platform.python_version(), "torch_version": torch.__version__}
        total = int(found["total_bytes"])
        self._await_decision((total, total, int(found["written_bytes"])), {**report, **versions}, call["seconds"])

    def restore(self, call: Mapping[str, Any]) -> None:
        """Load the saved variables of this rank, wait until all ranks have loaded theirs, and replace the present ones.

        Raises:
            JupyterDistError: `not_restored`, `cannot_restore`, `damaged`, `not_yours`.
        """
        from jupyter_dist.rank.state import reading

        index = self._read_index(call)
        rank_file = os.path.join(call["content"], index["file"])
        options = reading.ReadOptions(
            rank=self._spec.rank, world_size=self._spec.world_size, removes_others=True, progress=self._progress
        )
        loaded = usercode.call(reading.load, self._core.shell, call["folder"], rank_file, options)
        failed = ", ".join(sorted(one["name"] for one in loaded.failed))[:MAX_NAMES_CHARS]
        why = next((one["reason"] for one in loaded.failed), "")
        total = int(index["total_bytes"])
        try:
            report = {"failed": failed, "why": why, "num_names": loaded.num_names}
            self._await_decision((total, total, 0), report, call["seconds"])
        except BaseException:
            loaded.discard()
            raise
        self._report(loaded.commit(), call["versions"])

    def restore_alone(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Give this rank, which has replaced another one, its variables of a save; the other ranks keep theirs.

        Raises:
            JupyterDistError: `cannot_restore`, `damaged`, `not_yours`, `bad_directory`.
        """
        from jupyter_dist.rank.state import reading

        rank_file = os.path.join(call["content"], self._read_index(call)["file"])
        options = reading.ReadOptions(
            rank=self._spec.rank, world_size=self._spec.world_size, removes_others=True, is_alone=True
        )
        loaded = usercode.call(reading.load, self._core.shell, call["folder"], rank_file, options)
        return asdict(loaded.commit())

    def preview(self) -> dict[str, Any]:
        """Return the names that this rank would save now."""
        from jupyter_dist.rank.state import writing

        found = writing.preview(self._core.shell, self._spec.rank)
        skipped = self._with_code(found.skipped)
        return {"names": found.names, "skipped": skipped, "notes": found.notes, "total_bytes": found.total_bytes}

    # -- side thread --------------------------------------------------------------------------------

    def take(self, decision: TransferDecision) -> None:
        """Take the agent's decision about a save or a restore."""
        self._decisions.put(decision)

    def cut_off(self, reason: str) -> None:
        """Drop the save or restore that runs, unless the agent's decision has come before (any thread)."""
        if (running := self._core.running()) is not None:
            execution_id = running.execution_id
            self.take(TransferDecision(execution_id=execution_id, keep=False, reason=reason, interrupted=False))

    # -- inside -------------------------------------------------------------------------------------

    def _progress(self, done: int, total: int) -> None:
        running = self._core.running()
        is_interrupted = running is not None and running.interrupt_at is not None
        if is_interrupted and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        if time.monotonic() - self._sent_at >= PROGRESS_SECONDS:
            self._sent_at = time.monotonic()
            self._send("progress", (int(total), int(done), 0))

    def _send(self, state: str, counts: Counts, report: Mapping[str, Any] | None = None) -> None:
        total, done, written = counts
        news: dict[str, Any] = {"state": state, "total": total, "done": done, "written": written}
        if report is not None:
            news["report"] = report
        self._core.send(news)

    def _await_decision(self, counts: Counts, report: Mapping[str, Any], seconds: float) -> None:
        """Report this rank as prepared; return if all ranks keep their part, else raise."""
        self._send("prepared", counts, report)
        running, deadline = self._core.running(), time.monotonic() + seconds + MORE_SECONDS
        assert running is not None  # this call is carried out for it
        while True:
            try:
                decision = self._decisions.get(timeout=max(0.1, deadline - time.monotonic()))
            except Empty:
                message = say("The group's agent has not decided in time whether it counts.")
                raise JupyterDistError("timed_out", message) from None
            if decision["execution_id"] == running.execution_id:
                break
        if decision["keep"]:
            return
        if decision["interrupted"]:
            running.interrupt_at = running.interrupt_at or time.monotonic()  # the agent has decided so for all ranks
            raise KeyboardInterrupt
        raise JupyterDistError("not_kept", decision["reason"])

    def _check_same_folder(self, content: str, token: str) -> None:
        """Compare the token in the folder, which differs if this machine has another folder there."""
        try:
            with open(os.path.join(content, TOKEN), encoding="ascii") as file:
                seen = file.read(len(token) + 1)
        except OSError:
            seen = ""
        if seen != token:
            where = say("Rank %1 on %2", self._spec.rank, socket.gethostname())
            message = say("%1 does not see the folder %2 that the group's agent has made.", where, content)
            raise JupyterDistError(
                "bad_directory", message, say("Choose a folder that all machines of the group share.")
            )

    def _write_index(self, content: str, found: Mapping[str, Any]) -> str:
        """Write the index of this rank for the agent and for servers; return its checksum."""
        from jupyter_dist.rank.state.store import manifest

        with open(os.path.join(content, found["file"]), "rb") as file:
            digest = _digest_of(file)
        index = {
            "file": found["file"],
            "file_digest": digest,
            "total_bytes": found["total_bytes"],
            "host_bytes": found["host_bytes"],
            "chunks": list(manifest.read(OwnFolder(Path(content)), found["file"])["chunks"]),
            "skipped": self._with_code(found["skipped"]),
            "notes": found["notes"],
        }
        data = json.dumps(index).encode()
        path = os.path.join(content, index_file(self._spec.rank))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        return digest_of(data)

    def _read_index(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return this rank's index, after checking it and the rank's file: a restore runs code from them."""
        rank = self._spec.rank
        try:
            own = OwnFolder(Path(call["folder"]))
            place = Path(call["content"]).relative_to(call["folder"]).parts
            content = own.read(*place, index_file(rank), max_bytes=MAX_BYTES)
            index = parsed_index(content, call["digests"][rank], rank)
            with open(own.open(*place, index["file"]), "rb") as file:
                is_sound = _digest_of(file) == index["file_digest"]
        except FileNotFoundError as err:
            where = say("Rank %1 on %2", rank, socket.gethostname())
            message = say("%1 does not find its files in %2.", where, call["content"])
            raise JupyterDistError(
                "bad_directory", message, say("All machines of the group must share the folder.")
            ) from err
        except (OSError, ValueError, RecursionError) as err:
            raise JupyterDistError(
                "damaged", say("The files of rank %1 cannot be read: %2.", rank, f"{err!s:.200}")
            ) from err
        if not is_sound:
            raise JupyterDistError("damaged", say("The files of rank %1 are damaged: a checksum differs.", rank))
        return index

    def _with_code(self, skipped: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return names that cannot be saved, with the code of the cells that made them."""
        history = self._core.shell.user_ns.get("In")
        cells = history if isinstance(history, list) else []
        found = []
        for one in skipped:
            cell = one.get("cell")
            is_known = isinstance(cell, int) and 0 < cell < len(cells) and isinstance(cells[cell], str)
            code = cells[cell] if is_known and isinstance(cell, int) else None
            found.append({"name": one["name"], "reason": one["reason"], "execution_count": cell, "code": code})
        return found

    def _report(self, restored: GivenNames, versions: Mapping[str, str]) -> None:
        """Write sentences about what was not restored as it was."""
        sentences = [f"Not restored: {one['name']}: {one['reason']}" for one in restored.failed]
        sentences += restored.notes
        if restored.failed and (sentence := other_torch(versions["torch"], torch.__version__)):
            sentences.append(sentence)
        for sentence in sentences:
            sys.stderr.write(f"jupyter_dist: {sentence}\n")


def _digest_of(file: BinaryIO) -> str:
    digest = hashlib.blake2b(digest_size=16)
    while data := file.read(1 << 20):
        digest.update(data)
    return digest.hexdigest()
