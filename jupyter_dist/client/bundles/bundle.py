"""The bundle that a notebook saves for a rank cell, and its text; see labextension/src/model/outputs/bundle.ts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jupyter_dist.protocol.models.models import (
    RANKS_MIME,
    ExecutionModel,
    GroupModel,
    Output,
    RanksBundle,
    SavedItem,
    ViewItem,
)

from .blocks import Blocks
from .lateness import statuses_apart

# The fallback text is for readers without the extension.
MAX_FALLBACK_CHARS = 16000
MAX_FALLBACK_LINES = 200
MIN_BLOCK_LINES = 10

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

Item = SavedItem | ViewItem


def make_bundle(group: GroupModel, execution: ExecutionModel, items: Iterable[Item]) -> RanksBundle:
    """Return the bundle of docs/api.md, In the notebook file."""
    bundle: RanksBundle = {
        "version": 1,
        "group": {"id": group["id"], "name": group["name"], "world_size": group["world_size"]},
        "execution_id": execution["id"],
        "ranks": execution["ranks"],
        "state": execution["state"],
        "statuses": statuses_apart(execution, group["world_size"]),
        "started_at": execution["started_at"],
        "ended_at": execution["ended_at"],
        "items": [_saved(item) for item in items],
    }
    if execution["error"]:
        bundle["error"] = execution["error"]
    return bundle


def _saved(item: Item) -> SavedItem:
    if "elided" in item:
        return {"ranks": item["ranks"], "elided": item["elided"]}
    return {"ranks": item["ranks"], "output": item["output"]}


def mime_bundle(bundle: RanksBundle) -> dict[str, Any]:
    """Return the MIME bundle to display: the bundle, and text for frontends that cannot show it."""
    lines = list(text_lines(bundle, MAX_FALLBACK_LINES))
    return {RANKS_MIME: bundle, "text/plain": bounded(lines)}


def text_lines(bundle: RanksBundle, max_lines: int | None = None) -> Iterator[str]:
    """Return all output in blocks, each under a label of its ranks; see `bounded_blocks`."""
    blocks = bounded_blocks(bundle["items"], max_lines)
    for ranks, lines in blocks:
        yield f"[{rank_label(ranks)}]"
        yield from lines
    if end := end_text(bundle, is_bare=not blocks):
        yield end


def end_text(bundle: RanksBundle, *, is_bare: bool) -> str:
    """Return the end of the text: why the cell was lost, or that there was no output."""
    if error := bundle.get("error"):
        return f"[{bundle['state']}] {error['message']}"
    return f"[{rank_label(bundle['ranks'])}] {bundle['state']}" if is_bare else ""


def bounded_blocks(items: Iterable[Item], max_lines: int | None) -> list[tuple[str, list[str]]]:
    """Return the text of items by ranks; if there are more than `max_lines`, each of several blocks keeps its share."""
    blocks = _blocks(items)
    if max_lines is None or len(blocks) < 2 or sum(len(lines) + 1 for _, lines in blocks) <= max_lines:
        return blocks
    share = max(MIN_BLOCK_LINES, max_lines // len(blocks) - 2)
    return [(ranks, _ends(lines, share)) for ranks, lines in blocks]


def _blocks(items: Iterable[Item]) -> list[tuple[str, list[str]]]:
    blocks = Blocks()
    for item in items:
        text = item_text(item).removesuffix("\n")
        if text and "output" in item and item["output"]["output_type"] == "stream":
            blocks.add_text(item["ranks"], text)
        elif text:
            blocks.add_output(item["ranks"], text)
    return list(blocks.close())


def item_text(item: Item) -> str:
    """Return an item as text, without colors."""
    if (elided := item.get("elided")) is not None:
        return f"... {elided['lines']} more lines ({elided['bytes']} bytes) in the log of the rank\n"
    return output_text(item["output"])


def output_text(output: Output) -> str:
    """Return an nbformat output as text, without colors."""
    kind = output["output_type"]
    if kind == "stream":
        return without_ansi("".join(output["text"]))
    if kind == "error":
        return without_ansi("\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}")
    return "".join(output["data"].get("text/plain", ""))


def rank_label(ranks: str) -> str:
    """Return `rank 3` or `ranks 0-2`."""
    return f"rank {ranks}" if ranks.isdigit() else f"ranks {ranks}"


def without_ansi(text: str) -> str:
    """Return the text without colors."""
    return _ANSI.sub("", text)


def bounded(lines: list[str], max_lines: int = MAX_FALLBACK_LINES, max_chars: int = MAX_FALLBACK_CHARS) -> str:
    """Return the first and last lines, because an error is at the end."""
    text = "\n".join(_ends(lines, max_lines))
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]}\n...\n{text[-half:]}"


def _ends(lines: list[str], max_lines: int) -> list[str]:
    half = max_lines // 2
    left_out = len(lines) - 2 * half
    return lines if len(lines) <= max_lines else [*lines[:half], f"... {left_out} lines ...", *lines[-half:]]
