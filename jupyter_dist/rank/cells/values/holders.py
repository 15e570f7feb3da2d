"""The holders of a rank's memory: variables, results in Out, and the calls of the last traceback."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from jupyter_dist.rank.guard import origin
from jupyter_dist.rank.ipython.tracebacks import MACHINERY

from .opening import StepBudget, is_kind_of
from .storages import Holding, Storage, held_by

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.memory import MemoryHolder

MAX_STEPS = 60_000  # of all holders together: some 50 ms
MAX_STEPS_EACH = 8_000  # of one, so that a list of a million objects leaves some for the others
MAX_FRAMES = 100
MAX_ALSO = 5
MAX_LISTED = 100
MAX_CHARS = 60
MAX_NAMES = 4  # of one object, in a line

_get_name = type.__dict__["__name__"].__get__
_OF_IPYTHON = ("_oh", "_ih", "_dh", "In", "Out", "exit", "quit", "get_ipython")
_RESULTS = ("_", "__", "___")
_NUMBERED = re.compile(r"_\d+|_i\d*|_ii|_iii|__|___")  # IPython's names for results and for the code of cells


@dataclass
class Holder:
    """A name, and the storages that its value holds."""

    name: str
    where: str
    value: Any
    holding: Holding = field(default_factory=Holding)
    also: list[str] = field(default_factory=list)  # others that hold some of the same storages
    frees: int = 0  # bytes that nothing else holds
    is_listed: bool = True  # False: another holder, listed before, holds the same storages

    def model(self) -> MemoryHolder:
        """Return the holder in the form of the API."""
        return {
            "name": self.name,
            "where": self.where,  # type: ignore[typeddict-item]
            "also": self.also,
            "type": str.__getitem__(_get_name(type(self.value)), slice(MAX_CHARS)),
            "bytes": self.holding.num_bytes,
            "frees_bytes": self.frees,
            "parts": self.holding.parts,
        }


@dataclass
class Together:
    """Holders of the same storages: names of one object, and views of one tensor."""

    holders: list[Holder]
    frees: int  # bytes that nothing beside them holds

    @property
    def first(self) -> Holder:
        """The first listed holder."""
        return next((one for one in self.holders if one.is_listed), self.holders[0])

    @property
    def name(self) -> str:
        """The names of the listed holders."""
        names = [one.name for one in self.holders if one.is_listed]
        rest = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        return ", ".join(names[:MAX_NAMES]) + rest

    @property
    def also(self) -> list[str]:
        """The names of other holders that hold some of the same storages."""
        own = {one.name for one in self.holders}
        return list(dict.fromkeys(name for one in self.holders for name in one.also if name not in own))


@dataclass
class HeldStorages:
    """The holders of memory, in the order of their names, and each storage with its size."""

    holders: list[Holder]
    storages: dict[Storage, int]

    @property
    def num_bytes(self) -> int:
        """The size of all storages together."""
        return sum(self.storages.values())

    @property
    def by_device(self) -> dict[str, int]:
        """Return the bytes on each device."""
        totals: dict[str, int] = {}
        for (device, _), size in self.storages.items():
            totals[device] = totals.get(device, 0) + size
        return totals

    @property
    def is_whole(self) -> bool:
        """Whether the walks reached the end of all values."""
        return all(holder.holding.is_whole for holder in self.holders)

    def largest(self) -> list[Holder]:
        """Return the listed holders that hold any storage, the largest first."""
        holding = [holder for holder in self.holders if holder.holding.bytes_by and holder.is_listed]
        return sorted(holding, key=lambda holder: -holder.holding.num_bytes)

    def together(self) -> list[Together]:
        """Return the listed holders with any storage, together with holders of the same storages, the largest first."""
        owners = self._owners()
        alike: dict[frozenset[Storage], list[Holder]] = {}
        for holder in self.holders:
            if holder.holding.bytes_by:
                alike.setdefault(frozenset(holder.holding.bytes_by), []).append(holder)
        found = []
        for storages, holders in alike.items():
            own = set(map(id, holders))
            frees = sum(self.storages[one] for one in storages if owners[one] <= own)
            if any(holder.is_listed for holder in holders):
                found.append(Together(holders, frees))
        return sorted(found, key=lambda one: -one.first.holding.num_bytes)

    def held_only_by(self, where: str) -> int:
        """Return the bytes that nothing but results, or nothing but calls of the last traceback, hold."""
        own = {id(holder) for holder in self.holders if holder.where == where}
        return sum(self.storages[storage] for storage, having in self._owners().items() if having <= own)

    def names_of(self, storages: Iterable[Storage]) -> list[Holder]:
        """Return all holders of any of these storages."""
        wanted = set(storages)
        return [holder for holder in self.holders if not wanted.isdisjoint(holder.holding.bytes_by)]

    def _owners(self) -> dict[Storage, set[int]]:
        owners: dict[Storage, set[int]] = {}
        for holder in self.holders:
            for storage in holder.holding.bytes_by:
                owners.setdefault(storage, set()).add(id(holder))
        return owners

    def variables(self) -> dict[str, Holder]:
        """Return the variables by name."""
        return {holder.name: holder for holder in self.holders if holder.where == "variable"}


def find(namespace: dict[Any, Any], hidden: Iterable[str], error: BaseException | None = None) -> HeldStorages:
    """Return the holders of memory in this rank; no code of users runs.

    Args:
        namespace: of the cells.
        hidden: names in it that are not of users.
        error: the last one; its traceback keeps the variables of the calls that it went through.
    """
    holders = [*_variables(namespace, hidden), *_results(namespace), *_locals(namespace, error)]
    steps_left = MAX_STEPS
    # A value that refers to these would seem to hold everything, such as a model that hooks of ours observe.
    everything = (namespace, namespace.get("_oh"), get_ipython(), *holders, holders)
    outside = [id(one) for one in everything]
    owners: dict[Storage, list[Holder]] = {}
    storages: dict[Storage, int] = {}
    for holder in holders:
        steps = StepBudget(min(MAX_STEPS_EACH, steps_left))
        given = steps.left
        holder.holding = held_by(holder.value, steps, outside)
        steps_left -= given - steps.left
        for storage, size in holder.holding.bytes_by.items():
            storages[storage] = max(size, storages.get(storage, 0))
            owners.setdefault(storage, []).append(holder)
    _relate(owners, storages)
    _unlist(holders, owners)
    return HeldStorages(holders, storages)


def _relate(owners: dict[Storage, list[Holder]], storages: dict[Storage, int]) -> None:
    """Set for each holder the bytes that it alone holds, and the names of holders that share the rest."""
    for storage, having in owners.items():
        if len(having) == 1:
            having[0].frees += storages[storage]
            continue
        for holder in having:
            for other in having:
                if other is not holder and len(holder.also) < MAX_ALSO and other.name not in holder.also:
                    holder.also.append(other.name)


def _unlist(holders: list[Holder], owners: dict[Storage, list[Holder]]) -> None:
    """Leave out results and variables of calls that are also a variable, an earlier holder, or a part of one."""
    place = {id(holder): number for number, holder in enumerate(holders)}
    for number, holder in enumerate(holders):
        if holder.where == "variable" or not holder.holding.bytes_by:
            continue
        common: set[int] | None = None
        for storage in holder.holding.bytes_by:
            before = {place[id(one)] for one in owners[storage] if place[id(one)] < number}
            common = before if common is None else common & before
            if not common:
                break
        holder.is_listed = not common


def _variables(namespace: dict[Any, Any], hidden: Iterable[str]) -> Iterator[Holder]:
    unshown = {*hidden, *_OF_IPYTHON, *_RESULTS}
    for name, value in list(namespace.items()):
        if type(name) is not str or name in unshown or name.startswith("__") or _NUMBERED.fullmatch(name):
            continue
        if not is_kind_of(value, ModuleType):
            yield Holder(name, "variable", value)


def _results(namespace: dict[Any, Any]) -> Iterator[Holder]:
    """Yield the results of cells, each once, under the names that it has."""
    results = namespace.get("_oh")
    seen: set[int] = set()
    if type(results) is dict:
        for number, value in list(results.items()):
            if id(value) not in seen and value is not namespace and type(number) is int:
                seen.add(id(value))
                yield Holder(f"Out[{number}]", "result", value)
    for name in _RESULTS:
        value = namespace.get(name)
        if value is not None and id(value) not in seen and value is not results:
            seen.add(id(value))
            yield Holder(name, "result", value)


def _locals(namespace: dict[Any, Any], error: BaseException | None) -> Iterator[Holder]:
    """Yield the variables of the user's calls that a traceback keeps, each value once, the innermost call first."""
    seen: set[int] = set()
    for frame in reversed(list(_frames(error))):
        names = frame.f_locals
        if names is namespace or frame.f_globals is names:
            continue
        function = frame.f_code.co_name
        for name, value in list(names.items()):
            if id(value) not in seen and type(name) is str:
                seen.add(id(value))
                yield Holder(f"{name} in {function}()"[:MAX_CHARS], "traceback", value)


def _frames(error: BaseException | None) -> Iterator[FrameType]:
    """Yield the frames of an error and of those before it, without ours and IPython's."""
    steps = itertools.chain.from_iterable(map(origin.steps, origin.chain(error)))
    frames = (step.tb_frame for step in steps if not step.tb_frame.f_code.co_filename.startswith(MACHINERY))
    return itertools.islice(frames, MAX_FRAMES)


def last_error() -> BaseException | None:
    """Return the error whose traceback Python and IPython keep for debuggers."""
    error = getattr(sys, "last_value", None)
    return error if is_kind_of(error, BaseException) else None
