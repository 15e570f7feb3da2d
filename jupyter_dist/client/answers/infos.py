"""The API's answers as classes. Made by `make generate` from jupyter_dist/protocol: edit that.

A class has the name of the schema with `Info` behind it.
"""

from __future__ import annotations

from typing import Any, Literal

from jupyter_dist.protocol.states import ExecutionState, GroupState, NodeState, RankState

from .base import ApiObject


class AcceleratorInfo(ApiObject):
    """An accelerator that an environment's torch was built for.

    Attributes:
        name: The name in start requests and devices.
        label: The display name, the same in every language.
        backends: Backends for its groups; the first is the default.
    """

    name: str
    label: str
    version: str
    backends: list[str]


class AllocationInfo(ApiObject):
    """The nodes that a launcher has asked its engine for, for one group.

    Attributes:
        state: `not_known`: the engine does not answer; the nodes may run all the same.
        text: A sentence: why it waits, which nodes it has, why it has ended.
        eta: When the engine expects it to start.
        can_start: False: it waits in vain, because the engine will not start it as it was submitted.
        ends_at: When the engine ends it: its time limit.
        warning: What is about to happen, such as the end of the time limit.
    """

    launcher: str
    state: Literal["queued", "allocated", "not_known", "ended"]
    text: str
    text_words: list[WordsInfo] | None
    job_id: str | None
    hosts: list[str]
    eta: float | None
    can_start: bool
    ends_at: float | None
    warning: str | None
    warning_words: list[WordsInfo] | None


class CellChecksInfo(ApiObject):
    """What is wrong with the training in a cell.

    Attributes:
        checks: The worst first, at most 4; while the cell runs, those that hold now.
        on: False: the cells of the group are not checked.
    """

    checks: list[CheckInfo]
    on: bool


class CellMemoryInfo(ApiObject):
    """What a cell did to the memory of a rank; only of a megabyte and more.

    Attributes:
        kind: Of tensors on the rank's device, or of its process.
        added_bytes: Bytes that were allocated and not freed; less than 0 if more were freed.
        peak_bytes: The most that the rank held meanwhile; null if it had held as much before.
    """

    kind: Literal["allocated", "resident"]
    added_bytes: int
    peak_bytes: int | None


class CellRunInfo(ApiObject):
    """The last run of a cell on some ranks, in the processes that they have now.

    Attributes:
        version: Of its code, counted from 1 in the order in which they first ran.
    """

    ranks: str
    version: int
    execution_id: str
    execution_count: int | None


class CheckInfo(ApiObject):
    """An error of training that its ranks have proved. Every number is in `evidence`.

    Attributes:
        message: What was seen, on which ranks and where, and what follows from it.
        message_words: The message for other languages.
        evidence: What was measured or compared, a sentence each.
        evidence_words: Of each sentence of the evidence.
        advice: What to do.
        since: When it was found first, in seconds since the epoch.
        kind: As `same_batch`: docs/how-to/find-what-is-wrong.md has all.
        line: Null: no line of the user's code is known.
        step: Since which step of the cell, from 1 on; null: it is not about steps.
    """

    ranks: str
    message: str
    message_words: list[WordsInfo] | None
    evidence: list[str]
    evidence_words: list[list[WordsInfo] | None] | None
    advice: str
    advice_words: list[WordsInfo] | None
    since: float
    kind: str
    line: CodeLineInfo | None
    step: int | None


class ChecksSwitchInfo(ApiObject):
    """Whether cells of a group are checked.

    Attributes:
        on: False: ranks observe nothing, from the next step on.
    """

    on: bool


class CodeLineInfo(ApiObject):
    """A line of the user's code.

    Attributes:
        name: The file's name for users: cell [5], model.py.
    """

    file: str
    name: str
    line: int
    code: str


class CommTakenInfo(ApiObject):
    """A message to a widget was taken.

    Attributes:
        waits: Whether its rank runs a cell, and handles the message afterwards.
    """

    waits: bool


class ComparisonInfo(ApiObject):
    """The differences of a variable between ranks: by checksums of all, by elements of the tensors that differ.

    Attributes:
        name: As it was asked for.
        outcome: `equal`: everything was compared, and is the same. `differs`: something is not.
            `not_compared`: nothing that was compared differs, but some was not: see `not_compared`,
            `left_out`, `busy` and `silent`.
        tensors: Number of tensors compared.
        sharded: Tensors among them that are divided over ranks: their parts are meant to differ.
        values: Number of other values compared: numbers, texts, options of a module.
        bytes: Of these tensors, on one rank.
        differences: At most 500.
        not_compared: At most 100.
        left_out: How many more differences and parts that were not compared there are.
    """

    name: str
    outcome: Literal["equal", "differs", "not_compared"]
    ranks: str
    missing: str
    busy: str
    silent: str
    tensors: int
    sharded: int
    values: int
    bytes: int
    differences: list[TensorDifferenceInfo]
    not_compared: list[NotComparedInfo]
    left_out: int


class CompletionInfo(ApiObject):
    """Completions at a cursor, in the format of Jupyter's complete_reply; positions are in characters.

    Attributes:
        types: Of each match: function, class, module, instance, property, keyword; or empty. Left out while
            the rank runs a cell.
        signatures: Of each match that is a function or class; or empty.
    """

    matches: list[str]
    cursor_start: int
    cursor_end: int
    types: list[str] | None
    signatures: list[str] | None


class CurveInfo(ApiObject):
    """The numbers of all ranks under one name."""

    name: str
    ranks: list[CurveOfRankInfo]


class CurveOfRankInfo(ApiObject):
    """The numbers of one rank under one name.

    Attributes:
        steps: The step of each number, if steps rise on every rank; else a count from 0.
        values: As printed, in seconds if with a unit of time; null is nan or inf.
    """

    rank: int
    steps: list[int]
    values: list[float | None]


