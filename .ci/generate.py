"""Make the extension's types and API client, and the blocking client. Run by `make generate`."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from jupyter_dist.protocol import states
from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models import differences, machine, memory, models, sentences
from jupyter_dist.protocol.operations import BUNDLE_FIELDS
from jupyter_dist.protocol.parts import find_modules
from jupyter_dist.protocol.schemas import WITH_OPERATIONS, fields_of, schema_name, types_in
from jupyter_dist.protocol.wire import messages, queries, requests

sys.path.append(str(Path(__file__).parent))
from generate_answers import answer_sources
from generate_api import API, api_source
from generate_client import WRAPPED, blocking_source

ROOT = Path(__file__).parents[1]

TYPESCRIPT_HEAD = """\
/**
 * What travels between the server and its clients. Made by `make generate` from jupyter_dist/protocol: edit that.
 *
 * Field names are the wire's own (snake_case). Times are seconds since the epoch.
 */
/* eslint-disable */
import type { IOutput } from '@jupyterlab/nbformat';

/** A set of ranks as a canonical expression: "0-3,7". */
export type RankSet = string;
"""
NAMED_LITERALS = {name: getattr(states, name) for name in ("GroupState", "RankState", "ExecutionState")}
NAMED_UNIONS = {
    "Topic": messages.Topic,
    "TopicMessage": messages.TopicMessage,
    "ServerMessage": messages.ServerMessage,
}


def files() -> dict[Path, str]:
    """What is generated, by path."""
    if problems := find_modules("client").problems:
        sys.exit("\n".join(problems))
    answers = answer_sources()
    return {
        ROOT / "labextension" / "src" / "services" / "protocol.ts": typescript(),
        API: api_source(),
        **answers,
        WRAPPED: blocking_source(answers),
        **page_parts(),
    }


def page_parts() -> dict[Path, str]:
    """The lists of the parts of the page, which are folders: plugins, what is shown without a server, styles."""
    page = ROOT / "labextension"
    styles = sorted(path.parent.name for path in page.glob("src/parts/*/style.css"))
    sheet = "".join(f"@import url('../src/parts/{name}/style.css');\n" for name in styles)
    plugins = _listed("plugin", "partPlugins: JupyterFrontEndPlugin<unknown>[]", after=".flat()")  # some export several
    saved = _listed(
        "saved", "savedParts: AddPart[]", "type AddPart = (places: ISavedPlaces, trans: TranslationBundle) => void;\n\n"
    )
    with_tokens = sorted(path.parent.name for path in page.glob("src/parts/*/tokens.ts"))
    tokens = "".join(f"export * from './{name}/tokens';\n" for name in with_tokens) or "export {};\n"
    return {
        page / "src" / "parts" / "index.ts": (
            "/** The parts of the page. Made by `make generate` from the folders beside this file. */\n"
            f"import type {{ JupyterFrontEndPlugin }} from '@jupyterlab/application';\n{plugins}"
        ),
        page / "src" / "parts" / "saved.ts": (
            "/** What parts add to outputs where there is no server. Made by `make generate`. */\n"
            "import type { TranslationBundle } from '@jupyterlab/translation';\n"
            f"import type {{ ISavedPlaces }} from '../tokens';\n{saved}"
        ),
        page / "src" / "parts" / "tokens.ts": (
            "/** The tokens of parts, for other extensions. Made by `make generate`. */\n" + tokens
        ),
        page / "style" / "parts.css": f"/* Made by `make generate` from the parts of the page. */\n{sheet}",
    }


def _listed(module: str, declared: str, before: str = "", after: str = "") -> str:
    """The imports of a module of parts, and the list of what they export, as prettier would break it."""
    names = sorted(path.parent.name for path in (ROOT / "labextension").glob(f"src/parts/*/{module}.ts*"))
    imports = "".join(f"import {name} from './{name}/{module}';\n" for name in names)
    line = f"export const {declared} = [{', '.join(names)}]{after};\n"
    listed = line if len(line) <= 121 else f"export const {declared} = [\n  {f',{chr(10)}  '.join(names)}\n]{after};\n"
    return f"{imports}\n{before}{listed}"


def typescript() -> str:
    """Every type as TypeScript."""
    parts = [TYPESCRIPT_HEAD]
    parts += [f"export type {name} = {_literal(hint)};\n" for name, hint in NAMED_LITERALS.items()]
    final = [state for state in get_args(states.ExecutionState) if state in states.FINAL_EXECUTION_STATES]
    parts.append(
        "/** The states that an execution never leaves. */\n"
        f"export const FINAL_STATES: ReadonlySet<ExecutionState> = new Set([{', '.join(map(repr, final))}] as const);\n"
    )
    parts.append(
        "/** The MIME type of what a rank cell saves in the notebook. */\n"
        f"export const RANKS_MIME = '{models.RANKS_MIME}';\n"
    )
    answers = (sentences, models, machine, memory, differences)
    modules = (*answers, requests, queries, *WITH_OPERATIONS, messages)
    parts += [_interface(model) for module in modules for model in types_in(module)]
    parts += [f"export type {name} = {_union(get_args(hint))};\n" for name, hint in NAMED_UNIONS.items()]
    parts.append(
        "/** What parts add to the bundle of a running cell, from its execution. */\n"
        "export const BUNDLE_FIELDS: readonly (keyof IExecution & keyof IRanksBundle)[] = "
        f"[{', '.join(map(repr, BUNDLE_FIELDS))}];\n"
    )
    return "\n".join(parts)


def _interface(model: Any) -> str:
    lines = [f"/** {model.__doc__} */", f"export interface I{schema_name(model)} {{"]
    for name, (hint, is_required) in fields_of(model).items():
        field = get_args(hint)[-1] if get_origin(hint) is Annotated else Field()
        if field.description and not field.name:
            lines.append(f"  /** {field.description} */")
        lines.append(f"  {name}{'' if is_required else '?'}: {_type(hint)};")
    return "\n".join([*lines, "}"]) + "\n"


def _type(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        inner, *fields = get_args(hint)
        return next((field.name for field in fields if field.name), "") or _type(inner)
    plain = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "unknown"}
    if hint in plain:
        return plain[hint]
    return f"I{schema_name(hint)}" if is_typeddict(hint) else _composed(hint, get_origin(hint), get_args(hint))


def _composed(hint: Any, origin: Any, inner: tuple[Any, ...]) -> str:
    if origin is Literal:
        return next((name for name, named in NAMED_LITERALS.items() if named == hint), _literal(hint))
    if origin is list:
        item = _type(inner[0])
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is dict:
        return f"Record<string, {_type(inner[1])}>"
    assert origin in (Union, types.UnionType), hint
    return _union(inner)


def _union(options: tuple[Any, ...]) -> str:
    return " | ".join(_type(option) for option in options)


def _literal(hint: Any) -> str:
    return " | ".join(repr(value) for value in get_args(hint))


def main() -> None:
    """Write the files; with `--check` name those that are out of date, and fail."""
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text() != text}
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit(f"Run `make generate`: {', '.join(str(path.relative_to(ROOT)) for path in stale)} out of date.")
        return
    for path, text in stale.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
