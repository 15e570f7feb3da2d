"""The saved form of a cell's output, which every reader of notebooks can show (docs/decisions/0019 and 0023).

Text with the labels of its ranks, and figures, tables and errors as separate outputs. The bundle, in the first
output, names the other outputs instead of repeating them, so that each is saved once.

The TypeScript counterpart is labextension/src/model/outputs/portable.ts; both run tests/vectors/portable.json.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.protocol.models.models import PART_MIME, RANKS_MIME, Output, RanksBundle, SavedItem
from jupyter_dist.protocol.ranks import RankSet

from .bundle import MAX_FALLBACK_CHARS, MAX_FALLBACK_LINES, bounded, bounded_blocks, end_text, mime_bundle, rank_label

# Further figures and errors stay in the bundle, and are text elsewhere.
MAX_PARTS = 200
MIN_LINES = 10
MIN_CHARS = 500
# HTML beside the text is saved as long as all is at most so many times as large as without parts and HTML.
MAX_GROWTH = 1.25

_PRE = '<pre style="font-family:monospace">'


@dataclass
class _Section:
    """An output that stands on its own, and the text before it; at the end, only text."""

    text: list[SavedItem] = field(default_factory=list)
    output: Output | None = None
    ranks: str = ""


def portable_outputs(bundle: RanksBundle) -> list[dict[str, Any]]:
    """Return the outputs of a cell that has ended, in nbformat; the first has the bundle."""
    sections, section_of = _divide(bundle["items"])
    texts = [_Text(bundle, sections, i) for i in range(len(sections))]
    outputs: list[dict[str, Any]] = []
    positions: list[int] = []
    htmls: list[tuple[dict[str, Any], str]] = []
    for i, (section, text) in enumerate(zip(sections, texts, strict=True)):
        if i == 0 or not text.is_empty:
            # The first is filled in below: the bundle names the parts.
            data: dict[str, Any] = {PART_MIME: {"of": bundle["execution_id"]}} if i else {RANKS_MIME: None}
            data["text/plain"] = text.plain
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
            htmls.append((data, text.html))
        if section.output is not None:
            positions.append(len(outputs))
            outputs.append(_marked(section.output, bundle["execution_id"]))
    items: list[SavedItem] = [
        item if (at := section_of.get(id(item))) is None else {"ranks": item["ranks"], "part": positions[at]}
        for item in bundle["items"]
    ]
    outputs[0]["data"][RANKS_MIME] = {**bundle, "items": items}
    _add_html(outputs, htmls, _size(bundle) + len(mime_bundle(bundle)["text/plain"]))
    return outputs


def as_displays(outputs: list[dict[str, Any]], execution_id: str) -> list[dict[str, Any]]:
    """Return the outputs as a kernel can send them while a cell runs: as displays, with `data` and `metadata`.

    Other outputs may come between the parts, so the mark of a part has its number, and its type if it was no display.
    """
    return [outputs[0], *(_as_display(output, n, execution_id) for n, output in enumerate(outputs) if n)]


def _as_display(output: dict[str, Any], number: int, execution_id: str) -> dict[str, Any]:
    mark = {"of": execution_id, "part": number}
    if output["output_type"] == "error":
        mark["error"] = {"ename": output["ename"], "evalue": output["evalue"]}
        data = {PART_MIME: mark, "text/plain": "\n".join(output["traceback"])}
        return {"output_type": "display_data", "data": data, "metadata": {}}
    if output["output_type"] == "execute_result":
        mark["execution_count"] = output.get("execution_count")
    data = {**output["data"], PART_MIME: mark}
    return {"output_type": "display_data", "data": data, "metadata": output.get("metadata", {})}


def _divide(items: Iterable[SavedItem]) -> tuple[list[_Section], dict[int, int]]:
    """Return the sections, and the section of each rich item; equal items share a section."""
    sections, section_of = [_Section()], {}
    known: dict[str, int] = {}
    for item in items:
        last = len(sections) - 1
        key = json.dumps(item["output"]) if _is_rich(item) else None
        if key is None or (last >= MAX_PARTS and key not in known):
            sections[last].text.append(item)
            continue
        at = section_of[id(item)] = known.setdefault(key, last)
        if at != last:
            ranks = {*RankSet.from_text(sections[at].ranks), *RankSet.from_text(item["ranks"])}
            sections[at].ranks = str(RankSet(ranks))
            continue
        sections[last].output, sections[last].ranks = item["output"], item["ranks"]
        sections.append(_Section())
    return sections, section_of


def _is_rich(item: SavedItem) -> bool:
    """Whether plain text shows the item less well."""
    output = item.get("output", {})
    return output.get("output_type") == "error" or any(mime != "text/plain" for mime in output.get("data", ()))


class _Text:
    """The text of a section: the output of ranks, and the label of the ranks of the next output."""

    def __init__(self, bundle: RanksBundle, sections: list[_Section], position: int) -> None:
        section, before = sections[position], sections[position - 1] if position else None
        self._max_lines = max(MIN_LINES, MAX_FALLBACK_LINES // len(sections))
        self._max_chars = max(MIN_CHARS, MAX_FALLBACK_CHARS // len(sections))
        self._blocks = bounded_blocks(section.text, self._max_lines)
        shown = self._blocks[-1][0] if self._blocks else before.ranks if before else ""
        self._label = section.ranks if section.ranks != shown else ""
        is_last = position == len(sections) - 1
        self._end = end_text(bundle, is_bare=before is None and not self._blocks) if is_last else ""

    @property
    def is_empty(self) -> bool:
        return not (self._blocks or self._label or self._end)

    @property
    def plain(self) -> str:
        lines = [line for ranks, lines in self._blocks for line in (f"[{rank_label(ranks)}]", *lines)]
        rest = [*([f"[{rank_label(self._label)}]"] if self._label else []), *([self._end] if self._end else [])]
        return bounded([*lines, *rest], self._max_lines + len(rest), self._max_chars)

    @property
    def html(self) -> str:
        """Return the text as HTML, in which everything is escaped."""
        label = f"<div><b>{_escaped(rank_label(self._label))}</b></div>" if self._label else ""
        end = f"<div>{_escaped(self._end)}</div>" if self._end else ""
        return "".join(_block_html(ranks, lines) for ranks, lines in self._blocks) + label + end


def _block_html(ranks: str, lines: list[str]) -> str:
    summary = f"<summary><b>{_escaped(rank_label(ranks))}</b></summary>"
    text = _escaped("\n".join(lines))
    return f"<details open>{summary}{_PRE}{text}</pre></details>"


def _escaped(text: str) -> str:
    return html.escape(text).replace("&#x27;", "&#39;")


def _add_html(outputs: list[dict[str, Any]], htmls: list[tuple[dict[str, Any], str]], before: int) -> None:
    """Put HTML beside the texts, from the first on, while there is room."""
    room = MAX_GROWTH * before - sum(map(_size, outputs))
    for data, text in htmls:
        room -= _size(text) + 20
        if text and room >= 0:
            data["text/html"] = text


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _marked(output: Output, execution_id: str) -> dict[str, Any]:
    """Mark an output as part of an execution; nbformat has no room for it in errors."""
    if output["output_type"] == "error":
        return output
    return {**output, "data": {**output["data"], PART_MIME: {"of": execution_id}}}