class CurvesInfo(ApiObject):
    """The curves of an execution, in the order in which they appeared.

    Attributes:
        left_out: How many numbers are not listed, the last of all; the file has them.
        unread_bytes: Of the log, in the middle of a very long output; their numbers are missing.
    """

    execution_id: str
    curves: list[CurveInfo]
    left_out: int
    unread_bytes: int


class DebugRepliesInfo(ApiObject):
    """The replies of all ranks that were asked."""

    replies: list[DebugReplyInfo]


class DebugReplyInfo(ApiObject):
    """The reply of one rank's debugger.

    Attributes:
        content: In the format of Jupyter's debug_reply.
    """

    rank: int
    content: dict[str, Any]


class DebuggerStopInfo(ApiObject):
    """Where JupyterLab's debugger has stopped the cell of a rank.

    Attributes:
        file: Null: the running cell. Otherwise a file, or a cell: cell [5].
    """

    line: int
    file: str | None


class DeletedSaveInfo(ApiObject):
    """What the deletion of a save freed.

    Attributes:
        freed_bytes: Null: another group is saving to the folder; the next deletion or save frees it.
    """

    name: str
    freed_bytes: int | None


class DeviceInfo(ApiObject):
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
    processes: list[DeviceProcessInfo]


class DeviceProcessInfo(ApiObject):
    """A process on a device; the processes of other users are one entry without a name."""

    pid: int | None
    name: str | None
    memory_bytes: int | None
    group: str | None
    rank: int | None
    mine: bool


class DeviceSamplesInfo(ApiObject):
    """The use of one of the server's devices."""

    accelerator: str
    index: int
    times: list[float]
    utilization_percent: list[float | None]
    power_watts: list[float | None]


class DevicesInfo(ApiObject):
    """Devices and host.

    Attributes:
        processes_hidden: Whether other users have processes on the devices.
        problems: A sentence for each kind of device that could not be read.
    """

    devices: list[DeviceInfo]
    host: HostInfo
    processes_hidden: bool
    problems: list[str]


class DriftInfo(ApiObject):
    """Which version of which cell ran on which ranks since the last restart, in the order to run them again.

    Attributes:
        generation: The generation of the group.
        left_out: How many missed cells follow these: their code is beyond 4 MiB.
        forgotten: Whether older cells are no longer known.
    """

    generation: int
    cells: list[DriftCellInfo]
    left_out: int
    forgotten: bool


class DriftCellInfo(ApiObject):
    """A cell, the version that counts, and on which ranks it ran; or an earlier run of it that replaced ranks need.

    Attributes:
        execution_id: Of the last run that succeeded on a rank, else of the last one.
        line: The first line.
        state: How that run ended: `ok` if it succeeded on any rank.
        seconds: Of its slowest rank.
        versions: How many versions of its code have run.
        version: The version of this run.
        code: Null unless ranks have missed it; of a call of a client, which has none, too.
        uses: The `execution_id` of offered cells before it that set or change what it reads.
    """

    execution_id: str
    execution_count: int | None
    notebook: str | None
    cell_id: str | None
    line: str
    state: ExecutionState
    seconds: float | None
    versions: int
    version: int
    runs: list[CellRunInfo]
    missed: list[MissedCellInfo]
    offered: str
    code: str | None
    uses: list[str]


class ElidedInfo(ApiObject):
    """How much is left out of a view; it is in the log."""

    bytes: int
    lines: int


class EndsWithInfo(ApiObject):
    """What ends a group besides a request.

    Attributes:
        owners: The processes that it ends with, as far as they run.
        grace_seconds: How long it outlives the last of them.
        at: When it ends, because the last of them has ended.
    """

    owners: list[int]
    grace_seconds: float
    at: float | None


class EnvironmentInfo(ApiObject):
    """A Python in which groups can be started.

    Attributes:
        problem: Null, or a sentence on why no group can be started in it.
    """

    name: str
    display_name: str
    python: str
    source: Literal["server", "kernelspec"]
    python_version: str | None
    torch_version: str | None
    ipython_version: str | None
    accelerators: list[AcceleratorInfo]
    problem: str | None
    problem_words: list[WordsInfo] | None


class EnvironmentsInfo(ApiObject):
    """All environments, and the default for a start."""

    environments: list[EnvironmentInfo]
    default: str


class ErrorBodyInfo(ApiObject):
    """An error: a stable code, one sentence, and a hint on what to do.

    Attributes:
        message_words: The message for other languages.
    """

    code: str
    message: str
    message_words: list[WordsInfo] | None
    hint: str
    hint_words: list[WordsInfo] | None


class ExecutionInfo(ApiObject):
    """One cell that is queued, running or done on a set of ranks.

    Attributes:
        rank_seconds: By rank, for ranks that have ended.
        rank_memory: By rank; none of little change.
        num_ranks: How many ranks the group had when it began.
        code: Not in lists.
        line: In lists, instead of the code: the first line.
        code_checksum: CRC-32 of its code in UTF-8, in hexadecimal.
        waits_for: What a queued cell waits for: a running cell, or a cell queued before it.
        warning: It calls what all ranks must call, and was sent to some.
        notices: What is about to happen to the group's nodes now, and which are lost.
        undone_at: When it was undone: it does not count any more.
        asking: The questions of its ranks, while they wait for an answer.
        checks: What is wrong with the training in it, while it holds; the worst first.
        verdict: Why it does not end, while ranks wait for each other.
        transfer: How far it is, if it saves or restores the ranks.
        slowness: Why it is slow, while it runs; the costliest first, at most 3.
        pace: Where its time went, of an ended cell that was watched. Not in lists.
        undo: If it was run with `keep_undo`.
    """

    id: str
    group: str
    ranks: str
    state: ExecutionState
    cell_id: str | None
    notebook: str | None
    owner: str | None
    execution_count: int | None
    queued_at: float
    started_at: float | None
    ended_at: float | None
    statuses: list[RanksStatusInfo]
    rank_seconds: dict[int, float]
    rank_memory: dict[int, CellMemoryInfo] | None
    num_ranks: int | None
    silent: bool
    error: ErrorBodyInfo | None
    code: str | None
    line: str | None
    code_checksum: str | None
    waits_for: str | None
    warning: str | None
    notices: list[str] | None
    undone_at: float | None
    asking: list[InputPromptInfo] | None
    checks: list[CheckInfo] | None
    verdict: VerdictInfo | None
    transfer: TransferInfo | None
    slowness: list[SlowCauseInfo] | None
    pace: PaceInfo | None
    undo: UndoCostInfo | None


