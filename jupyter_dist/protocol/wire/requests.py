"""The bodies of requests, with their limits.

See models.py for what is generated from these types. Bodies with unknown fields are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from jupyter_dist.protocol.accelerators import ACCELERATOR_CHOICES, BACKEND_CHOICES
from jupyter_dist.protocol.field import Field, OptionField
from jupyter_dist.protocol.ranks import MAX_EXPRESSION_LENGTH, MAX_RANKS
from jupyter_dist.protocol.secrets import Secrets

from .road import MAX_COMM_BYTES, MAX_INPUT_CHARS
from .specs import LOCAL, MAX_GRACE_SECONDS, MAX_SEQ

if TYPE_CHECKING:
    from typing_extensions import NotRequired

MAX_CODE_BYTES = 16 << 20
MAX_ASKED_CHARS = 1 << 20  # of code at a cursor
# JSON writes some characters with more bytes than UTF-8.
MAX_CODE_BODY_BYTES = MAX_CODE_BYTES + (4 << 20)
MAX_ASKED_BODY_BYTES = 2 * MAX_ASKED_CHARS
MAX_CPU_RANKS = 64  # of a node
MAX_NODES = 1024
MAX_GROUP_RANKS = 4096
MAX_PATH = 4096
CHUNK_BYTES = 4 << 20  # of a file on its way to another machine
MAX_VARIABLES = 500
MAX_SAVE_NAME = 100
MAX_WORDS = 1000
MAX_WORD = 128 << 10
MAX_ENVIRON_CHARS = 1 << 20  # Linux takes about 2 MiB

INDEX = {"type": "integer", "minimum": 0, "maximum": MAX_RANKS}
_COUNT = {"type": "integer", "minimum": -1, "maximum": MAX_RANKS}
# Not a single `anyOf`: it would report every wrong item of a list before it refuses the first.
_DEVICES = {
    "if": {"type": "array"},
    "then": {"type": "array", "items": INDEX, "maxItems": MAX_RANKS},
    "else": {"anyOf": [_COUNT, {"const": "all"}]},
}
_ON_A_NODE = {"type": "integer", "minimum": 1, "maximum": MAX_CPU_RANKS}
_RANKS_PER_NODE = {
    "if": {"type": "array"},
    "then": {"type": "array", "items": _ON_A_NODE, "minItems": 1, "maxItems": MAX_NODES},
    "else": _ON_A_NODE,
}
_VARIABLES = {
    "type": "object",
    "maxProperties": MAX_VARIABLES,
    "propertyNames": {"type": "string", "maxLength": 200},
    "additionalProperties": {"type": "string", "maxLength": 32 << 10},
}


def json_value(depth: int, longest: int) -> dict[str, Any]:
    """Allow any JSON: its receiver reports in a sentence what is wrong with it."""
    text = {"type": "string", "maxLength": longest}
    number = {"type": "number", "minimum": -MAX_SEQ, "maximum": MAX_SEQ}
    kinds: list[dict[str, Any]] = [text, number, {"type": "boolean"}, {"type": "null"}]
    if depth:
        inner = json_value(depth - 1, longest)
        names = {"type": "string", "maxLength": 1000}
        kinds.append({"type": "array", "maxItems": 200, "items": inner})
        kinds.append({"type": "object", "maxProperties": 500, "propertyNames": names, "additionalProperties": inner})
    return {"anyOf": kinds}


_LAUNCHER_OPTIONS = {
    "type": "object",
    "maxProperties": 50,
    "propertyNames": {"type": "string", "maxLength": 100},
    "additionalProperties": json_value(3, 4000),
}
_PID = {"type": "integer", "minimum": 1, "maximum": 1 << 22}
_TICKS = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_GRACE = {"type": "number", "minimum": 0, "maximum": MAX_GRACE_SECONDS}
_OWNER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["pid", "started", "grace_seconds"],
    "properties": {"pid": _PID, "started": _TICKS, "grace_seconds": _GRACE},
}

Expression = Annotated[
    str,
    Field(
        "A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.",
        maxLength=MAX_EXPRESSION_LENGTH,
        default="all",
    ),
]


def _words(longest: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "maxLength": longest}, "maxItems": most}


def _words_by_rank() -> dict[str, Any]:
    return {
        "type": "object",
        "maxProperties": MAX_RANKS,
        "propertyNames": {"type": "string", "maxLength": 7},
        "additionalProperties": {"type": "string", "maxLength": MAX_PATH},
    }


def _one_of(names: tuple[str, ...]) -> OptionField:
    return OptionField(start=f"One of {', '.join(names)}.", schema={"enum": list(names)})


class OwnerRequest(TypedDict):
    """The body of POST .../owners: a process that the group ends with."""

    pid: Annotated[int, Field("A running process on the server's machine.", schema=_PID)]
    started: Annotated[int, Field("When it started, in clock ticks: field 22 of /proc/PID/stat.", schema=_TICKS)]
    grace_seconds: Annotated[float, Field("How long the group outlives the last such process.", schema=_GRACE)]


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """How a group is started: keyword arguments of `start` in Python. More are rows of GroupOptions and of parts."""

    environment: Annotated[
        str | None, OptionField(start="The name of one of the environments that are listed.", maxLength=300)
    ] = None
    python: Annotated[
        str | None,
        OptionField(
            start="The absolute path of an interpreter, instead of an environment.",
            label="Interpreter",
            maxLength=MAX_PATH,
        ),
    ] = None
    accelerator: Annotated[str, _one_of(ACCELERATOR_CHOICES)] = "auto"
    devices: Annotated[
        list[int] | int | Literal["all"] | None,
        OptionField(start='Devices: a list of indices, a count, -1 or "all".', schema=_DEVICES),
    ] = None
    num_ranks: Annotated[
        int | None,
        OptionField(
            start=f"CPU ranks, 1 to {MAX_CPU_RANKS}; on devices their number. On several nodes all nodes' ranks.",
            minimum=1,
            maximum=MAX_GROUP_RANKS,
        ),
    ] = None
    preset: Annotated[
        str | None,
        OptionField(
            start="A preset, by name: its options are used where the request leaves them out (`jupyter dist presets`).",
            metavar="NAME",
            maxLength=60,
        ),
    ] = None
    launcher: Annotated[
        str,
        OptionField(
            start="What starts a node agent on each machine of the group. `local`, the default: nothing, ranks run on "
            "the server's machine. `external`: you do, with the command in `join` of the group. "
            "Others: see `jupyter dist launchers`.",
            maxLength=100,
        ),
    ] = LOCAL
    launcher_options: Annotated[
        dict[str, Any],
        OptionField(
            start="Options of the launcher by name, as `jupyter dist launchers` lists them.",
            metavar="NAME=VALUE",
            schema=_LAUNCHER_OPTIONS,
        ),
    ] = field(default_factory=dict)
    num_nodes: Annotated[
        int | None, OptionField(start="How many machines the ranks run on.", minimum=1, maximum=MAX_NODES)
    ] = None
    ranks_per_node: Annotated[
        list[int] | int | None,
        OptionField(
            start=f"Ranks on each node, 1 to {MAX_CPU_RANKS}; or a list with the number of each node, such as [4, 8].",
            metavar="N",
            schema=_RANKS_PER_NODE,
        ),
    ] = None
    backend: Annotated[str, _one_of(BACKEND_CHOICES)] = "auto"
    cwd: Annotated[
        str | None,
        OptionField(start="A directory, absolute or relative to the server's root.", maxLength=MAX_PATH, is_path=True),
    ] = None
    notebook: Annotated[
        str | None, OptionField(start="A notebook's path; its folder is the default cwd.", maxLength=MAX_PATH)
    ] = None
    env: Annotated[
        Secrets,
        OptionField(start="Extra environment variables: an object of strings.", sent=dict[str, str], schema=_VARIABLES),
    ] = field(default_factory=Secrets)


@dataclass(frozen=True, kw_only=True)
class StartRequest(StartOptions):
    """The body of POST /groups; all fields are optional."""

    name: Annotated[
        str | None, OptionField(start="A name for the group, unique among running groups.", maxLength=200)
    ] = None
    environ: Annotated[
        Secrets | str | None,
        OptionField(
            start="The environment of the group's processes, on top of the server's: NAME=value, each followed by a"
            " NUL.",
            sent=str,
            maxLength=MAX_ENVIRON_CHARS,
        ),
    ] = None
    owner: Annotated[
        dict[str, int | float] | None,
        OptionField(start="The process that the group ends with; default: it outlives all.", schema=_OWNER),
    ] = None


class StartAgainRequest(TypedDict, total=False):
    """The body of POST .../start_again: variables of which no process knows the values any more."""

    env: Annotated[
        dict[str, str], Field("Variables of the start, in place of known and unknown ones.", schema=_VARIABLES)
    ]
    environ: Annotated[
        str,
        Field(
            "As `environ` of a start; used if the start had one whose values are not known.",
            maxLength=MAX_ENVIRON_CHARS,
        ),
    ]


class RankCall(TypedDict):
    """What ranks do instead of running code, with objects in files of this user (the clients' push, pull, launch)."""

    do: Annotated[
        Literal["set", "get", "call", "script"],
        Field(
            "`set`: set the variables in a file. `get`: write the values of `names` to a file. "
            "`call`: call the function in a file, write its result to another. `script`: run a script."
        ),
    ]
    files: NotRequired[
        Annotated[
            dict[str, str],
            Field("The file to read, by rank; or one for `all`.", schema=_words_by_rank()),
        ]
    ]
    folders: NotRequired[
        Annotated[
            list[str],
            Field(
                "Where a rank writes a file that has its number as name: in the first folder with space.",
                schema=_words(MAX_PATH, 8),
            ),
        ]
    ]
    as_data: NotRequired[
        Annotated[
            bool,
            Field("For `get` and `call`: write data, which runs no code where it is read, or refuse what is none."),
        ]
    ]
    names: NotRequired[
        Annotated[list[str], Field("For `get`: variables or other expressions.", schema=_words(MAX_WORD, MAX_WORDS))]
    ]
    argv: NotRequired[
        Annotated[list[str], Field("For `script`: its name and its arguments.", schema=_words(MAX_WORD, MAX_WORDS))]
    ]
    path: NotRequired[Annotated[str, Field("For `script`: its absolute path.", maxLength=MAX_PATH)]]
    module: NotRequired[Annotated[str, Field("For `script`: a module to run instead of a path.", maxLength=MAX_PATH)]]


class RunOptions(TypedDict):
    """How a cell is run: keyword arguments of `run` and `submit` in Python. Parts have more."""

    cell_id: NotRequired[Annotated[str | None, Field("The notebook cell's id.", maxLength=200)]]
    notebook: NotRequired[Annotated[str | None, Field("The notebook's path.", maxLength=MAX_PATH)]]
    stop_on_error: NotRequired[
        Annotated[bool, Field("Whether a failure aborts the cells of the same notebook queued after it.")]
    ]
    after: NotRequired[
        Annotated[
            str | None,
            Field("An execution: if it has failed by now, this one is aborted as if queued after it.", maxLength=100),
        ]
    ]
    silent: NotRequired[Annotated[bool, Field("Whether to leave it out of the history.")]]
    execution_count: NotRequired[
        Annotated[
            int | None,
            Field(
                "The number beside the cell, if its client counts cells as a kernel does. By default the ranks count.",
                minimum=1,
                maximum=MAX_SEQ - 1,
            ),
        ]
    ]
    ask_first: NotRequired[
        Annotated[
            bool,
            Field("Whether to refuse it (`needs_all_ranks`) if it calls what all ranks must call, and is for some."),
        ]
    ]
    allow_stdin: NotRequired[
        Annotated[
            bool,
            Field(
                "Whether the client answers what its ranks ask for (`asking` of the execution). By default `input()` "
                "raises an error at once."
            ),
        ]
    ]
    call: NotRequired[
        Annotated[
            RankCall,
            Field("A call to carry out instead of running `code`, which then describes it."),
        ]
    ]
    empty_cache: NotRequired[
        Annotated[
            bool, Field("Whether ranks collect garbage and empty the device cache if the cell changed their memory.")
        ]
    ]


class RunRequest(RunOptions):
    """The body of POST .../executions."""

    code: Annotated[str, Field("The code to run: a string of at most 16 MiB.", maxLength=MAX_CODE_BYTES)]
    ranks: NotRequired[Expression]


class CommRequest(TypedDict):
    """The body of POST .../ranks/{rank}/comms: a message to a widget."""

    kind: Literal["comm_open", "comm_msg", "comm_close"]
    content: Annotated[
        str,
        Field(
            "In JSON: `comm_id`, `data`, and if needed `target_name` (of `comm_open`), `metadata`, `buffers`"
            " (in base64) and `msg_id`, which names the message: `comm_done` has it when the code has handled it.",
            maxLength=MAX_COMM_BYTES,
        ),
    ]


class InputRequest(TypedDict):
    """The body of POST .../input: the answer to what ranks ask for."""

    text: Annotated[
        str | None,
        Field(
            f"A line, at most {MAX_INPUT_CHARS} characters; null: there is no more input.", maxLength=MAX_INPUT_CHARS
        ),
    ]
    ranks: NotRequired[
        Annotated[
            str,
            Field("Which ranks; by default all that ask, if they ask the same.", maxLength=MAX_EXPRESSION_LENGTH),
        ]
    ]
    seq: NotRequired[
        Annotated[
            int,
            Field("The `seq` of the question; later questions are not answered then.", minimum=0, maximum=MAX_SEQ),
        ]
    ]


# What new ranks begin with; parts have more.
REPLACE_STATES = {"empty": "nothing", "copy": "copies of what the other ranks have alike, of the lowest one"}


class ReplaceRequest(TypedDict, total=False):
    """The body of POST .../replace: the variables that new ranks begin with."""

    state: Annotated[str, Field("The variables that they begin with.")]
    others: Annotated[
        Literal["leave", "copy"],
        Field(
            "For `copy`: whether names are left out that the other ranks do not have alike (the default), or copied, "
            "too. With a single other rank nothing can be compared: `copy` is required."
        ),
    ]


class RanksRequest(TypedDict, total=False):
    """A body that selects ranks; default: all."""

    ranks: Expression


class EmptyRequest(TypedDict):
    """A body without fields."""
