"""Which cells can be undone, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.ranks import RankSet, name_ranks

from .models import UndoableCells

MIB = 1 << 20


def undoable_text(answer: UndoableCells) -> str:
    """Return a line for each cell that can be undone, newest first, with what was kept for it."""
    lines = []
    for cell in answer["cells"]:
        cost = cell["cost"]
        kept = f"{cost['bytes'] / MIB:.1f} MiB in {cost['milliseconds']:.0f} ms"
        ranks = name_ranks(RankSet.from_text(cell["ranks"]))
        lines.append(f"[{cell['execution_count']}] on {ranks}, {kept}: {cell['line']}")
        lines += [f"    not undone: {sentence}" for sentence in cost["not_kept"]]
    return "\n".join(lines) or "No cell can be undone now: it must have ended, and have been run with keep_undo."


def why_not_kept(execution: Mapping[str, Any]) -> str | None:
    """Return a sentence if a cell that was to keep undo kept none."""
    reason = (execution.get("undo") or {}).get("reason")
    return f"This cell cannot be undone. {reason}" if reason else None