class ExecutionsInfo(ApiObject):
    """The executions of a group, newest last."""

    executions: list[ExecutionInfo]


class FreedBytesInfo(ApiObject):
    """The freed bytes, by rank."""

    freed_bytes: dict[int, int]


class GroupInfo(ApiObject):
    """A group of ranks.

    Attributes:
        generation: Counts restarts.
        replaced: The last replacement of dead ranks, or the one under way.
        note: A sentence for the user.
        error: Why the start failed or the group died.
        ends_with: The processes that it ends with; null: it outlives all.
        protocol: The protocol version of its agent.
        launcher: What starts its node agents; `local`: there are none.
        nodes: Its machines; empty for a group on the server's machine alone.
        spare_nodes: Machines without ranks, since the group was resized: it can grow there.
        join: The command to run on each machine that is missing; null if none is.
        allocation: Of its nodes; null without an engine.
        parts: What features add, by their names.
        running: Executions.
        queued: Executions.
        parked: Where its memory is; null unless it is parked.
        resized: The last change of its size, or the one under way.
        self_saving: Null: it is saved on request alone.
        last_save: The newest save of a group with its name that it can restore, also after its end; or
            null.
    """

    id: str
    name: str
    state: GroupState
    environment: GroupEnvironmentInfo
    accelerator: str
    backend: str
    devices: list[int]
    world_size: int
    cwd: str
    started_at: float | None
    ready_seconds: float | None
    generation: int
    replaced: ReplaceInfo | None
    note: str | None
    note_words: list[WordsInfo] | None
    error: ErrorBodyInfo | None
    lease_seconds: float | None
    ends_with: EndsWithInfo | None
    protocol: int
    ranks: list[RankInfo]
    launcher: str | None
    nodes: list[NodeInfo] | None
    spare_nodes: list[NodeInfo] | None
    join: str | None
    allocation: AllocationInfo | None
    parts: dict[str, Any] | None
    running: list[str]
    queued: list[str]
    parked: ParkedStateInfo | None
    resized: ResizeInfo | None
    self_saving: SelfSavingInfo | None
    last_save: LastSaveInfo | None


class GroupEnvironmentInfo(ApiObject):
    """The environment that a group was started in; empty if its agent cannot be reached and did not store it."""

    name: str | None
    display_name: str | None
    python: str | None
    python_version: str | None
    torch_version: str | None


class GroupsInfo(ApiObject):
    """All groups, oldest first."""

    groups: list[GroupInfo]


class HeldMemoryInfo(ApiObject):
    """What holds the memory of a rank.

    Attributes:
        bytes: Of all tensors, arrays and large texts that something holds, each storage once.
        devices: The same by device.
        resident_bytes: Of the process.
        allocated_bytes: Of tensors on the device; null on CPU.
        reserved_bytes: The allocated bytes, and what torch keeps for later tensors.
        peak_bytes: The most that was allocated.
        holders: The largest first; at most 100.
        left_out: How many holders are not listed.
        is_whole: Whether everything was looked at; lists of many objects are not.
    """

    rank: int
    bytes: int
    devices: dict[str, int]
    resident_bytes: int
    allocated_bytes: int | None
    reserved_bytes: int | None
    peak_bytes: int | None
    holders: list[MemoryHolderInfo]
    left_out: int
    is_whole: bool


class HistoryInfo(ApiObject):
    """The cells of all clients that ran on a group, oldest first."""

    cells: list[HistoryCellInfo]


class HistoryCellInfo(ApiObject):
    """A cell that ran on ranks of a group."""

    execution_id: str
    execution_count: int | None
    ranks: str
    notebook: str | None
    cell_id: str | None
    code: str


class HostInfo(ApiObject):
    """The machine that the server runs on."""

    cpu_percent: float
    cpu_count: int
    load_1m: float
    memory_used_bytes: int
    memory_total_bytes: int


class InputAnsweredInfo(ApiObject):
    """Which ranks took an answer."""

    answered: str
    not_asking: str


class InputPromptInfo(ApiObject):
    """What the code of some ranks asks for; it waits for the answer.

    Attributes:
        password: Whether the answer must not be shown.
        since: When the first of them asked.
        seq: Counts questions: an answer with this number answers none that came later.
    """

    ranks: str
    prompt: str
    password: bool
    since: float
    seq: int


class InspectionInfo(ApiObject):
    """What is at a cursor, in the format of Jupyter's inspect_reply.

    Attributes:
        data: By MIME type; `text/plain` is what `name?` prints.
        busy: The rank runs a cell: it can only describe functions, classes and modules.
    """

    found: bool
    data: dict[str, str]
    busy: bool


class InterruptedInfo(ApiObject):
    """The ranks that were running a cell."""

    interrupted: str
    idle: str
    unresponsive: str | None


class LastSaveInfo(ApiObject):
    """The newest save of a group's name, as it can be offered: when the group has ended, and before it is started.

    Attributes:
        group: The name of the group.
        world_size: How many ranks a group must have to restore it.
        python_version: Of its ranks; another version may not read it.
    """

    name: str
    folder: str
    group: str
    saved_at: float
    world_size: int
    python_version: str
    total_bytes: int


class LastSavesInfo(ApiObject):
    """The newest saves, by the names of groups and the numbers of their ranks.

    Attributes:
        saves: Newest first.
    """

    saves: list[LastSaveInfo]


