"""Reference pages made from the code: a line `<!-- generated: NAME -->` in a page becomes what the code says now."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

from jupyter_dist import __version__
from jupyter_dist.cli.command import Command
from jupyter_dist.cli.listing import COMMANDS
from jupyter_dist.magics.distmagics import DistMagics
from jupyter_dist.magics.vocabularies.timeline import TimelineMagics
from jupyter_dist.parts.clusters.kubernetes.launcher import KubernetesLauncher
from jupyter_dist.parts.clusters.queues.gridengine import GridEngineLauncher
from jupyter_dist.parts.clusters.queues.lsf import LsfLauncher
from jupyter_dist.parts.clusters.queues.pbs import PbsLauncher
from jupyter_dist.parts.clusters.ray.launcher import RayLauncher
from jupyter_dist.parts.clusters.slurm.launcher import SlurmLauncher
from jupyter_dist.parts.ddip.dipmagics import DipMagics
from jupyter_dist.parts.mcp.command import McpCommand
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.schemas import beginnings, object_schema, replace_states, schema_name, schema_of
from jupyter_dist.protocol.wire import requests
from jupyter_dist.server.extension import DistApp
from jupyter_dist.server.http.base import STATUS_OF_CODE
from jupyter_dist.server.http.openapi import build_openapi
from jupyter_dist.server.http.routes import PREFIX
from jupyter_dist.server.launchers.common.optionset import ExternalLauncher, LauncherOptions
from jupyter_dist.server.launchers.launcher import Launcher
from jupyter_dist.server.launchers.options import Option
from jupyter_dist.server.launchers.processes import ProcessLauncher

ROOT = Path(__file__).parents[2]
Lines = Iterator[str]

NO_SESSION = SimpleNamespace(followers=[])
# As wide as a page shows without scrolling; argparse asks the environment.
HELP_COLUMNS = "88"


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", lambda _app, _page, source: source.__setitem__(0, expand(source[0])))
    app.connect("missing-reference", link_model)
    app.connect("build-finished", write_openapi)
    app.add_transform(CodesAsIds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def expand(text: str) -> str:
    """The page with what is generated in place."""
    return re.sub(r"^<!-- generated: (\w+) -->$", lambda match: "\n".join(GENERATORS[match[1]]()), text, flags=re.M)


def write_openapi(app: Sphinx, error: Exception | None) -> None:
    """Put the document of the API beside the pages."""
    if error is None and app.builder.format == "html":
        Path(app.outdir, "openapi.json").write_text(json.dumps(openapi(), indent=1))


class CodesAsIds(SphinxTransform):
    """Sections that are named after an error code have it as their id: docutils would write hyphens for underscores."""

    default_priority = 900

    def apply(self, **_: Any) -> None:
        """Called by Sphinx for each page."""
        if self.env.docname == "troubleshooting":
            for section in self.document.findall(nodes.section):
                title = section.next_node(nodes.title)
                if title is not None and re.fullmatch(r"[a-z]+(_[a-z]+)*", title.astext()):
                    section["ids"] = [title.astext(), *(name for name in section["ids"] if name != title.astext())]


def link_model(app: Sphinx, _env: Any, node: Any, text: Any) -> Any:
    """Types of the API in signatures: to the object on the HTTP page; those that travel in no answer have no entry."""
    module, _, name = node.get("reftarget", "").rpartition(".")
    source = {own.__name__: own for own in (models, machine, requests)}.get(module)
    if source is None or not hasattr(source, name):
        return None
    if (schema := schema_name(getattr(source, name))) not in openapi()["components"]["schemas"]:
        return text
    return make_refnode(app.builder, node["refdoc"], "reference/http", f"schema-{schema.lower()}", text)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Lines:
    """A table, if there are rows."""
    found = [tuple(cell.replace("|", r"\|").replace("\n", " ") for cell in row) for row in rows]
    if found:
        yield f"| {' | '.join(head)} |"
        yield f"|{'---|' * len(head)}"
        yield from (f"| {' | '.join(row)} |" for row in found)
        yield ""


def traits() -> Lines:
    """Settings of the server extension and of the command line."""
    for cls in (DistApp, Command, McpCommand):
        own = [trait for name, trait in cls.class_own_traits(config=True).items()]
        yield from table(
            ("trait", "type", "default", "meaning"),
            (
                (f"`{cls.__name__}.{trait.name}`", _trait_type(trait), f"`{trait.default()!r}`", trait.help)
                for trait in own
            ),
        )


LAUNCHERS = (
    *(SlurmLauncher, PbsLauncher, LsfLauncher, GridEngineLauncher, RayLauncher, KubernetesLauncher),
    *(ProcessLauncher, ExternalLauncher),
)


def launchers() -> Lines:
    """Settings and options of each launcher."""
    for cls in LAUNCHERS:
        common = {option.name for option in cls.common_options}
        own = [option for option in cls.all_options() if option.name not in common]
        yield from (f"## {cls.name}", "", f"{cls.__doc__} Settings: `{cls.__name__}`.", "")
        yield from table(("setting", "default", "meaning"), _settings_of(cls, set(LauncherOptions.class_own_traits())))
        yield from table(("option", "kind", "meaning"), map(_option_row, own))
    yield from ("## Settings of all launchers", "")
    yield from table(("setting", "default", "meaning"), _settings_of(LauncherOptions, set()))
    yield from ("## Options of all launchers", "", "`external` has the first of these, up to `cpu_binding`.", "")
    yield from table(("option", "kind", "meaning"), map(_option_row, Launcher.common_options))


def _settings_of(cls: Any, without: set[str]) -> Iterator[tuple[str, ...]]:
    for name, trait in cls.class_traits(config=True).items():
        if name not in without and trait.this_class.__module__.startswith("jupyter_dist"):
            yield f"`{name}`", f"`{trait.default()!r}`", trait.help


def _option_row(option: Option) -> tuple[str, ...]:
    return f"`{option.name}`", option.kind, option.help


def _trait_type(trait: Any) -> str:
    bounds = {"≥": getattr(trait, "min", None), "≤": getattr(trait, "max", None)}
    values = ", ".join(f"`{value!r}`" for value in getattr(trait, "values", None) or ())
    limits = ", ".join(f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None and isfinite(bound))
    return " ".join(filter(None, [type(trait).__name__, values or limits]))


def settings() -> Lines:
    """Settings of the JupyterLab extension, from the schemas that its settings editor reads."""
    for path in sorted((ROOT / "labextension" / "schema").glob("*.json")):
        schema = json.loads(path.read_text())
        if schema["properties"] or "jupyter.lab.shortcuts" in schema:
            yield from (f"### {schema['title']}", "", f"{schema['description']} (`jupyter-dist:{path.stem}`)", "")
        yield from table(
            ("setting", "type", "default", "meaning"),
            (
                (
                    f"`{name}`",
                    _bounded(field),
                    f"`{json.dumps(field['default'])}`",
                    f"{field['title']}. {field['description']}",
                )
                for name, field in schema["properties"].items()
            ),
        )
        shortcuts = schema.get("jupyter.lab.shortcuts", ())
        keys = ((f"`{each['command']}`", "+".join(each["keys"][0].split())) for each in shortcuts)
        yield from table(("command", "keys"), ((command, f"{{kbd}}`{pressed}`") for command, pressed in keys))


def _bounded(field: dict[str, Any]) -> str:
    if "minimum" not in field:
        return str(field["type"])
    bounds = f"{field['minimum']} to {field['maximum']}" if "maximum" in field else f"at least {field['minimum']}"
    return f"{field['type']}, {bounds}"


def commands() -> Lines:
    """Each `jupyter dist` command with what its --help prints."""
    for name, command in COMMANDS.items():
        with _help_columns():
            parser = command.load()().parser()
            yield from (
                f"### jupyter dist {name}",
                "",
                command.text,
                "",
                "```text",
                parser.format_help().rstrip(),
                "```",
                "",
            )


def magics() -> Lines:
    """Each magic with its docstring, and its options where it has any."""
    for cls in (DistMagics, TimelineMagics, DipMagics):
        # Of `__init__`, not of the class: some Pythons (3.11.2) see the signature of traitlets there.
        _, *arguments = inspect.signature(cls.__init__).parameters
        instance = cls(*(NO_SESSION if name == "session" else None for name in arguments))
        for kind, sign in (("line", "%"), ("cell", "%%")):
            for name, method in cls.magics[kind].items():
                bound = getattr(instance, method if isinstance(method, str) else method.__name__)
                yield from (f"### {sign}{name}", "", getattr(bound, "summary", None) or inspect.getdoc(bound) or "", "")
                if options := getattr(bound, "help_text", ""):
                    yield from ("```text", options, "```", "")


@contextlib.contextmanager
def _help_columns() -> Iterator[None]:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = HELP_COLUMNS
    try:
        yield
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def openapi() -> dict[str, Any]:
    """The document that a server gives at openapi.json."""
    return build_openapi(f"/{PREFIX}", __version__)


def operations() -> Lines:
    """Every verb of every route."""
    for path, item in openapi()["paths"].items():
        for verb, operation in item.items():
            if verb != "parameters":
                yield from _operation(verb, path, operation, item.get("parameters", []))


def _operation(verb: str, path: str, operation: dict[str, Any], in_path: list[dict[str, Any]]) -> Lines:
    yield from (f"### {verb.upper()} {path}", "", f"{operation['summary']}. Right: `{operation['x-right']}`.", "")
    yield from ((operation["description"], "") if "description" in operation else ())
    yield from table(
        ("parameter", "in", "type", "meaning"),
        (
            (f"`{each['name']}`", each["in"], _type(each["schema"]), _meaning(each) or _meaning(each["schema"]))
            for each in [*in_path, *operation.get("parameters", [])]
        ),
    )
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield from _fields(_resolved(content["schema"]))
    yield from table(
        ("status", "answer"),
        ((status, _answer(response)) for status, response in sorted(operation["responses"].items())),
    )


def _answer(response: dict[str, Any]) -> str:
    types = [_type(content["schema"]) for content in response.get("content", {}).values()]
    text = re.sub(r"\b[a-z]+(?:_[a-z]+)*\b", _code_link, response["description"])
    return " ".join([text.rstrip("."), *(f"({each})" for each in types if "Error" not in each)])


def _code_link(match: re.Match[str]) -> str:
    if match[0] not in STATUS_OF_CODE:
        return match[0]
    return f"[`{match[0]}`](../troubleshooting.md#{match[0]})"


def schemas() -> Lines:
    """The objects that operations take and give."""
    for name, schema in openapi()["components"]["schemas"].items():
        yield from (f"(schema-{name.lower()})=", f"### {name}", "", _meaning(schema), "")
        yield from _fields(schema)
        if "properties" not in schema:
            yield from (_type(schema), "")


def _fields(schema: dict[str, Any]) -> Lines:
    required = schema.get("required", [])
    yield from table(
        ("field", "type", "meaning"),
        (
            (f"`{name}`{'' if name in required else ' (optional)'}", _type(field), _meaning(field))
            for name, field in schema.get("properties", {}).items()
        ),
    )


def start_options() -> Lines:
    """The keyword arguments of `start` in Python."""
    options = object_schema(requests.StartOptions, closed=True)
    more = {name: schema_of(hint) for name, (_, hint) in beginnings().items()}
    yield from _fields({**options, "properties": {**options["properties"], **more}})


def states_of_replaced() -> Lines:
    """What ranks can begin with that replace dead ones."""
    rows = ((f"`{name}`", text) for name, text in replace_states().items())
    yield from table(("state", "new ranks begin with"), rows)


def run_options() -> Lines:
    """The keyword arguments of `run` and `submit` in Python."""
    yield from _fields(object_schema(requests.RunOptions, closed=True))


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return openapi()["components"]["schemas"][name] if name else schema


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#schema-{name.lower()})"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    either = (
        schema.get("anyOf") or schema.get("oneOf") or ([schema["then"], schema["else"]] if "then" in schema else [])
    )
    if isinstance(schema.get("type"), list):
        either = [{**schema, "type": each} for each in schema["type"]]
    return " or ".join(map(_type, either)) or _container(schema)


def _container(schema: dict[str, Any]) -> str:
    items, values = schema.get("items"), schema.get("additionalProperties")
    if items:
        return f"list of {_type(items)}"
    return f"object of {_type(values)}" if isinstance(values, dict) else str(schema.get("type", "any"))


def _meaning(schema: dict[str, Any]) -> str:
    return " ".join(str(schema.get("description", "")).split())


def tokens() -> Lines:
    """What another JupyterLab extension can require, as `tokens.ts` declares it."""
    source = (ROOT / "labextension" / "src" / "tokens.ts").read_text()
    whole = {match[2]: match[0] for match in re.finditer(INTERFACE, source, re.S | re.M)}
    for name, token, text in re.findall(r"export const (\w+) = new Token<\w+>\(\s*'([^']+)',\s*'([^']+)'", source):
        yield from (f"### {name}", "", f"{text} Token: `{token}`.", "")
        if name in whole:
            yield from ("```ts", whole.pop(name), "```", "")
    yield from ("### Other types", "", "```ts", "\n\n".join(whole.values()), "```", "")


INTERFACE = r"(/\*\*(?:(?!\*/).)*\*/\n)?^export interface (\w+)[^{]*\{.*?^\}"


def lab_commands() -> Lines:
    """The ids of commands, with what tokens.ts says of them."""
    source = (ROOT / "labextension" / "src" / "tokens.ts").read_text()
    block = source[source.index("export const CommandIDs") :]
    found = re.findall(r"/\*\* (.*?) \*/\s*(\w+): '([^']+)'", block[: block.index("} as const")], re.S)
    yield from table(("command", "what it does"), ((f"`{command}`", text) for text, _, command in found))


def statuses() -> Lines:
    """Which error code is answered with which HTTP status."""
    by_status: dict[int, list[str]] = {}
    for code, status in STATUS_OF_CODE.items():
        by_status.setdefault(status, []).append(f"[`{code}`](troubleshooting.md#{code})")
    yield from table(
        ("status", "codes"), ((str(status), ", ".join(codes)) for status, codes in sorted(by_status.items()))
    )


GENERATORS: dict[str, Callable[[], Lines]] = {
    each.__name__: each
    for each in (
        traits,
        launchers,
        settings,
        commands,
        magics,
        operations,
        schemas,
        start_options,
        states_of_replaced,
        run_options,
        tokens,
        lab_commands,
        statuses,
    )
}
