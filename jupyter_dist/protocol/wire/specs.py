"""The specs of a group, a rank and an execution. Frozen, JSON-safe, checked when they arrive."""

from __future__ import annotations

import dataclasses
import signal
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeVar

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.field import OptionField
from jupyter_dist.protocol.parts import declared
from jupyter_dist.protocol.ranks import RankSet, node_ranges
from jupyter_dist.protocol.secrets import Secrets

# The protocol between server and agent, and between the agents of one group; and the oldest that is still understood.
PROTOCOL_VERSION = 2
OLDEST_PROTOCOL_VERSION = 1  # earlier.py
LOCAL = "local"  # the launcher of groups that run where the server runs
HEAD_VARIABLE = "JUPYTER_DIST_HEAD"  # "1": the ranks of this agent will be on nodes
MAX_SEQ = 1 << 53  # of records: what a browser counts exactly
CALLBACK_ID = "callback"  # of the code of a widget, which runs while no cell does: what an interrupt names
INTERRUPT_SIGNAL = signal.SIGRTMAX - 1  # to a rank: interrupt the cell; SIGINT may have a handler of the cell's
STACK_SIGNAL = signal.SIGRTMAX - 3  # to a rank that does not answer: write all stacks, in C, to the file of this name
STACK_FILE = "jupyter_dist_stacks"
SIDE_THREAD = "jd side thread"  # what /proc calls it: at most 15 characters
SECRET_FIELDS = ("env", "environ")
EXIT_DESCRIPTORS_CLOSED = 213  # exit code of a rank whose cell closed the channel to the agent
MAX_GRACE_SECONDS = 7 * 24 * 3600
EXIT_MAIN_ENDED = 214  # of a rank whose main thread has ended, as pthread_exit() does: it can run nothing more

S = TypeVar("S", bound="Spec")


def is_compatible(protocol: object) -> bool:
    """Whether this version understands the protocol of a group that another version may have started."""
    return type(protocol) is int and OLDEST_PROTOCOL_VERSION <= protocol <= PROTOCOL_VERSION


@dataclass(frozen=True)
class Spec:
    """A frozen message with strict conversion from and to JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict, to be encoded: it shares lists and dicts with this spec."""
        # Not `asdict`, which copies all of them: a start sends a spec for each rank.
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls: type[S], data: dict[str, Any]) -> S:
        """Create from a dict that another of our processes wrote.

        Raises:
            JupyterDistError: `bad_request`, if a field is missing or unknown.
        """
        try:
            return cls(**data)
        except TypeError as err:
            raise bad_request(f"Not a {cls.__name__}: {err}.") from err


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """The options of a group, a row each: settings of the server, of which a start may have another value of some."""

    start_timeout_seconds: Annotated[
        float, OptionField("Maximum time from the start of a group until every rank is ready, in seconds.", minimum=1.0)
    ] = 120.0
    lease_seconds: Annotated[
        float, OptionField("How long a group keeps running without a Jupyter server, in seconds.", minimum=10.0)
    ] = 3600.0
    node_lease_seconds: Annotated[
        float,
        OptionField(
            "How long a node agent keeps its ranks while the link to the group's head is lost, in seconds.",
            minimum=4.0,
        ),
    ] = 60.0
    journal_bytes: Annotated[
        int,
        OptionField(
            "How much output of each group to keep on disk, in bytes; the oldest goes first. 0: a tenth of the file"
            " system, at most 16 GiB, or 1 GiB where it is in memory (a tmpfs).",
            minimum=0,
        ),
    ] = 0
    user_journal_bytes: Annotated[
        int,
        OptionField(
            "The limit for all groups of this user together. 0: a quarter of the file system, at most 64 GiB, or 2 GiB"
            " in memory.",
            minimum=0,
        ),
    ] = 0


@dataclass(frozen=True)
class GroupSpec(GroupOptions, Spec):
    """A group to start, fully resolved: no field is `auto`."""

    group_id: str
    name: str
    world_size: int
    accelerator: str  # see accelerators.py, like the backend
    backend: str
    cwd: str
    devices: list[int] = field(default_factory=list)  # indices of the accelerator; a node uses the first, one per rank
    device_names: list[str] = field(default_factory=list)  # their names in the driver, if the server has asked it
    env: Secrets = field(default_factory=Secrets)
    preload: list[str] = field(default_factory=list)  # modules the zygote imports besides torch and IPython
    key: str | None = None  # the idempotency key of its start, for the next server
    owner: dict[str, Any] | None = None  # the process that it ends with: requests.OwnerRequest
    options: dict[str, Any] = field(default_factory=dict)  # of parts, by name
    launcher: str = LOCAL  # what starts its node agents; see `is_on_nodes`
    ranks_per_node: list[int] = field(default_factory=list)  # of each node; empty: all on one machine
    end_grace_seconds: float = 0.0  # how long nodes keep running, for a save, after a request to end
    note: str | None = None  # the first note to users
    request: dict[str, Any] | None = None  # the fields of its start, with which it can be started again: see `closed`
    head_ports: list[int] = field(default_factory=list)  # the first and the last on which nodes connect; empty: any
    head_addresses: list[list[Any]] = field(default_factory=list)  # [host, port or None] as nodes reach it; empty: all
    ip_version: str = ""  # 4 or 6: only such addresses
    interface: str = ""  # of each node, for its ranks; empty: as the way to the head
    tunnel: list[str] = field(default_factory=list)  # what starts a program on {host}; empty: nodes reach the head
    cpu_binding: str = "none"  # which CPUs of its node a rank may use: all, a share, or a NUMA node's

    def __post_init__(self) -> None:
        """Close the fields of a message."""
        for name, value in closed({"env": self.env, "request": self.request}).items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields with the values of secrets, for a socket; `from_dict` reads them."""
        return _opened(super().to_dict())

    def to_store(self) -> dict[str, Any]:
        """Return the fields for a file: of secrets, the names."""
        return named(super().to_dict())

    @property
    def is_on_nodes(self) -> bool:
        """Whether its ranks are processes of node agents, not of the group's agent."""
        return self.launcher != LOCAL or self.num_nodes > 1

    @property
    def shares_devices(self) -> bool:
        """Whether several of its ranks run on the same device."""
        return len(set(self.devices)) < len(self.devices)

    @property
    def node_counts(self) -> list[int]:
        """Return how many ranks each machine has."""
        return self.ranks_per_node or [self.world_size]

    @property
    def num_nodes(self) -> int:
        """Return the number of machines that the ranks are on."""
        return len(self.node_counts)

    @property
    def node_ranges(self) -> list[range]:
        """Return the ranks of each machine."""
        return node_ranges(self.node_counts)