class LauncherOptionInfo(ApiObject):
    """An option of a launcher.

    Attributes:
        label_words: The label for other languages.
        choices: Values that are known to work; empty: anything.
        common: Whether most users need it: forms show it first.
        advanced: Whether few users need it: forms show it under *Advanced*.
        default: The administrator's value for groups that do not set it; may be empty.
        fixed: Whether only the administrator sets it.
    """

    name: str
    label: str
    label_words: list[WordsInfo] | None
    help: str
    help_words: list[WordsInfo] | None
    kind: Literal["text", "integer", "flag", "words", "object", "script"]
    choices: list[str]
    common: bool
    advanced: bool
    default: str
    fixed: bool


class LauncherStatusInfo(ApiObject):
    """A launcher and its status.

    Attributes:
        name: The name in start requests.
        text: What is free, or why it cannot be used here.
    """

    name: str
    label: str
    usable: bool
    text: str
    text_words: list[WordsInfo] | None
    options: list[LauncherOptionInfo]


class LaunchersInfo(ApiObject):
    """All launchers."""

    launchers: list[LauncherStatusInfo]


class LineShareInfo(ApiObject):
    """A line of the user's code, and which part of the time of the ranks it took."""

    ranks: str
    line: CodeLineInfo
    share: float


class LogPageInfo(ApiObject):
    """A part of a rank's log.

    Attributes:
        seq: Of the last record.
        first: Of the first record; pass it as `before` to get older ones.
        more: Whether there are older records.
    """

    records: list[LogRecordInfo]
    seq: int
    first: int | None
    more: bool


class LogRecordInfo(ApiObject):
    """One entry of a rank's log; its kind decides which of the last fields it has.

    Attributes:
        name: Of a `stream`.
        text: Of a `stream` or a `note`.
        code: Of a `begin`.
        notebook: Of a `begin`.
        cell_id: Of a `begin`.
        status: Of an `end`.
        seconds: Of an `end`.
    """

    seq: int
    at: float
    rank: int
    execution_id: str | None
    execution_count: int | None
    kind: Literal["stream", "output", "begin", "end", "note"]
    name: Literal["stdout", "stderr"] | None
    text: str | None
    output: dict[str, Any] | None
    code: str | None
    notebook: str | None
    cell_id: str | None
    status: ExecutionState | None
    seconds: float | None


class MemoryHolderInfo(ApiObject):
    """Something by which a rank holds memory.

    Attributes:
        name: `model`, `Out[3]`, or `x in step()` for a variable of a call in the last traceback.
        also: Other holders that have memory in common with it; at most 5.
        bytes: Bytes of all storages that it holds; a view holds its whole storage.
        frees_bytes: Bytes that no other holder in the list holds, so that removing this one frees them.
        parts: Bytes of `parameters`, `buffers`, `gradients` and `state` among them.
    """

    name: str
    where: Literal["variable", "result", "traceback"]
    also: list[str]
    type: str
    bytes: int
    frees_bytes: int
    parts: dict[str, int]


class MemorySampleInfo(ApiObject):
    """The memory of all ranks of a group at one moment.

    Attributes:
        seen: If the agent has looked since the last sample, every 3 s while a cell runs.
    """

    at: float
    ranks: list[RankMemoryInfo]
    seen: list[RanksSeenInfo] | None
    seen_at: float | None


class MissedCellInfo(ApiObject):
    """The ranks that have missed a cell, and why.

    Attributes:
        reason: `replaced`: it ran before their process began. `changed`: they ran an older version.
            `skipped`: none.
        state: How the cell ended on these ranks, `lost` if they died in it; where they were not in it or
            succeeded, how it ended as a whole.
    """

    ranks: str
    reason: Literal["replaced", "changed", "skipped"]
    state: ExecutionState | None
    ended_on: str | None


class NodeInfo(ApiObject):
    """One machine of a group over several machines.

    Attributes:
        node: Its number, torchrun's GROUP_RANK.
        host: The name of the machine; null until its agent has joined.
        state: `waiting`: its agent has not joined. `unreachable`: the link is lost. `gone`: it ended, and
            its ranks.
        address: The address with which it reaches the head.
        interface: The network interface that its ranks use, unless `env` names another one.
        devices: The devices that its engine, or its user, has given it. Of NVIDIA.
        memory_bytes: The memory of the machine.
    """

    node: int
    host: str | None
    state: NodeState
    message: str | None
    message_words: list[WordsInfo] | None
    ranks: str
    address: str | None
    interface: str | None
    devices: list[NodeDeviceInfo] | None
    memory_bytes: int | None


class NodeDeviceInfo(ApiObject):
    """A device of a node.

    Attributes:
        index: The machine's index; null of a part of a device.
        memory_bytes: The device's total memory.
    """

    index: int | None
    name: str
    uuid: str | None
    memory_bytes: int | None


class NotComparedInfo(ApiObject):
    """A part of a variable of which it is not known whether ranks have it alike.

    Attributes:
        path: As of a difference.
        why: A reason, as `it is on the meta device, without numbers`.
    """

    path: str
    ranks: str
    why: str


class PaceInfo(ApiObject):
    """Where the time of a cell goes.

    Attributes:
        seconds: For how long it was watched.
        causes: Why it is slow now, or was at its end; the costliest first, at most 3.
        ranks: At most 64; of more ranks, the ranks with the shortest and the longest waits.
        lines: The lines that took most of the time; at most 10.
        steps: Null if no steps were found.
        unknown: What could not be measured, and why, a sentence each.
        unknown_words: Of each of these sentences.
    """

    execution_id: str
    seconds: float
    causes: list[SlowCauseInfo]
    ranks: list[RankPaceInfo]
    lines: list[LineShareInfo]
    steps: StepTimesInfo | None
    unknown: list[str]
    unknown_words: list[list[WordsInfo] | None] | None


