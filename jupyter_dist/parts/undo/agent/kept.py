"""What a rank keeps to undo cells, as it has sent it, and the cost for a cell of all of its ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jupyter_dist.protocol.wire.places import cut

if TYPE_CHECKING:
    from jupyter_dist.parts.undo import models

MAX_KEPT = 1000
MAX_SENTENCES = 20  # of what undo leaves as it is
MAX_SENTENCE = 300


class RankKept(NamedTuple):
    """What a rank keeps, as of its last reply."""

    executions: frozenset[str] = frozenset()  # that it can undo
    undone: frozenset[str] = frozenset()  # that it can do again


NOTHING = RankKept()


def kept_of(sent: Any) -> RankKept:
    """Return the kept cells of a rank, as far as they are in the right form."""
    return RankKept(_executions(sent, "kept"), _executions(sent, "undone"))


def _executions(sent: Any, name: str) -> frozenset[str]:
    """Return the executions that ranks can undo or do again, as far as they have sent them in the right form."""
    executions = sent.get(name) if isinstance(sent, dict) else None
    return frozenset(map(str, executions[:MAX_KEPT])) if isinstance(executions, list) else frozenset()


def cost_of(sent: Any, cost: Any) -> models.UndoCost | None:
    """Return the cost for the last cell of a rank, if it has sent one in the right form."""
    sentences = sent.get("not_kept") if isinstance(sent, dict) else None
    if not isinstance(cost, list) or len(cost) != 2 or not isinstance(sentences, list):
        return None
    size, milliseconds = cost
    if not isinstance(size, int) or not isinstance(milliseconds, int | float):
        return None
    found: models.UndoCost = {
        "bytes": size,
        "milliseconds": milliseconds,
        "not_kept": [cut(str(sentence), MAX_SENTENCE) for sentence in sentences[:MAX_SENTENCES]],
    }
    if isinstance(sent.get("changed"), bool):
        found["changed"] = sent["changed"]
    if sent.get("reason"):
        found["reason"] = cut(str(sent["reason"]), MAX_SENTENCE)
    return found


def combined(total: models.UndoCost | None, cost: models.UndoCost) -> models.UndoCost:
    """Return the cost for a cell, with one more rank."""
    total = total or {"bytes": 0, "milliseconds": 0.0, "not_kept": []}
    sentences = dict.fromkeys([*total["not_kept"], *cost["not_kept"]])
    found: models.UndoCost = {
        "bytes": total["bytes"] + cost["bytes"],
        "milliseconds": max(total["milliseconds"], cost["milliseconds"]),
        "not_kept": list(sentences)[:MAX_SENTENCES],
    }
    if reason := total.get("reason") or cost.get("reason"):
        found["reason"] = reason
    if "changed" in cost:
        found["changed"] = cost["changed"] or total.get("changed", False)
    return found
