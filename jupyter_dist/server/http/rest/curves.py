"""REST: the curves of an execution, as JSON and as a file."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from itertools import islice

from jupyter_dist.numbers.curves import Curve, csv_lines, curves_of_lines
from jupyter_dist.protocol import curves as models
from jupyter_dist.server.folding.printed import printed_lines
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.downloads import DownloadHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation
from jupyter_dist.server.mirror.history import Printed

# A few seconds of reading, in a thread.
MAX_BYTES = 8 << 20
# The event loop makes JSON of so many in a few hundredths of a second.
MAX_NUMBERS = 50_000
LINES_PER_WRITE = 2000

_ERRORS = ("unknown_group", "unknown_execution", "agent_unreachable", "timed_out", "too_many")


class CurvesHandler(DistHandler):
    """The curves of an execution."""

    @operation(
        Operation(
            "Read the curves of an execution: numbers with a name that recur in what its ranks print",
            "read",
            {200: Answer(f"The curves; at most {MAX_NUMBERS} numbers", models.Curves)},
            errors=_ERRORS,
        )
    )
    async def get(self, name: str, execution_id: str) -> None:
        """Read them from all lines so far, also those that the view leaves out."""
        with self.service.downloads.one(self):
            printed = await self.group(name).printed(execution_id, MAX_BYTES)
            curves = await asyncio.to_thread(_curves, printed)
        listed, left_out = _listed(curves)
        self.answer(
            {
                "execution_id": execution_id,
                "curves": listed,
                "left_out": left_out,
                "unread_bytes": printed.unread_bytes,
            }
        )


class CurvesDownloadHandler(DownloadHandler):
    """The curves of an execution as a file."""

    @operation(
        Operation(
            "Download the curves of an execution as comma-separated values",
            "read",
            {200: Answer("curve,step,rank,value", content_type="text/csv", headers=("Content-Disposition",))},
            errors=_ERRORS,
        )
    )
    async def get(self, name: str, execution_id: str) -> None:
        """Write every number, at the client's pace."""
        group = self.group(name)
        with self.service.downloads.one(self):
            curves = await asyncio.to_thread(_curves, await group.printed(execution_id, MAX_BYTES))
            filename = f"{group.id}-{execution_id}-curves.csv"
            await self.stream("text/csv; charset=utf-8", filename, _csv(curves), "The curves cannot be read.")


def _csv(curves: dict[str, dict[int, Curve]]) -> Iterator[str]:
    lines = csv_lines(curves)
    while text := "".join(islice(lines, LINES_PER_WRITE)):
        yield text


def _curves(printed: Printed) -> dict[str, dict[int, Curve]]:
    # The last records begin with other lines than the first ones end with.
    parts = (printed.first, printed.last)
    return curves_of_lines(line for records in parts for line in printed_lines(records))


def _listed(curves: dict[str, dict[int, Curve]]) -> tuple[list[models.Curve], int]:
    """Return them as JSON has them, and how many numbers are too many."""
    left = MAX_NUMBERS
    left_out = 0
    listed: list[models.Curve] = []
    for name, by_rank in curves.items():
        ranks: list[models.CurveOfRank] = []
        for rank, curve in by_rank.items():
            values = [value if math.isfinite(value) else None for value in curve.values[:left]]
            ranks.append({"rank": rank, "steps": curve.steps[:left], "values": values})
            left -= len(values)
            left_out += len(curve.values) - len(values)
        listed.append({"name": name, "ranks": ranks})
    return listed, left_out