class ParkedStateInfo(ApiObject):
    """Where the memory of a parked group is.

    Attributes:
        since: When it was parked.
        seconds: How long parking took.
        place: Where its tensors are.
        by: `storages`: the storages of tensors were moved. `driver`: the driver's checkpoint took the rest
            of the devices' memory, contexts included.
        held_bytes: The bytes that are held there for all ranks.
        left_bytes: The bytes that stay where they were, because they cannot be moved.
        left: A sentence for each kind of memory that stays where it was.
        resuming_since: When it began to resume; null while it is parked.
    """

    since: float
    seconds: float
    place: Literal["host", "file"]
    by: list[Literal["storages", "driver"]]
    held_bytes: int
    left_bytes: int
    left: list[str]
    resuming_since: float | None


class PastSamplesInfo(ApiObject):
    """A page of a group's samples of the last hour, oldest first.

    Attributes:
        devices: Of groups on one machine. Read while a client followed them.
        more: Whether newer ones follow: ask again with `since`, the last of the times.
    """

    times: list[float]
    ranks: list[RankSamplesInfo]
    seen: list[SeenAtInfo]
    gaps: list[SampleGapInfo]
    devices: list[DeviceSamplesInfo]
    more: bool


class PeekedInfo(ApiObject):
    """The values of names on ranks.

    Attributes:
        missing: Names that ranks do not have now.
        silent: Ranks that did not answer, and what keeps them from it.
    """

    values: list[PeekedValueInfo]
    missing: dict[str, str]
    silent: list[SilentRankInfo]


class PeekedValueInfo(ApiObject):
    """A value, as it was at one moment on some ranks.

    Attributes:
        type: The name of its class.
        shape: Of a tensor or an array; of a container, how many values it has.
        value: As text: numbers, short texts, and the first numbers of tensors on the CPU.
        place: The running function that has the name, with its line; empty: a variable of cells.
    """

    ranks: str
    name: str
    type: str
    shape: str
    dtype: str
    device: str
    value: str
    place: str
    place_words: list[WordsInfo] | None


class PreparedInfo(ApiObject):
    """What is kept to make the next start faster."""

    processes: list[PreparedProcessInfo]


class PreparedProcessInfo(ApiObject):
    """A process that is kept to make the next start faster; it ends when memory is short.

    Attributes:
        what: `forkserver`, or `agent`: an agent that waits for its group, with its zygote.
        memory_bytes: Memory that n processes share counts as an n-th for each of them.
    """

    what: str
    pid: int
    memory_bytes: int


class PresetInfo(ApiObject):
    """Named options of a start.

    Attributes:
        name: The name in start requests: `preset`.
        options: Fields of a start request.
        problem: Why it cannot be used.
    """

    name: str
    label: str
    description: str
    options: dict[str, Any]
    problem: str | None
    problem_words: list[WordsInfo] | None


class PresetsInfo(ApiObject):
    """All presets."""

    presets: list[PresetInfo]


class ProfileInfo(ApiObject):
    """The profile of a cell.

    Attributes:
        collectives: How many were compared.
        sentences: What stands out, and what is missing.
    """

    execution_id: str
    ranks: list[RankProfileInfo]
    collectives: int
    stragglers: str
    sentences: list[str]


class RankInfo(ApiObject):
    """One rank of a group.

    Attributes:
        node: On several machines: the node that it runs on.
        state_at: When it entered that state.
        process_group: After its last cell; `none`: code destroyed it; `lost`: the rank's device is lost.
        ignores_interrupt: Its cell still runs seconds after an interrupt.
        asks: Its cell asks for input, and waits.
        stopped_at: Its cell is stopped in JupyterLab's debugger.
        absences: From when to when it had no process.
        covered: From when to when it has the values of cells that ran in an earlier process: of a save, or
            copied.
        since: When a resize added it, with copies of what all others had alike.
    """

    rank: int
    local_rank: int
    node: int | None
    pid: int | None
    device: str
    state: RankState
    state_at: float
    execution_id: str | None
    process_group: Literal["ok", "broken", "none", "lost"]
    exit: RankExitInfo | None
    message: str | None
    message_words: list[WordsInfo] | None
    ignores_interrupt: bool | None
    asks: bool | None
    stopped_at: DebuggerStopInfo | None
    absences: list[list[float]] | None
    covered: list[list[float]] | None
    since: float | None


class RankExitInfo(ApiObject):
    """How a rank's process ended.

    Attributes:
        code: The exit code; null if a signal ended it, or it never began.
        signal: The number of the signal that ended it.
        stderr: The last lines of its stderr.
        peak_bytes: Its peak resident memory.
    """

    code: int | None
    signal: int | None
    reason: str
    reason_words: list[WordsInfo] | None
    stderr: str
    peak_bytes: int | None


class RankMemoryInfo(ApiObject):
    """The memory of one rank; null where its device has no such value."""

    rank: int
    resident_bytes: int
    allocated_bytes: int | None
    reserved_bytes: int | None
    peak_bytes: int | None
    device_used_bytes: int | None
    cpu_percent: float


class RankPaceInfo(ApiObject):
    """Where the time of a rank went, as parts of it from 0 to 1.

    Attributes:
        communicate: In collectives whose ranks had all arrived.
        wait: In collectives, for ranks that came later.
        input: For data: in a DataLoader.
        waits_for: The rank that it waited for longest.
    """

    rank: int
    compute: float
    communicate: float
    wait: float
    input: float
    waits_for: int | None


class RankProfileInfo(ApiObject):
    """Where the time of one rank went. The four parts add up to `seconds`.

    Attributes:
        seconds: Of the cell.
        computing: In torch's operators; of a device, its kernels.
        communicating: In collectives in which all ranks had arrived, while it computed nothing.
        waiting: In collectives before the last rank arrived, while it computed nothing.
        other: In Python, in reading data, asleep.
        waits_for: The ranks that it waited for, longest first.
        last: In how many collectives it arrived last.
        kept_waiting: How long another rank waited for it, on average, in seconds.
        shift_seconds: Of its clock in the trace, for ranks on several machines.
    """

    rank: int
    seconds: float
    computing: float
    communicating: float
    waiting: float
    other: float
    waits_for: list[WaitedForInfo]
    last: int
    kept_waiting: float
    shift_seconds: float


