"""What the API sends: groups, ranks, executions, views, logs, memory and devices.

The single source of these types: JSON schemas are generated from it, and `make generate` writes
labextension/src/services/protocol.ts. requests.py has what clients send, messages.py the WebSocket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from jupyter_dist.protocol.accelerators import ACCELERATOR_CHOICES, BACKEND_CHOICES
from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.models.sentences import Words
from jupyter_dist.protocol.states import ExecutionState, GroupState, NodeState, RankState

from .memory import CellMemory

if TYPE_CHECKING:
    # Agent and ranks only have the standard library of Python 3.10, which lacks this name; they never use it.
    from typing_extensions import NotRequired


WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
Output = Annotated[dict[str, Any], Field("A notebook output in nbformat.", name="IOutput")]


class ErrorBody(TypedDict):
    """An error: a stable code, one sentence, and a hint on what to do."""

    code: str
    message: str
    message_words: NotRequired[Annotated[list[Words] | None, Field("The message for other languages.")]]
    hint: str
    hint_words: NotRequired[list[Words] | None]


class ErrorAnswer(TypedDict):
    """The body of every error response."""

    error: ErrorBody


# -- groups and ranks -----------------------------------------------------------------------------------


class AcceleratorModel(TypedDict):
    """An accelerator that an environment's torch was built for."""

    name: Annotated[str, Field("The name in start requests and devices.")]
    label: Annotated[str, Field("The display name, the same in every language.")]
    version: str
    backends: Annotated[list[str], Field("Backends for its groups; the first is the default.")]


class EnvironmentModel(TypedDict):
    """A Python in which groups can be started."""

    name: str
    display_name: str
    python: str
    source: Literal["server", "kernelspec"]
    python_version: str | None
    torch_version: str | None
    ipython_version: str | None
    accelerators: list[AcceleratorModel]
    problem: Annotated[str | None, Field("Null, or a sentence on why no group can be started in it.")]
    problem_words: NotRequired[list[Words] | None]


class GroupEnvironment(TypedDict, total=False):
    """The environment that a group was started in; empty if its agent cannot be reached and did not store it."""

    name: str
    display_name: str
    python: str
    python_version: str | None
    torch_version: str | None


class RankExit(TypedDict):
    """How a rank's process ended."""

    code: Annotated[int | None, Field("The exit code; null if a signal ended it, or it never began.")]
    signal: Annotated[int | None, Field("The number of the signal that ended it.")]
    reason: str
    reason_words: NotRequired[list[Words] | None]
    stderr: Annotated[str, Field("The last lines of its stderr.")]
    peak_bytes: NotRequired[Annotated[int | None, Field("Its peak resident memory.")]]


class DebuggerStop(TypedDict):
    """Where JupyterLab's debugger has stopped the cell of a rank."""

    line: int
    file: Annotated[str | None, Field("Null: the running cell. Otherwise a file, or a cell: cell [5].")]


class RankModel(TypedDict):
    """One rank of a group."""

    rank: int
    local_rank: int
    node: NotRequired[Annotated[int | None, Field("On several machines: the node that it runs on.")]]
    pid: int | None
    device: str
    state: RankState
    state_at: Annotated[float, Field("When it entered that state.")]
    execution_id: str | None
    process_group: Annotated[
        Literal["ok", "broken", "none", "lost"],
        Field("After its last cell; `none`: code destroyed it; `lost`: the rank's device is lost."),
    ]
    exit: RankExit | None
    message: str | None
    message_words: NotRequired[list[Words] | None]
    ignores_interrupt: NotRequired[Annotated[bool, Field("Its cell still runs seconds after an interrupt.")]]
    asks: NotRequired[Annotated[bool, Field("Its cell asks for input, and waits.")]]
    stopped_at: NotRequired[Annotated[DebuggerStop, Field("Its cell is stopped in JupyterLab's debugger.")]]
    absences: NotRequired[Annotated[list[list[float]], Field("From when to when it had no process.")]]
    covered: NotRequired[
        Annotated[
            list[list[float]],
            Field("From when to when it has the values of cells that ran in an earlier process: of a save, or copied."),
        ]
    ]
    since: NotRequired[Annotated[float, Field("When a resize added it, with copies of what all others had alike.")]]


class NodeDevice(TypedDict):
    """A device of a node."""

    index: Annotated[int | None, Field("The machine's index; null of a part of a device.")]
    name: str
    uuid: str | None
    memory_bytes: Annotated[int | None, Field("The device's total memory.")]


