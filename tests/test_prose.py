"""Docs, code and the texts of the interface avoid the phrases that docs/plain-english.md lists."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "plain-english.md"
TABLE = PAGE.read_text().partition("| Instead of | Write |\n|---|---|\n")[2]
INSTEAD = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", TABLE, re.MULTILINE))
PHRASE = re.compile(r"\b(?:" + "|".join(INSTEAD).replace(" ", r"\s+") + r")\b", re.IGNORECASE)


def python_prose(text, *, has_strings):
    """Comments and docstrings, and all other strings of code that users see."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if has_strings and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def markdown_prose(text):
    """Without code, in which names of tests stand."""
    yield re.sub(r"```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def prose_of(path):
    text = path.read_text()
    if not PHRASE.search(text):
        return []
    if path.suffix == ".py":
        return python_prose(text, has_strings=path.is_relative_to(ROOT / "jupyter_dist"))
    return markdown_prose(text) if path.suffix == ".md" else [text]


def python_files(folder):
    """Ours: not those of an environment in a hidden folder, as benchmarks have."""
    return (path for path in folder.rglob("*.py") if not any(p.startswith(".") for p in path.relative_to(folder).parts))


SCOPE = [
    *ROOT.glob("*.md"),
    *(path for path in (ROOT / "docs").rglob("*.md") if path != PAGE and "_build" not in path.parts),
    *(path for folder in ("jupyter_dist", "tests", "benchmarks", ".ci") for path in python_files(ROOT / folder)),
    *(path for kind in ("src/**/*.ts*", "style/*.css", "schema/*.json") for path in (ROOT / "labextension").glob(kind)),
    *(path for folder in ("tests", "beside", "screenshots") for path in (ROOT / "ui-tests" / folder).rglob("*.ts")),
    *(ROOT / "examples").glob("*.ipynb"),
]


def test_the_page_has_phrases():
    assert INSTEAD["anew"] == "again; re-create, restart"
    found = python_prose('"""Formed anew."""\nfor_good = 1  # it goes on\n', has_strings=False)
    assert [match[0] for prose in found for match in PHRASE.finditer(prose)] == ["goes on", "anew"]


def top_folder(path):
    return path.relative_to(ROOT).parts[0] if path.parent != ROOT else ""


@pytest.mark.parametrize("folder", sorted({top_folder(path) for path in SCOPE}))
def test_prose_is_plain(folder):
    found = [
        f"{path.relative_to(ROOT)}: '{match[0]}': write {INSTEAD[' '.join(match[0].lower().split())]}"
        for path in SCOPE
        if top_folder(path) == folder
        for prose in prose_of(path)
        for match in PHRASE.finditer(prose)
    ]
    assert not found, "\n".join(found)
