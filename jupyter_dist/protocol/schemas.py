"""JSON schemas, for validation and for the OpenAPI document, made of the types in this folder."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from typing_extensions import NotRequired, get_type_hints

from jupyter_dist.protocol.models import differences, machine, memory, models, sentences
from jupyter_dist.protocol.wire import messages, requests
from jupyter_dist.protocol.wire.specs import GroupOptions

from .field import Field, OptionRow, rows
from .operations import of_execution, of_group, of_rank, of_server
from .parts import declared_in_api, find_modules

Schema = dict[str, Any]

ANY_OBJECT: Schema = {"type": "object"}

# Types that only one operation uses may stand beside it.
PART_MODULES = [module for name in ("api", "models") for module in find_modules(name).modules.values()]
WITH_OPERATIONS = (of_server, of_group, of_rank, of_execution, *PART_MODULES)

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def schema_name(model: Any) -> str:
    """Return a TypedDict's name in the API: without the suffix Model, which distinguishes it from Python's classes."""
    return str(model.__name__).removesuffix("Model")


def ref(model: Any) -> Schema:
    """Return a reference to a type of `models`, for answers."""
    return {"$ref": f"#/components/schemas/{schema_name(model)}"}


# Types that are dataclasses of rows.
_OF_ROWS = (requests.StartOptions, requests.StartRequest)
# What parts add to.
_OF_PARTS = {
    models.ExecutionModel: "EXECUTION_FIELDS",
    models.GroupModel: "GROUP_FIELDS",
    models.RanksBundle: "BUNDLE_FIELDS",
    requests.RunOptions: "RUN_OPTIONS",
    requests.RunRequest: "RUN_OPTIONS",
    requests.ReplaceRequest: "REPLACE_OPTIONS",
}


def fields_of(model: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field of a TypedDict, and whether the field is required."""
    if model in _OF_ROWS:
        return {row.name: (Annotated[row.sent, row.option], False) for row in (*rows(model), *start_rows())}
    # `__required_keys__` does not include NotRequired in string annotations.
    hints = get_type_hints(model, localns={"NotRequired": NotRequired}, include_extras=True)
    optional: Any = NotRequired
    fields = {
        name: (get_args(hint)[0], False) if get_origin(hint) is optional else (hint, model.__total__)
        for name, hint in hints.items()
    }
    if (of_parts := _OF_PARTS.get(model)) is not None:
        fields.update({name: (hint, False) for name, hint in declared_in_api(of_parts).items()})
    if model in (requests.ReplaceRequest, models.ReplaceModel):
        states, (hint, is_required) = replace_states(), fields["state"]
        text = f"{get_args(hint)[1].description} {_explained(states)}"
        fields["state"] = (Annotated[Literal[tuple(states)], Field(text)], is_required)
    return fields


def _explained(words: Mapping[str, str]) -> str:
    return " ".join(f"`{word}`: {meaning}." for word, meaning in words.items())


def path_fields(model: Any) -> list[str]:
    """Return the fields of a request that are paths on the server's machine."""
    return [name for name, (hint, _) in fields_of(model).items() if getattr(get_args(hint)[-1], "is_path", False)]


def replace_states() -> dict[str, str]:
    """Return the words for `state` of a replacement, with their meanings: of the core, and of parts."""
    return {**requests.REPLACE_STATES, **declared_in_api("REPLACE_STATES")}


def replace_options() -> dict[str, Any]:
    """Return the types of the options that parts add to a replacement of ranks."""
    return declared_in_api("REPLACE_OPTIONS")


def beginnings() -> dict[str, tuple[str, Any]]:
    """Return the arguments of `start` for what new ranks begin with, each with its part and type."""
    modules = find_modules("api").modules.items()
    return {name: (part, hint) for part, module in modules for name, hint in getattr(module, "BEGINNINGS", {}).items()}


def run_options_of_parts() -> dict[str, Schema]:
    """Return the options that parts add to runs, which `RUN_OPTIONS` of their modules `api` declares."""
    return {name: schema_of(hint) for name, hint in declared_in_api("RUN_OPTIONS").items()}


def options_by_part() -> dict[str, Any]:
    """Return the dataclasses with the options of groups: `GROUP_OPTIONS` of each part, by its name, and the core's."""
    modules = find_modules("api").modules.items()
    of_parts = {name: module.GROUP_OPTIONS for name, module in modules if hasattr(module, "GROUP_OPTIONS")}
    return {"": GroupOptions, **of_parts}


def group_options() -> tuple[Any, ...]:
    """Return the dataclasses with the options of groups: of the core, and of each part."""
    return tuple(options_by_part().values())


def start_rows() -> list[OptionRow]:
    """Return the rows of options of groups that are options of a start, too."""
    return [row for kind in group_options() for row in rows(kind) if row.option.description]


def form_rows() -> list[tuple[str, OptionRow]]:
    """Return the options of a start that forms show by their rows alone, each with its part.

    They are the options of groups, and of the others each with a label.
    """
    of_groups = [(part, row) for part, kind in options_by_part().items() for row in rows(kind)]
    own = [("", row) for row in rows(requests.StartOptions) if row.option.label]
    return [*((part, row) for part, row in of_groups if row.option.description), *own]


def object_schema(model: Any, *, closed: bool = False) -> Schema:
    """Return the schema of a TypedDict; `closed`: refuse unknown fields before anything else is checked."""
    fields = fields_of(model)
    return {
        "type": "object",
        **({"additionalProperties": False} if closed else {"description": (model.__doc__ or "").strip()}),
        "required": [name for name, (_, is_required) in fields.items() if is_required],
        "properties": {name: schema_of(hint) for name, (hint, _) in fields.items()},
    }


def schema_of(hint: Any) -> Schema:
    """Return the schema of a type."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        field = extras[-1]
        assert isinstance(field, Field)
        schema = {**(field.schema or schema_of(inner)), **field.keywords}
        if field.description and "$ref" not in schema:
            schema["description"] = field.description
        return schema
    if is_typeddict(hint):
        return object_schema(hint, closed=True) if hint.__module__ == requests.__name__ else ref(hint)
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    return _composed(get_origin(hint), get_args(hint))


def _composed(origin: Any, inner: tuple[Any, ...]) -> Schema:
    if origin is Literal:
        return {"const": inner[0]} if len(inner) == 1 else {"enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is dict:
        return ANY_OBJECT if inner[1] is Any else {**ANY_OBJECT, "additionalProperties": schema_of(inner[1])}
    assert origin in (Union, types.UnionType), origin
    options = [schema_of(option) for option in inner]
    if len(options) == 2 and options[1] == {"type": "null"} and isinstance(options[0].get("type"), str):
        return {**options[0], "type": [options[0]["type"], "null"]}
    return {"anyOf": options}


@functools.cache
def body_schema(model: Any) -> Schema:
    """Return the schema of the body of a request, or of its query."""
    return object_schema(model, closed=True)


@functools.cache
def components() -> dict[str, Schema]:
    """Return every type of `models` and `messages`, by name."""
    named = {
        schema_name(model): object_schema(model)
        for module in (sentences, models, machine, memory, differences, *WITH_OPERATIONS, messages)
        for model in types_in(module)
    }
    return {**named, "ServerMessage": schema_of(messages.ServerMessage)}


def types_in(module: Any) -> list[Any]:
    """Return the types of one of these modules, in order."""
    own = (found for found in vars(module).values() if getattr(found, "__module__", "") == module.__name__)
    return [found for found in own if is_typeddict(found) or found in _OF_ROWS]
