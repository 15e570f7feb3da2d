"""How an operation of the API is declared: its address, the right that it needs, its arguments and its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Verb = Literal["get", "post", "delete"]
Right = Literal["read", "write", "execute"]

SMALL_BODY_BYTES = 64 << 10
# How long clients wait for most answers. Starting a group probes its interpreter, shutting a group down waits for its
# processes.
ANSWER_SECONDS = 120.0

Finding = Mapping[str, Any]  # of a part, on a cell: `message`, `advice`, and what else it knows

KEY_HEADER = "Idempotency-Key"
KEY_PATTERN = r"[A-Za-z0-9_-]{1,200}"


@dataclass(frozen=True)
class Parameter:
    """A {parameter} of a path: names and ids of ours, never with a slash."""

    pattern: str
    description: str
    type: type = str  # of the clients' argument


PARAMETERS = {
    "group": Parameter(r"[A-Za-z0-9_.-]{1,60}", "A group's id or name."),
    "execution_id": Parameter(r"[A-Za-z0-9_-]{1,80}", "An execution's id."),
    "rank": Parameter(r"[0-9]{1,7}", "A rank.", int),
    "name": Parameter(r"[^/]{1,300}", "An environment's name."),
}


@dataclass(frozen=True)
class Answer:
    """What an operation answers when it succeeds."""

    description: str
    model: Any = None  # a type of protocol
    status: int = 200
    field: str = ""  # the field of the model that clients' methods return; by default the whole model
    content_type: str = "application/json"
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing that a client can ask for: a verb of a path."""

    name: str  # of the method in clients, of the method that carries it out, and `operationId`
    verb: Verb
    path: str  # below the prefix, with {parameters}
    right: Right  # for authorizers
    sentence: str  # one sentence, as docstrings begin
    details: str = ""  # the rest of the docstring
    answer: Answer
    body: Any = None  # a type of protocol/wire/requests.py
    query: Any = None  # a type of protocol/wire/queries.py
    max_body_bytes: int = SMALL_BODY_BYTES
    is_keyed: bool = False  # takes the header Idempotency-Key: a retry is not carried out twice
    is_owned: bool = False  # gets the name of its user, as `owner`
    errors: tuple[str, ...] = ()  # error codes of docs/api.md, besides the codes that every operation has
    is_capped: bool = False  # counts as a download: a user may have only so many at a time
    answer_seconds: float | None = None  # how long a client waits for the answer; by default ANSWER_SECONDS
    command: str = ""  # of `jupyter dist`, if one does only this
    text: Callable[[Any], str] | None = None  # the answer as text, for commands, magics and tools
    tool: str = ""  # for language-model agents: the description of the tool that does only this
    is_of_last: bool = False  # clients may leave out the execution: it is the last cell that began
    execute_fields: tuple[str, ...] = ()  # of the query: naming a place of this machine takes the right to execute
    why_not_execute: str = ""  # why what is no GET needs less than the right to execute

    def __post_init__(self) -> None:
        """Check the right: with little thought, an operation that changes something would be open to readers."""
        if self.verb != "get" and self.right != "execute" and not self.why_not_execute:
            raise ValueError(f"{self.name}: a {self.verb} needs the right to execute, or a reason why not")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the path's parameters, in order."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def title(self) -> str:
        """Return the sentence as the title of a command: without a period, and with the verb for a terminal."""
        return re.sub("^Return ", "Show ", self.sentence).rstrip(".")

    @property
    def is_of_group(self) -> bool:
        """Whether the operation is a method of a group; the others are methods of a client."""
        return self.parameters[:1] == ("group",)

    @property
    def is_file(self) -> bool:
        """Whether the answer is a file, which is made while it is sent."""
        return "Content-Disposition" in self.answer.headers

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the names of the path's parameters that clients' methods take: all but the group."""
        return tuple(name for name in self.parameters if name != "group")


@dataclass(frozen=True)
class CellNote:
    """A field of executions with what a part has found in a cell."""

    field: str
    label: str  # before the sentence in a terminal: `slow`
    same_by: tuple[str, ...] = ("kind",)  # what is alike in these is one, also when its numbers have changed
    read: Callable[[Any], Iterable[Finding]] = list  # the findings in the field
    stops_cell: bool = False  # a cell with such a finding cannot end

    def findings(self, execution: Mapping[str, Any]) -> list[Finding]:
        """Return the findings on an execution."""
        value = execution.get(self.field)
        return list(self.read(value)) if value else []


def finding_lines(findings: Iterable[Finding], todo: str) -> Iterator[str]:
    """Yield lines of text: what was found, its evidence, and the advice after these words."""
    for one in findings:
        yield one["message"]
        yield from (f"  {sentence}" for sentence in one["evidence"])
        yield f"  {todo}: {one['advice']}"


def path_pattern(path: str) -> str:
    """Return the regular expression of a path, with a group for each parameter."""
    escaped = re.escape(path).replace(r"\{", "{").replace(r"\}", "}")
    return re.sub(r"\{(\w+)\}", lambda match: f"({PARAMETERS[match[1]].pattern})", escaped)
