"""Where results go: a JSON file per day, and docs/benchmarks.md between markers."""

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
PAGE = REPOSITORY / "docs" / "benchmarks.md"


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
    begin, end = f"<!-- {figure}: written by python -m benchmarks -->", f"<!-- end of {figure} -->"
    page = PAGE.read_text()
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page))