def closed(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the dict of a GroupSpec with Secrets in it, as soon as it has been read: `env`, and two of `request`."""
    request = spec.get("request")
    if isinstance(request, dict):
        secrets = {name: Secrets.parsed(request[name]) for name in SECRET_FIELDS if request.get(name) is not None}
        request = {**request, **secrets}
    return {**spec, "env": Secrets.parsed(spec.get("env")), "request": request}


def has_values(spec: object) -> bool:
    """Whether the dict of a GroupSpec in a file has values of secrets: 0.3.0 kept them in `request`."""
    request = spec.get("request") if isinstance(spec, dict) else None
    return isinstance(request, dict) and any(isinstance(request.get(name), (dict, str)) for name in SECRET_FIELDS)


def named(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the dict of a GroupSpec for a file: of secrets, the names."""
    return _opened(closed(spec), are_values_kept=False)


def _opened(spec: dict[str, Any], *, are_values_kept: bool = True) -> dict[str, Any]:
    def opened(fields: dict[str, Any]) -> dict[str, Any]:
        secrets = {name: fields[name] for name in SECRET_FIELDS if isinstance(fields.get(name), Secrets)}
        return {
            **fields,
            **{name: one.for_socket() if are_values_kept else one.names for name, one in secrets.items()},
        }

    return {**opened(spec), "request": spec["request"] and opened(spec["request"])}


@dataclass(frozen=True)
class RankSpec(Spec):
    """One rank process."""

    group_id: str
    group_name: str
    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    accelerator: str
    backend: str
    device: str  # as torch names it
    cwd: str
    store_path: str  # a store that no process group has used: the path of a FileStore, or `link:NAME`
    generation: int
    env: dict[str, str] = field(default_factory=dict)  # the rank's own, including torchrun's
    given: Secrets = field(default_factory=Secrets)  # the group's `env`, which takes precedence
    join_timeout_seconds: float = 60.0
    node: int | None = None  # which of the group's machines; None: it has only one
    device_index: int | None = None  # of the machine, if the variable of visible devices has names
    store_socket: str = ""  # where the node agent takes the requests to stores `link:NAME`
    outlives_term: bool = False  # SIGTERM is for its node agent, which saves the group before the end
    replaces: bool = False  # the other ranks are there already, in other process groups
    cpu_binding: str = "none"  # as in the GroupSpec; its node agent knows the CPUs
    cpus: list[int] = field(default_factory=list)  # that it may use; empty: all that its node agent may
    shape: int = 0  # counts the resizes of the group: within one shape, a number of a rank means one process

    def __post_init__(self) -> None:
        """Close the field of a message."""
        object.__setattr__(self, "given", Secrets.parsed(self.given))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields with the values of secrets, for a socket; `from_dict` reads them."""
        return {**super().to_dict(), "given": self.given.for_socket()}

    def for_exec(self) -> dict[str, str]:
        """Return the variables for the environment of the rank."""
        return {**self.env, **self.given.for_exec()}


@dataclass(frozen=True)
class ReplaceSpec(Spec):
    """The variables that replaced ranks begin with: requests.ReplaceRequest."""

    state: str = "empty"
    others: str = "leave"
    restore: dict[str, Any] | None = None  # what its way to replace needs


@cache
def _run_options() -> frozenset[str]:
    """Return the options of runs that parts have."""
    return frozenset(declared("NEWER_FIELDS"))


@dataclass(frozen=True)
class ExecutionSpec(Spec):
    """One cell for a set of ranks. The code is sent beside it."""

    execution_id: str
    ranks: RankSet  # a list in JSON
    cell_id: str | None = None
    notebook: str | None = None
    owner: str | None = None
    after: str | None = None  # do not run if this execution has failed by now
    stop_on_error: bool = True
    silent: bool = False
    allow_stdin: bool = False  # its client answers when ranks ask for input
    ask_first: bool = False  # refuse it if it calls what all ranks must call, and is for some
    empty_cache: bool = False  # ranks release cached device memory if the cell changed the memory in use
    call: dict[str, Any] | None = None  # see requests.RankCall: carried out instead of the code, which describes it
    expression: str | None = None  # what its user wrote for `ranks`: read again if the group is resized meanwhile
    options: dict[str, Any] = field(default_factory=dict)  # of parts, by name; in JSON they are beside the others

    def __post_init__(self) -> None:
        """Take any iterable of ranks, such as the list of JSON."""
        object.__setattr__(self, "ranks", RankSet(self.ranks))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        own = super().to_dict()
        options = own.pop("options")
        return {**own, **options}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ExecutionSpec:
        """Create from a dict that another of our processes wrote. Raises JupyterDistError `bad_request`."""
        options = {name: data[name] for name in _run_options() if name in data}
        own = {name: value for name, value in data.items() if name not in options}
        return super().from_dict({**own, "options": options} if options else own)