class NodeModel(TypedDict):
    """One machine of a group over several machines."""

    node: Annotated[int, Field("Its number, torchrun's GROUP_RANK.")]
    host: Annotated[str | None, Field("The name of the machine; null until its agent has joined.")]
    state: Annotated[
        NodeState,
        Field("`waiting`: its agent has not joined. `unreachable`: the link is lost. `gone`: it ended, and its ranks."),
    ]
    message: str | None
    message_words: NotRequired[list[Words] | None]
    ranks: RankSet
    address: Annotated[str | None, Field("The address with which it reaches the head.")]
    interface: Annotated[str | None, Field("The network interface that its ranks use, unless `env` names another one.")]
    devices: NotRequired[
        Annotated[list[NodeDevice], Field("The devices that its engine, or its user, has given it. Of NVIDIA.")]
    ]
    memory_bytes: NotRequired[Annotated[int | None, Field("The memory of the machine.")]]


class AllocationModel(TypedDict):
    """The nodes that a launcher has asked its engine for, for one group."""

    launcher: str
    state: Annotated[
        Literal["queued", "allocated", "not_known", "ended"],
        Field("`not_known`: the engine does not answer; the nodes may run all the same."),
    ]
    text: Annotated[str, Field("A sentence: why it waits, which nodes it has, why it has ended.")]
    text_words: NotRequired[list[Words] | None]
    job_id: str | None
    hosts: list[str]
    eta: Annotated[float | None, Field("When the engine expects it to start.")]
    can_start: Annotated[
        bool, Field("False: it waits in vain, because the engine will not start it as it was submitted.")
    ]
    ends_at: Annotated[float | None, Field("When the engine ends it: its time limit.")]
    warning: Annotated[str | None, Field("What is about to happen, such as the end of the time limit.")]
    warning_words: NotRequired[list[Words] | None]


class EndsWith(TypedDict):
    """What ends a group besides a request."""

    owners: Annotated[list[int], Field("The processes that it ends with, as far as they run.")]
    grace_seconds: Annotated[float, Field("How long it outlives the last of them.")]
    at: Annotated[float | None, Field("When it ends, because the last of them has ended.")]


class ReplaceModel(TypedDict):
    """A replacement of dead ranks."""

    at: Annotated[float, Field("When it began.")]
    ranks: Annotated[RankSet, Field("Which ranks were dead.")]
    state: Annotated[str, Field("The variables that they were to begin with.")]
    save: Annotated[str | None, Field("The name of the save.")]
    seconds: Annotated[float | None, Field("How long it took; null while it is under way.")]
    error: Annotated[ErrorBody | None, Field("Why they could not be started, or do not have these variables.")]
    names: Annotated[list[str], Field("The names that they were given.")]
    again: Annotated[list[str], Field("Sentences on missing names, which cells must make again.")]


class GroupModel(TypedDict):
    """A group of ranks."""

    id: str
    name: str
    state: GroupState
    environment: GroupEnvironment
    accelerator: Annotated[str, Field(schema={"enum": list(ACCELERATOR_CHOICES[1:])})]
    backend: Annotated[str, Field(schema={"enum": list(BACKEND_CHOICES[1:])})]
    devices: list[int]
    world_size: int
    cwd: str
    started_at: float | None
    ready_seconds: float | None
    generation: Annotated[int, Field("Counts restarts.")]
    replaced: NotRequired[
        Annotated[ReplaceModel | None, Field("The last replacement of dead ranks, or the one under way.")]
    ]
    note: Annotated[str | None, Field("A sentence for the user.")]
    note_words: NotRequired[list[Words] | None]
    error: Annotated[ErrorBody | None, Field("Why the start failed or the group died.")]
    lease_seconds: float | None
    ends_with: NotRequired[Annotated[EndsWith | None, Field("The processes that it ends with; null: it outlives all.")]]
    protocol: Annotated[int, Field("The protocol version of its agent.")]
    ranks: list[RankModel]
    launcher: NotRequired[Annotated[str, Field("What starts its node agents; `local`: there are none.")]]
    nodes: NotRequired[
        Annotated[list[NodeModel], Field("Its machines; empty for a group on the server's machine alone.")]
    ]
    spare_nodes: NotRequired[
        Annotated[list[NodeModel], Field("Machines without ranks, since the group was resized: it can grow there.")]
    ]
    join: NotRequired[
        Annotated[str | None, Field("The command to run on each machine that is missing; null if none is.")]
    ]
    allocation: NotRequired[Annotated[AllocationModel | None, Field("Of its nodes; null without an engine.")]]
    parts: NotRequired[Annotated[dict[str, Any], Field("What features add, by their names.")]]
    running: Annotated[list[str], Field("Executions.")]
    queued: Annotated[list[str], Field("Executions.")]


# -- cells ----------------------------------------------------------------------------------------------


class RanksStatus(TypedDict):
    """The status of an execution on some ranks."""

    ranks: RankSet
    status: ExecutionState
    seconds: Annotated[float | None, Field("Of the slowest rank; null until they have ended.")]


VerdictOutcome = Literal["open", "refuted", "not_refuted"]


