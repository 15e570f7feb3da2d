"""The answers: the curves of an execution, from the lines that its ranks printed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from itertools import islice

from jupyter_dist.parts.curves import models
from jupyter_dist.parts.curves.reading import Curve, csv_lines, curves_of_lines
from jupyter_dist.server.folding.printed import printed_lines
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.operations import FileAnswer
from jupyter_dist.server.mirror.history import PrintedRecords
from jupyter_dist.server.part import ServerPart

# A few seconds of reading, in a thread.
MAX_BYTES = 8 << 20
LINES_PER_CHUNK = 2000

CurvesByName = dict[str, dict[int, Curve]]  # then by rank


class CurvesOperations(ServerPart):
    """Answers which curves an execution has."""

    async def curves(self, group: ManagedGroup, execution_id: str) -> models.CurvesModel:
        """Return the curves of an execution, from all lines so far."""
        found, unread_bytes = await _read(group, execution_id)
        return list_curves(execution_id, found, unread_bytes)

    async def curves_file(self, group: ManagedGroup, execution_id: str) -> FileAnswer:
        """Return every number of the curves of an execution."""
        found, _ = await _read(group, execution_id)
        return FileAnswer(f"{group.id}-{execution_id}-curves.csv", csv_chunks(found), "The curves cannot be read.")


async def _read(group: ManagedGroup, execution_id: str) -> tuple[CurvesByName, int]:
    group.mirror.executions.get(execution_id)
    printed = await group.mirror.history.printed(execution_id, MAX_BYTES)
    return await asyncio.to_thread(find_curves, printed), printed.unread_bytes


def find_curves(printed: PrintedRecords) -> CurvesByName:
    """Return the curves in printed lines. Takes seconds: call it in a thread."""
    # The last records begin with other lines than the first ones end with.
    parts = (printed.first, printed.last)
    return curves_of_lines(line for records in parts for line in printed_lines(records))


def list_curves(execution_id: str, curves: CurvesByName, unread_bytes: int) -> models.CurvesModel:
    """Return the curves with at most MAX_NUMBERS numbers, and how many numbers are left out."""
    left = models.MAX_NUMBERS
    left_out = 0
    listed: list[models.CurveModel] = []
    for name, by_rank in curves.items():
        ranks: list[models.CurveOfRank] = []
        for rank, curve in by_rank.items():
            values = [value if math.isfinite(value) else None for value in curve.values[:left]]
            ranks.append({"rank": rank, "steps": curve.steps[:left], "values": values})
            left -= len(values)
            left_out += len(curve.values) - len(values)
        listed.append({"name": name, "ranks": ranks})
    return {"execution_id": execution_id, "curves": listed, "left_out": left_out, "unread_bytes": unread_bytes}


def csv_chunks(curves: CurvesByName) -> Iterator[str]:
    """Yield every number of the curves as comma-separated values."""
    lines = csv_lines(curves)
    while text := "".join(islice(lines, LINES_PER_CHUNK)):
        yield text
