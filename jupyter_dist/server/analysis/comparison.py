"""Compares a variable between ranks: equal, different, or not compared, with the reason.

A comparison has three steps. Each rank lists the tensors of the variable with checksums, and one checksum of all
other values. Ranks with equal checksums are alike. Of the others, a rank of each kind is compared with the reference, a
megabyte at a time. So no tensor is sent whole, and the bytes that are sent have a limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import differences as models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet

from .asking import Ask, BusyError, ask_all

CHECKSUM_SECONDS = 20.0  # of a comparison; a rank takes a second for some gigabytes
MAX_COMPARED_BYTES = 64 << 20  # by elements, of all tensors that differ
MAX_DIFFERENCES = 500
MAX_NOT_COMPARED = 100
MAX_ASKED = 16  # of the ranks whose values differ, how many list them

_LATE = f"there was no time for it in {CHECKSUM_SECONDS:.0f} s"
_CUT = "it has too many parts, and was not looked at to its end"


@dataclass
class Contents:
    """The description of a variable on one rank.

    Attributes:
        tensors: the description of each tensor, by path; with `checksum` if there was time to compute it.
        closed: why parts cannot be compared, by path.
        checksum: one checksum of all other values.
        num_values: the number of these values.
        is_whole: False if a part of the variable was not read.
        values: the values as text, by path; None before they were requested.
    """

    tensors: dict[str, dict[str, Any]] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    checksum: int = 0
    num_values: int = 0
    is_whole: bool = True
    values: dict[str, str] | None = None

    def has(self, path: str) -> bool:
        """Return whether the rank has anything at this path; a part that replaces one of its parents counts."""
        known = self.values or {}
        above = list(accumulate(path.split("."), lambda a, b: f"{a}.{b}"))
        return any(one in known or one in self.closed for one in (*above, "")) or path in self.tensors


async def compare(ask: Ask, name: str, ranks: list[int]) -> models.ComparisonModel:
    """Return how a variable, or a part of it, differs between ranks, and which parts could not be compared.

    Raises:
        JupyterDistError: `not_found`, if no rank has the variable; `bad_request`, if `name` is no name; ...
    """
    deadline = time.monotonic() + CHECKSUM_SECONDS
    asked = await ask_all(lambda rank: _if_there(_contents(ask, name, rank, deadline)), ranks)
    known: dict[int, Contents] = {rank: one for rank, one in asked.answers.items() if one is not None}
    if not known and asked.answers:
        raise JupyterDistError(
            "not_found", say("No rank has a variable '%1'.", f"{name:.60}"), say("Run the cell that sets it.")
        )
    found = _Comparing(ask, name, known)
    await found.run()
    missing = [rank for rank in asked.answers if rank not in known]
    busy = {*asked.busy, *found.busy}
    paths = _paths(one.tensors for one in known.values())
    first = {path: one.tensors[path] for path in paths for one in known.values() if path in one.tensors}
    gaps = found.gaps[:MAX_NOT_COMPARED]
    unlisted = found.unlisted + len(found.gaps) - len(gaps)
    is_partial = bool(gaps or busy or asked.silent)
    return {
        "name": name,
        "outcome": "differs" if found.differences or missing else "not_compared" if is_partial else "equal",
        "ranks": str(RankSet(known)),
        "missing": str(RankSet(missing)),
        "busy": str(RankSet(busy)),
        "silent": str(RankSet(asked.silent)),
        "tensors": len(first) - len(found.late),
        "sharded": sum(bool(tensor.get("shard")) for tensor in first.values()),
        "values": max((one.num_values for one in known.values()), default=0),
        "bytes": sum(tensor["bytes"] for path, tensor in first.items() if path not in found.late),
        "differences": found.differences,
        "not_compared": gaps,
        "left_out": unlisted,
    }


async def _if_there(asked: Awaitable[Contents]) -> Contents | None:
    """Return None for a rank that does not have the variable: others may."""
    try:
        return await asked
    except JupyterDistError as err:
        if err.code != "not_found":
            raise
        return None


async def _contents(ask: Ask, name: str, rank: int, deadline: float) -> Contents:
    found, start, listed = Contents(), [0, 0, 0], list[dict[str, Any]]()
    while True:
        answer = await ask(rank, {"do": "checksums", "name": name, "start": start})
        if answer["busy"]:
            raise BusyError
        if "tensors" in answer:
            listed = answer["tensors"]
            found.closed = {one["path"]: one["why"] for one in answer["closed"]}
            found.checksum, found.num_values = answer["values"]["checksum"], answer["values"]["count"]
            found.is_whole = answer["is_whole"]
        for number, checksum in answer["checksums"]:
            listed[number]["checksum"] = checksum
        if answer["next"] is None or time.monotonic() > deadline:
            found.tensors = {tensor["path"]: tensor for tensor in listed}
            return found
        start = answer["next"]


def _paths(of_ranks: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(path for paths in of_ranks for path in paths))


class _Comparing:
    """One comparison, while it is made."""

    def __init__(self, ask: Ask, name: str, known: Mapping[int, Contents]) -> None:
        self.differences: list[models.TensorDifference] = []
        self.gaps: list[models.NotCompared] = []
        self.unlisted = 0
        self.late: set[str] = set()
        self.busy: set[int] = set()  # ranks that began a cell meanwhile
        self._ask = ask
        self._name = name
        self._known = known
        self._left_bytes = MAX_COMPARED_BYTES

    async def run(self) -> None:
        """Compare all."""
        known = self._known
        await self._compare_values()
        for path in _paths(one.tensors for one in known.values()):
            await self._compare_tensor(path)
        for path in _paths(one.closed for one in known.values()):
            having = [rank for rank, one in known.items() if path in one.closed]
            self._not_compared(path, having, known[having[0]].closed[path])
            elsewhere = [rank for rank, one in known.items() if rank not in having and self._lacks(one, path)]
            if elsewhere:
                self._add(self._difference(path, "missing", elsewhere, having))
        if cut := [rank for rank, one in known.items() if not one.is_whole and "" not in one.closed]:
            self._not_compared("", cut, _CUT)

    def _add(self, one: models.TensorDifference) -> None:
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(one)
        else:
            self.unlisted += 1

    def _not_compared(self, path: str, ranks: Iterable[int], why: str) -> None:
        self.gaps.append({"path": path, "ranks": str(RankSet(ranks)), "why": why})

    @staticmethod
    def _lacks(one: Contents, path: str) -> bool:
        """Return whether a rank has nothing at this path; paths that the rank has not reached are not missing."""
        return one.is_whole and not one.has(path) and not any(below.startswith(f"{path}.") for below in one.tensors)

    @staticmethod
    def _difference(
        path: str, what: Any, ranks: Iterable[int], reference: Iterable[int], words: tuple[str, str] = ("", "")
    ) -> models.TensorDifference:
        return {
            "path": path,
            "what": what,
            "ranks": str(RankSet(ranks)),
            "reference": str(RankSet(reference)),
            "shape": [],
            "dtype": "",
            "max_abs": None,
            "nonfinite": False,
            "different": 0,
            "compared": 0,
            "elements": 0,
            "found": words[0],
            "expected": words[1],
        }

    async def _compare_values(self) -> None:
        """Compare all values that are not tensors: by one checksum, and as text where the checksums differ."""
        alike: dict[tuple[int, int], list[int]] = {}
        for rank, one in self._known.items():
            alike.setdefault((one.num_values, one.checksum), []).append(rank)
        if len(alike) < 2:
            return
        kinds = sorted(alike.values(), key=len, reverse=True)
        asked = kinds[:MAX_ASKED]
        await asyncio.gather(*(self._ask_values(ranks) for ranks in asked))
        answered = [ranks for ranks in asked if self._known[ranks[0]].values is not None]
        texts = {ranks[0]: self._known[ranks[0]].values or {} for ranks in answered}
        for path in _paths(texts.values()):
            self._compare_texts(path, {ranks[0]: ranks for ranks in answered})
        if rest := [rank for ranks in kinds[MAX_ASKED:] for rank in ranks]:
            self._add(self._difference("", "value", rest, kinds[0], ("other values", "")))

    async def _ask_values(self, ranks: list[int]) -> None:
        answer = await self._ask(ranks[0], {"do": "values", "name": self._name})
        if answer["busy"]:
            self.busy.add(ranks[0])
            return
        for rank in ranks:
            self._known[rank].values = answer["values"]

    def _compare_texts(self, path: str, kinds: Mapping[int, list[int]]) -> None:
        alike: dict[str | None, list[int]] = {}
        for first, ranks in kinds.items():
            text = (self._known[first].values or {}).get(path)
            if text is not None or (path not in self._known[first].tensors and self._lacks(self._known[first], path)):
                alike.setdefault(text, []).extend(ranks)
        expected, reference = max(
            ((text, ranks) for text, ranks in alike.items() if text is not None), key=lambda one: len(one[1])
        )
        for text, ranks in alike.items():
            if text is None:
                self._add(self._difference(path, "missing", ranks, reference))
            elif ranks is not reference:
                self._add(self._difference(path, "value", ranks, reference, (text, expected or "")))

    async def _compare_tensor(self, path: str) -> None:
        """Compare a tensor: its type and shape, and then its numbers on ranks where these are equal."""
        having = {rank: one.tensors[path] for rank, one in self._known.items() if path in one.tensors}
        alike = _alike(having, lambda tensor: repr([tensor.get(name) for name in ("shape", "dtype", "placement")]))
        reference = max(alike, key=len)
        expected = having[reference[0]]
        for ranks in alike:
            if ranks is not reference:
                self._add(self._of_tensor(path, ranks, reference, having[ranks[0]], expected))
        self._add_missing(path, reference, expected)
        if wrong := [rank for rank, tensor in having.items() if not tensor.get("is_placed", True)]:
            tensor = having[wrong[0]]
            words = (f"a part of {tensor['local']}", tensor["placement"])
            self._add(self._difference(path, "placement", wrong, wrong, words))
        if late := [rank for rank, tensor in having.items() if "checksum" not in tensor]:
            self.late.add(path)
            self._not_compared(path, late, _LATE)
            return
        for ranks in alike:
            same_part = _alike({rank: having[rank] for rank in ranks}, lambda tensor: repr(tensor.get("shard")))
            for members in same_part:
                await self._compare_numbers(path, {rank: having[rank] for rank in members})

    def _add_missing(self, path: str, reference: list[int], expected: Mapping[str, Any]) -> None:
        """Add the ranks that do not have the tensor, or have another object at its path."""
        others = {rank: one for rank, one in self._known.items() if path not in one.tensors}
        if missing := [rank for rank, one in others.items() if self._lacks(one, path)]:
            self._add({**self._difference(path, "missing", missing, reference), **_kind(expected)})
        in_place = {rank: one.values[path] for rank, one in others.items() if one.values and path in one.values}
        for ranks in _alike(in_place, str):
            words = (in_place[ranks[0]], f"a tensor, {_kind_text(expected)}")
            self._add(self._difference(path, "value", ranks, reference, words))

    def _of_tensor(
        self,
        path: str,
        ranks: list[int],
        reference: list[int],
        tensor: Mapping[str, Any],
        expected: Mapping[str, Any],
    ) -> models.TensorDifference:
        is_shape = any(tensor[name] != expected[name] for name in ("shape", "dtype"))
        words = (
            (_kind_text(tensor), _kind_text(expected))
            if is_shape
            else (tensor.get("placement", "not divided"), expected.get("placement", "not divided"))
        )
        found = self._difference(path, "shape" if is_shape else "placement", ranks, reference, words)
        return {**found, **_kind(tensor)}

    async def _compare_numbers(self, path: str, tensors: Mapping[int, dict[str, Any]]) -> None:
        alike = _alike(tensors, lambda tensor: repr([tensor["checksum"], tensor.get("local")]))
        reference = max(alike, key=len)
        tensor = tensors[reference[0]]
        local = tensor.get("local", tensor["shape"])
        for ranks in alike:
            if ranks is reference:
                continue
            found: models.TensorDifference = {**self._difference(path, "values", ranks, reference), **_kind(tensor)}
            found["elements"] = _count(local)
            if len(self.differences) < MAX_DIFFERENCES and tensors[ranks[0]].get("local", local) == local:
                await self._compare_elements(found, reference[0], ranks[0])
            self._add(found)

    async def _compare_elements(self, found: models.TensorDifference, reference: int, other: int) -> None:
        """Add by how much two ranks differ; stop at the limit of bytes, or when a cell begins."""
        asked = {"name": self._name, "path": found["path"]}
        while found["compared"] < found["elements"] and self._left_bytes > 0:
            at = {**asked, "start": found["compared"]}
            piece = await self._ask(reference, {"do": "read", **at})
            if piece["busy"]:
                self.busy.add(reference)
                return
            gap = await self._ask(other, {"do": "compare", **at, "data": piece["data"], "dtype": piece["dtype"]})
            if gap["busy"]:
                self.busy.add(other)
                return
            self._left_bytes -= len(piece["data"]) * 3 // 4
            found["compared"] += gap["compared"]
            found["different"] += gap["different"]
            found["nonfinite"] = found["nonfinite"] or gap["nonfinite"]
            if gap["max_abs"] is not None:
                found["max_abs"] = max(found["max_abs"] or 0.0, gap["max_abs"])


def _kind(tensor: Mapping[str, Any]) -> Any:
    return {"shape": tensor["shape"], "dtype": tensor["dtype"]}


def _kind_text(tensor: Mapping[str, Any]) -> str:
    return f"{tensor['dtype']}{tensor['shape']}"


def _count(shape: Iterable[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _alike(values: Mapping[int, Any], key: Any) -> list[list[int]]:
    """Return the ranks whose values have the same key, together."""
    alike: dict[str, list[int]] = {}
    for rank, value in values.items():
        alike.setdefault(key(value), []).append(rank)
    return list(alike.values())
