"""Compares the profiles of a cell's ranks: who came last to the same collective, and how long the others waited.

Pure. Ranks make the summaries (rank), so their content is checked here.
"""

from __future__ import annotations

import contextlib
import html
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.folding.content import DamagedContentError, is_deep

from .models import MAX_COLLECTIVES, PROFILE_MIME, UNKNOWN, Profile, RankProfile

MAX_BYTES = 1 << 20
MAX_NAME = 80
# A straggler made the others wait for this part of the cell, and this part of all that ranks waited.
LEAST_OF_CELL = 0.02
LEAST_OF_WAITING = 0.2
# Two ranks only: no arrival of others is compared.
_PEER_TO_PEER = frozenset({"send", "recv", "isend", "irecv", "recv_any_source"})


@dataclass(frozen=True)
class Collective:
    """A collective as one rank saw it; times in microseconds, as all ranks have them."""

    name: str
    group: str
    begin: float
    end: float
    exposed: float  # how long the rank computed nothing meanwhile


@dataclass
class Summary:
    """The report of one rank on a cell."""

    host: str
    seconds: float
    computing: float
    in_collectives: float
    collectives: list[Collective]
    num_collectives: int
    num_events: int
    num_cut: int
    shift: float = 0.0  # of its clock, in microseconds
    waited: dict[int, float] = field(default_factory=lambda: defaultdict(float))  # microseconds, by who came last


