"""Prose and structure are tested too: paths in the docs exist, versions agree, rooms stay small."""

import ast
import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "jupyter_dist").rglob("*.py"))
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_file_that_the_docs_name_exists(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    named = set(
        re.findall(r"`((?:jupyter_dist|labextension|tests|ui-tests|benchmarks|docs|examples|\.ci)/[\w./-]+)`", text)
    )
    links = {link for link in re.findall(r"\]\(([^)#]+)\)", text) if not link.startswith(("http", "mailto"))}
    missing = sorted(name for name in named if not (ROOT / name).exists())
    missing += sorted(link for link in links if not (path.parent / link).exists())
    assert not missing


def test_the_version_is_the_same_everywhere():
    version = json.loads((ROOT / "package.json").read_text())["version"]
    assert metadata.version("jupyter_dist") == version


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_can_be_seen_at_once(path):
    text = path.read_text()
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 60, node.name


def test_the_server_never_imports_torch():
    code = "import sys, jupyter_dist.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_there_is_no_pickle_on_any_channel_of_ours():
    for path in SOURCES:
        if path.parent.name not in ("rank", "objects"):  # objects travel in files, between the user's own processes
            assert not re.search(r"\b(cloud)?pickle\b|\.recv_pyobj|\beval\(|\bexec\(", path.read_text()), path
