"""What a cell shows that does not end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.operations.declaration import CellNote, Finding
from jupyter_dist.protocol.ranks import RankSet, name_ranks

from .models import Verdict

OPERATIONS = ()
EXECUTION_FIELDS = {
    "verdict": Annotated[Verdict | None, Field("Why it does not end, while ranks wait for each other.")],
}
BUNDLE_FIELDS = {
    "verdict": Annotated[Verdict | None, Field("Why it does not end, while it runs in a kernel or a shared notebook.")]
}


def _findings(verdict: Verdict) -> Iterator[Finding]:
    """Yield the verdict, with what to do, unless the cell may end by itself."""
    if verdict["kind"] == "cannot_end":
        joining = verdict.get("could_join")
        other = f", or run it on {name_ranks(RankSet.from_text(joining))}, too: extend('{joining}')" if joining else ""
        yield {**verdict, "advice": f"Interrupt the cell{other}; variables are kept."}


CELL_NOTES = (CellNote("verdict", "cannot end", same_by=("reason",), read=_findings, stops_cell=True),)
