"""All operations of the API: the router, the rights, openapi.json, the clients and commands are made of them.

An operation is declared once, here or in the module `api` of a part. How a client's method is derived from it:

* It is a method of a group if the path begins with ``groups/{group}``, else of a client (`Operation.is_of_group`),
  and is called `Operation.name`; its docstring is `Operation.sentence`, then `Operation.details`.
* Its arguments are the other parameters of the path (`Operation.arguments`, with their types in `PARAMETERS`), the
  fields of the body, and the fields of the query. Their types are the types of the TypedDict's fields;
  `Field.description` describes each, and `Field.keywords["default"]` is the default of an argument that may be
  left out. Without such a default it is None, and an argument that is None is not sent. A type within the body or
  the query that has no fields adds no arguments.
* It returns the answer, of type `Answer.model`; or, if `Answer.field` is set, only that field of the answer.
  If `Operation.is_file`, it returns the file's bytes.
* It waits `Operation.answer_seconds` for the answer, and sends an `Idempotency-Key` if `Operation.is_keyed`, so that
  a request whose answer was lost can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jupyter_dist.protocol.parts import declared_in_api, find_modules

from .declaration import (
    ANSWER_SECONDS,
    KEY_HEADER,
    KEY_PATTERN,
    PARAMETERS,
    Answer,
    CellNote,
    Operation,
    Parameter,
    Right,
    Verb,
    path_pattern,
)
from .of_execution import EXECUTION_OPERATIONS
from .of_group import GROUP_OPERATIONS
from .of_rank import RANK_OPERATIONS
from .of_server import SERVER_OPERATIONS

# Of each part: what its module `api` declares.
PART_OPERATIONS: dict[str, tuple[Operation, ...]] = {
    name: tuple(module.OPERATIONS) for name, module in find_modules("api").modules.items()
}
OPERATIONS = (
    *SERVER_OPERATIONS,
    *GROUP_OPERATIONS,
    *RANK_OPERATIONS,
    *EXECUTION_OPERATIONS,
    *(operation for declared in PART_OPERATIONS.values() for operation in declared),
)


def _of_parts(name: str) -> Iterator[Any]:
    """Yield the elements of a list in the modules `api` of all parts."""
    return (one for module in find_modules("api").modules.values() for one in getattr(module, name, ()))


PARAMETERS.update(declared_in_api("PARAMETERS"))
# By a message of Jupyter's about a cursor, the operation on a rank whose answer has the fields of its reply.
AT_CURSOR: dict[str, str] = declared_in_api("AT_CURSOR")
# Fields of executions that are too large for lists.
NOT_IN_LISTS: frozenset[str] = frozenset(_of_parts("NOT_IN_LISTS"))
# Fields of groups that parts add.
GROUP_FIELDS: tuple[str, ...] = tuple(_of_parts("GROUP_FIELDS"))
# What parts show of a cell while it runs.
CELL_NOTES: tuple[CellNote, ...] = tuple(_of_parts("CELL_NOTES"))
# Fields of running executions that are in their bundles, too: for pages that have only these.
BUNDLE_FIELDS: tuple[str, ...] = tuple(_of_parts("BUNDLE_FIELDS"))
# Functions that return a sentence, or None, on an execution that has ended: magics print it.
ENDED_NOTES: tuple[Callable[[Mapping[str, Any]], str | None], ...] = tuple(_of_parts("ENDED_NOTES"))
BY_NAME = {operation.name: operation for operation in reversed(OPERATIONS)}  # no part replaces one of the core

__all__ = [
    "ANSWER_SECONDS",
    "AT_CURSOR",
    "BUNDLE_FIELDS",
    "BY_NAME",
    "CELL_NOTES",
    "ENDED_NOTES",
    "GROUP_FIELDS",
    "KEY_HEADER",
    "KEY_PATTERN",
    "NOT_IN_LISTS",
    "OPERATIONS",
    "PARAMETERS",
    "PART_OPERATIONS",
    "Answer",
    "CellNote",
    "Operation",
    "Parameter",
    "Right",
    "Verb",
    "path_pattern",
    "why_stopped",
]


def why_stopped(execution: Mapping[str, Any]) -> str | None:
    """Return why a running cell cannot end; None: nothing is known that stops it."""
    found = (one["message"] for note in CELL_NOTES if note.stops_cell for one in note.findings(execution))
    return next(found, None)
