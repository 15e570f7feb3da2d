"""Facts about ranks at one moment: the calls that they wait in, and the collectives that they have begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from jupyter_dist.protocol.models.sentences import say, templates

State = Literal["waits", "runs", "idle", "dead", "unknown"]

IN_DEBUGGER = "in the debugger at "  # how the place of a rank begins that a debugger has stopped
BACKWARD = "backward"
_WAIT = "wait() of "
_OBJECTS = "_object_list"


class BegunCollective(NamedTuple):
    """A collective that a rank has begun, as torch's flight recorder has it."""

    name: str
    shape: str


@dataclass(frozen=True)
class WaitedCall:
    """The call of torch.distributed that a rank waits in."""

    name: str
    group: str
    members: frozenset[int]
    peer: int | None = None
    is_p2p: bool = False
    seq: int | None = None
    shape: str = ""
    key: str = ""  # torch's name of the process group, which its ranks have alike
    counter: str = ""  # what numbers its calls; a process group has several if it has several backends
    operation: str | None = None  # what the recorder calls it
    tag: int | None = None
    inside: str | None = None  # the part of torch that has called it
    cell: int | None = None  # which earlier cell has begun it
    is_clear: bool = True  # whether it is known which of several collectives it waits for
    also: tuple[WaitedCall, ...] = ()  # the others of those, if it is not: the oldest one of each other process group
    is_polled: bool = False  # in a thread, which the main thread looks after: it may do something else
    limit: float | None = field(default=None, compare=False)  # seconds after which it gives up by itself

    @property
    def kind(self) -> str:
        """Return its name without its way to wait: `recv` for `irecv`, `wait() of recv` and `recv_object_list`."""
        return self.name.removeprefix(_WAIT).removeprefix("i").removesuffix(_OBJECTS)

    @property
    def of_group(self) -> str:
        """Return a key that identifies its process group."""
        return self.key or self.group

    @property
    def numbered_by(self) -> str:
        """Return by what `counts` and `records` of a rank have its number."""
        return self.counter or self.of_group

    @property
    def partners(self) -> frozenset[int]:
        """Return the ranks whose part it needs."""
        return frozenset((self.peer,)) if self.is_p2p and self.peer is not None else self.members


@dataclass(frozen=True)
class Fact:
    """What is known of a rank at one moment."""

    rank: int
    state: State
    call: WaitedCall | None = None  # of a rank that waits
    place: str = ""  # the user's line that it is at, or the last cell of an idle one
    begun: int | None = None  # number of collectives that it has begun on the default process group
    execution_id: str | None = None
    cpu_seconds: float = 0.0
    comes: str | None = None  # what may act without the code that waits: a thread, a cell that is queued for it
    counts: Mapping[str, int] = field(default_factory=dict)  # of collectives that it has begun, by counter
    records: Mapping[tuple[str, int], BegunCollective] = field(default_factory=dict)  # by counter and number
    at: int | None = None  # changes when the main thread gets further
    error: str | None = None  # what ended the last cell of an idle one
    left_over: str = ""  # what its device still does for an earlier cell
    silent: str = ""  # what it does that does not answer: "holds the GIL in C code that computes"
    sleeps: bool = False  # for a time, or until a process that it has started ends

    @property
    def may_start(self) -> bool:
        """Whether something of it may act by itself."""
        return self.comes is not None


Facts = Mapping[int, Fact]
# What comes by itself, as ranks say it.
COMES = templates(
    "a thread", "a timer", "the handler of a signal", "its event loop", "a cell that is queued for it", "the user"
)


def waits_in(fact: Fact) -> str | None:
    """Return the call that a rank waits in, in words; None if it does not wait."""
    return describe_call(fact.call) if fact.call is not None and fact.state == "waits" else None


def describe_call(call: WaitedCall) -> str:
    """Return the call in words: "all_reduce, number 4, float [4]"."""
    name = call.name
    if call.peer is not None and call.is_p2p and call.tag:
        name = say("%1 (peer %2, tag %3)", name, call.peer, call.tag)
    elif call.peer is not None:
        name = say("%1 (peer %2)", name, call.peer) if call.is_p2p else say("%1 (root %2)", name, call.peer)
    if call.inside:
        name = say("%1 in %2", name, call.inside)
    if call.group != "default":
        name = say("%1 of process group %2", name, call.group)
    if call.seq is not None:
        name = say("%1, number %2", name, call.seq)
    if call.shape:
        name = say("%1, %2", name, call.shape)
    return say("%1, of cell [%2]", name, call.cell) if call.cell is not None else name


def silence(fact: Fact) -> str:
    """Describe the silence of a rank, and its place."""
    return say("%1, at %2", fact.silent, fact.place) if fact.place else fact.silent
