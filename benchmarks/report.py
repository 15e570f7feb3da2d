"""Where results go: a JSON file per day, and the pages of docs/benchmarks between markers."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from . import machine
from .driver import REPOSITORY
from .tables import Table

RESULTS = Path(__file__).resolve().parent / "results"
PAGES = REPOSITORY / "docs" / "benchmarks"
INDEX = PAGES / "index.md"
TARGETS = "targets"


def keep(figure: str, description: dict[str, Any], tables: list[Table]) -> None:
    """Append a figure's results to today's file, and put its tables in the page."""
    at = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    _append(at, figure, description, tables)
    text = f"*{machine.sentence(description, at + ' UTC')}*\n\n" + "\n".join(table.markdown() for table in tables)
    _put_in_page(figure, text)


def _append(at: str, figure: str, description: dict[str, Any], tables: list[Table]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{at[:10]}.json"
    runs = json.loads(path.read_text()) if path.exists() else []
    runs.append({"at": at, "figure": figure, "machine": description, "tables": [table.to_dict() for table in tables]})
    path.write_text(json.dumps(runs, separators=(",", ":")).replace('{"at"', '\n{"at"') + "\n")


def _put_in_page(figure: str, text: str) -> None:
    """Replace a figure's tables in the page that has its markers, and update the summary of all targets."""
    begin, _ = _markers(figure)
    pages = [path for path in PAGES.glob("*.md") if begin in path.read_text()]
    if not pages:
        raise SystemExit(f"No page of {PAGES} has the line {begin}.")
    _replace(pages[0], figure, text)
    _replace(INDEX, TARGETS, summary())


def summary() -> str:
    """Return a table of all pages, with the number of targets that were held and the text of each that was missed."""
    lines = ["| page | targets held | missed |", "|---|---:|---|"]
    for name in re.findall(r"^[a-z-]+$", INDEX.read_text().partition("{toctree}")[2].partition("```")[0], re.MULTILINE):
        page = (PAGES / f"{name}.md").read_text()
        title = page.partition("\n")[0].removeprefix("# ")
        missed = re.findall(r"^- \*\*missed\*\*: (.*)", page, re.MULTILINE)
        held = len(re.findall(r"^- held: ", page, re.MULTILINE))
        lines.append(f"| [{title}]({name}.md) | {held} | {'; '.join(missed) or '-'} |")
    return "\n".join(lines)


def _replace(page: Path, figure: str, text: str) -> None:
    begin, end = _markers(figure)
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page.read_text()))


def _markers(figure: str) -> tuple[str, str]:
    return f"<!-- {figure}: written by python -m benchmarks -->", f"<!-- end of {figure} -->"
