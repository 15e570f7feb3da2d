"""Make the classes of the API's answers in Python, and the plain calls of the asynchronous client, from the operations.

`make generate` writes them to jupyter_dist/client/answers/infos.py and jupyter_dist/client/asynchronous/plain.py.
"""

from __future__ import annotations

import ast
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from generate_client import Function, docstring, formatted, functions_of_part, imports_of_parts, passed, typing_only
from typing_extensions import NotRequired, get_type_hints

from jupyter_dist.protocol import states
from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models import differences, machine, models
from jupyter_dist.protocol.operations import OPERATIONS, PARAMETERS, Operation
from jupyter_dist.protocol.parts import find_modules
from jupyter_dist.protocol.schemas import beginnings, fields_of, replace_options, replace_states, schema_name, types_in
from jupyter_dist.protocol.wire import requests

CLIENT = Path(__file__).parents[1] / "jupyter_dist" / "client"
INFOS = CLIENT / "answers" / "infos.py"
PLAIN = CLIENT / "asynchronous" / "plain.py"
KEYWORDS = CLIENT / "answers" / "keywords.py"
OF_PARTS = CLIENT / "ofparts.py"
RESULT = CLIENT / "results" / "plain.py"

INFOS_HEAD = '''"""The API's answers as classes. Made by `make generate` from jupyter_dist/protocol: edit that.

A class has the name of the schema with `Info` behind it.
"""

from __future__ import annotations

from typing import Any, Literal

from jupyter_dist.protocol.states import ExecutionState, GroupState, NodeState, RankState

from .base import ApiObject
'''
KEYWORDS_HEAD = '''"""Keyword arguments with those of parts. Made by `make generate` from rows of options: edit that."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from jupyter_dist.protocol.wire import requests
'''
PLAIN_HEAD = '''"""Plain calls of the API. Made by `make generate` from jupyter_dist/protocol/operations: edit that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.answers import infos
from jupyter_dist.client.results.comparing import VariableComparison
from jupyter_dist.client.results.result import Result

from jupyter_dist.protocol.parts import of_part

from .calling import Caller, GroupCaller
'''
SELF = "from typing_extensions import Self"
OF_PARTS_HEAD = '''"""Names that parts add to the client. Made by `make generate` from their packages `client`."""

'''
RESULT_HEAD = '''"""Properties of a Result that are of parts. Made by `make generate` from their packages `client`."""

from __future__ import annotations

from jupyter_dist.protocol.parts import of_part
'''
# Answers with methods of their own.
RESULTS = {"Comparison": "VariableComparison"}
PARTS_OF_CLIENT = find_modules("client").modules
# By the name of the answer, the class of a part, and the part.
PART_RESULTS = {
    answer: (result, name)
    for name, module in PARTS_OF_CLIENT.items()
    for answer, result in getattr(module, "RESULTS", {}).items()
}
NAMED_LITERALS = {getattr(states, name): name for name in ("GroupState", "NodeState", "RankState", "ExecutionState")}
# Keys are numbers of ranks, which JSON has as text.
BY_RANK = {"rank_seconds", "rank_memory", "freed_bytes"}
NO_METHOD = {"channel", "openapi"}  # opened and read by the client itself
# The clients' methods do more, or have another name.
BY_HAND = {
    "own",
    "save",
    "restore",
    "submit",
    "view",
    "cancel",
    "extend",
    "answer_input",
    "kill",
    "debug",
    "send_comm",
    "last_samples",
}


def answer_sources() -> dict[Path, str]:
    """Return the texts of the files."""
    sources = {
        INFOS: infos_source(),
        KEYWORDS: keywords_source(),
        PLAIN: plain_source(),
        OF_PARTS: of_parts_source(),
        RESULT: result_source(),
    }
    return {path: formatted(text, path) for path, text in sources.items()}


