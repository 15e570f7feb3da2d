"""The answers of the API about the server's machine, launchers, memory and past cells.

See models.py for what is generated from these types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.models.sentences import Words

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class DeviceProcess(TypedDict):
    """A process on a device; the processes of other users are one entry without a name."""

    pid: int | None
    name: str | None
    memory_bytes: int | None
    group: str | None
    rank: int | None
    mine: bool


class Device(TypedDict):
    """An accelerator; null where it does not report a value."""

    accelerator: str
    index: int
    name: str | None
    uuid: str | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    utilization_percent: float | None
    temperature_celsius: float | None
    power_watts: float | None
    power_limit_watts: float | None
    processes: list[DeviceProcess]


class HostModel(TypedDict):
    """The machine that the server runs on."""

    cpu_percent: float
    cpu_count: int
    load_1m: float
    memory_used_bytes: int
    memory_total_bytes: int


class Devices(TypedDict):
    """Devices and host."""

    devices: list[Device]
    host: HostModel
    processes_hidden: Annotated[bool, Field("Whether other users have processes on the devices.")]
    problems: Annotated[list[str], Field("A sentence for each kind of device that could not be read.")]


class PreparedProcess(TypedDict):
    """A process that is kept to make the next start faster; it ends when memory is short."""

    what: Annotated[str, Field("`forkserver`, or `agent`: an agent that waits for its group, with its zygote.")]
    pid: int
    memory_bytes: Annotated[int, Field("Memory that n processes share counts as an n-th for each of them.")]


class Prepared(TypedDict):
    """What is kept to make the next start faster."""

    processes: list[PreparedProcess]


class RankMemory(TypedDict):
    """The memory of one rank; null where its device has no such value."""

    rank: int
    resident_bytes: int
    allocated_bytes: int | None
    reserved_bytes: int | None
    peak_bytes: int | None
    device_used_bytes: int | None
    cpu_percent: float


class RanksSeen(TypedDict):
    """Where some ranks were that ran a cell."""

    ranks: RankSet
    execution_id: str
    place: Annotated[str, Field("The user's line; empty where there is none.")]
    call: Annotated[str | None, Field("The collective that they waited in: its name, process group, number, shape.")]


class MemorySample(TypedDict):
    """The memory of all ranks of a group at one moment."""

    at: float
    ranks: list[RankMemory]
    seen: NotRequired[
        Annotated[list[RanksSeen], Field("If the agent has looked since the last sample, every 3 s while a cell runs.")]
    ]
    seen_at: NotRequired[float]


class SamplesModel(TypedDict):
    """The last minutes of a group's memory, newest last."""

    samples: list[MemorySample]


class RankSamples(TypedDict):
    """The memory and processor of one rank: a value for each of the times, null where there was none."""

    rank: int
    resident_bytes: list[int | None]
    allocated_bytes: Annotated[
        list[int | None] | None, Field("Null where the ranks have no device, as in the fields below.")
    ]
    reserved_bytes: list[int | None] | None
    peak_bytes: list[int | None] | None
    device_used_bytes: list[int | None] | None
    cpu_percent: list[float | None]


class SeenAt(TypedDict):
    """What the agent saw at a look."""

    at: float
    seen: list[RanksSeen]


class SampleGap(TypedDict):
    """A time without samples, because no client followed the memory."""

    begin: float
    end: float


class DeviceSamples(TypedDict):
    """The use of one of the server's devices."""

    accelerator: str
    index: int
    times: list[float]
    utilization_percent: list[float | None]
    power_watts: list[float | None]


class PastSamples(TypedDict):
    """A page of a group's samples of the last hour, oldest first."""

    times: list[float]
    ranks: list[RankSamples]
    seen: list[SeenAt]
    gaps: list[SampleGap]
    devices: Annotated[list[DeviceSamples], Field("Of groups on one machine. Read while a client followed them.")]
    more: Annotated[bool, Field("Whether newer ones follow: ask again with `since`, the last of the times.")]


class HistoryCell(TypedDict):
    """A cell that ran on ranks of a group."""

    execution_id: str
    execution_count: int | None
    ranks: RankSet
    notebook: str | None
    cell_id: str | None
    code: str


class HistoryModel(TypedDict):
    """The cells of all clients that ran on a group, oldest first."""

    cells: list[HistoryCell]


class LauncherOption(TypedDict):
    """An option of a launcher."""

    name: str
    label: str
    label_words: NotRequired[Annotated[list[Words] | None, Field("The label for other languages.")]]
    help: str
    help_words: NotRequired[list[Words] | None]
    kind: Literal["text", "integer", "flag", "words", "object", "script"]
    choices: Annotated[list[str], Field("Values that are known to work; empty: anything.")]
    common: Annotated[bool, Field("Whether most users need it: forms show it first.")]
    advanced: Annotated[bool, Field("Whether few users need it: forms show it under *Advanced*.")]
    default: Annotated[str, Field("The administrator's value for groups that do not set it; may be empty.")]
    fixed: Annotated[bool, Field("Whether only the administrator sets it.")]


class LauncherStatus(TypedDict):
    """A launcher and its status."""

    name: Annotated[str, Field("The name in start requests.")]
    label: str
    usable: bool
    text: Annotated[str, Field("What is free, or why it cannot be used here.")]
    text_words: NotRequired[list[Words] | None]
    options: list[LauncherOption]


class StartOptionRow(TypedDict):
    """An option of a start that a form can show by its row alone."""

    name: Annotated[str, Field("The name in start requests.")]
    part: Annotated[str, Field("The part that has it; empty: none.")]
    label: str
    label_words: NotRequired[list[Words] | None]
    help: str
    help_words: NotRequired[list[Words] | None]
    kind: Annotated[Literal["text", "integer", "number", "flag", "words"], Field("`words`: a list of texts.")]
    choices: Annotated[list[str], Field("All values of a text; empty: anything.")]
    minimum: float | None
    maximum: float | None
    max_length: Annotated[int | None, Field("Of a text, or of each of the words, in characters.")]
    default: Annotated[Any, Field("What a start has that leaves it out, as the server is configured; null: nothing.")]


class StartOptionRows(TypedDict):
    """The options of a start that a form can show by their rows alone."""

    options: list[StartOptionRow]


class Preset(TypedDict):
    """Named options of a start."""

    name: Annotated[str, Field("The name in start requests: `preset`.")]
    label: str
    description: str
    options: Annotated[dict[str, Any], Field("Fields of a start request.")]
    problem: Annotated[str | None, Field("Why it cannot be used.")]
    problem_words: NotRequired[list[Words] | None]


class PresetsModel(TypedDict):
    """All presets."""

    presets: list[Preset]


class LaunchersModel(TypedDict):
    """All launchers."""

    launchers: list[LauncherStatus]