class VerdictRecord(TypedDict):
    """A verdict on a cell, and what happened afterwards."""

    execution_id: str
    kind: Annotated[str, Field("`cannot_end`, or the kind of a cause that a part has found.")]
    message: str
    message_words: NotRequired[Annotated[list[Words] | None, Field("The message for other languages.")]]
    shown_at: float
    outcome: Annotated[
        VerdictOutcome,
        Field(
            "`refuted`: the cell ended or went on by itself, or the cause was gone at once. `open`: it still holds. "
            "`not_refuted`: anything else, as after an interrupt."
        ),
    ]
    witnesses: Annotated[list[str], Field("What was known of each rank, or measured, when it was shown.")]
    witnesses_words: NotRequired[Annotated[list[list[Words] | None], Field("Of each of these sentences.")]]


class Verdicts(TypedDict):
    """The verdicts on the cells of a group since its agent was started, and how many were wrong."""

    shown: Annotated[int, Field("How many verdicts there were.")]
    refuted: int
    verdicts: Annotated[list[VerdictRecord], Field("The last 50, oldest first.")]


class StackFrame(TypedDict):
    """A line that a rank is at, or a call that led there."""

    file: str
    name: Annotated[str, Field("The file's name for users: cell [5], model.py.")]
    line: int
    function: str
    code: str
    is_library: Annotated[bool, Field("Whether it is neither a cell nor a module of the user.")]


class RankStack(TypedDict):
    """What ranks do that have the same stack."""

    ranks: RankSet
    state: Literal["waits", "runs", "idle", "dead", "unknown"]
    call: Annotated[str | None, Field("The collective that they wait in.")]
    call_words: NotRequired[list[Words] | None]
    frames: Annotated[list[StackFrame], Field("From the cell inwards, at most 50; empty for idle ranks.")]


class Stacks(TypedDict):
    """The Python stacks of the main threads of all ranks."""

    stacks: list[RankStack]


class InputPrompt(TypedDict):
    """What the code of some ranks asks for; it waits for the answer."""

    ranks: Annotated[RankSet, Field("The ranks that ask the same.")]
    prompt: str
    password: Annotated[bool, Field("Whether the answer must not be shown.")]
    since: Annotated[float, Field("When the first of them asked.")]
    seq: Annotated[int, Field("Counts questions: an answer with this number answers none that came later.")]


class InputAnswered(TypedDict):
    """Which ranks took an answer."""

    answered: RankSet
    not_asking: Annotated[RankSet, Field("Ranks that were named and ask for nothing, or for something else by now.")]


class CommTaken(TypedDict):
    """A message to a widget was taken."""

    waits: Annotated[bool, Field("Whether its rank runs a cell, and handles the message afterwards.")]


class ExecutionModel(TypedDict):
    """One cell that is queued, running or done on a set of ranks."""

    id: str
    group: str
    ranks: RankSet
    state: ExecutionState
    cell_id: str | None
    notebook: str | None
    owner: str | None
    execution_count: int | None
    queued_at: float
    started_at: float | None
    ended_at: float | None
    statuses: list[RanksStatus]
    rank_seconds: Annotated[dict[str, float], Field("By rank, for ranks that have ended.")]
    rank_memory: NotRequired[Annotated[dict[str, CellMemory], Field("By rank; none of little change.")]]
    num_ranks: NotRequired[Annotated[int, Field("How many ranks the group had when it began.")]]
    silent: bool
    error: ErrorBody | None
    code: NotRequired[Annotated[str | None, Field("Not in lists.")]]
    line: NotRequired[Annotated[str | None, Field("In lists, instead of the code: the first line.")]]
    code_checksum: NotRequired[Annotated[str, Field("CRC-32 of its code in UTF-8, in hexadecimal.")]]
    waits_for: NotRequired[
        Annotated[str | None, Field("What a queued cell waits for: a running cell, or a cell queued before it.")]
    ]
    warning: NotRequired[Annotated[str | None, Field("It calls what all ranks must call, and was sent to some.")]]
    notices: NotRequired[
        Annotated[list[str], Field("What is about to happen to the group's nodes now, and which are lost.")]
    ]
    undone_at: NotRequired[Annotated[float, Field("When it was undone: it does not count any more.")]]
    asking: NotRequired[
        Annotated[list[InputPrompt], Field("The questions of its ranks, while they wait for an answer.")]
    ]


class CodeLine(TypedDict):
    """A line of the user's code."""

    file: str
    name: Annotated[str, Field("The file's name for users: cell [5], model.py.")]
    line: int
    code: str


