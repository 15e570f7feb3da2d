"""Properties of a Result."""

from __future__ import annotations

from jupyter_dist.client.results.result import Result
from jupyter_dist.parts.curves.reading import Curve, curves_of


def numbers(result: Result) -> dict[str, dict[int, Curve]]:
    """Return the numbers with a name that recur in this result's output: by name, then by rank.

    The result of a long cell does not have its whole output; `group.curves()` reads the whole output.
    """
    return curves_of(result.folded)