class RankSamplesInfo(ApiObject):
    """The memory and processor of one rank: a value for each of the times, null where there was none.

    Attributes:
        allocated_bytes: Null where the ranks have no device, as in the fields below.
    """

    rank: int
    resident_bytes: list[int | None]
    allocated_bytes: list[int | None] | None
    reserved_bytes: list[int | None] | None
    peak_bytes: list[int | None] | None
    device_used_bytes: list[int | None] | None
    cpu_percent: list[float | None]


class RankStackInfo(ApiObject):
    """What ranks do that have the same stack.

    Attributes:
        call: The collective that they wait in.
        frames: From the cell inwards, at most 50; empty for idle ranks.
    """

    ranks: str
    state: Literal["waits", "runs", "idle", "dead", "unknown"]
    call: str | None
    call_words: list[WordsInfo] | None
    frames: list[StackFrameInfo]


class RanksSeenInfo(ApiObject):
    """Where some ranks were that ran a cell.

    Attributes:
        place: The user's line; empty where there is none.
        call: The collective that they waited in: its name, process group, number, shape.
    """

    ranks: str
    execution_id: str
    place: str
    call: str | None


class RanksStatusInfo(ApiObject):
    """The status of an execution on some ranks.

    Attributes:
        seconds: Of the slowest rank; null until they have ended.
    """

    ranks: str
    status: ExecutionState
    seconds: float | None


class ReplaceInfo(ApiObject):
    """A replacement of dead ranks.

    Attributes:
        at: When it began.
        state: The variables that they were to begin with. `empty`: nothing. `copy`: copies of what the
            other ranks have alike, of the lowest one. `save`: their variables in a save; cells that ran
            since can be run again on them. `undo`: the other ranks undo the cell in which these died, and
            give them copies as `copy`.
        save: The name of the save.
        seconds: How long it took; null while it is under way.
        error: Why they could not be started, or do not have these variables.
        names: The names that they were given.
        again: Sentences on missing names, which cells must make again.
    """

    at: float
    ranks: str
    state: Literal["empty", "copy", "save", "undo"]
    save: str | None
    seconds: float | None
    error: ErrorBodyInfo | None
    names: list[str]
    again: list[str]


class ResizeInfo(ApiObject):
    """A change of the number of ranks.

    Attributes:
        at: When it began.
        before: How many ranks there were.
        after: How many ranks were asked for.
        seconds: How long it took; null while it is under way.
        error: Why the group has its earlier size again.
        again: Sentences on what cells must make again, and what could not be copied.
        copied: The names that new ranks have copies of.
        resharded: The names with DTensors that are divided among the ranks of now.
        differ: The names that were not alike on all ranks, or could not be compared.
    """

    at: float
    before: int
    after: int
    seconds: float | None
    error: ErrorBodyInfo | None
    again: list[str]
    copied: list[str]
    resharded: list[str]
    differ: list[str]


class SampleGapInfo(ApiObject):
    """A time without samples, because no client followed the memory."""

    begin: float
    end: float


class SamplesInfo(ApiObject):
    """The last minutes of a group's memory, newest last."""

    samples: list[MemorySampleInfo]


class SaveInfo(ApiObject):
    """A save: the variables of all ranks of a group at one moment.

    Attributes:
        folder: Where its files are.
        id: Another one for each time that the name is saved.
        group: The name of the group.
        seconds: How long it took.
        num_names: How many variables it has, on the rank with the most.
        total_bytes: Of the tensors and objects of all ranks.
        written_bytes: Of them, what was not in the folder already.
        execution_count: The number of the last cell before it.
        jupyter_dist: The version of this package.
        automatic: Whether the group made it by itself: it may delete it, too.
        skipped: Names that could not be saved.
        notes: What was not saved of other names.
        problem: Why the group that was asked cannot restore it; null if it can.
    """

    name: str
    folder: str
    id: str
    group: str
    group_id: str
    world_size: int
    accelerator: str
    saved_at: float
    seconds: float
    num_names: int
    total_bytes: int
    written_bytes: int
    execution_count: int
    python_version: str
    torch_version: str
    jupyter_dist: str
    automatic: bool | None
    skipped: list[SkippedInfo]
    notes: list[SaveNoteInfo]
    problem: str | None
    problem_words: list[WordsInfo] | None


class SaveNoteInfo(ApiObject):
    """What is not saved of a name that is.

    Attributes:
        reason: What, and why, in a sentence.
    """

    name: str
    ranks: str
    reason: str


class SavePreviewInfo(ApiObject):
    """What a save would have now.

    Attributes:
        total_bytes: Of all ranks, before equal parts are written once.
    """

    names: list[SavedNameInfo]
    skipped: list[SkippedInfo]
    notes: list[SaveNoteInfo]
    total_bytes: int


class SavedNameInfo(ApiObject):
    """A name that a save would have."""

    name: str
    ranks: str


class SavesInfo(ApiObject):
    """The saves in a folder, newest first.

    Attributes:
        damaged: A sentence for each save that cannot be read, or is not this user's.
    """

    folder: str
    saves: list[SaveInfo]
    damaged: list[str]


class ScriptInfo(ApiObject):
    """The cells of a notebook that ran on ranks, as a script for torchrun.

    Attributes:
        cells: How many cells it runs.
        notebook: The notebook's path.
        notes: Sentences about what is left out; they stand in the script, too.
    """

    script: str
    cells: int
    notebook: str | None
    notes: list[str]


class SeenAtInfo(ApiObject):
    """What the agent saw at a look."""

    at: float
    seen: list[RanksSeenInfo]


class SelfSavingInfo(ApiObject):
    """When a group saves by itself.

    Attributes:
        every_seconds: If cells have run since the last save; 0: not so.
        before_end_seconds: Before its allocation ends; 0: not then.
        ends_at: When its allocation ends, as far as its agent knows.
        kept: How many of these saves are kept.
        problem: Why the last one failed: no more are made until a save succeeds.
    """

    every_seconds: float
    before_end_seconds: float | None
    ends_at: float | None
    kept: int
    problem: str | None


