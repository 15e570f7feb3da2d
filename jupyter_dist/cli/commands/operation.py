"""Makes commands from the table of operations, each for one operation of the API: its arguments, and its answer.

`--json` prints the answer as JSON. Otherwise the function in TEXTS prints it; a group is printed as `status` does, and
others field by field.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from jupyter_dist.cli.command import Command, add_group_argument
from jupyter_dist.client.answers.infos import RankStackInfo
from jupyter_dist.client.answers.texts import answer_text
from jupyter_dist.client.blocking.report import presets_text, stacks_text, status_text
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations import BY_NAME, PARAMETERS, Operation
from jupyter_dist.protocol.schemas import Schema, body_schema

TEXTS: dict[str, Callable[[Any], str]] = {
    "stacks": lambda answer: stacks_text(map(RankStackInfo, answer["stacks"])),
    "presets": lambda answer: presets_text(answer["presets"]),
}
SHORT = {"ranks": "-r"}
_TYPES: dict[str, Callable[[str], Any]] = {"string": str, "integer": int, "number": float}


class OperationCommand(Command):
    """Base of the commands that are made from the table."""

    operation: ClassVar[Operation]

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the group, the parameters of the path, and the fields of body and query; required ones have no option."""
        in_path = () if self.operation.is_of_last else self.operation.arguments
        required = [*in_path, *(name for model in self._models() for name in model["required"])]
        if self.operation.is_of_group:
            add_group_argument(parser, positional=not required)
        if self.operation.is_of_last:
            parser.add_argument(
                "-e", "--execution", dest="execution_id", help="id of an execution (default: the last one that began)"
            )
        for name in in_path:
            parser.add_argument(name, type=PARAMETERS[name].type, help=PARAMETERS[name].description)
        for model in self._models():
            for name, field in model["properties"].items():
                _add_field(parser, name, field, is_required=name in required)

    def act(self) -> int:
        """Ask once, and print the answer."""
        operation = self.operation
        fields = [name for model in self._models() for name in model["properties"]]
        given = {name: value for name in fields if (value := getattr(self.options, name)) is not None}
        places = {name: value for name in operation.arguments if (value := getattr(self.options, name)) is not None}
        if operation.is_of_group:
            answer = self.client.attach(self.options.group).ask(operation.name, **places, **given)
        else:
            answer = self.client.ask(
                operation.verb.upper(),
                *operation.path.format(**places).split("/"),
                body=given if operation.body is not None else None,
                params=given if operation.query is not None else None,
                timeout_seconds=operation.answer_seconds,
            )
        is_group = operation.answer.model is models.GroupModel and operation.text is None
        text_of: Callable[[Any], str] = _group_text if is_group else partial(answer_text, operation)
        self.tell(answer, TEXTS.get(operation.name, text_of)(answer))
        return 0

    def _models(self) -> list[Schema]:
        return [body_schema(model) for model in (self.operation.body, self.operation.query) if model is not None]


def _add_field(parser: argparse.ArgumentParser, name: str, field: Schema, *, is_required: bool) -> None:
    text = field.get("description", "").replace("%", "%%")
    if is_required:
        parser.add_argument(name, type=_TYPES[field["type"]], help=text)
    elif field["type"] == "boolean":
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", default=None, help=text)
    else:
        options = [*([SHORT[name]] if name in SHORT else []), f"--{name.replace('_', '-')}"]
        parser.add_argument(*options, type=_TYPES[field["type"]], default=field.get("default"), help=text)


def _group_text(group: Any) -> str:
    return status_text(group, None, "")


def __getattr__(name: str) -> type[OperationCommand]:
    """Return the command of an operation."""
    if name not in BY_NAME:
        raise AttributeError(name)
    operation = BY_NAME[name]
    text = " ".join([f"{operation.title}.", operation.details]).strip()
    members = {"operation": operation, "__doc__": text, "needs_groups": operation.is_of_group, "__module__": __name__}
    return type(name, (OperationCommand,), members)
