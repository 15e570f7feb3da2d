"""In what the variables of ranks differ. Ranks answer between cells; the server puts their answers side by side.

A comparison has three steps: checksums of all tensors on all ranks; those with equal ones are alike; of each kind that
is not, one rank is compared with the reference, a megabyte at a time. So tensors never travel whole, and what travels
has a limit.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.protocol import differences as models
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import format_ranks

CHECKSUM_SECONDS = 20.0  # of a comparison; a rank takes a second for some gigabytes
MAX_COMPARED_BYTES = 64 << 20  # by elements, of all tensors that differ
MAX_DIFFERENCES = 500
_SILENT = ("rank_dead", "timed_out", "group_not_ready", "node_unreachable")

Ask = Callable[[int, dict[str, Any]], Awaitable[dict[str, Any]]]


class BusyError(Exception):
    """The rank runs a cell."""


@dataclass
class Tensors:
    """What one rank says of the tensors of a variable: by path, with their checksums."""

    by_path: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: int = 0


@dataclass
class Answered:
    """The answers of the ranks that gave one, and why others did not."""

    answers: dict[int, Any] = field(default_factory=dict)
    busy: list[int] = field(default_factory=list)
    silent: list[int] = field(default_factory=list)


async def list_variables(ask: Ask, ranks: list[int]) -> models.Variables:
    """Return the variables of these ranks, in the order of the first rank that has them; equal ones once.

    Raises:
        JupyterDistError: `incompatible`, `agent_unreachable`.
    """

    async def of(rank: int) -> dict[str, Any]:
        answer = await ask(rank, {"do": "list"})
        if answer["busy"]:
            raise BusyError
        return answer

    asked = await _ask_all(of, ranks)
    listed = {rank: answer["variables"] for rank, answer in asked.answers.items()}
    return {
        "ranks": format_ranks(listed),
        "busy": format_ranks(asked.busy),
        "silent": format_ranks(asked.silent),
        "left_out": max((answer["left_out"] for answer in asked.answers.values()), default=0),
        "variables": fold_variables(listed),
        # Ranks of groups that an older version started do not tell it.
        "memory": [one["memory"] | {"rank": rank} for rank, one in asked.answers.items() if "memory" in one],
    }


def fold_variables(listed: Mapping[int, Mapping[str, models.VariableOnRank]]) -> list[models.Variable]:
    """Put ranks together that have the same under a name. Pure."""
    names = dict.fromkeys(name for variables in listed.values() for name in variables)
    return [_fold(name, listed) for name in names]


def _fold(name: str, listed: Mapping[int, Mapping[str, models.VariableOnRank]]) -> models.Variable:
    alike: dict[str, list[int]] = {}  # by what they have: all of thousands of ranks may differ
    missing = []
    for rank, variables in listed.items():
        if name in variables:
            alike.setdefault(json.dumps(variables[name], sort_keys=True), []).append(rank)
        else:
            missing.append(rank)
    rows: list[models.VariableRow] = [
        {**listed[ranks[0]][name], "ranks": format_ranks(ranks)} for ranks in alike.values()
    ]
    return {"name": name, "rows": rows, "missing": format_ranks(missing)}


async def compare(ask: Ask, name: str, ranks: list[int]) -> models.Comparison:
    """Return which tensors of a variable differ on which ranks, and by how much.

    Raises:
        JupyterDistError: `not_found`, if no rank has it; `bad_request`, if it has no tensors; `incompatible`, ...
    """
    deadline = time.monotonic() + CHECKSUM_SECONDS
    asked = await _ask_all(lambda rank: _if_there(_checksums(ask, name, rank, deadline)), ranks)
    known: dict[int, Tensors] = {rank: one for rank, one in asked.answers.items() if one is not None}
    if not known and asked.answers:
        raise JupyterDistError("not_found", f"No rank has a variable '{name:.60}'.", "Run the cell that sets it.")
    paths = list(dict.fromkeys(path for tensors in known.values() for path in tensors.by_path))
    # A path that a rank has not come to in time is not missing there.
    late = [path for path in paths if any(_is_late(tensors, path) for tensors in known.values())]
    compared = [path for path in paths if path not in late]
    exchange = _Exchange(ask, name)
    differences: list[models.TensorDifference] = []
    unlisted = 0
    for path in compared:
        tensors = {rank: one.by_path.get(path) for rank, one in known.items()}
        if len(differences) < MAX_DIFFERENCES:
            differences += await exchange.differences(path, tensors)
        elif len(_alike(tensors)) > 1:
            unlisted += 1
    first = next(iter(known.values()), Tensors())
    return {
        "name": name,
        "ranks": format_ranks(known),
        "missing": format_ranks(rank for rank in asked.answers if rank not in known),
        "busy": format_ranks({*asked.busy, *exchange.busy}),
        "silent": format_ranks(asked.silent),
        "tensors": len(compared),
        "bytes": sum(first.by_path[path]["bytes"] for path in compared if path in first.by_path),
        "left_out": max((one.left_out for one in known.values()), default=0) + len(late) + unlisted,
        "differences": differences,
    }


async def _if_there(asked: Awaitable[Tensors]) -> Tensors | None:
    """Return None for a rank that does not have the variable: others may."""
    try:
        return await asked
    except JupyterDistError as err:
        if err.code != "not_found":
            raise
        return None


def _is_late(tensors: Tensors, path: str) -> bool:
    return tensors.left_out > 0 and path not in tensors.by_path


async def _checksums(ask: Ask, name: str, rank: int, deadline: float) -> Tensors:
    found, start = Tensors(), [0, 0, 0]
    while True:
        answer = await ask(rank, {"do": "checksums", "name": name, "start": start})
        if answer["busy"]:
            raise BusyError
        found.by_path |= {tensor["path"]: tensor for tensor in answer["tensors"]}
        found.left_out = answer["left_out"]
        if answer["next"] is None:
            return found
        if time.monotonic() > deadline:
            found.left_out += 1
            return found
        start = answer["next"]


@dataclass
class _Exchange:
    """Compares elements, a piece at a time."""

    ask: Ask
    name: str
    left_bytes: int = MAX_COMPARED_BYTES
    busy: set[int] = field(default_factory=set)  # ranks that began a cell meanwhile

    async def differences(
        self, path: str, tensors: Mapping[int, dict[str, Any] | None]
    ) -> list[models.TensorDifference]:
        """Return in what this tensor differs from that of most ranks."""
        alike = _alike(tensors)
        if len(alike) < 2:
            return []
        present = [ranks for ranks in alike if tensors[ranks[0]] is not None]
        reference = max(present, key=len)
        model = tensors[reference[0]]
        assert model is not None
        found: list[models.TensorDifference] = []
        for ranks in alike:
            if ranks is reference:
                continue
            other = tensors[ranks[0]]
            difference: models.TensorDifference = {
                "path": path,
                "what": _what(model, other),
                "ranks": format_ranks(ranks),
                "reference": format_ranks(reference),
                "shape": (other or model)["shape"],
                "dtype": (other or model)["dtype"],
                "max_abs": None,
                "nonfinite": False,
                "different": 0,
                "compared": 0,
            }
            if difference["what"] == "values":
                await self._compare(difference, reference[0], ranks[0], model)
            found.append(difference)
        return found

    async def _compare(
        self, found: models.TensorDifference, reference: int, other: int, tensor: Mapping[str, Any]
    ) -> None:
        """Add by how much two ranks differ; it ends early at the limit of bytes, or if a cell begins."""
        count = 1
        for size in tensor["shape"]:
            count *= size
        asked = {"name": self.name, "path": found["path"]}
        while found["compared"] < count and self.left_bytes > 0:
            at = {**asked, "start": found["compared"]}
            piece = await self.ask(reference, {"do": "read", **at})
            if piece["busy"]:
                self.busy.add(reference)
                return
            gap = await self.ask(other, {"do": "compare", **at, "data": piece["data"], "dtype": piece["dtype"]})
            if gap["busy"]:
                self.busy.add(other)
                return
            self.left_bytes -= len(piece["data"]) * 3 // 4
            found["compared"] += gap["compared"]
            found["different"] += gap["different"]
            found["nonfinite"] = found["nonfinite"] or gap["nonfinite"]
            if gap["max_abs"] is not None:
                found["max_abs"] = max(found["max_abs"] or 0.0, gap["max_abs"])


def _alike(tensors: Mapping[int, dict[str, Any] | None]) -> list[list[int]]:
    """Return the ranks that have a tensor alike, by shape, dtype and checksum."""
    alike: dict[str, list[int]] = {}
    for rank, tensor in tensors.items():
        alike.setdefault(repr(tensor), []).append(rank)
    return list(alike.values())


def _what(model: Mapping[str, Any], other: Mapping[str, Any] | None) -> Any:
    if other is None:
        return "missing"
    return "values" if all(other[name] == model[name] for name in ("shape", "dtype")) else "shape"


async def _ask_all(ask: Callable[[int], Awaitable[Any]], ranks: list[int]) -> Answered:
    answers = await asyncio.gather(*map(ask, ranks), return_exceptions=True)
    asked = Answered()
    for rank, answer in zip(ranks, answers, strict=True):
        if isinstance(answer, BusyError):
            asked.busy.append(rank)
        elif isinstance(answer, JupyterDistError) and answer.code in _SILENT:
            asked.silent.append(rank)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            asked.answers[rank] = answer
    return asked
