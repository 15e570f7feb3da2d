"""The files that are measured."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jupyter_dist"
EXTENSION = ROOT / "labextension" / "src"
GENERATED = {"protocol.ts", "api.ts", "_version.py", "ofparts.py", "keywords.py"}


@cache
def python_files():
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.name not in GENERATED]


@cache
def typescript_files():
    files = (path for path in sorted(EXTENSION.rglob("*.ts*")) if ".spec." not in path.name)
    return [path for path in files if path.name not in GENERATED]


@cache
def pages():
    """Documentation, without the history of changes."""
    files = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in files if path.name != "CHANGELOG.md" and "_build" not in path.parts]


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def place(path, line=None):
    name = str(path.relative_to(ROOT))
    return name if line is None else f"{name}:{line}"