def of_parts_source() -> str:
    """Return the text of ofparts.py."""
    parts = PARTS_OF_CLIENT.values()
    lines = [f"from {each.__name__} import {', '.join(each.__all__)}" for each in parts if each.__all__]
    names = sorted(name for each in parts for name in each.__all__)
    return OF_PARTS_HEAD + "\n".join([*typing_only(lines), f"\n__all__: list[str] = {names!r}\n"])


def result_source() -> str:
    """Return the text of results/plain.py."""
    found = [(name, each) for name in PARTS_OF_CLIENT for each in functions_of_part(name, "result")]
    properties = [
        f"    @property\n    def {each.name}(self) -> {(kind := ast.unparse(each.returns))}:\n"
        f"        {docstring(each)}\n        found: {kind} = of_part({name!r}, 'result').{each.name}(self)\n"
        "        return found\n"
        for name, each in found
    ]
    base = '\n\nclass PlainResult:\n    """Properties of parts."""\n'
    return "\n".join([RESULT_HEAD, *imports_of_parts("result"), *typing_only(_names_of_parts()), base, *properties])


def _names_of_parts() -> list[str]:
    """Return imports of the names that parts add to the client."""
    return [
        f"from jupyter_dist.client.ofparts import {name}" for each in PARTS_OF_CLIENT.values() for name in each.__all__
    ]


def keywords_source() -> str:
    """Return the text of keywords.py."""
    words = ", ".join(map(repr, replace_states()))
    source = f"{KEYWORDS_HEAD}\nReplaceState = Literal[{words}]  # of replaced ranks\n"
    options = [f"    {name}: {type_source(hint)}" for name, hint in replace_options().items()] or ["    pass"]
    source += '\n\nclass ReplaceOptions(TypedDict, total=False):\n    """What parts need to replace ranks."""\n\n'
    source += "\n".join(options)
    start = {name: hint for name, (hint, _) in fields_of(requests.StartOptions).items()}
    start |= {name: hint for name, (_, hint) in beginnings().items()}
    own = get_type_hints(requests.RunOptions, localns={"NotRequired": NotRequired})
    run = {name: hint for name, (hint, _) in fields_of(requests.RunOptions).items() if name not in own}
    for model, base, fields in (
        (requests.StartOptions, "TypedDict", start),
        (requests.RunOptions, "requests.RunOptions", run),
    ):
        source += f'\n\nclass {model.__name__}({base}, total=False):\n    """{model.__doc__}"""\n\n'
        source += "\n".join(f"    {name}: {type_source(hint)}" for name, hint in fields.items())
    return source


def infos_source() -> str:
    """Return the text of infos.py."""
    found: dict[str, Any] = {}
    sent = [model for each in OPERATIONS for model in (each.body, each.query)]
    of_parts = [
        model for module in find_modules("models").modules.values() for model in types_in(module) if model not in sent
    ]
    of_core = machine.MemorySample, differences.ComparisonModel  # without a part that answers with it, too
    for root in (*(each.answer.model for each in OPERATIONS), *of_core, *of_parts):
        _reach(root, found)
    return INFOS_HEAD + "".join(_class_source(found[name]) for name in sorted(found))


def _reach(hint: Any, found: dict[str, Any]) -> None:
    """Add the TypedDicts of a type."""
    if is_typeddict(hint) and hint is not models.Nothing:
        if schema_name(hint) not in found:
            found[schema_name(hint)] = hint
            for inner, _ in fields_of(hint).values():
                _reach(inner, found)
    else:
        for inner in get_args(hint):
            _reach(inner, found)


def _class_source(model: Any) -> str:
    fields = fields_of(model)
    described = {name: _field(hint).description for name, (hint, _) in fields.items() if not _field(hint).name}
    lines = [_wrapped(f"{name}: {text}") for name, text in described.items() if text]
    attributes = "\n\nAttributes:\n" + textwrap.indent("\n".join(lines), "    ") + "\n" if lines else ""
    doc = textwrap.indent(f'"""{model.__doc__}{attributes}"""', "    ").lstrip()
    body = "\n".join(
        f"    {name}: {type_source(hint, name)}{'' if is_required or _is_optional(hint) else ' | None'}"
        for name, (hint, is_required) in fields.items()
    )
    return f"\n\nclass {schema_name(model)}Info(ApiObject):\n    {doc}\n\n{body}\n"


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 100, subsequent_indent="    ")


