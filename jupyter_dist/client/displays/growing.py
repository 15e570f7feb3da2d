"""New text of ranks: a view has their first lines and, of a long output, the last lines, which slide."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jupyter_dist.client.bundles.bundle import Item, item_text
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.models.models import Output
from jupyter_dist.protocol.ranks import RankSet

STREAMS = frozenset({"stdout", "stderr"})  # displays count as stdout, errors as stderr

# Returns the streams of a rank that are not printed.
Hidden = Callable[[int], frozenset[str]]


class Entry(NamedTuple):
    """A line of a stream, as the server counts them; or something else: a display, an error, a line that it cut off."""

    text: str
    is_line: bool


class Position(NamedTuple):
    """How far a rank's output is printed: so many lines, and so many other entries after the last of them."""

    lines: int = 0
    others: int = 0

    def after(self, entry: Entry) -> Position:
        """Return the place after that entry."""
        return Position(self.lines + 1) if entry.is_line else Position(self.lines, self.others + 1)


START = Position()


class RankText(NamedTuple):
    """The first entries of a rank; if lines are left out after them, their number, and the last entries."""

    first: list[Entry]
    elided: int | None
    last: list[Entry]


@dataclass(frozen=True)
class Printed:
    """The part of a rank's output that has been printed."""

    first: Sequence[Entry] = ()
    place: Position = START
    other: str = ""  # the last entry that is not a line


NOTHING = Printed()


def nothing(_rank: int) -> frozenset[str]:
    """Print all streams of all ranks."""
    return frozenset()


class Growing:
    """Finds the lines in each state of a result that have not been printed yet."""

    def __init__(self, hidden: Hidden = nothing) -> None:
        self._hidden = hidden
        self._printed: dict[int, Printed] = {}
        self._next: dict[int, Printed] = {}

    def new(self, result: Result) -> dict[int, list[str]]:
        """Return the new lines of each rank that has some, up to the last complete line; at the end, all lines."""
        known: dict[tuple[int, int], tuple[list[str], Printed]] = {}
        new: dict[int, list[str]] = {}
        self._next = dict(self._printed)
        texts = _texts(result, self._hidden)
        for rank, text in texts.items():
            before = self._printed.get(rank, NOTHING)
            key = id(text), id(before)
            if key not in known:  # most ranks write equal output
                known[key] = unprinted(before, text)
            entries, self._next[rank] = known[key]
            if lines := _lines(entries):
                new[rank] = lines
        return new

    def take(self) -> None:
        """Mark the lines that `new` returned last as printed."""
        self._printed = self._next


def unprinted(before: Printed, found: RankText) -> tuple[list[str], Printed]:
    """Return the text that has not been printed yet, and the state after it is printed.

    A sentence stands for lines that were left out before they could be printed. After `clear_output` all is new, and a
    display that was changed is printed again.
    """
    if any(_differ(old, new) for old, new in zip(before.first, found.first, strict=False)):
        before = NOTHING
    new: list[Entry] = []
    place = START
    for old, entry in itertools.zip_longest(before.first[: len(found.first)], found.first):
        place = place.after(entry)
        if place > before.place or (old is not None and old.text != entry.text):
            new.append(entry)
    had = max(place, before.place)
    sliding, place = _sliding(found, had, before.other)
    new += sliding
    other = next((entry.text for entry in reversed(new) if not entry.is_line), before.other)
    first = [*found.first, *before.first[len(found.first) :]]
    return [entry.text for entry in new], Printed(first, place, other)


def _sliding(found: RankText, had: Position, other: str) -> tuple[list[Entry], Position]:
    """Return the new entries among the last ones, after output up to a position, and the position after them."""
    if found.elided is None:
        return [], had
    new: list[Entry] = []
    lines = sum(entry.is_line for entry in found.first) + found.elided
    if lines > had.lines:
        new.append(Entry(f"... {lines - had.lines} more lines in the log of the rank\n", True))
    is_next = lines == had.lines
    place = had if is_next else Position(lines)
    for entry in found.last[_num_printed(found.last, other) if is_next and had.others else 0 :]:
        place = place.after(entry)
        if place > had:
            new.append(entry)
    return new, max(place, had)


def _differ(old: Entry, new: Entry) -> bool:
    return old.is_line != new.is_line or (new.is_line and old.text != new.text)


def _num_printed(last: list[Entry], other: str) -> int:
    """Return how many entries after the last printed line are printed: the server counts only lines."""
    run = itertools.takewhile(lambda entry: not entry.is_line, last)
    return max((number for number, entry in enumerate(run, 1) if entry.text == other), default=0)


def _lines(entries: list[str]) -> list[str]:
    return [line for entry in entries for line in entry.splitlines(keepends=True)]


def _texts(result: Result, hidden: Hidden) -> dict[int, RankText]:
    """Return the entries of each rank; ranks with the same items have the same object."""
    items: dict[int, list[int]] = {}
    for number, item in enumerate(result.folded):
        for rank in RankSet.from_text(item["ranks"]):
            items.setdefault(rank, []).append(number)
    parts = [_part(item) for item in result.folded]
    shared: dict[tuple[frozenset[str], tuple[int, ...]], RankText] = {}
    texts: dict[int, RankText] = {}
    for rank, numbers in sorted(items.items()):
        key = hidden(rank), tuple(numbers)
        if key[0] < STREAMS:
            if key not in shared:
                shared[key] = _rank_text([parts[number] for number in numbers], key[0], result.done)
            texts[rank] = shared[key]
    return texts


class _Part(NamedTuple):
    """An item: lines of a stream, the last of which may be unfinished; a display; or how many lines are left out."""

    stream: str
    lines: list[str]
    is_display: bool = False
    elided: int | None = None


def _part(item: Item) -> _Part:
    if (elided := item.get("elided")) is not None:
        return _Part("stdout", [], elided=elided["lines"])
    text = item_text(item)
    stream = stream_of(item["output"])
    if item["output"]["output_type"] != "stream":
        return _Part(stream, [text if text.endswith("\n") else text + "\n"], is_display=True)
    *complete, rest = text.split("\n")
    return _Part(stream, [*(f"{line}\n" for line in complete), *([rest] if rest else [])])


def _rank_text(parts: list[_Part], hidden: frozenset[str], is_done: bool) -> RankText:
    found = RankText([], next((part.elided for part in parts if part.elided is not None), None), [])
    entries, line = found.first, ""
    for part in parts:
        if part.elided is not None:
            entries, line = found.last, ""  # the rest of an unfinished line may be left out
        elif part.is_display:
            entries += [Entry(f"{line}\n", False)] if line else []
            entries.append(Entry("" if part.stream in hidden else part.lines[0], False))
            line = ""
        else:
            for text in part.lines:
                line = line if part.stream in hidden else line + text
                if text.endswith("\n"):  # a hidden line is counted
                    entries.append(Entry("" if part.stream in hidden else line, True))
                    line = line if part.stream in hidden else ""
    if is_done and line:
        entries.append(Entry(line, False))
    return found


def stream_of(output: Output) -> str:
    """Return the stream to which a script run by torchrun would have written it."""
    if output["output_type"] == "stream":
        return str(output["name"])
    return "stderr" if output["output_type"] == "error" else "stdout"