class CellFindingModel(TypedDict):
    """What was found about a cell, in one sentence, with what proves it and what to do."""

    ranks: Annotated[RankSet, Field("The ranks that it is about.")]
    message: Annotated[str, Field("What was seen, on which ranks and where, and what follows from it.")]
    message_words: NotRequired[Annotated[list[Words] | None, Field("The message for other languages.")]]
    evidence: Annotated[list[str], Field("What was measured or compared, a sentence each.")]
    evidence_words: NotRequired[Annotated[list[list[Words] | None], Field("Of each sentence of the evidence.")]]
    advice: Annotated[str, Field("What to do.")]
    advice_words: NotRequired[list[Words] | None]
    since: Annotated[float, Field("When it was found first, in seconds since the epoch.")]


class ElidedModel(TypedDict):
    """How much is left out of a view; it is in the log."""

    bytes: int
    lines: int


class ViewItem(TypedDict):
    """An output of some ranks, or what was left out."""

    id: int
    seq: int
    ranks: RankSet
    output: NotRequired[Output]
    elided: NotRequired[ElidedModel]


class ViewChange(ViewItem):
    """An item in a `view` message."""

    after: NotRequired[Annotated[int | None, Field("The id of the item before it; null if it is the first.")]]
    append: NotRequired[Annotated[str, Field("Text to add to the item's stream, instead of `output`.")]]


class ViewModel(TypedDict):
    """An execution and the folded output of its ranks."""

    execution: ExecutionModel
    seq: int
    items: list[ViewItem]


METADATA_KEY = "jupyter_dist"  # ours in metadata of outputs, cells and requests
RANKS_MIME = "application/vnd.jupyter-dist.ranks+json"
PART_MIME = "application/vnd.jupyter-dist.part+json"  # of an output that a bundle shows (docs/decisions/0019)


class SavedGroup(TypedDict):
    """The group that a saved cell ran on."""

    id: str
    name: str
    world_size: int


class SavedItem(TypedDict):
    """An item of a saved cell."""

    ranks: RankSet
    output: NotRequired[Output]
    elided: NotRequired[ElidedModel]
    part: NotRequired[
        Annotated[int, Field("Instead of `output`: the cell's output so many after the bundle's has it.")]
    ]


class RanksBundle(TypedDict):
    """The MIME bundle of a rank cell."""

    version: Literal[1]
    group: SavedGroup
    execution_id: str
    ranks: RankSet
    state: ExecutionState
    statuses: list[RanksStatus]
    started_at: float | None
    ended_at: float | None
    items: list[SavedItem]
    error: NotRequired[Annotated[ErrorBody | None, Field("Why it was lost or aborted.")]]
    code_checksum: NotRequired[Annotated[str, Field("Of the cell as it ran, if it ran without magics.")]]


class LogRecord(TypedDict):
    """One entry of a rank's log; its kind decides which of the last fields it has."""

    seq: int
    at: float
    rank: int
    execution_id: str | None
    execution_count: int | None
    kind: Literal["stream", "output", "begin", "end", "note"]
    name: NotRequired[Annotated[Literal["stdout", "stderr"], Field("Of a `stream`.")]]
    text: NotRequired[Annotated[str, Field("Of a `stream` or a `note`.")]]
    output: NotRequired[Annotated[Output, Field("Of an `output`.")]]
    code: NotRequired[Annotated[str, Field("Of a `begin`.")]]
    notebook: NotRequired[Annotated[str | None, Field("Of a `begin`.")]]
    cell_id: NotRequired[Annotated[str | None, Field("Of a `begin`.")]]
    status: NotRequired[Annotated[ExecutionState, Field("Of an `end`.")]]
    seconds: NotRequired[Annotated[float | None, Field("Of an `end`.")]]


class LogPage(TypedDict):
    """A part of a rank's log."""

    records: list[LogRecord]
    seq: Annotated[int, Field("Of the last record.")]
    first: Annotated[int | None, Field("Of the first record; pass it as `before` to get older ones.")]
    more: Annotated[bool, Field("Whether there are older records.")]


# -- answers ------------------------------------------------------------------------------------------


class Versions(TypedDict):
    """The versions of the server."""

    jupyter_dist: str
    protocol: int
    api: int


class EnvironmentsModel(TypedDict):
    """All environments, and the default for a start."""

    environments: list[EnvironmentModel]
    default: str


class Nothing(TypedDict):
    """An answer without fields."""


class Groups(TypedDict):
    """All groups, oldest first."""

    groups: list[GroupModel]


class Shutdown(TypedDict):
    """A sentence for each process that had to be killed."""

    killed: list[str]


class Interrupted(TypedDict):
    """The ranks that were running a cell."""

    interrupted: RankSet
    idle: RankSet
    unresponsive: NotRequired[RankSet]


class FreedBytes(TypedDict):
    """The freed bytes, by rank."""

    freed_bytes: dict[str, int]


class ExecutionsModel(TypedDict):
    """The executions of a group, newest last."""

    executions: list[ExecutionModel]