def _field(hint: Any) -> Field:
    return next((each for each in get_args(hint) if isinstance(each, Field)), Field())


def _is_optional(hint: Any) -> bool:
    return type(None) in get_args(get_args(hint)[0] if get_origin(hint) is Annotated else hint)


def type_source(hint: Any, name: str = "", prefix: str = "") -> str:  # noqa: PLR0911  (a kind of type each)
    """Return a type of protocol as the source of the client's type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return type_source(inner[0], name, prefix)
    if origin is Literal:
        return NAMED_LITERALS.get(hint) or f"Literal[{', '.join(map(repr, inner))}]"
    if origin in (Union, types.UnionType):
        return " | ".join(type_source(each, name, prefix) for each in inner)
    if origin is list:
        return f"list[{type_source(inner[0], name, prefix)}]"
    if origin is dict:
        key = "int" if name in BY_RANK else "str"
        return f"dict[{key}, {type_source(inner[1], name, prefix)}]"
    if hint is type(None):
        return "None"
    if hint is Any:
        return "Any"
    return f"{prefix}{schema_name(hint)}Info" if is_typeddict(hint) else str(hint.__name__)


def plain_source() -> str:
    """Return the text of plain.py."""
    written = {name: _defined(name) for name in ("AsyncClient", "AsyncGroup")}
    parts = [PLAIN_HEAD, *typing_only([*_names_of_parts(), SELF, *imports_of_parts("asynchronous")])]
    of_parts = {each.name for name in PARTS_OF_CLIENT for each in functions_of_part(name, "asynchronous")}
    for cls, of_group in (("AsyncClient", False), ("AsyncGroup", True)):
        base = "GroupCaller" if of_group else "Caller"
        parts.append(f'\n\nclass Plain{cls}({base}):\n    """Methods of {cls} that make one request each."""\n')
        for each in OPERATIONS:
            is_left_out = each.name in written[cls] | NO_METHOD | BY_HAND | of_parts or each.is_file
            if each.is_of_group == of_group and not is_left_out:
                parts.append(_call_source(each))
        if of_group:
            parts += kept_options()
    parts += _methods_of_parts("asynchronous")
    parts.append('\n\nclass PlainAsyncExecution:\n    """Methods of AsyncExecution that parts add."""\n')
    parts += _methods_of_parts("execution")
    return "\n".join(parts)


def kept_options() -> Iterator[str]:
    """Yield an attribute for each option of runs that a group keeps, as KEPT_OPTIONS of parts declares it."""
    hints = fields_of(requests.RunOptions)
    for name, sentence in (
        pair for part in PARTS_OF_CLIENT.values() for pair in getattr(part, "KEPT_OPTIONS", {}).items()
    ):
        kind = type_source(hints[name][0])
        yield f'    @property\n    def {name}(self) -> {kind}:\n        """{sentence}"""'
        yield f"        return {kind}(self.run_options.get({name!r}, False))\n"
        yield f"    @{name}.setter\n    def {name}(self, value: {kind}) -> None:"
        yield f"        self.run_options.pop({name!r}, None)"
        yield f"        if value:\n            self.run_options[{name!r}] = value\n"


def _methods_of_parts(module: str) -> list[str]:
    return [_method_of_part(name, module, each) for name in PARTS_OF_CLIENT for each in functions_of_part(name, module)]


def _method_of_part(part: str, module: str, function: Function) -> str:
    """Return a method that is a function of a part, whose first argument is the group or the execution."""
    arguments = function.args
    arguments.args[0] = ast.arg("self")
    returns = ast.unparse(function.returns)
    call = f"await of_part({part!r}, {module!r}).{function.name}({', '.join(['self', *passed(arguments)])})"
    body = call if returns == "None" else f"found: {returns} = {call}\n        return found"
    if returns == "AsyncGroup":
        returns, body = "Self", f"{call}\n        return self"
    head = f"    async def {function.name}({ast.unparse(arguments)}) -> {returns}:"
    return f"{head}\n        {docstring(function)}\n        {body}\n"


def _defined(cls: str) -> set[str]:
    """Return the names of the methods that a class of the asynchronous client defines itself."""
    return {
        each.name
        for path in (CLIENT / "asynchronous").glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == cls
        for each in node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _call_source(operation: Operation) -> str:
    path = {name: name for name in operation.arguments}
    arguments = [f"{name}: {PARAMETERS[name].type.__name__}" for name in path]
    lines = [f"{name}: {PARAMETERS[name].description}" for name in path]
    if operation.is_of_last:
        path["execution_id"] = "execution_id or await self.last_begun()"
        arguments = [f"{argument} | None = None" for argument in arguments]
        lines = [f"{name}: An execution; by default the last cell that began." for name in path]
    given: dict[str, list[str]] = {"body": [], "query": []}
    optional = []
    for place, model in (("body", operation.body), ("query", operation.query)):
        for name, (hint, is_required) in (fields_of(model) if model else {}).items():
            field = _field(hint)
            given[place].append(name)
            text, default = type_source(hint), field.keywords.get("default")
            if is_required:
                arguments.append(f"{name}: {text}")
            else:
                text += "" if default is not None or _is_optional(hint) else " | None"
                optional.append(f"{name}: {text} = {default!r}")
            lines.append(_wrapped(f"{name}: {field.description or 'See docs/api.md.'}"))
    returns, result = _answer_source(operation)
    sent = "".join(
        f", {place}={_dict_source(names)}" for place, names in given.items() if names or _has(operation, place)
    )
    names = "".join(f", {value}" for value in path.values())
    call = f"await self._call({operation.name!r}{names}{sent})"
    signature = ", ".join(["self", *arguments, *optional])
    body = f"return {result.format(call)}" if result else call
    if result.startswith("of_part("):  # what is imported late has no type
        body = f"found: {returns} = {result.format(call)}\n        return found"
    return (
        f"    async def {operation.name}({signature}) -> {returns}:\n        {_doc(operation, lines)}\n        {body}\n"
    )


def _has(operation: Operation, place: str) -> bool:
    return place == "body" and operation.body is not None


def _dict_source(names: list[str]) -> str:
    return "{" + ", ".join(f"{name!r}: {name}" for name in names) + "}"


def _doc(operation: Operation, lines: list[str]) -> str:
    parts = [operation.sentence, operation.details]
    parts += ["Args:\n" + textwrap.indent("\n".join(lines), "    ")] if lines else []
    text = "\n\n".join(filter(None, parts))
    return textwrap.indent(f'"""{text}{chr(10) if chr(10) in text else ""}"""', " " * 8).strip()


def _answer_source(operation: Operation) -> tuple[str, str]:
    """Return the type of what a call returns, and its source, with {} for the answer."""
    model, field = operation.answer.model, operation.answer.field
    if model is models.Nothing:
        return "None", ""
    if schema_name(model) in PART_RESULTS:
        result, part = PART_RESULTS[schema_name(model)]
        return result, f"of_part({part!r}).{result}({{}})"
    if schema_name(model) in RESULTS:
        return RESULTS[schema_name(model)], RESULTS[schema_name(model)] + "({})"
    if not field:
        return f"infos.{schema_name(model)}Info", f"infos.{schema_name(model)}Info({{}})"
    hint = fields_of(model)[field][0]
    items = get_args(get_args(hint)[0] if get_origin(hint) is Annotated else hint)
    if get_origin(hint) is list and is_typeddict(items[0]):
        name = f"infos.{schema_name(items[0])}Info"
        return f"ApiList[{name}]", f"listed({name}, ({{}})[{field!r}])"
    return type_source(hint, field, "infos."), f"infos.{schema_name(model)}Info({{}}).{field}"
