"""The executions of one group as the server knows them: the agent's statuses, and cached code."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from typing import Any, cast

from jupyter_dist.journal.ends import Span
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.operations import NOT_IN_LISTS
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES, ExecutionState

MAX_KEPT = 2000
MAX_CODE_CHARS = 32 << 20  # limit on cached code that the journal has, too
MAX_LINE = 200
_NUMBERS = (float, int)
MAX_HEAD = 10_000  # how much of a cell is searched for its first line


class Executions:
    """Execution models (docs/api.md) by id, oldest first."""

    def __init__(self, group_id: str) -> None:
        self.counts: dict[str, int | None] = {}  # execution_count by execution id
        self._group_id = group_id
        self._models: dict[str, models.ExecutionModel] = {}
        self._unfinished: dict[str, models.ExecutionModel] = {}
        self._ended: dict[str, None] = {}  # the ended executions, in the order in which they ended
        self._codes: dict[str, str] = {}
        self._num_chars = 0
        self._lines: dict[str, str] = {}
        self._spans: dict[str, tuple[int | None, int | None]] = {}  # the records of its begin and its end

    def update(self, status: dict[str, Any]) -> models.ExecutionModel:
        """Store the agent's newest status of an execution and return its model.

        All unfinished executions are kept, because pages and clients wait for them and have yet to read their ends,
        and the last MAX_KEPT of the others.
        """
        execution_id = status["id"]
        model = {**_interned(status), "group": self._group_id}
        if "code" in model:  # which has no `begin` record
            self.set_code(execution_id, model.pop("code"))
        self._lines[execution_id] = model.pop("line")
        self._spans[execution_id] = model.pop("begin_seq"), model.pop("end_seq")
        self._store(execution_id, cast(models.ExecutionModel, model))
        self.counts[execution_id] = status.get("execution_count")
        while len(self._ended) > MAX_KEPT:
            self._forget(next(iter(self._ended)))
        return cast(models.ExecutionModel, model)

    def set_code(self, execution_id: str, code: str) -> None:
        """Cache the code of an execution, from the request or the journal."""
        self._num_chars += len(code) - len(self._codes.pop(execution_id, ""))
        self._codes[execution_id] = code
        self._lines.setdefault(execution_id, _first_line(code))
        for stored in [key for key in self._codes if key != execution_id and self._is_stored(key)]:
            if self._num_chars <= MAX_CODE_CHARS:
                break
            self._num_chars -= len(self._codes.pop(stored))
        if len(self._codes) > 2 * MAX_KEPT:  # code of executions that no agent reported
            for unknown in [key for key in self._codes if key not in self._models][:-MAX_KEPT]:
                self._forget(unknown)

    def _is_stored(self, execution_id: str) -> bool:
        """Whether the code need not be kept here: the journal has it, or no agent has reported such an execution."""
        return execution_id not in self._models or self.begin_seq(execution_id) is not None

    def has_code(self, execution_id: str) -> bool:
        """Whether the code of the execution is cached."""
        return execution_id in self._codes

    def code(self, execution_id: str) -> str:
        """Return the code of the execution if it is cached, else an empty string."""
        return self._codes.get(execution_id, "")

    def line(self, execution_id: str) -> str:
        """Return the first line of the code if it is known, else an empty string."""
        return self._lines.get(execution_id) or ""

    def get(self, execution_id: str) -> models.ExecutionModel:
        """Return the execution, with its code if the code is cached.

        Raises:
            JupyterDistError: `unknown_execution`.
        """
        model = self._models.get(execution_id)
        if model is None:
            near = difflib.get_close_matches(execution_id, self._models, 1, 0.8)
            hint = (
                say("Did you mean '%1'?", near[0])
                if near
                else say("Only the last %1 of each group are kept.", MAX_KEPT)
            )
            raise JupyterDistError("unknown_execution", say("There is no execution '%1'.", execution_id[:80]), hint)
        return {**model, "code": self._codes.get(execution_id)}

    def begin_seq(self, execution_id: str) -> int | None:
        """Return the sequence number of the execution's first record; None if it never ran."""
        return self._spans.get(execution_id, (None, None))[0]

    def span(self, execution_id: str) -> Span | None:
        """Return the sequence numbers of the execution's first and last record; None if it never ran."""
        begin_seq, end_seq = self._spans.get(execution_id, (None, None))
        return None if begin_seq is None else Span(execution_id, begin_seq, end_seq)

    def all(self) -> list[models.ExecutionModel]:
        """Return all executions, without code."""
        return list(self._models.values())

    def listed(self) -> list[models.ExecutionModel]:
        """Return all executions, with the first line of their code."""
        return [
            cast(models.ExecutionModel, {**_for_lists(model), "line": self._lines.get(key)})
            for key, model in self._models.items()
        ]

    def unfinished(self) -> Iterable[models.ExecutionModel]:
        """Return the queued and running executions."""
        return list(self._unfinished.values())

    def in_state(self, state: ExecutionState) -> list[str]:
        """Return the ids of the executions in the state `queued` or `running`."""
        return [model["id"] for model in self._unfinished.values() if model["state"] == state]

    def mark_lost(self, error: JupyterDistError) -> list[str]:
        """Mark unfinished executions as lost, because the agent is gone. Return their ids."""
        lost = [model["id"] for model in self.unfinished()]
        for execution_id in lost:
            model = self._models[execution_id]
            state: ExecutionState = "aborted" if model["state"] == "queued" else "lost"
            statuses: list[models.RanksStatus] = [
                {**status, "status": state} if status["status"] in ("queued", "running") else status
                for status in model["statuses"]
            ]
            model = cast(models.ExecutionModel, {name: value for name, value in model.items() if name != "asking"})
            self._store(execution_id, {**model, "state": state, "statuses": statuses, "error": error.to_dict()})
        return lost

    def _store(self, execution_id: str, model: models.ExecutionModel) -> None:
        self._models[execution_id] = model
        if is_final(model):
            self._unfinished.pop(execution_id, None)
            self._ended.setdefault(execution_id)
        else:
            self._unfinished[execution_id] = model
            self._ended.pop(execution_id, None)

    def _forget(self, execution_id: str) -> None:
        self._num_chars -= len(self._codes.pop(execution_id, ""))
        tables: tuple[dict[str, Any], ...] = (
            self._models,
            self._unfinished,
            self._ended,
            self._lines,
            self._spans,
            self.counts,
        )
        for table in tables:
            table.pop(execution_id, None)


def _for_lists(model: models.ExecutionModel) -> dict[str, Any]:
    return {name: value for name, value in model.items() if name not in NOT_IN_LISTS}


def _interned(value: Any) -> Any:
    """Return the value with each key and short text only once in memory: decoders create new ones for each message."""
    if isinstance(value, dict):  # also of a thousand numbers
        return {sys.intern(key): item if type(item) in _NUMBERS else _interned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_interned(item) for item in value]
    return sys.intern(value) if type(value) is str and len(value) <= MAX_LINE else value


def _first_line(code: str) -> str:
    lines = (line.strip() for line in code[:MAX_HEAD].splitlines())
    return next((line[:MAX_LINE] for line in lines if line), "")


def is_final(model: models.ExecutionModel) -> bool:
    """Whether the execution has ended."""
    return model["state"] in FINAL_EXECUTION_STATES
