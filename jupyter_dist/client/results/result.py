"""The result of a cell, by rank and as readable text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.answers.infos import CellMemoryInfo, InputPromptInfo
from jupyter_dist.client.bundles.bundle import item_text, make_bundle, mime_bundle, output_text, rank_label, text_lines
from jupyter_dist.client.bundles.outputs import BundleOutputs, emit_display, in_notebook
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.models import ExecutionModel, GroupModel, Output, RanksBundle, ViewItem
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES

from .plain import PlainResult


@dataclass(frozen=True)
class CellError:
    """The exception that a cell raised on a rank; the traceback is text with colors."""

    ename: str
    evalue: str
    traceback: list[str] = field(default_factory=list, repr=False)

    def __str__(self) -> str:
        return f"{self.ename}: {self.evalue}" if self.evalue else self.ename


@dataclass(frozen=True)
class RankResult:
    """The result of one rank: `status`, `seconds`, `outputs` (nbformat), `text`, `value`, `error`."""

    rank: int
    status: str
    seconds: float | None
    outputs: list[Output] = field(repr=False)
    text: str
    value: str | None
    error: CellError | None


class RankError(JupyterDistError):
    """A cell failed on some of its ranks; `errors` has the exception of each rank that raised one."""

    def __init__(self, message: str, result: Result, hint: str = "") -> None:
        super().__init__("cell_failed", message, hint)
        self.result = result
        self.errors = {rank: found.error for rank, found in result.items() if found.error is not None}

    def _render_traceback_(self) -> list[str]:
        """Called by IPython: show the ranks' tracebacks, unless they were shown already, instead of ours."""
        own = super()._render_traceback_()
        return own if self.result.was_streamed else [*_tracebacks(self.errors), *own]


class Result(PlainResult):
    """The state and output of one execution at one moment; final if `done`."""

    def __init__(self, group: GroupModel, execution: ExecutionModel, items: list[ViewItem]) -> None:
        self.group = group
        self.execution = execution
        self.folded = items
        self.was_streamed = False  # the output was shown already
        self.notices: list[str] = []  # about the group's nodes, without notices that were shown for earlier cells
        self.is_shown = False  # shown already, so the value of the cell must not show it again

    @property
    def id(self) -> str:
        """Return the id of the execution."""
        return str(self.execution["id"])

    @property
    def state(self) -> str:
        """Return the state of the execution (docs/api.md, Execution)."""
        return str(self.execution["state"])

    @property
    def asking(self) -> ApiList[InputPromptInfo]:
        """Return the questions of `input()` or a debugger on its ranks: one for all ranks that ask the same."""
        return listed(InputPromptInfo, self.execution.get("asking", []))

    @property
    def done(self) -> bool:
        """Whether the result is final."""
        return self.state in FINAL_EXECUTION_STATES

    @property
    def ok(self) -> bool:
        """Whether every rank succeeded."""
        return self.state == "ok"

    @property
    def ranks(self) -> tuple[int, ...]:
        """Return the ranks that the cell ran on."""
        return RankSet.from_text(self.execution["ranks"])

    @property
    def values(self) -> dict[int, str | None]:
        """Return the value of the cell's last expression on each rank, as text."""
        return {rank: found.value for rank, found in self.items()}

    @property
    def errors(self) -> dict[int, CellError]:
        """Return the exceptions, by rank."""
        return {rank: found.error for rank, found in self.items() if found.error is not None}

    @property
    def memory_changes(self) -> dict[int, CellMemoryInfo]:
        """Return how the cell changed the memory of ranks; ranks with less than a megabyte of change are left out."""
        return {int(rank): CellMemoryInfo(changed) for rank, changed in self.execution.get("rank_memory", {}).items()}

    @property
    def text(self) -> str:
        """Return all output, folded and labelled."""
        return "\n".join(text_lines(self.bundle()))

    def __getitem__(self, rank: int) -> RankResult:
        """Return the result of one rank."""
        if rank not in self.ranks:
            raise KeyError(f"This cell ran on {rank_label(self.execution['ranks'])}, not on rank {rank}.")
        items = [item for item in self.folded if rank in RankSet.from_text(item["ranks"])]
        outputs = _joined(item["output"] for item in items if "output" in item)
        status, seconds = self._status(rank)
        text = "".join(map(item_text, items))
        return RankResult(rank, status, seconds, outputs, text, _value(outputs), _error(outputs))

    def __len__(self) -> int:
        return len(self.ranks)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ranks, as over the keys of a dict."""
        return iter(self.ranks)

    def keys(self) -> list[int]:
        """Return the ranks, in order."""
        return list(self.ranks)

    def items(self) -> list[tuple[int, RankResult]]:
        """Return pairs of rank and its result, in order."""
        return [(rank, self[rank]) for rank in self.ranks]

    def raise_for_error(self) -> Result:
        """Return this result if all ranks succeeded.

        Raises:
            RankError: otherwise, with the errors and their ranks.
        """
        if self.done and not self.ok:
            raise RankError(self._failure(), self)
        return self

    def bundle(self) -> RanksBundle:
        """Return the bundle that a notebook saves for the cell."""
        return make_bundle(self.group, self.execution, self.folded)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Result of {rank_label(self.execution['ranks'])} of '{self.group['name']}': {self.state}>"

    def _ipython_display_(self) -> None:
        """Called by IPython: in a notebook, show it as a cell on ranks."""
        if self.is_shown or not in_notebook():
            raise NotImplementedError  # IPython shows one of the forms below
        BundleOutputs(emit_display)(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": repr(self)} if self.is_shown else mime_bundle(self.bundle())

    def _status(self, rank: int) -> tuple[str, float | None]:
        for status in self.execution["statuses"]:
            if rank in RankSet.from_text(status["ranks"]):
                return status["status"], status["seconds"]
        return self.state, None

    def _failure(self) -> str:
        same: dict[str, list[int]] = {}
        for rank, error in self.errors.items():
            same.setdefault(str(error), []).append(rank)
        parts = [f"{rank_label(str(RankSet(ranks)))}: {text}" for text, ranks in same.items()]
        if self.execution["error"]:
            parts.append(str(JupyterDistError.from_dict(self.execution["error"])))
        return "; ".join(parts) or f"The cell was {self.state} on {rank_label(self.execution['ranks'])}."


def _joined(outputs: Iterable[Output]) -> list[Output]:
    """Join adjacent pieces of the same stream, which folding has split."""
    joined: list[Output] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and output["output_type"] == last["output_type"] == "stream"
            and output["name"] == last["name"]
        ):
            joined[-1] = {**last, "text": "".join(last["text"]) + "".join(output["text"])}
        else:
            joined.append(output)
    return joined


def _tracebacks(errors: dict[int, CellError]) -> list[str]:
    """Return each traceback once, under a label of its ranks."""
    same: dict[str, list[int]] = {}
    for rank, error in errors.items():
        same.setdefault("\n".join(error.traceback), []).append(rank)
    return [line for text, ranks in same.items() for line in (f"[{rank_label(str(RankSet(ranks)))}]", text)]


def _value(outputs: list[Output]) -> str | None:
    results = [output for output in outputs if output["output_type"] == "execute_result"]
    return output_text(results[-1]) if results else None


def _error(outputs: list[Output]) -> CellError | None:
    for output in reversed(outputs):
        if output["output_type"] == "error":
            return CellError(output["ename"], output["evalue"], list(output["traceback"]))
    return None
