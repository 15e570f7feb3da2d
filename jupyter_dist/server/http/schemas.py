"""JSON schemas of what travels over HTTP (docs/api.md, Objects). Bodies are validated with these very schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from jupyter_dist.protocol.accelerators import ACCELERATOR_CHOICES, BACKEND_CHOICES
from jupyter_dist.protocol.ranks import MAX_EXPRESSION_LENGTH, MAX_RANKS
from jupyter_dist.protocol.states import ExecutionState, GroupState, RankState
from jupyter_dist.server.groups.group import MAX_CODE_BYTES
from jupyter_dist.server.groups.resolve import MAX_CPU_RANKS

MAX_PATH = 4096
MAX_VARIABLES = 500
MAX_COMPLETE_CHARS = 1 << 20
# JSON writes some characters with more bytes than they have.
MAX_EXECUTE_BYTES = MAX_CODE_BYTES + (4 << 20)
MAX_COMPLETE_BYTES = 2 * MAX_COMPLETE_CHARS

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
ANY_OBJECT: Schema = {"type": "object"}
RANKS: Schema = {
    "type": "string",
    "maxLength": MAX_EXPRESSION_LENGTH,
    "description": "A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.",
}


def ref(name: str) -> Schema:
    """A component."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(items: Schema) -> Schema:
    """An array."""
    return {"type": "array", "items": items}


def or_null(schema: Schema) -> Schema:
    """The schema, or null."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object of ours, as we send it."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def body(fields: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """An object that we are sent: what is not known is refused, before anything else is looked at."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": fields,
    }


def one_of(names: Sequence[str]) -> Schema:
    """One of some names."""
    return {"enum": list(names), "description": f"One of {', '.join(names)}."}


def text(max_length: int = 200) -> Schema:
    """A string that we are sent."""
    return {**STRING, "maxLength": max_length}


START_BODY = body(
    {
        "name": {**text(), "description": "A name for the group, unique among those that live."},
        "environment": {**text(300), "description": "The name of an environment of GET /environments."},
        "python": {**text(MAX_PATH), "description": "The absolute path of an interpreter, instead of an environment."},
        "accelerator": one_of(ACCELERATOR_CHOICES),
        "devices": {
            # Not one `anyOf`: its validation names every wrong item of a list before it refuses the first.
            "if": {"type": "array"},
            "then": {**list_of({**INTEGER, "minimum": 0, "maximum": MAX_RANKS}), "maxItems": MAX_RANKS},
            "else": {"anyOf": [{**INTEGER, "minimum": -1, "maximum": MAX_RANKS}, {"const": "all"}]},
            "description": 'Devices: a list of indices, a count, -1 or "all".',
        },
        "num_ranks": {
            **INTEGER,
            "minimum": 1,
            "maximum": MAX_CPU_RANKS,
            "description": f"CPU ranks, 1 to {MAX_CPU_RANKS}; on devices their number.",
        },
        "backend": one_of(BACKEND_CHOICES),
        "cwd": {**text(MAX_PATH), "description": "A directory, absolute or relative to the server's root."},
        "notebook": {**text(MAX_PATH), "description": "A notebook's path: its folder is the default cwd."},
        "env": {
            "type": "object",
            "maxProperties": MAX_VARIABLES,
            "propertyNames": text(),
            "additionalProperties": text(32 << 10),
            "description": "Extra environment variables: an object of strings.",
        },
    }
)

EXECUTE_BODY = body(
    {
        "code": {**text(MAX_CODE_BYTES), "description": "What is run: a string of at most 16 MiB."},
        "ranks": RANKS,
        "cell_id": {**or_null(STRING), "maxLength": 200, "description": "The notebook cell's id."},
        "notebook": {**or_null(STRING), "maxLength": 4096, "description": "The notebook's path."},
        "stop_on_error": {
            **BOOLEAN,
            "description": "Whether its failure aborts what the same notebook has queued behind it.",
        },
        "after": {
            **or_null(STRING),
            "maxLength": 100,
            "description": "An execution: if it has failed by now, this one is aborted as if queued behind it.",
        },
        "silent": {**BOOLEAN, "description": "Whether it is left out of the history."},
        "empty_cache": {
            **BOOLEAN,
            "description": "Whether ranks collect garbage and empty the device cache when the cell changed its memory.",
        },
    },
    required=("code",),
)

COMPLETE_BODY = body(
    {
        "code": {**text(MAX_COMPLETE_CHARS), "description": "The cell, at most 1 MiB."},
        "cursor_pos": {
            **or_null(INTEGER),
            "minimum": 0,
            "maximum": MAX_COMPLETE_CHARS,
            "description": "The cursor, in characters; the end.",
        },
    },
    required=("code",),
)

COMPLETION = record({"matches": list_of(STRING), "cursor_start": INTEGER, "cursor_end": INTEGER})