class ShutdownInfo(ApiObject):
    """A sentence for each process that had to be killed."""

    killed: list[str]


class SilentRankInfo(ApiObject):
    """A rank that did not answer."""

    rank: int
    why: str
    why_words: list[WordsInfo] | None


class SkippedInfo(ApiObject):
    """A name that cannot be saved.

    Attributes:
        reason: Why, in a sentence.
        execution_count: The cell that made it, as in `[5]`; null if that is not known.
        code: The code of that cell, to run it again after a restore.
    """

    name: str
    ranks: str
    reason: str
    execution_count: int | None
    code: str | None


class SlowCauseInfo(ApiObject):
    """Why a cell is slow, in one sentence.

    Attributes:
        message: What was seen, on which ranks and where, and what follows from it.
        message_words: The message for other languages.
        evidence: What was measured or compared, a sentence each.
        evidence_words: Of each sentence of the evidence.
        advice: What to do.
        since: When it was found first, in seconds since the epoch.
        kind: `straggler`: ranks come last to the collectives of each step. `occasional`: the others wait
            for a rank now and then, and long. `uneven`: another rank is last each time. `input`: for the
            next batch. `blocked`: in the kernel, for a file or a time. `collector`: Python's garbage
            collector. `memory`: it grows with each step. `growing`: each step takes longer. `contention`:
            other programs use the processor. `accumulation`: gradients are averaged more often than the
            optimizer steps. `unused_parameters`: DistributedDataParallel looks for them. `device_sync`:
            ranks wait for values of devices that idle meanwhile. `fragmentation`: torch frees its cache of
            device memory again and again. `objects`: objects are pickled for other ranks. `line`: no fault,
            but the line that takes the most of a step.
        share: Which part of the time it costs, from 0 to 1.
        place: The line that takes the time; null if none stands out.
    """

    ranks: str
    message: str
    message_words: list[WordsInfo] | None
    evidence: list[str]
    evidence_words: list[list[WordsInfo] | None] | None
    advice: str
    advice_words: list[WordsInfo] | None
    since: float
    kind: Literal[
        "straggler",
        "occasional",
        "uneven",
        "input",
        "saving",
        "printing",
        "compiling",
        "blocked",
        "collector",
        "memory",
        "growing",
        "contention",
        "communication",
        "small_collectives",
        "accumulation",
        "unused_parameters",
        "device_sync",
        "fragmentation",
        "objects",
        "line",
    ]
    share: float
    place: CodeLineInfo | None


class StackFrameInfo(ApiObject):
    """A line that a rank is at, or a call that led there.

    Attributes:
        name: The file's name for users: cell [5], model.py.
        is_library: Whether it is neither a cell nor a module of the user.
    """

    file: str
    name: str
    line: int
    function: str
    code: str
    is_library: bool


class StacksInfo(ApiObject):
    """The Python stacks of the main threads of all ranks."""

    stacks: list[RankStackInfo]


class StartOptionRowInfo(ApiObject):
    """An option of a start that a form can show by its row alone.

    Attributes:
        name: The name in start requests.
        part: The part that has it; empty: none.
        kind: `words`: a list of texts.
        choices: All values of a text; empty: anything.
        max_length: Of a text, or of each of the words, in characters.
        default: What a start has that leaves it out, as the server is configured; null: nothing.
    """

    name: str
    part: str
    label: str
    label_words: list[WordsInfo] | None
    help: str
    help_words: list[WordsInfo] | None
    kind: Literal["text", "integer", "number", "flag", "words"]
    choices: list[str]
    minimum: float | None
    maximum: float | None
    max_length: int | None
    default: Any


class StartOptionRowsInfo(ApiObject):
    """The options of a start that a form can show by their rows alone."""

    options: list[StartOptionRowInfo]


class StepTimesInfo(ApiObject):
    """The steps of a loop, found by the recurring sequence of its collectives, or named by `track(step=...)`.

    Attributes:
        seconds: How long a step takes now.
        collectives: In a step; null if `track(step=...)` names the steps.
        trend: The seconds of a step in the course of the cell, oldest first; at most 60.
        times: When each of the trend was measured.
    """

    seconds: float
    collectives: int | None
    trend: list[float]
    times: list[float]


class TensorDifferenceInfo(ApiObject):
    """A tensor or another value that is not the same on all ranks.

    Attributes:
        path: Within the variable, as `layer.weight`; empty for the variable itself.
        what: `values`: numbers of a tensor. `shape`: also its dtype. `placement`: how a DTensor is divided,
            or a part that does not fit this division. `value`: a value other than a tensor, see `found`.
            `missing`: not on these ranks.
        max_abs: The greatest finite difference of an element; null if there is none.
        nonfinite: Whether a differing element is nan or inf on one of them.
        different: Number of elements that differ, of those compared; 0 if they are further on.
        compared: Number of elements compared, from the first on; 0 beyond the limit of bytes.
        elements: Number of elements of the tensor.
        found: The value on these ranks, as text; empty for tensors that differ in numbers.
        expected: The value on the reference ranks.
    """

    path: str
    what: Literal["values", "shape", "placement", "value", "missing"]
    ranks: str
    reference: str
    shape: list[int]
    dtype: str
    max_abs: float | None
    nonfinite: bool
    different: int
    compared: int
    elements: int
    found: str
    expected: str


class TransferInfo(ApiObject):
    """How far a save or a restore is.

    Attributes:
        total_bytes: Of all ranks; 0 until they have counted.
        num_names: Variables that a restore has read, on the rank with the most. Groups of 0.3 lack it.
    """

    action: Literal["save", "restore"]
    name: str
    folder: str
    done_bytes: int
    total_bytes: int
    num_names: int | None


