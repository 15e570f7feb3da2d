"""A cause of slowness before it is shown, and the words that all causes share. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_dist.agent.watch.findings import CellFinding
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet, name_ranks
from jupyter_dist.transport.rows import CodePlace

if TYPE_CHECKING:
    from jupyter_dist.parts.slow import models


SURE = 2.0  # standard deviations: few samples differ by chance


@dataclass(frozen=True)
class Cause(CellFinding):
    """Why a cell is slow."""

    kind: models.SlowKind
    ranks: RankSet
    share: float  # of the time of the others, or of all
    message: str
    evidence: Sequence[str]
    advice: str
    place: CodePlace | None = None
    spans_looks: bool = False  # it was found by comparing several looks

    def model(self, since: float) -> models.SlowCause:
        """Return the SlowCause of docs/api.md."""
        return {
            **self.told(since),
            "kind": self.kind,
            "share": round(self.share, 3),
            "place": None if self.place is None else self.place.model(),
        }


def percent(share: float) -> str:
    """Return a share in words: 45 %."""
    return f"{100 * share:.0f} %"


def seconds_in_words(seconds: float) -> str:
    """Return a time in words: 1.3 s, 62 ms."""
    return (
        f"{seconds:.1f} s"
        if seconds >= 0.9995
        else f"{1000 * seconds:.0f} ms"
        if seconds >= 0.00995
        else f"{1000 * seconds:.1f} ms"
    )


def bytes_in_words(number: float) -> str:
    """Return a size in words: 4.0 MB, 12 kB."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.1f} {unit}" if number < 10 * size else f"{number / size:.0f} {unit}"
    return f"{number:.0f} bytes"


def in_sentence(ranks: RankSet, num_ranks: int) -> str:
    """Return ranks within a sentence: rank 5, ranks 0-3; all ranks, if they are so many."""
    if len(ranks) == num_ranks > 1:
        return say("all ranks")
    return name_ranks(ranks)


def at_place(place: CodePlace | None) -> str:
    """Return where it happens, to follow a sentence; empty if no line stands out."""
    return say(", at %1", place) if place is not None else ""


# What to do about an activity, of one rank or of all.
HINTS = {
    "input": say(
        "Give this rank's DataLoader more workers (num_workers), or data that takes as long as the others' data."
    ),
    "workers": say("Find out why its DataLoader starts worker processes again: a worker that ends, or a new loader."),
    "save": say(
        "Save less often, in another thread (torch.distributed.checkpoint.async_save), or a part on each rank."
    ),
    "print": say("Print every hundredth step, or track(loss=loss)."),
    "compile": say(
        "Give it the same shapes each step (padding), or torch.compile(..., dynamic=True). "
        "TORCH_LOGS=recompiles names the reason."
    ),
}
