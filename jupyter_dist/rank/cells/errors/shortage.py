"""The report of a rank that is out of memory: the requested size, the holders of memory, and commands that free it.

The report is text on stderr, after the error: lines that are equal on several ranks are folded, every reader shows it,
and it is in the logs. It is made where memory is short, so it takes a bounded number of steps and little memory, and an
error in it changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jupyter_dist.rank.cells.values import holders
from jupyter_dist.rank.cells.values.holders import HeldStorages, Holder, Together
from jupyter_dist.rank.cells.values.storages import Storage
from jupyter_dist.rank.collectives.torch_compat import OutOfMemoryError, without_functions
from jupyter_dist.rank.guard import origin
from jupyter_dist.rank.ipython.tracebacks import safe_message
from jupyter_dist.rank.memory import MemoryCounters

from . import neighbours
from .sizes import bytes_of, size_text

MAX_LINES = 8
MAX_SHARED = 6  # names in a line that frees the memory they share
SMALLEST_PART = 100  # a holder of less than a hundredth of the whole has no line

OWN = "Out of memory"
OF_ANOTHER = "Memory was short on this machine"

_ERRORS = (MemoryError, OutOfMemoryError)
# The beginning of a RuntimeError of torch's allocator on CPU, and of the runtimes of devices.
_OF_ALLOCATOR = re.compile(
    r"\[enforce fail at \S*\] .*DefaultCPUAllocator: can't allocate memory|\w+ error: out of memory\b"
)
_ASKED = re.compile(r"(?:[Tt]ried to allocate|Unable to allocate) (?:([\d.]+) ([KMGTP]iB|bytes)|(\d+) bytes)")
_CLEAR_ERROR = "import sys; sys.last_value = sys.last_traceback = sys.last_exc = None"


def find_shortage(error: BaseException | None) -> BaseException | None:
    """Return the error that reports a lack of memory: this error or one of its causes; None if there is none."""
    return next(filter(_is_shortage, origin.chain(error)), None)


def _is_shortage(error: BaseException) -> bool:
    if issubclass(type(error), _ERRORS):
        return True
    # Not by its words alone, which may be of the user: torch raises it in C++.
    step = origin.innermost(error) if isinstance(error, RuntimeError) else None
    return step is not None and origin.is_raised_by_call(step) and bool(_OF_ALLOCATOR.match(safe_message(error)))


def asked_bytes(message: str) -> int | None:
    """Return the requested size from the message of torch or numpy; None for Python's own, which has no size."""
    found = _ASKED.search(message)
    if found is None:
        return None
    amount, unit, whole = found.groups()
    return int(whole) if whole else bytes_of(amount, unit)


def report(
    error: BaseException | None, namespace: dict[Any, Any], hidden: Iterable[str], memory: MemoryCounters
) -> str:
    """Return the report as lines of text; without an error it is about another rank, which the kernel killed."""
    message = safe_message(find_shortage(error) or error) if error is not None else ""
    with without_functions():
        held = holders.find(namespace, hidden, error or holders.last_error())
        head = OWN if error is not None else OF_ANOTHER
        lines = lines_of(asked_bytes(message), held, memory.counters(), memory.device_type, head)
        return "\n".join([*lines, *filter(None, [neighbours.line(message)])]) + "\n"


def lines_of(
    asked: int | None, held: HeldStorages, counters: Mapping[str, int | None], device_type: str, head: str = OWN
) -> Iterator[str]:
    """Yield the lines of a report. Pure.

    Args:
        asked: the requested bytes; None: the error does not contain them.
        held: the holders of memory.
        counters: of Memory.counters.
        device_type: torch's, of the rank's device.
        head: what happened.
    """
    largest = held.together()
    asked_words = f" {size_text(asked)} more were asked for." if asked is not None else ""
    yield f"{head}:{asked_words} {_total_text(held, counters)}"
    shown = [one for one in largest[:MAX_LINES] if one.first.holding.num_bytes * SMALLEST_PART >= held.num_bytes]
    width = max((len(one.name) for one in shown), default=0)
    for one in shown:
        yield f"  {one.name:{width}}  {size_text(one.first.holding.num_bytes):>9}{_details(one)}"
    if rest := len(largest) - len(shown):
        yield f"  and {rest} smaller"
    if not held.is_whole:
        yield "  Lists of many objects were not looked at to their ends."
    advice = list(_advice(held, largest, counters, device_type))
    if advice:
        yield "To free memory:"
        yield from (f"  {line}" for line in advice)


