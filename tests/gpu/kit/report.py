"""Print the results of a folder in short: python -m kit.report OUT [EXPERIMENT ...]; the whole stands in its *.jsonl files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

WIDTH = 240
QUIET = ("experiment", "at")


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    for path in sorted(folder.glob("*.jsonl")):
        print(f"== {path.name}")
        for text in path.read_text(errors="replace").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                print(f"   not a result: {text[:80]}")
                continue
            if names and not {str(line.get("experiment")), str(line.get("experiment")).partition(":")[2]} & set(names):
                continue
            if "begin" in line:
                print(f"-- {line['experiment']}: {line['begin']} Right: {line.get('right')}")
            elif "run" not in line or "experiments" in line:
                shown = {key: value for key, value in line.items() if key not in QUIET}
                print(f"   {_short(shown)}")


def _short(line: dict) -> str:
    text = ", ".join(f"{key}={value}" for key, value in line.items())
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ... ({len(text)})"


main()
