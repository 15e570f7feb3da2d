"""Make the page's API client: a method for each operation. Run by `make generate`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.operations import ANSWER_SECONDS, OPERATIONS, PARAMETERS, Operation
from jupyter_dist.protocol.schemas import fields_of, schema_name

API = Path(__file__).parents[1] / "labextension" / "src" / "services" / "rest" / "api.ts"

HEAD = """\
/**
 * A method for each operation of the API. Made by `make generate` from jupyter_dist/protocol/operations: edit that.
 */
import type {{
  {imports}
}} from '../protocol';

/** A request to the server. */
export interface IApiRequest {{
  readonly verb: 'GET' | 'POST' | 'DELETE';
  /** The segments of the path below the API's root. */
  readonly path: readonly (string | number)[];
  readonly query?: object;
  readonly body?: object;
  /** Whether a retry with the same key is not carried out twice. */
  readonly isKeyed?: boolean;
  /** How long the answer may take, besides what the query asks to wait; by default, and at least, ANSWER_SECONDS. */
  readonly answerSeconds?: number;
}}

/** How long the answer to most requests may take. */
export const ANSWER_SECONDS = {answer_seconds:g};

/** How long a change is requested whose answer is lost, and with which key: the server does not carry it out twice. */
export interface IRetries {{
  readonly key: string;
  readonly forMs: number;
  /** Whether it was sent before, with the same key, and not answered. */
  readonly isUnanswered: boolean;
}}

/** The operations of the API. Promises reject with a DistError. */
export abstract class Api {{
  /** Make a request; resolves with the answer. */
  protected abstract ask<T>(request: IApiRequest, retries?: IRetries): Promise<T>;
  /** The URL of a file that can be downloaded. */
  protected abstract urlOf(...path: (string | number)[]): string;
"""
NO_METHOD = {"channel"}  # the WebSocket
SCRIPT_TYPES = {str: "string", int: "number"}


def api_source() -> str:
    """Return the source of api.ts."""
    operations = [operation for operation in OPERATIONS if operation.name not in NO_METHOD]
    models = {schema_name(model) for each in operations for model in _models(each)}
    imports = ",\n  ".join(f"I{name}" for name in sorted(models))
    head = HEAD.format(imports=imports, answer_seconds=ANSWER_SECONDS)
    return head + "".join(_method(operation) for operation in operations) + "}\n"


def _models(operation: Operation) -> list[Any]:
    answer = operation.answer.model
    answers = [answer] if isinstance(answer, type) and answer is not dict else []
    contents = [model for model in (operation.body, operation.query) if model is not None and fields_of(model)]
    return answers + contents


def _method(operation: Operation) -> str:
    path = ", ".join(_segment(part) for part in operation.path.split("/") if part)
    arguments = [f"{_camel(name)}: {SCRIPT_TYPES[PARAMETERS[name].type]}" for name in operation.parameters]
    sentence = " ".join(filter(None, (operation.sentence, operation.details)))
    comment = "\n  /** " + " ".join(sentence.split()) + " */\n"
    if operation.is_file:
        head = f"  {_camel(operation.name)}Url({', '.join(arguments)}): string {{\n"
        return f"{comment}{head}    return this.urlOf({path});\n  }}\n"
    fields = [f"verb: '{operation.verb.upper()}'", f"path: [{path}]"]
    for kind, model in (("query", operation.query), ("body", operation.body)):
        if model is None:
            continue
        given = fields_of(model)
        if given:
            is_required = any(is_needed for _, is_needed in given.values())
            arguments.append(f"{kind}: I{schema_name(model)}{'' if is_required else ' = {}'}")
        fields.append(kind if given else f"{kind}: {{}}")
    retries = ""
    if operation.is_keyed:
        fields.append("isKeyed: true")
        arguments.append("retries?: IRetries")
        retries = ", retries"
    if (operation.answer_seconds or 0) > ANSWER_SECONDS:
        fields.append(f"answerSeconds: {operation.answer_seconds:g}")
    model = operation.answer.model
    answer = f"I{schema_name(model)}" if model in _models(operation) else "object"
    head = f"  {_camel(operation.name)}({', '.join(arguments)}): Promise<{answer}> {{\n"
    return f"{comment}{head}    return this.ask({{ {', '.join(fields)} }}{retries});\n  }}\n"


def _segment(part: str) -> str:
    return _camel(part[1:-1]) if part.startswith("{") else f"'{part}'"


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
