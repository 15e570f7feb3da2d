"""The code blocks of a page, and where each runs.

The words behind the fence say it, and readers do not see them: `python on ranks` (then `fails` or `hangs`), `python in a kernel`,
`python in a script`, `python config`, `sh`. `text output` follows a block and is what it prints, `...` standing for anything.
What cannot run is `text not run here` or `json not run here`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    DOCS / "tutorial.md",  # it starts the group
    DOCS / "get-started.md",
    *sorted((DOCS / "how-to").glob("*.md")),
    DOCS / "reference" / "settings.md",
    DOCS / "reference" / "python.md",
]
KINDS = {
    "python on ranks",
    "python on ranks fails",
    "python on ranks hangs",
    "python in a kernel",
    "python in a script",
    "python config",
    "sh",
}
SKIPPED = {"text not run here", "json not run here", "python not run here"}
DIRECTIVE = re.compile(r"\{[\w-]+\}.*")


@dataclass
class Block:
    line: int
    kind: str
    code: str
    output: str | None = None


def blocks_of(page):
    """The blocks in order, each with the output that follows it."""
    found = []
    text = page.read_text()
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        kind, code, line = match[1].strip(), match[2], text.count("\n", 0, match.start()) + 1
        if kind == "text output":
            assert found, f"{page}:{line}: output of nothing"
            assert found[-1].output is None, f"{page}:{line}: a second output"
            found[-1].output = code
        elif not DIRECTIVE.fullmatch(kind):
            assert kind in KINDS | SKIPPED, f"{page}:{line}: '{kind}' does not say where it runs"
            found.append(Block(line, kind, code))
    return found


def missing_line(expected, actual):
    """The first line of what is expected that does not come, in this order, in what was printed; None if all do."""
    lines = iter(actual.splitlines())
    for wanted in expected.strip().splitlines():
        pattern = ".*".join(map(re.escape, wanted.strip().split("...")))
        if not any(re.search(pattern, line) for line in lines):
            return wanted
    return None