def _total_text(held: HeldStorages, counters: Mapping[str, int | None]) -> str:
    by_device = [f"{size_text(size)} on {device}" for device, size in sorted(held.by_device.items())]
    named = f"Variables, results and calls hold {' and '.join(by_device)}" if by_device else "No variable holds any"
    allocated, reserved = counters["allocated_bytes"], counters["reserved_bytes"]
    if allocated is None or reserved is None:
        return f"{named}; the process has about {_rough(counters['resident_bytes'] or 0)}:"
    return f"{named}; torch has {size_text(allocated)} in tensors, and reserved {size_text(reserved)}:"


def _rough(size: int) -> str:
    """Return a size with two digits: processes of ranks are never quite the same, and their lines should be."""
    return size_text(int(float(f"{size / (1 << 20):.1e}") * (1 << 20)))


def _details(one: Together) -> str:
    held = one.first.holding.parts
    parts = [f"{size_text(size)} of {name}" for name, size in held.items()]
    words = [", ".join(parts)] if len(parts) > 1 or (parts and "state" in held) else []
    if one.also:
        words.append(f"shared with {', '.join(one.also)}")
    return f"  {'; '.join(words)}" if words else ""


def _advice(
    held: HeldStorages, largest: list[Together], counters: Mapping[str, int | None], device_type: str
) -> Iterator[str]:
    """Yield commands that free memory, with the size: no memory counts that another holder would keep."""
    whole = held.num_bytes
    freeing = [one for one in largest if one.first.where == "variable" and one.frees * SMALLEST_PART >= whole > 0]
    yield from _shared(held, largest)
    for one in sorted(freeing, key=lambda one: -one.frees)[:3]:
        yield f"{_removal(one.holders)}  ({size_text(one.frees)})"
    cleared: set[Storage] = set()  # a model and its optimizer have the same gradients
    for holder in (one.first for one in largest[:MAX_LINES]):
        gradients = {storage for storage, part in holder.holding.part_of.items() if part == "gradients"} - cleared
        size = sum(holder.holding.bytes_by[storage] for storage in gradients)
        if holder.where == "variable" and size * SMALLEST_PART >= whole > 0:
            cleared |= gradients
            yield f"{holder.name}.zero_grad()  ({size_text(size)} of gradients)"
    if results := held.held_only_by("result"):
        yield f"%reset -f out  ({size_text(results)} of results that Out keeps)"
    if calls := held.held_only_by("traceback"):
        yield f"{_CLEAR_ERROR}  ({size_text(calls)} that the traceback keeps)"
    allocated, reserved = counters["allocated_bytes"], counters["reserved_bytes"]
    if allocated is not None and reserved is not None and (reserved - allocated) * 10 >= reserved:
        yield f"torch.{device_type}.empty_cache()  ({size_text(reserved - allocated)} reserved, not in tensors)"


def _shared(held: HeldStorages, largest: list[Together]) -> Iterator[str]:
    """Yield how to free the largest, if it is a variable that shares most of its memory with a few others."""
    first = largest[0] if largest else None
    if first is None or first.first.where != "variable" or first.frees * 2 >= first.first.holding.num_bytes:
        return
    owners = held.names_of(first.first.holding.bytes_by)
    if len(owners) <= MAX_SHARED:
        yield f"{_removal(owners)}  ({size_text(first.first.holding.num_bytes)} of {first.first.name})"


def _removal(holders: list[Holder]) -> str:
    """Return the command that removes these holders: variables by name; all results; all calls of the traceback."""
    where = {one.where for one in holders}
    names = ", ".join(one.name for one in holders if one.where == "variable")
    others = ["%reset -f out"] if "result" in where else []
    others += [_CLEAR_ERROR] if "traceback" in where else []
    return " and ".join([*([f"del {names}"] if names else []), *others])
