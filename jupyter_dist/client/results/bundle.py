"""What a notebook saves of a rank cell, and its text; see also labextension/src/model/executions/bundle.ts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jupyter_dist.protocol.models import RANKS_MIME, Execution, Group, Output, RanksBundle, SavedItem, ViewItem

# The fallback text is for readers without the extension.
MAX_FALLBACK_CHARS = 16000
MAX_FALLBACK_LINES = 200

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

Item = SavedItem | ViewItem


def make_bundle(group: Group, execution: Execution, items: Iterable[Item]) -> RanksBundle:
    """Return the bundle of docs/api.md, In the notebook file."""
    bundle: RanksBundle = {
        "version": 1,
        "group": {"id": group["id"], "name": group["name"], "world_size": group["world_size"]},
        "execution_id": execution["id"],
        "ranks": execution["ranks"],
        "state": execution["state"],
        "statuses": execution["statuses"],
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
    return {RANKS_MIME: bundle, "text/plain": _bounded(list(text_lines(bundle)))}


def text_lines(bundle: RanksBundle) -> Iterator[str]:
    """Return all output, each run of items under a label of its ranks."""
    ranks = None
    for item in bundle["items"]:
        text = item_text(item).removesuffix("\n")
        if not text:
            continue
        if item["ranks"] != ranks:
            ranks = item["ranks"]
            yield f"[{rank_label(ranks)}]"
        yield from text.split("\n")
    if error := bundle.get("error"):
        yield f"[{bundle['state']}] {error['message']}"
    elif ranks is None:
        yield f"[{rank_label(bundle['ranks'])}] {bundle['state']}"


def item_text(item: Item) -> str:
    """Return one item as text, without colors."""
    if (elided := item.get("elided")) is not None:
        return f"... {elided['lines']} more lines ({elided['bytes']} bytes) in the log of the rank\n"
    return output_text(item["output"])


def output_text(output: Output) -> str:
    """Return one nbformat output as text, without colors."""
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


def _bounded(lines: list[str]) -> str:
    """Return the first and last lines, because an error is at the end."""
    if len(lines) > MAX_FALLBACK_LINES:
        half = MAX_FALLBACK_LINES // 2
        lines = [*lines[:half], f"... {len(lines) - MAX_FALLBACK_LINES} lines ...", *lines[-half:]]
    text = "\n".join(lines)
    half = MAX_FALLBACK_CHARS // 2
    return text if len(text) <= MAX_FALLBACK_CHARS else f"{text[:half]}\n...\n{text[-half:]}"