def read_summary(payload: bytes) -> Summary:
    """Return the summary that a rank reported. Raises DamagedContentError if the payload is no summary."""
    try:
        if len(payload) > MAX_BYTES:
            raise ValueError("too long")
        told: dict[str, Any] = json.loads(payload)
        if is_deep(told):
            raise ValueError("nested too deeply")
        began = float(told["began"])
        return Summary(
            host=str(told["host"])[:MAX_NAME],
            seconds=_positive(told["seconds"]),
            computing=_positive(told["computing"]),
            in_collectives=_positive(told["in_collectives"]),
            collectives=[_collective(row, began) for row in told["collectives"][:MAX_COLLECTIVES]],
            num_collectives=int(told["num_collectives"]),
            num_events=int(told["num_events"]),
            num_cut=int(told["num_cut"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, AttributeError) as err:
        raise DamagedContentError(f"not a profile: {err}") from err


def _collective(row: Sequence[Any], began: float) -> Collective:
    name, group, begin, end, exposed = row
    return Collective(
        str(name)[:MAX_NAME], str(group)[:MAX_NAME], began + float(begin), began + float(end), _positive(exposed)
    )


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 <= number < 1e12:
        raise ValueError("not a length of time")
    return number


def compare(execution_id: str, summaries: Mapping[int, Summary], ranks: Iterable[int]) -> Profile:
    """Return the profile of a cell on these ranks, some of which may have reported nothing."""
    matched = list(_matched(summaries))
    _align(summaries, matched)
    last: Counter[int] = Counter()
    longest: dict[int, tuple[float, str, int]] = {}
    for number, arrived in matched:
        _wait_for_last(summaries, number, arrived, last, longest)
    told = dict(sorted(summaries.items()))
    kept = {rank: sum(other.waited.get(rank, 0.0) for other in told.values()) for rank in told}
    shared = max(1, len(told) - 1)
    rows = [_row(rank, summary, last[rank], kept[rank] / shared) for rank, summary in told.items()]
    total = sum(kept.values())
    longest_cell = max((summary.seconds for summary in told.values()), default=0.0)
    stragglers = [
        row["rank"]
        for row in rows
        if row["kept_waiting"] > LEAST_OF_CELL * longest_cell and kept[row["rank"]] > LEAST_OF_WAITING * total
    ]
    sentences = [_sentence(rows, rank, len(matched), longest[rank], len(told)) for rank in stragglers]
    if matched and not stragglers:
        sentences.append("No rank kept the others waiting.")
    return {
        "execution_id": execution_id,
        "ranks": rows,
        "collectives": len(matched),
        "stragglers": str(RankSet(stragglers)),
        "sentences": [*sentences, *_missing(told, ranks)],
    }


def _matched(summaries: Mapping[int, Summary]) -> Iterable[tuple[int, dict[int, Collective]]]:
    """Yield the collectives that several ranks took part in, each with its number and the records of the ranks.

    Ranks call the collectives of a process group in the same order, so the n-th of one is the n-th of the other.
    """
    by_place: dict[tuple[str, int], dict[int, Collective]] = defaultdict(dict)
    for rank, summary in summaries.items():
        numbers: Counter[str] = Counter()
        for found in summary.collectives:
            if found.group != UNKNOWN and found.name.partition(":")[2] not in _PEER_TO_PEER:
                numbers[found.group] += 1
                by_place[found.group, numbers[found.group]][rank] = found
    for (_, number), arrived in by_place.items():
        # The operations differ, or belong to different process groups without a name: they cannot be compared.
        if len(arrived) > 1 and len({found.name for found in arrived.values()}) == 1:
            yield number, arrived


def _align(summaries: Mapping[int, Summary], matched: Sequence[tuple[int, dict[int, Collective]]]) -> None:
    """Find how clocks differ from the first machine's: collectives end everywhere at almost the same time."""
    if not summaries or len({summary.host for summary in summaries.values()}) == 1:
        return
    first = summaries[min(summaries)].host
    apart: dict[str, list[float]] = defaultdict(list)
    for _, arrived in matched:
        here = [found.end for rank, found in arrived.items() if summaries[rank].host == first]
        for rank, found in arrived.items():
            if here and summaries[rank].host != first:
                apart[summaries[rank].host].append(statistics.median(here) - found.end)
    for summary in summaries.values():
        summary.shift = statistics.median(apart[summary.host]) if apart.get(summary.host) else 0.0


def _wait_for_last(
    summaries: Mapping[int, Summary],
    number: int,
    arrived: Mapping[int, Collective],
    last: Counter[int],
    longest: dict[int, tuple[float, str, int]],
) -> None:
    """Add the time that ranks waited in one collective for the rank that arrived last."""
    begins = {rank: found.begin + summaries[rank].shift for rank, found in arrived.items()}
    latest = max(begins, key=begins.__getitem__)
    last[latest] += 1
    waits = []
    for rank, found in arrived.items():
        wait = min(found.exposed, begins[latest] - begins[rank])
        if rank != latest and wait > 0:
            summaries[rank].waited[latest] += wait
            waits.append(wait)
    if waits:
        candidate = (max(waits) / 1e6, arrived[latest].name.partition(":")[2], number)
        longest[latest] = max(longest.get(latest, candidate), candidate)


def _row(rank: int, summary: Summary, last: int, kept_waiting: float) -> RankProfile:
    waiting = sum(summary.waited.values()) / 1e6
    communicating = max(0.0, summary.in_collectives - waiting)
    waits_for = sorted(summary.waited.items(), key=lambda item: (-item[1], item[0]))
    return {
        "rank": rank,
        "seconds": summary.seconds,
        "computing": summary.computing,
        "communicating": communicating,
        "waiting": waiting,
        "other": max(0.0, summary.seconds - summary.computing - summary.in_collectives),
        "waits_for": [{"rank": other, "seconds": wait / 1e6} for other, wait in waits_for],
        "last": last,
        "kept_waiting": kept_waiting / 1e6,
        "shift_seconds": summary.shift / 1e6,
    }


def _sentence(
    rows: Sequence[RankProfile], rank: int, num_collectives: int, longest: tuple[float, str, int], num_ranks: int
) -> str:
    row = next(row for row in rows if row["rank"] == rank)
    seconds, name, number = longest
    others = "the other rank" if num_ranks == 2 else "the others"
    average = "" if num_ranks == 2 else " on average"
    return (
        f"Rank {rank} was the last at {row['last']} of {num_collectives} collectives: {others} waited "
        f"{format_seconds(row['kept_waiting'])} for it{average}, the longest time in {name}, "
        f"number {number} of the cell ({format_seconds(seconds)})."
    )


def _missing(told: Mapping[int, Summary], ranks: Iterable[int]) -> list[str]:
    silent = [rank for rank in ranks if rank not in told]
    cut = [rank for rank, summary in told.items() if summary.num_cut]
    long = [rank for rank, summary in told.items() if summary.num_collectives > MAX_COLLECTIVES]
    sentences = []
    if silent:
        sentences.append(f"There is no profile of rank {RankSet(silent)}.")
    if cut:
        num_kept = min(told[rank].num_events - told[rank].num_cut for rank in cut)
        sentences.append(f"The trace of rank {RankSet(cut)} has its {num_kept} longest events only.")
    if long:
        sentences.append(f"Only the first {MAX_COLLECTIVES} collectives of each rank were compared.")
    if any(found.group == UNKNOWN for summary in told.values() for found in summary.collectives):
        sentences.append("Some collectives were not compared: torch does not tell their process group.")
    if len({summary.host for summary in told.values()}) > 1:
        sentences.append("The clocks of the machines were aligned by the ends of collectives.")
    return sentences


# -- what is shown ------------------------------------------------------------------------------------

HEAD = ("rank", "cell", "computing", "communicating", "waiting", "for", "other", "kept others waiting")


def profile_output(execution_id: str, sent: Mapping[int, bytes], ranks: Iterable[int]) -> models.Output | None:
    """Return the output of a profiled cell, of what its ranks have sent; None if no rank has sent a summary."""
    summaries = {}
    for rank, payload in sent.items():
        with contextlib.suppress(DamagedContentError):
            summaries[rank] = read_summary(payload)
    return shown(compare(execution_id, summaries, ranks)) if summaries else None


def shown(profile: Profile) -> models.Output:
    """Return a profile as an output: a table as text and as HTML, and its numbers."""
    rows = [_cells(row) for row in profile["ranks"]]
    data = {
        PROFILE_MIME: profile,
        "text/html": _html(rows, profile["sentences"]),
        "text/plain": _text(rows, profile["sentences"]),
    }
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _cells(row: RankProfile) -> tuple[str, ...]:
    waited = ", ".join(f"rank {other['rank']} ({format_seconds(other['seconds'])})" for other in row["waits_for"][:2])
    times = (row[name] for name in ("seconds", "computing", "communicating", "waiting"))
    kept = format_seconds(row["kept_waiting"]) if row["last"] else ""
    return (str(row["rank"]), *map(format_seconds, times), waited, format_seconds(row["other"]), kept)


def format_seconds(seconds: float) -> str:
    """Return a time in words: 1.25 s, 340 ms, 25 µs."""
    if seconds >= 0.9995:
        return f"{seconds:.2f} s"
    if seconds >= 0.0009995:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds * 1e6:.0f} \u00b5s" if seconds > 0 else "0"


def _text(rows: list[tuple[str, ...]], sentences: list[str]) -> str:
    table = [HEAD, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEAD))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([*lines, *sentences])


def _html(rows: list[tuple[str, ...]], sentences: list[str]) -> str:
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"
