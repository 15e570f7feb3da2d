"""Reads names in the side thread, while a cell runs. No code of the user's runs, and no device is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.wire.places import describe_line, is_library
from jupyter_dist.rank.cells.values import describing, numbers
from jupyter_dist.rank.cells.values.opening import StepBudget, is_tensor
from jupyter_dist.rank.cells.values.walk import MAX_CHARS, Walk
from jupyter_dist.rank.collectives.torch_compat import without_functions
from jupyter_dist.rank.guard.frames import of_main_thread
from jupyter_dist.rank.part import RankPart, RankRequest

MAX_NAMES = 40
MAX_FRAMES = 200
MAX_STEPS = 2_000  # of all names together: some 3 ms
MAX_NUMBERS = 8  # of a tensor

Names = Mapping[str, Any]


class RankPeek(RankPart):
    """Answers `peek` at once."""

    def requests(self) -> Mapping[str, RankRequest]:
        """Return the handler of `peek`."""
        return {"peek": lambda header, _: {"values": self.values(list(header["names"]))}}

    def values(self, names: list[str]) -> dict[str, Any]:
        """Return a description of each name, None if it is missing; by default of the running function."""
        places = list(self._places())
        if not names and places:
            names = [name for name in places[0][0] if not name.startswith("_")]
        left = StepBudget(MAX_STEPS)
        with torch.no_grad(), without_functions():
            return {name: self._value(name, places, left) for name in names[:MAX_NAMES]}

    def _value(self, name: str, places: list[tuple[Names, str]], left: StepBudget) -> dict[str, Any] | None:
        try:
            first, path = numbers.parse_name(name)
        except JupyterDistError:
            return None
        for names, place in [*places, (self.core.namespace, "")]:
            if first in names:
                row = _describe(names[first], path, left)
                return None if row is None else {**row, "place": place, "place_words": words_of(place)}
        return None

    def _places(self) -> Iterator[tuple[Names, str]]:
        """Yield the local names of the user's functions that run in the main thread, the innermost first."""
        frame: FrameType | None = of_main_thread()
        for _ in range(MAX_FRAMES):
            if frame is None or frame.f_globals is self.core.namespace is frame.f_locals:
                return
            code = frame.f_code
            if not is_library(code.co_filename) and code.co_flags & 1:  # of a function: CO_OPTIMIZED
                line = describe_line(code.co_filename, frame.f_lineno or 0, "")
                yield frame.f_locals, say("%1, %2", code.co_name, line)
            frame = frame.f_back


def _describe(value: Any, path: str, left: StepBudget) -> dict[str, Any] | None:
    if path:
        walk = Walk(value, left, path)
        if not walk.nodes:
            return None
        if walk.nodes[0].what != "tensor":
            text = ", ".join(node.text for node in walk.nodes)[:MAX_CHARS]
            return {"type": "", "shape": "", "dtype": "", "device": "", "value": text}
        value = walk.nodes[0].value
    row = describing.describe(value, None, left)
    if not row["value"] and row["kind"] == "tensor" and row["device"] == "cpu":
        row["value"] = _first_numbers(value)
    return {name: row[name] for name in ("type", "shape", "dtype", "device", "value")}


def _first_numbers(tensor: Any) -> str:
    """Return the first numbers of a tensor on the CPU, without a copy of it."""
    if not is_tensor(tensor) or tensor.is_quantized or tensor.layout is not torch.strided or not tensor.numel():
        return ""
    row = tensor.detach()
    row = row.view(-1) if row.is_contiguous() else row
    while row.dim() > 1:
        row = row[0]
    found = [f"{number:.6g}" for number in row[:MAX_NUMBERS].tolist()]
    return f"[{', '.join(found)}{', ...' if len(found) < tensor.numel() else ''}]"