RANKS_BODY = body({"ranks": RANKS})

ERROR = record({"error": record({"code": STRING, "message": STRING, "hint": STRING})})

RANK = record(
    {
        "rank": INTEGER,
        "local_rank": INTEGER,
        "pid": or_null(INTEGER),
        "device": STRING,
        "state": {"enum": list(get_args(RankState))},
        "state_at": NUMBER,
        "execution_id": or_null(STRING),
        "process_group": {"enum": ["ok", "broken", "none"]},
        "exit": or_null(ANY_OBJECT),
        "message": or_null(STRING),
    },
    {"ignores_interrupt": BOOLEAN},
)

GROUP = record(
    {
        "id": STRING,
        "name": STRING,
        "state": {"enum": list(get_args(GroupState))},
        "environment": ANY_OBJECT,
        "accelerator": {"enum": list(ACCELERATOR_CHOICES[1:])},
        "backend": {"enum": list(BACKEND_CHOICES[1:])},
        "devices": list_of(INTEGER),
        "world_size": INTEGER,
        "cwd": STRING,
        "started_at": or_null(NUMBER),
        "ready_seconds": or_null(NUMBER),
        "generation": INTEGER,
        "note": or_null(STRING),
        "error": or_null(ANY_OBJECT),
        "lease_seconds": or_null(NUMBER),
        "protocol": INTEGER,
        "ranks": list_of(ref("Rank")),
        "running": list_of(STRING),
        "queued": list_of(STRING),
    }
)

_STATUS = {"enum": list(get_args(ExecutionState))}

EXECUTION = record(
    {
        "id": STRING,
        "group": STRING,
        "ranks": STRING,
        "state": _STATUS,
        "cell_id": or_null(STRING),
        "notebook": or_null(STRING),
        "owner": or_null(STRING),
        "execution_count": or_null(INTEGER),
        "queued_at": NUMBER,
        "started_at": or_null(NUMBER),
        "ended_at": or_null(NUMBER),
        "statuses": list_of(record({"ranks": STRING, "status": _STATUS, "seconds": or_null(NUMBER)})),
        "rank_seconds": {"type": "object", "additionalProperties": NUMBER},
        "silent": BOOLEAN,
        "error": or_null(ANY_OBJECT),
    },
    {"code": or_null(STRING), "line": or_null(STRING), "waits_for": or_null(STRING)},
)

ITEM = record(
    {"id": INTEGER, "seq": INTEGER, "ranks": STRING},
    {"output": ANY_OBJECT, "elided": record({"bytes": INTEGER, "lines": INTEGER})},
)

VIEW = record({"execution": ref("Execution"), "seq": INTEGER, "items": list_of(ref("Item"))})

ENVIRONMENT = record(
    {
        "name": STRING,
        "display_name": STRING,
        "python": STRING,
        "source": {"enum": ["server", "kernelspec"]},
        "python_version": or_null(STRING),
        "torch_version": or_null(STRING),
        "ipython_version": or_null(STRING),
        "accelerators": list_of(
            record({"name": STRING, "label": STRING, "version": STRING, "backends": list_of(STRING)})
        ),
        "problem": or_null(STRING),
    }
)

DEVICE = record(
    {
        "accelerator": STRING,
        "index": INTEGER,
        "name": or_null(STRING),
        "uuid": or_null(STRING),
        "memory_used_bytes": or_null(INTEGER),
        "memory_total_bytes": or_null(INTEGER),
        "utilization_percent": or_null(NUMBER),
        "temperature_celsius": or_null(NUMBER),
        "power_watts": or_null(NUMBER),
        "power_limit_watts": or_null(NUMBER),
        "processes": list_of(ANY_OBJECT),
    }
)

HOST = record(
    {
        "cpu_percent": NUMBER,
        "cpu_count": INTEGER,
        "load_1m": NUMBER,
        "memory_used_bytes": INTEGER,
        "memory_total_bytes": INTEGER,
    }
)

MEMORY_SAMPLE = record({"at": NUMBER, "ranks": list_of(ANY_OBJECT)})

LOG_RECORD = record(
    {
        "seq": INTEGER,
        "at": NUMBER,
        "rank": INTEGER,
        "execution_id": or_null(STRING),
        "execution_count": or_null(INTEGER),
        "kind": {"enum": ["stream", "output", "begin", "end", "note"]},
    }
)

COMPONENTS = {
    "Error": ERROR,
    "Rank": RANK,
    "Group": GROUP,
    "Execution": EXECUTION,
    "Item": ITEM,
    "View": VIEW,
    "Environment": ENVIRONMENT,
    "Device": DEVICE,
    "Host": HOST,
    "MemorySample": MEMORY_SAMPLE,
    "LogRecord": LOG_RECORD,
}