class UndoCostInfo(ApiObject):
    """What was kept before a cell, so that it can be undone.

    Attributes:
        bytes: Copied before the cell, on all of its ranks together.
        milliseconds: How long the slowest rank took for it, before the cell.
        not_kept: What undo leaves as it is, a sentence for each object.
        reason: Why the cell cannot be undone, if its state was not kept.
        changed: Whether the cell changed something that an undo takes back, besides its own result.
    """

    bytes: int
    milliseconds: float
    not_kept: list[str]
    reason: str | None
    changed: bool | None


class UndoableCellInfo(ApiObject):
    """A cell that can be undone now."""

    execution_id: str
    execution_count: int | None
    ranks: str
    cell_id: str | None
    notebook: str | None
    line: str
    cost: UndoCostInfo


class UndoableCellsInfo(ApiObject):
    """The cells that can be undone now, newest first; a cell is undone with the cells before it in this list.

    Attributes:
        undone: The undone cells that can be done again, in this order, until a cell changes something.
        lost: The cell in which ranks died and those after it: a replacement with the state `undo` undoes
            them.
    """

    cells: list[UndoableCellInfo]
    undone: list[UndoableCellInfo] | None
    lost: list[UndoableCellInfo] | None


class VariableInfo(ApiObject):
    """A name, and the variable behind it on the ranks."""

    name: str
    rows: list[VariableRowInfo]
    missing: str


class VariableRowInfo(ApiObject):
    """What a variable is on ranks that have it alike.

    Attributes:
        kind: `tensor`, `array`, `module`, `container`, `object`; empty of plain values.
        shape: [2, 3]; the length of a container or text; the number of tensors of a module.
        device: Without its index if it is the rank's own.
        bytes: Of the storages that it holds, each once: a view holds the whole one. Null of what has no
            such size.
        shares: What else holds a part of this memory; at most 5.
        parts: Bytes of `parameters`, `buffers`, `gradients` and `state` among them.
        value: Of numbers, texts and tensors of one element; of containers and objects their first values;
            of modules `eval`, and how many parameters have no gradients. About 80 characters at most.
        content: A checksum of all that was looked at inside; two ranks with another one differ. Empty:
            none.
        unseen: What the checksum does not have: the numbers of tensors, classes that cannot be read.
    """

    type: str
    kind: str
    shape: str
    dtype: str
    device: str
    bytes: int | None
    shares: list[str] | None
    parts: dict[str, int] | None
    value: str
    content: str | None
    unseen: str | None
    ranks: str


class VariablesInfo(ApiObject):
    """The variables that cells made on ranks.

    Attributes:
        left_out: How many names of a rank are not listed.
        memory: By rank.
    """

    ranks: str
    busy: str
    silent: str
    left_out: int
    variables: list[VariableInfo]
    memory: list[HeldMemoryInfo]


class VerdictInfo(ApiObject):
    """Why a cell does not end: which ranks wait for which others.

    Attributes:
        kind: `waits`: it may end.
        reason: `busy`: the others may get there. `still`: nothing has moved for a while, and no rank is
            missing. `cut`: so, and nodes cannot connect to each other.
        message_words: The message for other languages.
        since: When this was first seen.
        needed: The ranks that are waited for.
        paths: Which nodes cannot connect to each other, at which addresses, and what to do (`cut`).
    """

    kind: Literal["cannot_end", "waits"]
    reason: Literal["missing", "dead", "order", "mismatch", "shapes", "busy", "still", "cut"]
    message: str
    message_words: list[WordsInfo] | None
    since: float
    waiting: list[VerdictPartInfo]
    needed: list[VerdictPartInfo]
    could_join: str | None
    paths: str | None


class VerdictPartInfo(ApiObject):
    """Some ranks of a verdict, and where they are.

    Attributes:
        place: The user's line that they are at, or the last cell of idle ones.
        call: The collective that they wait in: its name, process group, number and shape.
    """

    ranks: str
    state: Literal["waits", "runs", "idle", "dead", "unknown"]
    place: str | None
    place_words: list[WordsInfo] | None
    call: str | None
    call_words: list[WordsInfo] | None


class VerdictRecordInfo(ApiObject):
    """A verdict on a cell, and what happened afterwards.

    Attributes:
        kind: `cannot_end`, or the kind of a cause that a part has found.
        message_words: The message for other languages.
        outcome: `refuted`: the cell ended or went on by itself, or the cause was gone at once. `open`: it
            still holds. `not_refuted`: anything else, as after an interrupt.
        witnesses: What was known of each rank, or measured, when it was shown.
        witnesses_words: Of each of these sentences.
    """

    execution_id: str
    kind: str
    message: str
    message_words: list[WordsInfo] | None
    shown_at: float
    outcome: Literal["open", "refuted", "not_refuted"]
    witnesses: list[str]
    witnesses_words: list[list[WordsInfo] | None] | None


class VerdictsInfo(ApiObject):
    """The verdicts on the cells of a group since its agent was started, and how many were wrong.

    Attributes:
        shown: How many verdicts there were.
        verdicts: The last 50, oldest first.
    """

    shown: int
    refuted: int
    verdicts: list[VerdictRecordInfo]


class VersionsInfo(ApiObject):
    """The versions of the server."""

    jupyter_dist: str
    protocol: int
    api: int


class ViewInfo(ApiObject):
    """An execution and the folded output of its ranks."""

    execution: ExecutionInfo
    seq: int
    items: list[ViewItemInfo]


class ViewItemInfo(ApiObject):
    """An output of some ranks, or what was left out."""

    id: int
    seq: int
    ranks: str
    output: dict[str, Any] | None
    elided: ElidedInfo | None


class WaitedForInfo(ApiObject):
    """A rank that others waited for in collectives."""

    rank: int
    seconds: float


class WordsInfo(ApiObject):
    """A sentence: its template, and its values for `%1`, `%2` and so on.

    Attributes:
        text: In English, as in the page's catalogues.
        plural: The template for other numbers than one; the number is the first value.
        values: Each a text, a number, or a list of such sentences.
    """

    text: str
    plural: str | None
    values: list[Any]
