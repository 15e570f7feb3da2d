"""The curves of an execution, from the lines that its ranks printed: as a list, and as comma-separated values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from jupyter_dist.numbers.curves import Curve, csv_lines, curves_of_lines
from jupyter_dist.protocol.models import curves as models
from jupyter_dist.protocol.operations.of_execution import MAX_CURVE_NUMBERS
from jupyter_dist.server.folding.printed import printed_lines
from jupyter_dist.server.mirror.history import PrintedRecords

# A few seconds of reading, in a thread.
MAX_BYTES = 8 << 20
LINES_PER_CHUNK = 2000

CurvesByName = dict[str, dict[int, Curve]]  # then by rank


def find_curves(printed: PrintedRecords) -> CurvesByName:
    """Return the curves in printed lines. Takes seconds: call it in a thread."""
    # The last records begin with other lines than the first ones end with.
    parts = (printed.first, printed.last)
    return curves_of_lines(line for records in parts for line in printed_lines(records))


def list_curves(execution_id: str, curves: CurvesByName, unread_bytes: int) -> models.CurvesModel:
    """Return the curves with at most MAX_CURVE_NUMBERS numbers, and how many numbers are left out."""
    left = MAX_CURVE_NUMBERS
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
